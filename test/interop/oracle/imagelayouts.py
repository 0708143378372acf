"""Writes tiny image models twice: with their original names, and with those that the diffusers library gives them.

    imagelayouts.py READERS MKDIFF OUT

READERS is a folder with diffusers, as `make image-readers` puts it there; MKDIFF is mkdiff.py, which has names and shapes of
original checkpoints. The library's own converters rename, cut and swap. For every case, OUT/CASE has original.safetensors
and diffusers/ with config.json and diffusion_pytorch_model.safetensors. OUT/cases.json lists the cases.

The converters have the sizes of published models in them: tensors that they cut have as many rows, and few columns.
"""
import importlib.util, json, os, re, sys, types

import torch
from safetensors.torch import save_file

# case: model of mkdiff.py, its sizes, converter, class, rows by regular expression, names that diffusers leaves out
FLUX = {r"single_blocks\.\d+\.linear1\.": 3 * 3072 + 4 * 3072}
HUNYUAN = {r"single_blocks\.\d+\.linear1\.": 3 * 3072 + 4 * 32}
LUMINA = {r"attention\.qkv\.": 2304 + 768 + 768}
SMALL = dict(H=32, mlp=128, hd=16, ctx=24)
CASES = {
    "flux-dev": ("flux", dict(SMALL, vec=24), "convert_flux_transformer_checkpoint_to_diffusers", "FluxTransformer2DModel", FLUX, ""),
    "flux-fill-f16": ("flux", dict(SMALL, vec=24, inn=384, double=3), "convert_flux_transformer_checkpoint_to_diffusers", "FluxTransformer2DModel", FLUX, ""),
    "flux-schnell-mixed": ("flux", dict(SMALL, vec=24, guidance=0), "convert_flux_transformer_checkpoint_to_diffusers", "FluxTransformer2DModel", FLUX, ""),
    "chroma": ("chroma", SMALL, "convert_chroma_transformer_checkpoint_to_diffusers", "ChromaTransformer2DModel", FLUX, ""),
    "flux2-dev": ("flux2", dict(SMALL, vec=24), "convert_flux2_transformer_checkpoint_to_diffusers", "Flux2Transformer2DModel", {}, ""),
    "sd3-medium-f16": ("sd3", dict(SMALL, vec=24), "convert_sd3_transformer_checkpoint_to_diffusers", "SD3Transformer2DModel", {}, ""),
    "sd35-large": ("sd3", dict(SMALL, vec=24, qknorm=1), "convert_sd3_transformer_checkpoint_to_diffusers", "SD3Transformer2DModel", {}, ""),
    "sd35-medium": ("sd3", dict(SMALL, vec=24, qknorm=1, attn2=2), "convert_sd3_transformer_checkpoint_to_diffusers", "SD3Transformer2DModel", {}, ""),
    "aura": ("aura", dict(H=32, mlp=64, ctx=24), "convert_auraflow_transformer_checkpoint_to_diffusers", "AuraFlowTransformer2DModel", {}, ""),
    "cosmos": ("cosmos", dict(SMALL, lora=16), "convert_cosmos_transformer_checkpoint_to_diffusers", "CosmosTransformer3DModel", {}, r"^pos_embedder\."),
    "ltxv": ("ltxv", dict(H=32, mlp=64, ctx=24, blocks=28), "convert_ltx_transformer_checkpoint_to_diffusers", "LTXVideoTransformer3DModel", {}, ""),
    "hyvid": ("hyvid", dict(SMALL, vec=24), "convert_hunyuan_video_transformer_to_diffusers", "HunyuanVideoTransformer3DModel", HUNYUAN, ""),
    "hyimage": ("hyvid", dict(SMALL, image=1, double=20, single=40), "hunyuan_image", "HunyuanImageTransformer2DModel", {}, ""),
    "wan-t2v": ("wan", dict(H=32, mlp=64, ctx=24), "convert_wan_transformer_to_diffusers", "WanTransformer3DModel", {}, ""),
    "wan-t2v-mixed": ("wan", dict(H=64, mlp=64, ctx=24), "convert_wan_transformer_to_diffusers", "WanTransformer3DModel", {}, ""),
    "wan-i2v-f16": ("wan", dict(H=32, mlp=64, ctx=24, kind="i2v", inn=36), "convert_wan_transformer_to_diffusers", "WanTransformer3DModel", {}, ""),
    "wan-flf2v": ("wan", dict(H=32, mlp=64, ctx=24, kind="flf2v", inn=36), "wan", "WanTransformer3DModel", {}, ""),
    "wan-vace": ("wan", dict(H=32, mlp=64, ctx=24, kind="vace"), "convert_wan_transformer_to_diffusers", "WanVACETransformer3DModel", {}, ""),
    "lumina2": ("lumina2", SMALL, "convert_lumina2_to_diffusers", "Lumina2Transformer2DModel", LUMINA, r"^norm_final\."),
    "z-image": ("lumina2", dict(SMALL, z=1), "convert_z_image_transformer_checkpoint_to_diffusers", "ZImageTransformer2DModel", {}, ""),
    "z-image-f32": ("lumina2", dict(SMALL, z=1), "convert_z_image_transformer_checkpoint_to_diffusers", "ZImageTransformer2DModel", {}, ""),
    "mochi": ("", {}, "convert_mochi_transformer_checkpoint_to_diffusers", "MochiTransformer3DModel", {}, ""),
}
TYPES = {"f16": torch.float16, "f32": torch.float32}


