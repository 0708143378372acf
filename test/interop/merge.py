"""Merge adapters into a checkpoint as PEFT does, with PyTorch in float32.  merge.py BASE OUT (ADAPTER SCALE)..."""
import json, math, os, shutil, sys

import torch
from safetensors.torch import load_file, save_file

base, out = sys.argv[1:3]
shutil.rmtree(out, ignore_errors=True)
shutil.copytree(base, out)
weights = {n: w.to(torch.float32) for n, w in load_file(os.path.join(base, "model.safetensors")).items()}
for adapter, scale in zip(sys.argv[3::2], sys.argv[4::2]):
    config = json.load(open(os.path.join(adapter, "adapter_config.json")))
    sides = {n.removeprefix("base_model.model."): x.to(torch.float32) for n, x in load_file(os.path.join(adapter, "adapter_model.safetensors")).items()}
    for name, a in sides.items():
        for of_a, of_b, back in ((".lora_A.weight", ".lora_B.weight", config["fan_in_fan_out"]), (".lora_embedding_A", ".lora_embedding_B", True)):
            if name.endswith(of_a):
                module = name.removesuffix(of_a)
                b = sides[module + of_b]
                r = a.shape[0]
                factor = config["lora_alpha"] / (math.sqrt(r) if config["use_rslora"] else r)
                delta = (b @ a) * (factor * float(scale))
                if module + ".weight" not in weights:  # GPT-2 is published without the first part of the names
                    module = module.removeprefix("transformer.")
                weights[module + ".weight"] += delta.T if back else delta
save_file(weights, os.path.join(out, "model.safetensors"), metadata={"format": "pt"})
