"""Reads files of image models and of their text encoders with the code of the programs that run them.

    imagereaders.py READERS IN.json OUT.json

READERS is a folder with ComfyUI_GGUF (the repository of that name, with _ for -) and diffusers (its repository), as
`make image-readers` puts them there. IN is a list of objects:

    reader    gguf (gguf-py), unet and text (loader.py and dequant.py of ComfyUI-GGUF), diffusers
    file      the GGUF file; for text of qwen2vl, loader.py looks for the mmproj file in its folder
    sources   the safetensors files it was made of
    drop      regular expression: tensors of the sources that are not in the file
    cut       regular expression: what is removed from their names
    dims5     read 5 dimensions, as releases of gguf-py before the check for 4 do
    spiece, tokens   the SentencePiece model, or tokenizer.json, that the loader is to rebuild from the file's keys

Every tensor of the file has to be one of the sources, with its shape; unquantized ones have its values, rounded to the
file's type; quantized ones have the values that gguf-py's decoders give (by diffusers, which computes in float16, nearly
so), and those of the source within the error of the type. OUT gets one object for each: {"tensors", "values", "types", "rmse": worst by type, "error"}.
"""
import base64, json, math, os, re, sys, types

import numpy as np
import torch
from safetensors.torch import load_file

# Of a type, the largest root mean square of the errors over that of the values. The weights are normally distributed.
BOUNDS = {"Q2_K": 0.40, "Q3_K": 0.22, "Q4_0": 0.13, "Q4_1": 0.12, "Q4_K": 0.11, "IQ4_NL": 0.12, "IQ4_XS": 0.12,
          "Q5_0": 0.06, "Q5_1": 0.06, "Q5_K": 0.05, "Q6_K": 0.03, "Q8_0": 0.01}


def stub(folder):
    """What loader.py imports of ComfyUI, which is not installed: names alone, nothing of it runs."""
    for name in ("comfy", "comfy.ops", "comfy.lora", "comfy.model_management"):
        sys.modules[name] = types.ModuleType(name)
    comfy = sys.modules["comfy"]
    for name in ("ops", "lora", "model_management"):
        setattr(comfy, name, sys.modules["comfy." + name])
    layers = {n: type(n, (getattr(torch.nn, n),), {}) for n in ("Linear", "Conv2d", "Embedding", "LayerNorm", "GroupNorm")}
    comfy.ops.manual_cast = type("manual_cast", (), layers)
    package = types.ModuleType("ComfyUI_GGUF")  # without its __init__.py, which registers nodes
    package.__path__ = [os.path.join(folder, "ComfyUI_GGUF")]
    sys.modules["ComfyUI_GGUF"] = package
    from ComfyUI_GGUF import loader
    own = loader.get_field

    def get_field(reader, name, kind):  # int() of an array of one, which numpy had up to 2.3
        field = reader.get_field(name)
        if kind is int and field is not None:
            return int(field.parts[field.data[-1]][0])
        return own(reader, name, kind)
    loader.get_field = get_field


def raw(path):
    """Types, shapes and data as gguf-py reads them."""
    import gguf
    return {t.name: (t.tensor_type, tuple(int(n) for n in reversed(t.shape)), t.data) for t in gguf.GGUFReader(path).tensors}


def read(job):
    """Names with tensors in float32, shape and type; True if the loader keeps the file's names."""
    import gguf
    out = {}
    if job["reader"] == "gguf":
        for name, (kind, shape, data) in raw(job["file"]).items():
            out[name] = torch.from_numpy(gguf.quants.dequantize(data, kind).reshape(shape).copy()), kind
        return out
    if job["reader"] == "diffusers":
        from diffusers.models.model_loading_utils import load_gguf_checkpoint
        from diffusers.quantizers.gguf.utils import dequantize_gguf_tensor
        kinds = raw(job["file"])
        for name, t in load_gguf_checkpoint(job["file"]).items():
            t = dequantize_gguf_tensor(t) if hasattr(t, "quant_type") else t
            out[name] = t.to(torch.float32), kinds[name][0]
        return out
    from ComfyUI_GGUF.loader import gguf_sd_loader, gguf_clip_loader
    from ComfyUI_GGUF.dequant import dequantize_tensor
    sd = gguf_sd_loader(job["file"]) if job["reader"] == "unet" else gguf_clip_loader(job["file"])
    for name, t in sd.items():
        if re.match(r"visual\.blocks\.\d+\.attn_[qkv]\.", name):
            continue  # what loader.py has joined stays in its dict
        kind = getattr(t, "tensor_type", None)
        shape = tuple(t.shape)
        t = dequantize_tensor(t, dtype=torch.float32, dequant_dtype=torch.float32)
        t = torch.Tensor(t) if type(t) is not torch.Tensor else t
        assert tuple(t.size()) == shape, f"{name}: {tuple(t.size())} dequantized, {shape} announced"
        out[name] = t.to(torch.float32), kind
    return out


def sources(job):
    out = {}
    for path in job["sources"]:
        for name, t in load_file(path).items():
            if not (job.get("drop") and re.search(job["drop"], name)):
                out[re.sub(job["cut"], "", name) if job.get("cut") else name] = t
    return out


def rounded(t, kind):
    """Values of a source in a type of the file, as float32."""
    t = t.to(torch.float32)
    if kind == "F16":
        return t.to(torch.float16).to(torch.float32)
    return t.to(torch.bfloat16).to(torch.float32) if kind == "BF16" else t


def same(a, b):
    return torch.equal(torch.nan_to_num(a, nan=12345.0), torch.nan_to_num(b, nan=12345.0))


