package quantize

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/quants"
	"ggforge/test/gen"
)

// The inputs of testdata/imatrix_golden.json. Tensor T of float32 values holds
// gen.Salted("T|", "normal/RxN"), its importance gen.SaltedImportance("T|", "uni").

// shape is a tensor without its data.
type shape struct {
	name string
	ne   []int64
}

// attention returns the tensors of a layer that both models have.
func attention(layer string) []shape {
	s := []shape{{layer + "attn_norm.weight", []int64{256}}}
	for _, n := range []string{"q", "k", "v", "output"} {
		s = append(s, shape{layer + "attn_" + n + ".weight", []int64{256, 16}})
	}
	return append(s, shape{layer + "ffn_norm.weight", []int64{256}})
}

func denseShapes(output bool) []shape {
	s := []shape{{"token_embd.weight", []int64{256, 24}}}
	for i := range 3 {
		b := fmt.Sprintf("blk.%d.", i)
		s = append(s, attention(b)...)
		s = append(s, shape{b + "ffn_gate.weight", []int64{256, 20}}, shape{b + "ffn_up.weight", []int64{256, 20}},
			shape{b + "ffn_down.weight", []int64{512, 9}})
	}
	s = append(s, shape{"output_norm.weight", []int64{256}})
	if output {
		s = append(s, shape{"output.weight", []int64{256, 24}})
	}
	return s
}

func moeShapes() []shape {
	s := []shape{{"token_embd.weight", []int64{256, 24}}}
	for i := range 2 {
		b := fmt.Sprintf("blk.%d.", i)
		s = append(s, attention(b)...)
		s = append(s, shape{b + "ffn_gate_inp.weight", []int64{256, 4}})
		for _, n := range []string{"gate", "up", "down"} {
			s = append(s, shape{b + "ffn_" + n + "_exps.weight", []int64{256, 12, 4}})
		}
	}
	return append(s, shape{"output_norm.weight", []int64{256}}, shape{"output.weight", []int64{256, 24}})
}

func goldenMeta(layers, experts uint32, extra ...gguf.KV) gguf.Metadata {
	m := gguf.Metadata{
		{Key: "general.architecture", Value: gguf.String("llama")}, {Key: "general.name", Value: gguf.String("tiny")},
		{Key: "llama.block_count", Value: gguf.Uint32(layers)}, {Key: "llama.context_length", Value: gguf.Uint32(512)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(256)},
		{Key: "llama.feed_forward_length", Value: gguf.Uint32(512)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(8)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(2)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: gguf.Float32(1e-5)},
		{Key: "llama.rope.dimension_count", Value: gguf.Uint32(32)},
	}
	if experts > 0 {
		m = append(m, gguf.KV{Key: "llama.expert_count", Value: gguf.Uint32(experts)},
			gguf.KV{Key: "llama.expert_used_count", Value: gguf.Uint32(2)})
	}
	return append(m, extra...)
}

// weightsOf returns the data of a tensor of float32 values.
func weightsOf(s shape) []float32 {
	x, _ := gen.Salted(s.name+"|", fmt.Sprintf("normal/%dx%d", gguf.Rows(s.ne), s.ne[0]))
	return x
}

// matrices reports whether a tensor gets another type than F32.
func matrices(s shape) bool { return len(s.ne) > 1 && !strings.Contains(s.name, "norm") }

func tensorOf(s shape, typ gguf.Type) imatrixtest.Tensor {
	if !matrices(s) {
		typ = gguf.TypeF32
	}
	x := weightsOf(s)
	data := make([]byte, gguf.DataBytes(typ, s.ne))
	if err := quants.Lookup(typ).Quantize(data, x, int(s.ne[0]), nil); err != nil {
		panic(err)
	}
	return imatrixtest.Tensor{Name: s.name, Type: typ, NE: s.ne, Data: data}
}

func tensorsOf(shapes []shape, typ gguf.Type) []imatrixtest.Tensor {
	var t []imatrixtest.Tensor
	for _, s := range shapes {
		t = append(t, tensorOf(s, typ))
	}
	return t
}

