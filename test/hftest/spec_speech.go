package hftest

import (
	"fmt"
	"slices"
	"strings"
)

// qwen3TTS is config.json of a Qwen 3 TTS: 1.7B-Base with small sizes. qwen3TTSTensors are its tensors.
const qwen3TTS = `{"architectures": ["Qwen3TTSForConditionalGeneration"], "assistant_token_id": 77091,
	"im_end_token_id": 151645, "im_start_token_id": 151644, "tts_bos_token_id": 151672, "tts_eos_token_id": 151673,
	"tts_pad_token_id": 151671, "model_type": "qwen3_tts", "tokenizer_type": "qwen3_tts_tokenizer_12hz",
	"tts_model_size": "1b7", "tts_model_type": "base", "speaker_encoder_config": {"enc_dim": 64, "sample_rate": 24000},
	"talker_config": {"attention_bias": false, "attention_dropout": 0, "code_predictor_config": {"_name_or_path": "",
	"architectures": null, "attention_bias": false, "attention_dropout": 0, "head_dim": 16, "hidden_act": "silu",
	"hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 64, "layer_types": ["full_attention",
	"full_attention", "full_attention", "full_attention", "full_attention"], "max_position_embeddings": 65536,
	"max_window_layers": 28, "model_type": "qwen3_tts_talker_code_predictor", "num_attention_heads": 4,
	"num_code_groups": 16, "num_hidden_layers": 5, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
	"rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "use_cache": true, "use_sliding_window": false,
	"vocab_size": 64}, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "codec_think_id": 2154,
	"codec_language_id": {"chinese": 2055, "english": 2050, "german": 2053, "italian": 2070, "portuguese": 2071,
	"spanish": 2054, "japanese": 2058, "korean": 2064, "french": 2061, "russian": 2069}, "codec_nothink_id": 2155,
	"codec_pad_id": 2148, "codec_think_bos_id": 2156, "codec_think_eos_id": 2157, "spk_id": {}, "spk_is_dialect": {},
	"head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
	"max_position_embeddings": 32768, "model_type": "qwen3_tts_talker", "num_attention_heads": 4, "num_code_groups": 16,
	"num_hidden_layers": 2, "num_key_value_heads": 2, "position_id_per_seconds": 13, "rms_norm_eps": 1e-06,
	"rope_scaling": {"interleaved": true, "mrope_section": [4, 2, 2], "rope_type": "default", "type": "default"},
	"rope_theta": 1000000, "sliding_window": null, "text_hidden_size": 96, "text_vocab_size": $vocab, "use_cache": true,
	"use_sliding_window": false, "vocab_size": 3072}, "transformers_version": "4.57.3"}`

