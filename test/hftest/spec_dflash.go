package hftest

import (
	"encoding/binary"
	"math"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

// Block draft models for a Qwen 3 and for a Qwen 3.5, which has M-RoPE.
func init() {
	config := `"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "dtype": "bfloat16", "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu",
		"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 40960,
		"max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_target_layers": 5,
		"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false, "transformers_version": "4.57.1",
		"use_cache": true, "use_sliding_window": false, "vocab_size": 1024`
	tensors := `
		bid = num_hidden_layers
		fc.weight                                     | hidden_size, 3*hidden_size
		hidden_norm.weight                            | hidden_size
		norm.weight                                   | hidden_size
		layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
		layers.{bid}.self_attn.q_proj.weight          | num_attention_heads*head_dim, hidden_size
		layers.{bid}.self_attn.{k,v}_proj.weight      | num_key_value_heads*head_dim, hidden_size
		layers.{bid}.self_attn.o_proj.weight          | hidden_size, num_attention_heads*head_dim
		layers.{bid}.self_attn.{q,k}_norm.weight      | head_dim
		layers.{bid}.mlp.{gate,up}_proj.weight        | intermediate_size, hidden_size
		layers.{bid}.mlp.down_proj.weight             | hidden_size, intermediate_size
		`
	add(Spec{
		Name:      "dflash",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + config + `}`,
		Tensors: tensors,
		Variants: []Variant{
			{Name: "window", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"block_size": null,
				"use_sliding_window": true, "sliding_window": 512, "layer_types": ["sliding_attention",
				"full_attention"], "dflash_config": {"causal": true, "final_logit_softcapping": 30.0,
				"output_multiplier": 0.5}}`},
		},
	})
	add(Spec{
		Name:      "dflash-sections",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 8,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + config + `}`,
		Tensors: tensors,
	})
	// with an embedding of the mask token; embeddings and output matrix are the target's, in one variant the embeddings
	// are the draft's own
	add(Spec{
		Name:      "dflash-mask",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3",
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + config + `}`,
		Files: map[string]string{"mask_embedding.pt": MaskEmbedding(1003, 64)},
		Tensors: tensors + `
			embed_tokens.weight                       | vocab_size, hidden_size | if opt(has_embed_tokens)
			`,
		Variants: []Variant{
			{Name: "embedding", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"has_embed_tokens": true}`},
			{Name: "said-not", Seed: 4, DType: "F32", Out: "f32", Set: `{"has_embed_tokens": false}`},
		},
	})
	// for a target with tied embeddings, which the draft must not share
	add(Spec{
		Name:      "dflash-mask-tied",
		Tokenizer: "gemma",
		Target:    "gemma2",
		Config: `{"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3]}, ` + strings.Replace(config, `"vocab_size": 1024`, `"vocab_size": 1216`, 1) + `}`,
		Files:   map[string]string{"mask_embedding.pt": MaskEmbedding(1003, 64)},
		Tensors: tensors,
	})
	add(Spec{
		Name:      "dflash2",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DFlash2DraftModel"], "auto_map": {"AutoModel": "dflash2.DFlash2DraftModel"}, "block_size": 16,
			"dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3], "conv_kernel_size": 4, "conv_group_size": 16, "selector_rank": 32, "selector_top_k": 4}, ` + config + `}`,
		Tensors: tensors + `
			layers.{bid}.{attention,mlp}_conv.base_kernel              | 2, dflash_config.conv_kernel_size, hidden_size
			layers.{bid}.{attention,mlp}_conv.kernel_projection.weight | 2 * dflash_config.conv_kernel_size * hidden_size / dflash_config.conv_group_size, hidden_size
			candidate_selector.{predecessor,successor}_codebook        | vocab_size, dflash_config.selector_rank
			candidate_selector.hidden_projection.weight                | dflash_config.selector_rank, hidden_size
			`,
		Variants: []Variant{
			{Name: "window", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"dflash_config": {"conv_kernel_size": 2, "selector_top_k": 2, "use_swa": true,
					"swa_window_size": 256, "causal": false}}`},
		},
	})
	add(Spec{
		Name:      "lilicorr",
		Tokenizer: "bpe:qwen2",
		Target:    "nemotron_h_moe",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["LiLiCorrDraftModel"], "block_size": 8, "dflash_config": {"mask_token_id": 1003, "target_layer_ids": [0, 1, 3], "projector_type": "lilicorr",
			"lilicorr_candidate_topk": 4, "lilicorr_hidden_size": 32, "lilicorr_num_layers": 2, "lilicorr_num_heads": 2, "lilicorr_mlp_ratio": 1.5, "lilicorr_factor_dim": 32,
			"lilicorr_vector_eps": 0.0001, "lilicorr_logit_scale": 8.0}, ` + config + `}`,
		Tensors: tensors + `
			h   = dflash_config.lilicorr_hidden_size
			lid = dflash_config.lilicorr_num_layers
			layers.{bid}.{attention,mlp}_conv.base_kernel              | 2, dflash_config.conv_kernel_size, hidden_size | if opt(dflash_config.conv_kernel_size)
			layers.{bid}.{attention,mlp}_conv.kernel_projection.weight | 2 * dflash_config.conv_kernel_size * hidden_size / dflash_config.conv_group_size, hidden_size | if opt(dflash_config.conv_kernel_size)
			lilicorr.token_proj.weight                       | h, hidden_size | if h != hidden_size
			lilicorr.token_proj.bias                         | h              | if h != hidden_size
			lilicorr.{pass_hidden,context}_proj.weight       | h, hidden_size
			lilicorr.{pass_hidden,context}_proj.bias         | h
			lilicorr.feature_norm.{weight,bias}              | 5
			lilicorr.feature_mlp.up_proj.weight              | h, 5
			lilicorr.feature_mlp.down_proj.weight            | h, h
			lilicorr.feature_mlp.{up,down}_proj.bias         | h
			lilicorr.slot_embedding                          | 1, 1, block_size - 1, 1, h
			lilicorr.rank_embedding                          | 1, 1, 1, dflash_config.lilicorr_candidate_topk, h
			lilicorr.relative_slot_bias                      | dflash_config.lilicorr_num_heads, 2*block_size - 1
			lilicorr.same_slot_bias                          | dflash_config.lilicorr_num_heads
			lilicorr.layers.{lid}.{attn,mlp}_norm.weight     | h
			lilicorr.layers.{lid}.attn.in_proj_weight        | 3*h, h
			lilicorr.layers.{lid}.attn.in_proj_bias          | 3*h
			lilicorr.layers.{lid}.attn.out_proj.weight       | h, h
			lilicorr.layers.{lid}.attn.out_proj.bias         | h
			lilicorr.layers.{lid}.mlp.up_proj.weight         | floor(h * dflash_config.lilicorr_mlp_ratio), h
			lilicorr.layers.{lid}.mlp.up_proj.bias           | floor(h * dflash_config.lilicorr_mlp_ratio)
			lilicorr.layers.{lid}.mlp.down_proj.weight       | h, floor(h * dflash_config.lilicorr_mlp_ratio)
			lilicorr.layers.{lid}.mlp.down_proj.bias         | h
			lilicorr.{output,anchor}_norm.weight             | h
			lilicorr.factor_input_proj.weight                | h, 3*h
			lilicorr.factor_input_proj.bias                  | h
			lilicorr.{out,in,anchor_out}_head.weight         | dflash_config.lilicorr_factor_dim, h
			lilicorr.{out,in,anchor_out}_head.bias           | dflash_config.lilicorr_factor_dim
			`,
		Variants: []Variant{
			{Name: "convolutions", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"dflash_config": {"conv_kernel_size": 4,
				"conv_group_size": 16, "lilicorr_hidden_size": 64, "lilicorr_num_layers": 1, "lilicorr_mlp_ratio": 2.0,
				"block_size": 8}}`},
		},
	})
	add(Spec{
		Name:      "dspark",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["Qwen3DSparkModel"], "block_size": 8, "mask_token_id": 1003, "target_layer_ids": [0, 1, 3], "markov_head_type": "vanilla", "markov_rank": 32,
			` + config + `}`,
		Tensors: tensors + `
			embed_tokens.weight                       | vocab_size, hidden_size
			lm_head.weight                            | opt(draft_vocab_size) || vocab_size, hidden_size
			markov_head.markov_w1.weight              | vocab_size, markov_rank
			markov_head.markov_w2.weight              | opt(draft_vocab_size) || vocab_size, markov_rank
			confidence_head.proj.weight               | 1, hidden_size + markov_rank | if !opt(draft_vocab_size)
			confidence_head.proj.bias                 | 1                            | if !opt(draft_vocab_size)
			d2t                                       | draft_vocab_size | if opt(draft_vocab_size) | as I64 | fill count
			t2d                                       | vocab_size       | if opt(draft_vocab_size) | as BOOL | fill bytes
			`,
		Variants: []Variant{
			{Name: "few-tokens", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"draft_vocab_size": 512, "target_layer_ids": null, "aux_hidden_state_layer_ids": [1, 2, 4]}`},
		},
	})
	add(Spec{
		Name:      "dspark-gemma4",
		Tokenizer: "gemma", AddedTokens: gemma4Tokens,
		Files:  map[string]string{"tokenizer.model": ""},
		Target: "gemma4-moe",
		Config: `{"architectures": ["Gemma4DSparkModel"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": true, "block_size": 8, "bos_token_id": 2, "dtype": "bfloat16",
			"dflash_config": {"mask_token_id": 4, "target_layer_ids": [0, 1]}, "draft_vocab_size": null,
			"enable_moe_block": false, "eos_token_id": 1, "final_logit_softcapping": null, "global_head_dim": 64,
			"head_dim": 32, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64,
			"hidden_size_per_layer_input": 0, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_types": ["full_attention", "full_attention"], "markov_head_type": "vanilla", "markov_rank": 32,
			"max_position_embeddings": 262144, "model_type": "gemma4_text", "num_attention_heads": 4,
			"num_global_key_value_heads": 1, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_kv_shared_layers": 0, "num_target_layers": 3, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
			"rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 1024, "tie_word_embeddings": false, "use_cache": true,
			"transformers_version": "5.5.0.dev0", "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			{embed_tokens,lm_head}.weight                 | vocab_size, hidden_size
			fc.weight                                     | hidden_size, 2*hidden_size
			hidden_norm.weight                            | hidden_size
			norm.weight                                   | hidden_size
			layers.{bid}.{input,post_attention,post_feedforward,pre_feedforward}_layernorm.weight | hidden_size
			layers.{bid}.layer_scalar                     | 1 | fill norm
			layers.{bid}.self_attn.q_proj.weight          | num_attention_heads*global_head_dim, hidden_size
			layers.{bid}.self_attn.k_proj.weight          | num_global_key_value_heads*global_head_dim, hidden_size
			layers.{bid}.self_attn.o_proj.weight          | hidden_size, num_attention_heads*global_head_dim
			layers.{bid}.self_attn.{q,k}_norm.weight      | global_head_dim
			layers.{bid}.mlp.{gate,up}_proj.weight        | intermediate_size, hidden_size
			layers.{bid}.mlp.down_proj.weight             | hidden_size, intermediate_size
			markov_head.markov_{w1,w2}.weight             | vocab_size, markov_rank
			confidence_head.proj.weight                   | 1, hidden_size + markov_rank | if opt(draft_vocab_size)
			confidence_proj.weight                        | 1, hidden_size + markov_rank | if !opt(draft_vocab_size)
			confidence_proj.bias                          | 1                            | if !opt(draft_vocab_size)
			`,
		Variants: []Variant{
			{Name: "window", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"draft_vocab_size": 1208,
				"mask_token_id": 5, "sample_from_anchor": false, "dflash_config": {"mask_token_id": null,
				"use_swa": true, "swa_window_size": 256, "block_size": 4}}`},
		},
	})
	add(Spec{
		Name:      "muse-glimmer-assistant",
		Tokenizer: "bpe:qwen2",
		Target:    "muse-glimmer",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["MuseGlimmerAssistantModel"], "attention_bias": false, "attention_dropout": 0.0,
			"block_size": 16, "bos_token_id": 1000, "dtype": "bfloat16", "eos_token_id": 1002, "head_dim": 32,
			"hidden_activation": "silu", "hidden_size": 64, "intermediate_size": 96,
			"layer_types": ["sliding_attention", "full_attention"], "mask_token_id": 1003,
			"max_position_embeddings": 131072, "model_type": "muse_glimmer_assistant", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05,
			"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "sliding_window": 2048,
			"target_layer_ids": [0, 1, 3], "tie_word_embeddings": false, "transformers_version": "5.14.0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: strings.NewReplacer("fc.weight", "encoder.fc.weight", "hidden_norm.weight",
			"encoder.output_norm_enc.weight").Replace(tensors),
		Variants: []Variant{
			{Name: "no-window", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"sliding_window": null, "mask_token_id": null, "target_layer_ids": [1]}`},
		},
	})
}

// MaskEmbedding returns a mask_embedding.pt: the id of the mask token and an F32 vector.
func MaskEmbedding(token int64, width int) string {
	var data []byte
	for i := range width {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i-width/3)/97))
	}
	p := new(torchfiletest.Pickle)
	p.Op(0x80, 2).Op('}').Op('(').Str("mask_token_id").Int(token)
	p.Str("embedding").Tensor(torchfiletest.Tensor{DType: safetensors.F32, Shape: []int64{int64(width)}, Storage: "0",
		Data: data}, false).Op('u').Op('.')
	return string(torchfiletest.Zip(p.Bytes(), []string{"0"}, map[string][]byte{"0": data}))
}
