package export_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/convert/export"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/writer"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// weights returns n numbers that differ from their neighbours, also as BF16.
func weights(n int64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*i*31%251-125) / 64
	}
	return x
}

// llama makes a small checkpoint in a new directory of the name tiny, of two
// layers with three query heads on one key head. Keys of change go into its
// config.json.
func llama(t *testing.T, bias, tied bool, change map[string]any) string {
	t.Helper()
	const vocab, hidden, heads, ff = 302, 48, 3, 80
	config := map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"vocab_size": vocab, "hidden_size": hidden, "intermediate_size": ff, "num_hidden_layers": 2,
		"num_attention_heads": heads, "num_key_value_heads": 1, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": tied,
	}
	for key, v := range change {
		config[key] = v
	}
	shapes := map[string][]int64{"model.embed_tokens.weight": {vocab, hidden}, "model.norm.weight": {hidden}}
	if !tied {
		shapes["lm_head.weight"] = []int64{vocab, hidden}
	}
	for layer := range 2 {
		for name, shape := range map[string][]int64{
			"input_layernorm": {hidden}, "post_attention_layernorm": {hidden},
			"self_attn.q_proj": {hidden, hidden}, "self_attn.k_proj": {hidden / heads, hidden},
			"self_attn.v_proj": {hidden / heads, hidden}, "self_attn.o_proj": {hidden, hidden},
			"mlp.gate_proj": {ff, hidden}, "mlp.up_proj": {ff, hidden}, "mlp.down_proj": {hidden, ff},
		} {
			name = fmt.Sprintf("model.layers.%d.%s", layer, name)
			shapes[name+".weight"] = shape
			if bias && len(shape) == 2 {
				shapes[name+".bias"] = shape[:1]
			}
		}
	}
	var tensors []safetensorstest.Tensor
	for name, shape := range shapes {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape,
			Data: safetensorstest.F32(weights(n)...)})
	}
	slices.SortFunc(tensors, func(a, b safetensorstest.Tensor) int { return strings.Compare(a.Name, b.Name) })
	dir := filepath.Join(t.TempDir(), "tiny")
	must(t, os.CopyFS(dir, os.DirFS("../../tokenizer/testdata/tiny-spm")))
	data, err := json.Marshal(config)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), data, 0o666))
	must(t, safetensorstest.Write(filepath.Join(dir, "model.safetensors"), tensors, map[string]string{"format": "pt"}))
	return dir
}

// convertTo converts a checkpoint and returns the path of the file.
func convertTo(t *testing.T, dir string, typ convert.OutType) string {
	t.Helper()
	job, err := convert.Prepare(t.Context(), dir, convert.Options{Type: typ})
	must(t, err)
	defer job.Close()
	path := filepath.Join(t.TempDir(), "out.gguf")
	_, err = job.Write(context.Background(), path, writer.Options{})
	must(t, err)
	return path
}

// exportTo exports a file into a new directory of that name and returns its path
// and the job's warnings.
func exportTo(t *testing.T, path, name string, opt export.Options) (dir string, warnings []string) {
	t.Helper()
	job, err := export.Prepare(t.Context(), path, opt)
	must(t, err)
	defer job.Close()
	dir = filepath.Join(t.TempDir(), name)
	_, err = job.Write(context.Background(), dir, writer.Options{Workers: 2})
	must(t, err)
	return dir, job.Warnings
}

// roundTrip converts a checkpoint to typ, exports the result, converts that with
// the small files of the original next to it, and compares the GGUF files.
func roundTrip(t *testing.T, original string, typ convert.OutType, opt export.Options) (exported string,
	warnings []string) {
	t.Helper()
	first := convertTo(t, original, typ)
	opt.HF = true
	exported, warnings = exportTo(t, first, filepath.Base(original), opt)
	entries, err := os.ReadDir(original)
	must(t, err)
	for _, e := range entries {
		if safetensors.IsModelFile(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(original, e.Name()))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(exported, e.Name()), data, 0o666))
	}
	a, err := os.ReadFile(first)
	must(t, err)
	b, err := os.ReadFile(convertTo(t, exported, typ))
	must(t, err)
	if !bytes.Equal(a, b) {
		x, err := gguf.Parse("before", a)
		must(t, err)
		y, err := gguf.Parse("after", b)
		must(t, err)
		lines, err := gguf.Diff(t.Context(), x.Set(), y.Set())
		t.Errorf("differs after the round trip: %v\n%s", err, strings.Join(lines, "\n"))
	}
	return exported, warnings
}

