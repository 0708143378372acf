"""Trains one of the small models of testdata that docs/quality.md measures, from the texts
that `bin/quality -texts DIR` cuts.

train.py MODEL GOLLAMA TEXTS OUT MINUTES

MODEL is a name of MODELS, GOLLAMA the folder of the model that gives the tokenizer and the initial
weights. The learning rate depends on the elapsed time: it is almost zero when the minutes are over,
however fast the machine is. OUT gets the newest weights every five minutes, in BF16; SIGTERM ends
training early and saves them. If OUT exists, training continues from it, with a new learning rate
schedule. One thread. Weights and activations are BF16, the optimizer's copy of the weights is float32."""

import math, os, shutil, signal, sys, time

import sentencepiece
import torch
import torch.nn.functional as F
from transformers import AttentionInterface, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.models.mixtral.modeling_mixtral import MixtralExperts, load_balancing_loss_func

LENGTH = 512  # tokens of a sequence, the first of them BOS
COMMON = dict(vocab_size=4096, bos_token_id=1, eos_token_id=2, max_position_embeddings=1024,
              rope_theta=10000.0, attention_dropout=0.0)

# name → language of the texts, class, settings, initialization
MODELS = {
    # a new model, which learns from the text and from gollama's probabilities
    "qwengo": ("Go", Qwen3ForCausalLM, Qwen3Config(
        hidden_size=512, intermediate_size=1536, num_hidden_layers=3, num_attention_heads=8,
        num_key_value_heads=2, head_dim=64, tie_word_embeddings=True, **COMMON), "taught"),
    # experts that are initialized with parts of gollama's layers, and learn another language
    "mixpy": ("Python", MixtralForCausalLM, MixtralConfig(
        hidden_size=256, intermediate_size=256, num_hidden_layers=5, num_attention_heads=8,
        num_key_value_heads=2, head_dim=32, num_local_experts=8, num_experts_per_tok=2,
        output_router_logits=True, router_aux_loss_coef=0.01, router_jitter_noise=0.0,
        sliding_window=None, tie_word_embeddings=False, rms_norm_eps=1e-5, **COMMON), "upcycled"),
    # a new model of prose, with biases; only its embeddings and its output matrix begin with gollama's
    "qwendoc": ("English", Qwen2ForCausalLM, Qwen2Config(
        hidden_size=512, intermediate_size=1280, num_hidden_layers=5, num_attention_heads=8,
        num_key_value_heads=4, tie_word_embeddings=False, **COMMON), "spelled"),
}
BATCH, RATE = 4, 1.5e-3
LAYERS = [0, 1, 2, 4, 5]  # of gollama's six: they become the MoE layers


def attention(module, query, key, value, mask, scaling, **_):
    """Causal attention in BF16, which on CPUs is several times as fast as torch's own."""
    b, heads, n, size = query.shape
    groups = heads // key.shape[1]
    key, value = (t[:, :, None].expand(b, -1, groups, n, size).reshape(b * heads, n, size) for t in (key, value))
    causal = torch.full((n, n), float("-inf"), dtype=query.dtype).triu(1).expand(b * heads, n, n)
    p = F.softmax(torch.baddbmm(causal, query.reshape(b * heads, n, size), key.transpose(1, 2), alpha=scaling), -1)
    return (p @ value).reshape(b, heads, n, size).transpose(1, 2), None


AttentionInterface.register("bf16", attention)


