#!/usr/bin/env python3
"""Write classes.json: small tokenizer directories and what the reference's set_vocab of each architecture makes of them.

  make_classes.py ORACLE [PREFIX]     from this directory, where the reference is installed; see README.md

ORACLE is the folder with forkrun.py. With PREFIX only the cases whose name begins with it are run and printed.
"""
import base64, hashlib, json, logging, os, pathlib, shutil, struct, sys, tempfile, zlib

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
    """cls: our Class; hf: the architecture whose set_vocab runs; base: directory next to this file, or none.
    cfg, tc, tj: dicts patched into config.json, tokenizer_config.json, tokenizer.json; a str replaces the file"""
    out = {}
    for fn, patch in (("config.json", cfg or {}), ("tokenizer_config.json", tc), ("tokenizer.json", tj)):
        if patch is not None:
            have = base and os.path.isfile(os.path.join(HERE, base, fn)) and fn not in omit
            if isinstance(patch, dict):
                patch = patched(base_json(base, fn) if have else {}, patch)
            if fn == "config.json" and isinstance(patch, dict):
                patch["architectures"] = [hf]
                if "model_type" not in (cfg or {}):
                    patch.pop("model_type", None)
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


# Precompiled by SentencePiece from five rules: two full-width letters, a ligature, a digit in a circle, A to a blank.
CHARSMAP = zlib.decompress(base64.b85decode(
    'c$_8E1<V&j6aet!8#2cxr7-Cd=?3W#B&9)0KpF|@Zcw_BZazTjBPFFn6ci<;o5AQ#so#Ix_Ph6Xdw09r?S<GOglr+i{U}7nzzMUW!n_Ych?2*c'
    '2Net9L;3u~Aw;KCr^uFpafmOEM?w<tF^NzbK4I(gsE|ZV%BLhJ8IB1lNKGozl7{r8BLkn2k<ZCYCbE)+?C-A}a*~7G<RUM5$WJ~B@CAh^ND&I-'
    'NuekuD9)FZq%@@{!&j7}EEOov*Hol3m8eP;s#A@c)ZiOxQHR>pqb}c4pN2HxI~vi1#x$cTEoe?FTGE>DX-gY^pdB4(PbWIkh0b)ND?R8=FM864'
    '-t?m{1L)77$j9>|gBik43}YxG7|tk0GKSHNV=NOG&(BO`GLx9f6s9wcnap4|vzW^q<};54M6-y6Ean%MvV`R<V+Ap+VkK)>&9AIwJ?q%W1~#*a'
    'E&Rqdwz7lm>|!T-*v;?k<q!6;pFjDF103XU{^cJIbBLoH;W)=Q!GE0MBxg9yInHu{^IYO0SGdf*g0aF?@jBPI5m~<-E8G%qa);ZII_~m-`#j<y'
    'Pk78Tp7Mg{{Lf2X^NP2;36b8*tp`elmaW4(KBbE+'))
NORM = sub(3, sub(2, CHARSMAP))
UNIPIECES = [("a", -1.5), ("▁b", -2), ("▁", -2.25), ("c", -3), ("ab", -4), ("▁the", -5)]
T5 = piece("<pad>", 0, 3) + piece("</s>", 0, 3) + UNK + b"".join(piece(p, s) for p, s in UNIPIECES) + UNI + NORM  # 9 pieces
XLMR = UNK + BOS + EOS + b"".join(piece(p, s) for p, s in UNIPIECES) + piece("last", -9) + UNI + NORM  # 10 pieces
CHAT = "{{ messages }}"
TC = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True, "chat_template": CHAT, "tokenizer_class": "LlamaTokenizer",
      "added_tokens_decoder": decoder(added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"))}
TJ = {"added_tokens": [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")], "normalizer": {"type": "NFC"}}
CFG = {"vocab_size": 12, "bos_token_id": 1, "eos_token_id": 2}


def small(name, cls, hf, cfg=None, tc=None, tj=None, data=None, omit=(), base="small-spm", model="tokenizer.model", pre=None, **files):
    """a small directory, patched"""
    files = {k.replace("__", "."): v for k, v in files.items()}
    if data is not None:
        files[model] = data
    case(name, cls, hf, base, cfg, tc, tj, files, omit, pre)


def template(*els):
    return [{"Sequence": {"id": e, "type_id": 0}} if e in ("A", "B") else {"SpecialToken": {"id": e, "type_id": 0}} for e in els]


def xlmr_json():
    vocab = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + [[t, float(s)] for t, s in UNIPIECES] + [["last", -9.0], ["<mask>", 0.0]]
    meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    toks = [added(0, "<s>"), added(1, "<pad>"), added(2, "</s>"), added(3, "<unk>"), added(len(vocab) - 1, "<mask>", lstrip=True)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": toks,
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(CHARSMAP).decode()},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, meta]},
            "post_processor": {"type": "TemplateProcessing", "single": template("<s>", "A", "</s>"), "pair": template("<s>", "A", "</s>", "</s>", "B", "</s>"),
                               "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("<s>", 0), ("</s>", 2))}},
            "decoder": meta, "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab}}


PLAMO = [["<unk>", 0, "UNKNOWN"], ["<s>", 0.0, "CONTROL"], ["</s>", -1.5, "CONTROL"], ["<pad>", 1e-3, "CONTROL"], ["<0x41>", 0, "BYTE"], ["a", -2.25, "NORMAL", 1, 2, 3],
         ["<|plamo:op|>", 0, "NORMAL"], ["<|plamo:tag|>", 0, "NORMAL"], ["<|plamo:begin_", 0, "CONTROL"], ["é\n", -3, "other"], ["b", True], ["<|plamo:x|>", 0], [":plamo|>", -1, "BYTE"]]
PLAMO_TC = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "sep_token": None, "add_bos_token": True, "add_eos_token": False, "chat_template": "T"}


def plamo_text(lines):
    return "".join(json.dumps(l, ensure_ascii=i % 2 == 0) + "\n" for i, l in enumerate(lines))


ALPHABET = ["a", "b", "c", "Ġ", "!", "Ã", "©", "ab", "Ġa", "abc", "Ġab", "Ċ", "<0x41>", "d"]
ADDED = ["<unk>", "[gMASK]", "<|user|>", "<|observation|>", "<|assistant|>", "<|startoftext|>", "<|endoftext|>", "<|endofassistant|>", "  ", "▁x"]


def bpe_json():
    """14 tokens of byte-level BPE and added ones at 14 to 23"""
    n = len(ALPHABET)
    toks = [added(n + i, t, special=t[0] in "<[", normalized=t == "▁x") for i, t in enumerate(ADDED)]
    bl = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": toks, "normalizer": None, "pre_tokenizer": bl, "post_processor": bl, "decoder": bl,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": False, "vocab": {t: i for i, t in enumerate(ALPHABET)}, "merges": [["a", "b"], ["Ġ", "a"], ["ab", "c"], ["Ġ", "ab"]]}}


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s", "##", "a", "##the", "é", "##é", "[unused0]", "#", "!", "日"]


