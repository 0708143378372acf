#!/usr/bin/env python3
"""Write cases.json: small tokenizer directories and what the reference converter makes of them.

  make_golden.py ORACLE      from this directory, where the reference is installed; see README.md

ORACLE is the folder with forkrun.py and refconvert.py. A case is a base directory next to this
file, minus some files, plus some; the reference converts it with --vocab-only, and the
tokenizer.* pairs of its output are stored.
"""
import base64, json, os, shutil, struct, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DEL = object()
CASES = []


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


def case(name, base="tiny-spm", cfg=None, tc=None, tj=None, files=None, omit=()):
    """cfg, tc, tj: dicts patched into config.json, tokenizer_config.json, tokenizer.json; a str replaces the file"""
    out = {}
    for fn, patch in (("config.json", cfg), ("tokenizer_config.json", tc), ("tokenizer.json", tj)):
        if patch is not None:
            if fn == "tokenizer.json" and not isinstance(patch, str):
                patch = {"model": {"type": "BPE"}, **patch}  # its vocabulary is not read where there is a tokenizer.model
            out[fn] = patch if isinstance(patch, str) else text(patched(base_json(base, fn), patch))
    for fn, v in (files or {}).items():
        out[fn] = {"base64": base64.b64encode(v).decode()} if isinstance(v, bytes) else text(v)
    CASES.append({"name": name, "base": base, "omit": list(omit), "files": out})


# ---------------------------------------------------------------- SentencePiece models made by hand
def varint(n):
    n &= (1 << 64) - 1
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


def piece(p, score=None, typ=None, extra=b""):
    b = sub(1, p if isinstance(p, bytes) else p.encode())
    if score is not None:
        b += field(2, 5, struct.pack("<f", score))
    if typ is not None:
        b += field(3, 0, varint(typ))
    return sub(1, b + extra)


UNK = piece("<unk>", 0, 2)
A, B = piece("a", -1), piece("b", -2.5)
BPE, UNI = sub(2, field(3, 0, b"\2")), sub(2, field(3, 0, b"\1"))
FALLBACK = sub(2, field(3, 0, b"\2") + field(35, 0, b"\1"))
BYTES = b"".join(piece("<0x%02X>" % i, 0, 6) for i in range(256))
BARE = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def model(name, data, cfg=None, **kw):
    case("model-" + name, cfg=cfg or {"vocab_size": 12}, omit=BARE, files={"tokenizer.model": data, **kw})


