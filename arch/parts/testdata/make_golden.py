"""Writes llama3.tsv: settings of the llama3 rope type and the first half of the sha256 of its float32 factors.

Columns: head size, base, factor, low and high frequency factor, original length, sum. The steps are those of the
reference's converter, which computes with one-element PyTorch tensors. Needs PyTorch on x86-64 with AVX2:

    python3 make_golden.py > llama3.tsv
"""
import hashlib
import math
import random

import torch

random.seed(1)
published = [(128, 500000.0, 8.0, 1.0, 4.0, 8192), (64, 500000.0, 32.0, 1.0, 4.0, 8192), (128, 500000.0, 32.0, 1.0, 4.0, 8192)]
others = [
    (
        random.choice([64, 128, 192, 256]),
        random.choice([10000.0, 500000.0, 1000000.0, round(10 ** random.uniform(3, 7), 2)]),
        random.choice([8.0, 32.0, 4.0, round(random.uniform(1, 40), 2)]),
        random.choice([1.0, round(random.uniform(0.5, 2), 2)]),
        random.choice([4.0, round(random.uniform(2.5, 8), 2)]),
        random.choice([8192, 4096, random.randint(500, 20000)]),
    )
    for _ in range(197)
]
for dim, base, factor, low, high, length in published + others:
    factors = []
    for freq in 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)):
        wavelength = 2 * math.pi / freq
        if wavelength < length / high:
            factors.append(1)
        elif wavelength > length / low:
            factors.append(factor)
        else:
            smooth = (length / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    data = torch.tensor(factors, dtype=torch.float32).numpy().tobytes()
    print(dim, base, factor, low, high, length, hashlib.sha256(data).hexdigest()[:32], sep="\t")
