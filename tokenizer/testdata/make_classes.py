#!/usr/bin/env python3
"""Write classes.json: small tokenizer directories and what the reference's set_vocab of each architecture makes of them.

  make_classes.py ORACLE [PREFIX]     from this directory, where the reference is installed; see README.md

ORACLE is the folder with forkrun.py. With PREFIX only the cases whose name begins with it are run and printed.
"""
import base64, hashlib, json, logging, os, pathlib, shutil, struct, sys, tempfile, traceback

HERE = os.path.dirname(os.path.abspath(__file__))
DEL = object()
CASES = []
LIMIT = 400  # longer arrays are stored as length and sha256


def text(v):
    return v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)


def base_json(base, name):
    with open(os.path.join(HERE, base, name), encoding="utf-8") as f:
        return json.load(f)


def patched(obj, patch):
    obj = dict(obj)
    for k, v in patch.items():
        if v is DEL:
            obj.pop(k, None)
        else:
            obj[k] = v
    return obj


def case(name, cls, hf, base="", cfg=None, tc=None, tj=None, files=None, omit=(), pre=None):
    """cls: our Class; hf: the architecture whose set_vocab runs; base: directory beside this file, or none.
    cfg, tc, tj: dicts patched into config.json, tokenizer_config.json, tokenizer.json; a str replaces the file"""
    out = {}
    for fn, patch in (("config.json", cfg or {}), ("tokenizer_config.json", tc), ("tokenizer.json", tj)):
        if patch is not None:
            have = base and os.path.isfile(os.path.join(HERE, base, fn)) and fn not in omit
            if isinstance(patch, dict):
                patch = patched(base_json(base, fn) if have else {}, patch)
            if fn == "config.json" and isinstance(patch, dict):
                patch["architectures"] = [hf]
                patch.setdefault("model_type", "none") if not have else patch.pop("model_type", None)
            out[fn] = text(patch)
    for fn, v in (files or {}).items():
        out[fn] = {"base64": base64.b64encode(v).decode()} if isinstance(v, bytes) else text(v)
    c = {"name": name, "class": cls, "hf": hf, "base": base, "omit": list(omit), "files": out}
    if pre:
        c["pre"] = pre
    CASES.append(c)


# ---------------------------------------------------------------- SentencePiece models made by hand
def varint(n):
    out = b""
    while True:
        b, n = n & 127, n >> 7
        out += bytes([b | (128 if n else 0)])
        if not n:
            return out


def field(num, wire, payload):
    return varint(num << 3 | wire) + payload


def sub(num, payload):
    return field(num, 2, varint(len(payload)) + payload)


def piece(p, score=0, typ=1):
    return sub(1, sub(1, p.encode()) + field(2, 5, struct.pack("<f", score)) + field(3, 0, varint(typ)))


UNK, BOS, EOS = piece("<unk>", 0, 2), piece("<s>", 0, 3), piece("</s>", 0, 3)
BPE, UNI = sub(2, field(3, 0, b"\2")), sub(2, field(3, 0, b"\1"))
ABC = piece("a", -1) + piece("b", -2.5) + piece("▁c", -3, 4) + piece("[UNUSED_TOKEN_1]", -4) + piece("u", -5, 5)
SMALL = UNK + BOS + EOS + ABC + BPE  # 8 pieces


def added(i, content, special=True, **kw):
    return {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special, **kw}


def decoder(*tokens):
    return {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in tokens}


