"""Writes a small model of testdata with other weights and the same function, for the section
"Transformations before quantization" of docs/quality.md.

transform.py MODEL TEXT OUT KIND...

MODEL is the folder of a Llama, Qwen 3 or Mixtral without biases, TEXT a text for calibration, OUT the folder for the
new model (F32). The kinds are applied in this order, whatever the order of the arguments:

stream       norms are folded into the matrices that read them, then one Hadamard matrix with random signs is put on
             the residual stream; not with tied embeddings, as the last norm has no matrix to fold it into
values       for each KV head a Hadamard matrix with random signs between v_proj and o_proj
scales       each input channel of a matrix is multiplied by (D / M)^(1/8): D is its variance, given the channels after
             it, M the mean square of the weights that read it
activations  the same with (D / geometric mean of D)^(1/8), D the channel's mean square

What is multiplied into input channels is undone where they come from: in norms, v_proj and up_proj. Moments are of 8
chunks of 512 tokens. The last line that is printed is the mean divergence of the new model from the old one, in nats,
over 2 more chunks, in float64.
"""

import json, os, shutil, sys

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

LENGTH, CHUNKS, CHECKED, POWER, DAMP = 512, 8, 2, 1 / 8, 0.01


class Model:
    def __init__(self, folder):
        self.config = json.load(open(os.path.join(folder, "config.json")))
        self.w = {k: v.double() for k, v in load_file(os.path.join(folder, "model.safetensors")).items()}
        c = self.config
        self.layers, self.heads, self.kv = c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"]
        self.dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.experts = c.get("num_local_experts", 0)
        self.tied = c["tie_word_embeddings"]
        if biases := [k for k in self.w if k.endswith(".bias")]:
            sys.exit(f"transform.py: {folder} has biases: {biases[0]}")

    def ffns(self, i):
        """Names of gate, up and down of layer i, for each expert."""
        layer = f"model.layers.{i}."
        if not self.experts:
            return [[f"{layer}mlp.{n}_proj.weight" for n in ("gate", "up", "down")]]
        return [[f"{layer}block_sparse_moe.experts.{e}.{n}.weight" for n in ("w1", "w3", "w2")] for e in range(self.experts)]

    def router(self, i):
        return f"model.layers.{i}.block_sparse_moe.gate.weight"

    def norms(self):
        """(norm, matrices that read it) for all norms of the residual stream that have such matrices."""
        for i in range(self.layers):
            layer = f"model.layers.{i}."
            yield layer + "input_layernorm.weight", [f"{layer}self_attn.{n}_proj.weight" for n in "qkv"]
            readers = [n for f in self.ffns(i) for n in f[:2]] + ([self.router(i)] if self.experts else [])
            yield layer + "post_attention_layernorm.weight", readers
        if not self.tied:
            yield "model.norm.weight", ["lm_head.weight"]

    def writers(self):
        """Matrices that write the residual stream."""
        for i in range(self.layers):
            yield f"model.layers.{i}.self_attn.o_proj.weight"
            yield from (f[2] for f in self.ffns(i))

    def forward(self, tokens, see=lambda name, x: None):
        """Logits of a chunk. see gets the inputs of matrices, each by the name of one that reads them."""
        c, w, n = self.config, self.w, len(tokens)
        norm = lambda x, g: x / (x.square().mean(-1, keepdim=True) + c["rms_norm_eps"]).sqrt() * w[g]
        theta = (c.get("rope_parameters") or c)["rope_theta"]
        angle = torch.arange(n)[:, None] * theta ** (-torch.arange(0, self.dim, 2).double() / self.dim)
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        mask = torch.full((n, n), float("-inf"), dtype=torch.double).triu(1)

        def rotate(x):
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat((-b, a), -1) * sin

        x = w["model.embed_tokens.weight"][tokens]
        for i in range(self.layers):
            layer = f"model.layers.{i}."
            y = norm(x, layer + "input_layernorm.weight")
            see(layer + "self_attn.q_proj.weight", y)
            heads = {p: (y @ w[f"{layer}self_attn.{p}_proj.weight"].T).view(n, -1, self.dim).transpose(0, 1) for p in "qkv"}
            for p in "qk":
                if layer + f"self_attn.{p}_norm.weight" in w:
                    heads[p] = norm(heads[p], layer + f"self_attn.{p}_norm.weight")
                heads[p] = rotate(heads[p])
            k, v = (heads[p].repeat_interleave(self.heads // self.kv, 0) for p in "kv")
            y = F.softmax(heads["q"] @ k.transpose(1, 2) / self.dim**0.5 + mask, -1) @ v
            y = y.transpose(0, 1).reshape(n, -1)
            see(layer + "self_attn.o_proj.weight", y)
            x = x + y @ w[layer + "self_attn.o_proj.weight"].T
            y = norm(x, layer + "post_attention_layernorm.weight")
            see(self.ffns(i)[0][0], y)
            share = torch.ones(n, 1, dtype=torch.double)
            if self.experts:
                share = F.softmax(y @ w[self.router(i)].T, -1)
                top, at = share.topk(c["num_experts_per_tok"], -1)
                share = torch.zeros_like(share).scatter(1, at, top / top.sum(-1, keepdim=True))
            for e, (gate, up, down) in enumerate(self.ffns(i)):
                rows = share[:, e].nonzero()[:, 0]
                z = F.silu(y[rows] @ w[gate].T) * (y[rows] @ w[up].T)
                see(down, z)
                x = x.index_add(0, rows, share[rows, e : e + 1] * (z @ w[down].T))
        y = norm(x, "model.norm.weight")
        see("lm_head.weight", y)
        return y @ w["model.embed_tokens.weight" if self.tied else "lm_head.weight"].T

    def moments(self, chunks):
        """E[x xᵀ] of the inputs of matrices, by the name that forward gives them."""
        sums, count = {}, {}

        def see(name, x):
            sums[name] = sums.get(name, 0) + x.T @ x
            count[name] = count.get(name, 0) + len(x)

        for chunk in chunks:
            self.forward(chunk, see)
        return {name: sums[name] / max(1, count[name]) for name in sums}


def hadamard(n, random):
    """An orthogonal matrix of n rows with random signs."""
    h = torch.ones(1, 1, dtype=torch.double)
    while len(h) < n:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return h / n**0.5 * (torch.randint(0, 2, (n,), generator=random) * 2 - 1)


def rotate_stream(m, random):
    if m.tied:
        sys.exit("transform.py: tied embeddings: the residual stream cannot be rotated")
    r = hadamard(m.config["hidden_size"], random)
    for norm, readers in m.norms():
        for name in readers:
            m.w[name] = m.w[name] * m.w[norm] @ r
        m.w[norm] = torch.ones_like(m.w[norm])
    m.w["model.embed_tokens.weight"] = m.w["model.embed_tokens.weight"] @ r
    for name in m.writers():
        m.w[name] = r.T @ m.w[name]


def rotate_values(m, random):
    for i in range(m.layers):
        v, o = (f"model.layers.{i}.self_attn.{p}_proj.weight" for p in "vo")
        for head in range(m.kv):
            r = hadamard(m.dim, random)
            rows = slice(head * m.dim, (head + 1) * m.dim)
            m.w[v][rows] = r.T @ m.w[v][rows]
            group = m.heads // m.kv
            for q in range(head * group, (head + 1) * group):
                columns = slice(q * m.dim, (q + 1) * m.dim)
                m.w[o][:, columns] = m.w[o][:, columns] @ r


def given_later(h):
    """The variance of each channel, given those after it."""
    h = h + DAMP * h.diagonal().mean() * torch.eye(len(h), dtype=h.dtype)
    return torch.linalg.cholesky(h.flip(0, 1)).diagonal().square().flip(0)


def factors(d):
    s = d.clamp_min(d.mean() * 1e-6) ** POWER
    return s / s.log().mean().exp()


def scale(m, chunks, of_weights):
    """Multiplies input channels by factors of their variances, and of the weights that read them if of_weights is true."""
    moments = m.moments(chunks)

    def variances(name, readers, shared=lambda x: x):
        if not of_weights:
            return shared(moments[name].diagonal())
        return shared(given_later(moments[name])) / shared(sum(m.w[r].square().sum(0) for r in readers)).clamp_min(1e-30)

    for norm, readers in m.norms():
        s = factors(variances(readers[0], readers))
        for name in readers:
            m.w[name] = m.w[name] * s
        m.w[norm] = m.w[norm] / s
    heads = (m.kv, m.heads // m.kv, m.dim)
    for i in range(m.layers):
        v, o = (f"model.layers.{i}.self_attn.{p}_proj.weight" for p in "vo")
        # a channel of a KV head is one of each of its query heads
        s = factors(variances(o, [o], lambda x: x.view(heads).sum(1).view(-1)))
        m.w[v] = m.w[v] / s[:, None]
        m.w[o] = m.w[o] * s.view(m.kv, 1, m.dim).expand(heads).reshape(-1)
        for _, up, down in m.ffns(i):
            if down in moments:
                s = factors(variances(down, [down]))
                m.w[up] = m.w[up] / s[:, None]
                m.w[down] = m.w[down] * s


def divergence(old, new, chunks):
    p = [F.log_softmax(torch.cat([m.forward(c) for c in chunks]), -1) for m in (old, new)]
    return (p[0].exp() * (p[0] - p[1])).sum(-1).mean().item()


def main(model, text, out, *kinds):
    if unknown := set(kinds) - {"stream", "values", "scales", "activations"}:
        sys.exit(f"transform.py: unknown: {', '.join(sorted(unknown))}")
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    m, old = Model(model), Model(model)
    spm = sentencepiece.SentencePieceProcessor(model_file=os.path.join(model, "tokenizer.model"))
    tokens = spm.encode(open(text, encoding="utf-8").read())
    step = len(tokens) // (CHUNKS + CHECKED)
    chunks = [torch.tensor([spm.bos_id()] + tokens[i * step : i * step + LENGTH - 1]) for i in range(CHUNKS + CHECKED)]
    random = torch.Generator().manual_seed(1)
    if "stream" in kinds:
        rotate_stream(m, random)
    if "values" in kinds:
        rotate_values(m, random)
    for kind in ("scales", "activations"):
        if kind in kinds:
            scale(m, chunks[:CHUNKS], kind == "scales")
    m.w = {k: v.float() for k, v in m.w.items()}
    os.makedirs(out)
    save_file({k: v.contiguous() for k, v in m.w.items()}, os.path.join(out, "model.safetensors"), {"format": "pt"})
    for name in os.listdir(model):
        if name.startswith(("tokenizer", "special_tokens", "generation")):
            shutil.copy(os.path.join(model, name), out)
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump({**m.config, "dtype": "float32"}, f, indent=2)
    m.w = {k: v.double() for k, v in m.w.items()}
    print(f"{divergence(old, m, chunks[CHUNKS:]):.3g}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
