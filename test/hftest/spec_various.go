package hftest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Architectures whose families have no file of their own.

// denseModule returns a safetensors file with the weights [out, in] of a Dense module of sentence-transformers.
func denseModule(out, in int) string {
	header := fmt.Sprintf(`{"linear.weight":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, out, in, 4*out*in)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range out * in {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%61-30)/64))
	}
	return string(b)
}

// deciderHead are the tensors of the head of a decision model.
const deciderHead = `
			head.head.layers.{lay}.norm{1,2}.{weight,bias}            | hidden_size
			head.head.layers.{lay}.self_attn.in_proj_weight           | 3*hidden_size, hidden_size
			head.head.layers.{lay}.self_attn.in_proj_bias             | 3*hidden_size
			head.head.layers.{lay}.self_attn.out_proj.weight          | hidden_size, hidden_size
			head.head.layers.{lay}.self_attn.out_proj.bias            | hidden_size
			head.head.layers.{lay}.linear1.weight                     | 4*hidden_size, hidden_size
			head.head.layers.{lay}.linear1.bias                       | 4*hidden_size
			head.head.layers.{lay}.linear2.weight                     | hidden_size, 4*hidden_size
			head.head.layers.{lay}.linear2.bias                       | hidden_size
			head.type_emb.weight                                      | 3, hidden_size
			head.scorer.0.{weight,bias}                               | hidden_size
			head.scorer.1.weight                                      | hidden_size, hidden_size
			head.scorer.1.bias                                        | hidden_size
			head.scorer.3.weight                                      | 1, hidden_size
			head.scorer.3.bias                                        | 1
			`

// bareOnly returns the rows of a table whose names begin with prefix, which it removes.
func bareOnly(table, prefix string) string {
	var lines []string
	for line := range strings.Lines(table) {
		name := strings.TrimLeft(line, "\t ")
		if rest, ok := strings.CutPrefix(name, prefix); ok || !strings.Contains(line, " | ") {
			lines = append(lines, rest)
		}
	}
	return strings.Join(lines, "")
}

func init() {
	const sizes = `"attention_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "use_cache": true, "vocab_size": $vocab}`
	add(Spec{
		Name:      "llama_embed",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["LlamaBidirectionalModel"], "attention_bias": false, "auto_map": {"AutoModel": "llama_bidirectional_model.LlamaBidirectionalModel"},
			"head_dim": 16, "hidden_act": "silu", "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama_bidirec", "pooling": "avg", "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "transformers_version": "4.51.0", "bos_token_id": $bos, "eos_token_id": $eos, ` + sizes,
		Tensors: bare(llamaAttention + llamaMLP),
		Variants: []Variant{{Name: "many", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"num_hidden_layers": 11, "head_dim": null}`}},
	})
	add(Spec{ // published configs lack num_key_value_heads, without which the reference fails
		Name:      "cogvlm",
		Tokenizer: "spm",
		Config: `{"architectures": ["CogVLMForCausalLM"],
			"auto_map": {"AutoModelForCausalLM": "modeling_cogvlm.CogVLMForCausalLM"}, "bos_token_id": $bos,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 2048, "num_attention_heads": 4,
			"num_key_value_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05,
			"template_version": "chat", "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.35.0", "use_cache": true, "vision_config": {"dropout_prob": 0.0,
			"hidden_act": "gelu", "hidden_size": 32, "image_size": 64, "in_channels": 3, "intermediate_size": 64,
			"layer_norm_eps": 1e-06, "num_heads": 2, "num_hidden_layers": 1, "num_positions": 17, "patch_size": 16},
			"vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                                          | vocab_size, hidden_size
			lm_head.weight                                                                     | vocab_size, hidden_size
			model.norm.weight                                                                  | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight                         | hidden_size
			model.layers.{bid}.self_attn.{language,vision}_expert_query_key_value.weight       | 3*hidden_size, hidden_size
			model.layers.{bid}.self_attn.{language,vision}_expert_dense.weight                 | hidden_size, hidden_size
			model.layers.{bid}.mlp.{language,vision}_mlp.{gate,up}_proj.weight                 | intermediate_size, hidden_size
			model.layers.{bid}.mlp.{language,vision}_mlp.down_proj.weight                      | hidden_size, intermediate_size
			model.vision.boi                                                                   | 1, 1, 64
			model.vision.patch_embedding.proj.weight                                           | 32, 3, 16, 16
			model.vision.linear_proj.linear_proj.weight                                        | 64, 32
			`,
		Variants: []Variant{{Name: "many", Seed: 3, Shards: 2, Out: "auto", Set: `{"num_hidden_layers": 11}`}},
	})
	add(Spec{
		Name:      "paddleocr_vl",
		Tokenizer: "spm",
		Config: `{"architectures": ["PaddleOCRVLForConditionalGeneration"], "attention_probs_dropout_prob": 0.0, "auto_map": {"AutoModel": "modeling_paddleocr_vl.PaddleOCRVLForConditionalGeneration"},
			"compression_ratio": 1.0, "head_dim": 16, "hidden_act": "silu", "hidden_dropout_prob": 0.0, "ignored_index": -100, "image_token_id": 998,
			"max_position_embeddings": 131072, "max_sequence_length": null, "model_type": "paddleocr_vl", "pad_token_id": 0, "rms_norm_eps": 1e-05,
			"rope_scaling": {"mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"}, "rope_theta": 500000, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.55.0", "use_bias": false, "use_flash_attention": false,
			"video_token_id": 999, "vision_config": {"architectures": ["SiglipVisionModel"], "hidden_size": 32, "image_size": 64, "intermediate_size": 64,
				"model_type": "paddleocr_vl", "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
				"tokens_per_second": 2},
			"vision_start_token_id": 997, "weight_share_add_bias": true, "use_3d_rope": true, "rope_is_neox_style": true, ` + sizes,
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			mlp_AR.linear_{1,2}.{weight,bias}                                    | 64
			visual.vision_model.embeddings.patch_embedding.weight                | 32, 3, 14, 14
			visual.vision_model.encoder.layers.0.self_attn.{k,q,v,out}_proj.weight | 32, 32
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"rms_norm_eps": null, "max_position_embeddings": null, "rope_theta": 10000}`}},
	})
	add(Spec{
		Name:      "rnd1",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["RND1"], "attention_bias": false, "auto_map": {"AutoModel": "modeling_rnd.RND1LM"}, "bos_token_id": $pad, "decoder_sparse_step": 1,
			"eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "mask_token_id": 1001, "max_position_embeddings": 40960, "max_window_layers": 2,
			"mlp_only_layers": [], "model_type": "rnd1", "moe_backend": "hf", "moe_intermediate_size": 32, "norm_topk_prob": true, "num_diffusion_steps": 256,
			"num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "pad_token_id": $pad, "rms_norm_eps": 1e-06, "rope_scaling": null,
			"rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.53.3", "use_sliding_window": false, ` + sizes,
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size
			`,
		Variants: []Variant{{Name: "eleven-experts", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"num_experts": 11, "mask_token_id": null}`}},
	})
	const graniteSWA = `"attention_bias": false, "attention_multiplier": 0.0078125, "bos_token_id": $bos, "embedding_multiplier": 12.0, "eos_token_id": $eos, "hidden_act": "silu",
			"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"], "logits_scaling": 8.0, "max_position_embeddings": 131072,
			"no_rope_layers": [0, 1, 1, 1], "num_hidden_layers": 4, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000000.0,
			"sliding_window": 128, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.57.0", `
	sizes4 := strings.ReplaceAll(sizes, `"num_hidden_layers": 2,`, "")
	add(Spec{
		Name:      "granite_swa",
		Tokenizer: "bpe:starcoder",
		Config: `{"architectures": ["GraniteSWAForCausalLM"], "mlp_bias": false, "model_type": "granite_swa", ` +
			graniteSWA + sizes4,
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.sinks   | num_attention_heads
			`,
		Variants: []Variant{{Name: "without-types", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"layer_types": null, "no_rope_layers": null, "sliding_window": null, "num_hidden_layers": 11}`}},
	})
	add(Spec{
		Name:      "granite_moe_swa",
		Tokenizer: "bpe:starcoder",
		Config: `{"architectures": ["GraniteMoeSWAForCausalLM"], "model_type": "granitemoe_swa", "num_experts_per_tok": 2, "num_local_experts": 4, "output_router_logits": false,
			"router_aux_loss_coef": 0.01, "shared_intermediate_size": 64, ` + graniteSWA + sizes4,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.self_attn.sinks                               | num_attention_heads
			model.layers.{bid}.block_sparse_moe.router.layer.weight          | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.input_linear.weight          | num_local_experts, 2*intermediate_size, hidden_size | if !opt(swash)
			model.layers.{bid}.block_sparse_moe.output_linear.weight         | num_local_experts, hidden_size, intermediate_size   | if !opt(swash)
			model.layers.{bid}.block_sparse_moe.experts.gate_up_proj         | num_local_experts, 2*intermediate_size, hidden_size | if opt(swash)
			model.layers.{bid}.block_sparse_moe.experts.down_proj            | num_local_experts, hidden_size, intermediate_size   | if opt(swash)
			model.layers.{bid}.shared_mlp.input_linear.weight                | 2*shared_intermediate_size, hidden_size             | if opt(shared_intermediate_size)
			model.layers.{bid}.shared_mlp.output_linear.weight               | hidden_size, shared_intermediate_size               | if opt(shared_intermediate_size)
			`,
		Variants: []Variant{{Name: "swash", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"swash": true, "shared_intermediate_size": null}`}},
	})
	add(Spec{
		Name:      "chameleon",
		Tokenizer: "chameleon",
		Config: `{"architectures": ["ChameleonForConditionalGeneration"], "attention_bias": false, "bos_token_id": $bos, "eos_token_id": $eos, "hidden_act": "silu",
			"max_position_embeddings": 4096, "mlp_bias": false, "model_parallel_size": 1, "model_type": "chameleon", "pretraining_tp": 1, "rms_norm_eps": 1e-05,
			"rope_scaling": null, "rope_theta": 10000.0, "swin_norm": false, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0",
			"vocabulary_map": {"<image>": 7, "IMGIMGAZ": 8}, "vq_config": {"attn_resolutions": null, "attn_type": "vanilla", "base_channels": 8, "embed_dim": 8,
				"model_type": "chameleon_vqgan", "num_embeddings": 64}, ` + strings.ReplaceAll(sizes, `"num_key_value_heads": 2`, `"num_key_value_heads": 4`),
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.q_norm.{weight,bias}      | num_attention_heads, hd
			model.layers.{bid}.self_attn.k_norm.{weight,bias}      | num_key_value_heads, hd
			model.vqmodel.encoder.conv_in.{weight,bias}            | 8
			model.vqmodel.quantize.embedding.weight                | 64, 8
			`,
		Variants: []Variant{{Name: "swin", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"swin_norm": true, "architectures": ["ChameleonForCausalLM"]}`}},
	})
	add(Spec{
		Name:      "talkie",
		Tokenizer: "bpe:gpt2",
		Config: `{"architectures": ["TalkieForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_talkie.TalkieForCausalLM"}, "head_dim": 16, "hidden_act": "silu",
			"max_position_embeddings": 2048, "model_type": "talkie", "bos_token_id": $bos, "eos_token_id": $eos, "rope_theta": 1000000.0, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "5.0.0", ` + strings.ReplaceAll(sizes, `"num_key_value_heads": 2`, `"num_key_value_heads": 4`),
		Tensors: `
			bid = num_hidden_layers
			model.embed.weight                                           | vocab_size, hidden_size
			lm_head                                                      | vocab_size, hidden_size | if !opt(linear)
			lm_head.weight                                               | vocab_size, hidden_size | if opt(linear)
			lm_head_gain.w_g                                             | 1
			model.blocks.{bid}.attn.attn_{query,key,value,resid}.weight  | hidden_size, hidden_size
			model.blocks.{bid}.attn.head_gain.head_g                     | num_attention_heads
			model.blocks.{bid}.{attn_gain,mlp_gain,embed_skip}.a_g       | 1
			model.blocks.{bid}.mlp.mlp_{gate,linear}.weight              | intermediate_size, hidden_size
			model.blocks.{bid}.mlp.mlp_resid.weight                      | hidden_size, intermediate_size
			`,
		Variants: []Variant{{Name: "linear", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"linear": true, "num_hidden_layers": 11, "rms_norm_eps": 1e-5}`}},
	})
	add(Spec{
		Name:      "spark2_5",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Spark2_5ForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_spark2_5.Spark2_5ForCausalLM"}, "attention_bias": false,
			"bos_token_id": $pad, "eos_token_id": $eos, "gate_attn_act_mode": "sigmoid", "head_dim": 32, "headwise_attn_output_gate": true, "hidden_act": "gelu",
			"layer_types": ["sliding_attention", "full_attention"], "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "spark2_5", "rms_norm_eps": 1e-05,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.5, "rope_theta": 1000000.0, "rope_type": "default"},
				"sliding_attention": {"partial_rotary_factor": 1.0, "rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 128, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "5.2.0", ` + sizes,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                     | vocab_size, hidden_size
			lm_head.weight                                                | vocab_size, hidden_size | if !opt(tie_word_embeddings)
			model.norm.weight                                             | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight    | hidden_size
			model.layers.{bid}.self_attn.q_k_v_proj.weight                | (num_attention_heads+2*num_key_value_heads)*head_dim, hidden_size
			model.layers.{bid}.self_attn.g_proj.weight                    | num_attention_heads, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                    | hidden_size, num_attention_heads*head_dim
			` + llamaMLP,
		Variants: []Variant{{Name: "untied", Seed: 3, Shards: 2, Out: "auto", Set: `{"tie_word_embeddings": false,
			"num_hidden_layers": 3, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]}`}},
	})
	add(Spec{
		Name:      "maple",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["MapleForCausalLM"], "auto_map": {"AutoModelForCausalLM": "modeling_maple.MapleForCausalLM"}, "attention_bias": false,
			"bos_token_id": $pad, "eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "layer_types": ["sliding_attention", "full_attention"],
			"max_position_embeddings": 32768, "model_type": "maple", "moe_intermediate_size": 32, "nope_on_global_attention": true, "norm_topk_prob": true,
			"num_experts": 4, "num_experts_per_tok": 2, "num_shared_experts": 0, "output_router_logits": false, "rms_norm_eps": 1e-06,
			"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 1000000.0, "rope_type": "default"}, "router_aux_loss_coef": 0.001, "sliding_window": 128,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "5.0.0", ` + sizes,
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size
			`,
		Variants: []Variant{{Name: "eleven-experts", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"num_experts": 11, "rope_parameters": {"partial_rotary_factor": null}}`}},
	})
	add(Spec{
		Name:      "k2_horizon",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["K2HorizonForCausalLM"], "attention_bias": false, "attention_gate_func": "softplus", "bos_token_id": $pad, "decoder_sparse_step": 1,
			"eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "layernorm_num_groups": 2, "max_position_embeddings": 131072, "mlp_only_layers": [0],
			"model_type": "k2_horizon", "moe_intermediate_size": 32, "mova_num_experts": 4, "mova_num_experts_per_tok": 2, "norm_topk_prob": true, "num_experts": 4,
			"num_experts_per_tok": 2, "num_shared_experts": 1, "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_head_dim": 16, "rope_scaling": null,
			"rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "router_scaling_factor": 2.5, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "5.0.0", ` + sizes,
		Tensors: llamaHead + strings.ReplaceAll(llamaAttention, "{k,v}_proj.weight          | num_key_value_heads*hd, hidden_size", "k_proj.weight | num_key_value_heads*hd, hidden_size") + `
			xid = num_experts
			vid = opt(mova_num_experts)
			model.layers.{bid}.self_attn.v_proj.weight                         | num_key_value_heads*hd, hidden_size | if bid < 1 || !vid
			model.layers.{bid}.self_attn.v_router.weight                       | mova_num_experts, hidden_size       | if bid >= 1 && vid
			model.layers.{bid}.self_attn.v_experts.{vid}.weight                | num_key_value_heads*hd, hidden_size | if bid >= 1
			model.layers.{bid}.self_attn.q_norm.weight                         | num_attention_heads, head_dim
			model.layers.{bid}.self_attn.k_norm.weight                         | num_key_value_heads, head_dim
			model.layers.{bid}.self_attn.attn_gate_proj.weight                 | num_attention_heads*hd, hidden_size | if opt(attention_gate_func) != 0
			model.layers.{bid}.mlp.{gate,up}_proj.weight                       | intermediate_size, hidden_size      | if bid < 1 || num_experts == 0
			model.layers.{bid}.mlp.down_proj.weight                            | hidden_size, intermediate_size      | if bid < 1 || num_experts == 0
			model.layers.{bid}.mlp.gate.weight                                 | num_experts, hidden_size            | if bid >= 1 && num_experts > 0
			model.layers.{bid}.mlp.gate.bias                                   | num_experts                         | if bid >= 1 && num_experts > 0
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight              | hidden_size, moe_intermediate_size  | if bid >= 1
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight         | moe_intermediate_size, hidden_size  | if bid >= 1
			model.layers.{bid}.mlp.shared_experts.down_proj.weight             | hidden_size, moe_intermediate_size  | if bid >= 1 && num_experts > 0
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight        | moe_intermediate_size, hidden_size  | if bid >= 1 && num_experts > 0
			`,
		Variants: []Variant{{Name: "dense", Seed: 3, Shards: 2, Out: "auto", Set: `{"num_experts": 0,
			"num_experts_per_tok": null, "mova_num_experts": null, "mova_num_experts_per_tok": null,
			"attention_gate_func": null, "rope_head_dim": null, "layernorm_num_groups": null}`}},
	})
	add(Spec{
		Name:      "qwen",
		Tokenizer: "qwen-tiktoken",
		Config: `{"architectures": ["QWenLMHeadModel"], "attn_dropout_prob": 0.0,
			"auto_map": {"AutoModelForCausalLM": "modeling_qwen.QWenLMHeadModel"}, "bf16": false,
			"emb_dropout_prob": 0.0, "fp16": false, "fp32": false, "hidden_size": 32, "initializer_range": 0.02,
			"intermediate_size": 128, "kv_channels": 16, "layer_norm_epsilon": 1e-06, "max_position_embeddings": 32768,
			"model_type": "qwen", "no_bias": true, "num_attention_heads": 2, "num_hidden_layers": 2, "onnx_safe": null,
			"rotary_emb_base": 10000, "rotary_pct": 1.0, "scale_attn_weights": true, "seq_length": 8192,
			"tie_word_embeddings": false, "tokenizer_class": "QWenTokenizer", "transformers_version": "4.32.0",
			"use_cache": true, "use_dynamic_ntk": true, "use_flash_attn": "auto", "use_logn_attn": true,
			"vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			transformer.wte.weight                           | vocab_size, hidden_size
			lm_head.weight                                   | vocab_size, hidden_size
			transformer.ln_f.weight                          | hidden_size
			transformer.h.{bid}.ln_{1,2}.weight              | hidden_size
			transformer.h.{bid}.attn.c_attn.weight           | 3*hidden_size, hidden_size
			transformer.h.{bid}.attn.c_attn.bias             | 3*hidden_size
			transformer.h.{bid}.attn.c_proj.weight           | hidden_size, hidden_size
			transformer.h.{bid}.mlp.w{1,2}.weight            | intermediate_size/2, hidden_size
			transformer.h.{bid}.mlp.c_proj.weight            | hidden_size, intermediate_size/2
			`,
	})
	lfm2 := Lookup("lfm2")
	lfm2As := func(class string) string {
		return strings.Replace(lfm2.Config, `["Lfm2ForCausalLM"]`, `["`+class+`"]`, 1)
	}
	add(Spec{
		Name:      "lfm2_colbert",
		Tokenizer: lfm2.Tokenizer,
		Config:    lfm2As("Lfm2Model"),
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}]`,
			"1_Dense/config.json": `{"in_features": 64, "out_features": 32, "bias": false,
				"activation_function": "torch.nn.modules.linear.Identity"}`,
			"1_Dense/model.safetensors": denseModule(32, 64),
		},
		Tensors: bare(lfm2.Tensors),
	})
	add(Spec{
		Name:      "lfm2_embedding",
		Tokenizer: lfm2.Tokenizer,
		Config:    lfm2As("Lfm2BidirectionalModel"),
		Files: map[string]string{
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
				{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": true,
				"pooling_mode_mean_tokens": false, "include_prompt": true}`,
		},
		Tensors: bare(lfm2.Tensors),
	})
	add(Spec{
		Name:      "lfm2_encoder",
		Tokenizer: lfm2.Tokenizer,
		Config:    lfm2As("Lfm2BidirectionalForMaskedLM"),
		Tensors:   prefixed("lfm2.", bare(lfm2.Tensors)),
	})
	add(Spec{
		Name:      "lfm25_audio",
		Tokenizer: "none",
		Config: strings.Replace(strings.Replace(lfm2As("Lfm25AudioTokenizer"), `"conv", "conv", "full_attention"`,
			`"conv", "sliding_attention", "conv"`, 1),
			`"vocab_size": 1024}`, `"output_size": 96, "sliding_window": 30, "vocab_size": 1024}`, 1),
		Tensors: prefixed("lfm.", bare(strings.ReplaceAll(lfm2.Tensors, "full_attention", "sliding_attention"))) + `
			lin.weight       | output_size, hidden_size
			lin.bias         | output_size
			emb.emb.weight   | 128, hidden_size
			istft.window     | 64 | as F32
			`,
	})
	add(Spec{
		Name:      "d1",
		Tokenizer: lfm2.Tokenizer,
		Config: `{"architectures": ["Lfm2VlForConditionalGeneration"], "auto_map": {"AutoModel": "modeling_d1.D1Model"}, "do_image_splitting": true, "downsample_factor": 2,
			"dtype": "bfloat16", "encoder_patch_size": 16, "image_token_id": 1000, "max_image_tokens": 256, "max_num_patches": 1024, "max_pixels_tolerance": 2.0, "max_tiles": 10,
			"min_image_tokens": 64, "min_tiles": 2, "model_type": "lfm2_vl", "projector_bias": true, "projector_hidden_act": "gelu", "projector_hidden_size": 64,
			"projector_use_layernorm": true, "text_config": ` + lfm2As("Lfm2ForCausalLM") + `, "tile_size": 512, "transformers_version": "4.57.0",
			"use_image_special_tokens": true, "use_thumbnail": true, "vision_config": {"attention_dropout": 0.0, "hidden_size": 32, "intermediate_size": 64,
				"model_type": "siglip2_vision_model", "num_attention_heads": 2, "num_hidden_layers": 1, "num_patches": 16, "patch_size": 16}}`,
		Tensors: prefixed("model.language_model.", bare(lfm2.Tensors)) + `
			model.vision_tower.vision_model.embeddings.patch_embedding.weight     | 32, 768
			model.multi_modal_projector.linear_{1,2}.{weight,bias}                | 64
			`,
	})
	add(Spec{
		Name:      "d1_omni",
		Tokenizer: lfm2.Tokenizer,
		Config: `{"architectures": ["D1OmniModel"], "audio_text_length": 15360, "auto_map": {"AutoModel": "modeling_d1_omni.D1OmniModel"}, "head_layers": 2,
			"image_text_length": 896, "max_length": 16384, "model_type": "d1_omni", "temperatures": {"noul": 1.5, "choice:2": 1.25, "choice:3-5": 1.125, "choice:11+": 0.75},
			"text_config": ` + strings.Replace(strings.Replace(lfm2As("X"), `"architectures": ["X"], `, "", 1), `"block_ff_dim": 96`, `"intermediate_size": 96`, 1) + `,
			"torch_dtype": "bfloat16", "transformers_version": "5.2.0"}`,
		Tensors: prefixed("encoder.", bare(strings.ReplaceAll(lfm2.Tensors, "block_ff_dim", "intermediate_size"))) + `
			lay = head_layers
			` + deciderHead + `
			vision.encoder.layers.0.mlp.fc1.weight                    | 32, 32
			audio.encoder.layers.0.mlp.fc1.weight                     | 32, 32
			`,
		Variants: []Variant{{Name: "shards", Seed: 3, DType: "F16", Shards: 3, Out: "auto", Set: `{"head_layers": 1}`}},
	})
	bert := Lookup("modernbert")
	for _, s := range []struct{ name, file, config string }{
		{"laya", "rl_agent_config.json",
			`{"head_layers": 2, "head_max_len": 512, "temperature": [1.5, 1.25, 1.125],
				"temperature_by_options": {"choice:2": 1.75, "choice:11+": 0.75}}`},
		{"julia", "julia_config.json",
			`{"architecture": "JuliaDecisionModel", "head_layers": 1, "temperature": [0.5, 2, 1.0]}`},
	} {
		add(Spec{
			Name:      s.name,
			Tokenizer: bert.Tokenizer,
			DType:     "F32",
			Config:    strings.Replace(bert.Config, "ModernBertForMaskedLM", "ModernBertDecisionModel", 1),
			Files: map[string]string{s.file: s.config, "added_tokens.json": "{}",
				"tokenizer_config.json": `{"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "<|endoftext|>",
					"sep_token": "<|endoftext|>", "mask_token": "<|pad|>", "pad_token": "<|pad|>"}`},
			Folders: map[string]string{"config.json": "encoder", "tokenizer*.json": "tokenizer",
				"special_tokens_map.json": "tokenizer", "added_tokens.json": "tokenizer",
				"vocab.json": "tokenizer", "merges.txt": "tokenizer"},
			Tensors: prefixed("encoder.", bareOnly(bert.Tensors, "model.")) + fmt.Sprintf("\nlay = %d\n", map[bool]int{true: 2, false: 1}[s.name == "laya"]) + strings.NewReplacer("head.head.", "head.", "head.type_emb", "type_emb", "head.scorer", "scorer").Replace(deciderHead) + `
				temperature          | 3
				act_head.weight      | 4, hidden_size
				`,
		})
	}
	const speech = `"audio_token_index": 1000, "downsample_rate": 5, "encoder_config": {"hidden_dim": 32, "model_type": "granite_speech_encoder", "num_layers": 1},
			"has_lora_adapter": false, "initializer_range": 0.02, "projector_config": {"hidden_size": 32, "model_type": "blip_2_qformer", "num_hidden_layers": 1},
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0", "window_size": 15}`
	const speechText = `"attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.0078125, "bos_token_id": $bos, "embedding_multiplier": 12.0,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "logits_scaling": 16.0,
			"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "granite", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"use_cache": true, "vocab_size": $vocab}, `
	const audioTensors = `
			encoder.input_linear.{weight,bias}                            | 32
			encoder.layers.0.attn.to_q.weight                             | 32, 32
			projector.linear.{weight,bias}                                | 64
			projector.qformer.encoder.layer.0.attention.attention.key.weight | 32, 32
			`
	add(Spec{
		Name:      "granite_speech",
		Tokenizer: "bpe:starcoder",
		Config: `{"architectures": ["GraniteSpeechForConditionalGeneration"], "model_type": "granite_speech",
			"text_config": {"architectures": ["GraniteForCausalLM"], ` + speechText + speech,
		Tensors: prefixed("language_model.", llamaAttention+llamaMLP) + audioTensors,
	})
	for _, s := range [][3]string{
		{"granite_speech_class", "GraniteSpeechForConditionalGeneration", "granite_speech"},
		{"granite_speech_plus", "GraniteSpeechPlusForConditionalGeneration", "granite_speech_plus"},
	} {
		add(Spec{
			Name:        s[0],
			NoReference: "the reference fails: KeyError: '" + s[1] + "'",
			Tokenizer:   "bpe:starcoder",
			Config: `{"architectures": ["` + s[1] + `"], "model_type": "` + s[2] + `", "text_config": {` +
				speechText + speech,
			Tensors: prefixed("language_model.", llamaAttention+llamaMLP) + audioTensors,
		})
	}
	add(Spec{
		Name:      "granite_switch",
		Tokenizer: "bpe:starcoder",
		Config: `{"architectures": ["GraniteSwitchForCausalLM"], "adapter_names": ["a", "b"],
			"adapter_substitute_token_ids": [1000, 1000], "adapter_token_ids": [1001, 1002], "attention_bias": false,
			"attention_dropout": 0.0, "attention_multiplier": 0.0078125,
			"auto_map": {"AutoModelForCausalLM": "modeling_granite_switch.GraniteSwitchForCausalLM"},
			"bos_token_id": $bos, "control_token_gain": 15.0, "embedding_multiplier": 12.0, "eos_token_id": $eos,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"logits_scaling": 10.0, "max_lora_rank": 32, "max_position_embeddings": 131072,
			"model_type": "granite_switch", "num_adapters": 2, "num_attention_heads": 4, "num_experts_per_tok": 8,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_local_experts": 0, "position_embedding_type": "rope",
			"residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000000,
			"shared_intermediate_size": 96, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.0", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers-1
			hd  = hidden_size / num_attention_heads
			n   = num_adapters
			r   = max_lora_rank
			ff  = shared_intermediate_size
			model.embed_tokens.weight                                                | vocab_size, hidden_size
			model.norm.weight                                                        | hidden_size
			model.adapter_token_ids                                                  | n | as I64
			model.switch.control_to_substitute_lut                                   | vocab_size | as I64
			model.layers.{bid}.{input,post_attention}_layernorm.weight               | hidden_size
			model.layers.{bid}.self_attn.qkv_proj.base_layer.weight                  | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
			model.layers.{bid}.self_attn.qkv_proj.lora_A_slices.{0,1,2}              | n, 1, r, hidden_size
			model.layers.{bid}.self_attn.qkv_proj.lora_B_slices.0                    | n, 1, num_attention_heads*hd, r
			model.layers.{bid}.self_attn.qkv_proj.lora_B_slices.{1,2}                | n, 1, num_key_value_heads*hd, r
			model.layers.{bid}.self_attn.o_proj.base_layer.weight                    | hidden_size, hidden_size
			model.layers.{bid}.self_attn.o_proj.lora_A                               | n, 1, r, hidden_size
			model.layers.{bid}.self_attn.o_proj.lora_B                               | n, 1, hidden_size, r
			model.layers.{bid}.shared_mlp.input_linear.base_layer.weight             | 2*ff, hidden_size
			model.layers.{bid}.shared_mlp.input_linear.lora_A_slices.{0,1}           | n, 1, r, hidden_size
			model.layers.{bid}.shared_mlp.input_linear.lora_B_slices.{0,1}           | n, 1, ff, r
			model.layers.{bid}.shared_mlp.output_linear.base_layer.weight            | hidden_size, ff
			model.layers.{bid}.shared_mlp.output_linear.lora_A                       | n, 1, r, ff
			model.layers.{bid}.shared_mlp.output_linear.lora_B                       | n, 1, hidden_size, r
			`,
		Variants: []Variant{{Name: "without-gain", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"control_token_gain": null, "num_experts_per_tok": null, "num_adapters": 3,
				"adapter_token_ids": [220, 101, 44], "adapter_substitute_token_ids": [300, 1000, 12]}`}},
	})
	add(Spec{
		Name:      "hrm_text",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["HrmTextForCausalLM"], "H_cycles": 2, "L_bp_cycles": [2], "L_cycles": 3,
			"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $pad, "embedding_scale": 39.19,
			"eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.0255,
			"intermediate_size": 96, "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "hrm_text",
			"num_attention_heads": 2, "num_hidden_layers": 16, "num_layers_per_stack": 2, "prefix_lm": true,
			"rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "5.8.0", "use_cache": true,
			"vocab_size": $vocab}`,
		Tensors: `
			lay = num_layers_per_stack
			model.embed_tokens.weight                                          | vocab_size, hidden_size
			lm_head.weight                                                     | vocab_size, hidden_size
			model.z_L_init                                                     | hidden_size
			model.{L,H}_module.layers.{lay}.attn.gqkv_proj.weight              | 4*hidden_size, hidden_size     | if !opt(apart)
			model.{L,H}_module.layers.{lay}.attn.o_proj.weight                 | hidden_size, hidden_size       | if !opt(apart)
			model.{L,H}_module.layers.{lay}.mlp.gate_up_proj.weight            | 2*intermediate_size, hidden_size | if !opt(apart)
			model.{L,H}_module.layers.{lay}.self_attn.{q,k,v,gate,o}_proj.weight | hidden_size, hidden_size     | if opt(apart)
			model.{L,H}_module.layers.{lay}.mlp.{gate,up}_proj.weight          | intermediate_size, hidden_size | if opt(apart)
			model.{L,H}_module.layers.{lay}.mlp.down_proj.weight               | hidden_size, intermediate_size
			`,
		Variants: []Variant{{Name: "apart", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"apart": true, "num_hidden_layers": 24, "num_layers_per_stack": 3, "prefix_lm": false}`}},
	})
}
