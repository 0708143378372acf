#!/usr/bin/env python3
"""Sums of the files that the field's converter makes of the checkpoints of TestImageGolden. See README.md.

  golden.py CONVERT.py FIX_5D.py CHECKPOINTS OUT.tsv
"""
import hashlib, os, shutil, subprocess, sys

# numpy 2.4 makes no int of an array of one, which the second script does with numbers of the reader of gguf
RUN = """
import runpy, sys, gguf
get = gguf.GGUFReader.get_field
def one(self, key):
    f = get(self, key)
    if f and f.types[0] not in (gguf.GGUFValueType.STRING, gguf.GGUFValueType.ARRAY):
        f.parts[f.data[-1]] = f.parts[f.data[-1]][0]
    return f
gguf.GGUFReader.get_field = one
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
WITHOUT = ("ideogram4", "minimax_h3", "mochi")  # architectures that the converter does not know

convert, fix, checkpoints, out = map(os.path.abspath, sys.argv[1:])
work = "/tmp/image-golden"
with open(out, "w") as f:
    for name in sorted(os.listdir(checkpoints)):
        case = name.removesuffix(".safetensors")
        if case.split("-")[0] in WITHOUT:
            continue
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        made = "out.gguf"
        subprocess.run([sys.executable, "-c", RUN, convert, "--src", os.path.join(checkpoints, name), "--dst", made],
                       cwd=work, check=True, stderr=subprocess.DEVNULL)
        if any(x.startswith("fix_5d") for x in os.listdir(work)):
            subprocess.run([sys.executable, "-c", RUN, fix, "--src", made, "--dst", "fixed.gguf"], cwd=work, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            made = "fixed.gguf"
        f.write(case + "\t" + hashlib.sha256(open(os.path.join(work, made), "rb").read()).hexdigest() + "\n")
