package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(dots3Note)

// dots3Note has a vision encoder (DotsOCR's layers, with more experts in each higher layer) and an audio encoder
// (Whisper's layers with a gate, and RoPE in place of position embeddings). config.json must have the keys of all
// settings that are fixed in the runtime. Source: Dots3NoteMmprojModel of the reference.
var dots3Note = &table.Arch{
	Name:    parts.CLIP,
	Classes: []string{"Dots3NoteForCausalLM", "Dots3NoteForConditionalGeneration"},
	Encoder: parts.EncoderOf(parts.InVision, parts.InAudio, inDots3Whisper),
	BlockCount: func(c *config.View) (int64, error) {
		n, err := parts.LayersIn(parts.InVision, parts.BlockKeys...)(c)
		if err != nil {
			return 0, err
		}
		m, err := parts.LayersIn(inDots3Whisper, "encoder_layers")(c)
		return max(n, m), err
	},
	Metadata: slices.Concat(parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Const: gguf.Uint32(0)}, // 0: any size
		parts.RequiredUint32(parts.KeyVisionWidth, parts.InVision, "embed_dim"),
		table.Row{Key: "vision.image_mean", Derive: dots3Channels("image_mean"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_std", Derive: dots3Channels("image_std"), Facts: config.ProcessorFiles},
	), parts.WithRows(parts.AudioRows(inDots3Whisper)[1:], []table.Row{
		parts.RequiredUint32(parts.KeyAudioWidth, inDots3Whisper, "d_model"),
		parts.RequiredUint32("audio.feed_forward_length", inDots3Whisper, "encoder_ffn_dim"),
		parts.RequiredUint32("audio.block_count", inDots3Whisper, "encoder_layers"),
		parts.RequiredUint32("audio.attention.head_count", inDots3Whisper, "encoder_attention_heads"),
	}), []table.Row{
		{Key: parts.KeyVisionKind, Derive: func(c *config.View) (gguf.Value, bool, error) {
			return gguf.String("dots3note_v"), true, dots3RequireKeys(c)
		}},
		parts.UseSiLU, parts.VisionEps("rms_norm_eps", 0),
		parts.RequiredUint32(parts.KeyVisionMerge, parts.InVision, "spatial_merge_size"),
		{Key: "vision.image_min_pixels", Derive: dots3Pixels("min_pixels")},
		{Key: "vision.image_max_pixels", Derive: dots3Pixels("max_pixels")},
		{Key: "vision.expert_count_per_layer", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			list, err := dots3Pyramid(c)
			counts := make([]int32, len(list))
			for i, n := range list {
				counts[i] = int32(n)
			}
			return gguf.Int32s(counts), err == nil, err
		}},
		{Key: "vision.expert_used_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, err := c.Vision().RequireFloat("capacity_factor")
			if err == nil && !(f >= 0 && f <= config.MaxParts) {
				err = fault.Errorf(fault.Broken, "%s: key %q: %v, want a number of experts", c.FileName(),
					"vision_config.capacity_factor", f)
			}
			if err != nil {
				return gguf.Value{}, false, err
			}
			return gguf.Uint32(uint32(f)), true, nil
		}},
		{Key: parts.KeyAudioKind, Const: gguf.String("dots3note_a")},
		parts.RequiredUint32(parts.KeyMels, inDots3Whisper, "num_mel_bins"),
		{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-6)},
	}),
	Expect: []table.Expect{
		{Key: "adapter_type", In: parts.InVision, Values: []string{"patch_merger"}},
		{Key: "pre_pixel_shuffle", In: parts.InVision, Values: []string{"true"}},
		{Key: "router_scoring_func", In: parts.InVision, Values: []string{"sigmoid"}},
		{Key: "router_scale", In: parts.InVision, Values: []string{"1"}},
		{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"1"}},
		{Key: "use_bias", In: parts.InVision, Values: []string{"false"}},
		{Key: "use_qk_norm", In: parts.InVision, Values: []string{"true"}},
		{Key: "post_norm", In: parts.InVision, Values: []string{"true"}},
		{Key: "is_causal", In: parts.InVision, Values: []string{"false"}},
		{Key: "encoder_type", In: parts.InAudio, Values: []string{"dots"}},
		{Key: "use_conv2d_stem", In: parts.InAudio, Values: []string{"true"}},
		{Key: "use_rope", In: parts.InAudio, Values: []string{"true"}},
		{Key: "use_rms_norm", In: parts.InAudio, Values: []string{"true"}},
		{Key: "use_causal", In: parts.InAudio, Values: []string{"false"}},
		{Key: "merge_factor", In: parts.InAudio, Values: []string{"1"}},
		{Key: "chunk_seconds", In: parts.InAudio, Values: []string{"60"}},
		{Key: "sampling_rate", In: parts.InAudio, Values: []string{"16000"}},
		{Key: "partial_rotary_factor", In: inDots3Rope, Values: []string{"0.5"}},
		{Key: "rope_theta", In: inDots3Rope, Values: []string{"10000"}},
		{Key: "activation_function", In: inDots3Whisper, Values: []string{"swiglu"}},
		{Key: "scale_embedding", In: inDots3Whisper, Values: []string{"false"}},
	},
	Unused: dots3Unused,
	Drop:   slices.Concat(parts.DropAll("of the language model", "model.mtp."), parts.DropTextModel),
	Tensors: slices.Concat(parts.LayersOfPart(parts.InVision, []table.TensorRow{
		{HF: "vision_encoder.patch_embed.proj", GGUF: "v.patch_embd", Bias: table.NeedBias, Type: parts.KernelType},
		{HF: "vision_encoder.patch_embed.norm", GGUF: "v.pre_ln"},
		{HF: "vision_encoder.blocks.{bid}.norm_1", GGUF: "v.blk.{bid}.ln1"},
		{HF: "vision_encoder.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv"},
		{HF: "vision_encoder.blocks.{bid}.attn.q_norm", GGUF: "v.blk.{bid}.attn_q_norm"},
		{HF: "vision_encoder.blocks.{bid}.attn.k_norm", GGUF: "v.blk.{bid}.attn_k_norm"},
		{HF: "vision_encoder.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out"},
		{HF: "vision_encoder.blocks.{bid}.norm_2", GGUF: "v.blk.{bid}.ln2"},
		{HF: "vision_encoder.post_trunk_norm", GGUF: "mm.post_norm"},
		{HF: "vision_encoder.adapter.ln_q", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "vision_encoder.adapter.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
		{HF: "vision_encoder.adapter.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
		{HF: "vision_encoder.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_gate", If: dots3DenseVision},
		{HF: "vision_encoder.blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", If: dots3DenseVision},
		{HF: "vision_encoder.blocks.{bid}.mlp.fc3", GGUF: "v.blk.{bid}.ffn_up", If: dots3DenseVision},
		{HF: "vision_encoder.blocks.{bid}.mlp.gate_weight", GGUF: "v.blk.{bid}.ffn_gate_inp.weight", Exact: true,
			Type: parts.AlwaysF32, If: dots3Routed},
		{HF: "vision_encoder.blocks.{bid}.mlp.router_bias", GGUF: "v.blk.{bid}.exp_probs_b.weight", Exact: true,
			Type: parts.AlwaysF32, If: dots3Routed},
		{HF: "vision_encoder.blocks.{bid}.mlp.experts.{xid}.fc1", GGUF: "v.blk.{bid}.ffn_gate_exps",
			Experts: dots3Experts, If: dots3Routed},
		{HF: "vision_encoder.blocks.{bid}.mlp.experts.{xid}.fc2", GGUF: "v.blk.{bid}.ffn_down_exps",
			Experts: dots3Experts, If: dots3Routed},
		{HF: "vision_encoder.blocks.{bid}.mlp.experts.{xid}.fc3", GGUF: "v.blk.{bid}.ffn_up_exps",
			Experts: dots3Experts, If: dots3Routed},
	}), parts.OnlyIf(func(l table.Layer) (bool, error) {
		n, err := parts.LayersIn(inDots3Whisper, "encoder_layers")(l.View)
		return l.Bid < n, err
	}, []table.TensorRow{
		{HF: dots3Audio + "conv2d1", GGUF: "a.conv2d.1", Bias: table.NeedBias, Type: parts.AlwaysF32},
		{HF: dots3Audio + "conv2d2", GGUF: "a.conv2d.2", Bias: table.NeedBias, Type: parts.AlwaysF32},
		{HF: dots3Audio + "conv2d3", GGUF: "a.conv2d.3", Bias: table.NeedBias, Type: parts.AlwaysF32},
		{HF: dots3Audio + "conv_out", GGUF: "a.conv_out", Type: parts.AlwaysF32},
		{HF: dots3Audio + "layer_norm", GGUF: "a.post_ln"},
		{HF: dots3Audio + "layers.{bid}.self_attn_layer_norm", GGUF: "a.blk.{bid}.ln1"},
		{HF: dots3Audio + "layers.{bid}.self_attn.q_proj", GGUF: "a.blk.{bid}.attn_q", Bias: table.NeedBias},
		{HF: dots3Audio + "layers.{bid}.self_attn.k_proj", GGUF: "a.blk.{bid}.attn_k", Bias: table.MayBias},
		{HF: dots3Audio + "layers.{bid}.self_attn.v_proj", GGUF: "a.blk.{bid}.attn_v", Bias: table.NeedBias},
		{HF: dots3Audio + "layers.{bid}.self_attn.out_proj", GGUF: "a.blk.{bid}.attn_out", Bias: table.NeedBias},
		{HF: dots3Audio + "layers.{bid}.final_layer_norm", GGUF: "a.blk.{bid}.ln2"},
		{HF: dots3Audio + "layers.{bid}.fc1", Bias: table.NeedBias, Split: []table.Part{
			{GGUF: "a.blk.{bid}.ffn_gate", Transform: halfRows(0)},
			{GGUF: "a.blk.{bid}.ffn_up", Transform: halfRows(1)}}},
		{HF: dots3Audio + "layers.{bid}.fc2", GGUF: "a.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "audio_encoder.audio_adapter.proj.0", GGUF: "mm.a.norm_pre", Bias: table.NeedBias},
		{HF: "audio_encoder.audio_adapter.proj.1", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
		{HF: "audio_encoder.audio_adapter.proj.3", GGUF: "mm.a.mlp.3", Bias: table.NeedBias},
	})),
	Shapes: shape.Rules{Tensors: shape.Table{
		"mm.post_norm": "v_embd", "mm.input_norm": "v_embd", "mm.0": "v_merged, v_merged", "mm.2": "v_merged, v_proj",
		"v.blk.{bid}.ffn_gate_inp":  "v_embd, @vision.expert_count_per_layer",
		"v.blk.{bid}.exp_probs_b":   "@vision.expert_count_per_layer",
		"v.blk.{bid}.ffn_gate_exps": "v_embd, ?v_routed, @vision.expert_count_per_layer",
		"v.blk.{bid}.ffn_up_exps":   "v_embd, ?v_routed, @vision.expert_count_per_layer",
		"v.blk.{bid}.ffn_down_exps": "?v_routed, v_embd, @vision.expert_count_per_layer",
		"a.conv2d.1":                "3, 3, 1, ?a_sub", "a.conv2d.2": "3, 3, ?a_sub, ?a_sub",
		"a.conv2d.3":      "3, 3, ?a_sub, ?a_sub",
		"a.conv2d.1.bias": "?a_sub", "a.conv2d.2.bias": "?a_sub", "a.conv2d.3.bias": "?a_sub",
		"a.conv_out": "?a_flat, a_embd", "a.blk.{bid}.ffn_gate": "a_embd, a_ff",
		"mm.a.norm_pre": "a_embd", "mm.a.mlp.1": "a_embd, ?a_between", "mm.a.mlp.3": "?a_between, a_proj",
	}},
}

// dots3Audio begins the names of the audio encoder's tensors.
const dots3Audio = "audio_encoder.dots_encoder.speech_encoder."

// The parts of its configuration below audio_config.
var (
	inDots3Whisper table.In = func(c *config.View) config.Object { return c.Audio().Sub("whisper_config") }
	inDots3Rope    table.In = func(c *config.View) config.Object { return c.Audio().Sub("rope_parameters") }
)

// dots3Unused are settings of training and preprocessing, and settings that follow from the tensors.
var dots3Unused = func() []string {
	list := []string{"vision_config.model_type", "vision_config.hidden_size", "vision_config.num_channels",
		"vision_config.moe_intermediate_size", "vision_config.adapter_in_dim",
		"vision_config.adapter_out_dim", "vision_config.adapter_merge_size", "vision_config.enable_torch_compile",
		"vision_config.enable_fp8_moe", "vision_config.image_size",
		"audio_config.model_type", "audio_config.processor_type", "audio_config.data_type",
		"audio_config.downsample_hidden_size", "audio_config.conv_bucket_step",
		"audio_config.conv_bucket_max_elements", "audio_config.whisper_adapter_in_dim",
		"audio_config.whisper_adapter_out_dim", "audio_config.audio_comp_start",
		"audio_config.audio_comp_span", "audio_config.audio_comp_end", "audio_config.whisper_config",
		"audio_config.rope_parameters", "audio_config.whisper_config.model_type"}
	for _, key := range parts.WhisperUnused {
		list = append(list, "audio_config.whisper_config."+key)
	}
	return list
}()

// dots3RequireKeys refuses a configuration without the keys that the reference requires.
func dots3RequireKeys(c *config.View) error {
	for _, want := range []struct {
		in   table.In
		keys []string
	}{
		{parts.InVision, []string{"adapter_type", "pre_pixel_shuffle", "use_qk_norm"}},
		{parts.InAudio, []string{"use_conv2d_stem", "use_rope", "use_rms_norm", "chunk_seconds"}},
		{inDots3Rope, []string{"partial_rotary_factor", "rope_theta"}},
		{inDots3Whisper, []string{"activation_function"}},
	} {
		o := want.in(c)
		for _, key := range want.keys {
			if !o.Present(key) {
				return fault.Errorf(fault.Unsupported, "%s: key %q is missing: only one value of it is known here",
					o.FileName(), o.Names([]string{key})[0])
			}
		}
	}
	return nil
}

// dots3Processor returns the object with the preprocessing key: vision_config of
// preprocessor_config.json, else the root of that file.
func dots3Processor(c *config.View, key string) config.Object {
	if o := c.Processor().Sub("vision_config"); o.Present(key) {
		return o
	}
	return c.Processor()
}

func dots3Channels(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) { return parts.PerChannelOf(dots3Processor(c, key), key) }
}

func dots3Pixels(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := dots3Processor(c, key).Require(key)
		return table.Uint32Of(n, true, err)
	}
}

// dots3Pyramid returns the number of experts of each layer of the vision encoder, 0 for dense layers.
func dots3Pyramid(c *config.View) ([]int64, error) {
	const key = "pyramid_num_routed"
	list, _, err := c.Vision().Ints(key)
	if err != nil {
		return nil, err
	}
	n, err := parts.LayersIn(parts.InVision, parts.BlockKeys...)(c)
	if err == nil && n != int64(len(list)) {
		err = fault.Errorf(fault.Broken, "%s: key %q has %d numbers, want one for each of %d layers", c.FileName(),
			"vision_config."+key, len(list), n)
	}
	for i := range list {
		if list[i] = max(list[i], 0); list[i] > config.MaxParts {
			err = config.WrongType("vision_config."+key, "numbers of experts", list[i])
		}
	}
	return list, err
}

func dots3Experts(l table.Layer) (int64, error) {
	list, err := dots3Pyramid(l.View)
	if err != nil || l.Bid < 0 || l.Bid >= int64(len(list)) {
		return 0, err
	}
	return list[l.Bid], nil
}

// dots3DenseVision and dots3Routed are the conditions of layers without and with experts.
func dots3DenseVision(l table.Layer) (bool, error) { n, err := dots3Experts(l); return n == 0, err }

func dots3Routed(l table.Layer) (bool, error) { n, err := dots3Experts(l); return n > 0, err }

// halfRows returns the transform that takes the first (0) or second (1) half of the rows of a joined projection, weight
// or bias.
func halfRows(i int64) *table.Transform {
	name := [...]string{"first-half", "second-half"}[i]
	return &table.Transform{Name: name, Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		last := len(ne) - 1
		if last > 1 || ne[last]%2 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows for a gate and what it lets through",
				gguf.Shape(ne))
		}
		n := ne[last] / 2
		return rows.Slice(s, last, i*n, (i+1)*n)
	}}
}
