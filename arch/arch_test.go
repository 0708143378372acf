package arch

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

func TestMap(t *testing.T) {
	for name, want := range map[string]string{
		"model.embed_tokens.weight":                     "token_embd.weight",
		"lm_head.weight":                                "output.weight",
		"model.layers.0.self_attn.q_proj.weight":        "blk.0.attn_q.weight",
		"model.layers.11.self_attn.k_proj.bias":         "blk.11.attn_k.bias",
		"model.layers.3.self_attn.rotary_emb.inv_freq":  "",
		"model.layers.12.self_attn.q_proj.weight":       "none", // beyond the last layer
		"model.layers.01.self_attn.q_proj.weight":       "none",
		"model.layers.-1.self_attn.q_proj.weight":       "none",
		"model.layers..self_attn.q_proj.weight":         "none",
		"model.layers.0.self_attn.q_proj":               "none",
		"model.layers.0.self_attn.q_proj.weight_scale":  "none",
		"model.layers.0.input_layernorm.bias":           "none",
		"xmodel.embed_tokens.weight":                    "none",
		"model.layers.99999999999999.mlp.up_proj.bias":  "none",
		"model.layers.0.self_attn.q_proj.weight.weight": "none",
	} {
		if got := place(t, llama, name, 12); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// place returns the name in the file of a tensor of a model with that many layers.
func place(t *testing.T, a *table.Arch, name string, layers int) string {
	t.Helper()
	c := view(t, fmt.Sprintf(`{"architectures": [%q], "num_hidden_layers": %d}`, a.Classes[0], layers))
	layout, err := a.Layout(c, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(layout.Unmapped) > 0:
		return "none"
	case len(layout.Outputs) == 0:
		return ""
	}
	o := layout.Outputs[0]
	return o.Row.Outputs(o.Layer.Bid, o.Suffix)[0]
}

func TestLookup(t *testing.T) {
	a, err := Lookup("MistralForCausalLM")
	if err != nil || a != llama {
		t.Errorf("%v %v", a, err)
	}
	if _, err := Lookup("llama"); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "LlamaForCausalLM") {
		t.Errorf("got %v, want the nearest class", err)
	}
	if _, err := For(view(t, `{"architectures": ["params.json"]}`)); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a class with the name of another format's file: %v", err)
	}
}

// TestRegistry checks that no class, table or GGUF name is there twice: the tables of one name are layouts of the same
// architecture, of which one is for the way back to a checkpoint.
func TestRegistry(t *testing.T) {
	classes, seen := map[string]string{}, map[*table.Arch]bool{}
	back, graphs := map[string]*table.Arch{}, map[string]*graph.Model{}
	for _, a := range registry() {
		if seen[a] {
			t.Errorf("%s %q is registered twice", a.Name, a.Classes)
		}
		seen[a] = true
		for _, c := range slices.Concat(a.Classes, a.Body.Classes) {
			if other, ok := classes[c]; ok {
				t.Errorf("class %s belongs to %s and to %s", c, other, a.Name)
			}
			classes[c] = a.Name
		}
		if other := back[a.Name]; a.Invertible() && other != nil && len(other.Classes) == len(a.Classes) {
			t.Errorf("%s: LookupGGUF could return the table of %q or the one of %q", a.Name, other.Classes, a.Classes)
		} else if a.Invertible() && other == nil {
			back[a.Name] = a
		}
		if other := graphs[a.Name]; a.Graph != nil && other != nil && other != a.Graph {
			t.Errorf("%s: the table of %q has a graph of its own", a.Name, a.Classes)
		} else if a.Graph != nil {
			graphs[a.Name] = a.Graph
		}
	}
	if len(classes) < 250 || len(back) < 30 || len(graphs) < 100 {
		t.Errorf("%d classes, %d names with a way back, %d graphs", len(classes), len(back), len(graphs))
	}
}

