package hftest

import (
	"fmt"
	"strings"
)

func init() {
	const audioTensors = `
		a = audio_config.conf_num_hidden_layers
		model.audio_tower.conformer.{a}.attention.{pre_attn_norm,post_norm}.weight                            | 64
		model.audio_tower.conformer.{a}.attention.attn.{q,k,v}_proj.weight                                    | 64, 64
		model.audio_tower.conformer.{a}.attention.attn.relative_position_embedding.pos_proj.weight            | 64, 64
		model.audio_tower.conformer.{a}.attention.attn.per_dim_scale                                          | 32
		model.audio_tower.conformer.{a}.attention.post.weight                                                 | 64, 64
		model.audio_tower.conformer.{a}.ffw_layer_{start,end}.{pre,post}_layer_norm.weight                    | 64
		model.audio_tower.conformer.{a}.ffw_layer_{start,end}.ffw_layer_1.weight                              | 256, 64
		model.audio_tower.conformer.{a}.ffw_layer_{start,end}.ffw_layer_2.weight                              | 64, 256
		model.audio_tower.conformer.{a}.lconv1d.{pre_layer_norm,conv_norm}.weight                             | 64
		model.audio_tower.conformer.{a}.lconv1d.linear_start.weight                                           | 128, 64
		model.audio_tower.conformer.{a}.lconv1d.depthwise_conv1d.weight                                       | 64, 1, 5
		model.audio_tower.conformer.{a}.lconv1d.linear_end.weight                                             | 64, 64
		model.audio_tower.conformer.{a}.norm.weight                                                           | 64
		model.audio_tower.subsample_conv_projection.conv_0.conv.weight                                        | 32, 1, 3, 3
		model.audio_tower.subsample_conv_projection.conv_1.conv.weight                                        | 16, 32, 3, 3
		model.audio_tower.subsample_conv_projection.input_proj_linear.weight                                  | 64, 512
		model.embed_audio.embedding.weight                                                                    | 128, 64
		model.embed_audio.{hard,soft}_embedding_norm.weight                                                   | 64
		model.embed_audio.embedding_projection.weight                                                         | 64, 64
		model.embed_vision.embedding.weight                                                                   | 128, vision_config.hidden_size
		model.embed_vision.{hard,soft}_embedding_norm.weight                                                  | vision_config.hidden_size
		model.embed_vision.embedding_projection.weight                                                        | 64, vision_config.hidden_size
		`
	s := Spec{
		Name: "mm_gemma3n", Encoder: true, Tokenizer: "gemma",
		Files: map[string]string{"preprocessor_config.json": `{"data_format": "channels_first", "do_normalize": false,
			"do_rescale": true, "do_resize": true, "dither": 0.0,
			"feature_extractor_type": "Gemma3nAudioFeatureExtractor", "feature_size": 128, "fft_length": 1024,
			"frame_length": 512, "hop_length": 160, "image_mean": [0.5, 0.5, 0.5],
			"image_processor_type": "SiglipImageProcessorFast", "image_seq_length": 256, "image_std": [0.5, 0.5, 0.5],
			"processor_class": "Gemma3nProcessor", "resample": 2, "rescale_factor": 0.00392156862745098,
			"sampling_rate": 16000, "size": {"height": 512, "width": 512}}`},
		Config: `{"architectures": ["Gemma3nForConditionalGeneration"], "audio_config": {"conf_attention_chunk_size": 12, "conf_attention_context_left": 13, "conf_attention_context_right": 0,
				"conf_attention_logit_cap": 50.0, "conf_conv_kernel_size": 5, "conf_num_attention_heads": 2, "conf_num_hidden_layers": 3, "conf_reduction_factor": 4,
				"conf_residual_weight": 0.5, "gradient_clipping": 10000000000.0, "hidden_size": 64, "input_feat_size": 128, "model_type": "gemma3n_audio", "rms_norm_eps": 1e-06,
				"sscp_conv_channel_size": [32, 16], "sscp_conv_group_norm_eps": 0.001, "sscp_conv_kernel_size": [[3, 3], [3, 3]], "sscp_conv_stride_size": [[2, 2], [2, 2]],
				"torch_dtype": "bfloat16", "vocab_offset": 262272, "vocab_size": 128},
			"audio_soft_tokens_per_image": 188, "audio_token_id": 1001, "boa_token_id": 1002, "boi_token_id": 1003, "eoa_token_id": 1004, "eoi_token_id": 1005, "eos_token_id": [1, 106],
			"image_token_id": 1006, "initializer_range": 0.02, "model_type": "gemma3n", ` + textOfType("gemma3n_text") + `, "torch_dtype": "bfloat16", "transformers_version": "4.53.0.dev0",
			"vision_config": {"architecture": "mobilenetv5_300m_enc", "do_pooling": false, "hidden_size": 64, "initializer_range": 0.02, "label_names": ["LABEL_0", "LABEL_1"],
				"model_args": null, "model_type": "gemma3n_vision", "num_classes": 2, "rms_norm_eps": 1e-06, "torch_dtype": "bfloat16", "vocab_offset": 262144, "vocab_size": 128},
			"vision_soft_tokens_per_image": 256}`,
		Tensors: mobileNetV5() + audioTensors + textOf("model.language_model."),
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Out: "bf16",
			Set: `{"vision_config": {"architecture": null, "rms_norm_eps": null},
				"audio_config": {"input_feat_size": null}}`}},
	}
	add(s)
	// as published: with the norms after the convolutions of the mel spectrogram
	s.Name, s.NoReference, s.Variants = "mm_gemma3n_norms",
		"the reference does not know the names of two norms that all published checkpoints have", nil
	s.Tensors += `
		model.audio_tower.subsample_conv_projection.conv_0.norm.weight | 32
		model.audio_tower.subsample_conv_projection.conv_1.norm.weight | 16
		`
	add(s)
}

