package hftest

import "strings"

// Granite 4 Vision: two kinds of language model, and the vision encoder.
func init() {
	const text = `"attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.015625, "bos_token_id": $bos, "embedding_multiplier": 12.0, "eos_token_id": $eos,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "logits_scaling": 10.0, "max_position_embeddings": 131072,
			"num_attention_heads": 4, "num_hidden_layers": 8, "num_key_value_heads": 2, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_theta": 10000000,
			"tie_word_embeddings": true, "use_cache": true, "vocab_size": $vocab`
	const hybrid = text + `, "architectures": ["GraniteMoeHybridForCausalLM"], "init_method": "mup", "layer_types": ["attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention"],
			"mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 16, "mamba_d_state": 32, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 8,
			"mamba_proj_bias": false, "model_type": "granitemoehybrid", "normalization_function": "rmsnorm", "num_experts_per_tok": 0, "num_local_experts": 0, "output_router_logits": false,
			"position_embedding_type": "rope", "router_aux_loss_coef": 0.01, "shared_intermediate_size": 96`
	config := func(text string) string {
		return `{"architectures": ["Granite4VisionForConditionalGeneration"], "deepstack_layer_map": [[-6, 3], [-4, 2], [-3, 1], [-1, 0]], "downsample_rate": "4/8",
			"image_grid_pinpoints": [[128, 128], [128, 256], [256, 128]], "image_seq_length": 576, "image_token_index": 1002, "model_type": "granite4_vision", "projector_dropout": 0.1,
			"spatial_stride": 2, "spatial_target_layers": [4, 5, 6, 7], "spatial_vision_layer": -1, "text_config": {` + text + `}, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "transformers_version": "5.5.0", "use_image_newline_parameter": true, "use_spatial_sampling": true,
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 64, "image_size": 128, "intermediate_size": 96, "layer_norm_eps": 1e-06,
				"model_type": "siglip_vision_model", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 9, "patch_size": 16},
			"vision_feature_layer": -2, "vision_feature_select_strategy": "full"}`
	}
	const dense = text + `, "architectures": ["GraniteForCausalLM"], "mlp_bias": false, "model_type": "granite"`
	const visionTensors = `
			model.image_newline                                       | 64
			model.layerwise_projectors.0.query                        | 1, 16, 64
			model.spatial_projectors.0.out_linear.weight              | 64, 64
			model.vision_tower.vision_model.post_layernorm.weight     | 64
			`
	language := func(tensors string) string { return strings.ReplaceAll(tensors, "model.", "model.language_model.") }
	add(Spec{
		Name:      "granite_vision",
		Tokenizer: "bpe:starcoder",
		Config:    config(dense),
		Tensors:   language(llamaAttention+llamaMLP) + visionTensors,
		Variants: []Variant{
			{Name: "order", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"deepstack_layer_map": [[-1, -8], [-6, 3], [2, -6]], "spatial_target_layers": [7, 5]}`},
			{Name: "pairs", Seed: 4, Out: "bf16", Set: `{"spatial_target_layers": []}`},
		},
	})
	add(Spec{
		Name:      "granite_vision_hybrid",
		Tokenizer: "bpe:starcoder",
		Config:    config(hybrid),
		Tensors: language(llamaAttention+`
			model.layers.{bid}.shared_mlp.input_linear.weight         | 2*shared_intermediate_size, hidden_size
			model.layers.{bid}.shared_mlp.output_linear.weight        | hidden_size, shared_intermediate_size
			`) + visionTensors,
	})
	projector := func(p string) string {
		return strings.ReplaceAll(`
			P.image_positions                                                       | 1, 64, w
			P.query                                                                 | 1, 16, w
			P.norm.{weight,bias}                                                    | w
			P.out_linear.weight                                                     | 64, w
			P.out_linear.bias                                                       | 64
			P.qformer.layernorm.{weight,bias}                                       | w
			P.qformer.encoder.layer.0.{attention,crossattention}.attention.{query,key,value}.weight | w, w
			P.qformer.encoder.layer.0.{attention,crossattention}.attention.{query,key,value}.bias | w
			P.qformer.encoder.layer.0.{attention,crossattention}.output.dense.weight | w, w
			P.qformer.encoder.layer.0.{attention,crossattention}.output.dense.bias   | w
			P.qformer.encoder.layer.0.{attention,crossattention}.output.LayerNorm.{weight,bias} | w
			P.qformer.encoder.layer.0.intermediate_query.dense.weight               | 128, w
			P.qformer.encoder.layer.0.intermediate_query.dense.bias                 | 128
			P.qformer.encoder.layer.0.output_query.dense.weight                     | w, 128
			P.qformer.encoder.layer.0.output_query.dense.bias                       | w
			P.qformer.encoder.layer.0.output_query.LayerNorm.{weight,bias}          | w
			`, "P.", p)
	}
	add(Spec{
		Name:      "mm_granite_vision",
		Encoder:   true,
		Tokenizer: "bpe:starcoder",
		Config:    config(dense),
		Files: map[string]string{"preprocessor_config.json": `{"crop_size": {"height": 128, "width": 128}, "do_center_crop": true, "do_convert_rgb": null, "do_normalize": true, "do_pad": true,
			"do_rescale": true, "do_resize": true, "image_grid_pinpoints": [[128, 128], [128, 256], [256, 128]], ` + preSigLIP + `, "image_processor_type": "Granite4VisionImageProcessor",
			"processor_class": "Granite4VisionProcessor", "resample": 3, "size": {"height": 128, "width": 128}}`},
		Tensors: strings.Replace(siglip("model.vision_tower.vision_model."), "16, w", "64, w", 1) + projector("model.layerwise_projectors.{0,1,2,3}.") + projector("model.spatial_projectors.{0,1,2,3}.") + `
			model.image_newline                                                     | 64
			model.vision_tower.vision_model.head.layernorm.{weight,bias}            | w
			` + textOf("model.language_model."),
		Variants: []Variant{
			{Name: "order", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"deepstack_layer_map": [[-1, -8], [-6, 3], [2, -6], [-2, 4]], "spatial_target_layers": [7, 5, 1,
					6], "vision_config": {"layer_norm_eps": null}}`},
		},
	})
}
