"""Writes erfinv.tsv: first probability, last one, number of steps, first half of the sha256 of the float32 quantiles.

Needs PyTorch on x86-64 with AVX2:  python3 make_erfinv.py > erfinv.tsv
"""
import hashlib
import numpy as np
import torch

normal = torch.distributions.normal.Normal(0, 1)
for first, last in [(0, 1), (0.9, 1), (0, 0.001), (0.14, 0.16), (0.49, 0.51), (0.95, 0.9500001)]:
    for n in [1, 3, 10, 100, 1000]:  # of more, a few at the ends differ in their last bit, as functions of the C library round
        p = (first + (last - first) * np.arange(n, dtype=np.float64) / n).astype(np.float32)
        y = normal.icdf(torch.from_numpy(p))
        print(first, last, n, hashlib.sha256(y.numpy().tobytes()).hexdigest()[:32], sep="\t")
