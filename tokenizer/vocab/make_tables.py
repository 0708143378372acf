"""Writes chars.txt: what the installed llama.cpp knows about characters, asked of its library.

Run in the chroot of test/interop/oracle: python3 make_tables.py > chars.txt
"""
import ctypes
import string

LIB = "/usr/lib/x86_64-linux-gnu/libllama.so.0"
NAMES = {0x02: "N", 0x04: "L", 0x08: "Z", 0x10: "M", 0x20: "P", 0x40: "S", 0x80: "C"}
SPACE, LAST = 0x100, 0x10FFFF

lib = ctypes.CDLL(LIB)
flags = lib._Z26unicode_cpt_flags_from_cptj
flags.argtypes, flags.restype = [ctypes.c_uint32], ctypes.c_uint16
lower = lib._Z15unicode_tolowerj
lower.argtypes, lower.restype = [ctypes.c_uint32], ctypes.c_uint32
nfd = lib._Z26unicode_cpts_normalize_nfdRKSt6vectorIjSaIjEE
nfd.argtypes, nfd.restype = [ctypes.c_void_p, ctypes.c_void_p], None


class Vector(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("room", ctypes.c_void_p)]


def bases():
    n = LAST + 1
    buf = (ctypes.c_uint32 * n)(*range(n))
    at = ctypes.addressof(buf)
    arg, out = Vector(at, at + 4 * n, at + 4 * n), Vector()
    nfd(ctypes.addressof(out), ctypes.addressof(arg))
    return list((ctypes.c_uint32 * n).from_address(out.begin))


def base36(n):
    digits, s = string.digits + string.ascii_lowercase, ""
    while True:
        n, d = divmod(n, 36)
        s = digits[d] + s
        if n == 0:
            return s


def ranges(chars):
    out, next_, i = [], 0, 0
    while i < len(chars):
        j = i
        while j + 1 < len(chars) and chars[j + 1] == chars[j] + 1:
            j += 1
        out.append(base36(chars[i] - next_) + ("-" + base36(j - i) if j > i else ""))
        next_, i = chars[j] + 1, j + 1
    return " ".join(out)


def runs(name, pairs):
    """Lines of a map: name, first, count, distance of the characters, first target, distance of the targets."""
    i = 0
    while i < len(pairs):
        step = to = 0
        j = i + 1
        if j < len(pairs):
            step, to = pairs[j][0] - pairs[i][0], pairs[j][1] - pairs[i][1]
        if step > 2:
            step = to = 0
        else:
            while j < len(pairs) and pairs[j][0] - pairs[j - 1][0] == step and pairs[j][1] - pairs[j - 1][1] == to:
                j += 1
        print(f"{name} {pairs[i][0]:x} {j - i} {step} {pairs[i][1]:x} {to}")
        i = j


every = [flags(c) for c in range(LAST + 1)]
for bit, name in NAMES.items():
    print(f"{name}\t{ranges([c for c, f in enumerate(every) if f & bit])}")
space = [c for c, f in enumerate(every) if f & SPACE]
print(f"space\t{ranges(space)}")
runs("lower", [(c, lower(c)) for c in range(LAST + 1) if lower(c) != c])
runs("base", [(c, b) for c, b in enumerate(bases()) if b != c])
