package diffusion

import "slices"

// The layouts of the diffusers library at 58eb52c, by its converters (loaders/single_file_utils.py and scripts) and the
// classes of its models. What the library leaves out of a checkpoint has no row, and loaders do without it: norm_final of
// Lumina 2, which no model uses; pos_embedder. of Cosmos, which is computed; counters of the training.
var layouts = []Layout{
	{
		Arch: "flux", Classes: []string{"FluxTransformer2DModel"},
		Marks: []string{"x_embedder.weight", "time_text_embed.text_embedder.linear_1.weight",
			"transformer_blocks.0.attn.norm_added_q.weight", "single_transformer_blocks.0.proj_mlp.weight"},
		Rows: slices.Concat([]Row{
			row("img_in.*", "x_embedder.*"),
			row("txt_in.*", "context_embedder.*"),
			row("time_in.in_layer.*", "time_text_embed.timestep_embedder.linear_1.*"),
			row("time_in.out_layer.*", "time_text_embed.timestep_embedder.linear_2.*"),
			row("vector_in.in_layer.*", "time_text_embed.text_embedder.linear_1.*"),
			row("vector_in.out_layer.*", "time_text_embed.text_embedder.linear_2.*"),
			row("final_layer.linear.*", "proj_out.*"),
			swapped(row("final_layer.adaLN_modulation.1.*", "norm_out.linear.*")),
		}, may("guidance",
			row("guidance_in.in_layer.*", "time_text_embed.guidance_embedder.linear_1.*"),
			row("guidance_in.out_layer.*", "time_text_embed.guidance_embedder.linear_2.*"),
		), fluxBlocks, block("double_blocks.#.", "transformer_blocks.#.",
			row("img_mod.lin.*", "norm1.linear.*"),
			row("txt_mod.lin.*", "norm1_context.linear.*"),
		), block("single_blocks.#.", "single_transformer_blocks.#.",
			row("modulation.lin.*", "norm.linear.*"),
		)),
	},
	{
		Arch: "flux", Classes: []string{"ChromaTransformer2DModel"},
		Marks: []string{"x_embedder.weight", "distilled_guidance_layer.in_proj.weight",
			"single_transformer_blocks.0.proj_mlp.weight"},
		Rows: slices.Concat([]Row{
			row("img_in.*", "x_embedder.*"),
			row("txt_in.*", "context_embedder.*"),
			row("distilled_guidance_layer.in_proj.*", "distilled_guidance_layer.in_proj.*"),
			row("distilled_guidance_layer.out_proj.*", "distilled_guidance_layer.out_proj.*"),
			row("final_layer.linear.*", "proj_out.*"),
		}, block("distilled_guidance_layer.layers.#.", "distilled_guidance_layer.layers.#.",
			row("in_layer.*", "linear_1.*"),
			row("out_layer.*", "linear_2.*"),
		), block("distilled_guidance_layer.norms.#.", "distilled_guidance_layer.norms.#.",
			row("scale", "weight"),
		), fluxBlocks),
	},
	{
		Arch: "flux", Classes: []string{"Flux2Transformer2DModel"},
		Marks: []string{"x_embedder.weight", "double_stream_modulation_img.linear.weight",
			"single_transformer_blocks.0.attn.to_qkv_mlp_proj.weight"},
		Rows: slices.Concat([]Row{
			row("img_in.*", "x_embedder.*"),
			row("txt_in.*", "context_embedder.*"),
			row("time_in.in_layer.*", "time_guidance_embed.timestep_embedder.linear_1.*"),
			row("time_in.out_layer.*", "time_guidance_embed.timestep_embedder.linear_2.*"),
			row("double_stream_modulation_img.lin.*", "double_stream_modulation_img.linear.*"),
			row("double_stream_modulation_txt.lin.*", "double_stream_modulation_txt.linear.*"),
			row("single_stream_modulation.lin.*", "single_stream_modulation.linear.*"),
			row("final_layer.linear.*", "proj_out.*"),
			swapped(row("final_layer.adaLN_modulation.1.*", "norm_out.linear.*")),
		}, may("guidance",
			row("guidance_in.in_layer.*", "time_guidance_embed.guidance_embedder.linear_1.*"),
			row("guidance_in.out_layer.*", "time_guidance_embed.guidance_embedder.linear_2.*"),
		), fluxAttention, block("double_blocks.#.", "transformer_blocks.#.",
			row("img_mlp.0.*", "ff.linear_in.*"),
			row("img_mlp.2.*", "ff.linear_out.*"),
			row("txt_mlp.0.*", "ff_context.linear_in.*"),
			row("txt_mlp.2.*", "ff_context.linear_out.*"),
		), block("single_blocks.#.", "single_transformer_blocks.#.",
			row("linear1.*", "attn.to_qkv_mlp_proj.*"),
			row("linear2.*", "attn.to_out.*"),
			row("norm.query_norm.scale", "attn.norm_q.weight"),
			row("norm.key_norm.scale", "attn.norm_k.weight"),
		)),
	},
	{
		Arch: "sd3", Classes: []string{"SD3Transformer2DModel"},
		Marks: []string{"pos_embed.proj.weight", "time_text_embed.text_embedder.linear_1.weight",
			"transformer_blocks.0.ff_context.net.0.proj.weight"},
		Rows: slices.Concat([]Row{
			row("pos_embed", "pos_embed.pos_embed"),
			row("x_embedder.proj.*", "pos_embed.proj.*"),
			row("t_embedder.mlp.0.*", "time_text_embed.timestep_embedder.linear_1.*"),
			row("t_embedder.mlp.2.*", "time_text_embed.timestep_embedder.linear_2.*"),
			row("y_embedder.mlp.0.*", "time_text_embed.text_embedder.linear_1.*"),
			row("y_embedder.mlp.2.*", "time_text_embed.text_embedder.linear_2.*"),
			row("context_embedder.*", "context_embedder.*"),
			row("final_layer.linear.*", "proj_out.*"),
			swapped(row("final_layer.adaLN_modulation.1.*", "norm_out.linear.*")),
		}, block("joint_blocks.#.x_block.", "transformer_blocks.#.",
			row("adaLN_modulation.1.*", "norm1.linear.*"),
			row("attn.qkv.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*"),
			row("attn.proj.*", "attn.to_out.0.*"),
			row("mlp.fc1.*", "ff.net.0.proj.*"),
			row("mlp.fc2.*", "ff.net.2.*"),
		), block("joint_blocks.#.context_block.", "transformer_blocks.#.",
			in(AllButLast, row("adaLN_modulation.1.*", "norm1_context.linear.*")),
			in(Last, swapped(row("adaLN_modulation.1.*", "norm1_context.linear.*"))),
			row("attn.qkv.*", "attn.add_q_proj.*", "attn.add_k_proj.*", "attn.add_v_proj.*"),
			in(AllButLast, row("attn.proj.*", "attn.to_add_out.*")),
			in(AllButLast, row("mlp.fc1.*", "ff_context.net.0.proj.*")),
			in(AllButLast, row("mlp.fc2.*", "ff_context.net.2.*")),
		), may("norms", block("joint_blocks.#.", "transformer_blocks.#.",
			row("x_block.attn.ln_q.weight", "attn.norm_q.weight"),
			row("x_block.attn.ln_k.weight", "attn.norm_k.weight"),
			row("context_block.attn.ln_q.weight", "attn.norm_added_q.weight"),
			row("context_block.attn.ln_k.weight", "attn.norm_added_k.weight"),
		)...), may("second attention", block("joint_blocks.#.x_block.attn2.", "transformer_blocks.#.attn2.",
			in(Some, row("qkv.*", "to_q.*", "to_k.*", "to_v.*")),
			in(Some, row("ln_q.weight", "norm_q.weight")),
			in(Some, row("ln_k.weight", "norm_k.weight")),
			in(Some, row("proj.*", "to_out.0.*")),
		)...)),
	},
	{
		Arch: "aura", Classes: []string{"AuraFlowTransformer2DModel"},
		Marks: []string{"register_tokens", "pos_embed.proj.weight",
			"joint_transformer_blocks.0.ff_context.out_projection.weight"},
		Rows: slices.Concat([]Row{
			row("register_tokens", "register_tokens"),
			row("positional_encoding", "pos_embed.pos_embed"),
			row("init_x_linear.*", "pos_embed.proj.*"),
			row("t_embedder.mlp.0.*", "time_step_proj.linear_1.*"),
			row("t_embedder.mlp.2.*", "time_step_proj.linear_2.*"),
			row("cond_seq_linear.weight", "context_embedder.weight"),
			row("final_linear.weight", "proj_out.weight"),
			swapped(row("modF.1.weight", "norm_out.linear.weight")),
		}, block("double_layers.#.", "joint_transformer_blocks.#.",
			row("modX.1.weight", "norm1.linear.weight"),
			row("modC.1.weight", "norm1_context.linear.weight"),
			row("mlpX.c_fc1.weight", "ff.linear_1.weight"),
			row("mlpX.c_fc2.weight", "ff.linear_2.weight"),
			row("mlpX.c_proj.weight", "ff.out_projection.weight"),
			row("mlpC.c_fc1.weight", "ff_context.linear_1.weight"),
			row("mlpC.c_fc2.weight", "ff_context.linear_2.weight"),
			row("mlpC.c_proj.weight", "ff_context.out_projection.weight"),
			row("attn.w2q.weight", "attn.to_q.weight"),
			row("attn.w2k.weight", "attn.to_k.weight"),
			row("attn.w2v.weight", "attn.to_v.weight"),
			row("attn.w2o.weight", "attn.to_out.0.weight"),
			row("attn.w1q.weight", "attn.add_q_proj.weight"),
			row("attn.w1k.weight", "attn.add_k_proj.weight"),
			row("attn.w1v.weight", "attn.add_v_proj.weight"),
			row("attn.w1o.weight", "attn.to_add_out.weight"),
		), block("single_layers.#.", "single_transformer_blocks.#.",
			row("modCX.1.weight", "norm1.linear.weight"),
			row("mlp.c_fc1.weight", "ff.linear_1.weight"),
			row("mlp.c_fc2.weight", "ff.linear_2.weight"),
			row("mlp.c_proj.weight", "ff.out_projection.weight"),
			row("attn.w1q.weight", "attn.to_q.weight"),
			row("attn.w1k.weight", "attn.to_k.weight"),
			row("attn.w1v.weight", "attn.to_v.weight"),
			row("attn.w1o.weight", "attn.to_out.0.weight"),
		)),
	},
	{
		Arch: "cosmos", Classes: []string{"CosmosTransformer3DModel"},
		Marks: []string{"patch_embed.proj.weight", "time_embed.t_embedder.linear_2.weight",
			"transformer_blocks.0.norm1.linear_2.weight"},
		Rows: slices.Concat([]Row{
			row("x_embedder.proj.1.weight", "patch_embed.proj.weight"),
			row("t_embedder.1.linear_1.weight", "time_embed.t_embedder.linear_1.weight"),
			row("t_embedder.1.linear_2.weight", "time_embed.t_embedder.linear_2.weight"),
			row("t_embedding_norm.weight", "time_embed.norm.weight"),
			row("final_layer.linear.weight", "proj_out.weight"),
			row("final_layer.adaln_modulation.1.weight", "norm_out.linear_1.weight"),
			row("final_layer.adaln_modulation.2.weight", "norm_out.linear_2.weight"),
		}, block("blocks.#.", "transformer_blocks.#.",
			row("adaln_modulation_self_attn.1.weight", "norm1.linear_1.weight"),
			row("adaln_modulation_self_attn.2.weight", "norm1.linear_2.weight"),
			row("adaln_modulation_cross_attn.1.weight", "norm2.linear_1.weight"),
			row("adaln_modulation_cross_attn.2.weight", "norm2.linear_2.weight"),
			row("adaln_modulation_mlp.1.weight", "norm3.linear_1.weight"),
			row("adaln_modulation_mlp.2.weight", "norm3.linear_2.weight"),
			row("mlp.layer1.weight", "ff.net.0.proj.weight"),
			row("mlp.layer2.weight", "ff.net.2.weight"),
		), block("blocks.#.self_attn.", "transformer_blocks.#.attn1.", cosmosAttention()...),
			block("blocks.#.cross_attn.", "transformer_blocks.#.attn2.", cosmosAttention()...)),
	},
	{
		Arch: "ltxv", Classes: []string{"LTX2VideoTransformer3DModel"},
		Marks: []string{"audio_proj_in.weight", "av_cross_attn_video_a2v_gate.linear.weight"},
		Refused: "the original file has connectors (video_embeddings_connector, audio_embeddings_connector), which are " +
			"in another folder of the pipeline",
	},
	{
		Arch: "ltxv", Classes: []string{"LTXVideoTransformer3DModel"},
		Marks: []string{"proj_in.weight", "time_embed.emb.timestep_embedder.linear_2.weight",
			"caption_projection.linear_2.weight", "transformer_blocks.0.scale_shift_table"},
		Rows: slices.Concat([]Row{
			row("patchify_proj.*", "proj_in.*"),
			row("adaln_single.emb.timestep_embedder.linear_1.*", "time_embed.emb.timestep_embedder.linear_1.*"),
			row("adaln_single.emb.timestep_embedder.linear_2.*", "time_embed.emb.timestep_embedder.linear_2.*"),
			row("adaln_single.linear.*", "time_embed.linear.*"),
			row("caption_projection.linear_1.*", "caption_projection.linear_1.*"),
			row("caption_projection.linear_2.*", "caption_projection.linear_2.*"),
			row("scale_shift_table", "scale_shift_table"),
			row("proj_out.*", "proj_out.*"),
		}, block("transformer_blocks.#.", "transformer_blocks.#.",
			row("scale_shift_table", "scale_shift_table"),
			row("ff.net.0.proj.*", "ff.net.0.proj.*"),
			row("ff.net.2.*", "ff.net.2.*"),
		), block("transformer_blocks.#.attn1.", "transformer_blocks.#.attn1.", ltxAttention()...),
			block("transformer_blocks.#.attn2.", "transformer_blocks.#.attn2.", ltxAttention()...)),
	},
	{
		Arch: "hyvid", Classes: []string{"HunyuanVideoTransformer3DModel"},
		Marks: []string{"x_embedder.proj.weight", "context_embedder.token_refiner.refiner_blocks.0.attn.to_q.weight",
			"time_text_embed.text_embedder.linear_1.weight", "single_transformer_blocks.0.proj_mlp.weight"},
		Rows: slices.Concat([]Row{
			row("vector_in.in_layer.*", "time_text_embed.text_embedder.linear_1.*"),
			row("vector_in.out_layer.*", "time_text_embed.text_embedder.linear_2.*"),
			row("time_in.mlp.0.*", "time_text_embed.timestep_embedder.linear_1.*"),
			row("time_in.mlp.2.*", "time_text_embed.timestep_embedder.linear_2.*"),
		}, may("guidance",
			row("guidance_in.mlp.0.*", "time_text_embed.guidance_embedder.linear_1.*"),
			row("guidance_in.mlp.2.*", "time_text_embed.guidance_embedder.linear_2.*"),
		), hunyuan),
	},
	{
		Arch: "hyvid", Classes: []string{"HunyuanImageTransformer2DModel"},
		Marks: []string{"x_embedder.proj.weight", "context_embedder.token_refiner.refiner_blocks.0.attn.to_q.weight",
			"time_guidance_embed.timestep_embedder.linear_1.weight", "single_transformer_blocks.0.proj_mlp.weight"},
		Rows: slices.Concat([]Row{
			row("time_in.mlp.0.*", "time_guidance_embed.timestep_embedder.linear_1.*"),
			row("time_in.mlp.2.*", "time_guidance_embed.timestep_embedder.linear_2.*"),
		}, may("byt5",
			row("byt5_in.layernorm.*", "context_embedder_2.norm.*"),
			row("byt5_in.fc1.*", "context_embedder_2.linear_1.*"),
			row("byt5_in.fc2.*", "context_embedder_2.linear_2.*"),
			row("byt5_in.fc3.*", "context_embedder_2.linear_3.*"),
		), may("mean flow",
			row("time_r_in.mlp.0.*", "time_guidance_embed.timestep_embedder_r.linear_1.*"),
			row("time_r_in.mlp.2.*", "time_guidance_embed.timestep_embedder_r.linear_2.*"),
		), may("guidance",
			row("guidance_in.mlp.0.*", "time_guidance_embed.guidance_embedder.linear_1.*"),
			row("guidance_in.mlp.2.*", "time_guidance_embed.guidance_embedder.linear_2.*"),
		), hunyuan),
	},
	{
		Arch: "hyvid", Classes: []string{"HunyuanVideo15Transformer3DModel"},
		Marks:   []string{"x_embedder.proj.weight", "cond_type_embed.weight", "image_embedder.norm_in.weight"},
		Refused: "original files have its queries, keys and values apart or joined, and nothing shows which",
	},
	{
		Arch: "wan", Classes: []string{"WanAnimateTransformer3DModel"},
		Marks:   []string{"condition_embedder.time_proj.weight", "pose_patch_embedding.weight"},
		Refused: "the original names of its motion and face encoders are not in the table",
	},
	{
		Arch: "wan", Classes: []string{"WanTransformer3DModel", "WanVACETransformer3DModel"},
		Marks: []string{"patch_embedding.weight", "condition_embedder.time_proj.weight",
			"blocks.0.attn1.to_q.weight", "blocks.0.scale_shift_table"},
		Rows: slices.Concat([]Row{
			row("patch_embedding.*", "patch_embedding.*"),
			row("time_embedding.0.*", "condition_embedder.time_embedder.linear_1.*"),
			row("time_embedding.2.*", "condition_embedder.time_embedder.linear_2.*"),
			row("text_embedding.0.*", "condition_embedder.text_embedder.linear_1.*"),
			row("text_embedding.2.*", "condition_embedder.text_embedder.linear_2.*"),
			row("time_projection.1.*", "condition_embedder.time_proj.*"),
			row("head.head.*", "proj_out.*"),
			row("head.modulation", "scale_shift_table"),
		}, block("blocks.#.", "blocks.#.", wanBlock()...), may("image", slices.Concat([]Row{
			row("img_emb.proj.0.*", "condition_embedder.image_embedder.norm1.*"),
			row("img_emb.proj.1.*", "condition_embedder.image_embedder.ff.net.0.proj.*"),
			row("img_emb.proj.3.*", "condition_embedder.image_embedder.ff.net.2.*"),
			row("img_emb.proj.4.*", "condition_embedder.image_embedder.norm2.*"),
		}, block("blocks.#.cross_attn.", "blocks.#.attn2.",
			row("k_img.*", "add_k_proj.*"),
			row("v_img.*", "add_v_proj.*"),
			row("norm_k_img.weight", "norm_added_k.weight"),
		))...), may("last image",
			row("img_emb.emb_pos", "condition_embedder.image_embedder.pos_embed"),
		), may("VACE", slices.Concat([]Row{
			row("vace_patch_embedding.*", "vace_patch_embedding.*"),
			row("vace_blocks.#.after_proj.*", "vace_blocks.#.proj_out.*"),
		}, block("vace_blocks.#.", "vace_blocks.#.", wanBlock()...))...),
			may("VACE input", in(Some, row("vace_blocks.#.before_proj.*", "vace_blocks.#.proj_in.*")))),
	},
	{
		Arch: "lumina2", Classes: []string{"Lumina2Transformer2DModel"},
		Marks: []string{"x_embedder.weight", "time_caption_embed.caption_embedder.1.weight",
			"context_refiner.0.attn.to_q.weight"},
		Rows: slices.Concat([]Row{
			row("x_embedder.*", "x_embedder.*"),
			row("t_embedder.mlp.0.*", "time_caption_embed.timestep_embedder.linear_1.*"),
			row("t_embedder.mlp.2.*", "time_caption_embed.timestep_embedder.linear_2.*"),
			row("cap_embedder.0.*", "time_caption_embed.caption_embedder.0.*"),
			row("cap_embedder.1.*", "time_caption_embed.caption_embedder.1.*"),
			row("final_layer.adaLN_modulation.1.*", "norm_out.linear_1.*"),
			row("final_layer.linear.*", "norm_out.linear_2.*"),
		}, luminaBlock("layers.#."), luminaBlock("noise_refiner.#."), block("layers.#.", "layers.#.", luminaMod()...),
			block("noise_refiner.#.", "noise_refiner.#.", luminaMod()...),
			luminaBlock("context_refiner.#."), block("context_refiner.#.", "context_refiner.#.",
				row("attention_norm1.weight", "norm1.weight"))),
	},
	{
		Arch: "lumina2", Classes: []string{"ZImageTransformer2DModel"},
		Marks: []string{"all_x_embedder.2-1.weight", "cap_embedder.1.weight",
			"context_refiner.0.attention.to_q.weight"},
		Rows: slices.Concat([]Row{
			row("x_embedder.*", "all_x_embedder.2-1.*"),
			row("t_embedder.mlp.0.*", "t_embedder.mlp.0.*"),
			row("t_embedder.mlp.2.*", "t_embedder.mlp.2.*"),
			row("cap_embedder.0.*", "cap_embedder.0.*"),
			row("cap_embedder.1.*", "cap_embedder.1.*"),
			row("x_pad_token", "x_pad_token"),
			row("cap_pad_token", "cap_pad_token"),
			row("final_layer.adaLN_modulation.1.*", "all_final_layer.2-1.adaLN_modulation.1.*"),
			row("final_layer.linear.*", "all_final_layer.2-1.linear.*"),
		}, zImageBlock("layers.#."), zImageBlock("noise_refiner.#."), zImageBlock("context_refiner.#."),
			block("layers.#.", "layers.#.", row("adaLN_modulation.0.*", "adaLN_modulation.0.*")),
			block("noise_refiner.#.", "noise_refiner.#.", row("adaLN_modulation.0.*", "adaLN_modulation.0.*"))),
	},
	{
		Arch: "mochi", Classes: []string{"MochiTransformer3DModel"},
		Marks: []string{"patch_embed.proj.weight", "time_embed.caption_proj.weight", "pos_frequencies",
			"transformer_blocks.0.attn1.add_q_proj.weight"},
		Rows: slices.Concat([]Row{
			row("pos_frequencies", "pos_frequencies"),
			row("x_embedder.proj.*", "patch_embed.proj.*"),
			row("t_embedder.mlp.0.*", "time_embed.timestep_embedder.linear_1.*"),
			row("t_embedder.mlp.2.*", "time_embed.timestep_embedder.linear_2.*"),
			row("t5_y_embedder.to_kv.*", "time_embed.pooler.to_kv.*"),
			row("t5_y_embedder.to_q.*", "time_embed.pooler.to_q.*"),
			row("t5_y_embedder.to_out.*", "time_embed.pooler.to_out.*"),
			row("t5_yproj.*", "time_embed.caption_proj.*"),
			row("final_layer.linear.*", "proj_out.*"),
			swapped(row("final_layer.mod.*", "norm_out.linear.*")),
		}, block("blocks.#.", "transformer_blocks.#.",
			row("mod_x.*", "norm1.linear.*"),
			in(AllButLast, row("mod_y.*", "norm1_context.linear.*")),
			in(Last, row("mod_y.*", "norm1_context.linear_1.*")),
			row("attn.qkv_x.*", "attn1.to_q.*", "attn1.to_k.*", "attn1.to_v.*"),
			row("attn.q_norm_x.weight", "attn1.norm_q.weight"),
			row("attn.k_norm_x.weight", "attn1.norm_k.weight"),
			row("attn.proj_x.*", "attn1.to_out.0.*"),
			row("attn.qkv_y.*", "attn1.add_q_proj.*", "attn1.add_k_proj.*", "attn1.add_v_proj.*"),
			row("attn.q_norm_y.weight", "attn1.norm_added_q.weight"),
			row("attn.k_norm_y.weight", "attn1.norm_added_k.weight"),
			in(AllButLast, row("attn.proj_y.*", "attn1.to_add_out.*")),
			swapped(row("mlp_x.w1.weight", "ff.net.0.proj.weight")),
			row("mlp_x.w2.weight", "ff.net.2.weight"),
			in(AllButLast, swapped(row("mlp_y.w1.weight", "ff_context.net.0.proj.weight"))),
			in(AllButLast, row("mlp_y.w2.weight", "ff_context.net.2.weight")),
		)),
	},
}