def experts(self, hidden, index, weights):
    """Experts as one batched matrix product: tokens are sorted by expert, and padded to the same multiple
    of 64 for each, since every new shape costs more than the product."""
    tokens, k = index.shape
    order = index.flatten().argsort(stable=True)
    who = index.flatten()[order]
    count = torch.bincount(who, minlength=self.num_experts)
    cap = -(-int(count.max()) // 64) * 64
    at = who * cap + torch.arange(tokens * k) - (count.cumsum(0) - count)[who]
    x = hidden.new_zeros(self.num_experts * cap, hidden.shape[-1]).index_copy(0, at, hidden[order // k]).view(self.num_experts, cap, -1)
    gate, up = torch.bmm(x, self.gate_up_proj.transpose(1, 2)).chunk(2, -1)
    y = torch.bmm(F.silu(gate) * up, self.down_proj.transpose(1, 2)).flatten(0, 1)
    out = y[at] * weights.flatten()[order, None].to(y.dtype)
    return torch.zeros_like(hidden).index_add(0, order // k, out)


MixtralExperts.forward = experts


class Muon:
    """Muon (K. Jordan): momentum whose singular values are all made about one, for the matrices of
    layers; its steps are about as large as Adam's. Models learn more from the same number of tokens."""

    def __init__(self, params):
        self.params, self.kept = params, {}

    def step(self, rate):
        groups = {}
        for p in self.params:
            m = self.kept.setdefault(p, torch.zeros_like(p))
            m.lerp_(p.grad, 0.05)
            u = p.grad.lerp(m, 0.95).view(-1, *p.shape[-2:])
            groups.setdefault(p.shape[-2:], []).append((p, u))
        for (rows, cols), alike in groups.items():
            x = torch.cat([u for _, u in alike]).bfloat16()
            if rows > cols:
                x = x.transpose(1, 2)
            x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
            for _ in range(5):
                a = torch.bmm(x, x.transpose(1, 2))
                b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
                x = torch.baddbmm(x, b, x, beta=3.4445)
            if rows > cols:
                x = x.transpose(1, 2)
            at = 0
            for p, u in alike:
                p.data.mul_(1 - 0.1 * rate).add_(x[at:at + len(u)].float().reshape(p.shape), alpha=-rate * 0.2 * max(rows, cols) ** 0.5)
                at += len(u)


def taught(model, old):
    """Initializes each row of the tied embeddings with the old model's input and output rows side
    by side."""
    rows, out = old.model.embed_tokens.weight, old.lm_head.weight
    model.model.embed_tokens.weight.data = torch.cat([rows / rows.std(), out / out.std()], 1).detach() * 0.03


def spelled(model, old):
    """Initializes the embeddings as taught does, and the output matrix with the same rows."""
    taught(model, old)
    model.lm_head.weight.data = model.model.embed_tokens.weight.data.clone()


def upcycled(model, old):
    """Initializes from the old model's layers: an expert is a third of the feed-forward block,
    times three because the weights of a token's two experts add up to 1."""
    new, w = model.state_dict(), old.state_dict()
    for name in list(new):
        to = name
        if name.startswith("model.layers."):
            at = int(name.split(".")[2])
            to = name.replace(f"layers.{at}.", f"layers.{LAYERS[at]}.")
        if to in w:
            new[name] = w[to].clone()
        elif "experts" in name:
            layer = old.model.layers[LAYERS[at]].mlp
            width = new[name].shape[-1]
            for e in range(8):
                part = [torch.arange(i * width, (i + 1) * width) for i in range(3)][e % 3] if e < 6 else torch.arange(e - 6, 3 * width, 3)
                if name.endswith("gate_up_proj"):
                    new[name][e] = torch.cat([layer.gate_proj.weight[part], layer.up_proj.weight[part]])
                elif name.endswith("down_proj"):
                    new[name][e] = 3 * layer.down_proj.weight[:, part]
    model.load_state_dict(new)


def tokens(tokenizer, path):
    """The tokens of a text, cached in a file next to it."""
    kept = path + ".pt"
    if not os.path.exists(kept):
        text = open(path, encoding="utf-8", errors="replace").read()
        ids = []
        for start in range(0, len(text), 1 << 20):
            ids += tokenizer.encode(text[start:start + (1 << 20)])
        torch.save(torch.tensor(ids, dtype=torch.int16), kept)
    return torch.load(kept)


def loss_of(model, ids, teacher=None):
    """The mean loss of sequences (batch, LENGTH) of tokens, and further terms to minimize: the
    divergence from a teacher, and the load-balancing loss of experts."""
    output = model(input_ids=ids[:, :-1])
    logits = output.logits.flatten(0, 1)
    loss, extra = F.cross_entropy(logits, ids[:, 1:].flatten()), 0.0
    if teacher is not None:
        with torch.no_grad():
            p = F.softmax(teacher(input_ids=ids[:, :-1]).logits.flatten(0, 1), -1)
        extra = F.cross_entropy(logits, p)
    if output.get("router_logits") is not None:
        c = model.config
        extra = c.router_aux_loss_coef * load_balancing_loss_func(output.router_logits, c.num_local_experts, c.num_experts_per_tok)
    return loss, extra


def pick(data, starts):
    ids = torch.stack([data[s:s + LENGTH] for s in starts]).long()
    ids[:, 0] = 1
    return ids


def main():
    name, gollama, texts, out, minutes = sys.argv[1:]
    torch.set_num_threads(1)
    language, cls, config, begin = MODELS[name]
    sp = sentencepiece.SentencePieceProcessor(os.path.join(gollama, "tokenizer.model"))
    data = tokens(sp, os.path.join(texts, language + "-training.txt"))
    held = tokens(sp, os.path.join(texts, language + "-development.txt"))
    again = os.path.exists(out)
    torch.manual_seed(int(time.time()) if again else 1)
    model = cls.from_pretrained(out, dtype=torch.float32) if again else cls(config)
    old = LlamaForCausalLM.from_pretrained(gollama, dtype=torch.float32)
    if not again:
        {"taught": taught, "spelled": spelled, "upcycled": upcycled}[begin](model, old)
    teacher = old.to(torch.bfloat16) if begin == "taught" else None
    for m in (model, old):
        m.set_attn_implementation("bf16")
    master = {n: torch.nn.Parameter(p.detach().float().clone()) for n, p in model.named_parameters()}
    model.to(torch.bfloat16)
    total = sum(p.numel() for p in master.values())
    print(f"{total} weights, {len(data)} tokens", flush=True)
    # Muon trains the matrices of layers; AdamW the rest, with the routers, which are small
    inner = [p for n, p in master.items() if p.dim() >= 2 and not ("embed" in n or "lm_head" in n or "mlp.gate." in n)]
    own = {id(p) for p in inner}
    muon = Muon(inner)
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in master.values() if p.dim() >= 2 and id(p) not in own], "weight_decay": 0.1},
         {"params": [p for p in master.values() if p.dim() < 2], "weight_decay": 0.0}],
        lr=RATE, betas=(0.9, 0.95), fused=True)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))

    def save():
        tmp = out + ".tmp"
        shutil.rmtree(tmp, ignore_errors=True)
        model.save_pretrained(tmp)
        for file in ("tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"):
            shutil.copy(os.path.join(gollama, file), tmp)
        shutil.rmtree(out, ignore_errors=True)
        os.rename(tmp, out)

    def unseen_loss():
        model.eval()
        with torch.no_grad():
            losses = [loss_of(model, pick(held, range(s, s + 4 * LENGTH, LENGTH)))[0].item()
                      for s in range(0, len(held) - 4 * LENGTH, 16 * LENGTH)]
        model.train()
        return sum(losses) / len(losses)

    clock, end = time.time(), 60 * float(minutes)
    saved, step, mean = clock, 0, 0.0
    while not stop and (spent := time.time() - clock) < end:
        part = spent / end
        rate = RATE * min(1, (step + 1) / 50) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * part)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids = pick(data, torch.randint(len(data) - LENGTH, (BATCH,)).tolist())
        loss, extra = loss_of(model, ids, teacher)
        (loss + extra).backward()
        for n, p in model.named_parameters():
            master[n].grad = p.grad.float()
            p.grad = None
        torch.nn.utils.clip_grad_norm_(master.values(), 1.0)
        optimizer.step()
        with torch.no_grad():
            muon.step(rate)
            for n, p in model.named_parameters():
                p.copy_(master[n])
        step += 1
        mean += (loss.item() - mean) / (step if step < 50 else 50)
        if step % 50 == 0:
            now = time.time()
            print(f"{step} steps, {step * BATCH * LENGTH} tokens, {int(now - clock)} s, {int(time.process_time())} s of CPU, "
                  f"rate {rate:.2e}, loss {mean:.4f}", flush=True)
            if now - saved > 300:
                saved = now
                save()
                print(f"loss of unseen text {unseen_loss():.4f}", flush=True)
    save()
    print(f"end: {step} steps, loss of unseen text {unseen_loss():.4f}", flush=True)


main()