def models():
    model("bpe", UNK + A + B + BPE)
    model("unigram", UNK + A + B + UNI)
    model("unigram-default", UNK + A + B)
    model("word", UNK + A + sub(2, field(3, 0, b"\3")))
    model("type-unknown-enum", UNK + A + sub(2, field(3, 0, b"\2") + field(3, 0, b"\x09")))
    model("types", UNK + piece("<s>", 0, 3) + piece("n", -1, 1) + piece("ud", -2, 4) + piece("un", -3, 5) + piece("d") + BPE)
    model("bytes", UNK + BYTES + A + FALLBACK, {"vocab_size": 270})
    model("piece-type-unknown-enum", UNK + piece("a", -1, 9) + piece("b", -1, 3, field(3, 0, b"\x09")) + piece("c", -1, (1 << 32) + 3) + BPE)
    model("wire-types", UNK + sub(1, sub(1, b"a") + field(3, 5, b"\3\0\0\0") + field(2, 0, b"\3")) + field(1, 0, b"\1") + BPE)
    model("last-wins", UNK + piece("a", -1, 1, sub(1, b"z") + field(2, 5, struct.pack("<f", 7.25)) + field(3, 0, b"\5")) + BPE)
    model("trainer-merged", sub(2, field(35, 0, b"\1")) + UNK + A + BPE + sub(2, field(35, 0, b"\0")))
    model("unknown-fields", field(9, 0, b"\xff" * 9 + b"\1") + UNK + field(77, 3, sub(1, b"zz")) + field(77, 4, b"") + A
          + field(10, 1, b"12345678") + field(11, 5, b"1234") + sub(200, b"zz") + sub(536870911, b"z") + BPE)
    model("groups-100", UNK + A + BPE + field(77, 3, b"") * 100 + field(77, 4, b"") * 100)
    model("overlong", UNK + sub(1, sub(1, b"a") + field(3, 0, b"\x83" + b"\x80" * 8 + b"\0")) + BPE + b"\xc8\x80\x80\x80\x70\1")
    model("score-inf", UNK + piece("a", float("-inf")) + piece("b", float("nan")) + piece("c", 1e-42) + BPE)
    model("newline-piece", UNK + piece("\n", 0, 4) + piece("\t\x01 é😀", 0) + BPE)
    model("long-piece", UNK + piece("x" * 7999, -1) + BPE)
    model("no-vocab-size", UNK + A + B + BPE, {"vocab_size": 0})
    model("pieces-beyond-vocab", UNK + A + B + BPE, {"vocab_size": 2})
    model("bad-utf8-beyond-vocab", UNK + A + piece(b"\xff") + BPE, {"vocab_size": 2})
    model("charsmap", UNK + A + BPE + sub(3, sub(2, b"")))
    model("added", UNK + A + B + BPE, **{"added_tokens.json": {"b": 1, "x▁y": 5, "far": 12, "q": 5}})
    for name, data in {
        "no-unk": A + BPE, "two-unk": UNK + piece("u", 0, 2) + BPE, "twice": UNK + A + A + BPE,
        "twice-control": UNK + A + piece("a", 0, 3) + BPE, "no-text": UNK + piece("") + BPE, "null": UNK + piece("a\0b") + BPE,
        "too-long": UNK + piece("x" * 8000) + BPE, "byte-no-fallback": UNK + piece("<0x41>", 0, 6) + BPE,
        "byte-missing": UNK + A + FALLBACK, "byte-lower-case": UNK + piece("<0xab>", 0, 6) + BYTES + FALLBACK,
        "bad-utf8": UNK + piece(b"a\xff") + BPE, "surrogate": UNK + piece(b"\xed\xa0\x80") + BPE, "unigram-empty": UNK + UNI,
        "unigram-nan": UNK + piece("a", float("nan")) + UNI, "unigram-inf-control": UNK + A + piece("c", float("inf"), 3) + UNI,
        "nothing": b"", "cut": (UNK + A + BPE)[:-1], "cut-tag": UNK + A + b"\x88", "cut-length": UNK + field(9, 2, b"\xff\xff\xff\xff\7"),
        "length-6": UNK + A + field(9, 2, b"\x81\x80\x80\x80\x80\0x"), "varint-11": UNK + A + field(9, 0, b"\xff" * 10 + b"\1"),
        "tag-6": UNK + A + b"\xc8\x80\x80\x80\x80\0\1", "field-0": UNK + A + field(0, 0, b"\1"), "wire-6": UNK + A + field(9, 6, b"\1"),
        "group-other-end": UNK + A + field(77, 3, b"") + field(78, 4, b""), "group-open": UNK + A + field(77, 3, b""),
        "group-end": UNK + A + field(77, 4, b""), "group-end-in-piece": UNK + piece("a", 0, 1, field(77, 4, b"")) + BPE,
        "groups-101": UNK + A + field(77, 3, b"") * 101 + field(77, 4, b"") * 101,
        "groups-100-in-piece": UNK + piece("a", 0, 1, field(77, 3, b"") * 100 + field(77, 4, b"") * 100) + BPE,
        "charsmap-short": UNK + A + BPE + sub(3, sub(2, b"xyz")), "charsmap-cut": UNK + A + BPE + sub(3, sub(2, b"\4\0\0\0abcd")),
        "charsmap-odd": UNK + A + BPE + sub(3, sub(2, b"\4\0\0\0abcdefg")),
    }.items():
        model("bad-" + name, data)


# ---------------------------------------------------------------- whole directories
def added(i, content, special=True, **kw):
    return {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special, **kw}


def decoder(*tokens):
    return {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in tokens}