// fluxBlocks are rows of FLUX.1 and Chroma.
var fluxBlocks = slices.Concat(fluxAttention, block("double_blocks.#.", "transformer_blocks.#.",
	row("img_mlp.0.*", "ff.net.0.proj.*"),
	row("img_mlp.2.*", "ff.net.2.*"),
	row("txt_mlp.0.*", "ff_context.net.0.proj.*"),
	row("txt_mlp.2.*", "ff_context.net.2.*"),
), block("single_blocks.#.", "single_transformer_blocks.#.",
	uneven(row("linear1.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*", "proj_mlp.*")),
	row("linear2.*", "proj_out.*"),
	row("norm.query_norm.scale", "attn.norm_q.weight"),
	row("norm.key_norm.scale", "attn.norm_k.weight"),
))

// fluxAttention are rows of all Flux.
var fluxAttention = block("double_blocks.#.", "transformer_blocks.#.",
	row("img_attn.qkv.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*"),
	row("img_attn.norm.query_norm.scale", "attn.norm_q.weight"),
	row("img_attn.norm.key_norm.scale", "attn.norm_k.weight"),
	row("img_attn.proj.*", "attn.to_out.0.*"),
	row("txt_attn.qkv.*", "attn.add_q_proj.*", "attn.add_k_proj.*", "attn.add_v_proj.*"),
	row("txt_attn.norm.query_norm.scale", "attn.norm_added_q.weight"),
	row("txt_attn.norm.key_norm.scale", "attn.norm_added_k.weight"),
	row("txt_attn.proj.*", "attn.to_add_out.*"),
)

