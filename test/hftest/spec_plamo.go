package hftest

import (
	"fmt"
	"strings"
)

// plamoFiles returns the tokenizer files of PLaMo 2 and 3, with 290 tokens.
func plamoFiles(class string) map[string]string {
	var b strings.Builder
	for i, text := range []string{"<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>", "<|plamo:op|>",
		"<|plamo:tag|>"} {
		typ := "CONTROL"
		if i == 0 {
			typ = "UNKNOWN"
		}
		fmt.Fprintf(&b, "[%q, 0.0, %q, 0, 0]\n", text, typ)
	}
	for i := range 256 {
		fmt.Fprintf(&b, "[\"<0x%02X>\", -10.0, \"BYTE\", 0, 0]\n", i)
	}
	for i, word := range strings.Fields(
		"the he in er an re on at en nd or es ing ed is ar te of it as to al ll me no be ou do") {
		fmt.Fprintf(&b, "[%q, %d.5, \"NORMAL\", 1, 0]\n", word, -i-2)
	}
	return map[string]string{
		"tokenizer.jsonl": b.String(),
		"tokenizer_config.json": `{"add_bos_token": true, "add_eos_token": false, "bos_token": "<|plamo:bos|>", "eos_token": "<|plamo:eos|>", "pad_token": "<|plamo:pad|>",
			"unk_token": "<|plamo:unk|>", "tokenizer_class": "` + class + `"}`,
	}
}

func init() {
	const norms = `
		bid = num_hidden_layers
		hd  = hidden_size_per_head
		model.embed_tokens.weight                                                                   | vocab_size, hidden_size
		model.norm.weight                                                                           | hidden_size
		model.layers.layers.{bid}.{pre_mixer,post_mixer,pre_mlp,post_mlp}_norm.weight               | hidden_size
		model.layers.layers.{bid}.mlp.gate_up_proj.weight                                           | 2*intermediate_size, hidden_size
		model.layers.layers.{bid}.mlp.down_proj.weight                                              | hidden_size, intermediate_size
	`
	add(Spec{
		Name:      "plamo2",
		NoLoad:    "the runtime does not finish if the first layer has no attention: its RoPE is of 0 values",
		Tokenizer: "none",
		Files:     plamoFiles("Plamo2Tokenizer"),
		NoEdge:    true,
		Config: `{"architectures": ["Plamo2ForCausalLM"], "attention_window_size": 2048,
			"auto_map": {"AutoConfig": "modeling_plamo.Plamo2Config"}, "bos_token_id": 1, "eos_token_id": 2,
			"eval_attention_n_bit": null, "eval_mlp_n_bit": null, "fp8_accum_dtype": "bfloat16",
			"full_attention_idx": null, "hidden_size": 64, "hidden_size_per_head": 16, "intermediate_size": 96,
			"linear_type": "normal", "mamba_chunk_size": 256, "mamba_d_conv": 4, "mamba_d_state": 16,
			"mamba_enabled": true, "mamba_num_heads": 8, "mamba_step": 2, "max_position_embeddings": 10485760,
			"model_type": "plamo2", "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
			"pad_token_id": 3, "rms_norm_eps": 1e-06, "tokenizer_class": "Plamo2Tokenizer", "torch_dtype": "bfloat16",
			"transformers_version": "4.46.2", "use_cache": true, "use_predefined_initial_state": false,
			"vocab_size": 290}`,
		Tensors: norms + `
			in = mamba_num_heads*hd
			model.layers.layers.{bid}.mixer.qkv_proj.weight            | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size | if bid % 2 == 1
			model.layers.layers.{bid}.mixer.o_proj.weight              | hidden_size, num_attention_heads*hd                         | if bid % 2 == 1
			model.layers.layers.{bid}.mixer.q_weight                   | num_attention_heads, hd                                     | if bid % 2 == 1 | fill norm
			model.layers.layers.{bid}.mixer.k_weight                   | num_key_value_heads, hd                                     | if bid % 2 == 1 | fill norm
			model.layers.layers.{bid}.mixer.in_proj.weight             | 2*in, hidden_size                                           | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.out_proj.weight            | hidden_size, in                                             | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.conv1d.weight              | in, 1, mamba_d_conv                                         | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.bcdt_proj.weight           | 64+2*mamba_d_state, in                                      | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.dt_proj.weight             | mamba_num_heads, 64                                         | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.{dt_bias,A_log,D}          | mamba_num_heads                                             | if bid % 2 == 0
			model.layers.layers.{bid}.mixer.dt_norm_weight             | 64                                                          | if bid % 2 == 0 | fill norm
			model.layers.layers.{bid}.mixer.{B,C}_norm_weight          | mamba_d_state                                               | if bid % 2 == 0 | fill norm
			`,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"rms_norm_eps": null, "mamba_d_conv": 4, "max_position_embeddings": null}`},
		},
	})
	add(Spec{
		Name:      "plamo3",
		Tokenizer: "none",
		Files:     plamoFiles("Plamo3Tokenizer"),
		Config: `{"architectures": ["Plamo3ForCausalLM"], "auto_map": {"AutoConfig": "modeling_plamo.Plamo3Config"},
			"bos_token_id": 1, "eos_token_id": 2, "head_dim": 16, "hidden_size": 64, "hidden_size_per_head": 16,
			"intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "plamo3", "num_attention_heads": 4,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "pad_token_id": 3, "rms_norm_eps": 1e-06,
			"rope_local_theta": 10000, "rope_theta": 1000000, "sliding_window": 2048, "sliding_window_pattern": 8,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 290,
			"window_size": 2048}`,
		Tensors: norms + `
			model.layers.layers.{bid}.mixer.qkv_proj.weight            | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
			model.layers.layers.{bid}.mixer.o_proj.weight              | hidden_size, num_attention_heads*hd
			model.layers.layers.{bid}.mixer.{q,k}_norm.weight          | hd
			`,
		Variants: []Variant{
			{Name: "whole", Seed: 3, DType: "F16", Out: "bf16", Set: `{"window_size": null, "sliding_window": null}`},
		},
	})
}
