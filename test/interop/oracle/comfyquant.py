"""Weights in the formats of ComfyUI's mixed-precision files, decoded with PyTorch: the sums in
checkpoint/precision/comfy_test.go.

    comfyquant.py

Prints of each weight its shape, the first 16 bytes of the SHA-256 of its float32 values, and four of these: the first two,
the middle one and the last. Codes and scales are the bytes of a linear congruential generator. The tiles of scales are
those of cuBLAS's manual; rotations are computed in float64, whose products are exact here.
"""
import hashlib, math

import torch

F8 = torch.float8_e4m3fn


def tiles(scales):
    """Scales of [rows, columns] in tiles of 128 x 4."""
    rows, columns = scales.shape
    high, wide = -(-rows // 128), -(-columns // 4)
    out = torch.zeros(high * wide * 512, dtype=torch.uint8)
    for r in range(rows):
        for c in range(columns):
            out[(r // 128 * wide + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = scales[r, c]
    return out


def untile(flat, rows, columns):
    high, wide = -(-rows // 128), -(-columns // 4)
    grid = flat.view(high, wide, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return grid.reshape(high * 128, wide * 4)[:rows, :columns]


def generator(seed):
    x = seed
    while True:
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        yield (x >> 16) & 0xFF


def take(g, *shape, f=lambda b: b):
    return torch.tensor([f(next(g)) for _ in range(math.prod(shape))], dtype=torch.uint8).view(shape)


def show(name, w):
    flat = w.to(torch.float32).contiguous().flatten()
    some = [float(flat[i]) for i in (0, 1, len(flat) // 2, len(flat) - 1)]
    print(name, tuple(w.shape), hashlib.sha256(flat.numpy().tobytes()).hexdigest()[:32], some)


def scaled_tiles(scales):
    flat = tiles(scales)
    assert torch.equal(untile(flat, *scales.shape), scales)
    return untile(flat, *scales.shape)


g = generator(1)
codes = take(g, 130, 40)
scales = scaled_tiles(take(g, 130, 5, f=lambda b: b % 0x7F)).contiguous().view(F8).float()
values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
codes = torch.stack([values[(codes >> 4).long()], values[(codes & 15).long()]], -1).view(130, 5, 16)
w = (codes * (torch.tensor(0.0137) * scales).unsqueeze(-1)).view(130, 80)
show("nvfp4", w)
show("nvfp4 with pre_quant_scale", w * torch.tensor([(i % 7 + 1) / 8 for i in range(80)], dtype=torch.bfloat16).float())

g = generator(2)
codes = take(g, 130, 160, f=lambda b: b & 0xF7)
scales = scaled_tiles(take(g, 130, 5, f=lambda b: 100 + b % 40)).contiguous().view(torch.float8_e8m0fnu).float()
show("mxfp8", (codes.view(F8).float().view(130, 5, 32) * scales.unsqueeze(-1)).view(130, 160))


def back(codes, scales, n):
    seed = torch.tensor([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], dtype=torch.float64)
    h = seed
    while len(h) < n:
        h = torch.kron(h, seed)
    w = codes.double().view(len(codes), -1, n) @ (h / math.sqrt(n)).T
    return (w.view(len(codes), -1) * scales.double().view(-1, 1)).float()


thousandths = torch.tensor([0.001 * (i + 1) for i in range(5)])
for n, columns in ((256, 512), (16, 48), (64, 64)):
    show(f"int8_tensorwise, rotated in {n}", back(take(generator(n), 5, columns).view(torch.int8), thousandths, n))
codes = take(generator(4), 5, 256).to(torch.int16)
codes = torch.stack([codes & 15, codes >> 4], -1).view(5, 512)
show("convrot_w4a4", back(torch.where(codes >= 8, codes - 16, codes), thousandths, 256))

grid = torch.tensor([[0.01, 0.02], [0.03, 0.04]])
blocks = grid.repeat_interleave(128, 0)[:130].repeat_interleave(128, 1)[:, :200]
show("int8_blockwise", take(generator(5), 130, 200).view(torch.int8).float() * blocks)
codes = take(generator(6), 6, 9, f=lambda b: b & 0xF7)
hundredths = torch.tensor([0.01 * (i + 1) for i in range(6)]).view(6, 1)
show("float8_e4m3fn_rowwise", codes.view(F8).float() * hundredths)
show("int8_tensorwise", codes.view(torch.int8).float() * hundredths[2])
show("float8_e5m2", (codes & 0xFB).view(torch.float8_e5m2).float() * hundredths[1])