def check(job):
    import gguf
    got, want, stored = read(job), sources(job), raw(job["file"])
    result = {"tensors": len(got), "values": 0, "types": {}, "rmse": {}}
    if set(got) != set(want):
        raise ValueError(f"only in the file: {sorted(set(got) - set(want))[:3]}, only in the source: {sorted(set(want) - set(got))[:3]}")
    for name, (t, kind) in got.items():
        w = want[name]
        shape = tuple(t.size())
        # gguf-py and diffusers read no comfy.gguf.orig_shape: the values are compared in their order
        if job["reader"] in ("unet", "text") or "orig" not in job:
            if shape != tuple(w.shape) and not (job["reader"] == "gguf" and math.prod(shape) == w.numel() and w.ndim == 0):
                raise ValueError(f"{name}: shape {shape}, want {tuple(w.shape)}")
        t, exact = t.reshape(-1), w.reshape(-1)
        # a tensor that the loader has decoded already (BF16 of one dimension, an embedding, joined q, k and v)
        label = kind.name if kind is not None else "decoded"
        result["types"][label] = result["types"].get(label, 0) + 1
        result["values"] += t.numel()
        if label in BOUNDS:
            if name in stored:  # the loader keeps names: compare with the reference's decoders
                ref = torch.from_numpy(gguf.quants.dequantize(stored[name][2], kind).reshape(-1).copy())
                # diffusers computes in float16
                off = 0.003 * float(ref.abs().max()) if job["reader"] == "diffusers" else 0
                if not (same(t, ref) if off == 0 else float((t - ref).abs().max()) <= off):
                    raise ValueError(f"{name}: other values than gguf-py decodes, by {(t - ref).abs().max()}")
            exact = exact.to(torch.float32)
            err = float((t - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt().clamp_min(1e-30))
            result["rmse"][label] = max(err, result["rmse"].get(label, 0))
            if not err <= BOUNDS[label]:
                raise ValueError(f"{name}: error of {label} {err}, want at most {BOUNDS[label]}")
        elif label == "decoded":
            err = float((t - exact.to(torch.float32)).abs().max())
            scale = float(exact.to(torch.float32).abs().max())
            result["rmse"][label] = max(err / max(scale, 1e-30), result["rmse"].get(label, 0))
            if err > job.get("decoded", 0.004) * scale:
                raise ValueError(f"{name}: differs by {err} of {scale}")
        elif not same(t, rounded(exact, label)):
            raise ValueError(f"{name}: other values than those of the source in {label}")
    vocabulary(job)
    return result


def vocabulary(job):
    """Rebuilds the tokenizer as the loader does for the sizes of the published model alone."""
    from ComfyUI_GGUF import loader
    if job.get("spiece"):
        from sentencepiece import sentencepiece_model_pb2 as model
        m, own = model.ModelProto(), model.ModelProto()
        m.ParseFromString(bytes(loader.gguf_tokenizer_loader(job["file"], (256384, 4096)).numpy().tobytes()))
        with open(job["spiece"], "rb") as f:
            own.ParseFromString(f.read())
        if m.normalizer_spec.add_dummy_prefix != own.normalizer_spec.add_dummy_prefix:
            raise ValueError("add_dummy_prefix differs")
        for i, piece in enumerate(own.pieces):
            if (m.pieces[i].piece, m.pieces[i].score, m.pieces[i].type) != (piece.piece, piece.score, piece.type):
                raise ValueError(f"piece {i}: {m.pieces[i]}, want {piece}")
        if m.trainer_spec.pad_id != job["pad"] or m.trainer_spec.eos_id != job["eos"]:
            raise ValueError(f"pad {m.trainer_spec.pad_id}, eos {m.trainer_spec.eos_id}")
    if job.get("tokens"):
        data = json.loads(bytes(loader.gguf_tekken_tokenizer_loader(job["file"], (131072, 5120)).numpy().tobytes()))
        with open(job["tokens"], encoding="utf-8") as f:
            own = json.load(f)
        special = {t["content"]: t["id"] for t in own["added_tokens"] if t["special"]}
        if {t["token_str"]: t["rank"] for t in data["special_tokens"]} != special:
            raise ValueError(f"special tokens {data['special_tokens'][:3]}, want {special}")
        from transformers.convert_slow_tokenizer import bytes_to_unicode
        of = {v: k for k, v in bytes_to_unicode().items()}
        texts = sorted(set(own["model"]["vocab"]) - set(special), key=own["model"]["vocab"].get)
        want = [base64.b64encode(bytes(of[c] for c in text)).decode("ascii") for text in texts]
        got = [t["token_bytes"] for t in data["vocab"]]  # and those that fill the embedding
        if got[:len(want)] != want:
            raise ValueError(f"{len(got)} tokens, want {len(want)}, or others")


def main():
    folder, src, dst = sys.argv[1:]
    sys.path[:0] = [folder, os.path.join(folder, "diffusers", "src")]
    stub(folder)
    import gguf.gguf_reader as reader
    import logging
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    with open(src, encoding="utf-8") as f:
        jobs = json.load(f)
    results, most = [], getattr(reader, "GGML_MAX_DIMS", 4)
    for job in jobs:
        reader.GGML_MAX_DIMS = 5 if job.get("dims5") else most
        try:
            results.append(check(job))
        except Exception as e:
            results.append({"error": f"{type(e).__name__}: {e}"})
    with open(dst, "w", encoding="utf-8") as f:
        json.dump(results, f)


main()