func integers(name string) imatrixtest.Tensor {
	var v []int32
	for i := range int32(16) {
		v = append(v, i)
	}
	return imatrixtest.Tensor{Name: name, Type: gguf.TypeI32, NE: []int64{8, 2}, Data: imatrixtest.Int32s(v...)}
}

// encode is imatrixtest.Encode with another alignment.
func encode(m gguf.Metadata, tensors []imatrixtest.Tensor, alignment int64) []byte {
	infos := make([]gguf.Tensor, len(tensors))
	for i, t := range tensors {
		infos[i] = gguf.Tensor{Name: t.Name, NE: t.NE, Type: t.Type}
	}
	size := gguf.Layout(infos, alignment)
	b := gguf.AppendHeader(nil, m, infos, alignment)
	body := make([]byte, size)
	for i, t := range tensors {
		copy(body[infos[i].Offset:], t.Data)
	}
	return append(b, body...)
}

// goldenInputs writes all inputs into dir.
func goldenInputs(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, data []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dense, moe := denseShapes(true), moeShapes()
	meta := goldenMeta(3, 0)
	model := func(name string, m gguf.Metadata, tensors []imatrixtest.Tensor) {
		write(name+".gguf", encode(m, tensors, 32))
	}
	kv := func(key string, v gguf.Value) gguf.KV { return gguf.KV{Key: key, Value: v} }

	f32 := tensorsOf(dense, gguf.TypeF32)
	with := func(more ...imatrixtest.Tensor) []imatrixtest.Tensor { return append(slices.Clone(f32), more...) }
	model("dense", meta, f32)
	model("tied", meta, tensorsOf(denseShapes(false), gguf.TypeF32))
	model("dense16", meta, tensorsOf(dense, gguf.TypeF16))
	model("densebf", meta, tensorsOf(dense, gguf.TypeBF16))
	model("dense80", meta, tensorsOf(dense, gguf.TypeQ8_0))
	model("moe", goldenMeta(2, 4), tensorsOf(moe, gguf.TypeF32))
	model("moe16", goldenMeta(2, 4), tensorsOf(moe, gguf.TypeF16))
	write("meta.gguf", encode(goldenMeta(3, 0, kv("general.file_type", gguf.Uint32(0)),
		kv("general.quantization_version", gguf.Uint32(1)),
		kv("general.alignment", gguf.Uint32(64)), kv("tokenizer.ggml.model", gguf.String("no_vocab")),
		kv("zz.last", gguf.Bool(true)),
		kv("zz.arr", gguf.Int32s([]int32{1, -2, 3})), kv("zz.empty", gguf.Strings(nil))),
		with(integers("blk.0.ffn_gate_tid2eid.weight"),
			tensorOf(shape{"blk.0.odd.weight", []int64{72, 3}}, gguf.TypeF32),
			tensorOf(shape{"blk.0.odd2.weight", []int64{96, 3}}, gguf.TypeF32),
			tensorOf(shape{"blk.0.thing.bias", []int64{256, 2}}, gguf.TypeF32)), 64))
	model("ids", meta, with(integers("blk.0.ids.weight")))
	model("meta32", goldenMeta(3, 0, kv("general.quantization_version", gguf.Uint32(1)),
		kv("general.file_type", gguf.Uint32(1)),
		kv("tokenizer.ggml.model", gguf.String("no_vocab"))), f32)
	model("dim4", meta, with(tensorOf(shape{"blk.0.four.weight", []int64{256, 2, 2, 2}}, gguf.TypeF32)))
	for name, v := range map[string]float32{"nan": float32(math.NaN()), "inf": float32(math.Inf(1)), "big": 1e6} {
		bad := slices.Clone(f32)
		bad[2].Data = bytes.Clone(bad[2].Data)
		binary.LittleEndian.PutUint32(bad[2].Data[5*4:], math.Float32bits(v))
		model(name, meta, bad)
	}
	for i := range 3 {
		m := gguf.Metadata{}
		if i == 0 {
			m = slices.Clone(meta)
		}
		m = append(m, kv("split.no", gguf.Uint16(uint16(i))), kv("split.tensors.count", gguf.Int32(30)),
			kv("split.count", gguf.Uint16(3)))
		write(gguf.ShardName("shard", i, 3), encode(m, f32[12*i:min(12*i+12, len(f32))], 32))
	}
	goldenMatrices(dense, moe, write)
}

