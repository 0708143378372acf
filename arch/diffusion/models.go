package diffusion

// models in the order of detection: first the reference's, in its order, then others.
var models = []Model{
	{
		Name: "flux", Reference: true,
		Sets: [][]string{
			{"single_transformer_blocks.0.attn.norm_k.weight"},
			{"double_blocks.0.img_attn.proj.weight"},
		},
		Banned: []string{"single_transformer_blocks.0.attn.norm_k.weight"},
		Keep: Names{"txt_in.", "img_in.", "time_in.", "vector_in.", "guidance_in.", "final_layer.",
			"single_stream_modulation.", "double_stream_modulation_"},
		Taken: []string{"FLUX.1 dev, schnell, Kontext, Fill, Depth, Canny", "FLUX.2 dev, klein", "Chroma", "Chroma Radiance",
			"LongCat-Image"},
	},
	{
		Name: "sd3", Reference: true,
		Sets: [][]string{
			{"transformer_blocks.0.ff_context.net.0.proj.weight"},
			{"joint_blocks.0.x_block.attn.qkv.weight"},
		},
		Banned: []string{"transformer_blocks.0.ff_context.net.0.proj.weight"},
		Keep: Names{"final_layer.", "time_text_embed.", "context_embedder.", "t_embedder.", "y_embedder.", "x_embedder.",
			"=proj_out.weight", "=pos_embed"},
		Dims:  []Dims{{Names{"=pos_embed"}, 3}},
		Taken: []string{"Stable Diffusion 3", "Stable Diffusion 3.5 medium, large"},
	},
	{
		Name: "aura", Reference: true,
		Sets: [][]string{
			{"double_layers.3.modX.1.weight"},
			{"joint_transformer_blocks.3.ff_context.out_projection.weight"},
		},
		Banned: []string{"joint_transformer_blocks.3.ff_context.out_projection.weight"},
		Keep: Names{"t_embedder.", "init_x_linear.", "=modF.1.weight", "=cond_seq_linear.weight", "=final_linear.weight",
			"=positional_encoding", "=register_tokens"},
		Dims:  []Dims{{Names{"=positional_encoding", "=register_tokens"}, 3}},
		Taken: []string{"AuraFlow"},
	},
	{
		Name: "hidream", Reference: true,
		Sets: [][]string{
			{"caption_projection.0.linear.weight", "double_stream_blocks.0.block.ff_i.shared_experts.w3.weight"},
		},
		F32: Names{".ff_i.gate.weight", "img_emb.emb_pos"},
		Keep: Names{"p_embedder.", "t_embedder.", "x_embedder.", "final_layer.", ".ff_i.gate.weight",
			"caption_projection."},
		Taken: []string{"HiDream-I1", "HiDream-E1"},
	},
	{
		Name: "cosmos", Reference: true,
		Sets:    [][]string{{"blocks.0.mlp.layer1.weight", "blocks.0.adaln_modulation_cross_attn.1.weight"}},
		F32:     Names{"pos_embedder"},
		Ignored: Names{"_extra_state", "accum_"},
		Keep: Names{"p_embedder.", "t_embedder.", "t_embedding_norm.", "x_embedder.", "pos_embedder.",
			"final_layer."},
		Taken: []string{"Cosmos-Predict2", "Anima"},
	},
	{
		Name: "qwen_image", Reference: true,
		Sets: [][]string{
			{"time_text_embed.timestep_embedder.linear_2.weight", "transformer_blocks.0.attn.norm_added_q.weight",
				"transformer_blocks.0.img_mlp.net.0.proj.weight"},
		},
		Keep:  Names{"img_in.", "txt_in.", "time_text_embed.", "proj_out.", "norm_out."},
		More:  [][]string{{"blocks.0.attn.qknorm.qnorm.scale", "blocks.0.mod.lin", "txtfusion.projector.weight"}},
		F32:   Names{"mod.lin", "modulation.lin"},
		Edges: Names{"transformer_blocks.0.", "transformer_blocks.59."},
		Taken: []string{"Qwen-Image", "Qwen-Image-Edit", "Qwen-Image-Layered", "Krea 2"},
	},
	{
		Name: "ltxv", Reference: true,
		Sets: [][]string{
			{"adaln_single.emb.timestep_embedder.linear_2.weight", "transformer_blocks.27.scale_shift_table",
				"caption_projection.linear_2.weight"},
		},
		More: [][]string{
			{"adaln_single.emb.timestep_embedder.linear_2.weight", "transformer_blocks.47.scale_shift_table",
				"patchify_proj.weight"},
		},
		Config: true,
		F32:    Names{"scale_shift_table"},
		Keep:   Names{"adaln_single.", "caption_projection.", "patchify_proj.", "proj_out.", "scale_shift_table"},
		Taken:  []string{"LTX-Video", "LTX-2", "LTX-2.3"},
	},
	{
		Name: "hyvid", Reference: true, FiveDims: true,
		Sets: [][]string{
			{"double_blocks.0.img_attn_proj.weight", "txt_in.individual_token_refiner.blocks.1.self_attn_qkv.weight"},
		},
		Keep:  Names{"txt_in.", "img_in.", "time_in.", "vector_in.", "guidance_in.", "final_layer."},
		Taken: []string{"HunyuanVideo", "HunyuanVideo 1.5", "HunyuanImage 2.1", "SkyReels"},
	},
	{
		Name: "wan", Reference: true, FiveDims: true,
		Sets: [][]string{{"blocks.0.self_attn.norm_q.weight", "text_embedding.2.weight", "head.modulation"}},
		F32: Names{".modulation", ".encoder.padding_tokens", "trainable_cond_mask", "casual_audio_encoder.weights",
			"casual_audio_encoder.encoder.conv"},
		Keep: Names{"modulation.", "patch_embedding.", "text_embedding.", "time_projection.", "time_embedding.", "img_emb.",
			"head.", "cond_encoder.", "frame_packer.", "audio_injector.", "casual_audio_encoder.", "trainable_cond_mask."},
		Dims: []Dims{
			{Names{"=casual_audio_encoder.weights", "=casual_audio_encoder.encoder.padding_tokens"}, 4},
			{Names{".modulation", "=img_emb.emb_pos"}, 3},
		},
		Taken: []string{"Wan 2.1 and 2.2: T2V, I2V, FLF2V, VACE, TI2V-5B, Camera, Fun-Control, S2V, Animate"},
	},
	{
		Name: "sdxl", Reference: true, Reshape: true,
		Sets: [][]string{
			{"down_blocks.0.downsamplers.0.conv.weight", "add_embedding.linear_1.weight"},
			{"input_blocks.3.0.op.weight", "input_blocks.6.0.op.weight", "output_blocks.2.2.conv.weight",
				"output_blocks.5.2.conv.weight"},
			{"label_emb.0.0.weight"},
		},
		Keep:  unetKeep,
		Taken: []string{"Stable Diffusion XL", "SDXL refiner"},
	},
	{
		Name: "sd1", Reference: true, Reshape: true,
		Sets: [][]string{
			{"down_blocks.0.downsamplers.0.conv.weight"},
			{"input_blocks.3.0.op.weight", "input_blocks.6.0.op.weight", "input_blocks.9.0.op.weight",
				"output_blocks.2.1.conv.weight", "output_blocks.5.2.conv.weight", "output_blocks.8.2.conv.weight"},
		},
		Keep:  unetKeep,
		Taken: []string{"Stable Diffusion 1", "Stable Diffusion 2"},
	},
	{
		Name: "lumina2", Reference: true,
		Sets: [][]string{{"cap_embedder.1.weight", "context_refiner.0.attention.qkv.weight"}},
		F32:  Names{"x_pad_token", "cap_pad_token"},
		Keep: Names{"t_embedder.", "x_embedder.", "final_layer.", "cap_embedder.", "context_refiner.", "noise_refiner.",
			"x_pad_token.", "cap_pad_token."},
		Dims:  []Dims{{Names{"=x_pad_token", "=cap_pad_token"}, 2}},
		Taken: []string{"Lumina-Image 2", "Z-Image in ComfyUI's single file"},
	},

	// Taken by the loaders of calcuis/gguf and, but for mochi, of ChrisColeTech/ComfyUI-GGUF-Loader.
	{
		Name: "ideogram4",
		More: [][]string{
			{"embed_image_indicator.weight", "input_proj.weight", "layers.0.attention.qkv.weight"},
			{"embed_image_indicator.weight", "input_proj.weight", "layers.0.adaln_modulation.weight"},
			{"embed_image_indicator.weight", "adaln_proj.weight", "final_layer.adaln_modulation.weight"},
		},
		F32:   Names{"adaln_modulation", "adaln_proj"},
		Keep:  Names{"adaln_modulation.", "adaln_proj.", "embed_image_indicator.", "input_proj.", "final_layer."},
		Taken: []string{"Ideogram 4"},
	},
	{
		Name: "minimax_h3",
		More: [][]string{
			{"adaln_t_table", "blocks.0.adaln_proj.linear.weight", "audio_patch_proj.weight", "video_patch_proj.weight"},
		},
		F32:   Names{"adaln_t_table", "scale_shift_table"},
		Keep:  Names{"adaln_t_table", "adaln_proj.", "_patch_proj.", "final_layer."},
		Taken: []string{"MiniMax-H3"},
	},
	{
		Name:  "mochi",
		More:  [][]string{{"t5_yproj.weight", "blocks.0.attn.qkv_x.weight"}},
		F32:   Names{"pos_frequencies"},
		Keep:  Names{"t5_yproj.", "t5_y_embedder.", "t_embedder.", "x_embedder.", "pos_frequencies", "final_layer."},
		Taken: []string{"Mochi 1"},
	},
}

// unetKeep are the tensors of sd1 and sdxl that keep their type.
var unetKeep = Names{"class_embedding.", "time_embedding.", "add_embedding.", "time_embed.", "label_emb.", "conv_in.",
	"conv_out.", "=input_blocks.0.0.weight", "=out.2.weight"}
