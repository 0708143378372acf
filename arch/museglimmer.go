package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(museGlimmer, museAssistant)

// museGlimmer is the language model of Meta's Muse Glimmer: gates on the output of attention, sliding windows in most
// layers, no RoPE in the others (NoPE). Source: the MuseGlimmer class of the reference's converter.
var museGlimmer = &table.Arch{
	Name:      "muse-glimmer",
	Classes:   []string{"MuseGlimmerForConditionalGeneration"},
	Tokenizer: tokenizer.BPE{Then: tokenizer.Steps{tokenizer.Token{Text: "<|eot|>", Kinds: []string{"eot"}}}},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.FloatRow("final_logit_softcapping", "final_logit_softcapping"),
		parts.FloatRow("logit_scale", "output_multiplier"),
		parts.UintRow("attention.sliding_window", "sliding_window"),
		{Key: "attention.sliding_window_pattern", Derive: museWindows},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("hidden_activation", parts.SiLU.Values...),
		parts.Expect("post_norm_eps", "1e-8"), parts.DefaultRopeType, parts.UnitRopeFactor},
	Unused: []string{"layer_types", "image_token_id", "video_token_id", "out_hidden_size", "projector_hidden_size",
		"projector_hidden_act"},
	Tensors: slices.Concat(parts.EmbedRows, parts.TransformBySuffix(parts.SandwichNorms, "norm", parts.PlusOne),
		[]table.TensorRow{
			// the model scales queries and keys by one number, which becomes the weights of a norm
			{HF: "model.layers.{bid}.self_attn.q_proj", Split: []table.Part{
				{GGUF: "blk.{bid}.attn_q_norm", Transform: museScale},
				{GGUF: "blk.{bid}.attn_k_norm", Transform: museOnes},
				{GGUF: "blk.{bid}.attn_q", Transform: parts.PermuteQ},
			}},
			{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Transform: parts.PermuteK},
			{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "model.layers.{bid}.self_attn.gate_proj", GGUF: "blk.{bid}.attn_gate"},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		}, parts.MLPRows),
	Graph: &graph.Model{
		Embed: graph.Embedding{Norm: graph.Bare},
		Norm:  graph.RMS, Final: parts.OutputNorm,
		Head: graph.LM{Scale: "@logit_scale", SoftCap: parts.LogitSoftCap},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: parts.LocalGlobal(graph.Sliding{N: 4},
				graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.LocalInterleaved},
					After: []graph.OutStep{graph.OutGate{}}, Window: parts.Window},
				graph.Attention{Steps: []graph.HeadStep{parts.QKNorm}, After: []graph.OutStep{graph.OutGate{}}},
			), Post: graph.Norm{Name: "post_attention_norm", Eps: musePostEps}},
			graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: parts.SwiGLU,
				Post: graph.Norm{Name: "post_ffw_norm", Eps: musePostEps}},
		},
	},
}

// musePostEps is the epsilon of norms after a part.
const musePostEps graph.Num = "0.00000001"

// museScale and museOnes make the norms of queries and of keys.
var (
	museScale = &table.Transform{Name: "query-scale", Forward: func(l table.Layer, _ rows.Source) (rows.Source, error) {
		f, err := l.RequireFloat("qk_scale_factor")
		if err != nil {
			return nil, err
		}
		return museNorm(l, float32(f))
	}}
	museOnes = &table.Transform{Name: "ones", Forward: func(l table.Layer, _ rows.Source) (rows.Source,
		error) {
		return museNorm(l, 1)
	}}
)

func museNorm(l table.Layer, weight float32) (rows.Source, error) {
	dim, err := l.Require("head_dim")
	if err == nil && (dim < 1 || dim > config.MaxHeadDim) {
		err = config.WrongType("head_dim", "a size of heads", dim)
	}
	if err != nil {
		return nil, err
	}
	return rows.Float32s(slices.Repeat([]float32{weight}, int(dim))), nil
}

// museWindows writes which layers have a sliding window. Runtimes apply RoPE in these layers only.
func museWindows(c *config.View) (v gguf.Value, ok bool, err error) {
	windows, ok, err := parts.LayersOf(c, parts.Sliding)
	if err == nil && !ok {
		_, err = c.LayerType(0) // an error that names the key
	}
	if err != nil {
		return v, false, err
	}
	const key = "layer_rope_theta"
	bases, ok, err := c.Floats(key)
	if err != nil {
		return v, false, err
	}
	theta, _, err := c.Rope().Float("rope_theta")
	if err == nil && ok && len(bases) != len(windows) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in %s", c.FileName(), len(windows), len(bases), key)
	}
	if err != nil {
		return v, false, err
	}
	for i, base := range bases {
		want := 0.0
		if windows[i] {
			want = theta
		}
		if base != want {
			return v, false, fault.Errorf(fault.Unsupported,
				"%s: key %q: base %v in layer %d, want %v: rope_theta in layers with a window, 0 in the others",
				c.FileName(), key, base, i, want)
		}
	}
	return gguf.Bools(windows), len(windows) > 0, nil
}

// museAssistant is the draft model of a Muse Glimmer; it drafts blocks of tokens. Source: the MuseGlimmerAssistant
// class of the reference's converter.
var museAssistant = &table.Arch{
	Name:    "dflash",
	Classes: []string{"MuseGlimmerAssistantModel"},
	Special: []table.Special{table.Draft{MaskToken: func(c *config.View) (int64, bool, error) {
		return c.Int("mask_token_id")
	}}},
	Tokenizer: tokenizer.Target{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("block_size", "block_size"),
		{Key: "target_layers", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			layers, ok, err := c.Ints("target_layer_ids")
			if err == nil && !ok {
				_, err = c.Require("target_layer_ids") // an error that names the key
			}
			for i := range layers {
				layers[i]++ // the output of layer i is the input of layer i+1
			}
			return parts.PerLayer(layers, err)
		}},
		{Key: "attention.sliding_window", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if _, ok, err = parts.LayersOf(c, parts.Sliding); err != nil || !ok {
				return v, false, err
			}
			n, _, err := c.Int("sliding_window")
			return table.Uint32Of(n, n != 0, err)
		}},
		{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			if n, _, err := c.Int("sliding_window"); err != nil || n == 0 {
				return v, false, err
			}
			sliding, _, err := parts.LayersOf(c, parts.Sliding)
			return gguf.Bools(sliding), len(sliding) > 0, err
		}},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("hidden_activation", parts.SiLU.Values...), parts.DefaultRopeType,
		parts.UnitRopeFactor},
	Unused: slices.Concat(parts.BiasKeys, []string{"layer_types", "sliding_window", "num_target_layers"}),
	Shapes: parts.DFlashShapes,
	Rename: []table.Rename{{Prefix: "layers.", With: "model.layers."}},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "norm", GGUF: "output_norm"},
		{HF: "encoder.fc", GGUF: "fc"},
		{HF: "encoder.output_norm_enc", GGUF: "enc.output_norm"},
	}, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows, parts.MLPRows),
}