def mochi():
    """The names of Mochi 1, which mkdiff.py lacks, all of 48 blocks; sizes are made up."""
    H, T, shapes = 16, 8, []

    def linear(name, rows, columns, bias=True):
        shapes.append((name + ".weight", (rows, columns)))
        if bias:
            shapes.append((name + ".bias", (rows,)))
    shapes += [("pos_frequencies", (3, 2, 4)), ("x_embedder.proj.weight", (H, 12, 2, 2)), ("x_embedder.proj.bias", (H,))]
    linear("t_embedder.mlp.0", H, 16)
    linear("t_embedder.mlp.2", H, H)
    for name, rows in (("to_kv", 2 * T), ("to_q", T), ("to_out", H)):
        linear("t5_y_embedder." + name, rows, T)
    linear("t5_yproj", T, 12)
    for b in range(48):
        q, last = f"blocks.{b}.", b == 47
        linear(q + "mod_x", 4 * H, H)
        linear(q + "mod_y", H if last else 4 * T, H)
        for s, n in (("x", H), ("y", T)):
            linear(q + "attn.qkv_" + s, 3 * H, n, False)
            for k in "qk":
                shapes.append((f"{q}attn.{k}_norm_{s}.weight", (4,)))
            if s == "x" or not last:
                linear(q + "attn.proj_" + s, n, H)
                linear(f"{q}mlp_{s}.w1", 4 * n, n, False)
                linear(f"{q}mlp_{s}.w2", n, 2 * n, False)
    linear("final_layer.linear", 48, H)
    linear("final_layer.mod", 2 * H, H)
    return shapes


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    own, sys.argv = sys.argv, [path]  # some read their arguments when they are imported
    try:
        spec.loader.exec_module(module)
    finally:
        sys.argv = own
    return module


def converter(readers, name):
    scripts = os.path.join(readers, "diffusers", "scripts")
    if name == "hunyuan_image":
        m = load(os.path.join(scripts, "convert_hunyuan_image_to_diffusers.py"))

        def convert(sd):
            sd = m.convert_hunyuan_dict_for_tensor_parallel(sd)
            named, rest = m.convert_hunyuan_image_transformer_checkpoint_to_diffusers(
                sd, use_byt5=True, guidance_distilled=True, use_meanflow=True)
            assert not rest, sorted(rest)
            return named
        return convert
    if name == "wan":
        try:
            import accelerate
        except ImportError:  # the script imports a name of it, nothing of which runs
            sys.modules["accelerate"] = types.ModuleType("accelerate")
            sys.modules["accelerate"].init_empty_weights = None
        renames = load(os.path.join(scripts, "convert_wan_to_diffusers.py")).TRANSFORMER_KEYS_RENAME_DICT

        def rename(name):
            for a, b in renames.items():
                name = name.replace(a, b)
            return name
        return lambda sd: {rename(k): v for k, v in sd.items()}
    from diffusers.loaders import single_file_utils
    return getattr(single_file_utils, name)


def main():
    readers, maker, out = sys.argv[1:]
    sys.path.insert(0, os.path.join(readers, "diffusers", "src"))
    torch.set_num_threads(1)
    mkdiff = load(maker)
    for case, (model, sizes, convert, cls, rows, lost) in CASES.items():
        if model:
            make, defaults = mkdiff.MODELS[model]
            net = mkdiff.Net(defaults, {k: v for k, v in sizes.items() if k in defaults})
            make(net)
            shapes = net.t
        else:
            shapes = mochi()
        kind, generator, original = case.rsplit("-", 1)[-1], torch.Generator().manual_seed(len(case)), {}
        for name, shape in shapes:
            shape = list(shape)
            for pattern, n in rows.items():
                if re.search(pattern, name):
                    shape = [n] + [4] * (len(shape) - 1)
            dtype = TYPES.get(kind, torch.bfloat16)
            if kind == "mixed" and (len(shape) == 1 or not name.endswith((".weight", ".bias"))):
                dtype = torch.float32
            if not (lost and re.search(lost, name)):
                original[name] = torch.randn(shape, generator=generator).to(dtype)
        folder = os.path.join(out, case)
        os.makedirs(os.path.join(folder, "diffusers"))
        save_file(original, os.path.join(folder, "original.safetensors"), metadata={"format": "pt"})
        named = converter(readers, convert)(dict(original))
        assert all(v is not None for v in named.values()), case
        if set(named) == set(original):
            raise ValueError(f"{case}: the names are the same")
        save_file({k: v.contiguous() for k, v in named.items()},
                  os.path.join(folder, "diffusers", "diffusion_pytorch_model.safetensors"), metadata={"format": "pt"})
        with open(os.path.join(folder, "diffusers", "config.json"), "w", encoding="utf-8") as f:
            json.dump({"_class_name": cls, "_diffusers_version": "0.40.0"}, f)
    with open(os.path.join(out, "cases.json"), "w", encoding="utf-8") as f:
        json.dump(sorted(CASES), f)


main()
