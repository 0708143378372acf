package hftest

import (
	"fmt"
	"strings"
)

// Checkpoints with quantized matrices: one spec for each storage format.

// quantized returns the table of a small Llama with lines for each matrix of a layer: $w is its name without ".weight",
// $out and $in are its rows and columns.
func quantized(lines string) string { return quantizedParts(lines, lines) }

// quantizedParts is quantized with different lines for attention and FFN.
func quantizedParts(attention, mlp string) string {
	var b strings.Builder
	b.WriteString(llamaHead + `
	bid = num_hidden_layers
	hd  = opt(head_dim) || hidden_size / num_attention_heads
	model.embed_tokens.weight                               | vocab_size, hidden_size
	model.norm.weight                                       | hidden_size
	model.layers.{bid}.input_layernorm.weight               | hidden_size
	model.layers.{bid}.post_attention_layernorm.weight      | hidden_size
`)
	for _, m := range [][3]string{
		{"self_attn.q_proj", "num_attention_heads*hd", "hidden_size"},
		{"self_attn.{k,v}_proj", "num_key_value_heads*hd", "hidden_size"},
		{"self_attn.o_proj", "hidden_size", "num_attention_heads*hd"},
		{"mlp.{gate,up}_proj", "intermediate_size", "hidden_size"},
		{"mlp.down_proj", "hidden_size", "intermediate_size"},
	} {
		lines := attention
		if strings.HasPrefix(m[0], "mlp.") {
			lines = mlp
		}
		b.WriteString(strings.NewReplacer("$w", "model.layers.{bid}."+m[0], "$out", "("+m[1]+")", "$in",
			"("+m[2]+")").Replace(lines))
	}
	return b.String()
}

// quantizedConfig returns config.json of that Llama; quantization is its quantization_config.
func quantizedConfig(quantization string) string {
	return `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $bos, "eos_token_id": $eos,
		"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 2048, "mlp_bias": false,
		"model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
		"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
		"use_cache": true, "vocab_size": $vocab, "quantization_config": ` + quantization + `}`
}

// wideConfig is quantizedConfig with row lengths that are multiples of 64.
func wideConfig(quantization string) string {
	return strings.Replace(quantizedConfig(quantization), `"intermediate_size": 96`, `"intermediate_size": 128`, 1)
}