CHAT = "{{ messages }}"
TC = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "chat_template": CHAT, "tokenizer_class": "LlamaTokenizer",
      "added_tokens_decoder": decoder(added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"))}
TJ = {"added_tokens": [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")], "normalizer": {"type": "NFC"}}
CFG = {"vocab_size": 12, "bos_token_id": 1, "eos_token_id": 2}


def small(name, cls, hf, cfg=None, tc=None, tj=None, data=None, omit=(), **files):
    """small-spm, patched"""
    files = {k.replace("__", "."): v for k, v in files.items()}
    if data:
        files["tokenizer.model"] = data
    case(name, cls, hf, "small-spm", cfg, tc, tj, files, omit)


def directories():
    """the base directory of small()"""
    d = os.path.join(HERE, "small-spm")
    os.makedirs(d, exist_ok=True)
    for fn, v in (("config.json", CFG), ("tokenizer_config.json", TC), ("tokenizer.json", TJ), ("tokenizer.model", SMALL)):
        with open(os.path.join(d, fn), "wb") as f:
            f.write(v if isinstance(v, bytes) else (json.dumps(v, indent=1, ensure_ascii=False) + "\n").encode())


# ---------------------------------------------------------------- the cases
def sentencepiece():
    for cls, hf in (("spm", "BaichuanForCausalLM"), ("gemma", "GemmaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"), ("gemma3", "Gemma3ForCausalLM"),
                    ("phi3", "Phi3ForCausalLM"), ("nemotron", "NemotronForCausalLM"), ("internlm2", "InternLM2ForCausalLM"),
                    ("internlm3", "InternLM3ForCausalLM"), ("minicpm", "MiniCPMForCausalLM")):
        if cls == "internlm2":
            case(cls + "-tiny", cls, hf, "tiny-spm", cfg={"vocab_size": 1000})
            case(cls + "-tiny-gemma", cls, hf, "tiny-spm-gemma", cfg={"vocab_size": 1200})
        else:
            case(cls + "-tiny", cls, hf, "tiny-spm")
            case(cls + "-tiny-gemma", cls, hf, "tiny-spm-gemma")
        cfg = {"vocab_size": 8} if cls == "internlm2" else None
        small(cls + "-small", cls, hf, cfg)
        small(cls + "-model-only", cls, hf, cfg, omit=("tokenizer.json", "tokenizer_config.json"))
        small(cls + "-no-vocab-size", cls, hf, {"vocab_size": DEL})
        small(cls + "-short", cls, hf, {"vocab_size": 6})
        small(cls + "-added", cls, hf, cfg, added_tokens__json={"x": 5, "[UNUSED_TOKEN_1]": 6, "far": 100, "y▁z": 7})
        small(cls + "-decoder", cls, hf, cfg, {"added_tokens_decoder": decoder(added(3, "A"), added(4, "B▁", False), added(5, "<pad>", False), added(6, "<|im_end|>", False), added(7, "<|x|>", False))})
        small(cls + "-decoder-beyond", cls, hf, cfg, {"added_tokens_decoder": decoder(added(3, "A"), added(12, "far"))})
        small(cls + "-decoder-im-end", cls, hf, cfg, {"added_tokens_decoder": decoder(added(4, "<|im_end|>"), added(5, "bos"), added(6, "eot"), added(7, "pad"))})
        small(cls + "-json-added", cls, hf, cfg, tj={"added_tokens": [added(1, "<s>"), added(3, "A"), added(4, "B▁", False), added(5, "<|im_end|>", False), added(6, "<|x|>", False)]})
        small(cls + "-json-beyond", cls, hf, cfg, tj={"added_tokens": [added(12, "far")]})
        small(cls + "-prefix-space", cls, hf, cfg, {"add_prefix_space": True})
        small(cls + "-prefix-space-null", cls, hf, cfg, {"add_prefix_space": None})
        small(cls + "-ids", cls, hf, patched(cfg or {}, {"pad_token_id": 3, "unk_token_id": 4, "eos_token_id": 5, "eot_token_id": 3, "sep_token_id": 200, "prefix_token_id": 1}))
        small(cls + "-eot-token", cls, hf, cfg, {"eot_token": "</s>", "mask_token": "<unk>"})
        small(cls + "-no-eos", cls, hf, patched(cfg or {}, {"eos_token_id": DEL}), {"eos_token": DEL})
        small(cls + "-template", cls, hf, cfg, tj={"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<unk>"}}], "pair": []}})
        small(cls + "-no-class", cls, hf, cfg, {"tokenizer_class": DEL})
        small(cls + "-dummy-prefix-off", cls, hf, cfg, data=SMALL + sub(3, field(3, 0, b"\0") + field(4, 0, b"\0")))
        small(cls + "-null-piece", cls, hf, {"vocab_size": 9}, data=SMALL + piece("\0"))
    small("internlm2-vocab-beyond", "internlm2", "InternLM2ForCausalLM", {"vocab_size": 9})
    small("internlm2-added-then-decoder", "internlm2", "InternLM2ForCausalLM", {"vocab_size": 8}, {"added_tokens_decoder": decoder(added(8, "new"), added(9, "<|im_end|>"))}, added_tokens__json={"one": 3, "two": 3})
    small("phi3-added-id-forms", "phi3", "Phi3ForCausalLM", tj={"added_tokens": [{**added(3, "A"), "id": True}, added(5, "B")]})


