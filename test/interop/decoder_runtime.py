"""Losses of an encoder-decoder by the runtime.  decoder_runtime.py IN.json OUT.json

IN names a GGUF file ("model") and has the lists of tokens of decoder.py; OUT is the same. The library of llama.cpp is
called as its tools do that run such models: llama_encode for the source, then llama_decode, here for a whole target.
The parameters of models and contexts are passed as memory that is larger than they are, with the library's defaults.
"""
import ctypes, json, sys

import numpy as np


class Params(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 1024)]


class Batch(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("n_seq", ctypes.POINTER(ctypes.c_int32)),
                ("seq", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        r = json.load(f)
    ctypes.CDLL("libggml.so.0", mode=ctypes.RTLD_GLOBAL).ggml_backend_load_all()
    lib = ctypes.CDLL("libllama.so.0")

    def call(name, result, *args):
        f = getattr(lib, name)
        f.restype = result
        return f(*args)

    pointer = ctypes.c_void_p
    model = call("llama_model_load_from_file", pointer, r["model"].encode(), call("llama_model_default_params", Params))
    assert model, "the runtime does not load the model"
    vocab = call("llama_vocab_n_tokens", ctypes.c_int32, pointer(call("llama_model_get_vocab", pointer, pointer(model))))

    def batch(ids):
        b = call("llama_batch_init", Batch, len(ids), 0, 1)
        b.n = len(ids)
        for i, token in enumerate(ids):
            b.token[i], b.pos[i], b.n_seq[i], b.logits[i] = token, i, 1, 1
            b.seq[i][0] = 0
        return b

    losses = []
    for source, ids, following in zip(r["sources"], r["inputs"], r["next"]):
        ctx = pointer(call("llama_init_from_model", pointer, pointer(model), call("llama_context_default_params", Params)))
        assert ctx, "no context"
        for what, tokens in (("llama_encode", source), ("llama_decode", ids)):
            code = call(what, ctypes.c_int32, ctx, batch(tokens))
            assert code == 0, (what, code)
        for i, token in enumerate(following):
            row = call("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), ctx, i)
            logits = np.ctypeslib.as_array(row, (vocab,)).astype(np.float64)
            most = logits.max()
            losses.append(float(most + np.log(np.exp(logits - most).sum()) - logits[token]))
        call("llama_free", None, ctx)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(losses, f)


main()
