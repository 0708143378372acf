package interop

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// checkpoint is one made-up checkpoint: arguments of the oracle's mkhf.py, and
// changes to files afterwards.
type checkpoint struct {
	dir    string // name of the directory, which is part of the input
	args   string // separated by blanks; the first is the architecture
	config string // JSON object merged into config.json; null removes a key
	types  string // output types, separated by blanks
}

// every lists all output types.
const every = "f16 f32 bf16 q8_0 auto"

// checkpoints covers everything in a Llama checkpoint on which the bytes of the GGUF file depend.
var checkpoints = []checkpoint{
	{"llama", "llama", "", every},
	{"llama-bias", "llama-bias", "", every},
	{"mistral", "mistral", "", every},
	{"seed-2", "llama --seed 2 --dtype bf16", "", "f16 auto"},
	{"seed-3-f32", "mistral --seed 3 --dtype f32", "", every},
	{"bias-seed-4", "llama-bias --seed 4 --dtype bf16", "", "bf16 q8_0"},
	{"shards", "llama --shards 3 --seed 5", "", "f16"},
	{"bias-shards", "llama-bias --shards 4 --seed 15 --dtype f32", "", "q8_0"},
	{"one-shard-with-index", "mistral --opt index=1", "", "auto"},
	{"tied", "llama --set tie_word_embeddings=true", "", "f16 q8_0"},
	{"tied-mistral", "mistral --set tie_word_embeddings=true", "", "auto"},
	{"edge", "llama --opt edge=1 --dtype f32", "", every},
	{"edge-bf16", "llama-bias --opt edge=1 --dtype bf16", "", every},
	{"eleven-layers", "llama --set num_hidden_layers=11 hidden_size=64 num_attention_heads=4 num_key_value_heads=1 " +
		"intermediate_size=96", "", "f16 q8_0"},
	{"odd-rows", "llama --set hidden_size=80 num_attention_heads=4 num_key_value_heads=2 intermediate_size=152",
		"", "q8_0 f16"},
	{"one-head-per-key", "llama --set num_key_value_heads=8", "", "f16"},
	{"one-key-head", "mistral --set num_key_value_heads=1", "", "f16"},
	{"head-dim", "llama --set head_dim=64", "", "f16"},
	{"head-dim-mistral", "mistral --set head_dim=16 num_key_value_heads=4", "", "f16"},
	{"larger-vocabulary", "llama --set vocab_size=1100", "", "f16"},
	{"config-style-v5", "llama --opt style=v5", "", "f16"},
	{"config-style-v5-yarn",
		`llama --opt style=v5 --set rope_scaling={"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":512}`, "", "f16"},
	{"rope-linear", `llama --set rope_scaling={"type":"linear","factor":2.5}`, "", "f16"},
	{"rope-linear-new-key", `mistral --set rope_scaling={"rope_type":"linear","factor":4}`, "", "f16"},
	{"rope-llama3", `llama --set rope_theta=500000.0 rope_scaling={"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}`, "", "f16 q8_0"},
	{"rope-llama3-odd",
		`llama --set head_dim=128 rope_theta=123456.7 rope_scaling={"factor":32.0,"low_freq_factor":1.7,"high_freq_factor":5.3,"original_max_position_embeddings":1000,"rope_type":"llama3"}`, "", "f32"},
	{"rope-llama3-no-length",
		`mistral --set max_position_embeddings=4096 rope_scaling={"factor":4.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"rope_type":"llama3"}`, "", "f16"},
	{"rope-yarn", `llama --set rope_scaling={"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":512,"beta_fast":32.0,"beta_slow":1.0,"attention_factor":0.8,"truncate":false}`, "", "f16"},
	{"rope-yarn-other-keys",
		`llama --set rope_scaling={"type":"yarn","factor":16,"original_max_position_embeddings":4096,"extrapolation_factor":1.0,"attn_factor":1.25}`, "", "f16"},
	{"rope-yarn-no-length", `mistral --set rope_scaling={"rope_type":"yarn","factor":2.0}`,
		`{"original_max_position_embeddings":512}`, "f16"},
	{"rope-default", `llama --set rope_scaling={"rope_type":"default"}`, "", "f16"},
	{"defaults", "llama --set max_position_embeddings=2048 rms_norm_eps=1e-6 num_key_value_heads=8",
		`{"max_position_embeddings":null,"rms_norm_eps":null,"num_key_value_heads":null,"rope_theta":null,"rope_scaling":null,"hidden_act":null}`, "f16"},
	{"defaults-mistral", "mistral --set max_position_embeddings=131072 num_key_value_heads=8",
		`{"max_position_embeddings":null,"rms_norm_eps":null,"num_key_value_heads":null,"rope_theta":null}`, "f16"},
	{"no-model-type", "llama --set head_dim=32",
		`{"model_type":null,"rope_scaling":{"rope_type":"linear","factor":3.0}}`, "f16"},
	{"no-head-dim-no-model-type", "llama", `{"model_type":null,"head_dim":null,"rope_scaling":null}`, "f16"},
	{"other-model-type", "llama", `{"model_type":"mistral","num_key_value_heads":2}`, "f16"},
	{"Some-Org-Llama-2-7b-chat-hf", "llama", "", "f16"},
	{"My.Model-1.6M-v0.2",
		`mistral --opt readme={"license":["mit","apache-2.0"],"tags":["a","b"],"language":["en","de"],"base_model":"org/Base-7B-v0.1","datasets":["x/y"],"model_name":"Card-Name"}`, "", "f16"},
	{"name-from-config", "llama", `{"_name_or_path":"some-org/Cool-Model-3B-Instruct-v2"}`, "auto"},
	{"sampling", `llama --opt gen={"temperature":0.6,"top_k":40,"top_p":0.95,"repetition_penalty":1.1,"do_sample":true}`, "", "f16"},
	{"no-generation-config", "llama --opt omit=generation_config.json", "", "f16"},
	{"no-tokenizer-config", "llama --opt omit=tokenizer_config.json", "", "f16"},
	{"added-tokens", `llama --set vocab_size=1030 --opt added_tokens=[["<|im_start|>",true,false],["▁two▁words",false,true]]`, "", "f16"},
	{"chat-template-file", "mistral --opt jinja=1", "", "f16"},
	{"no-prefix-space", `llama --opt tc={"add_prefix_space":false,"add_eos_token":true}`, "", "f16"},
	{"spm-nojson", "llama --opt tok=spm-nojson", "", "f16"},
	{"not-causal", "llama", `{"is_causal":false}`, "f16"},
	{"eos-list", "llama --set eos_token_id=[2,3]", "", "f16"},
}

