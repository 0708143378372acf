package encoders

import (
	"fmt"
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Rows and transforms that several families share.

// The parts of the configuration.
var (
	inVision table.In = (*config.View).Vision
	inAudio  table.In = (*config.View).Audio
	inProc   table.In = (*config.View).Processor
	inRoot   table.In = func(c *config.View) config.Object { return c.Object }

	inProjector table.In = func(c *config.View) config.Object { return c.Sub("projector_config") }
)

// blockKeys are the keys for the number of layers.
var blockKeys = []string{"n_layers", "num_hidden_layers", "n_layer", "num_layers", "depth", "layers", "encoder_layers",
	"vt_num_hidden_layers"}

// The keys whose rows a table may override, see vision.
const (
	keyImageSize = "vision.image_size"
	keyPatchSize = "vision.patch_size"
	keyWidth     = "vision.embedding_length"
	keyFF        = "vision.feed_forward_length"
	keyBlocks    = "vision.block_count"
	keyHeads     = "vision.attention.head_count"
	keyNormEps   = "vision.attention.layer_norm_epsilon"
	keyMerge     = "vision.spatial_merge_size"
	keyScale     = "vision.projector.scale_factor"
	keyProjector = "projector_type"
)

// visionRows begin the metadata of all vision encoders.
var visionRows = []table.Row{
	{Key: gguf.KeyFileType},
	{Key: "has_vision_encoder", Const: gguf.Bool(true)},
	{Key: "vision.projection_dim", Derive: textWidth},
	{Key: keyImageSize, Type: gguf.Uint32Type, In: inVision, From: []string{"image_size"}, Required: true},
	{Key: keyPatchSize, Type: gguf.Uint32Type, In: inVision, From: []string{"patch_size"}, Required: true},
	{Key: keyWidth, Type: gguf.Uint32Type, In: inVision, From: []string{"hidden_size", "width", "vt_hidden_size"},
		Required: true},
	{Key: keyFF, Type: gguf.Uint32Type, In: inVision, From: []string{"intermediate_size", "vt_intermediate_size"},
		Required: true},
	{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: blockKeys, Required: true},
	{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_attention_heads", "num_heads", "heads",
		"vt_num_attention_heads"}, Required: true},
	{Key: "vision.image_mean", Derive: perChannel("image_mean"), Facts: config.ProcessorFiles},
	{Key: "vision.image_std", Derive: perChannel("image_std"), Facts: config.ProcessorFiles},
}

// vision returns visionRows, then rows; a row with the key of one of visionRows replaces it.
func vision(list ...table.Row) []table.Row { return withRows(visionRows, list) }

func withRows(begin, list []table.Row) []table.Row {
	begin = slices.Clone(begin)
	for _, r := range list {
		if i := slices.IndexFunc(begin, func(b table.Row) bool { return b.Key == r.Key }); i >= 0 {
			begin[i] = r
		} else {
			begin = append(begin, r)
		}
	}
	return begin
}

// textWidth writes hidden_size of the language model.
func textWidth(c *config.View) (gguf.Value, bool, error) {
	n, ok, err := c.Text().Int("hidden_size", "n_embd")
	if err == nil && (!ok || n <= 0) {
		err = fault.Errorf(fault.Broken,
			"%s: want a positive \"hidden_size\" or \"n_embd\" of the language model", c.FileName())
	}
	return table.Uint32Of(n, true, err)
}

// perChannel writes a list with a number per channel of an image.
func perChannel(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) { return channels(c.Processor(), key) }
}

func channels(o config.Object, key string) (gguf.Value, bool, error) {
	list, err := o.RequireFloats(key)
	switch {
	case err != nil:
		return gguf.Value{}, false, err
	case len(list) != 3:
		return gguf.Value{}, false, fault.Errorf(fault.Unsupported,
			"%s: key %q: %d numbers, want one for each of 3 channels", o.FileName(), key, len(list))
	}
	return floats(list)
}

func floats(list []float64) (gguf.Value, bool, error) {
	narrow := make([]float32, len(list))
	for i, f := range list {
		if narrow[i] = float32(f); math.IsInf(float64(narrow[i]), 0) {
			return gguf.Value{}, false, fault.Errorf(fault.Broken, "%v does not fit float32", f)
		}
	}
	return gguf.Float32s(narrow), true, nil
}

// layers returns the function for the number of layers in a part of the configuration.
func layers(in table.In, keys ...string) func(*config.View) (int64, error) {
	return func(c *config.View) (int64, error) { return in(c).Require(keys...) }
}

// encoderOf returns the Encoder for parts of the configuration.
func encoderOf(parts ...table.In) *table.Encoder { return &table.Encoder{Parts: parts} }

// projector is the row of the projector's type.
func projector(kind string) table.Row { return table.Row{Key: keyProjector, Const: gguf.String(kind)} }

var always32 = table.Always(gguf.TypeF32)

var useGELU, useSiLU = table.Row{Key: "use_gelu", Const: gguf.Bool(true)},
	table.Row{Key: "use_silu", Const: gguf.Bool(true)}

// dropTextModel drops the language model.
var dropTextModel = dropAll("of the language model", "language_model.", "model.language_model.", "model.layers.",
	"model.embed_tokens.", "model.norm.", "lm_head.", "mtp.")