const qwen3TTSTensors = `
	tid = talker_config.num_hidden_layers
	n   = talker_config.hidden_size
	ff  = talker_config.intermediate_size
	hd  = talker_config.head_dim
	nq  = talker_config.num_attention_heads * hd
	nk  = talker_config.num_key_value_heads * hd
	tx  = talker_config.text_hidden_size
	talker.codec_head.weight                                    | talker_config.vocab_size, n
	talker.model.codec_embedding.weight                         | talker_config.vocab_size, n
	talker.model.text_embedding.weight                          | talker_config.text_vocab_size, tx
	talker.model.norm.weight                                    | n
	talker.text_projection.linear_fc1.weight                    | tx, tx
	talker.text_projection.linear_fc1.bias                      | tx
	talker.text_projection.linear_fc2.weight                    | n, tx
	talker.text_projection.linear_fc2.bias                      | n
	talker.model.layers.{tid}.{input,post_attention}_layernorm.weight | n
	talker.model.layers.{tid}.self_attn.q_proj.weight           | nq, n
	talker.model.layers.{tid}.self_attn.{k,v}_proj.weight       | nk, n
	talker.model.layers.{tid}.self_attn.o_proj.weight           | n, nq
	talker.model.layers.{tid}.self_attn.{q,k}_norm.weight       | hd
	talker.model.layers.{tid}.mlp.{gate,up}_proj.weight         | ff, n
	talker.model.layers.{tid}.mlp.down_proj.weight              | n, ff
	cid = talker_config.code_predictor_config.num_hidden_layers
	xid = talker_config.num_code_groups - 1
	m   = talker_config.code_predictor_config.hidden_size
	mf  = talker_config.code_predictor_config.intermediate_size
	mh  = talker_config.code_predictor_config.head_dim
	mq  = talker_config.code_predictor_config.num_attention_heads * mh
	mk  = talker_config.code_predictor_config.num_key_value_heads * mh
	talker.code_predictor.lm_head.{xid}.weight                  | talker_config.code_predictor_config.vocab_size, m
	talker.code_predictor.model.codec_embedding.{xid}.weight    | talker_config.code_predictor_config.vocab_size, n
	talker.code_predictor.model.norm.weight                     | m
	talker.code_predictor.small_to_mtp_projection.weight        | m, n | if m != n
	talker.code_predictor.small_to_mtp_projection.bias          | m    | if m != n
	talker.code_predictor.model.layers.{cid}.{input,post_attention}_layernorm.weight | m
	talker.code_predictor.model.layers.{cid}.self_attn.q_proj.weight           | mq, m
	talker.code_predictor.model.layers.{cid}.self_attn.{k,v}_proj.weight       | mk, m
	talker.code_predictor.model.layers.{cid}.self_attn.o_proj.weight           | m, mq
	talker.code_predictor.model.layers.{cid}.self_attn.{q,k}_norm.weight       | mh
	talker.code_predictor.model.layers.{cid}.mlp.{gate,up}_proj.weight         | mf, m
	talker.code_predictor.model.layers.{cid}.mlp.down_proj.weight              | m, mf
	eid = 3
	rid = 7
	speaker_encoder.blocks.0.conv.weight                        | 32, 128, 5 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.0.conv.bias                          | 32 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.tdnn{1,2}.conv.weight        | 32, 32, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.tdnn{1,2}.conv.bias          | 32 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.res2net_block.blocks.{rid}.conv.weight | 4, 4, 3 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.res2net_block.blocks.{rid}.conv.bias   | 4 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.se_block.conv1.weight        | 8, 32, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.se_block.conv1.bias          | 8 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.se_block.conv2.weight        | 32, 8, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.blocks.{1,2,3}.se_block.conv2.bias          | 32 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.mfa.conv.weight                             | 96, 96, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.mfa.conv.bias                               | 96 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.asp.tdnn.conv.weight                        | 8, 288, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.asp.tdnn.conv.bias                          | 8 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.asp.conv.weight                             | 96, 8, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.asp.conv.bias                               | 96 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.fc.weight                                   | 64, 192, 1 | if opt(speaker_encoder_config.enc_dim) != 0
	speaker_encoder.fc.bias                                     | 64 | if opt(speaker_encoder_config.enc_dim) != 0
	`

// qwen3Speech is config.json of the audio codec (encoder and decoder), with small sizes except for those that the
// runtime fixes.
const qwen3Speech = `{"architectures": ["Qwen3TTSTokenizerV2Model"], "model_type": "qwen3_tts_tokenizer_12hz",
	"encoder_valid_num_quantizers": 16, "input_sample_rate": 24000, "output_sample_rate": 24000,
	"decode_upsample_rate": 1920, "encode_downsample_rate": 1920, "decoder_config": {"attention_bias": false,
	"attention_dropout": 0.0, "latent_dim": 64, "codebook_dim": 64, "codebook_size": 64, "decoder_dim": 64,
	"hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64, "layer_scale_initial_scale": 0.01,
	"max_position_embeddings": 8000, "head_dim": 64, "num_attention_heads": 16, "num_hidden_layers": 8,
	"num_key_value_heads": 16, "num_quantizers": 16, "num_semantic_quantizers": 1, "rms_norm_eps": 1e-05,
	"rope_theta": 10000, "semantic_codebook_size": 4096, "sliding_window": 72, "upsample_rates": [8, 5, 4, 3],
	"upsampling_ratios": [2, 2], "vector_quantization_hidden_dimension": 512}, "encoder_config": {"num_quantizers": 32,
	"upsampling_ratios": [8, 6, 5, 4]}}`