func init() {
	options := func(more ...Variant) []Variant {
		return append([]Variant{{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32"},
			{Name: "auto", Seed: 4, Out: "auto"}}, more...)
	}
	asQ8 := Variant{Name: "as-q8", Seed: 5, Out: "f16", Flags: []string{"--fp8-as-q8"}}
	add(Spec{
		Name:      "fp8-block",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
			"scale_fmt": "ue8m0", "weight_block_size": [32, 48], "modules_to_not_convert": ["lm_head"]}`),
		Tensors: quantized(`
			a = quantization_config.weight_block_size[0]
			b = quantization_config.weight_block_size[1]
			$w.weight           | $out, $in | as F8_E4M3 | if !opt(e5m2)
			$w.weight           | $out, $in | as F8_E5M2 | if opt(e5m2)
			$w.weight_scale_inv | floor(($out+a-1)/a), floor(($in+b-1)/b) | fill scale
			`),
		Variants: options(asQ8,
			Variant{Name: "e5m2", Seed: 6,
				Set: `{"e5m2": true, "quantization_config": {"weight_block_size": [128, 128], "fmt": "e5m2"}}`}),
	})
	add(Spec{
		Name:      "fp8-tensor",
		Tokenizer: "spm",
		Config:    quantizedConfig(`{"activation_scheme": "static", "quant_method": "fp8", "weight_block_size": null}`),
		Tensors: quantized(`
			$w.weight           | $out, $in | as F8_E4M3
			$w.weight_scale_inv |           | fill scale | if !opt(channel)
			$w.weight_scale_inv | $out      | fill scale | if opt(channel)
			$w.activation_scale |           | fill scale
			`),
		Variants: options(asQ8, Variant{Name: "channel", Seed: 6,
			Set: `{"channel": true, "tie_word_embeddings": true}`}),
	})
	const group = `"config_groups": {"group_0": {"input_activations": {"dynamic": true, "num_bits": 8, "strategy": "token", "symmetric": true, "type": "float"},
		"output_activations": null, "targets": ["Linear"], "weights": `
	const rest = `"global_compression_ratio": null, "ignore": ["lm_head"], "kv_cache_scheme": null, "quant_method": "compressed-tensors", "quantization_status": "compressed"}`
	add(Spec{
		Name:      "ct-fp8",
		Tokenizer: "spm",
		Config: quantizedConfig(`{` + group + `{"actorder": null, "block_structure": null, "dynamic": false, "group_size": null, "num_bits": 8, "observer": "minmax",
			"strategy": "channel", "symmetric": true, "type": "float"}}}, "format": "float-quantized", ` + rest),
		Tensors: quantized(`
			$w.weight       | $out, $in | as F8_E4M3
			$w.weight_scale | $out, 1   | fill scale | if !opt(blocks)
			$w.weight_scale | floor(($out+31)/32), floor(($in+47)/48) | fill scale | if opt(blocks)
			`),
		Variants: options(asQ8, Variant{Name: "blocks", Seed: 6, Flags: []string{"--fp8-as-q8"}, Set: `{"blocks": true,
			"quantization_config": {"config_groups": {"group_0": {"weights": {"strategy": "block",
			"block_structure": [32, 48]}}}}}`}),
	})
	add(Spec{
		Name:      "ct-int8",
		Tokenizer: "spm",
		Config: quantizedConfig(`{` + group + `{"actorder": null, "block_structure": null, "dynamic": false, "group_size": null, "num_bits": 8, "observer": "minmax",
			"strategy": "channel", "symmetric": true, "type": "int"}}}, "format": "int-quantized", ` + rest),
		Tensors: quantized(`
			$w.weight       | $out, $in | as I8
			$w.weight_scale | $out, 1   | fill scale
			`),
		Variants: options(asQ8, Variant{Name: "naive", Seed: 6,
			Set: `{"quantization_config": {"format": "naive-quantized"}}`}),
	})
	add(Spec{
		Name:      "modelopt-fp8",
		Tokenizer: "spm",
		Config: quantizedConfig(
			`{"ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.33.0"}, "quant_algo": "FP8",
				"quant_method": "modelopt"}`),
		Tensors: quantized(`
			$w.weight       | $out, $in | as F8_E4M3
			$w.weight_scale |           | fill scale | as F32
			$w.input_scale  |           | fill scale | as F32
			`) + `
			model.layers.{bid}.self_attn.{k_proj.k,v_proj.v}_scale |  | fill scale | as F32
			`,
		Variants: options(asQ8),
	})
	add(Spec{
		Name:      "gptq",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"bits": 4, "checkpoint_format": "gptq", "damp_percent": 0.01, "desc_act": false,
			"group_size": 32, "quant_method": "gptq", "static_groups": false, "sym": true, "true_sequential": true}`),
		Tensors: quantized(`
			b = quantization_config.bits
			g = quantization_config.group_size > 0 && quantization_config.group_size
			$w.qweight | $in*b/32, $out    | as I32 | fill bytes
			$w.qzeros  | $in/32, $out*b/32 | as I32 | fill bytes | if g
			$w.qzeros  | 1, $out*b/32      | as I32 | fill bytes | if !g
			$w.scales  | $in/32, $out      | as F16 | fill scale | if g
			$w.scales  | 1, $out           | as F16 | fill scale | if !g
			$w.g_idx   | $in               | as I32 | fill every 32    | if g && !opt(quantization_config.desc_act)
			$w.g_idx   | $in               | as I32 | fill shuffled 32 | if g && opt(quantization_config.desc_act)
			$w.g_idx   | $in               | as I32 | fill zero        | if !g
			`),
		Variants: options(
			Variant{Name: "8-bits", Seed: 5, Set: `{"quantization_config": {"bits": 8, "checkpoint_format": null}}`},
			Variant{Name: "2-bits", Seed: 6, Shards: 2,
				Set: `{"quantization_config": {"bits": 2, "checkpoint_format": "gptq_v2", "desc_act": true}}`},
			Variant{Name: "ordered", Seed: 7, Out: "q8_0", Set: `{"quantization_config": {"desc_act": true}}`},
			Variant{Name: "one-group", Seed: 8, Out: "bf16",
				Set: `{"quantization_config": {"group_size": -1, "checkpoint_format": "gptq_v2"}}`}),
	})
	add(Spec{
		Name:      "ct-pack",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"config_groups": {"group_0": {"input_activations": null, "output_activations": null, "targets": ["Linear"], "weights": {"actorder": null,
			"block_structure": null, "dynamic": false, "group_size": 32, "num_bits": 4, "observer": "minmax", "strategy": "group", "symmetric": true, "type": "int"}}},
			"format": "pack-quantized", ` + rest),
		Tensors: quantized(`
			per = floor(32 / quantization_config.config_groups.group_0.weights.num_bits)
			$w.weight_packed     | $out, floor(($in+per-1)/per)    | as I32 | fill bytes
			$w.weight_scale      | $out, $in/32                    | fill scale
			$w.weight_shape      | 2                               | as I64 | fill list $out $in
			$w.weight_zero_point | floor(($out+per-1)/per), $in/32 | as I32 | fill bytes | if !quantization_config.config_groups.group_0.weights.symmetric
			`),
		Variants: options(
			Variant{Name: "8-bits", Seed: 5,
				Set: `{"quantization_config": {"config_groups": {"group_0": {"weights": {"num_bits": 8}}}}}`},
			Variant{Name: "3-bits", Seed: 6, Shards: 2,
				Set: `{"quantization_config": {"config_groups": {"group_0": {"weights": {"num_bits": 3,
					"symmetric": false}}}}}`},
			Variant{Name: "zeros", Seed: 7, Out: "q8_0",
				Set: `{"quantization_config": {"config_groups": {"group_0": {"weights": {"symmetric": false}}}}}`}),
	})
	add(Spec{
		Name:      "bitnet-packed",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["BitnetForCausalLM"], "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "input_bits": 8,
			"intermediate_size": 96, "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 0, "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "transformers_version": "4.39.0", "use_cache": true, "vocab_size": 1008,
			"weight_bits": 1, "quantization_config": {"linear_class": "autobitlinear",
			"modules_to_not_convert": ["lm_head"], "quant_method": "bitnet", "quantization_mode": "offline"}}`,
		Tensors: quantized(`
			$w.weight       | $out/4, $in | as U8 | fill ternary
			$w.weight_scale | 1           | fill norm
			`) + `
			model.layers.{bid}.self_attn.inner_attn_ln.weight | hidden_size
			model.layers.{bid}.mlp.ffn_layernorm.weight       | intermediate_size
			`,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32"},
			{Name: "tq1_0", Seed: 4, Out: "tq1_0", Set: `{"hidden_size": 256, "intermediate_size": 256}`}},
		NoLazy: true,
	})
	const nvfp4 = `
			$w.weight         | $out, $in/2  | as U8
			$w.weight_scale   | $out, $in/16 | as F8_E4M3
			$w.weight_scale_2 |              | as F32 | fill scale | if !opt(unit)
			$w.weight_scale_2 | 1            | as F32 | fill list 1 | if opt(unit)
			$w.input_scale    |              | as F32 | fill scale | if !opt(unit)
			`
	const kvScales = `
			model.layers.{bid}.self_attn.{k_proj.k,v_proj.v}_scale |  | fill scale | as F32
			`
	add(Spec{
		Name:      "nvfp4",
		Tokenizer: "spm",
		Config: wideConfig(
			`{"ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.33.0"}, "quant_algo": "NVFP4",
				"quant_method": "modelopt"}`),
		Tensors: quantized(nvfp4) + kvScales,
		Variants: options(
			Variant{Name: "unit", Seed: 5, Out: "bf16", Set: `{"unit": true, "hidden_size": 128,
				"rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
				"original_max_position_embeddings": 8192, "rope_type": "llama3"}}`},
			Variant{Name: "16-bit-inputs", Seed: 6, Shards: 2,
				Set: `{"quantization_config": {"quant_algo": "W4A16_NVFP4"}}`},
			Variant{Name: "fused", Seed: 7, Flags: []string{"--fuse-qkv"}}),
	})
	add(Spec{
		Name:      "nvfp4-mixed",
		Tokenizer: "spm",
		Config: wideConfig(`{"ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.33.0"},
			"quant_algo": "MIXED_PRECISION", "quant_method": "modelopt",
			"quantized_layers": {"model.layers.0.self_attn": {"quant_algo": "FP8"},
			"model.layers.1.self_attn": {"quant_algo": "FP8"},
			"model.layers.0.mlp.gate_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
			"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.1.mlp": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}}`),
		Tensors: quantizedParts(`
			$w.weight       | $out, $in | as F8_E4M3
			$w.weight_scale |           | fill scale | as F32
			$w.input_scale  |           | fill scale | as F32
			`, nvfp4) + kvScales,
		Variants: options(asQ8, Variant{Name: "in-file", Seed: 8, Set: `{"quantization_config": null}`}),
		Files: map[string]string{"hf_quant_config.json": `{"producer": {"name": "modelopt", "version": "0.33.0"},
			"quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8",
			"quantized_layers": {"model.layers.0.self_attn": {"quant_algo": "FP8"},
			"model.layers.0.mlp.down_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}}}`},
	})
	add(Spec{
		Name:      "ct-nvfp4",
		Tokenizer: "spm",
		Config: wideConfig(`{"config_groups": {"group_0": {"input_activations": {"dynamic": "local", "group_size": 16, "num_bits": 4, "strategy": "tensor_group", "symmetric": true,
			"type": "float"}, "output_activations": null, "targets": ["Linear"], "weights": {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 16, "num_bits": 4,
			"observer": "minmax", "strategy": "tensor_group", "symmetric": true, "type": "float"}}}, "format": "nvfp4-pack-quantized", ` + rest),
		Tensors: quantized(`
			$w.weight_packed       | $out, $in/2  | as U8
			$w.weight_scale        | $out, $in/16 | as F8_E4M3
			$w.weight_global_scale | 1            | as F32 | fill inverse
			$w.input_global_scale  | 1            | as F32 | fill inverse | if opt(inputs)
			`),
		Variants: options(Variant{Name: "inputs", Seed: 5, Set: `{"inputs": true}`}),
	})
	add(Spec{
		Name:      "nvfp4-experts",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "decoder_sparse_step": 1, "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 128, "max_position_embeddings": 40960,
			"max_window_layers": 2, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 64,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 12, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "output_router_logits": false, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024,
			"quantization_config": {"ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.33.0"},
			"quant_algo": "NVFP4", "quant_method": "modelopt"}}`,
		Tensors: llamaHead + llamaAttention + qkNorm + `
			xid = num_experts
			model.layers.{bid}.mlp.gate.weight                                           | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight                   | moe_intermediate_size, hidden_size/2  | as U8
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight_scale             | moe_intermediate_size, hidden_size/16 | as F8_E4M3
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight                        | hidden_size, moe_intermediate_size/2  | as U8
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight_scale                  | hidden_size, moe_intermediate_size/16 | as F8_E4M3
			model.layers.{bid}.mlp.experts.{xid}.{gate,up,down}_proj.weight_scale_2      |                                       | as F32 | fill scale
			model.layers.{bid}.mlp.experts.{xid}.{gate,up,down}_proj.input_scale         |                                       | as F32 | fill scale | if !opt(weights_only)
			`,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32"},
			{Name: "auto", Seed: 4, Out: "auto"},
			{Name: "16-bit-inputs", Seed: 5, Out: "bf16",
				Set: `{"weights_only": true, "quantization_config": {"quant_algo": "W4A16_NVFP4"}}`},
			{Name: "fused", Seed: 6, Flags: []string{"--fuse-gate-up-exps"}}},
	})
	plain := "\n$w.weight | $out, $in\n"
	add(Spec{
		Name:      "hadamard",
		Tokenizer: "spm",
		Config:    strings.Replace(quantizedConfig("null"), `, "quantization_config": null`, "", 1),
		Tensors:   quantized(plain),
		Files: map[string]string{"hadamard_packing.json": hadamard(1, "", "self_attn.q_proj", "self_attn.k_proj",
			"self_attn.v_proj", "self_attn.o_proj", "mlp.down_proj")},
		Variants: options(Variant{Name: "fused", Seed: 5, Flags: []string{"--fuse-qkv"}}),
	})
	add(Spec{
		Name:      "hadamard-tied",
		Tokenizer: "spm",
		Config: strings.Replace(strings.Replace(quantizedConfig("null"), `, "quantization_config": null`, "", 1),
			`"tie_word_embeddings": false`, `"tie_word_embeddings": true`, 1),
		Tensors: quantized(plain),
		Files: map[string]string{"hadamard_packing.json": hadamard(3, `"tied_output": true, "signs": {"96": `+signs(96)+`, "64": `+signs(64)+`},
			"tensors": [{"name": "model.embed_tokens.weight", "axis": -1, "role": "inverse-after-lookup"}, `, "mlp.up_proj", "mlp.gate_proj", "mlp.down_proj")},
		Variants: options(),
	})
	const refuses = "the reference refuses the quantization method by name; make interop compares the weights with " +
		"decoders in NumPy and PyTorch"
	add(Spec{
		Name:      "awq",
		Tokenizer: "spm",
		Config: quantizedConfig(
			`{"bits": 4, "group_size": 32, "modules_to_not_convert": null, "quant_method": "awq", "version": "gemm",
				"zero_point": true}`),
		NoReference: refuses,
		Tensors: quantized(`
			$w.qweight | $in, $out/8    | as I32 | fill bytes
			$w.qzeros  | $in/32, $out/8 | as I32 | fill bytes
			$w.scales  | $in/32, $out   | as F16 | fill scale
			`),
		Variants: options(),
	})
	add(Spec{
		Name:      "bnb-nf4",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"_load_in_4bit": true, "_load_in_8bit": false, "bnb_4bit_compute_dtype": "bfloat16",
			"bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": false,
			"llm_int8_enable_fp32_cpu_offload": false, "llm_int8_has_fp16_weight": false, "llm_int8_skip_modules": null,
			"llm_int8_threshold": 6.0, "load_in_4bit": true, "load_in_8bit": false, "quant_method": "bitsandbytes"}`),
		NoReference: refuses,
		Tensors: quantized(`
			$w.weight           | $out*$in/2, 1 | as U8
			$w.weight.absmax    | $out*$in/64   | as F32 | fill scale
			$w.weight.quant_map | 16            | as F32 | fill list -1 -0.6961928009986877 -0.5250730514526367 -0.39491748809814453 -0.28444138169288635 -0.18477343022823334 -0.09105003625154495 0 0.07958029955625534 0.16093020141124725 0.24611230194568634 0.33791524171829224 0.44070982933044434 0.5626170039176941 0.7229568362236023 1
			$w.weight.quant_state.bitsandbytes__nf4 | 96 | as U8 | fill state $out $in 64
			`),
		Variants: options(),
	})
	add(Spec{
		Name:      "bnb-int8",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"_load_in_4bit": false, "_load_in_8bit": true, "bnb_4bit_compute_dtype": "float32",
			"bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": false,
			"llm_int8_enable_fp32_cpu_offload": false, "llm_int8_has_fp16_weight": false, "llm_int8_skip_modules": null,
			"llm_int8_threshold": 6.0, "load_in_4bit": false, "load_in_8bit": true, "quant_method": "bitsandbytes"}`),
		NoReference: refuses,
		Tensors: quantized(`
			$w.weight        | $out, $in | as I8
			$w.SCB           | $out      | as F32 | fill scale
			$w.weight_format |           | as U8  | fill zero-bytes
			`),
		Variants: options(),
	})
	add(Spec{
		Name:      "hqq",
		Tokenizer: "spm",
		Config: quantizedConfig(`{"quant_config": {"offload_meta": false, "scale_quant_params": null,
			"weight_quant_params": {"axis": 1, "channel_wise": true, "group_size": 32, "nbits": 4, "optimize": true,
			"round_zero": true, "view_as_float": false}, "zero_quant_params": null}, "quant_method": "hqq",
			"skip_modules": ["lm_head"]}`),
		NoReference: refuses,
		Tensors: quantized(`
			$w.W_q           | $out*$in/64, 32 | as U8
			$w.{scale,zero}  | $out*$in/32, 1  | as BF16 | fill scale
			$w.shape         | 2               | as I32  | fill list $out $in
			$w.nbits         |                 | as I32  | fill list 4
			$w.group_size    |                 | as I32  | fill list 32
			$w.axis          |                 | as I32  | fill list 1
			$w.packing       | 7               | as U8
			$w.{view_as_float,channel_wise,encoded_state_dict,stores_quant_config} | | as U8
			`),
		Variants: options(),
	})
}

// hadamard returns hadamard_packing.json for modules of the two layers. more, unless it is empty, has the members for
// explicit signs and ends with the opening of the list of tensors.
func hadamard(version int, more string, modules ...string) string {
	mode := "explicit"
	if more == "" {
		mode, more = "identity", `"tensors": [`
	}
	var names []string
	for _, layer := range []string{"1", "0"} {
		for _, m := range modules {
			names = append(names,
				`{"name": "model.layers.`+layer+`.`+m+`.weight", "axis": -1, "role": "fold-before-matmul"}`)
		}
	}
	return fmt.Sprintf(`{"schema_version": %d, "kind": "hadamard-weight-fold", "status": "requires-matching-runtime",
		"transform": {"name": "normalized-signed-sylvester-walsh-hadamard", "block_size": 32, "sign_mode": %q}, %s%s]}`, version, mode, more, strings.Join(names, ", "))
}

// signs returns a JSON list of n signs.
func signs(n int) string {
	var list []string
	for i := range n {
		list = append(list, []string{"1", "-1"}[i*i/3%2])
	}
	return "[" + strings.Join(list, ", ") + "]"
}
