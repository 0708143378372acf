package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/test/hftest"
)

// made writes the first variant of a spec to a new directory. replace has pairs of old and new text in its tensor
// table.
func made(t *testing.T, spec string, replace ...string) (*hftest.Spec, string) {
	t.Helper()
	s := *hftest.Lookup(spec)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(s.Tensors, replace[i]) {
			t.Fatalf("%s: no %q in the table of its tensors", spec, replace[i])
		}
	}
	s.Tensors = strings.NewReplacer(replace...).Replace(s.Tensors)
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	return &s, dir
}

// configure overrides keys of config.json by those of set; null removes a key.
func configure(t *testing.T, dir, set string) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config, change map[string]json.RawMessage
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(set), &change); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, change)
	maps.DeleteFunc(config, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// convertSpec converts a checkpoint of a spec in a directory that holds no other files.
func convertSpec(s *hftest.Spec, dir string, flags ...string) (code int, out string, err error) {
	if pre := s.PreTokenizer(); pre != "" {
		flags = append(flags, "--pre", pre)
	}
	return call(append([]string{"--progress", "none", "--outfile", filepath.Join(dir, "out.gguf"), dir}, flags...)...)
}

// TestHostileSizes converts checkpoints whose config.json does not fit their tensors: no loader would accept the
// file.
func TestHostileSizes(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		replace []string
		set     string
		want    string // part of the message
	}{
		"hidden-size": {spec: "llama", set: `{"hidden_size": 128, "head_dim": 16}`,
			want: `"llama.embedding_length" is 128 (from "hidden_size")`},
		"hidden-size-half": {spec: "gemma2", set: `{"hidden_size": 32}`, want: `(from "hidden_size")`},
		"hidden-size-bert": {spec: "bert", set: `{"hidden_size": 128}`,
			want: `"bert.embedding_length" is 128 (from "hidden_size")`},
		"hidden-size-gpt2": {spec: "gpt2", set: `{"n_embd": 32}`, want: `(from "n_embd")`},
		"hidden-size-mamba": {spec: "mamba", set: `{"hidden_size": 32, "intermediate_size": 64}`,
			want: "\"mamba.embedding_length\" is 32"},
		"hidden-size-t5":   {spec: "t5", set: `{"d_model": 128}`, want: `(from "d_model")`},
		"hidden-size-rwkv": {spec: "rwkv7", set: `{"hidden_size": 128}`, want: "\"rwkv7.embedding_length\" is 128"},
		"intermediate-size": {spec: "llama", set: `{"intermediate_size": 128}`,
			want: `"llama.feed_forward_length" is 128 (from "intermediate_size")`},
		"intermediate-size-moe": {spec: "qwen3_moe", set: `{"moe_intermediate_size": 48}`,
			want: `(from "moe_intermediate_size")`},
		"intermediate-size-t5": {spec: "t5", set: `{"d_ff": 64}`, want: `(from "d_ff")`},
		"head-dim": {spec: "qwen3_moe", set: `{"head_dim": 8}`,
			want: `attention.key_length" is 8 (from "head_dim")`},
		"head-dim-gemma": {spec: "gemma", set: `{"head_dim": 64}`,
			want: `"gemma.attention.key_length" is 64 (from "head_dim")`},
		"head-dim-cohere": {spec: "cohere2", set: `{"head_dim": 24}`,
			want: "want n_embd_q = n_embd, found 96 and 64"},
		"head-dim-mla": {spec: "deepseek_v3", set: `{"qk_nope_head_dim": 24, "v_head_dim": 8}`,
			want: "attention.value_length_mla\" is 8"},
		"low-rank": {spec: "deepseek_v3", set: `{"q_lora_rank": 24}`, want: `(from "q_lora_rank")`},
		"key-heads": {spec: "llama", set: `{"num_key_value_heads": 1}`,
			want: "attention.head_count_kv\" is 1"},
		"key-heads-too-many": {spec: "qwen3_moe", set: `{"num_key_value_heads": 3}`,
			want: "want n_head_kv divides n_head, found 3 and 4"},
		"experts-more": {spec: "qwen3_moe", set: `{"num_experts": 64}`, want: "missing"},
		"experts-less": {spec: "olmoe", set: `{"num_experts": 2}`,
			want: "of more experts than the model has:\n  model.layers.0.mlp.experts.2.down_proj.weight"},
		"experts-stacked": {spec: "granitemoe", set: `{"num_local_experts": 8}`,
			want: `"granitemoe.expert_count" is 8 (from "num_local_experts")`},
		"experts-used": {spec: "qwen3_moe", set: `{"num_experts_per_tok": 1000}`,
			want: `config.json: "qwen3moe.expert_used_count" is 1000, but "qwen3moe.expert_count" is 4`},
		"experts-used-none": {spec: "mixtral", set: `{"num_experts_per_tok": 0}`,
			want: "\"llama.expert_used_count\" is 0"},
		"experts-in-groups": {spec: "deepseek_v3", set: `{"n_group": 3}`,
			want: "want @expert_group_count divides n_expert, found 3 and 4"},
		"experts-groups-used": {spec: "deepseek_v3", set: `{"topk_group": 2}`,
			want: "want @expert_group_used_count + 1 <= @expert_group_count, found 3 and 2"},
		"experts-groups": {spec: "deepseek_v3", set: `{"n_group": 4}`,
			want: "want @expert_group_count + 1 <= n_expert, found 5 and 4"},
		"state-size": {spec: "mamba", set: `{"state_size": 32}`, want: "\"mamba.ssm.state_size\" is 32"},
		"kernel":     {spec: "mamba2", set: `{"conv_kernel": 3}`, want: "\"mamba2.ssm.conv_kernel\" is 3"},
		"decoder-layers": {spec: "mt5", set: `{"num_decoder_layers": 4}`,
			want: "decoder.block.3.layer.0.SelfAttention.k.weight"},
		"negative-epsilon": {spec: "llama", set: `{"rms_norm_eps": -1e-6}`,
			want: `llama.attention.layer_norm_rms_epsilon (from "rms_norm_eps"): want a number that is not negative`},
		"negative-epsilon-bert": {spec: "bert", set: `{"layer_norm_eps": -1}`, want: `(from "layer_norm_eps")`},
		"negative-size":         {spec: "llama", set: `{"intermediate_size": -96}`, want: "-96"},
		"no-context": {spec: "llama", set: `{"max_position_embeddings": 0}`,
			want: "\"llama.context_length\" is 0"},
		"positions": {spec: "gpt2", set: `{"n_positions": 8, "n_ctx": 8}`,
			want: "\"gpt2.context_length\" is 8"},
		"vocabulary": {spec: "llama", set: `{"vocab_size": 2000}`,
			want: "\"tokenizer.ggml.tokens\" has 2000 elements"},
		"labels": {spec: "roberta-classifier",
			set:  `{"id2label": {"0": "a", "1": "b", "2": "c", "3": "d", "4": "e", "5": "f", "6": "g"}}`,
			want: "classifier.output_labels\" has 7 elements"},
		"transposed-down": {spec: "llama", replace: []string{"mlp.down_proj.weight",
			"mlp.down_proj.weight | intermediate_size, hidden_size #"},
			set: "{}", want: `tensor "model.layers.0.mlp.down_proj.weight" (blk.0.ffn_down.weight): dimensions 64 x 96, want 96 x 64: `},
		"transposed-gate": {spec: "gemma", replace: []string{"mlp.{gate,up}_proj.weight",
			"mlp.{gate,up}_proj.weight | hidden_size, intermediate_size #"}, set: "{}", want: "blk.0.ffn_gate.weight"},
		"transposed-key": {spec: "qwen2", replace: []string{"self_attn.{k,v}_proj.weight",
			"self_attn.{k,v}_proj.weight | hidden_size, num_key_value_heads*16 #"}, set: "{}",
			want: "blk.0.attn_k.weight"},
		"norm-of-a-head": {spec: "qwen3", replace: []string{"self_attn.{q,k}_norm.weight",
			"self_attn.{q,k}_norm.weight | hidden_size #"}, set: "{}", want: `"qwen3.attention.key_length" is 32 (from "head_dim")`},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, c.spec, c.replace...)
			configure(t, dir, c.set)
			before, err := fs.Glob(os.DirFS(dir), "*")
			if err != nil {
				t.Fatal(err)
			}
			code, _, err := convertSpec(s, dir)
			if code != 3 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit %d, %v; want 3 and %q", code, err, c.want)
			}
			if after, _ := fs.Glob(os.DirFS(dir), "*"); len(after) != len(before) {
				t.Errorf("files %v, were %v", after, before)
			}
			if c.set != "{}" { // the unchanged tensors convert
				return
			}
			s, dir = made(t, c.spec)
			if code, _, err := convertSpec(s, dir); code != 0 {
				t.Errorf("unchanged: exit %d, %v", code, err)
			}
		})
	}
}

// TestTensorNameOfTwoLines refuses a tensor whose name looks like another message.
func TestTensorNameOfTwoLines(t *testing.T) {
	s, dir := made(t, "llama")
	const name = "a\nggconv: done\x1b[2J"
	must(t, safetensorstest.Write(filepath.Join(dir, "model-00002-of-00002.safetensors"),
		[]safetensorstest.Tensor{{Name: name, DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}}, nil))
	must(t, os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "model-00001-of-00002.safetensors")))
	code, _, err := convertSpec(s, dir)
	if want := `a\nggconv: done`; code != 4 || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "\nggconv") {
		t.Errorf("exit %d, %v; want 4 and %q", code, err, want)
	}
}
