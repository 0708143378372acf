"""Log-likelihoods by docs/examples/ggeval_lm.py and by transformers in float64.  harness.py IN.json OUT.json

IN has a checkpoint of a Llama ("folder"), the same model as a GGUF file ("model"), the program ("ggeval"), the folder of
the class ("examples"), "pairs" of texts, "texts", and the number of tokens that the model reads at once ("max_length").
OUT gets lists of [ln p, greedy] of both, and whether lm-evaluation-harness is installed: where it is not, a stand-in has
the parts of its interface that the class uses. Tokens of pairs and windows of texts follow the harness's rules.
"""
import abc, importlib, json, sys, types

import torch
from transformers import AutoTokenizer
from transformers.models.llama import modeling_llama as llama


def stand_in():
    class LM(abc.ABC):
        def __init__(self):
            self._rank, self._world_size, self.cache_hook = 0, 1, None

        @abc.abstractmethod
        def loglikelihood(self, requests): ...

        @abc.abstractmethod
        def loglikelihood_rolling(self, requests): ...

        @abc.abstractmethod
        def generate_until(self, requests): ...

    registry = {}

    def register_model(*names):
        def decorate(cls):
            assert issubclass(cls, LM)
            registry.update({n: cls for n in names})
            return cls

        return decorate

    for name, values in {"lm_eval": {}, "lm_eval.api": {}, "lm_eval.api.model": {"LM": LM},
                         "lm_eval.api.registry": {"register_model": register_model, "get_model": registry.get}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(values)


def double_norm(self, x):
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def double_rope(self, x, position_ids):
    dim = self.config.head_dim
    frequencies = self.config.rope_parameters["rope_theta"] ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = position_ids[:, :, None].double() * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


class Reference:
    def __init__(self, folder, max_length):
        llama.LlamaRMSNorm.forward, llama.LlamaRotaryEmbedding.forward = double_norm, double_rope
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = llama.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa")
        self.max_length = max_length

    def ids(self, text, special):
        return self.tokenizer(text, add_special_tokens=special).input_ids

    def score(self, tokens, n):
        """ln p of the last n tokens, and whether each is the most probable one."""
        with torch.no_grad():
            p = torch.log_softmax(self.model(torch.tensor([tokens[:-1]])).logits[0, -n:], -1)
        right = torch.tensor(tokens[-n:])
        return p.gather(1, right[:, None]).sum().item(), (p.argmax(-1) == right).all().item()

    def pair(self, context, continuation):
        kept = context.rstrip()
        continuation = context[len(kept) :] + continuation
        if kept:
            before, whole = self.ids(kept, True), self.ids(kept + continuation, True)
        else:
            before = [self.tokenizer.bos_token_id]
            whole = before + self.ids(continuation, False)
        n = len(whole) - len(before)
        return self.score(whole[-(self.max_length + 1) :], n)

    def text(self, text):
        ids = [self.tokenizer.bos_token_id] + self.ids(text, False)
        total, done = 0.0, 1
        while done < len(ids):
            end = min(done + self.max_length, len(ids))
            total += self.score(ids[max(0, end - self.max_length - 1) : end], end - done)[0]
            done = end
        return total


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        r = json.load(f)
    torch.set_num_threads(1)
    try:
        import lm_eval.api.registry

        installed = True
    except ImportError:
        installed = False
        stand_in()
    sys.path.insert(0, r["examples"])
    importlib.import_module("ggeval_lm")
    lm = sys.modules["lm_eval.api.registry"].get_model("ggeval")(
        model=r["model"], ggeval=r["ggeval"], flags="--threads 1 --max-length %d" % r["max_length"], batch_size=1)
    instances = lambda rows: [types.SimpleNamespace(args=tuple(x)) for x in rows]
    try:
        lm.generate_until([])
        raise AssertionError("generate_until returned")
    except NotImplementedError:
        pass
    reference = Reference(r["folder"], r["max_length"])
    out = {
        "Installed": installed,
        "Pairs": [list(map(float, x)) for x in lm.loglikelihood(instances(r["pairs"]))],
        "WantPairs": [list(map(float, reference.pair(*x))) for x in r["pairs"]],
        "Texts": lm.loglikelihood_rolling(instances([x] for x in r["texts"])),
        "WantTexts": [reference.text(x) for x in r["texts"]],
    }
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(out, f)


main()