// dropAll drops tensors with one of the prefixes.
func dropAll(why string, prefixes ...string) []table.Drop {
	var list []table.Drop
	for _, p := range prefixes {
		list = append(list, table.Drop{Prefix: p, Why: why})
	}
	return list
}

// kernelType is the type of the first convolution, which runtimes support in F16 and F32.
func kernelType(out gguf.Type, _ table.Stored) gguf.Type {
	if out == gguf.TypeF16 {
		return out
	}
	return gguf.TypeF32
}

// frame returns the transform that takes one frame of a kernel over two frames, [out, in, 2, height, width] in the
// checkpoint.
func frame(i int64) *table.Transform {
	return &table.Transform{Name: fmt.Sprintf("frame-%d", i),
		Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
			ne := s.NE()
			if len(ne) != 5 || ne[2] != 2 {
				return nil, fault.Errorf(fault.Broken, "dimensions %s, want five, the middle one 2", gguf.Shape(ne))
			}
			s, err := rows.Slice(s, 2, i, i+1)
			if err != nil {
				return nil, err
			}
			return rows.Reshape(s, []int64{ne[0], ne[1], ne[3], ne[4]})
		}}
}

// framesRow splits the first convolution over two frames into a kernel for each.
func framesRow(hf string) table.TensorRow {
	return table.TensorRow{HF: hf + ".weight", Exact: true, Type: kernelType,
		Split: []table.Part{{GGUF: "v.patch_embd.weight", Transform: frame(0)},
			{GGUF: "v.patch_embd.weight.1", Transform: frame(1)}}}
}

// actOf expects the activation function of a part.
func actOf(in table.In, values ...string) table.Expect {
	return table.Expect{Key: "hidden_act", In: in, Values: values}
}

// epsOf is the row of the epsilon of norms from a key of the vision encoder; other is the default, 0 for an error.
func epsOf(key string, other float32) table.Row {
	r := table.Row{Key: keyNormEps, Type: gguf.Float32Type, In: inVision, From: []string{key}}
	if r.Required = other == 0; !r.Required {
		r.Const = gguf.Float32(other)
	}
	return r
}

// uint32Row is the row of a number in a part of the configuration; other is the default, 0 for none.
func uint32Row(key string, in table.In, from string, other uint32) table.Row {
	r := table.Row{Key: key, Type: gguf.Uint32Type, In: in, From: []string{from}}
	if other != 0 {
		r.Const = gguf.Uint32(other)
	}
	return r
}

// required returns the row as a required one.
func required(r table.Row) table.Row {
	r.Required = true
	return r
}

// intOr returns a non-negative number, n if the key is absent.
func intOr(o config.Object, key string, n int64) (int64, error) {
	v, ok, err := o.Int(key)
	if !ok {
		v = n
	}
	if err == nil && v < 0 {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d, want a size", o.FileName(), o.Names([]string{key})[0], v)
	}
	return v, err
}

// reciprocal writes 1/ratio, rounded down.
func reciprocal(in table.In, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		o := c.Object
		if in != nil {
			o = in(c)
		}
		f, err := o.RequireFloat(key)
		if err == nil && !(f > 1e-6 && f <= 1) {
			err = fault.Errorf(fault.Broken, "%s: key %q: %v, want a ratio up to 1", o.FileName(),
				o.Names([]string{key})[0], f)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		return table.Uint32Of(int64(1/f), true, nil)
	}
}

// inText returns the configuration of the language model.
func inText(c *config.View) config.Object { return c.Thinker().Sub("text_config") }

// saved removes the prefix "model." of tensors that the transformers library saves.
func saved(prefixes ...string) []table.Rename {
	var list []table.Rename
	for _, p := range prefixes {
		list = append(list, table.Rename{Prefix: "model." + p, With: p})
	}
	return list
}

// qkvThirds are Q, K and V of a joined projection.
var qkvThirds = []table.Part{
	{GGUF: "v.blk.{bid}.attn_q", Transform: parts.Third(0)}, {GGUF: "v.blk.{bid}.attn_k", Transform: parts.Third(1)},
	{GGUF: "v.blk.{bid}.attn_v", Transform: parts.Third(2)},
}

// permuteHeads permutes Q or K from RoPE over halves (NeoX) to interleaved RoPE.
var permuteHeads = &table.Transform{Name: "permute-rope-v",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Vision().Require("num_attention_heads")
		if err != nil {
			return nil, err
		}
		return rows.PermuteRope(s, heads)
	}}

// poolSide writes the number of pooled patches per direction that leaves image_seq_length tokens; 4 is the runtimes'
// default. Sizes come from in; patch is the default patch size, 0 for an error.
func poolSide(in table.In, patch int64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		length, err := intOr(c.Processor(), "image_seq_length", 256)
		if err == nil && (length < 1 || length > math.MaxInt32) {
			err = fault.Errorf(fault.Broken, "%s: key \"image_seq_length\": %d", c.Processor().FileName(), length)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		size, err := in(c).Require("image_size")
		if err != nil {
			return gguf.Value{}, false, err
		}
		patch, err := intOr(in(c), "patch_size", patch)
		if err == nil && patch < 1 {
			err = fault.Errorf(fault.Broken, "%s: patches of %d pixels", c.FileName(), patch)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		n := size / patch / int64(math.Sqrt(float64(length)))
		return table.Uint32Of(n, n > 0 && n != 4, nil)
	}
}
