"""Prints samples.txt: the entries of the sample files, read with numpy and python3-gguf.

  make_samples.py DIR > samples.txt      DIR holds imatrix_*.dat and imatrix_*.gguf

A value is the stored sum divided, in float32, by the number of calls (legacy files) or by its matrix's count
(GGUF files; a matrix that was never used has ones).
"""
import hashlib, os, struct, sys

import gguf
import numpy as np


def legacy(path):
    data, at = open(path, "rb").read(), 0

    def number():
        nonlocal at
        at += 4
        return struct.unpack_from("<i", data, at - 4)[0]

    for _ in range(number()):
        n = number()
        name, at = data[at : at + n].decode(), at + n
        calls, n = number(), number()
        sums, at = np.frombuffer(data, "<f4", n, at), at + 4 * n
        yield name, sums / np.float32(calls), "-", calls


def new(path):
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    for name, t in tensors.items():
        if name.endswith(".in_sum2"):
            name = name[: -len(".in_sum2")]
            counts = np.round(tensors[name + ".counts"].data.reshape(-1)).astype(np.float32)
            sums = t.data.reshape(len(counts), -1)
            values = np.where(counts[:, None] > 0, sums / np.maximum(counts, np.float32(1))[:, None], np.float32(1))
            yield name, values.astype("<f4").reshape(-1), ",".join("%d" % c for c in counts), "-"


print("""# Entries of the sample files, read with numpy and python3-gguf. Per entry: name, values, counts of the
# matrices (- in legacy files), calls (- in GGUF files), first value, start of the sha256 of all values as
# little-endian float32.""")
for f in sorted(os.listdir(sys.argv[1])):
    if f.startswith("imatrix_") and f.endswith((".dat", ".gguf")):
        print("file", f)
        path = os.path.join(sys.argv[1], f)
        for name, values, counts, calls in legacy(path) if f.endswith(".dat") else new(path):
            print(name, len(values), counts, calls, "%.9g" % values[0], hashlib.sha256(values.tobytes()).hexdigest()[:32])
