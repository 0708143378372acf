"""Encodes lines of text with the tokenizers library and writes hashes of the ids.

  encode.py LINES.json OUT.json TOKENIZER.json ...

LINES.json is a list of texts. OUT.json has an object for each tokenizer; its key is the file's name, or "real-" and
the folder's name for a file called tokenizer.json. The object has the hash of the ids of the reference's check text,
as the reference computes it, and for each thousand lines one hash of ids and one of the texts decoded from them.
"""
import ast, hashlib, json, os, re, sys

from tokenizers import Tokenizer

BASE = "/usr/share/llama.cpp/llama.cpp-tools/conversion/base.py"
CHUNK = 1000


def name(path):
    stem = os.path.basename(path)[: -len(".json")]
    return "real-" + os.path.basename(os.path.dirname(path)) if stem == "tokenizer" else stem


def main():
    with open(BASE, encoding="utf-8") as f:
        check = ast.literal_eval(re.search(r"chktxt = ('.*')\n", f.read()).group(1))
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = json.load(f)
    out = {}
    for path in sys.argv[3:]:
        tok = Tokenizer.from_file(path)
        tok.no_truncation()
        tok.no_padding()
        chunks = []
        for i in range(0, len(lines), CHUNK):
            ids, texts = hashlib.sha256(), hashlib.sha256()
            for line in lines[i : i + CHUNK]:
                e = tok.encode(line).ids
                ids.update((",".join(map(str, e)) + "\n").encode())
                texts.update((tok.decode(e, skip_special_tokens=False) + "\0").encode())
            chunks.append(ids.hexdigest()[:16] + " " + texts.hexdigest()[:16])
        fingerprint = hashlib.sha256(str(tok.encode(check).ids).encode()).hexdigest()
        out[name(path)] = {"fingerprint": fingerprint, "chunks": chunks}
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


main()