// TestConvert converts every checkpoint with both converters.
func TestConvert(t *testing.T) {
	o := start(t)
	for _, c := range checkpoints {
		t.Run(c.dir, func(t *testing.T) {
			hf := work + "/" + c.dir
			arch, rest, _ := strings.Cut(c.args, " ")
			o.script(t, "mkhf.py", append([]string{arch, hf}, strings.Fields(rest)...)...)
			mergeConfig(t, root+hf+"/config.json", c.config)
			for _, typ := range strings.Fields(c.types) {
				t.Run(typ, func(t *testing.T) {
					ref, mine := work+"/reference.gguf", work+"/ours.gguf"
					os.Remove(root + ref)
					o.script(t, "refconvert.py", hf, ref, "--outtype", typ, "--quiet")
					ours(t, "ggconv", "--force", "--progress", "none", "--outtype", typ, "--outfile",
						root+mine, root+hf)
					same(t, root+mine, root+ref)
				})
			}
			os.RemoveAll(root + hf)
		})
	}
}

// mergeConfig merges the members of a JSON object into those of the file.
func mergeConfig(t *testing.T, path, changes string) {
	if changes == "" {
		return
	}
	data, err := os.ReadFile(path)
	must(t, err)
	var config, change map[string]any
	must(t, json.Unmarshal(data, &config))
	must(t, json.Unmarshal([]byte(changes), &change))
	for k, v := range change {
		if v == nil {
			delete(config, k)
		} else {
			config[k] = v
		}
	}
	data, err = json.Marshal(config)
	must(t, err)
	must(t, os.WriteFile(path, data, 0o666))
}

// TestDefaultName lets both converters choose the output's name.
func TestDefaultName(t *testing.T) {
	o := start(t)
	for _, dir := range []string{"llama", "Tiny-Llama-1.6M-chat-v1.0", "a b"} {
		hf := work + "/" + dir
		o.script(t, "mkhf.py", "llama", hf)
		must(t, os.CopyFS(root+hf+"-ours", os.DirFS(root+hf)))
		must(t, os.MkdirAll(root+work+"/names/"+dir, 0o777))
		o.script(t, "refconvert.py", hf, hf, "--outtype", "bf16", "--quiet")
		ours(t, "ggconv", "--outtype", "bf16", "--outfile", root+work+"/names/"+dir, root+hf)
		theirs, mine := list(t, root+hf), list(t, root+work+"/names/"+dir)
		if theirs != mine {
			t.Errorf("%s: reference wrote %q, we wrote %q", dir, theirs, mine)
		}
	}
}

// list returns the GGUF files in a directory.
func list(t *testing.T, dir string) string {
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".gguf") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