BASE3 = (added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"))


def tmpl(single, pair=None):
    """'<s> A </s>' -> a TemplateProcessing"""
    def els(s):
        return [{"Sequence": {"id": w, "type_id": 0}} if w in ("A", "B") else {"SpecialToken": {"id": w, "type_id": 0}} for w in s.split()]
    return {"type": "TemplateProcessing", "single": els(single), "pair": els(pair or ""), "special_tokens": {}}


BYTELEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def procs(*p):
    return {"type": "Sequence", "processors": list(p)}


def directories():
    # as made
    case("plain")
    case("no-json", omit=["tokenizer.json"])
    case("gollama", base="gollama")
    case("gemma-model", base="tiny-spm-gemma")
    case("gemma-model-no-json", base="tiny-spm-gemma", omit=["tokenizer.json"])
    case("model-only", omit=BARE)
    case("special-tokens-map-only", omit=["tokenizer.json", "tokenizer_config.json"], cfg={"bos_token_id": DEL, "eos_token_id": DEL},
         files={"special_tokens_map.json": {"bos_token": "<s>", "pad_token": "<unk>"}})
    # vocabulary sizes
    for n in (1000, 999, 300, 2, 1001, 1100):
        case(f"vocab-{n}", cfg={"vocab_size": n})
    case("vocab-absent", cfg={"vocab_size": DEL})
    case("vocab-text-config", cfg={"vocab_size": DEL, "text_config": {"vocab_size": 1010, "pad_token_id": 5}})
    case("vocab-codellama", cfg={"vocab_size": 32016})
    case("vocab-codellama-no-json", cfg={"vocab_size": 32016}, omit=["tokenizer.json"])
    case("vocab-codellama-eot", cfg={"vocab_size": 32016, "eot_token_id": 77, "prefix_token_id": 3},
         tc={"prefix_token": "<s>", "add_eot_token": True, "add_prefix_token": True})
    case("vocab-codellama-template", cfg={"vocab_size": 32016}, tj={"post_processor": tmpl("<s> A <unk>")})
    case("vocab-granite", cfg={"vocab_size": 49152})
    case("vocab-granite-absent", cfg={"vocab_size": 49152}, omit=["tokenizer_config.json", "tokenizer.json"])
    # added tokens
    more = (added(1000, "<|im_start|>"), added(1001, "tool▁call▁", False), added(1002, "plain", False, normalized=True),
            added(1003, "<unused7>", False), added(1004, "<｜a｜>", False), added(1005, "<mask>", False), added(1006, "<|", False),
            added(1007, "▁", False), added(1008, "▁ctl▁"), added(1009, "日本\n\"\\\t", False))
    case("added-decoder", tc={"added_tokens_decoder": decoder(*BASE3, *more)})
    case("added-decoder-only-new", tc={"added_tokens_decoder": decoder(*more)})
    case("added-decoder-empty", tc={"added_tokens_decoder": {}})
    case("added-decoder-absent", tc={"added_tokens_decoder": DEL})
    case("added-decoder-override", tc={"added_tokens_decoder": decoder(added(2, "<eos>"), added(300, "new▁text", False), added(255, "<0xFB>", False))})
    case("added-decoder-beyond", tc={"added_tokens_decoder": decoder(*BASE3, added(1023, "last"), added(1024, "past"), added(10**30, "far"))})
    case("added-decoder-order", tc={"added_tokens_decoder": {"1001": {"content": "one"}, "01001": {"content": "two", "special": True}, " 1_002\n": {"content": "x"}, "+1003": {"content": "y", "special": 0}}})
    case("added-decoder-truth", tc={"added_tokens_decoder": {"1001": {"content": "a", "special": 1}, "1002": {"content": "b", "special": "false"}, "1003": {"content": "c", "special": None}, "1004": {"content": "d", "special": []}, "1005": {"content": "e", "special": [0]}, "1006": {"content": "", "special": 0.0}}})
    case("added-decoder-repeated-key", tc='{"added_tokens_decoder":{"1001":{"content":"a"},"01001":{"content":"b"},"1001":{"content":"c"}}}')
    case("added-json", omit=["tokenizer_config.json"], files={"added_tokens.json": {"<|x|>": 1000, "▁y": 1001, "<s>": 1, "far": 5000, "t": True}})
    case("added-json-and-decoder", tc={"added_tokens_decoder": decoder(*BASE3, added(1000, "<b>"), added(1001, "c", False))},
         files={"added_tokens.json": {"<a>": 1000, "c": 1001, "d": 1002}})
    case("added-json-same-id", files={"added_tokens.json": '{"x":1001,"y":1001,"x":1003}'})
    # chat templates
    case("chat-none", tc={"chat_template": DEL})
    case("chat-null-wins", tc={"chat_template": None}, files={"chat_template.jinja": "J"})
    case("chat-empty", tc={"chat_template": ""}, files={"chat_template.jinja": "J"})
    case("chat-number", tc={"chat_template": 5})
    case("chat-config-wins", files={"chat_template.jinja": "J", "chat_template.json": {"chat_template": "C"}})
    case("chat-jinja", tc={"chat_template": DEL}, files={"chat_template.jinja": b"a\r\nb\rc\n\xef\xbb\xbf\xc3\xa9", "chat_template.json": {"chat_template": "C"}})
    case("chat-jinja-no-config", omit=["tokenizer_config.json"], files={"chat_template.jinja": "J"})
    case("chat-jinja-empty-config", tc="{}", files={"chat_template.jinja": "J"})
    case("chat-jinja-empty", tc={"chat_template": DEL}, files={"chat_template.jinja": ""})
    case("chat-json", tc={"chat_template": DEL}, files={"chat_template.json": {"chat_template": "from\njson"}})
    case("chat-json-list", tc={"chat_template": DEL}, files={"chat_template.json": {"chat_template": [{"name": "default", "template": "D"}]}})
    case("chat-list", tc={"chat_template": [{"name": "default", "template": "D"}, {"name": "tool-use.é", "template": "T"}]})
    case("chat-list-tool-first", tc={"chat_template": [{"name": "rag", "template": "T"}, {"name": "default", "template": "D"}, {"name": "rag", "template": "T2"}]})
    case("chat-list-default", tc={"chat_template": [{"name": "default", "template": "D"}]})
    case("chat-list-no-default", tc={"chat_template": [{"name": "rag", "template": "R"}]})
    case("chat-list-odd", tc={"chat_template": [{}, {"name": "", "template": "x"}, {"name": "e", "template": ""}, {"name": "none"}, {"name": "default", "template": None}]})
    case("chat-list-empty", tc={"chat_template": []})
    case("chat-folder", tc={"chat_template": DEL}, files={"chat_template.jinja": "D", "additional_chat_templates/tool_use.v1.jinja": "T\r\n", "additional_chat_templates/x.txt": "no"})
    case("chat-folder-hidden", tc={"chat_template": DEL}, files={"chat_template.jinja": "D", "additional_chat_templates/.jinja": "T"})
    case("chat-folder-no-jinja", tc={"chat_template": DEL}, files={"additional_chat_templates/tool_use.jinja": "T"})
    case("chat-folder-default", tc={"chat_template": DEL}, files={"chat_template.jinja": "D", "additional_chat_templates/default.jinja": "E"})
    # flags
    for v in (True, False, None, DEL, "true", 0):
        n = "absent" if v is DEL else "string" if v == "true" else json.dumps(v)
        case(f"flags-{n}", tc={"add_bos_token": v, "add_eos_token": v, "add_prefix_space": v}, tj={"post_processor": None})
    case("flags-order", tc={"add_eos_token": True, "add_sep_token": True, "add_pad_token": True, "add_bos_token": False}, omit=["tokenizer.json"])
    case("flags-against-template", tc={"add_bos_token": False, "add_eos_token": True})
    case("prefix-space-odd", tc={"add_prefix_space": "no"})
    case("prefix-space-zero", tc='{"add_prefix_space": 0.0, "x": [NaN, Infinity, -Infinity, -0, 1e5, "\\ud800"]}')
    # post-processors
    post = lambda name, p, tc=None: case("post-" + name, tj={"post_processor": p, "added_tokens": [*BASE3, added(7, "<e>"), added(8, "<m>")]}, tc=tc or {})
    post("none", None)
    post("bytelevel", BYTELEVEL)
    post("bos-eos", tmpl("<s> A </s>", "<s> A </s> <s> B </s>"))
    post("bos", tmpl("<s> A", "<s> A <s> B"))
    post("eos", tmpl("A </s>", "A </s> B </s>"))
    post("sep", tmpl("A </s>", "A </s> </s> B </s>"))
    post("sep-no-last", tmpl("<s> A", "<s> A </s> B"))
    post("sep-token", tmpl("<s> A", "<s> A <m> B"), {"sep_token": "<m>"})
    post("sep-long", tmpl("<s> A </s>", "<s> A <s> <s> </s> B </s>"))
    post("sep-pair", tmpl("<s> A </s>", "<s> A <x> <e> B </s>"), {"sep_token": "<e>"})
    post("ends-differ", tmpl("<s> A </s>", "A B"))
    post("pair-b-a", tmpl("<s> A", "<s> B A"))
    post("pair-short", tmpl("<s> A", "<s>"))
    post("single-short", tmpl("A", "A B"))
    post("single-special-only", tmpl("<s>", "<s>"))
    post("other-eos", tmpl("<s> A <e>"))
    post("other-eos-twice", procs(tmpl("<s> A <e>"), tmpl("<s> A <m>"), tmpl("<s> A </s>"), tmpl("<s> A <unk>")))
    post("other-eos-dict", tmpl("<s> A </s>"), {"eos_token": added(2, "</s>")})
    post("other-bos", tmpl("<m> A"))
    post("other-bos-none", tmpl("<m> A"), {"bos_token": None})
    post("other-bos-cls", tmpl("<m> A"), {"bos_token": None, "cls_token": "<m>"})
    post("cls-as-bos", tmpl("<s> A"), {"bos_token": "", "cls_token": "<s>", "eos_token": {}, "sep_token": added(8, "<m>")})
    post("sequence", procs(BYTELEVEL, tmpl("<s> A </s>")))
    post("sequence-byte-last", procs(tmpl("A </s>"), BYTELEVEL, {"type": "Other"}))
    post("sequence-empty", procs())
    post("roberta", {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]})
    post("roberta-tokens", {"type": "RobertaProcessing"}, {"cls_token": "<m>"})
    case("post-no-config", tj={"post_processor": tmpl("<s> A <e>", "<s> A <e> <m> B <e>")}, omit=["tokenizer_config.json"])
    case("post-roberta-no-config", tj={"post_processor": {"type": "RobertaProcessing"}}, omit=["tokenizer_config.json"])
    case("post-empty-config", tj={"post_processor": tmpl("<s> A <e>")}, tc="{}")
    # normalizers
    norm = lambda name, n: case("norm-" + name, tj={"normalizer": n})
    norm("none", None)
    norm("empty", {})
    norm("nfc", {"type": "NFC"})
    norm("lowercase", {"type": "Lowercase"})
    norm("strip", {"type": "StripAccents"})
    norm("sequence", {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "Sequence", "normalizers": [{"type": "StripAccents"}, {"type": "NFC"}]}]})
    norm("bert", {"type": "BertNormalizer", "lowercase": True, "strip_accents": None})
    norm("bert-resets", {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "BertNormalizer", "lowercase": False, "strip_accents": None}]})
    norm("bert-odd", {"type": "BertNormalizer", "lowercase": 1, "strip_accents": ""})
    # special token ids
    seven = (*BASE3, added(7, "<p>"), added(8, "<m>"), added(9, "<c>"), added(10, "<q>"))
    case("ids-all", tc={"pad_token": "<p>", "mask_token": added(8, "<m>"), "cls_token": "<c>", "sep_token": "<q>"}, tj={"added_tokens": seven})
    case("ids-first-match", tj={"added_tokens": [added(5, "<s>"), *BASE3, added(6, "</s>")]})
    case("ids-not-added", tc={"pad_token": "nowhere", "unk_token": {"content": 3}, "mask_token": ["<s>"]})
    case("ids-config", cfg={"pad_token_id": 3, "sep_token_id": 4, "cls_token_id": 5, "mask_token_id": 6, "unk_token_id": 7, "bos_token_id": 9})
    case("ids-config-only", cfg={"pad_token_id": 3, "sep_token_id": 4, "cls_token_id": 5, "mask_token_id": 6, "unk_token_id": 7}, omit=["tokenizer.json"])
    case("ids-config-lists", cfg={"bos_token_id": [1], "eos_token_id": [2, 3]}, omit=["tokenizer.json"])
    case("ids-config-odd", cfg={"bos_token_id": True, "eos_token_id": 2.0, "pad_token_id": "3", "unk_token_id": False, "sep_token_id": {}}, omit=["tokenizer.json"])
    case("ids-config-beyond", cfg={"bos_token_id": 1024, "eos_token_id": 1023, "pad_token_id": 10**30}, omit=["tokenizer.json"])
    case("ids-config-null", cfg={"bos_token_id": None, "eos_token_id": DEL}, omit=["tokenizer.json"])
    case("ids-text-config", cfg={"bos_token_id": None, "eos_token_id": 2, "text_config": {"bos_token_id": 4, "eos_token_id": 5, "pad_token_id": 6}}, omit=["tokenizer.json"])
    case("ids-json-odd", tj={"added_tokens": [added(True, "<s>"), added(2.0, "</s>"), added(99999, "<unk>"), {"content": "<p>"}]}, tc={"pad_token": "<p>"})
    case("ids-json-no-added", tj={"added_tokens": DEL})
    case("ids-json-empty", tj="{}", tc={"cls_token": "<s>", "bos_token": None})
    case("ids-json-added-object", tj={"added_tokens": {}})
    case("json-without-config", omit=["tokenizer_config.json"])
    # broken
    for name, fn in (("config", "tokenizer_config.json"), ("json", "tokenizer.json"), ("added", "added_tokens.json"), ("chat", "chat_template.json")):
        for kind, data in (("cut", b'{"a": 1,'), ("list", b"[1]"), ("null", b"null"), ("bom", b"\xef\xbb\xbf{}"), ("utf8", b'{"a": "\xff"}'), ("empty", b""),
                           ("control", b'{"a": "x\ny"}'), ("zero", b'{"a": 01}'), ("comma", b'{"a": 1,}'), ("escape", b'{"a": "\\x"}'), ("rest", b"{} x"), ("point", b'{"a": 1.}')):
            case(f"broken-{name}-{kind}", files={fn: data})
    case("broken-jinja-utf8", tc={"chat_template": DEL}, files={"chat_template.jinja": b"\xff"})
    case("broken-decoder-null", tc={"added_tokens_decoder": None})
    case("broken-decoder-key", tc={"added_tokens_decoder": {"x": {"content": "a"}}})
    case("broken-decoder-key-underscore", tc={"added_tokens_decoder": {"1__0": {"content": "a"}}})
    case("broken-decoder-no-content", tc={"added_tokens_decoder": {"7": {}}})
    case("broken-decoder-content", tc={"added_tokens_decoder": {"7": {"content": 7}}})
    case("broken-decoder-string", tc={"added_tokens_decoder": {"7": "x"}})
    case("broken-decoder-surrogate", tc='{"added_tokens_decoder": {"7": {"content": "\\ud800"}}}')
    case("broken-added-id-null", files={"added_tokens.json": {"a": None}})
    case("broken-added-float", files={"added_tokens.json": {"a": 7.0}})
    case("broken-added-string", files={"added_tokens.json": {"a": "7"}})
    case("broken-added-surrogate", files={"added_tokens.json": '{"\\udc00": 7}'})
    case("broken-chat-surrogate", tc='{"chat_template": "\\ud800"}')
    case("broken-chat-list-string", tc={"chat_template": ["x"]})
    case("broken-chat-list-name", tc={"chat_template": [{"name": 5, "template": "x"}]})
    case("broken-chat-list-template", tc={"chat_template": [{"name": "a", "template": 5}]})
    case("broken-id-negative", cfg={"pad_token_id": -1})
    case("broken-id-negative-set", cfg={"bos_token_id": -1})
    case("broken-id-json-negative", tj={"added_tokens": [added(-1, "<s>")]})
    case("broken-text-config", cfg={"bos_token_id": None, "text_config": 5, "vocab_size": 1024}, omit=["tokenizer.json"])
    case("broken-json-added-null", tj={"added_tokens": None})
    case("broken-json-added-strings", tj={"added_tokens": ["x"]})
    case("broken-json-post-list", tj={"post_processor": [BYTELEVEL]})
    case("broken-json-post-processors", tj={"post_processor": {"processors": None}})
    case("broken-json-single", tj={"post_processor": {"type": "TemplateProcessing", "single": ["$A", "x"]}})
    case("broken-json-normalizer", tj={"normalizer": "NFC"})