// qwen3Wave are the tensors of the codec's decoder, and one layer of its encoder.
var qwen3Wave = `
	xid = 15
	lid = 8
	uid = 2
	decoder.quantizer.rvq_{first,rest}.input_proj.weight             | 32, 64, 1
	decoder.quantizer.rvq_{first,rest}.output_proj.weight            | 64, 32, 1
	decoder.quantizer.rvq_first.vq.layers.0._codebook.cluster_usage  | 2048 | fill slope
	decoder.quantizer.rvq_first.vq.layers.0._codebook.embedding_sum  | 2048, 32
	decoder.quantizer.rvq_rest.vq.layers.{xid}._codebook.cluster_usage | 64 | fill norm
	decoder.quantizer.rvq_rest.vq.layers.{xid}._codebook.embedding_sum | 64, 32
	decoder.pre_conv.conv.weight                                     | 64, 64, 3
	decoder.pre_conv.conv.bias                                       | 64
	decoder.pre_transformer.input_proj.weight                        | 32, 64
	decoder.pre_transformer.input_proj.bias                          | 32
	decoder.pre_transformer.output_proj.weight                       | 64, 32
	decoder.pre_transformer.output_proj.bias                         | 64
	decoder.pre_transformer.norm.weight                              | 32
	decoder.pre_transformer.layers.{lid}.{input,post_attention}_layernorm.weight | 32
	decoder.pre_transformer.layers.{lid}.self_attn.{q,k,v}_proj.weight | 1024, 32
	decoder.pre_transformer.layers.{lid}.self_attn.o_proj.weight     | 32, 1024
	decoder.pre_transformer.layers.{lid}.{self_attn,mlp}_layer_scale.scale | 32
	decoder.pre_transformer.layers.{lid}.mlp.{gate,up}_proj.weight   | 64, 32
	decoder.pre_transformer.layers.{lid}.mlp.down_proj.weight        | 32, 64
	decoder.upsample.{uid}.0.conv.weight                             | 64, 64, 2
	decoder.upsample.{uid}.0.conv.bias                               | 64
	decoder.upsample.{uid}.1.dwconv.conv.weight                      | 64, 1, 7
	decoder.upsample.{uid}.1.dwconv.conv.bias                        | 64
	decoder.upsample.{uid}.1.norm.{weight,bias}                      | 64
	decoder.upsample.{uid}.1.pwconv1.weight                          | 256, 64
	decoder.upsample.{uid}.1.pwconv1.bias                            | 256
	decoder.upsample.{uid}.1.pwconv2.weight                          | 64, 256
	decoder.upsample.{uid}.1.pwconv2.bias                            | 64
	decoder.upsample.{uid}.1.gamma                                   | 64
	decoder.decoder.0.conv.weight                                    | 64, 64, 7
	decoder.decoder.0.conv.bias                                      | 64
	` + qwen3Block + `
	decoder.decoder.5.{alpha,beta}                                   | 4
	decoder.decoder.6.conv.weight                                    | 1, 4, 7
	decoder.decoder.6.conv.bias                                      | 1
	encoder.encoder.layers.0.conv.weight                             | 8, 1, 7
	encoder.encoder.layers.0.conv.bias                               | 8
	`

// qwen3Block are the tensors of the decoder's upsampling blocks, each half as wide as the one before.
var qwen3Block = func() string {
	var b strings.Builder
	for i, rate := range []int{8, 5, 4, 3} {
		in, out := 64>>i, 32>>i
		p := fmt.Sprintf("decoder.decoder.%d.block.", i+1)
		fmt.Fprintf(&b, "%s0.{alpha,beta} | %d\n%s1.conv.weight | %d, %d, %d\n%s1.conv.bias | %d\n", p, in, p, in, out,
			2*rate, p, out)
		fmt.Fprintf(&b, "%s{2,3,4}.act{1,2}.{alpha,beta} | %d\n%s{2,3,4}.conv1.conv.weight | %d, %d, "+
			"7\n%s{2,3,4}.conv2.conv.weight | %d, %d, 1\n%s{2,3,4}.conv{1,2}.conv.bias | %d\n",
			p, out, p, out, out, p, out, out, p, out)
	}
	return b.String()
}()

