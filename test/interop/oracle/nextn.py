#!/usr/bin/env python3
"""The MTP layer of a GLM-4.5 checkpoint, run with the decoder layer of transformers in float64: nextn.py DIR

Transformers leaves these layers out. Prints, for TestNextNOfTransformers of package eval, the sums of squares of the
inputs of matrices over 3 chunks of 20 tokens: all columns together, and the first two.
"""
import glob
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, Glm4MoeForCausalLM
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeDecoderLayer

CHUNK, CHUNKS = 20, 3


def fill(module, weights, prefix):
    """loads weights of a checkpoint, which has experts one by one"""
    own = module.state_dict()
    for name in own:
        full = prefix + name
        base = full.rpartition(".")[0]
        expert = [f"{base}.{e}." for e in range(module.config.n_routed_experts)] if ".experts." in name else []
        if full in weights:
            own[name] = weights[full]
        elif name.endswith("gate_up_proj"):
            own[name] = torch.stack([torch.cat([weights[e + "gate_proj.weight"], weights[e + "up_proj.weight"]])
                                     for e in expert])
        else:
            own[name] = torch.stack([weights[e + "down_proj.weight"] for e in expert])
    module.load_state_dict(own)


def main():
    torch.set_grad_enabled(False)
    config = AutoConfig.from_pretrained(sys.argv[1])
    config._attn_implementation = config._experts_implementation = "eager"
    weights = {}
    for path in glob.glob(sys.argv[1] + "/*.safetensors"):
        weights.update({k: v.to(torch.float64) for k, v in load_file(path).items()})
    n = config.num_hidden_layers
    at = f"model.layers.{n}."
    trunk = Glm4MoeForCausalLM(config).to(torch.float64).eval()
    fill(trunk, weights, "")
    layer = Glm4MoeDecoderLayer(config, n).to(torch.float64).eval()
    layer.config = config
    fill(layer, weights, at)

    sums, last = {}, {}

    def add(name, x):
        sums[name] = sums.get(name, 0) + x.reshape(-1, x.shape[-1]).pow(2).sum(0)

    for name, module in {"attn_q": layer.self_attn.q_proj, "attn_output": layer.self_attn.o_proj,
                         "ffn_gate_inp": layer.mlp.gate, "ffn_down_shexp": layer.mlp.shared_experts.down_proj}.items():
        module.register_forward_pre_hook(lambda _, a, name=name: add(name, a[0]))
    trunk.model.norm.register_forward_pre_hook(lambda _, a: last.update(h=a[0]))

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps) * weights[at + name + ".weight"]

    ids = torch.tensor([(i * i * 7 + 3 * i + 1) % config.vocab_size for i in range(CHUNK * CHUNKS)])
    for tokens in ids.reshape(CHUNKS, 1, CHUNK):
        trunk(tokens)
        x = torch.cat([norm(weights[at + "embed_tokens.weight"][tokens[:, 1:]], "enorm"),
                       norm(last["h"][:, :-1], "hnorm")], -1)
        add("nextn.eh_proj", x)
        x = x @ weights[at + "eh_proj.weight"].T
        places = torch.arange(1, CHUNK)[None]
        mask = torch.full((1, 1, CHUNK - 1, CHUNK - 1), float("-inf"), dtype=torch.float64).triu(1)
        y = layer(x, attention_mask=mask, position_ids=places, position_embeddings=trunk.model.rotary_emb(x, places))
        add("nextn.shared_head_head", norm(y[0] if isinstance(y, tuple) else y, "shared_head.norm"))
    for name, x in sums.items():
        print(f'{{"{name}", {x.sum():.7g}, [2]float64{{{x[0]:.7g}, {x[1]:.7g}}}}},')


main()
