"""Compares two models over a text in float64.  diverge.py IN.json OUT.json

IN has the tokens, the length of chunks ("tokens", "chunk"), and the sources of logits ("base", "model"): a file has
them as float32, a row for each position of the second half of a chunk; a folder is a checkpoint of a Llama, which
transformers runs, all of it in float64. OUT gets the figures that eval.Comparison has.
"""
import json, os, sys

import torch
from transformers.models.llama import modeling_llama as llama


def double_norm(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def double_rope(self, x, position_ids):
    dim = self.config.head_dim
    frequencies = self.config.rope_parameters["rope_theta"] ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = position_ids[:, :, None].double() * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rows(source, r):
    n, chunk = len(r["tokens"]) // r["chunk"], r["chunk"]
    if not os.path.isdir(source):
        with open(source, "rb") as f:
            data = torch.frombuffer(bytearray(f.read()), dtype=torch.float32)
        return data.reshape(n, chunk - chunk // 2, -1).double()
    llama.LlamaRMSNorm.forward, llama.LlamaRotaryEmbedding.forward = double_norm, double_rope
    model = llama.LlamaForCausalLM.from_pretrained(source, dtype=torch.float64, attn_implementation="sdpa")
    ids = torch.tensor(r["tokens"]).reshape(n, chunk)
    with torch.no_grad():
        out = torch.cat([model(ids[i : i + 1]).logits for i in range(n)])
    assert out.dtype == torch.float64
    return out[:, chunk // 2 :]


def figure(x):
    return {"Mean": x.mean().item(), "Error": (x.std(correction=1) / len(x) ** 0.5).item()}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        r = json.load(f)
    torch.set_num_threads(2)
    chunk = r["chunk"]
    p, q = (torch.log_softmax(rows(r[k], r)[:, :-1].flatten(0, 1), -1) for k in ("base", "model"))
    right = torch.tensor(r["tokens"]).reshape(-1, chunk)[:, chunk // 2 + 1 :].reshape(-1, 1)
    divergence = (p.exp() * (p - q)).sum(-1)
    base, model = -p.gather(1, right)[:, 0], -q.gather(1, right)[:, 0]
    change = (-model).exp() - (-base).exp()
    top, top5 = ([x.topk(k).indices for x in (p, q)] for k in (1, 5))
    shared = (top5[0][:, :, None] == top5[1][:, None, :]).any(-1).double().mean(-1)
    squares = figure(change.pow(2))
    rms = squares["Mean"] ** 0.5
    out = {
        "Base": {"Value": base.mean().exp().item(), "Error": base.mean().exp().item() * figure(base)["Error"], "Losses": base.tolist()},
        "Model": {"Value": model.mean().exp().item(), "Error": model.mean().exp().item() * figure(model)["Error"], "Losses": model.tolist()},
        "Divergence": figure(divergence),
        "Quantiles": torch.quantile(divergence, torch.tensor(r["ranks"], dtype=divergence.dtype)).tolist(),
        "LogRatio": figure(model - base),
        "DeltaP": figure(change),
        "DeltaPRMS": {"Mean": rms, "Error": squares["Error"] / (2 * rms)},
        "Top": figure((top[0] == top[1]).all(-1).double()),
        "Top5": figure(shared),
        "Divergences": divergence.tolist(),
    }
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(out, f)


main()
