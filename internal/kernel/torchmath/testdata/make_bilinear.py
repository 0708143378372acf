"""Writes bilinear.tsv: side of a square of vectors, side of the one that bilinear interpolation makes of it with corners
aligned, length of the vectors, and the sha256 of the result.

Needs PyTorch on x86-64 with AVX2:  python3 make_bilinear.py > bilinear.tsv
"""
import hashlib
import os

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
import numpy as np  # noqa: E402
import torch  # noqa: E402

for side, to, n in [(128, 32, 16), (64, 48, 24), (12, 5, 32), (10, 7, 8), (7, 1, 8), (1, 4, 8), (4, 9, 40), (48, 14, 200), (9, 4, 1280)]:
    x = (np.arange(side * side * n) * 7919 % 1000003 / 1000003 - 0.5).astype(np.float32)
    x = torch.from_numpy(x).reshape(1, side, side, n).permute(0, 3, 1, 2)
    y = torch.nn.functional.interpolate(x, size=(to, to), mode="bilinear", align_corners=True).permute(0, 2, 3, 1).contiguous()
    print(side, to, n, hashlib.sha256(y.numpy().tobytes()).hexdigest()[:32], sep="\t")