func sameFile(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	must(t, err)
	y, err := os.ReadFile(b)
	must(t, err)
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

func TestRoundTrip(t *testing.T) {
	rope := map[string]any{"rope_scaling": map[string]any{"rope_type": "llama3", "factor": 8.0}}
	f32, bf16 := gguf.TypeF32, gguf.TypeBF16
	for _, c := range []struct {
		name       string
		bias, tied bool
		change     map[string]any
		typ        convert.OutType
		opt        export.Options
		files      int
		warning    string
	}{
		{name: "f32", typ: convert.F32, files: 1},
		{name: "f16", typ: convert.F16, files: 1},
		{name: "bf16", typ: convert.BF16, files: 1},
		{name: "bf16-as-bf16", typ: convert.BF16, opt: export.Options{Type: &bf16}, files: 1},
		{name: "f16-as-f32", typ: convert.F16, opt: export.Options{Type: &f32}, files: 1},
		{name: "bias", bias: true, typ: convert.F16, files: 1},
		{name: "tied", tied: true, typ: convert.F16, files: 1},
		{name: "rope", change: rope, typ: convert.F32, files: 1, warning: "rope_freqs.weight"},
		{name: "shards", bias: true, typ: convert.BF16, opt: export.Options{MaxShard: 20_000}, files: 8},
		{name: "shard-per-tensor", typ: convert.F32, opt: export.Options{MaxShard: 1}, files: 22},
	} {
		t.Run(c.name, func(t *testing.T) {
			original := llama(t, c.bias, c.tied, c.change)
			exported, warnings := roundTrip(t, original, c.typ, c.opt)
			if (c.warning != "") != (len(warnings) == 1) || !strings.Contains(strings.Join(warnings, ""), c.warning) {
				t.Errorf("warnings %q", warnings)
			}
			files, err := filepath.Glob(filepath.Join(exported, "model*"))
			must(t, err)
			if len(files) != c.files {
				t.Errorf("files %q, want %d", files, c.files)
			}
			if c.typ == convert.F32 && c.files == 1 {
				sameFile(t, filepath.Join(exported, "model.safetensors"), filepath.Join(original, "model.safetensors"))
			}
		})
	}
}

// TestGollama takes a real model, whose BF16 export equals the file it was
// converted from.
func TestGollama(t *testing.T) {
	const gollama = "../../test/testdata/gollama"
	if _, err := os.Stat(gollama); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []convert.OutType{convert.F16, convert.BF16, convert.F32} {
		roundTrip(t, gollama, typ, export.Options{})
	}
	bf16 := gguf.TypeBF16
	exported, _ := roundTrip(t, gollama, convert.BF16, export.Options{Type: &bf16})
	sameFile(t, filepath.Join(exported, "model.safetensors"), filepath.Join(gollama, "model.safetensors"))
}

// file writes a GGUF file of the given tensors.
func file(t *testing.T, m gguf.Metadata, tensors ...writer.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.gguf")
	_, err := writer.Write(context.Background(), &writer.File{Path: path, Metadata: m, Tensors: tensors},
		writer.Options{})
	must(t, err)
	return path
}

// source is a tensor in memory.
type source struct {
	ne   []int64
	typ  gguf.Type
	data []byte
}

func (s *source) NE() []int64     { return s.ne }
func (s *source) Type() gguf.Type { return s.typ }
func (s *source) Cost() int64     { return 0 }
func (s *source) Raw(_ *[]byte, a, b int64) ([]byte, error) {
	n := s.typ.RowBytes(s.ne[0])
	return s.data[a*n : b*n], nil
}

// matrix is a tensor of weights of that type.
func matrix(t *testing.T, typ gguf.Type, ne ...int64) *source {
	t.Helper()
	s := &source{ne: ne, typ: typ, data: make([]byte, gguf.DataBytes(typ, ne))}
	must(t, quants.Lookup(typ).Quantize(s.data, weights(ne[0]*gguf.Rows(ne)), int(ne[0]), nil))
	return s
}

// bigEndian turns a file whose metadata is strings and u32 into its big-endian
// twin.
func bigEndian(t *testing.T, path string) string {
	t.Helper()
	f, err := gguf.Open(path)
	must(t, err)
	defer f.Close()
	be := binary.BigEndian
	str := func(b []byte, s string) []byte { return append(be.AppendUint64(b, uint64(len(s))), s...) }
	b := be.AppendUint32([]byte("GGUF"), 3)
	b = be.AppendUint64(b, uint64(len(f.Tensors)))
	b = be.AppendUint64(b, uint64(len(f.Metadata)))
	for _, kv := range f.Metadata {
		b = be.AppendUint32(str(b, kv.Key), uint32(kv.Value.Type()))
		if s, ok := kv.Value.Str(); ok {
			b = str(b, s)
		} else {
			n, _ := kv.Value.Int()
			b = be.AppendUint32(b, uint32(n))
		}
	}
	for _, x := range f.Tensors {
		b = be.AppendUint32(str(b, x.Name), uint32(len(x.NE)))
		for _, n := range x.NE {
			b = be.AppendUint64(b, uint64(n))
		}
		b = be.AppendUint64(be.AppendUint32(b, uint32(x.Type)), uint64(x.Offset))
	}
	b = append(b, make([]byte, f.DataStart-int64(len(b)))...)
	for i := range f.Tensors {
		x := &f.Tensors[i]
		data := bytes.Clone(f.Data(x))
		x.Type.SwapBytes(data)
		b = append(append(b, make([]byte, f.DataStart+x.Offset-int64(len(b)))...), data...)
	}
	b = append(b, make([]byte, f.Size-int64(len(b)))...)
	path += ".be"
	must(t, os.WriteFile(path, b, 0o666))
	return path
}

// TestTypes exports a tensor of each type there is an encoder for, and compares
// with the decoder. A big-endian file must give the same files.
func TestTypes(t *testing.T) {
	var tensors []writer.Tensor
	for typ := gguf.Type(0); typ < 64; typ++ {
		if codec := quants.Lookup(typ); codec.CanQuantize() && !codec.NeedsImportance() {
			tensors = append(tensors, writer.Tensor{Name: typ.String(), Type: typ, Source: matrix(t, typ, 512, 3, 2)})
		}
	}
	if len(tensors) < 13 {
		t.Fatalf("only %d types", len(tensors))
	}
	ints := &source{ne: []int64{3}, typ: gguf.TypeI32, data: []byte{1, 0, 0, 0, 0, 1, 0, 0, 255, 255, 255, 255}}
	double := &source{ne: []int64{1}, typ: gguf.TypeF64,
		data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi))}
	tensors = append(tensors, writer.Tensor{Name: "ints", Type: gguf.TypeI32, Source: ints},
		writer.Tensor{Name: "double", Type: gguf.TypeF64, Source: double})
	path := file(t, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("any")}}, tensors...)
	swapped := bigEndian(t, path)
	for _, name := range []string{export.Auto, "f32", "F16", "bf16"} {
		want, err := export.ParseType(name)
		must(t, err)
		dir, _ := exportTo(t, path, "out", export.Options{Type: want})
		other, _ := exportTo(t, swapped, "out", export.Options{Type: want})
		sameFile(t, filepath.Join(dir, "model.safetensors"), filepath.Join(other, "model.safetensors"))
		c, err := safetensorstest.OpenDir(dir)
		must(t, err)
		defer c.Close()
		if len(c.Tensors()) != len(tensors) {
			t.Errorf("%d tensors, want %d", len(c.Tensors()), len(tensors))
		}
		for _, x := range tensors {
			got, ok := c.Lookup(x.Name)
			if !ok {
				t.Errorf("%s: no tensor", x.Name)
				continue
			}
			raw, _ := x.Source.Raw(nil, 0, gguf.Rows(x.Source.NE()))
			typ := x.Type
			if codec := quants.Lookup(typ); codec.CanDequantize() {
				switch {
				case want != nil:
					typ = *want
				case typ.Kind() == gguf.KindQuant:
					typ = gguf.TypeF32
				}
				f := make([]float32, len(raw)/int(x.Type.BlockBytes())*int(x.Type.BlockLen()))
				must(t, codec.Dequantize(f, raw))
				raw = make([]byte, gguf.DataBytes(typ, x.Source.NE()))
				must(t, quants.Lookup(typ).Quantize(raw, f, len(f), nil))
				if !slices.Equal(got.Shape, []int64{2, 3, 512}) {
					t.Errorf("%s: shape %v", x.Name, got.Shape)
				}
			}
			if dtype, _ := precision.DType(typ); got.DType != dtype || !bytes.Equal(got.Data(), raw) {
				t.Errorf("%s as %s: %v, want the decoder's values as %v", x.Name, name, got.DType, dtype)
			}
		}
	}
}

