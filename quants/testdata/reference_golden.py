#!/usr/bin/env python3
"""Reference conversions (from_float_ref) of libggml-base, which fill a KV cache, for the inputs of quant_golden.py.

    reference_golden.py [OUT]      writes reference_golden.json: type|input → the first 16 hex digits of SHA-256 of the floats that
                                    the blocks decode to, every zero as +0: the codes of IQ4_NL's blocks of scale 0 are whatever was in memory
"""
import ctypes
import hashlib
import json
import sys

import numpy as np

import quant_golden as qg
import quant_ref as qr

TYPES = ["Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL"]


def convert(name, x):
    number, per, size = qr.TYPES[name]
    f = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        qr.lib().ggml_get_type_traits(number).contents.from_float_ref)
    flat = np.ascontiguousarray(x, dtype=np.float32).reshape(-1)
    out = np.empty(len(flat) // per * size, dtype=np.uint8)
    f(flat.ctypes.data, out.ctypes.data, len(flat))
    return qr.dequantize(name, out.tobytes()) + np.float32(0)


def main(out):
    names = sorted({c[1] for c in qg.case_list() if c[0] in TYPES and c[1].endswith("x512")} - {"beyond/2x512"})
    golden = {f"{t}|{name}": hashlib.sha256(convert(t, qg.make_input(name)).astype("<f4").tobytes()).hexdigest()[:16] for t in TYPES for name in names}
    with open(out, "w") as f:
        f.write("{\n" + ",\n".join(f'"{k}":"{v}"' for k, v in golden.items()) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "reference_golden.json")
