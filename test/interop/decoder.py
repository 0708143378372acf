"""Losses of an encoder-decoder.  decoder.py IN.json OUT.json

IN names a checkpoint ("model") and has lists of tokens: "sources", which the encoder reads, "inputs" and "next", which
the decoder reads and is to predict. transformers runs it in float64. Logits are the output matrix times the last states,
as in the runtime: T5 in transformers divides these states by the root of their length where the matrix is the embedding.
OUT gets -ln of the probability of each token of "next", one list after the other.
"""
import json, sys

import torch
from transformers import AutoModelForSeq2SeqLM


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        r = json.load(f)
    torch.set_num_threads(2)
    model = AutoModelForSeq2SeqLM.from_pretrained(r["model"], dtype=torch.float64, attn_implementation="eager").eval()
    losses = []
    with torch.no_grad():
        for source, ids, following in zip(r["sources"], r["inputs"], r["next"]):
            out = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids]), output_hidden_states=True)
            logits = model.lm_head(out.decoder_hidden_states[-1])[0]
            assert logits.dtype == torch.float64, logits.dtype
            p = torch.log_softmax(logits, -1)
            losses += (-p.gather(-1, torch.tensor(following)[:, None])).flatten().tolist()
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(losses, f)


main()