# ---------------------------------------------------------------- running
def want(path):
    """the pairs of a file as [key, type, value]; arrays of more than LIMIT elements as {"n": …, "sha256": …} over their bytes in the file"""
    from gguf import GGUFReader
    out = []
    for name, f in GGUFReader(path).fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        typ = "/".join(t.name for t in f.types)
        v = None
        if typ.startswith("ARRAY"):
            raw = [bytes(f.parts[i]) for i in f.data]
            if len(raw) > LIMIT:
                body = b"".join(struct.pack("<Q", len(r)) + r if typ == "ARRAY/STRING" else r for r in raw)
                v = {"n": len(raw), "sha256": hashlib.sha256(body).hexdigest()}
            elif typ == "ARRAY/STRING":
                v = [r.decode() for r in raw]
        if v is None:
            v = f.contents()
        out.append([name, typ, v])
    return out


def run(c, tmp):
    """the pairs that set_vocab writes; c["vocab_size"] and c["hparams"] become what the converter works with"""
    import conversion, gguf
    d = os.path.join(tmp, "m")
    if c["base"]:
        shutil.copytree(os.path.join(HERE, c["base"]), d)
    else:
        os.mkdir(d)
    for fn in c["omit"]:
        os.remove(os.path.join(d, fn))
    for fn, v in c["files"].items():
        os.makedirs(os.path.dirname(os.path.join(d, fn)), exist_ok=True)
        with open(os.path.join(d, fn), "wb") as f:
            f.write(v.encode() if isinstance(v, str) else base64.b64decode(v["base64"]))
    cls = conversion.get_model_class(c["hf"])
    m = cls.__new__(cls)
    m.dir_model = pathlib.Path(d)
    with open(os.path.join(d, "config.json"), encoding="utf-8") as f:
        h = json.load(f)
    if "text_config" in h:
        h = {**h, **h["text_config"]}
    c["vocab_size"] = h.get("vocab_size", 0)
    m.hparams = h
    m.hf_arch = m.origin_hf_arch = c["hf"]
    m.target_model_dir = m.remote_hf_model_id = None
    m._tokenizer_is_xlmroberta = "xlm" in c["name"]
    m.gguf_writer = gguf.GGUFWriter(None, gguf.MODEL_ARCH_NAMES[cls.model_arch])
    if c.get("pre"):
        m.get_vocab_base_pre = lambda tokenizer: c["pre"]
    m.set_vocab()
    out = os.path.join(tmp, "m.gguf")
    m.gguf_writer.add_uint32("end", 1)
    m.gguf_writer.write_header_to_file(path=out)
    m.gguf_writer.write_kv_data_to_file()
    m.gguf_writer.close()
    kvs = want(out)
    assert kvs.pop()[0] == "end"
    return kvs


def main():
    sys.path.insert(0, sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else None
    import forkrun
    forkrun.preload()
    logging.disable(logging.CRITICAL)
    directories()
    for part in PARTS:
        part()
    names = [c["name"] for c in CASES]
    assert len(set(names)) == len(names), sorted(n for n in set(names) if names.count(n) > 1)
    for c in CASES:
        if only and not c["name"].startswith(only):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            try:
                c["kvs"] = run(c, tmp)
            except (Exception, SystemExit) as e:
                c["error"] = (type(e).__name__ + ": " + str(e)).replace(tmp, "")[:200]
        if only:
            print(json.dumps(c, ensure_ascii=False)[-3000:])
    if not only:
        with open(os.path.join(HERE, "classes.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in CASES) + "\n]\n")
    print(len(CASES), "cases,", sum("error" in c for c in CASES), "refused")


PARTS = (sentencepiece,)
if __name__ == "__main__":
    main()
