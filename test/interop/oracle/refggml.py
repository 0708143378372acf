#!/usr/bin/env python3
"""Convert a Llama file in a format older than GGUF, with the reference's writer.  Run inside the chroot.

  refggml.py IN.bin OUT.gguf [eps [gqa [context]]]

The distribution does not ship the reference's program for these files. This script writes what the published
program writes: keys, their order, texts and types of tokens, names of tensors. Shapes are in elements, as the
writer of that time expected them; today's writer takes the shapes of the published program for bytes, and
halves or refuses them."""
import os, struct, sys

os.environ["NO_LOCAL_GGUF"] = "1"
import gguf
import numpy as np

FORMATS = {b"lmgg": "GGML", b"fmgg": "GGMF", b"tjgg": "GGJT"}
TYPES = {0: "ALL_F32", 1: "MOSTLY_F16", 2: "MOSTLY_Q4_0", 3: "MOSTLY_Q4_1", 7: "MOSTLY_Q8_0", 8: "MOSTLY_Q5_0", 9: "MOSTLY_Q5_1", 12: "MOSTLY_Q3_K_M",
         15: "MOSTLY_Q4_K_M", 18: "MOSTLY_Q6_K"}


def main():
    path, out = sys.argv[1:3]
    eps, gqa, context = (sys.argv[3:] + ["5e-06", "1", "2048"][len(sys.argv) - 3:])
    blob = open(path, "rb").read()
    at = 4

    def u32(n=1):
        nonlocal at
        v = struct.unpack_from(f"<{n}I", blob, at)
        at += 4 * n
        return v if n > 1 else v[0]

    def text(n):
        nonlocal at
        at += n
        return blob[at - n:at]
    kind = FORMATS[blob[:4]]
    version = 1 if kind == "GGML" else u32()
    vocab, embd, _, heads, layers, _, ftype = u32(7)
    tokens, scores, types = [], [], []
    for i in range(vocab):
        t = text(u32())
        scores.append(0.0 if kind == "GGML" else struct.unpack("<f", text(4))[0])
        if i < 3:
            t, y = (b"<unk>", b"<s>", b"</s>")[i], 3 if i else 2
        elif not t:
            y = 3
        elif i < 259 and len(t) == 1:
            t, y = b"<0x%02X>" % t[0], 6
        else:
            t, y = t.replace(b" ", "\u2581".encode()), 1
        tokens.append(t)
        types.append(y)
    tensors = {}
    while at < len(blob):
        dims, length, dtype = u32(3)
        ne = [u32() for _ in range(dims)]
        name = text(length).decode()
        if kind == "GGJT":
            at = (at + 31) // 32 * 32
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(dtype)]
        tensors[name] = dtype, ne, text(int(np.prod(ne)) // block * size)
    w = gguf.GGUFWriter(out, "llama")
    w.add_name(os.path.basename(path))
    w.add_description(f"converted from legacy {kind}v{version} {TYPES[ftype]} format")
    w.add_file_type(ftype)
    w.add_context_length(int(context))
    w.add_embedding_length(embd)
    w.add_block_count(layers)
    w.add_feed_forward_length(tensors["layers.0.feed_forward.w1.weight"][1][1])
    w.add_rope_dimension_count(embd // heads)
    w.add_head_count(heads)
    w.add_head_count_kv(heads // int(gqa))
    w.add_layer_norm_rms_eps(float(eps))
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(tokens)
    w.add_token_scores(scores)
    w.add_token_types(types)
    w.add_unk_token_id(0)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
    for name, (dtype, ne, data) in tensors.items():
        raw = gguf.GGMLQuantizationType(dtype)
        plain = {0: np.float32, 1: np.float16}.get(dtype)
        block, size = gguf.GGML_QUANT_SIZES[raw]
        shape = ne[::-1] if plain else ne[:0:-1] + [ne[0] // block * size]
        w.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.frombuffer(data, plain or np.uint8).reshape(shape), raw_dtype=None if plain else raw)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
