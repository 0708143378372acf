#!/usr/bin/env python3
"""Collect shapes of image models and what llama-quantize b3962, patched for them, makes of each: image_golden.json.gz.

  image_golden.py RESULTS.json FOLDER > image_golden.json.gz

RESULTS.json has "quantize": {case: {recipe: "SIZE SHA256 TYPE:TENSORS ..." or "error: ..."}}; a recipe with +5d is about the
file with its tensors of 5 dimensions. FOLDER/CASE holds the inputs as GGUF: one file, and one named *-fixed.gguf where the
model has tensors of 5 dimensions. The JSON:

  inputs   case (with +5d of the second file) -> {"keys": [[key, text | number | [numbers]], ...], "tensors": [[name, type,
           ne0, ne1, ...], ...]}
  results  case -> recipe -> "SIZE TYPE:TENSORS ..." or "error: ..."
"""
import glob, gzip, json, os, struct, sys

SIZE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def parse(path):
    f = open(path, "rb")
    num = lambda c: struct.unpack("<" + c, f.read(struct.calcsize(c)))[0]
    text = lambda: f.read(num("Q")).decode()

    def value(t):
        if t == 8:
            return text()
        if t == 9:
            t, n = num("I"), num("Q")
            return [value(t) for _ in range(n)]
        return int.from_bytes(f.read(SIZE[t]), "little")

    assert f.read(4) == b"GGUF" and num("I") == 3
    tensors, keys = num("Q"), num("Q")
    k = []
    for _ in range(keys):
        name = text()
        k.append([name, value(num("I"))])
    t = []
    for _ in range(tensors):
        name = text()
        ne = [num("Q") for _ in range(num("I"))]
        t.append([name, num("I")] + ne)
        num("Q")
    return {"keys": k, "tensors": t}


def main():
    inputs, results = {}, {}
    for case, runs in json.load(open(sys.argv[1]))["quantize"].items():
        for path in glob.glob(os.path.join(sys.argv[2], case, "*.gguf")):
            fixed = path.endswith("-fixed.gguf")
            inputs[case + "+5d" * fixed] = parse(path)
        for recipe, text in runs.items():
            name, five, _ = recipe.partition("+5d")
            if not text.startswith("error"):
                text = " ".join(text.split()[:1] + text.split()[2:])
            results.setdefault(case + five, {})[name] = text
    data = json.dumps({"inputs": inputs, "results": results}, sort_keys=True, separators=(",", ":")).encode()
    sys.stdout.buffer.write(gzip.compress(data, 9, mtime=0))


main()