# ---------------------------------------------------------------- running
def effective_vocab(cfg):
    cfg = {**cfg, **cfg["text_config"]} if isinstance(cfg.get("text_config"), dict) else cfg
    return cfg.get("vocab_size", 32000)  # LlamaConfig's default


def want(path):
    """the tokenizer.* pairs of a file: short ones as [key, type, value], the vocabulary as the rows that are not [PADi]"""
    from gguf import GGUFReader, GGUFValueType
    out, cols = [], {}
    for name, f in GGUFReader(path).fields.items():
        if not name.startswith("tokenizer."):
            continue
        typ = "/".join(GGUFValueType(t).name for t in f.types)
        if name in ("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
            cols[name.split(".")[-1]] = [bytes(f.parts[i]) for i in f.data]
            out.append([name, typ, len(f.data)])
        else:
            out.append([name, typ, f.contents()])
    rows = []
    for i, (t, s, k) in enumerate(zip(cols["tokens"], cols["scores"], cols["token_type"])):
        s, k = struct.unpack("<f", s)[0], struct.unpack("<i", k)[0]
        if (t, s, k) != (b"[PAD%d]" % i, -10000, 5):
            rows.append([i, t.decode(), s if abs(s) < 1e39 else str(s), k])
    return out, rows


def main():
    oracle = sys.argv[1]
    sys.path.insert(0, oracle)
    import forkrun
    forkrun.preload()
    directories()
    models()
    names = [c["name"] for c in CASES]
    assert len(set(names)) == len(names), sorted(n for n in set(names) if names.count(n) > 1)
    shared = {}  # base -> the rows of its first case; the other cases store what differs
    for c in CASES:
        with tempfile.TemporaryDirectory() as tmp:
            d, out, log = os.path.join(tmp, "m"), os.path.join(tmp, "m.gguf"), os.path.join(tmp, "log")
            shutil.copytree(os.path.join(HERE, c["base"]), d)
            for fn in c["omit"]:
                os.remove(os.path.join(d, fn))
            for fn, v in c["files"].items():
                os.makedirs(os.path.dirname(os.path.join(d, fn)), exist_ok=True)
                with open(os.path.join(d, fn), "wb") as f:
                    f.write(v.encode() if isinstance(v, str) else base64.b64decode(v["base64"]))
            with open(os.path.join(d, "config.json"), encoding="utf-8") as f:
                c["vocab_size"] = effective_vocab(json.load(f))
            code = forkrun.run(os.path.join(oracle, "refconvert.py"), [d, out, "--outtype", "f32", "--", "--vocab-only"], log)
            if code:
                lines = open(log, encoding="utf-8", errors="replace").read().strip().splitlines()
                c["error"] = next(l for l in reversed(lines) if "Error" in l or "Exception" in l)[:200].replace(tmp, "")
            else:
                c["kvs"], rows = want(out)
                n = next(kv[2] for kv in c["kvs"] if kv[0] == "tokenizer.ggml.tokens")
                base = {} if "tokenizer.model" in c["files"] else shared.setdefault(c["base"], {})
                c["rows"] = [r for r in rows if base.get(r[0]) != r]
                c["padded"] = [i for i in sorted(set(base) - {r[0] for r in rows}) if i < n]
                if base == {} and "tokenizer.model" not in c["files"]:
                    base.update((r[0], r) for r in rows)
    with open(os.path.join(HERE, "cases.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in CASES) + "\n]\n")
    print(len(CASES), "cases,", sum("error" in c for c in CASES), "refused")


main()
