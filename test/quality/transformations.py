"""Measures what the transformations of transform.py change, for docs/quality.md.

transformations.py BIN WORK [FIELD=A,B...]...

BIN is the folder of our commands; WORK a folder inside ORACLE_ROOT, the chroot of the reference (test/interop/oracle),
with the texts that `bin/quality -texts WORK/texts` cuts. A FIELD chooses what is measured: model, kind, effort, type or
sample (1 to 3, disjoint parts of the text for calibration). Each model is converted to F32, quantized after calibration
with 24 chunks of 512 tokens, and compared over 24 chunks of a text for development: by ggeval with exact activations
and by llama-perplexity with rounded ones. WORK/transformations.jsonl keeps what was measured, and the tables are of all
of it. Two processes at a time, of one thread each.
"""

import json, math, os, re, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNKS = 24
MODELS = {  # folder, text for calibration, text for development
    "gollama": ("../testdata/gollama", "Go-calibration", "Go-development"),
    "qwengo": ("testdata/qwengo", "Go-calibration", "Go-development"),
    "mixpy": ("testdata/mixpy", "Python-calibration", "Python-development"),
}
CHOICES = {
    "model": list(MODELS),
    "kind": ["none", "stream", "values", "scales", "activations"],
    "effort": ["high", "best"],
    "type": ["Q2_K", "Q3_K_M", "Q4_K_M", "Q6_K", "IQ2_XS", "MXFP4"],
    "sample": ["1", "2", "3"],
}
SAMPLE = 240_000  # bytes: more than 24 chunks