// hunyuan are rows of HunyuanVideo and HunyuanImage.
var hunyuan = slices.Concat([]Row{
	row("img_in.proj.*", "x_embedder.proj.*"),
	row("txt_in.input_embedder.*", "context_embedder.proj_in.*"),
	row("txt_in.t_embedder.mlp.0.*", "context_embedder.time_text_embed.timestep_embedder.linear_1.*"),
	row("txt_in.t_embedder.mlp.2.*", "context_embedder.time_text_embed.timestep_embedder.linear_2.*"),
	row("txt_in.c_embedder.linear_1.*", "context_embedder.time_text_embed.text_embedder.linear_1.*"),
	row("txt_in.c_embedder.linear_2.*", "context_embedder.time_text_embed.text_embedder.linear_2.*"),
	row("final_layer.linear.*", "proj_out.*"),
	swapped(row("final_layer.adaLN_modulation.1.*", "norm_out.linear.*")),
}, block("txt_in.individual_token_refiner.blocks.#.", "context_embedder.token_refiner.refiner_blocks.#.",
	row("norm1.*", "norm1.*"),
	row("norm2.*", "norm2.*"),
	row("self_attn_qkv.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*"),
	row("self_attn_proj.*", "attn.to_out.0.*"),
	row("mlp.fc1.*", "ff.net.0.proj.*"),
	row("mlp.fc2.*", "ff.net.2.*"),
	row("adaLN_modulation.1.*", "norm_out.linear.*"),
), block("double_blocks.#.", "transformer_blocks.#.",
	row("img_mod.linear.*", "norm1.linear.*"),
	row("img_attn_qkv.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*"),
	row("img_attn_q_norm.weight", "attn.norm_q.weight"),
	row("img_attn_k_norm.weight", "attn.norm_k.weight"),
	row("img_attn_proj.*", "attn.to_out.0.*"),
	row("img_mlp.fc1.*", "ff.net.0.proj.*"),
	row("img_mlp.fc2.*", "ff.net.2.*"),
	row("txt_mod.linear.*", "norm1_context.linear.*"),
	row("txt_attn_qkv.*", "attn.add_q_proj.*", "attn.add_k_proj.*", "attn.add_v_proj.*"),
	row("txt_attn_q_norm.weight", "attn.norm_added_q.weight"),
	row("txt_attn_k_norm.weight", "attn.norm_added_k.weight"),
	row("txt_attn_proj.*", "attn.to_add_out.*"),
	row("txt_mlp.fc1.*", "ff_context.net.0.proj.*"),
	row("txt_mlp.fc2.*", "ff_context.net.2.*"),
), block("single_blocks.#.", "single_transformer_blocks.#.",
	row("modulation.linear.*", "norm.linear.*"),
	uneven(row("linear1.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*", "proj_mlp.*")),
	row("linear2.*", "proj_out.*"),
	row("q_norm.weight", "attn.norm_q.weight"),
	row("k_norm.weight", "attn.norm_k.weight"),
))

