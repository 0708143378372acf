"""Writes positions.tsv: number of columns and first half of the sha256 of the float32 table of 1500 positions, as Qwen's audio encoders have it.

Needs PyTorch on x86-64 with AVX2:  python3 make_positions.py > positions.tsv
"""
import hashlib
import os

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
for columns in [4, 6, 16, 32, 36, 64, 90, 512, 768, 896, 1024, 1280, 2048]:
    step = np.log(10000) / (columns // 2 - 1)
    scales = torch.exp(-step * torch.arange(columns // 2).float())
    angles = torch.arange(1500)[:, np.newaxis] * scales[np.newaxis, :]
    table = torch.cat([torch.sin(angles), torch.cos(angles)], dim=1).to(dtype=torch.float32)
    print(columns, hashlib.sha256(table.numpy().tobytes()).hexdigest()[:32], sep="\t")