// mobileNetV5 returns the tensors of timm's mobilenetv5_300m_enc with few channels.
func mobileNetV5() string {
	var b strings.Builder
	row := func(name string, dims ...int) {
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", ", "), "[]")
		fmt.Fprintf(&b, "model.vision_tower.timm_model.%s | %s\n", name, text)
	}
	conv := func(name string, out, in, side int) { row(name+".weight", out, in, side, side) }
	conv("conv_stem.conv", 8, 3, 3)
	row("conv_stem.conv.bias", 8)
	row("conv_stem.bn.weight", 8)
	in := 8
	for stage, out := range []int{8, 16, 24, 32} {
		block := 0
		next := func() string {
			p := fmt.Sprintf("blocks.%d.%d.", stage, block)
			block++
			return p
		}
		bottleneck := func(start, mid, times int) {
			p, between := next(), times*in
			if start > 0 {
				conv(p+"dw_start.conv", in, 1, start)
				row(p+"dw_start.bn.weight", in)
			}
			conv(p+"pw_exp.conv", between, in, 1)
			row(p+"pw_exp.bn.weight", between)
			if mid > 0 {
				conv(p+"dw_mid.conv", between, 1, mid)
				row(p+"dw_mid.bn.weight", between)
			}
			conv(p+"pw_proj.conv", out, between, 1)
			row(p+"pw_proj.bn.weight", out)
			row(p+"layer_scale.gamma", out)
			in = out
		}
		attention := func(head int, pooled bool) {
			p := next()
			row(p+"norm.weight", in)
			conv(p+"attn.query.proj", 2*head, in, 1)
			for _, s := range []string{"key", "value"} {
				if pooled {
					conv(p+"attn."+s+".down_conv", in, 1, 3)
					row(p+"attn."+s+".norm.weight", in)
				}
				conv(p+"attn."+s+".proj", head, in, 1)
			}
			conv(p+"attn.output.proj", in, 2*head, 1)
			row(p+"layer_scale.gamma", in)
		}
		switch stage {
		case 0:
			for range 3 {
				p := next()
				conv(p+"conv_exp", 4*in, in, 3)
				row(p+"bn1.weight", 4*in)
				conv(p+"conv_pwl", out, 4*in, 1)
				row(p+"bn2.weight", out)
				in = out
			}
		case 1:
			bottleneck(3, 5, 6)
			for _, side := range []int{5, 3, 5, 3} {
				bottleneck(side, 0, 4)
			}
		case 2:
			bottleneck(5, 5, 6)
			for range 7 {
				bottleneck(5, 0, 4)
			}
			bottleneck(0, 0, 1)
			for range 14 {
				attention(16, true)
				bottleneck(0, 0, 2)
			}
		case 3:
			bottleneck(5, 5, 6)
			for range 19 {
				attention(24, false)
				bottleneck(0, 0, 2)
			}
		}
	}
	conv("msfa.ffn.pw_exp.conv", 112, 56, 1)
	row("msfa.ffn.pw_exp.bn.weight", 112)
	conv("msfa.ffn.pw_proj.conv", 64, 112, 1)
	row("msfa.ffn.pw_proj.bn.weight", 64)
	row("msfa.norm.weight", 64)
	return b.String()
}
