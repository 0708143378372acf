package convert

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// tiny describes a small Llama checkpoint that tests build and break.
type tiny struct {
	config  map[string]any
	tensors []safetensorstest.Tensor
}

const (
	tinyVocab  = 302 // of the tokenizer in the tokenizer package's testdata
	tinyHidden = 32
	tinyHeads  = 4
	tinyKV     = 2
	tinyFF     = 48
)

func newTiny() *tiny {
	m := &tiny{config: map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"vocab_size": tinyVocab, "hidden_size": tinyHidden, "intermediate_size": tinyFF, "num_hidden_layers": 1,
		"num_attention_heads": tinyHeads, "num_key_value_heads": tinyKV, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-5, "rope_theta": 10000.0,
	}}
	head := int64(tinyHidden / tinyHeads)
	m.add("lm_head.weight", tinyVocab, tinyHidden)
	m.add("model.embed_tokens.weight", tinyVocab, tinyHidden)
	m.add("model.norm.weight", tinyHidden)
	for name, shape := range map[string][]int64{
		"input_layernorm": {tinyHidden}, "post_attention_layernorm": {tinyHidden},
		"self_attn.q_proj": {tinyHidden, tinyHidden}, "self_attn.k_proj": {tinyKV * head, tinyHidden},
		"self_attn.v_proj": {tinyKV * head, tinyHidden}, "self_attn.o_proj": {tinyHidden, tinyHidden},
		"mlp.gate_proj": {tinyFF, tinyHidden}, "mlp.up_proj": {tinyFF, tinyHidden},
		"mlp.down_proj": {tinyHidden, tinyFF},
	} {
		m.add("model.layers.0."+name+".weight", shape...)
	}
	return m
}

// add appends an F32 tensor with the elements 1/64, 2/64 and so on.
func (m *tiny) add(name string, shape ...int64) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i+1)/64))
	}
	m.tensors = append(m.tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: b})
}

func (m *tiny) drop(name string) {
	for i, t := range m.tensors {
		if t.Name == name {
			m.tensors = append(m.tensors[:i], m.tensors[i+1:]...)
			return
		}
	}
	panic(name)
}

func (m *tiny) tensor(name string) *safetensorstest.Tensor {
	for i := range m.tensors {
		if m.tensors[i].Name == name {
			return &m.tensors[i]
		}
	}
	panic(name)
}

// write puts the checkpoint into a new directory and returns that.
func (m *tiny) write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.CopyFS(dir, os.DirFS("../tokenizer/testdata/tiny-spm")); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(m.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := safetensorstest.Write(filepath.Join(dir, "model.safetensors"), m.tensors, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTiny(t *testing.T) {
	m := newTiny()
	m.add("model.layers.0.self_attn.rotary_emb.inv_freq", 4)
	dir := m.write(t)
	job, err := Prepare(t.Context(), dir, Options{Type: F16})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if _, err := job.Write(context.Background(), path, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	for _, x := range f.Tensors {
		names = append(names, x.Name+":"+x.Type.String())
	}
	want := "output.weight:F16 token_embd.weight:F16 blk.0.attn_norm.weight:F32 blk.0.ffn_down.weight:F16 " +
		"blk.0.ffn_gate.weight:F16 " +
		"blk.0.ffn_up.weight:F16 blk.0.ffn_norm.weight:F32 blk.0.attn_k.weight:F16 blk.0.attn_output.weight:F16 " +
		"blk.0.attn_q.weight:F16 " +
		"blk.0.attn_v.weight:F16 output_norm.weight:F32"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("tensors\n%s, want\n%s", got, want)
	}
	if f.Size != job.Size() {
		t.Errorf("%d bytes, predicted %d", f.Size, job.Size())
	}
}

// TestRefused breaks the checkpoint in one way each; the error must name the cause and the directory.
func TestRefused(t *testing.T) {
	set := func(key string, v any) func(*tiny) { return func(m *tiny) { m.config[key] = v } }
	for name, c := range map[string]struct {
		change func(*tiny)
		kind   error
		text   string
	}{
		"unknown-class": {set("architectures", []string{"NoSuchForCausalLM"}), fault.Unsupported,
			`"NoSuchForCausalLM" is not supported; the nearest that are: `},
		"no-class": {set("architectures", nil), fault.Broken, `"architectures"`},
		"quantized": {func(m *tiny) {
			m.drop("model.layers.0.mlp.up_proj.weight")
			for _, part := range []string{"qweight", "qzeros", "g_idx", "scales"} {
				m.add("model.layers.0.mlp.up_proj."+part, 2, 2)
			}
		}, fault.Unsupported, `"model.layers.0.mlp.up_proj.qweight": weights quantized by gptq`},
		"activation": {set("hidden_act", "gelu"), fault.Unsupported, `"hidden_act" is "gelu"`},
		"rope-dynamic": {set("rope_scaling", map[string]any{"type": "dynamic", "factor": 2}), fault.Unsupported,
			`rope type "dynamic"`},
		"rope-no-factor": {set("rope_scaling", map[string]any{"type": "linear"}), fault.Broken, "without a factor"},
		"rope-per-attention": {set("rope_parameters", map[string]any{"full_attention": map[string]any{}}),
			fault.Unsupported, "full_attention"},
		"rope-mrope": {set("rope_scaling", map[string]any{"type": "default", "mrope_section": []int{1, 2}}),
			fault.Unsupported, "mrope_section"},
		"nested-model":       {set("text_config", 3), fault.Broken, "text_config"},
		"local-rope":         {set("rope_local_base_freq", 1e4), fault.Unsupported, "sliding_attention"},
		"draft-model":        {set("draft_vocab_size", 100), fault.Usage, "is a draft for another model"},
		"rope-not-an-object": {set("rope_scaling", 3), fault.Broken, "rope_scaling"},
		"layers-not-integer": {set("num_hidden_layers", 1.5), fault.Broken, `"num_hidden_layers": want an integer`},
		"negative":           {set("max_position_embeddings", -1), fault.Broken, "-1"},
		"epsilon-string":     {set("rms_norm_eps", "small"), fault.Broken, `"rms_norm_eps": want a number`},
		"more-layers": {set("num_hidden_layers", 2), fault.Broken,
			"9 tensors are missing for 2 layers:\n  model.layers.1.input_layernorm.weight"},
		"fewer-layers":     {set("num_hidden_layers", 0), fault.Unsupported, "9 tensors have no place"},
		"heads-do-not-fit": {set("num_attention_heads", 3), fault.Broken, "q_proj"},
		"vocabulary":       {set("vocab_size", tinyVocab+1), fault.Broken, "tokens\" has 303 elements"},
		"unmapped": {func(m *tiny) { m.add("model.layers.0.extra.weight", 3) }, fault.Unsupported,
			"model.layers.0.extra.weight"},
		"layer-with-zero": {func(m *tiny) { m.add("model.layers.00.mlp.up_proj.weight", 3) }, fault.Unsupported,
			"model.layers.00"},
		"missing": {func(m *tiny) { m.drop("model.layers.0.mlp.up_proj.weight") }, fault.Broken,
			"model.layers.0.mlp.up_proj.weight"},
		"precision": {func(m *tiny) { m.tensor("model.norm.weight").DType = safetensors.I32 },
			fault.Unsupported, `tensor "model.norm.weight" holds I32`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTiny()
			c.change(m)
			dir := m.write(t)
			job, err := Prepare(t.Context(), dir, Options{})
			if err == nil {
				job.Close()
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("got %v\nwant %v with %q and the directory", err, c.kind, c.text)
			}
		})
	}
}

func TestNotFinite(t *testing.T) {
	m := newTiny()
	x := m.tensor("model.layers.0.self_attn.v_proj.weight")
	binary.LittleEndian.PutUint32(x.Data[4*(3*tinyHidden+7):], math.Float32bits(float32(math.NaN())))
	job, err := Prepare(t.Context(), m.write(t), Options{Type: F32})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	path := filepath.Join(t.TempDir(), "x.gguf")
	_, err = job.Write(context.Background(), path, writer.Options{})
	if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(),
		`tensor "blk.0.attn_v.weight": row 3, column 7`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("output written")
	}
}

func TestDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		kind error
		text string
	}{
		{file, fault.Usage, "not a directory"},
		{file + "-missing", fault.Usage, "no such directory"},
		{t.TempDir(), fault.Broken, "config.json"},
	} {
		if _, err := Prepare(t.Context(), c.dir, Options{}); !errors.Is(err, c.kind) ||
			!strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: got %v, want %v", c.dir, err, c.kind)
		}
	}
}

func TestHadamard(t *testing.T) {
	dir := newTiny().write(t)
	path := filepath.Join(dir, "hadamard_packing.json")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	j, err := Prepare(t.Context(), dir, Options{})
	if err != nil {
		t.Fatalf("directory of the manifest's name: %v", err)
	}
	j.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"schema_version": 1, "kind": "hadamard-weight-fold"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), dir, Options{}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), dir+": hadamard_packing.json") {
		t.Errorf("got %v, want an error that names the manifest", err)
	}
}

func TestOutput(t *testing.T) {
	dir := newTiny().write(t)
	job, err := Prepare(t.Context(), dir, Options{Type: BF16})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	for _, c := range []struct{ out, want string }{
		{"", filepath.Join(dir, "Tiny-27K-BF16.gguf")},
		{dir, filepath.Join(dir, "Tiny-27K-BF16.gguf")},
		{"x.gguf", "x.gguf"},
		{"a/m-{ftype}.gguf", "a/m-bf16.gguf"},
		{"m-{OUTTYPE}-{{x}}{}", "m-BF16-{x}bf16"},
	} {
		got, err := job.Output(c.out)
		if err != nil || got != filepath.FromSlash(c.want) {
			t.Errorf("%q: %q %v, want %q", c.out, got, err, c.want)
		}
	}
	for _, out := range []string{"m-{what}", "m-{ftype", "m-}"} {
		if got, err := job.Output(out); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %q %v, want a usage error", out, got, err)
		}
	}
}

func TestFromFileName(t *testing.T) {
	for name, want := range map[string]OutType{"m-f16.gguf": F16, "m-BF16": BF16, "M-Q8_0.GGUF": Q8_0, "m-f32": F32} {
		if got, ok := FromFileName(name); !ok || got != want {
			t.Errorf("%s: %v %v", name, got, ok)
		}
	}
	for _, name := range []string{"m.gguf", "mf16.gguf", "f16.gguf", "m-f16-x.gguf", "m-auto.gguf"} {
		if got, ok := FromFileName(name); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}