// TestRules checks that a model type has the rules of one table, and defaults.
func TestRules(t *testing.T) {
	seen := map[string]string{}
	for _, a := range every() {
		for _, kind := range a.Config.Types {
			if other, ok := seen[kind]; ok {
				t.Errorf("model type %s has rules in the tables of %s and of %s", kind, other, a.Name)
			}
			seen[kind] = a.Name
			c := view(t, fmt.Sprintf(`{"architectures": ["X"], "model_type": %q, "num_hidden_layers": 2,
				"hidden_size": 8, "num_attention_heads": 2}`, kind))
			if c.KnownType() == "" || typeRules()[kind] != &a.Config {
				t.Errorf("%s: model type %s is not known", a.Name, kind)
			}
		}
		for _, class := range a.Config.Outer {
			if !slices.Contains(a.Classes, class) {
				t.Errorf("%s: %s is another table's class", a.Name, class)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d model types with rules", len(seen))
	}
}

// TestDefaults checks the defaults that complete a config.json of a few keys.
func TestDefaults(t *testing.T) {
	c := view(t, `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_key_value_heads": null}`)
	_, m, err := llama.KVs(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kv := range m {
		got = append(got, strings.TrimPrefix(kv.Key, "llama.")+"="+kv.Value.String())
	}
	want := "block_count=32 context_length=2048 embedding_length=4096 feed_forward_length=11008 " +
		"attention.head_count=32 attention.head_count_kv=32 " +
		"rope.freq_base=10000 attention.layer_norm_rms_epsilon=1e-06 attention.key_length=128 " +
		"attention.value_length=128 general.file_type=1 " +
		"vocab_size=32000 rope.dimension_count=128"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if d := c.Defaulted(); len(d) != 7 {
		t.Errorf("defaulted %q", d)
	}
	if v, ok := m.Get(gguf.KeyFileType); !ok || v.Type() != gguf.Uint32Type {
		t.Errorf("file type %v", v)
	}
}

// TestAlias checks that another name of a key counts, even when the key is there too.
func TestAlias(t *testing.T) {
	c := view(t, `{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 3, "num_hidden_layers": 5, "hidden_size": 96}`)
	for key, want := range map[string]int64{"n_layer": 5, "n_embd": 96, "n_head": 12} {
		if n, _, err := c.Int(key); n != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", key, n, err, want)
		}
	}
	if c.Has("num_hidden_layers", "hidden_size") {
		t.Error("the other names are still there")
	}
}

// TestMoreThanReference checks tensors of published checkpoints that the reference
// refuses although the file needs nothing of them.
func TestMoreThanReference(t *testing.T) {
	for _, c := range []struct {
		arch *table.Arch
		name string
	}{
		{gpt2, "h.0.attn.bias"}, // the causal mask
		{gpt2, "transformer.h.1.attn.masked_bias"},
		{modernBert, "decoder.bias"},
	} {
		if got := place(t, c.arch, c.name, 2); got != "" {
			t.Errorf("%s: %q, want it left out", c.name, got)
		}
	}
}

func TestBrokenConfig(t *testing.T) {
	for _, text := range []string{"", "{", "null", "[]", "{} {}", `{"architectures": []}`,
		`{"architectures": "LlamaForCausalLM"}`, `{"architectures": [1]}`,
		`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_attention_heads": 0}`} {
		if _, err := ParseConfig([]byte(text)); !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), config.ConfigFile) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 2}}`))
	f.Add([]byte(`{"architectures": ["LlamaForCausalLM"], "head_dim": 1e3, "rope_scaling": {"rope_type": "llama3", "factor": "x"}}`))
	for _, class := range Classes() {
		f.Add(fmt.Appendf(nil, `{"architectures": [%q], "model_type": "llama", "num_hidden_layers": 2}`, class))
	}
	f.Add([]byte(`{"architectures": ["MiniCPM3ForCausalLM"], "qk_rope_head_dim": 0, "rope_scaling": {"long_factor": [1, 1]}}`))
	// what most rows ask for, in sizes that divide each other and in some that do not
	for _, class := range Classes() {
		for _, n := range []int{0, 1, 2, -3} {
			f.Add(fmt.Appendf(nil, `{"architectures": [%q], "hidden_size": 64, "num_attention_heads": %[2]d, "num_key_value_heads": %[2]d, "num_hidden_layers": %[2]d,
				"n_layers": %[2]d, "num_layers": %[2]d, "vocab_size": 10, "max_position_embeddings": 100, "intermediate_size": %[2]d, "rms_norm_eps": 1e-5, "head_dim": %[2]d,
				"num_local_experts": %[2]d, "first_k_dense_replace": %[2]d, "layer_types": ["conv", "full_attention"], "partial_rotary_factor": 0.5, "sliding_window": 4,
				"rope_scaling": {"type": "longrope", "long_factor": [1, 2], "short_factor": [1, 2], "original_max_position_embeddings": %[2]d, "rope_theta": 10000},
				"ffn_multipliers": [0.5, 1], "ffn_dim_divisor": %[2]d, "model_dim": 64, "num_transformer_layers": 2, "block_multiple_of": %[2]d, "block_auto_adjust_ff_dim": true,
				"block_configs": [{"attention": {"n_heads_in_group": %[2]d}, "ffn": {"ffn_mult": 1.5}}], "dim_model_base": %[2]d, "scale_depth": 1.4}`, class, n))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := ParseConfig(data)
		if err != nil {
			return
		}
		c := cfg.View(config.Options{})
		a, err := For(c)
		if err != nil {
			return
		}
		// every row and extra tensor answers with a value or an error
		a.Blocks(c)
		a.KVs(c, 0)
		for _, e := range a.Extra {
			e.Make(c)
		}
		names := []string{"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.experts.3.up_proj.weight"}
		for _, t := range a.Tensors {
			names = append(names, strings.NewReplacer("{bid}", "1", "{xid}", "1", "{part}",
				"q").Replace(t.HF)+".weight")
		}
		a.Layout(c, names)
		if fresh, err := ParseConfig(data); err != nil || !reflect.DeepEqual(fresh, cfg) {
			t.Errorf("the tables have changed the configuration of %q", data)
		}
	})
}

// TestLayersInNames checks that the outputs of a row name the layer if the row
// does, and only then.
func TestLayersInNames(t *testing.T) {
	for _, a := range every() {
		for _, row := range a.Tensors {
			for _, name := range row.Outputs(0, "") {
				if slices.Contains(row.Outputs(1, ""), name) == strings.Contains(row.HF, "{bid}") && !row.Drops() {
					t.Errorf("%s: row %s maps to %s", a.Name, row.HF, name)
				}
			}
		}
	}
}

// view returns a view of the config.json of these bytes, without facts.
func view(t testing.TB, cfg string) *config.View {
	t.Helper()
	c, err := ParseConfig([]byte(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return c.View(config.Options{})
}

// TestFused checks that the tables of one architecture have the same Fused.
func TestFused(t *testing.T) {
	fused := map[string]table.Fused{}
	for _, a := range every() {
		if other, ok := fused[a.Name]; ok && other != a.Fused {
			t.Errorf("%s: tables with different Fused", a.Name)
		}
		fused[a.Name] = a.Fused
	}
	if fused["qwen3next"] != table.FusedQKV|table.FusedGateUp || fused["mamba"] != 0 {
		t.Errorf("qwen3next %b, mamba %b", fused["qwen3next"], fused["mamba"])
	}
}

// every returns all tables, Variants included.
func every() []*table.Arch {
	all := append(All(), mistralFormat)
	for _, a := range all {
		for _, other := range a.Variants {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}
