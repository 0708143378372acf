package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/gguf"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
)

// number is the value of element i of a made-up matrix.
func number(name string, i int) float32 {
	return float32(math.Sin(float64(len(name)*31+i)*0.37)) / 8
}

// side returns matrix A or B of a LoRA pair.
func side(name string, shape ...int64) safetensorstest.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = number(name, i)
	}
	return safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: safetensorstest.F32(v...)}
}

// pair returns both LoRA matrices of a module.
func pair(module string, out, in, rank int64) []safetensorstest.Tensor {
	return []safetensorstest.Tensor{side("base_model.model."+module+".lora_A.weight", rank, in),
		side("base_model.model."+module+".lora_B.weight", out, rank)}
}

// attention returns an adapter for some of gollama's weights.
func attention(rank int64) []safetensorstest.Tensor {
	return slices.Concat(
		pair("model.layers.0.mlp.down_proj", 256, 768, rank),
		pair("model.layers.0.self_attn.k_proj", 64, 256, rank),
		pair("model.layers.0.self_attn.q_proj", 256, 256, rank),
		pair("model.layers.5.self_attn.v_proj", 64, 256, rank),
	)
}

// writeAdapter makes an adapter's directory; changes override keys of its configuration.
func writeAdapter(t *testing.T, name string, tensors []safetensorstest.Tensor, changes map[string]any) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	must(t, os.MkdirAll(dir, 0o777))
	config := map[string]any{"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "acme/gollama",
		"use_dora": false, "bias": "none", "modules_to_save": nil}
	maps.Copy(config, changes)
	data, err := json.Marshal(config)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), data, 0o666))
	must(t, safetensorstest.Write(filepath.Join(dir, "adapter_model.safetensors"), tensors, nil))
	return dir
}