func init() {
	// in 0.6B models the code predictor is as wide as the language model
	alike := `{"talker_config": {"code_predictor_config": {"hidden_size": 64}}}`
	// CustomVoice models have fixed voices and no speaker encoder
	custom := `{"tts_model_type": "custom_voice", "speaker_encoder_config": null,
		"talker_config": {"spk_id": {"serena": 3066, "vivian": 3065, "uncle_fu": 3010, "ryan": 3061, "aiden": 2861,
		"ono_anna": 2873, "sohee": 2864, "eric": 2875, "dylan": 2878}, "spk_is_dialect": {"serena": false,
		"vivian": false, "eric": "sichuan_dialect", "dylan": "beijing_dialect"}}}`
	variants := []Variant{
		{Name: "f16", Seed: 3, DType: "F16", Out: "f32"},
		{Name: "bf16", Seed: 4, Shards: 2, Out: "bf16", Set: alike},
	}
	add(Spec{
		Name: "mm_qwen3_tts", Encoder: true, Tokenizer: "bpe:qwen2", Config: qwen3TTS, Tensors: qwen3TTSTensors,
		Variants:   variants,
		Files:      map[string]string{"speech_tokenizer/config.json": qwen3Speech},
		ExtraFiles: map[string]string{"speech_tokenizer/model.safetensors": qwen3Wave},
	})
	variants = append(slices.Clone(variants), Variant{Name: "custom", Seed: 5, Set: custom})
	add(Spec{Name: "qwen3_tts", GeneratesNoText: true, Tokenizer: "bpe:qwen2",
		AddedTokens: []string{"<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"}, Config: qwen3TTS,
		Tensors: qwen3TTSTensors, Variants: variants})
	// weights with which sums are exact in any order: whole numbers first, then rows with one nonzero each
	whole := qwen3TTSTensors
	for _, how := range []struct{ dims, fill string }{
		{"text_embedding.weight                          | talker_config.text_vocab_size, tx", "whole"},
		{"linear_fc1.weight                    | tx, tx", "whole"},
		{"linear_fc1.bias                      | tx", "whole"},
		{"linear_fc2.weight                    | n, tx", "diagonal tx"},
		{"linear_fc2.bias                      | n", "zero"},
	} {
		whole = strings.Replace(whole, how.dims+"\n", how.dims+" | fill "+how.fill+"\n", 1)
	}
	add(Spec{Name: "qwen3_tts_whole", GeneratesNoText: true, Tokenizer: "bpe:qwen2", Config: qwen3TTS, Tensors: whole})
}