// TestQuantizedModel exports a quantized model under the checkpoint's names: the
// values are the decoder's, the rows of queries and keys in the checkpoint's order.
func TestQuantizedModel(t *testing.T) {
	const heads, headsKV, headDim, hidden = 4, 2, 8, 256
	q, k, v := matrix(t, gguf.TypeQ4_K, hidden, heads*headDim), matrix(t, gguf.TypeQ6_K, hidden, headsKV*headDim),
		matrix(t, gguf.TypeQ5_K, hidden, headsKV*headDim)
	norm := matrix(t, gguf.TypeF32, hidden)
	path := file(t, gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}, {Key: "llama.block_count", Value: gguf.Uint32(1)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(heads)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(headsKV)},
	},
		writer.Tensor{Name: "token_embd.weight", Type: gguf.TypeQ6_K, Source: matrix(t, gguf.TypeQ6_K, hidden, 5)},
		writer.Tensor{Name: "output_norm.weight", Type: gguf.TypeF32, Source: norm},
		writer.Tensor{Name: "blk.0.attn_norm.weight", Type: gguf.TypeF32, Source: norm},
		writer.Tensor{Name: "blk.0.ffn_norm.weight", Type: gguf.TypeF32, Source: norm},
		writer.Tensor{Name: "blk.0.attn_q.weight", Type: gguf.TypeQ4_K, Source: q},
		writer.Tensor{Name: "blk.0.attn_k.weight", Type: gguf.TypeQ6_K, Source: k},
		writer.Tensor{Name: "blk.0.attn_v.weight", Type: gguf.TypeQ5_K, Source: v},
		writer.Tensor{Name: "blk.0.attn_output.weight", Type: gguf.TypeQ4_K,
			Source: matrix(t, gguf.TypeQ4_K, hidden, hidden)},
		writer.Tensor{Name: "blk.0.ffn_gate.weight", Type: gguf.TypeQ4_K, Source: matrix(t, gguf.TypeQ4_K, hidden, 7)},
		writer.Tensor{Name: "blk.0.ffn_up.weight", Type: gguf.TypeQ4_K, Source: matrix(t, gguf.TypeQ4_K, hidden, 7)},
		writer.Tensor{Name: "blk.0.ffn_down.weight", Type: gguf.TypeQ4_K,
			Source: matrix(t, gguf.TypeQ4_K, hidden, hidden)})
	dir, _ := exportTo(t, path, "out", export.Options{HF: true})
	c, err := safetensorstest.OpenDir(dir)
	must(t, err)
	defer c.Close()
	for _, x := range []struct {
		name  string
		src   *source
		heads int // 0: not permuted
	}{{"q", q, heads}, {"k", k, headsKV}, {"v", v, 0}} {
		got, ok := c.Lookup("model.layers.0.self_attn." + x.name + "_proj.weight")
		if !ok || got.DType != safetensors.F32 {
			t.Fatalf("%s: %+v", x.name, got)
		}
		n := int(x.src.ne[1])
		f := make([]float32, n*hidden)
		must(t, quants.Lookup(x.src.typ).Dequantize(f, x.src.data))
		for row := range n { // of the checkpoint: half j of head h, pair i
			from := row
			if x.heads > 0 {
				h, in := row/headDim, row%headDim
				j, i := in/(headDim/2), in%(headDim/2)
				from = h*headDim + 2*i + j
			}
			if want := safetensorstest.F32(f[from*hidden : (from+1)*hidden]...); !bytes.Equal(
				got.Data()[row*4*hidden:(row+1)*4*hidden], want) {
				t.Errorf("%s_proj: row %d is not row %d of the file", x.name, row, from)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	f32 := func(name string, ne ...int64) writer.Tensor {
		return writer.Tensor{Name: name, Type: gguf.TypeF32, Source: matrix(t, gguf.TypeF32, ne...)}
	}
	meta := func(arch string, kvs ...gguf.KV) gguf.Metadata {
		return append(gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String(arch)}}, kvs...)
	}
	number := func(key string, n uint32) gguf.KV { return gguf.KV{Key: key, Value: gguf.Uint32(n)} }
	none, heads, one := number("llama.block_count", 0), number("llama.attention.head_count", 3),
		number("llama.block_count", 1)
	whole := []writer.Tensor{f32("token_embd.weight", 4, 4), f32("output_norm.weight", 4)}
	with := func(more ...writer.Tensor) []writer.Tensor { return append(slices.Clone(whole), more...) }
	for _, c := range []struct {
		name    string
		meta    gguf.Metadata
		tensors []writer.Tensor
		hf      bool
		kind    error
		text    string
	}{
		{"whole", meta("llama", none), whole, true, nil, ""},
		{"unmapped", meta("llama", none), with(f32("blk.0.attn_q.weight", 4, 4), f32("extra", 1),
			f32("output.bias", 4)), true, fault.Unsupported,
			"3 tensors have no place in a checkpoint of architecture llama with 0 layers:\n  blk.0.attn_q.weight\n  " +
				"extra\n  output.bias"},
		{"missing", meta("llama", none), whole[:1], true, fault.Broken, "model.norm.weight"},
		{"missing-layers", meta("llama", number("llama.block_count", math.MaxUint32)), whole, true, fault.Broken,
			"4294967295 layers"},
		{"no-layers", meta("llama"), whole, true, fault.Broken, `"llama.block_count"`},
		{"architecture", meta("mamba"), whole, true, fault.Unsupported, `architecture "mamba"`},
		{"no-architecture", nil, whole, true, fault.Unsupported, `architecture ""`},
		{"no-heads", meta("llama", one), with(f32("blk.0.attn_q.weight", 4, 6)), true, fault.Broken,
			`tensor "blk.0.attn_q.weight": undoing permute-rope-q: has no key "llama.attention.head_count"`},
		{"heads-do-not-fit", meta("llama", one, heads), with(f32("blk.0.attn_k.weight", 4, 4)), true, fault.Broken,
			`tensor "blk.0.attn_k.weight": undoing permute-rope-k: dimensions`},
		{"shard", meta("llama", number(gguf.KeySplitCount, 2)), whole, false, fault.Broken, "first of 2 shards"},
		{"no-tensors", meta("llama"), nil, false, fault.Unsupported, "no tensors"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.meta, c.tensors...)
			job, err := export.Prepare(t.Context(), path, export.Options{HF: c.hf})
			if err == nil {
				job.Close()
			}
			if !errors.Is(err, c.kind) || c.kind != nil && (!strings.Contains(err.Error(), c.text) ||
				!strings.Contains(err.Error(), path)) {
				t.Errorf("got %v\nwant %v with %q and the path", err, c.kind, c.text)
			}
		})
	}
	for typ := gguf.Type(0); typ < 64; typ++ { // types without a decoder
		if _, plain := precision.DType(typ); plain || !typ.Known() || quants.Lookup(typ).CanDequantize() {
			continue
		}
		path := file(t, nil, writer.Tensor{Name: "q", Type: typ,
			Source: &source{[]int64{typ.BlockLen()}, typ, make([]byte, typ.BlockBytes())}})
		if _, err := export.Prepare(t.Context(), path, export.Options{}); !errors.Is(err, fault.Unsupported) ||
			!strings.Contains(err.Error(), fmt.Sprintf(`tensor "q": %v`, typ)) {
			t.Errorf("%v: got %v", typ, err)
		}
	}
	for _, name := range []string{"q8_0", "", "f64", "float16"} {
		if _, err := export.ParseType(name); !errors.Is(err, fault.Usage) ||
			!strings.Contains(err.Error(), "auto, f32, f16, bf16") {
			t.Errorf("type %q: got %v", name, err)
		}
	}
}

// TestTooLarge: a value that the narrower type cannot hold is an error, one that
// it rounds is none.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		v  float32
		to gguf.Type
		ok bool
	}{
		{65519, gguf.TypeF16, true}, {65520, gguf.TypeF16, false}, {1e-30, gguf.TypeF16, true},
		{1e38, gguf.TypeBF16, true}, {math.MaxFloat32, gguf.TypeBF16, false}, {math.MaxFloat32, gguf.TypeF32, true},
	} {
		path := file(t, nil, writer.Tensor{Name: "fine", Type: gguf.TypeF32, Source: rows.Float32s([]float32{1})},
			writer.Tensor{Name: "large", Type: gguf.TypeF32, Source: rows.Float32s([]float32{0, c.v})})
		job, err := export.Prepare(t.Context(), path, export.Options{Type: &c.to})
		must(t, err)
		dir := filepath.Join(t.TempDir(), "out")
		_, err = job.Write(context.Background(), dir, writer.Options{})
		job.Close()
		if c.ok {
			must(t, err)
			continue
		}
		if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), `tensor "large"`) {
			t.Errorf("%v as %v: got %v", c.v, c.to, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%v as %v: output written", c.v, c.to)
		}
	}
}
