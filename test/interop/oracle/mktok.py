#!/usr/bin/env python3
"""Train the tiny tokenizers that mkhf.py uses.  mktok.py OUTDIR

The results are in tokenizer/testdata/tiny-*, because a training run is not the same
on every machine; run this again only to make new ones.
Needs: python3-sentencepiece, python3-tokenizers.
"""
import io, os, sys, glob, json
import sentencepiece as spm
from tokenizers import Tokenizer, models, trainers, pre_tokenizers, normalizers, decoders

OUT = sys.argv[1]

# A few lines in several scripts, so that the tokenizers hold non-ASCII pieces.
EXTRA = """
Zażółć gęślą jaźń. Съешь же ещё этих мягких французских булок. 我能吞下玻璃而不伤身体。
いろはにほへと ちりぬるを 색칠하다 한국어 문장입니다. الكتاب على الطاولة. Größe, façade, naïve, coöperate.
🚀 🦙 ✅ 😶 1234567890 3.14159 0x1f {"key": [1, 2, 3]} <b>bold</b> https://example.org/a?b=c&d=e
""" * 40


def corpus(limit=1_500_000):
    parts, size = [EXTRA], 0
    files = sorted(glob.glob("/usr/share/common-licenses/*") + glob.glob("/usr/lib/python3*/[a-m]*.py"))
    for f in files:
        try:
            t = open(f, encoding="utf-8").read(60_000)
        except Exception:
            continue
        parts.append(t)
        size += len(t)
        if size > limit:
            break
    return "\n".join(parts)


def lines(text):
    return [l for l in text.split("\n") if l.strip()]


def train_spm(name, fname, text, **kw):
    d = os.path.join(OUT, name)
    os.makedirs(d, exist_ok=True)
    buf = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines(text)), model_writer=buf,
                                   num_threads=1, minloglevel=2, **kw)
    open(os.path.join(d, fname), "wb").write(buf.getvalue())


def main():
    text = corpus()
    # Llama 2 layout: <unk> <s> </s>, 256 byte pieces, then BPE pieces.
    train_spm("tiny-spm", "tokenizer.model", text, model_type="bpe", vocab_size=1000, byte_fallback=True,
              unk_id=0, bos_id=1, eos_id=2, pad_id=-1, normalization_rule_name="identity",
              remove_extra_whitespaces=False, add_dummy_prefix=True, split_digits=True,
              allow_whitespace_only_pieces=True, character_coverage=0.9995)
    # Gemma layout: <pad> <eos> <bos> <unk>, unused and user defined pieces, no leading space.
    train_spm("tiny-spm-gemma", "tokenizer.model", text, model_type="bpe", vocab_size=1200, byte_fallback=True,
              pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
              user_defined_symbols=["<mask>", "<2mass>", "[@BOS@]", "<unused0>", "<unused1>", "<start_of_turn>",
                                    "<end_of_turn>", "\n", "\n\n", "▁▁", "▁▁▁▁", "<table>"],
              normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False,
              split_digits=True, allow_whitespace_only_pieces=True)
    # T5 layout: <pad> </s> <unk>, unigram, nmt_nfkc with a precompiled character map.
    train_spm("tiny-unigram-t5", "spiece.model", text, model_type="unigram", vocab_size=1000,
              pad_id=0, eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name="nmt_nfkc")
    # XLM-R layout: <unk> <s> </s>, unigram.
    train_spm("tiny-unigram-xlmr", "sentencepiece.bpe.model", text, model_type="unigram", vocab_size=1000,
              unk_id=0, bos_id=1, eos_id=2, pad_id=-1, normalization_rule_name="nmt_nfkc")

    # Byte-level BPE; mkhf.py puts the pre-tokenizer and added tokens of each family around it.
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(lines(text), trainers.BpeTrainer(
        vocab_size=1000, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    d = os.path.join(OUT, "tiny-bpe")
    os.makedirs(d, exist_ok=True)
    j = json.loads(tok.to_str())
    json.dump({"vocab": j["model"]["vocab"], "merges": j["model"]["merges"]},
              open(os.path.join(d, "bpe.json"), "w", encoding="utf-8"), ensure_ascii=False)

    # WordPiece in BERT layout.
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.train_from_iterator(lines(text), trainers.WordPieceTrainer(
        vocab_size=1000, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    d = os.path.join(OUT, "tiny-wordpiece")
    os.makedirs(d, exist_ok=True)
    v = sorted(tok.get_vocab().items(), key=lambda kv: kv[1])
    open(os.path.join(d, "vocab.txt"), "w", encoding="utf-8").write("".join(t + "\n" for t, _ in v))


main()
