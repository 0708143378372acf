#!/usr/bin/env python3
"""Prints random_blocks.json, which says how its data are made.

  random_blocks.py > random_blocks.json
"""
import hashlib, json

import numpy as np
import quant_ref as qr

ABOUT = ('For every type: random blocks, what they decode to, and how many are invalid. The bytes are gen.Bytes("blocks/TYPE", blocks*bytes per '
         'block), as many whole blocks as 65536 bytes hold: splitmix64 started at FNV-1a-64 of "b/blocks/TYPE", each output as 8 little-endian bytes. '
         "sha256 is that of the little-endian float32 the type's to_float function of libggml-base 0.27.0 (x86-64) gives, every NaN replaced by "
         "0x7FC00000; invalid counts the blocks that ggml_validate_row_data refuses when given one block at a time.")
SIZE, MASK = 65536, (1 << 64) - 1


def fnv1a(text):
    h = 0xCBF29CE484222325
    for b in text.encode():
        h = (h ^ b) * 0x100000001B3 & MASK
    return h


def random_bytes(name, n):
    out, s = bytearray(), fnv1a("b/" + name)
    while len(out) < n:
        s = s + 0x9E3779B97F4A7C15 & MASK
        z = (s ^ s >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out[:n])


rows = []
for name, (_, _, size) in qr.TYPES.items():
    if name == "F32":
        continue
    n = SIZE // size
    data = random_bytes("blocks/" + name, n * size)
    y = qr.dequantize(name, data).view("<u4")
    y[(y & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    invalid = sum(not qr.validate(name, data[i : i + size]) for i in range(0, len(data), size))
    rows.append('"%s": {"blocks": %d, "invalid": %d, "sha256": "%s"}' % (name, n, invalid, hashlib.sha256(y.tobytes()).hexdigest()))
print('{\n"about": %s,\n"types": {\n%s\n}\n}' % (json.dumps(ABOUT), ",\n".join(rows)))