// adapterFile converts an adapter and opens the file.
func adapterFile(t *testing.T, args ...string) *gguf.File {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.gguf")
	if code, printed, err := call(append([]string{"--progress", "none", "--outfile", out}, args...)...); code != 0 {
		t.Fatalf("%v\n%s", err, printed)
	}
	f, err := gguf.Open(out)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func floats(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func TestAdapter(t *testing.T) {
	dir := writeAdapter(t, "Some-Adapter-v2", attention(4), nil)
	f := adapterFile(t, "--base", gollama, dir)
	for key, want := range map[string]string{"general.architecture": "llama", "general.type": "adapter",
		"adapter.type": "lora", "general.version": "v2"} {
		v, _ := f.Metadata.Get(key)
		if got, _ := v.Str(); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	v, _ := f.Metadata.Get("adapter.lora.alpha")
	if alpha, ok := v.Float(); !ok || alpha != 8 {
		t.Errorf("alpha %v", v)
	}
	if _, ok := f.Metadata.Get("llama.block_count"); ok {
		t.Error("an adapter has keys of the model")
	}
	// q is permuted for RoPE as in the model: rows 0 and 16 of a head become neighbours
	a, b := f.Tensor("blk.0.attn_q.weight.lora_a"), f.Tensor("blk.0.attn_q.weight.lora_b")
	if a == nil || b == nil || !slices.Equal(a.NE, []int64{256, 4}) || !slices.Equal(b.NE, []int64{4, 256}) {
		t.Fatalf("%+v, %+v", a, b)
	}
	rows, q := floats(f.Data(b)), "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
	if rows[4] != number(q, 16*4) || rows[8] != number(q, 4) {
		t.Errorf("rows %v of %v", rows[:12], number(q, 16*4))
	}
	var names []string
	for _, s := range f.Tensors {
		names = append(names, s.Name)
	}
	if got := strings.Join(names[:4],
		" "); got != "blk.0.ffn_down.weight.lora_a blk.0.ffn_down.weight.lora_b blk.0.attn_k.weight.lora_a "+
		"blk.0.attn_k.weight.lora_b" || len(names) != 8 {
		t.Errorf("%d tensors: %s", len(names), names)
	}
}

// TestAdapterBase checks each way to name the base model.
func TestAdapterBase(t *testing.T) {
	dir := writeAdapter(t, "x", attention(4), nil)
	home := t.TempDir()
	snapshot := filepath.Join(home, "hub", "models--acme--gollama", "snapshots", "0123abcd")
	t.Setenv("HF_HOME", home)
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1")
	fails(t, 2, "not in the hub's cache", dir)
	must(t, os.MkdirAll(snapshot, 0o777))
	config, err := os.ReadFile(filepath.Join(gollama, "config.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(snapshot, "config.json"), config, 0o666))
	refs := filepath.Join(home, "hub", "models--acme--gollama", "refs")
	must(t, os.MkdirAll(refs, 0o777))
	must(t, os.WriteFile(filepath.Join(refs, "main"), []byte("0123abcd"), 0o666))
	adapterFile(t, dir)
	other := writeAdapter(t, "y", attention(4), map[string]any{"base_model_name_or_path": "/somewhere/else"})
	adapterFile(t, "--base-model-id", "acme/gollama", other)
	fails(t, 2, `"/somewhere/else" by adapter_config.json`, other)
	fails(t, 2, "want the ID of a model", other, "--base-model-id", "../../etc")
	fails(t, 2, "want one of them", other, "--base-model-id", "a/b", "--base", gollama)
	fails(t, 2, "names no base model", writeAdapter(t, "z", attention(4),
		map[string]any{"base_model_name_or_path": nil}))
	fails(t, 2, "no such directory", dir, "--base", filepath.Join(home, "none"))
	must(t, os.WriteFile(filepath.Join(refs, "main"), []byte("../../../x"), 0o666))
	fails(t, 2, "not in the hub's cache", dir)
	fails(t, 2, "only adapters have a base model", gollama, "--base", gollama)
}

// TestAdapterRefused converts adapters that no GGUF file can hold, and broken ones.
func TestAdapterRefused(t *testing.T) {
	q := "model.layers.0.self_attn.q_proj"
	with := func(more ...safetensorstest.Tensor) []safetensorstest.Tensor { return append(attention(4), more...) }
	for name, c := range map[string]struct {
		tensors []safetensorstest.Tensor
		changes map[string]any
		code    int
		text    string
	}{
		"DoRA by its key": {attention(4), map[string]any{"use_dora": true}, 4, "magnitudes of DoRA"},
		"DoRA by its tensors": {with(side("base_model.model."+q+".lora_magnitude_vector", 256)), nil, 4,
			"is a magnitude of DoRA"},
		"whole weights": {with(side("base_model.model.lm_head.weight", 4096, 256)), nil, 4,
			"is a whole weight (modules_to_save)"},
		"a bias": {with(side("base_model.model."+q+".bias", 256)), nil, 4, "is a bias"},
		"IA3": {attention(4), map[string]any{"peft_type": "IA3"}, 4,
			`is an adapter of type "IA3", want LORA`},
		"layers repeated": {attention(4), map[string]any{"layer_replication": []any{[]any{0, 4}, []any{2, 5}}}, 4,
			"layers that are repeated"},
		"a part unknown": {with(side("base_model.model."+q+".lora_A.default.weight", 4, 256)), nil, 4,
			"a part of an adapter that is not known"},
		"one side": {attention(4)[:3], nil, 3, "has no other side"},
		"two ranks": {slices.Concat(attention(4),
			[]safetensorstest.Tensor{side("base_model.model.lm_head.lora_A.weight", 4, 256),
				side("base_model.model.lm_head.lora_B.weight", 4096, 5)}), nil, 3, "want two matrices of one rank"},
		"a vector": {with(side("base_model.model.lm_head.lora_A.weight", 256),
			side("base_model.model.lm_head.lora_B.weight", 256)), nil, 3, "want two matrices of one rank"},
		"twice": {with(side("base_model.model.base_model.model."+q+".lora_A.weight", 4, 256)), nil, 3,
			"are both for"},
		"no pairs": {nil, nil, 3, "has no pairs of matrices"},
		"another model": {pair("model.layers.0.self_attn.q_proj", 512, 512, 4), nil, 3,
			"the adapter does not fit the base model"},
		"heads of another": {pair("model.layers.0.self_attn.q_proj", 250, 256, 4), nil, 3,
			"want a multiple of 2*8 rows"},
		"unknown weights": {pair("model.layers.0.self_attn.w_pack", 256, 256, 4), nil, 4,
			"have no place in a file of architecture llama"},
		"layers beyond": {pair("model.layers.77.self_attn.q_proj", 256, 256, 4), nil, 4,
			"have no place in a file of architecture llama"},
		"a tower": {pair("vision_tower.layers.0.q_proj", 256, 256, 4), nil, 4,
			"have no place in a file of architecture llama"},
		"alpha too large": {attention(4), map[string]any{"lora_alpha": 1e30}, 3, "want a number of at most"},
		"no alpha":        {attention(4), map[string]any{"lora_alpha": nil}, 3, "lora_alpha"},
		"alpha a text":    {attention(4), map[string]any{"lora_alpha": "8"}, 3, "lora_alpha"},
		"a bad pattern": {attention(4), map[string]any{"alpha_pattern": map[string]any{"(?<=x)q_proj": 3}}, 4,
			"is not a regular expression that is known"},
		"negative tokens": {attention(4), map[string]any{"alora_invocation_tokens": []any{-1}}, 3,
			"-1 is no token"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, c.code, c.text, writeAdapter(t, "x", c.tensors, c.changes), "--base", gollama)
		})
	}
	dir := writeAdapter(t, "x", attention(4), nil)
	fails(t, 2, "want one of f32, f16", dir, "--base", gollama, "--outtype", "tq1_0")
	for _, flags := range [][]string{{"--split-max-tensors", "3"}, {"--fuse-qkv"}, {"--pre", "x"}, {"--mtp"},
		{"--merge-lora", dir}, {"--mistral-format"}} {
		fails(t, 2, "options about", append([]string{dir, "--base", gollama}, flags...)...)
	}
	tied := copyOf(t, "tied")
	config, err := os.ReadFile(filepath.Join(tied, "config.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(tied, "config.json"), bytes.Replace(config, []byte(`"architectures": [
    "LlamaForCausalLM"`), []byte(`"architectures": [
    "GemmaForCausalLM"`), 1), 0o666))
	fails(t, 4, "lm_head.weight", writeAdapter(t, "x", pair("lm_head", 4096, 256, 4), nil), "--base", tied)
	must(t, os.Remove(filepath.Join(dir, "adapter_model.safetensors")))
	fails(t, 3, "has neither adapter_model.safetensors nor adapter_model.bin", dir, "--base", gollama)
}

// TestAdapterScales checks use_rslora and alpha_pattern, which the reference ignores.
func TestAdapterScales(t *testing.T) {
	alpha := func(f *gguf.File) float64 {
		v, _ := f.Metadata.Get("adapter.lora.alpha")
		x, _ := v.Float()
		return x
	}
	first := func(f *gguf.File, name string) float32 { return floats(f.Data(f.Tensor(name + ".lora_b")))[0] }
	q, v := "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight",
		"base_model.model.model.layers.5.self_attn.v_proj.lora_B.weight"
	stabilized := writeAdapter(t, "x", attention(4), map[string]any{"use_rslora": true})
	if got := alpha(adapterFile(t, "--base", gollama, stabilized)); got != 16 {
		t.Errorf("alpha %v of rank-stabilized pairs of rank 4, want 8*sqrt(4)", got)
	}
	if got := alpha(adapterFile(t, "--base", gollama, "--compat", "reference", stabilized)); got != 8 {
		t.Errorf("--compat reference: alpha %v, want 8", got)
	}
	patterns := writeAdapter(t, "x", attention(4),
		map[string]any{"alpha_pattern": map[string]any{"v_proj": 24, `model.layers.\d+.self_attn.q_proj`: 4}})
	f := adapterFile(t, "--base", gollama, patterns)
	if alpha(f) != 8 || first(f, "blk.0.attn_q.weight") != number(q, 0)/2 ||
		first(f, "blk.5.attn_v.weight") != 3*number(v, 0) {
		t.Errorf("alpha %v, q %v of %v, v %v of %v", alpha(f), first(f, "blk.0.attn_q.weight"), number(q, 0),
			first(f, "blk.5.attn_v.weight"), number(v, 0))
	}
	f = adapterFile(t, "--base", gollama, "--compat", "reference", patterns)
	if first(f, "blk.0.attn_q.weight") != number(q, 0) || first(f, "blk.5.attn_v.weight") != number(v, 0) {
		t.Error("--compat reference applies alpha_pattern, which the reference ignores")
	}
	mixed := slices.Concat(pair("model.layers.0.self_attn.q_proj", 256, 256, 16),
		pair("model.layers.5.self_attn.v_proj", 64, 256, 4))
	f = adapterFile(t, "--base", gollama, writeAdapter(t, "x", mixed,
		map[string]any{"use_rslora": true, "rank_pattern": map[string]any{"q_proj": 16}}))
	// the scale is 8/sqrt(16) = 2, and alpha/rank only 16/16
	if alpha(f) != 16 || first(f, "blk.0.attn_q.weight") != 2*number(q, 0) {
		t.Errorf("alpha %v, q %v of %v", alpha(f), first(f, "blk.0.attn_q.weight"), number(q, 0))
	}
}

// TestAdapterConv1D converts an adapter of GPT-2, whose weights are stored transposed: matrices A and B stay in
// order.
func TestAdapterConv1D(t *testing.T) {
	base, err := hftest.Lookup("gpt2").Write(t.TempDir(), hftest.Lookup("gpt2").All()[0])
	must(t, err)
	var config struct {
		Embd int64 `json:"n_embd"`
	}
	data, err := os.ReadFile(filepath.Join(base, "config.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &config))
	n := config.Embd
	dir := writeAdapter(t, "x", pair("transformer.h.0.attn.c_attn", 3*n, n, 4), map[string]any{"fan_in_fan_out": true})
	shapes := func(f *gguf.File) [2][]int64 {
		return [2][]int64{f.Tensor("blk.0.attn_qkv.weight.lora_a").NE, f.Tensor("blk.0.attn_qkv.weight.lora_b").NE}
	}
	if got := shapes(adapterFile(t, "--base", base, dir)); !slices.Equal(got[0], []int64{n, 4}) ||
		!slices.Equal(got[1], []int64{4, 3 * n}) {
		t.Errorf("%v", got)
	}
	if got := shapes(adapterFile(t, "--base", base, "--compat", "reference", dir)); !slices.Equal(got[0],
		[]int64{3 * n, 4}) {
		t.Errorf("--compat reference: %v", got)
	}
}

// TestMergeLora merges adapters while converting: the file equals that of a checkpoint with merged weights.
func TestMergeLora(t *testing.T) {
	f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
	must(t, err)
	defer f.Close()
	first, second := attention(4), pair("model.layers.0.self_attn.q_proj", 256, 256, 2)
	embedding := []safetensorstest.Tensor{side("base_model.model.model.embed_tokens.lora_embedding_A", 3, 4096),
		side("base_model.model.model.embed_tokens.lora_embedding_B", 256, 3)}
	var sums []safetensorstest.Tensor
	add := func(w []float32, a, b safetensorstest.Tensor, scale float32, transposed bool) {
		rank, in, out := int(a.Shape[0]), int(a.Shape[1]), int(b.Shape[0])
		x, y := floats(a.Data), floats(b.Data)
		for i := range out {
			for j := range in {
				sum := float32(0)
				for k := range rank {
					sum += float32(y[i*rank+k] * x[k*in+j])
				}
				at := i*in + j
				if transposed {
					at = j*out + i
				}
				w[at] += float32(scale * sum)
			}
		}
	}
	for _, s := range f.Tensors() {
		w := make([]float32, s.Elements())
		for i := range w { // gollama is BF16
			w[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(s.Data()[2*i:])) << 16)
		}
		module := "base_model.model." + strings.TrimSuffix(s.Name, ".weight")
		for i := 0; i < len(first); i += 2 {
			if first[i].Name == module+".lora_A.weight" {
				add(w, first[i], first[i+1], 8.0/4, false)
			}
		}
		if second[0].Name == module+".lora_A.weight" {
			add(w, second[0], second[1], 0.5*8.0/2, false)
		}
		if embedding[0].Name == module+".lora_embedding_A" {
			add(w, embedding[0], embedding[1], float32(-0.25*8.0/3.0), true)
		}
		sums = append(sums, safetensorstest.Tensor{Name: s.Name, DType: safetensors.F32, Shape: s.Shape,
			Data: safetensorstest.F32(w...)})
	}
	summed := copyOf(t, "summed")
	must(t, safetensorstest.Write(filepath.Join(summed, "model.safetensors"), sums, nil))
	merges := []string{"--merge-lora", writeAdapter(t, "a", first, nil), "--merge-lora",
		writeAdapter(t, "b", second, nil) + ":0.5", "--merge-lora", writeAdapter(t, "c", embedding, nil) + ":-0.25"}
	for _, typ := range []string{"f32", "q8_0"} {
		want, got := filepath.Join(t.TempDir(), "want.gguf"), filepath.Join(t.TempDir(), "got.gguf")
		for out, args := range map[string][]string{want: {summed}, got: append([]string{gollama}, merges...)} {
			if code, printed, err := call(append([]string{"--progress", "none", "--model-name", "x", "--outtype", typ,
				"--outfile", out}, args...)...); code != 0 {
				t.Fatalf("%v\n%s", err, printed)
			}
		}
		a, err := os.ReadFile(want)
		must(t, err)
		b, err := os.ReadFile(got)
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: not the file of the checkpoint with merged weights", typ)
		}
	}
}

func TestMergeLoraRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tensors []safetensorstest.Tensor
		changes map[string]any
		code    int
		text    string
	}{
		"not in the model": {pair("model.layers.0.self_attn.w_pack", 256, 256, 4), nil, 3,
			"1 weights of the adapter are not in the model"},
		"of another size": {pair("model.layers.0.self_attn.q_proj", 512, 256, 4), nil, 3, "of what is added"},
		"DoRA":            {attention(4), map[string]any{"use_dora": true}, 4, "magnitudes of DoRA"},
		"a norm": {append(attention(4), side("base_model.model.model.norm.weight", 256)), nil, 4,
			"is a whole norm"},
		"sometimes active": {attention(4), map[string]any{"alora_invocation_tokens": []any{5}}, 4,
			"alora_invocation_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, c.code, c.text, gollama, "--merge-lora", writeAdapter(t, "x", c.tensors, c.changes))
		})
	}
	fails(t, 2, "no such directory", gollama, "--merge-lora", "/none:0.5")
	fails(t, 2, "want the directory of an adapter", gollama, "--merge-lora", ":3")
	fails(t, 2, "want the directory of an adapter", gollama, "--merge-lora", "x:nan")
}

// TestAdapterPickle reads an adapter in a file of torch.save, in the order of its dict.
func TestAdapterPickle(t *testing.T) {
	dir := writeAdapter(t, "x", nil, nil)
	must(t, os.Remove(filepath.Join(dir, "adapter_model.safetensors")))
	var list []torchfiletest.Tensor
	for _, s := range slices.Backward(attention(4)) {
		list = append(list, torchfiletest.Tensor{Name: s.Name, DType: s.DType, Shape: s.Shape, Data: s.Data})
	}
	must(t, torchfiletest.Write(filepath.Join(dir, "adapter_model.bin"), list))
	f := adapterFile(t, "--base", gollama, dir)
	if f.Tensors[0].Name != "blk.5.attn_v.weight.lora_a" {
		t.Errorf("first %s", f.Tensors[0].Name)
	}
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_ENDPOINT", hubtest.Serve(t, "org/x", dir).URL)
	far := adapterFile(t, "--base", gollama, "hf://org/x")
	for i, s := range f.Tensors {
		if !bytes.Equal(far.Data(&far.Tensors[i]), f.Data(&s)) {
			t.Errorf("%s: differs if read from a server", s.Name)
		}
	}
}
