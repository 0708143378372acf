"""Writes pow.tsv: base, number of exponents, first half of the sha256 of the float32 results.

The exponents are 2i/dim for i < dim/2, as in rope frequencies; the bases are those of published models and others.
Needs PyTorch on x86-64 with AVX2:  python3 make_golden.py > pow.tsv
"""
import hashlib
import torch

BASES = [1.5, 2.0, 10000.0, 100000.0, 123456.7, 150000.0, 500000.0, 1000000.0, 8000000.0, 1e9] + [1.1 * 1.37**k for k in range(40)]
for dim in (32, 64, 96, 128, 160, 192, 256, 512):
    for base in BASES:
        y = torch.arange(0, dim, 2, dtype=torch.float32) / dim
        p = base**y
        print(repr(base), dim // 2, hashlib.sha256(p.numpy().tobytes()).hexdigest()[:32], sep="\t")
