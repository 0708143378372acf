"""Writes sin.tsv or cos.tsv: first number, last number, number of elements, first half of the sha256 of the float32 results.

Needs PyTorch on x86-64 with AVX2:  python3 make_trig.py sin > sin.tsv; python3 make_trig.py cos > cos.tsv
"""
import hashlib
import os
import sys

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)  # parts of several threads do not begin with whole vectors
function = getattr(torch, sys.argv[1])
RANGES = [(-4, 4), (0, 1500), (-1e-3, 1e-3), (-130, -120), (100, 150), (-38000, 38999), (124.9999, 125.0001)]
for first, last in RANGES:
    for n in list(range(1, 40)) + [63, 64, 65, 1000, 4097, 100000]:
        x = (first + (last - first) * np.arange(n, dtype=np.float64) / n).astype(np.float32)
        y = function(torch.from_numpy(x))
        print(first, last, n, hashlib.sha256(y.numpy().tobytes()).hexdigest()[:32], sep="\t")
