"""A model of lm-evaluation-harness whose log-likelihoods `ggeval score` computes: all requests of a task in one run.

    import ggeval_lm, lm_eval
    lm_eval.simple_evaluate(model="ggeval", model_args="model=model-Q4_K_M.gguf", tasks=["arc_easy"])
"""
import json
import os
import shlex
import subprocess
import tempfile

from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


@register_model("ggeval")
class GGEval(LM):
    def __init__(self, model, ggeval="ggeval", flags="", **_):
        """model: what ggeval takes for MODEL; ggeval: the program; flags: more of its flags, such as --parse-special."""
        super().__init__()
        self.command = [ggeval, "score", model, "--progress", "none", *shlex.split(flags)]

    def score(self, requests):
        if not requests:
            return []
        with tempfile.TemporaryDirectory() as folder:
            asked, answered = os.path.join(folder, "requests.jsonl"), os.path.join(folder, "answers.jsonl")
            with open(asked, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(r) + "\n" for r in requests)
            subprocess.run([*self.command, "-f", asked, "-o", answered, "--quiet"], check=True)
            with open(answered, encoding="utf-8") as f:
                return [json.loads(line) for line in f]

    def loglikelihood(self, requests, disable_tqdm=False):
        rows = self.score([{"context": r.args[0], "continuation": r.args[1]} for r in requests])
        return [(row["logprob"], row["is_greedy"]) for row in rows]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return [row["logprob"] for row in self.score([{"text": r.args[0]} for r in requests])]

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError("ggeval scores texts and generates none: tasks of type generate_until need a server")