// goldenMatrices writes the importance matrices.
func goldenMatrices(dense, moe []shape, write func(string, []byte)) {
	const count = 7
	type entry = imatrixtest.Entry
	matrixLen := func(s shape) int {
		if len(s.ne) > 2 {
			return int(s.ne[0] * s.ne[2])
		}
		return int(s.ne[0])
	}
	values := func(name string, n int, times float32) []float32 {
		v := gen.SaltedImportance(name+"|", "uni", n)
		for i := range v {
			v[i] *= times
		}
		return v
	}
	entries := func(shapes []shape, skip string) (es []entry) {
		for _, s := range shapes {
			if !strings.HasPrefix(s.name, "blk.") || !matrices(s) || strings.Contains(s.name, "gate_inp") ||
				s.name == skip {
				continue
			}
			e := entry{Name: s.name, Calls: count, Sums: values(s.name, matrixLen(s), count)}
			for range matrixLen(s) / int(s.ne[0]) {
				e.Counts = append(e.Counts, count)
			}
			es = append(es, e)
		}
		return es
	}
	legacy := func(name string, es []entry, trailer *imatrixtest.Trailer) {
		write("dat/"+name, imatrixtest.Legacy(es, trailer))
	}
	x := &imatrixtest.Trailer{Chunks: 5, Dataset: "x"}
	const skipped = "blk.1.ffn_up.weight"
	both := func(name string, es []entry) {
		legacy(name, es, &imatrixtest.Trailer{Chunks: 5, Dataset: "calib.txt"})
		write("gg/"+name, imatrixtest.GGUF(es, []string{"calib.txt"}, 5))
	}
	ds := entries(dense, "")
	both("imd", ds)
	both("imm", entries(moe, ""))
	both("imskip", entries(dense, skipped))
	legacy("imold", ds, nil)
	zero := entries(dense, "")
	for i := range zero {
		zero[i].Calls = 0
	}
	legacy("imzero", zero, x)
	legacy("imlong", ds, &imatrixtest.Trailer{Chunks: 5, Dataset: strings.Repeat("d", 200)})
	changed := func(name string, f func(v []float32) []float32) []entry {
		es := entries(dense, "")
		for i := range es {
			if es[i].Name == name {
				es[i].Sums = f(es[i].Sums)
			}
		}
		return es
	}
	legacy("imsize", changed(skipped, func(v []float32) []float32 { return v[:128] }), x)
	legacy("imnan", changed(skipped, func(v []float32) []float32 { v[3] = float32(math.NaN()); return v }), x)
	emb := entries(dense, "")
	for _, n := range []string{"token_embd.weight", "output.weight"} {
		emb = append(emb, entry{Name: n, Calls: count, Sums: values(n, 256, count)})
	}
	legacy("imemb", emb, x)
	legacy("imembbad", append(entries(dense, ""),
		entry{Name: "token_embd.weight", Calls: count, Sums: values("token_embd.weight", 100, 1)}), x)

	// expert 1 never used, expert 2 half as often
	used := entries(moe, "")
	for i := range used {
		e := &used[i]
		if len(e.Counts) == 1 {
			continue
		}
		e.Counts = []float32{7, 0, 3, 7}
		u := values(e.Name, len(e.Sums), 1)
		for k := range u {
			u[k] *= e.Counts[k/256]
		}
		e.Sums = u
	}
	write("gg/imx", imatrixtest.GGUF(used, []string{"a.txt", "b.txt"}, 9))
	var plain, means []imatrixtest.Tensor
	for _, e := range ds {
		plain = append(plain, imatrixtest.EntryTensors(e)...)
		means = append(means, imatrixtest.Tensor{Name: e.Name + ".in_sum", Type: gguf.TypeF32,
			NE: []int64{int64(len(e.Sums))}, Data: imatrixtest.F32(e.Sums...)})
	}
	m := imatrixtest.Metadata([]string{"x"}, 5)
	write("gg/imnometa", imatrixtest.Encode(m[:1], plain))
	write("gg/iminsum", imatrixtest.Encode(m, append(plain, means...)))
	write("gg/imnods", imatrixtest.GGUF(ds, nil, 0))
}