func cosmosAttention() []Row {
	return []Row{
		row("q_proj.weight", "to_q.weight"),
		row("k_proj.weight", "to_k.weight"),
		row("v_proj.weight", "to_v.weight"),
		row("output_proj.weight", "to_out.0.weight"),
		row("q_norm.weight", "norm_q.weight"),
		row("k_norm.weight", "norm_k.weight"),
	}
}

func ltxAttention() []Row {
	return []Row{
		row("to_q.*", "to_q.*"),
		row("to_k.*", "to_k.*"),
		row("to_v.*", "to_v.*"),
		row("to_out.0.*", "to_out.0.*"),
		row("q_norm.weight", "norm_q.weight"),
		row("k_norm.weight", "norm_k.weight"),
	}
}

// wanBlock returns the rows of a block of Wan.
func wanBlock() []Row {
	attention := []Row{
		row("q.*", "to_q.*"),
		row("k.*", "to_k.*"),
		row("v.*", "to_v.*"),
		row("o.*", "to_out.0.*"),
		row("norm_q.weight", "norm_q.weight"),
		row("norm_k.weight", "norm_k.weight"),
	}
	return slices.Concat([]Row{
		row("modulation", "scale_shift_table"),
		row("norm3.*", "norm2.*"),
		row("ffn.0.*", "ffn.net.0.proj.*"),
		row("ffn.2.*", "ffn.net.2.*"),
	}, block("self_attn.", "attn1.", attention...), block("cross_attn.", "attn2.", attention...))
}

