"""Gradients of a loss at hidden states.  gradients.py IN.json OUT.bin

IN names a checkpoint ("model") and has the tokens, the length of chunks ("tokens", "chunk"), and the first position of
each chunk with a loss ("first"). transformers runs it in float64. OUT gets, as float64, the sum of -ln of the
probabilities of the next tokens, then its gradients at the input of each layer and at the output of the last one,
[layers + 1, tokens, width].
"""
import json, sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        r = json.load(f)
    torch.set_num_threads(2)
    config = AutoConfig.from_pretrained(r["model"])
    for key in ("hidden_act", "activation_function", "activation"):  # the runtime has one GELU
        if getattr(config, key, None) == "gelu":
            setattr(config, key, "gelu_new")
    if getattr(config, "query_pre_attn_scalar", None):  # in small models the runtime uses the head size
        config.query_pre_attn_scalar = config.head_dim
    model = AutoModelForCausalLM.from_pretrained(r["model"], config=config, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager").eval()
    for module in model.modules():
        if isinstance(module, torch.nn.GELU):
            module.approximate = "tanh"
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == config.num_hidden_layers]
    states = []

    def keep(x):
        x.retain_grad()
        states.append(x)

    for i, layer in enumerate(lists[0]):
        layer.register_forward_pre_hook(lambda _, args, kwargs: keep(args[0] if args else kwargs["hidden_states"]), with_kwargs=True)
    lists[0][-1].register_forward_hook(lambda _, args, out: keep(out[0] if isinstance(out, tuple) else out))
    chunk, first = r["chunk"], r["first"]
    ids = torch.tensor(r["tokens"]).reshape(-1, chunk)
    model.get_input_embeddings().weight.requires_grad_(True)
    logits = model(ids, use_cache=False).logits
    assert logits.dtype == torch.float64, logits.dtype
    p = torch.log_softmax(logits[:, first:-1], -1)
    loss = -p.gather(-1, ids[:, first + 1 :, None]).sum()
    loss.backward()
    assert len(states) == config.num_hidden_layers + 1, len(states)
    with open(sys.argv[2], "wb") as f:
        f.write(torch.cat([loss.detach().reshape(1)] + [x.grad.reshape(-1) for x in states]).numpy().tobytes())


main()