class Run:
    def __init__(self, bin, work):
        self.bin, self.work, self.root = bin, work, os.environ["ORACLE_ROOT"]
        self.log = self.path("transformations.jsonl")
        self.rows = [json.loads(l) for l in open(self.log)] if os.path.exists(self.log) else []

    def path(self, name):
        return os.path.join(self.root, self.work.lstrip("/"), name)

    def ours(self, name, *argv):
        return subprocess.run([os.path.join(self.bin, name), *argv], check=True, stdout=subprocess.PIPE).stdout

    def tool(self, *argv):
        return subprocess.run(["chroot", self.root, *argv], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def inside(self, name):
        return os.path.join(self.work, name)

    def perplexity(self, file, base, want, *more):
        for _ in range(5):  # the last lines are lost now and then
            out = self.tool("llama-perplexity", "-m", self.inside(file), "-c", "512", "-t", "1", "-ngl", "0", "--no-warmup",
                            "--no-repack", "--kl-divergence-base", self.inside(base), *more).decode()
            if m := re.search(want, out, re.M):
                return out, m
        sys.exit(f"transformations.py: llama-perplexity gives no figure for {file}")

    def text(self, name, sample):
        """The file of a sample: every third piece of lines."""
        file = f"{name}-{sample}.txt"
        with open(self.path(f"texts/{name}.txt"), encoding="utf-8") as f:
            lines = f.readlines()
        pieces, size = [[]], 0
        for line in lines:
            pieces[-1].append(line)
            size += len(line)
            if size > 4000:
                pieces, size = pieces + [[]], 0
        mine = ["".join(p) for p in pieces[int(sample) - 1 :: 3]]
        with open(self.path(file), "w", encoding="utf-8") as f:
            f.write("".join(mine)[:SAMPLE])
        return file

    def prepare(self, model):
        """The original as F32, and its probabilities."""
        folder, _, judged = MODELS[model]
        if not os.path.exists(self.path(model)):
            shutil.copytree(os.path.join(HERE, folder), self.path(model))
        shutil.copy(self.path(f"texts/{judged}.txt"), self.path(f"{model}-judged.txt"))
        self.convert(model, f"{model}-none")
        self.perplexity(f"{model}-none.gguf", f"{model}.kld", "Final estimate", "-f", self.inside(f"{model}-judged.txt"),
                        "--chunks", str(CHUNKS))

    def convert(self, folder, name):
        self.ours("ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", self.path(name + ".gguf"),
                  self.path(folder))

    def measure(self, model, kind, sample, effort, types):
        calibration = self.text(MODELS[model][1], sample)
        source = f"{model}-{kind}" + (f"-{sample}" if kind in ("scales", "activations") else "")
        if kind != "none" and not os.path.exists(self.path(source + ".gguf")):
            shutil.copy(os.path.join(HERE, "transform.py"), self.path("transform.py"))
            shutil.rmtree(self.path(source), ignore_errors=True)
            self.tool("python3", self.inside("transform.py"), self.inside(model), self.inside(calibration),
                      self.inside(source), kind)
            self.convert(source, source)
        stem = f"{model}-{kind}-{sample}-{effort}"
        self.ours("ggquant", "--force", "--progress", "none", "--threads", "1", "--calibrate", self.path(calibration),
                  "--chunks", str(CHUNKS), "-c", "512", "--effort", effort, "--out-dir", self.path("."), "--name-template",
                  stem + "-{FTYPE}.gguf", self.path(source + ".gguf"), *types)
        files = [f"{stem}-{t}.gguf" for t in types]
        found = json.loads(self.ours("ggeval", "compare", self.path(f"{model}-none.gguf"), *map(self.path, files), "-f",
                                     self.path(f"{model}-judged.txt"), "-c", "512", "--chunks", str(CHUNKS), "--json",
                                     "--progress", "none", "--threads", "1"))["models"]
        for type, file, exact in zip(types, files, found):
            out, m = self.perplexity(file, f"{model}.kld", r"^Mean +KLD: +(\S+)", "--kl-divergence")
            means = [float(x) for x in re.findall(r"(?m)^ *\d+ +\S+ ± +\S+ +\S+ ± +\S+ +(\S+) ± ", out)]
            sums = [0] + [(i + 1) * x for i, x in enumerate(means)]
            row = {"model": model, "kind": kind, "sample": sample, "effort": effort, "type": type,
                   "exact": exact["kl_divergence_by_chunk"], "rounded": [b - a for a, b in zip(sums, sums[1:])],
                   "rounded_mean": float(m[1])}
            self.rows.append(row)
            with open(self.log, "a") as f:
                f.write(json.dumps(row) + "\n")
            os.remove(self.path(file))


def means(row, figure):
    """The mean; that of llama-perplexity has more decimals than its means of chunks."""
    return row["rounded_mean"] if figure == "rounded" else sum(row[figure]) / len(row[figure])


def ratio(new_row, old_row, figure):
    """The ratio of two means, and its standard error over 8 blocks of chunks in pairs."""
    new, old = new_row[figure], old_row[figure]
    mean = sum(new) / sum(old)
    size = len(new) // 8
    blocks = [sum(n - mean * o for n, o in zip(new[i * size : (i + 1) * size], old[i * size : (i + 1) * size])) for i in range(8)]
    error = math.sqrt(sum(b * b for b in blocks) / 7 * 8) / sum(old)
    return f"{means(new_row, figure) / means(old_row, figure):.2f} ± {error:.2f}"


def tables(rows):
    by = {(r["model"], r["effort"], r["type"], r["sample"], r["kind"]): r for r in rows}
    kinds = [k for k in CHOICES["kind"][1:] if any(r["kind"] == k for r in rows)]
    for figure in ("exact", "rounded"):
        print(f"\n{figure} activations\n\n| model | effort | type | sample | none | " + " | ".join(kinds) + " |")
        print("| --- | --- | --- | --- | ---: |" + " ---: |" * len(kinds))
        for model in CHOICES["model"]:
            for effort in CHOICES["effort"]:
                for type in CHOICES["type"]:
                    for sample in CHOICES["sample"]:
                        if not (old := by.get((model, effort, type, sample, "none"))):
                            continue
                        cells = [ratio(new, old, figure) if (new := by.get((model, effort, type, sample, k))) else "-"
                                 for k in kinds]
                        print(f"| {model} | {effort} | {type} | {sample} | {means(old, figure):.6f} | " + " | ".join(cells) + " |")


def main(bin, work, *fields):
    want = {k: list(v) for k, v in CHOICES.items()}
    want["sample"] = ["1"]
    for f in fields:
        name, _, list_ = f.partition("=")
        if name not in want or set(list_.split(",")) - set(CHOICES[name]):
            sys.exit(f"transformations.py: {f}, want one of {', '.join(CHOICES)}, and of {CHOICES.get(name)}")
        want[name] = list_.split(",")
    run = Run(bin, work)
    done = {(r["model"], r["kind"], r["sample"], r["effort"], r["type"]) for r in run.rows}
    jobs = []
    for model in want["model"]:
        for sample in want["sample"]:
            for kind in want["kind"]:
                if kind == "stream" and model == "qwengo":
                    continue  # tied embeddings
                for effort in want["effort"]:
                    if types := [t for t in want["type"] if (model, kind, sample, effort, t) not in done]:
                        jobs.append((model, kind, sample, effort, types))
    for model in dict.fromkeys(j[0] for j in jobs):
        run.prepare(model)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda j: run.measure(*j), jobs))
    tables(run.rows)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