// luminaBlock returns the rows that all blocks of Lumina 2 have.
func luminaBlock(names string) []Row {
	return block(names, names,
		uneven(row("attention.qkv.*", "attn.to_q.*", "attn.to_k.*", "attn.to_v.*")),
		row("attention.out.*", "attn.to_out.0.*"),
		row("attention.q_norm.weight", "attn.norm_q.weight"),
		row("attention.k_norm.weight", "attn.norm_k.weight"),
		row("attention_norm2.weight", "norm2.weight"),
		row("ffn_norm1.weight", "ffn_norm1.weight"),
		row("ffn_norm2.weight", "ffn_norm2.weight"),
		row("feed_forward.w1.*", "feed_forward.linear_1.*"),
		row("feed_forward.w2.*", "feed_forward.linear_2.*"),
		row("feed_forward.w3.*", "feed_forward.linear_3.*"),
	)
}

// luminaMod returns the rows of blocks that depend on the time step.
func luminaMod() []Row {
	return []Row{
		row("adaLN_modulation.1.*", "norm1.linear.*"),
		row("attention_norm1.weight", "norm1.norm.weight"),
	}
}

// zImageBlock returns the rows that all blocks of Z-Image have.
func zImageBlock(names string) []Row {
	return block(names, names,
		row("attention.qkv.*", "attention.to_q.*", "attention.to_k.*", "attention.to_v.*"),
		row("attention.out.*", "attention.to_out.0.*"),
		row("attention.q_norm.weight", "attention.norm_q.weight"),
		row("attention.k_norm.weight", "attention.norm_k.weight"),
		row("attention_norm1.weight", "attention_norm1.weight"),
		row("attention_norm2.weight", "attention_norm2.weight"),
		row("ffn_norm1.weight", "ffn_norm1.weight"),
		row("ffn_norm2.weight", "ffn_norm2.weight"),
		row("feed_forward.w1.*", "feed_forward.w1.*"),
		row("feed_forward.w2.*", "feed_forward.w2.*"),
		row("feed_forward.w3.*", "feed_forward.w3.*"),
	)
}

func row(name string, from ...string) Row { return Row{Name: name, From: from} }

func swapped(r Row) Row { r.Swapped = true; return r }
func uneven(r Row) Row  { r.Uneven = true; return r }

func in(b Blocks, r Row) Row { r.In = b; return r }

// may returns the rows as a group.
func may(group string, rows ...Row) []Row {
	for i := range rows {
		rows[i].Group = group
	}
	return rows
}

// block returns the rows with the beginnings of their names, of the original and of diffusers.
func block(original, diffusers string, rows ...Row) []Row {
	var list []Row
	for _, r := range rows {
		r.Name = original + r.Name
		r.From = slices.Clone(r.From)
		for i := range r.From {
			r.From[i] = diffusers + r.From[i]
		}
		list = append(list, r)
	}
	return list
}