// pocketTTSTensors are the tensors of a Pocket TTS, with small sizes except for those that the runtime fixes. The
// checkpoint has no config.json; Config only serves this table.
const pocketTTSTensors = `
	n   = hidden_size
	ff  = intermediate_size
	bid = num_hidden_layers
	f   = 32
	rid = 6
	flow_lm.bos_emb                                     | 32
	flow_lm.bos_before_voice                            | 1, 1, n | if opt(insert_bos_before_voice)
	flow_lm.conditioner.embed.weight                    | vocab_size, n
	flow_lm.emb_{mean,std}                              | 32
	flow_lm.input_linear.weight                         | n, 32
	flow_lm.out_norm.{weight,bias}                      | n
	flow_lm.out_eos.weight                              | 1, n
	flow_lm.out_eos.bias                                | 1
	flow_lm.speaker_proj_weight                         | n, 32
	flow_lm.transformer.layers.{bid}.norm{1,2}.{weight,bias}     | n
	flow_lm.transformer.layers.{bid}.self_attn.in_proj.weight    | 3*n, n
	flow_lm.transformer.layers.{bid}.self_attn.out_proj.weight   | n, n
	flow_lm.transformer.layers.{bid}.linear1.weight     | ff, n
	flow_lm.transformer.layers.{bid}.linear2.weight     | n, ff
	flow_lm.flow_net.input_proj.weight                  | f, 32
	flow_lm.flow_net.cond_embed.weight                  | f, n
	flow_lm.flow_net.{input_proj,cond_embed}.bias       | f
	flow_lm.flow_net.final_layer.linear.weight          | 32, f
	flow_lm.flow_net.final_layer.linear.bias            | 32
	flow_lm.flow_net.final_layer.adaLN_modulation.1.weight | 2*f, f
	flow_lm.flow_net.final_layer.adaLN_modulation.1.bias   | 2*f
	flow_lm.flow_net.time_embed.{0,1}.freqs             | 128
	flow_lm.flow_net.time_embed.{0,1}.mlp.0.weight      | f, 256
	flow_lm.flow_net.time_embed.{0,1}.mlp.2.weight      | f, f
	flow_lm.flow_net.time_embed.{0,1}.mlp.{0,2}.bias    | f
	flow_lm.flow_net.time_embed.{0,1}.mlp.3.alpha       | f
	flow_lm.flow_net.res_blocks.{rid}.in_ln.{weight,bias}  | f
	flow_lm.flow_net.res_blocks.{rid}.mlp.{0,2}.weight     | f, f
	flow_lm.flow_net.res_blocks.{rid}.mlp.{0,2}.bias       | f
	flow_lm.flow_net.res_blocks.{rid}.adaLN_modulation.1.weight | 3*f, f
	flow_lm.flow_net.res_blocks.{rid}.adaLN_modulation.1.bias   | 3*f
	aid = 2
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.norm{1,2}.{weight,bias}      | 64
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.self_attn.in_proj.weight     | 192, 64
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.self_attn.out_proj.weight    | 64, 64
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.linear1.weight               | 96, 64
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.linear2.weight               | 64, 96
	mimi.{en,de}coder_transformer.transformer.layers.{aid}.layer_scale_{1,2}.scale      | 64
	mimi.downsample.conv.conv.weight                    | 32, 64, 32
	mimi.upsample.convtr.convtr.weight                  | 64, 1, 32
	mimi.quantizer.output_proj.weight                   | 64, 32, 1
	mimi.encoder.model.0.conv.weight                    | 8, 1, 7
	mimi.encoder.model.0.conv.bias                      | 8
	mimi.encoder.model.1.block.1.conv.weight            | 4, 8, 3
	mimi.encoder.model.1.block.1.conv.bias              | 4
	mimi.encoder.model.1.block.3.conv.weight            | 8, 4, 1
	mimi.encoder.model.1.block.3.conv.bias              | 8
	mimi.encoder.model.3.conv.weight                    | 16, 8, 8
	mimi.encoder.model.3.conv.bias                      | 16
	mimi.encoder.model.4.block.1.conv.weight            | 8, 16, 3
	mimi.encoder.model.4.block.1.conv.bias              | 8
	mimi.encoder.model.4.block.3.conv.weight            | 16, 8, 1
	mimi.encoder.model.4.block.3.conv.bias              | 16
	mimi.encoder.model.6.conv.weight                    | 32, 16, 10
	mimi.encoder.model.6.conv.bias                      | 32
	mimi.encoder.model.7.block.1.conv.weight            | 16, 32, 3
	mimi.encoder.model.7.block.1.conv.bias              | 16
	mimi.encoder.model.7.block.3.conv.weight            | 32, 16, 1
	mimi.encoder.model.7.block.3.conv.bias              | 32
	mimi.encoder.model.9.conv.weight                    | 64, 32, 12
	mimi.encoder.model.9.conv.bias                      | 64
	mimi.encoder.model.11.conv.weight                   | 64, 64, 3
	mimi.encoder.model.11.conv.bias                     | 64
	mimi.decoder.model.0.conv.weight                    | 64, 64, 7
	mimi.decoder.model.0.conv.bias                      | 64
	mimi.decoder.model.2.convtr.weight                  | 64, 32, 12
	mimi.decoder.model.2.convtr.bias                    | 32
	mimi.decoder.model.3.block.1.conv.weight            | 16, 32, 3
	mimi.decoder.model.3.block.1.conv.bias              | 16
	mimi.decoder.model.3.block.3.conv.weight            | 32, 16, 1
	mimi.decoder.model.3.block.3.conv.bias              | 32
	mimi.decoder.model.5.convtr.weight                  | 32, 16, 10
	mimi.decoder.model.5.convtr.bias                    | 16
	mimi.decoder.model.6.block.1.conv.weight            | 8, 16, 3
	mimi.decoder.model.6.block.1.conv.bias              | 8
	mimi.decoder.model.6.block.3.conv.weight            | 16, 8, 1
	mimi.decoder.model.6.block.3.conv.bias              | 16
	mimi.decoder.model.8.convtr.weight                  | 16, 8, 8
	mimi.decoder.model.8.convtr.bias                    | 8
	mimi.decoder.model.9.block.1.conv.weight            | 4, 8, 3
	mimi.decoder.model.9.block.1.conv.bias              | 4
	mimi.decoder.model.9.block.3.conv.weight            | 8, 4, 1
	mimi.decoder.model.9.block.3.conv.bias              | 8
	mimi.decoder.model.11.conv.weight                   | 1, 8, 3
	mimi.decoder.model.11.conv.bias                     | 1
	`

func init() {
	spec := Spec{
		Name: "pocket_tts", Tokenizer: "unigram", OneFile: true, Tensors: pocketTTSTensors,
		Config: `{"architectures": ["PocketTTSModel"], "hidden_size": 128, "intermediate_size": 192,
			"num_hidden_layers": 3, "vocab_size": 1001, "insert_bos_before_voice": true}`,
		Files: map[string]string{"config.json": ""},
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Out: "f32", Set: `{"insert_bos_before_voice": false}`},
			{Name: "bf16", Seed: 4, Out: "auto", Set: `{"num_hidden_layers": 2}`},
		},
	}
	add(spec)
	spec.Name, spec.Encoder = "mm_pocket_tts", true
	add(spec)
}