def bert_json():
    ids = {w: i for i, w in enumerate(BERT)}
    toks = [added(i, t) for i, t in enumerate(BERT[:5])]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": toks,
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": template("[CLS]", "A", "[SEP]"), "pair": template("[CLS]", "A", "[SEP]", "B", "[SEP]"),
                               "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in ("[CLS]", "[SEP]")}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids}}


def directories():
    """the base directories of small()"""
    t5 = [added(0, "<pad>"), added(1, "</s>"), added(2, "<unk>"), added(9, "<extra_id_1>"), added(10, "<extra_id_0>")]
    xlmr = xlmr_json()
    for name, files in {
        "small-spm": {"config.json": CFG, "tokenizer_config.json": TC, "tokenizer.json": TJ, "tokenizer.model": SMALL},
        "small-bpe": {"config.json": {"vocab_size": 28, "eos_token_id": 20}, "tokenizer.json": bpe_json(),
                      "tokenizer_config.json": {"added_tokens_decoder": decoder(*bpe_json()["added_tokens"]), "eos_token": "<|endoftext|>", "unk_token": "<unk>",
                                                "clean_up_tokenization_spaces": False, "chat_template": "C", "tokenizer_class": "PreTrainedTokenizerFast"}},
        "small-bert": {"config.json": {"vocab_size": 20, "type_vocab_size": 2, "pad_token_id": 0}, "tokenizer.json": bert_json(), "vocab.txt": "".join(w + "\n" for w in BERT).encode(),
                       "tokenizer_config.json": {"added_tokens_decoder": decoder(*bert_json()["added_tokens"]), "cls_token": "[CLS]", "do_lower_case": True, "mask_token": "[MASK]", "model_max_length": 512,
                                                 "pad_token": "[PAD]", "sep_token": "[SEP]", "strip_accents": None, "tokenize_chinese_chars": True, "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]"}},
        "small-plamo": {"config.json": {"vocab_size": 15, "bos_token_id": 9}, "tokenizer_config.json": {**PLAMO_TC, "tokenizer_class": "Plamo2Tokenizer"},
                        "tokenizer.jsonl": plamo_text(PLAMO).encode()},
        "small-t5": {"config.json": {"vocab_size": 12, "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0}, "spiece.model": T5,
                     "tokenizer.json": {"added_tokens": t5, "post_processor": {"type": "TemplateProcessing", "single": template("A", "</s>"), "pair": template("A", "</s>", "B", "</s>")}},
                     "tokenizer_config.json": {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "tokenizer_class": "T5Tokenizer", "added_tokens_decoder": decoder(*t5)}},
        "small-xlmr": {"config.json": {"vocab_size": 12, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "type_vocab_size": 1},
                       "sentencepiece.bpe.model": XLMR, "tokenizer.json": xlmr,
                       "tokenizer_config.json": {"added_tokens_decoder": decoder(*xlmr["added_tokens"]), "bos_token": "<s>", "clean_up_tokenization_spaces": True,
                                                 "cls_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>", "model_max_length": 512, "pad_token": "<pad>",
                                                 "sep_token": "</s>", "tokenizer_class": "XLMRobertaTokenizer", "unk_token": "<unk>"}},
    }.items():
        d = os.path.join(HERE, name)
        os.makedirs(d, exist_ok=True)
        for fn, v in files.items():
            with open(os.path.join(d, fn), "wb") as f:
                f.write(v if isinstance(v, bytes) else (json.dumps(v, indent=1, ensure_ascii=False) + "\n").encode())


# ---------------------------------------------------------------- the cases
def sentencepiece():
    for cls, hf in (("spm", "BaichuanForCausalLM"), ("gemma", "GemmaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"), ("gemma3", "Gemma3ForCausalLM"),
                    ("phi3", "Phi3ForCausalLM"), ("nemotron", "NemotronForCausalLM"), ("internlm2", "InternLM2ForCausalLM"),
                    ("internlm3", "InternLM3ForCausalLM"), ("minicpm", "MiniCPMForCausalLM"), ("ernie", "Ernie4_5ForCausalLM")):
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


def more_sentencepiece():
    for cls, hf in (("plamo", "PlamoForCausalLM"), ("grok", "GrokForCausalLM"), ("arctic", "ArcticForCausalLM")):
        case(cls + "-tiny", cls, hf, "tiny-spm")
        small(cls + "-small", cls, hf)
        small(cls + "-short", cls, hf, {"vocab_size": 6})
        small(cls + "-decoder", cls, hf, tc={"added_tokens_decoder": decoder(added(0, "<unk>"), added(3, "A"), added(4, "B▁", False), added(100, "far"))})
        small(cls + "-no-unk", cls, hf, tc={"unk_token": DEL})
        small(cls + "-no-model", cls, hf, omit=("tokenizer.model", "tokenizer.json"))
        small(cls + "-unk-object", cls, hf, tc={"unk_token": {"content": "<unk>"}})


def unigram():
    for cls, hf in (("t5", "T5ForConditionalGeneration"), ("t5", "T5EncoderModel"), ("t5", "UMT5ForConditionalGeneration")):
        n, on = {"T5E": "t5-encoder", "UMT": "umt5"}.get(hf[:3], "t5"), dict(base="small-t5", model="spiece.model")
        small(n + "-small", cls, hf, **on)
        if n != "t5":
            continue
        small(n + "-added", cls, hf, added_tokens__json={"x": 9, "c": 6, "far": 100, "▁y": 11}, **on)
        small(n + "-no-vocab-size", cls, hf, {"vocab_size": DEL}, **on)
        small(n + "-short", cls, hf, {"vocab_size": 8}, **on)
        small(n + "-model-only", cls, hf, omit=("tokenizer.json", "tokenizer_config.json"), **on)
        small(n + "-settings", cls, hf, data=T5 + sub(3, field(3, 0, b"\0") + field(4, 0, b"\0")), **on)
        small(n + "-no-charsmap", cls, hf, data=T5 + sub(3, sub(2, b"")), **on)
        small(n + "-tokenizer-model", cls, hf, tokenizer__model=T5.replace(b"the", b"two"), **on)
        small(n + "-bpe", cls, hf, tokenizer__model=T5 + BPE, **on)
        small(n + "-bpe-spiece", cls, hf, data=T5 + BPE, **on)
        small(n + "-word", cls, hf, data=T5 + sub(2, field(3, 0, b"\3")), **on)
        small(n + "-none", cls, hf, omit=("spiece.model",), **on)
    cls, hf, on = "xlm-roberta", "XLMRobertaModel", dict(base="small-xlmr", model="sentencepiece.bpe.model")
    small("xlmr-small", cls, hf, **on)
    small("xlmr-vocab-larger", cls, hf, {"vocab_size": 14, "type_vocab_size": 2}, **on)
    small("xlmr-vocab-equal", cls, hf, {"vocab_size": 10}, **on)
    small("xlmr-vocab-smaller", cls, hf, {"vocab_size": 4}, **on)
    small("xlmr-no-vocab-size", cls, hf, {"vocab_size": DEL, "type_vocab_size": DEL}, **on)
    small("xlmr-settings", cls, hf, data=XLMR + sub(3, field(3, 0, b"\0") + field(4, 0, b"\0") + sub(2, b"")), **on)
    small("xlmr-bpe", cls, hf, data=XLMR + BPE, **on)
    small("xlmr-tiny-model", cls, hf, {"vocab_size": 0}, data=UNK + piece("a", -1) + UNI, **on)
    small("xlmr-model-only", cls, hf, omit=("tokenizer.json", "tokenizer_config.json"), **on)
    small("xlmr-eos-beyond", cls, hf, {"eos_token_id": 12, "mask_token_id": 11}, omit=("tokenizer_config.json",), **on)


RWKV = "".join(f"{i + 1} {chr(i)!r} 1\n" if i < 128 else f"{i + 1} {bytes([i])!r} 1\n" for i in range(256))


def rwkv():
    fn = "rwkv_vocab_v20230424__txt"
    forms = ["'\\n\\n' 2", "' the' 4", "\"'s\" 2", "'\"a' 2", "'\\'\"' 2", "'é' 2", "'日本' 6", "'\\u00e9\\U0001f680\\x7f\\0\\12\\0123' 11", "b'\\xff\\x41\\'\\\\' 4",
             "u'x' 1", "B'\\x00\\r\\t\\v' 4", "'\\q\\%' 4", "'\\a\\b\\f' 3", "'\u00a0\u2028' 5", "  'sp  ace'  7", "'' 0", "'\\400' 2", "'x' 0_1", "'x' +1"]
    ok = "".join(f"{300 + i} {f}\n" for i, f in enumerate(forms))
    for name, cls, hf in (("rwkv", "rwkv", "Rwkv6ForCausalLM"), ("rwkv7", "rwkv7", "Rwkv7ForCausalLM")):
        def one(n, vocab, cfg=None, tc=None, **kw):
            case(f"{name}-{n}", cls, hf, cfg=patched({"vocab_size": 290, "bos_token_id": 3, "pad_token_id": 5}, cfg or {}), tc={"tokenizer_class": "RwkvTokenizer", **(tc or {})},
                 files={**({"rwkv_vocab_v20230424.txt": vocab} if vocab is not None else {}), **kw})
        one("world", RWKV + ok)
        if name == "rwkv7":
            continue
        one("no-newline", "1 'a' 1\n2 'b' 1", {"vocab_size": 3})
        one("crlf", "1 'a' 1\r\n2 'b' 1\r\n", {"vocab_size": 5})
        one("template", "1 'a' 1\n", tc={"chat_template": "x"})
        one("template-jinja", "1 'a' 1\n", **{"chat_template.jinja": "j"})
        one("template-null", "1 'a' 1\n", tc={"chat_template": None})
        one("flags", "1 'a' 1\n", tc={"add_bos_token": True, "add_eos_token": False, "eot_token": "a"})
        one("eot-id", "1 'a' 1\n", {"eot_token_id": 7, "eos_token_id": 9})
        one("no-vocab-size", "1 'a' 1\n", {"vocab_size": DEL})
        one("full", "1 'a' 1\n", {"vocab_size": 2})
        one("too-many", "1 'a' 1\n2 'b' 1\n", {"vocab_size": 2})
        one("none", None)
        for i, bad in enumerate(["1 'a' 2", "1 'a'", "", "1 a 1", "1 'a\" 1", "1 'a'b' 1", "1 '\\' 1", "1 '\\x4' 1", "1 b'é' 2", "1 '\\ud800' 3", "1 b'\\xfg' 1", "1 'a' x", "1 5 1",
                                 "1 'a\\", "1 '\\u00e' 2", "1 '\\U00110000' 4", "1 '' 0 0"]):
            one(f"bad-{i}", f"0 'x' 1\n{bad}\n2 'y' 1\n")


def plamo():
    lines, tc, text = PLAMO, PLAMO_TC, plamo_text
    for n, hf in ((2, "Plamo2ForCausalLM"), (3, "Plamo3ForCausalLM")):
        def one(name, ls=lines, cfg=None, patch=None, raw=None, **kw):
            data = {} if ls in (None, lines) and raw is None else {"tokenizer.jsonl": raw if raw is not None else text(ls)}
            case(f"plamo{n}-{name}", f"plamo{n}", hf, "small-plamo", cfg or {}, {"tokenizer_class": f"Plamo{n}Tokenizer", **(patch or {})}, files={**data, **kw}, omit=("tokenizer.jsonl",) if ls is None else ())
        one("all")
        one("exact", cfg={"vocab_size": 13})
        one("short", cfg={"vocab_size": 3})
        one("other-class", patch={"tokenizer_class": f"Plamo{5 - n}Tokenizer"})
        one("unknown-class", patch={"tokenizer_class": "LlamaTokenizer"})
        one("no-class", patch={"tokenizer_class": DEL})
        one("sep", patch={"sep_token": "a", "bos_token": DEL, "add_bos_token": None, "add_eos_token": 1})
        one("token-missing", patch={"pad_token": "nowhere"})
        one("token-object", patch={"pad_token": {"content": "a"}})
        one("template-jinja", **{"chat_template.jinja": "J"})
        one("template-none", patch={"chat_template": DEL})
        one("template-list", patch={"chat_template": [{"name": "default", "template": "D"}, {"name": "x", "template": "X"}]})
        one("no-eot", [l for l in lines if "plamo:" not in l[0]])
        one("blank-lines", raw="\n  \n" + text(lines).replace("\n", "\r\n") + "\n")
        one("no-newline-at-end", raw=text(lines).rstrip("\n"))
        one("none", None)
        for i, bad in enumerate(['["a"]', '{"a": 1}', "[1, 2]", '["a", null]', '["a", "x"]', '["a", 1e39]', '["\\ud800", 1]', '["a", 1', '[]', '5']):
            one(f"bad-{i}", raw=text(lines) + bad + "\n")
        one("floats", [*lines, ["f1", float("inf")], ["f2", 1e400], ["f3", 123456789], ["f4", 0.1]], {"vocab_size": 17})


def bpe():
    def one(name, cls, hf, cfg=None, tc=None, tj=None, pre="gpt-2", **kw):
        small(name, cls, hf, cfg, tc, tj, base="small-bpe", pre=pre, **kw)
    both = {"tokenizer__model": SMALL}
    for cls, hf in (("gpt2", "BloomForCausalLM"), ("glm", "Glm4MoeForCausalLM"), ("glm4", "Glm4ForCausalLM"), ("solar-open", "SolarOpenForCausalLM"), ("dots3", "Dots3NoteForCausalLM"),
                    ("chatglm", "ChatGLMModel"), ("roberta", "RobertaModel"), ("modern-bert", "ModernBertModel"), ("eurobert", "EuroBertModel"), ("mamba", "MambaForCausalLM"),
                    ("mamba2", "Mamba2ForCausalLM"), ("nemotron-h", "NemotronHForCausalLM"), ("falcon-h1", "FalconH1ForCausalLM"), ("refact", "GPTRefactForCausalLM"),
                    ("minimax", "MiniMaxM1ForCausalLM"), ("laguna", "LagunaForCausalLM"), ("hunyuan", "HunYuanDenseV1ForCausalLM"), ("deepseek2", "DeepseekV2ForCausalLM"),
                    ("kimi-linear", "KimiLinearForCausalLM"), ("deepseek", "DeepseekForCausalLM"), ("gemma3", "Gemma3ForCausalLM"), ("phi3", "Phi3ForCausalLM"), ("grok", "GrokForCausalLM")):
        n, c = cls + "-bpe-", {"deepseek": "spm-or-gpt2"}.get(cls, cls)
        tc = {"tokenizer_class": "GPT2Tokenizer"} if cls == "phi3" else None
        one(n + "small", c, hf, tc=tc)
        if tc:
            continue
        if cls not in ("mamba", "mamba2", "hunyuan"):
            one(n + "no-vocab-size", c, hf, {"vocab_size": DEL})
        one(n + "ids", c, hf, {"bos_token_id": 3, "eos_token_id": [20, 4], "eot_token_id": 5, "eom_token_id": 6, "unk_token_id": 7})
        one(n + "eos-list", c, hf, {"bos_token_id": 20, "eos_token_id": [20, 4, 5]}, {"eos_token": DEL})
        one(n + "jinja", c, hf, chat_template__jinja="J")
        one(n + "jinja-only", c, hf, tc={"chat_template": DEL}, chat_template__jinja="J")
        one(n + "model-too", c, hf, **both)
    for cls, hf in (("glm", "Glm4MoeForCausalLM"), ("glm4", "Glm4ForCausalLM"), ("solar-open", "SolarOpenForCausalLM"), ("dots3", "Dots3NoteForCausalLM"), ("chatglm", "ChatGLMModel")):
        j = bpe_json()
        j["added_tokens"] = [t for t in j["added_tokens"] if t["content"] not in ("<|user|>", "<unk>", "<|endofassistant|>")]
        one(cls + "-bpe-token-missing", cls, hf, tc={"unk_token": DEL, "added_tokens_decoder": decoder(*j["added_tokens"])}, tj=j)
    one("chatglm-bpe-padded", "chatglm", "ChatGLMModel", {"padded_vocab_size": 40})
    one("roberta-bpe-types", "roberta", "RobertaModel", {"type_vocab_size": 7})
    one("modern-bert-mmbert", "modern-bert", "ModernBertModel", pre="mmbert")
    jina = {"tokenizer_class": "RobertaTokenizer", "bos_token": "<|startoftext|>", "cls_token": "<|startoftext|>", "sep_token": "<|endoftext|>", "pad_token": "[gMASK]", "mask_token": "<|user|>"}
    one("jina-bert-v2-bpe", "jina-bert-v2", "JinaBertModel", tc=jina)
    one("jina-bert-v2-words", "jina-bert-v2", "JinaBertModel", tc=jina, tj={"pre_tokenizer": {"type": "Whitespace"}})
    one("jina-bert-v2-other", "jina-bert-v2", "JinaBertModel")
    one("jina-bert-v2-no-class", "jina-bert-v2", "JinaBertModel", tc={"tokenizer_class": DEL})
    for cls, hf in (("mamba", "MambaForCausalLM"), ("mamba2", "Mamba2ForCausalLM"), ("nemotron-h", "NemotronHForCausalLM")):
        one(cls + "-pad-5", cls, hf, {"pad_vocab_size_multiple": 5})
        one(cls + "-pad-1", cls, hf, {"pad_vocab_size_multiple": 1})
        one(cls + "-pad-0", cls, hf, {"pad_vocab_size_multiple": 0})
        one(cls + "-exact", cls, hf, {"vocab_size": 32})
        one(cls + "-none", cls, hf, omit=("tokenizer.json",))
        if cls != "nemotron-h":
            one(cls + "-model", cls, hf, omit=("tokenizer.json",), **both)
        one(cls + "-v3", cls, hf, tokenizer__model__v3="x")
    for name, cfg in {"attention": {"layer_types": ["attention", "attention"]}, "mixed": {"layer_types": ["mamba", "attention"]}, "indices-all": {"attn_layer_indices": [1, 0]},
                      "indices": {"attn_layer_indices": [1]}, "period-1": {"attn_layer_period": 1, "attn_layer_offset": 0}, "period-1-offset": {"attn_layer_period": 1, "attn_layer_offset": 1},
                      "period": {"attn_layer_period": 2, "attn_layer_offset": 1}, "nothing": {}, "no-offset": {"attn_layer_period": 2}}.items():
        one("granite-hybrid-" + name, "granite-hybrid", "GraniteMoeHybridForCausalLM", {"num_hidden_layers": 2, "vocab_size": 26, **cfg})
    for name, cfg, kw in (("pad", {"pad_token_id": 5}, {}), ("pad-negative", {"pad_token_id": -1}, {}), ("eod", {"eod_token_id": 9, "eos_token_id": 20}, {}),
                          ("generation", {}, {"generation_config__json": {"eos_token_id": [7, 8]}}), ("generation-one", {}, {"generation_config__json": {"eos_token_id": [7]}}),
                          ("generation-scalar", {}, {"generation_config__json": {"eos_token_id": 7}})):
        one("hunyuan-bpe-" + name, "hunyuan", "HunYuanDenseV1ForCausalLM", cfg, **kw)
    one("grok-bpe-no-jinja", "grok", "GrokForCausalLM")
    one("deci-gpt2", "deci", "DeciLMForCausalLM", {"vocab_size": 128256})
    for cls, hf in (("deci", "DeciLMForCausalLM"), ("jamba", "JambaForCausalLM"), ("gemma4", "Gemma4ForCausalLM")):
        case(cls + "-hf", cls, hf, "tiny-spm", omit=("tokenizer.model",))
        case(cls + "-hf-gemma", cls, hf, "tiny-spm-gemma", omit=("tokenizer.model",))
        case(cls + "-model", cls, hf, "tiny-spm")
    case("xverse-hf", "xverse", "XverseForCausalLM", "tiny-spm", cfg={"vocab_size": 1000}, omit=("tokenizer.model",))
    case("xverse-beyond", "xverse", "XverseForCausalLM", "tiny-spm", cfg={"vocab_size": 1001}, omit=("tokenizer.model",))
    case("xverse-less", "xverse", "XverseForCausalLM", "tiny-spm", cfg={"vocab_size": 999}, omit=("tokenizer.model",))
    one("xverse-bpe", "xverse", "XverseForCausalLM", {"vocab_size": 24})
    j = bpe_json()
    j["model"]["vocab"] = {**j["model"]["vocab"], "\x00": 24}
    one("xverse-null", "xverse", "XverseForCausalLM", {"vocab_size": 25}, tj=j)
    one("xverse-none", "xverse", "XverseForCausalLM", omit=("tokenizer.json",))
    case("openelm-tiny", "openelm", "OpenELMForCausalLM", "tiny-spm")
    case("openelm-none", "openelm", "OpenELMForCausalLM", "tiny-spm", omit=("tokenizer.model",))


def bert():
    def one(name, cfg=None, tc=None, tj=None, cls="bert", hf="BertModel", **kw):
        small(name, cls, hf, cfg, tc, tj, base="small-bert", pre="bert-bge", **kw)
    on = {"cls": "nomic-bert", "hf": "NomicBertModel"}
    jina = {"cls": "jina-bert-v2", "hf": "JinaBertModel"}
    roberta = {"cls": "roberta", "hf": "RobertaModel"}
    unset = dict.fromkeys(("cls_token", "sep_token", "mask_token", "pad_token", "unk_token"), DEL)
    one("bert-small")
    one("bert-exact", {"vocab_size": 16})
    one("bert-less", {"vocab_size": 15})
    one("bert-no-vocab-size", {"vocab_size": DEL, "type_vocab_size": DEL})
    one("bert-fast", tc={"tokenizer_class": "BertTokenizerFast"})
    one("bert-plain-class", tc={"tokenizer_class": "PreTrainedTokenizerFast"})
    one("bert-distil", tc={"tokenizer_class": "DistilBertTokenizer"})
    one("bert-vocab-txt", omit=("tokenizer.json",))
    one("bert-vocab-txt-only", omit=("tokenizer.json", "tokenizer_config.json"), tc=None, cfg={"model_type": "bert"})
    one("bert-vocab-txt-blanks", omit=("tokenizer.json",), vocab__txt="[PAD]\n[UNK] \n[CLS]\t\n[SEP]\u00a0\n[MASK]\r\n a\n\n##b\na\u3000\na")
    one("bert-defaults", tc={**unset, "added_tokens_decoder": {}})
    one("bert-defaults-null", tc={**dict.fromkeys(unset, None), "added_tokens_decoder": {}, "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"})
    one("bert-no-decoder", tc={"added_tokens_decoder": DEL})
    one("bert-decoder-more", tc={"added_tokens_decoder": decoder(*bert_json()["added_tokens"], added(12, "[unused0]", False), added(13, "#", False, normalized=True), added(16, "new", False), added(17, "<mask>", False))})
    one("bert-json-more", tj={"added_tokens": bert_json()["added_tokens"] + [added(12, "[unused0]"), added(16, "new", False)]})
    one("bert-json-more-plain", tc={"tokenizer_class": "PreTrainedTokenizerFast"}, tj={"added_tokens": bert_json()["added_tokens"] + [added(12, "[unused0]"), added(16, "new", False)]})
    one("bert-cased", tc={"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False})
    one("bert-normalizer", tj={"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": True, "lowercase": False}})
    one("bert-ids", {"bos_token_id": 2, "eos_token_id": 3, "mask_token_id": 40, "sep_token_id": 1})
    one("bert-bos", tc={"bos_token": "[CLS]", "eos_token": "[SEP]"})
    one("bert-types", {"type_vocab_size": 0})
    one("bert-extra-special", tc={"additional_special_tokens": ["[unused0]", "[extra]"]})
    one("nomic-bert-small", **on)
    one("nomic-bert-none", omit=("tokenizer.json",), **on)
    one("nomic-bert-bpe", tj={"model": {"type": "BPE"}}, **on)
    small("nomic-bert-xlmr", "nomic-bert", "NomicBertModel", base="small-xlmr")
    small("nomic-bert-moe", "nomic-bert", "NomicBertModel", {"vocab_size": 250048, "moe_every_n_layers": 2}, base="small-xlmr")
    small("nomic-bert-moe-short", "nomic-bert", "NomicBertModel", {"moe_every_n_layers": 2}, base="small-xlmr")
    small("nomic-bert-moe-json", "nomic-bert", "NomicBertModel", {"moe_every_n_layers": 2}, base="small-xlmr", omit=("sentencepiece.bpe.model",))
    one("jina-bert-v2-bert", **jina)
    one("roberta-vocab-txt", omit=("tokenizer.json",), **roberta)


def xlmr_json_only():
    def one(name, cfg=None, tc=None, tj=None, omit=()):
        small(name, "xlm-roberta", "XLMRobertaModel", cfg, tc, tj, base="small-xlmr", omit=("sentencepiece.bpe.model", *omit))
    more = xlmr_json()["added_tokens"]
    one("xlmr-json")
    one("xlmr-json-larger", {"vocab_size": 14})
    one("xlmr-json-smaller", {"vocab_size": 3})
    one("xlmr-json-plain", tc={"tokenizer_class": "PreTrainedTokenizerFast"})
    one("xlmr-json-fast", tc={"tokenizer_class": "XLMRobertaTokenizerFast", "clean_up_tokenization_spaces": False})
    one("xlmr-json-prefix", tc={"add_prefix_space": False, "clean_up_tokenization_spaces": DEL})
    one("xlmr-json-prefix-plain", tc={"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": True})
    one("xlmr-json-no-config", {"model_type": "xlm-roberta"}, omit=("tokenizer_config.json",))
    one("xlmr-json-unk", tc={"unk_token": "a", "added_tokens_decoder": decoder(*more, added(4, "a"), added(5, "▁b", False))}, tj={"added_tokens": more + [added(4, "a"), added(5, "▁b", False)]})
    one("xlmr-json-unk-null", tc={"unk_token": None})
    one("xlmr-json-unk-other", tj={"model": {**xlmr_json()["model"], "unk_id": 1}}, tc={"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": DEL})
    one("xlmr-json-unk-object", tc={"unk_token": {"content": "<unk>", "__type": "AddedToken"}})
    one("xlmr-json-added-beyond", tc={"added_tokens_decoder": decoder(*more, added(12, "new"))}, tj={"added_tokens": more + [added(12, "new")]})
    one("xlmr-json-no-charsmap", tj={"normalizer": {"type": "NFKC"}})
    one("xlmr-json-no-normalizer", tj={"normalizer": None})
    one("xlmr-json-sequence", tj={"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}})
    one("xlmr-json-none", omit=("tokenizer.json",))
    one("xlmr-json-score-int", tj={"model": {**xlmr_json()["model"], "vocab": [[t, -i if i == 5 else -0.5 * i] for i, (t, _) in enumerate(xlmr_json()["model"]["vocab"])]}})
    one("xlmr-json-score", tj={"model": {**xlmr_json()["model"], "vocab": [[t, -0.1 * i] for i, (t, _) in enumerate(xlmr_json()["model"]["vocab"])]}})


# ---------------------------------------------------------------- vocabularies in tiktoken's format
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS_QWEN = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = (rf"[{c}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for c in (r"\p{Lu}\p{Lt}", r"\p{Ll}"))
WORDS_KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + SUFFIX + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" + SUFFIX
              + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Tiktoken:
    """what the reference asks of the tokenizers that come as Python code with Qwen, HunYuan and Kimi"""
    def __init__(self, d):
        import base64
        fn = next((f for f in ("qwen.tiktoken", "hy.tiktoken", "tiktoken.model") if os.path.isfile(os.path.join(d, f))), None)
        if fn is None:
            raise ValueError("no vocabulary")
        ranks = {}
        for line in open(os.path.join(d, fn), "rb").read().splitlines():
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
        self.mergeable_ranks = ranks
        self.model = self
        self._mergeable_ranks = ranks
        if fn == "qwen.tiktoken":
            names, first = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [f"<|extra_{i}|>" for i in range(205)], 151643
        elif fn == "hy.tiktoken":
            names, first = ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"] + [f"<|extra_{i}|>" for i in range(205)], len(ranks)
        else:
            with open(os.path.join(d, "tokenizer_config.json"), encoding="utf-8") as f:
                tc = json.load(f)
            dec = {int(k): v["content"] for k, v in tc["added_tokens_decoder"].items()}
            first = len(ranks)
            names = [dec.get(i, f"<|reserved_token_{i}|>") for i in range(first, first + 256)]
            self.eos_id = first + names.index(tc["eos_token"])
        self.special_tokens = {t: first + i for i, t in enumerate(names)}
        self.vocab_size = first + len(names)

        self.words = WORDS_KIMI if fn == "tiktoken.model" else WORDS_QWEN

    def encode(self, text):
        """the ids of a text without special tokens, as the tiktoken library finds them"""
        import regex, unicodedata
        ids, ranks = [], self.mergeable_ranks
        if self.words == WORDS_QWEN:
            text = unicodedata.normalize("NFC", text)
        for word in regex.findall(self.words, text, regex.V1):
            word = word.encode()
            parts = [word] if word in ranks else [word[i:i + 1] for i in range(len(word))]
            while len(parts) > 1:
                rank, i = min(((ranks.get(a + b, 1 << 40), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))))
                if rank == 1 << 40:
                    break
                parts[i:i + 2] = [parts[i] + parts[i + 1]]
            ids += [ranks[p] for p in parts]
        return ids

    def get_vocab(self):
        return {**{repr(t): i for t, i in self.mergeable_ranks.items()}, **self.special_tokens}


class ChatGLM3:
    """the same for ChatGLM3: its nine tokens follow those of the SentencePiece model, whose bos, eos and unk it gives as empty texts"""
    def __init__(self, d):
        import sentencepiece
        sp = self.sp_model = sentencepiece.SentencePieceProcessor()
        sp.LoadFromFile(os.path.join(d, "tokenizer.model"))
        self.tokenizer = self
        self.named = {sp.vocab_size() + i: t for i, t in enumerate(["[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"])}

    def _convert_id_to_token(self, i):
        sp = self.sp_model
        if i in self.named:
            return self.named[i]
        return "" if i in (sp.eos_id(), sp.bos_id(), sp.unk_id()) or i >= sp.vocab_size() else sp.IdToPiece(i)

    def get_vocab(self):
        return {self._convert_id_to_token(i): i for i in range(self.sp_model.vocab_size() + len(self.named))}


class Tekken:
    """and for tekken.json, what it asks of mistral_common, which is not installed"""
    DEFAULT = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>",
               "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"]

    def __init__(self, d):
        with open(os.path.join(d, "tekken.json"), encoding="utf-8") as f:
            j = json.load(f)
        self.version, self.n_words, self.num_special_tokens = (j["config"][k] for k in ("version", "default_vocab_size", "default_num_special_tokens"))
        special = self.DEFAULT if j.get("special_tokens") is None else [t["token_str"] for t in j["special_tokens"]]
        assert len(special) <= self.num_special_tokens
        self.special = special + [f"<SPECIAL_{i}>" for i in range(len(special), self.num_special_tokens)]
        assert len(set(self.special)) == self.num_special_tokens
        vocab = j["vocab"][:self.n_words - self.num_special_tokens]
        assert len(vocab) == self.n_words - self.num_special_tokens
        self._mergeable_ranks = self._tekken_token2id_nospecial = {base64.b64decode(t["token_bytes"]): t["rank"] for t in vocab}
        assert all(t["rank"] == i and (i > 255 or base64.b64decode(t["token_bytes"]) == bytes([i])) for i, t in enumerate(vocab)) and len(self._mergeable_ranks) == len(vocab)
        self._model = self
        self.unk_id, self.bos_id, self.eos_id, self.pad_id = (self.special.index(t) for t in ("<unk>", "<s>", "</s>", "<pad>"))

    def id_to_piece(self, i):
        return self.special[i]


def with_mistral_common(d):
    """lets the reference believe that mistral_common is there, with Tekken for its tokenizer"""
    import types
    import conversion.base as base, conversion.mistral as mistral, gguf.vocab as vocab

    class Vocab(vocab.MistralVocab):
        def __init__(self, path):
            self.tokenizer = Tekken(d)
            self.tokenizer_type = vocab.MistralTokenizerType.tekken
            self.vocab_size = self.tokenizer.n_words
    vocab.Tekkenizer = mistral.Tekkenizer = mistral.SentencePieceTokenizer = Tekken
    mistral.TokenizerVersion = types.SimpleNamespace(**{v: v for v in ("v1", "v3", "v7", "v11", "v13")})
    base._mistral_common_installed, base.MistralVocab = True, Vocab


def tekken():
    def one(name, tokens, config, special=None, files=None, **kw):
        j = {"config": {"pattern": "x", "num_vocab_tokens": 1000, "version": "v3", **config}, **kw,
             "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)]}
        if special is not None:
            j["special_tokens"] = [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(special)]
        case("tekken-" + name, "llama", "LlamaForCausalLM", cfg={"vocab_size": 300}, tc={"chat_template": "not this"}, files={"tekken.json": j, **(files or {})})
    single = [bytes([i]) for i in range(256)]
    toks = single + [b"ab", b"bc", b"abc", b"  ", b" a", b"\xc3\xa9"]
    size = lambda n, s=24: {"default_vocab_size": n + s, "default_num_special_tokens": s}
    named = ["<unk>", "<s>", "</s>", "[X]", "<pad>"]
    one("v3", toks, size(len(toks)))
    one("v7", toks, {**size(len(toks), 7), "version": "v7"}, named)
    one("cut", toks, size(259))
    one("exact", toks, size(len(toks), 20))
    one("special-null", toks, size(len(toks)), special_tokens=None)
    one("jinja", toks, size(len(toks)), files={"chat_template.jinja": "J"})
    one("v11", toks, {**size(len(toks)), "version": "v11"}, named)
    one("v99", toks, {**size(len(toks)), "version": "v99"}, named)
    one("too-many-special", toks, size(len(toks), 19))
    one("repeated-special", toks, size(len(toks)), named + ["[X]"])
    one("no-pad", toks, size(len(toks)), named[:-1])
    one("too-few", toks, size(len(toks) + 1))
    one("no-merge", toks + [b"xyz"], size(len(toks) + 1))
    one("repeated", toks + [b"ab"], size(len(toks) + 1))
    one("order", [*single[1:], single[0], *toks[256:]], size(len(toks)))
    one("no-config", toks, {})


def tiktoken_file(tokens):
    return "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))


def tiktoken():
    single = [bytes([i]) for i in range(256)]
    toks = single + [b"ab", b"abc", b"  ", b"th", b" th", b"the", b" the", b"ing", b"in", b"\xc3\xa9", b"abab"]  # " th" is no merge by rank, "the" is
    good = single + [b"ab", b"abc", b"  ", b"th", b"the", b" the", b"in", b"ing", b"\xc3\xa9", b"abab"]
    tc = {"tokenizer_class": "X", "auto_map": {"AutoTokenizer": ["x.X", None]}}

    def one(name, cls, hf, fn, tokens, cfg, tc=tc, pre="gpt-2", **kw):
        case(name, cls, hf, cfg=cfg, tc=tc, files={fn: tokens if isinstance(tokens, str) else tiktoken_file(tokens), **kw}, pre=pre)
        CASES[-1]["remote"] = True
    one("qwen-tiktoken", "qwen", "QWenLMHeadModel", "qwen.tiktoken", good, {"vocab_size": 151936}, pre="qwen2")
    one("qwen-tiktoken-ids", "qwen", "QWenLMHeadModel", "qwen.tiktoken", good, {"vocab_size": 151936, "eos_token_id": 5, "unk_token_id": 3})
    one("qwen-tiktoken-no-merge", "qwen", "QWenLMHeadModel", "qwen.tiktoken", toks, {"vocab_size": 151936})
    one("qwen-tiktoken-short", "qwen", "QWenLMHeadModel", "qwen.tiktoken", good, {"vocab_size": 151850})
    for n, cls, hf in (("hunyuan-moe", "hunyuan-moe", "HunYuanMoEV1ForCausalLM"), ("hunyuan", "hunyuan", "HunYuanDenseV1ForCausalLM")):
        v = len(toks) + 210
        one(n + "-tiktoken", cls, hf, "hy.tiktoken", toks, {"vocab_size": v, "hidden_size": 64, "bos_token_id": 1, "eos_token_id": 2})
        one(n + "-tiktoken-4096", cls, hf, "hy.tiktoken", good, {"vocab_size": v - 1, "hidden_size": 4096, "eod_token_id": 77})
        one(n + "-tiktoken-other-size", cls, hf, "hy.tiktoken", good, {"vocab_size": 600, "hidden_size": 64})
    dec = decoder(added(len(toks), "[BOS]"), added(len(toks) + 1, "[EOS]"), added(len(toks) + 255, "[PAD]"), added(3, "low"))
    for n, hf in (("deepseek2", "DeepseekV3ForCausalLM"), ("kimi-linear", "KimiLinearForCausalLM")):
        ktc = {**tc, "added_tokens_decoder": dec, "bos_token": "[BOS]", "eos_token": "[EOS]", "chat_template": "K"}
        one(n + "-tiktoken", n, hf, "tiktoken.model", toks, {"vocab_size": len(toks) + 260, "bos_token_id": 7, "eos_token_id": 8}, ktc, pre="kimi-k2")
        one(n + "-tiktoken-exact", n, hf, "tiktoken.model", good, {"vocab_size": len(good) + 256}, {**ktc, "added_tokens_decoder": decoder(added(len(good) + 4, "[EOS]"))}, pre="kimi-k2")
        one(n + "-tiktoken-other-pre", n, hf, "tiktoken.model", good, {"vocab_size": len(good) + 256}, {**ktc, "added_tokens_decoder": decoder(added(len(good) + 4, "[EOS]"))})
    for name, cfg in (("", {"padded_vocab_size": 24}), ("-exact", {"padded_vocab_size": 17}), ("-short", {"padded_vocab_size": 16}), ("-unpadded", {})):
        case("chatglm3" + name, "chatglm", "ChatGLMModel", "small-spm", cfg={"_name_or_path": "THUDM/chatglm3-6b", **cfg}, tc={"auto_map": {}}, omit=("tokenizer.json",))
        CASES[-1]["remote"] = True


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
        if typ == "ARRAY/FLOAT32" and isinstance(v, list):
            v = [x if abs(x) < 1e39 else str(x) for x in v]
        out.append([name, typ, v])
    return out


def run(c, tmp):
    """the pairs that set_vocab writes; c["vocab_size"] becomes what the converter works with"""
    import conversion, gguf, transformers
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
    if c["class"] == "nomic-bert":
        m.model_arch = gguf.MODEL_ARCH.NOMIC_BERT_MOE if h.get("moe_every_n_layers") else gguf.MODEL_ARCH.NOMIC_BERT
        m._tokenizer_is_xlmroberta = m._is_tokenizer_xlmroberta()
    m.gguf_writer = gguf.GGUFWriter(None, gguf.MODEL_ARCH_NAMES[cls.model_arch])
    if c.get("pre"):
        m.get_vocab_base_pre = lambda tokenizer: c["pre"]
    m.is_mistral_format = False
    if "num_hidden_layers" in h:
        m.block_count = h["num_hidden_layers"]
    if c["class"] == "granite-hybrid":
        m._ssm_layers = [i for i in range(m.block_count) if i not in m.get_attn_layers()]
    if "tekken.json" in c["files"]:
        with_mistral_common(d)
    real = transformers.AutoTokenizer.from_pretrained
    if c.get("remote"):
        def fake(path, *a, **k):
            if not k.get("trust_remote_code"):
                raise ValueError("needs its own code")
            tokenizer = (ChatGLM3 if "chatglm3" in c["name"] else Tiktoken)(d)
            if isinstance(tokenizer, Tiktoken):
                c["sum"] = fingerprint(tokenizer)
            return tokenizer
        transformers.AutoTokenizer.from_pretrained = fake
    try:
        m.set_vocab()
    finally:
        transformers.AutoTokenizer.from_pretrained = real
    out = os.path.join(tmp, "m.gguf")
    m.gguf_writer.add_uint32("end", 1)
    m.gguf_writer.write_header_to_file(path=out)
    m.gguf_writer.write_kv_data_to_file()
    m.gguf_writer.close()
    kvs = want(out)
    assert kvs.pop()[0] == "end"
    return kvs


def fingerprint(tokenizer):
    """what get_vocab_base_pre looks for in its table"""
    import conversion
    seen = {}
    name, conversion.base.sha256 = conversion.base.sha256, lambda data: seen.setdefault("sum", hashlib.sha256(data))
    try:
        conversion.TextModel.get_vocab_base_pre(None, tokenizer)
    except NotImplementedError:
        pass
    finally:
        conversion.base.sha256 = name
    return seen["sum"].hexdigest()


def mend_roberta():
    """transformers 5.12.1 calls a constructor of tokenizers 0.23.1 with the former name of an argument"""
    from tokenizers import processors
    made = processors.RobertaProcessing

    def roberta(sep, cls=None, cls_token=None, **kw):
        return made(sep, cls_token or cls, **kw)
    processors.RobertaProcessing = roberta


def main():
    sys.path.insert(0, sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else None
    import forkrun
    forkrun.preload()
    logging.disable(logging.CRITICAL)
    mend_roberta()
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
                assert "Architecture" not in str(e), c["hf"]
                c["error"] = (type(e).__name__ + ": " + str(e)).replace(tmp, "").replace(sys.argv[1], "")[:200]
        if only:
            print(json.dumps(c, ensure_ascii=False)[-3000:])
    if not only:
        with open(os.path.join(HERE, "classes.json"), "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in CASES) + "\n]\n")
    print(len(CASES), "cases,", sum("error" in c for c in CASES), "refused")


PARTS = (sentencepiece, more_sentencepiece, unigram, rwkv, plamo, bpe, bert, xlmr_json_only, tiktoken, tekken)
if __name__ == "__main__":
    main()
