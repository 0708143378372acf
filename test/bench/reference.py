"""Measures the reference's encoders and decoders: the server that server.go describes, over libggml-base.

Times are CPU seconds of the thread. Everything runs on one thread.
"""
import ctypes, hashlib, json, sys, time

L = ctypes.CDLL("libggml-base.so.0")
L.ggml_quantize_chunk.restype = ctypes.c_size_t
L.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                  ctypes.c_int64, ctypes.c_void_p]
L.ggml_quantize_init.argtypes = [ctypes.c_int]
L.ggml_row_size.restype = ctypes.c_size_t
L.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]


class Traits(ctypes.Structure):
    _fields_ = [("type_name", ctypes.c_char_p), ("blck_size", ctypes.c_int64), ("blck_size_interleave", ctypes.c_int64),
                ("type_size", ctypes.c_size_t), ("is_quantized", ctypes.c_bool), ("to_float", ctypes.c_void_p),
                ("from_float_ref", ctypes.c_void_p)]


L.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
L.ggml_get_type_traits.argtypes = [ctypes.c_int]
TO_FLOAT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    return ctypes.create_string_buffer(data, len(data))


def decoder(t):
    p = L.ggml_get_type_traits(t).contents.to_float
    return TO_FLOAT(p) if p else None  # F32 has none


class Server:
    def load(self, r):
        self.x, self.weights, self.row_len = load(r["input"]), load(r["weights"]), r["row_len"]
        self.rows = len(self.x) // 4 // self.row_len
        self.y = ctypes.create_string_buffer(len(self.x))
        return {}

    def chunk(self, r, dst, rows):
        return L.ggml_quantize_chunk(r["id"], self.x, dst, 0, rows, self.row_len,
                                     self.weights if r.get("importance") else None)

    def encode(self, r):
        t = r["id"]
        size = r["row_bytes"] * self.rows
        if L.ggml_row_size(t, self.row_len) != r["row_bytes"]:
            raise ValueError("%d bytes in a row, want %d" % (L.ggml_row_size(t, self.row_len), r["row_bytes"]))
        L.ggml_quantize_init(t)
        self.blocks, self.dst = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
        if self.chunk(r, self.blocks, self.rows) != size:
            raise ValueError("ggml_quantize_chunk wrote another number of bytes")
        a = {"sum": hashlib.sha256(self.blocks).hexdigest()}
        to_float = decoder(t)
        if to_float:
            to_float(self.blocks, self.y, len(self.x) // 4)
            a["decoded"] = hashlib.sha256(self.y).hexdigest()
        return a

    def repeat(self, n, f):
        start = time.thread_time()
        while n > 0:
            f(min(n, self.rows))
            n -= self.rows
        return {"seconds": time.thread_time() - start}

    def quantize(self, r):
        return self.repeat(r["rows"], lambda n: self.chunk(r, self.dst, n))

    def dequantize(self, r):
        to_float = decoder(r["id"])
        if not to_float:
            return {}
        return self.repeat(r["rows"], lambda n: to_float(self.blocks, self.y, n * self.row_len))


server = Server()
for line in sys.stdin:
    request = json.loads(line)
    try:
        result = getattr(server, request["op"])(request)
    except Exception as e:
        result = {"error": repr(e)}
    print(json.dumps(result), flush=True)
