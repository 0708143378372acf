package parts

import (
	"fmt"
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Rows and transforms of vision and audio encoders with their projectors to the language model (mmproj). Their tables
// are like those of language models. Names of the rows are those of the checkpoint; if a table is for several classes or
// layouts, Rename unifies the names. Rows drop the tensors of the language model; a tensor without a row is an error.
// Keys and order are those of the reference's MmprojModel and of its classes.

// CLIP is general.architecture of all mmproj files.
const CLIP = "clip"

// Parts of the configuration.
var (
	InVision    table.In = (*config.View).Vision
	InAudio     table.In = (*config.View).Audio
	InProcessor table.In = (*config.View).Processor
	InRoot      table.In = func(c *config.View) config.Object { return c.Object }

	InProjector table.In = func(c *config.View) config.Object { return c.Sub("projector_config") }
)

// BlockKeys are the keys for the number of layers.
var BlockKeys = []string{"n_layers", "num_hidden_layers", "n_layer", "num_layers", "depth", "layers", "encoder_layers",
	"vt_num_hidden_layers"}

// Keys whose rows a table may replace, see VisionRows.
const (
	KeyImageSize     = "vision.image_size"
	KeyPatchSize     = "vision.patch_size"
	KeyVisionWidth   = "vision.embedding_length"
	KeyVisionFF      = "vision.feed_forward_length"
	KeyVisionBlocks  = "vision.block_count"
	KeyVisionHeads   = "vision.attention.head_count"
	KeyVisionEps     = "vision.attention.layer_norm_epsilon"
	KeyVisionMerge   = "vision.spatial_merge_size"
	KeyVisionScale   = "vision.projector.scale_factor"
	KeyProjectorType = "projector_type"
)

// firstVisionRows begin the metadata of all vision encoders.
var firstVisionRows = []table.Row{
	{Key: gguf.KeyFileType},
	{Key: "has_vision_encoder", Const: gguf.Bool(true)},
	{Key: "vision.projection_dim", Derive: TextWidth},
	{Key: KeyImageSize, Type: gguf.Uint32Type, In: InVision, From: []string{"image_size"}, Required: true},
	{Key: KeyPatchSize, Type: gguf.Uint32Type, In: InVision, From: []string{"patch_size"}, Required: true},
	{Key: KeyVisionWidth, Type: gguf.Uint32Type, In: InVision, From: []string{"hidden_size", "width", "vt_hidden_size"},
		Required: true},
	{Key: KeyVisionFF, Type: gguf.Uint32Type, In: InVision, From: []string{"intermediate_size", "vt_intermediate_size"},
		Required: true},
	{Key: KeyVisionBlocks, Type: gguf.Uint32Type, In: InVision, From: BlockKeys, Required: true},
	{Key: KeyVisionHeads, Type: gguf.Uint32Type, In: InVision,
		From: []string{"num_attention_heads", "num_heads", "heads", "vt_num_attention_heads"}, Required: true},
	{Key: "vision.image_mean", Derive: PerChannel("image_mean"), Facts: config.ProcessorFiles},
	{Key: "vision.image_std", Derive: PerChannel("image_std"), Facts: config.ProcessorFiles},
}

// VisionRows returns the rows that begin the metadata of all vision encoders, then list; a row of list replaces one with
// the same key.
func VisionRows(list ...table.Row) []table.Row { return WithRows(firstVisionRows, list) }

// WithRows returns the rows begin, then list; a row of list replaces one with the same key.
func WithRows(begin, list []table.Row) []table.Row {
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

// TextWidth writes hidden_size of the language model.
func TextWidth(c *config.View) (gguf.Value, bool, error) {
	n, ok, err := c.Text().Int("hidden_size", "n_embd")
	if err == nil && (!ok || n <= 0) {
		err = fault.Errorf(fault.Broken,
			"%s: want a positive \"hidden_size\" or \"n_embd\" of the language model", c.FileName())
	}
	return table.Uint32Of(n, true, err)
}

// PerChannel writes a list with a number per channel of an image.
func PerChannel(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) { return PerChannelOf(c.Processor(), key) }
}

// PerChannelOf returns a list with a number per channel of an image.
func PerChannelOf(o config.Object, key string) (gguf.Value, bool, error) {
	list, err := o.RequireFloats(key)
	switch {
	case err != nil:
		return gguf.Value{}, false, err
	case len(list) != 3:
		return gguf.Value{}, false, fault.Errorf(fault.Unsupported,
			"%s: key %q: %d numbers, want one for each of 3 channels", o.FileName(), key, len(list))
	}
	return FloatList(list)
}

// FloatList returns numbers as float32.
func FloatList(list []float64) (gguf.Value, bool, error) {
	narrow := make([]float32, len(list))
	for i, f := range list {
		if narrow[i] = float32(f); math.IsInf(float64(narrow[i]), 0) {
			return gguf.Value{}, false, fault.Errorf(fault.Broken, "%v does not fit float32", f)
		}
	}
	return gguf.Float32s(narrow), true, nil
}

// LayersIn returns the function for the number of layers in a part of the configuration.
func LayersIn(in table.In, keys ...string) func(*config.View) (int64, error) {
	return func(c *config.View) (int64, error) { return in(c).Require(keys...) }
}

// EncoderOf returns the Encoder for parts of the configuration.
func EncoderOf(parts ...table.In) *table.Encoder { return &table.Encoder{Parts: parts} }

// ProjectorType is the row of the projector's type.
func ProjectorType(kind string) table.Row {
	return table.Row{Key: KeyProjectorType, Const: gguf.String(kind)}
}

// AlwaysF32 is F32 for every output type.
var AlwaysF32 = table.Always(gguf.TypeF32)

// UseGELU and UseSiLU are the rows of activation functions.
var UseGELU, UseSiLU = table.Row{Key: "use_gelu", Const: gguf.Bool(true)},
	table.Row{Key: "use_silu", Const: gguf.Bool(true)}

// DropTextModel drops the language model.
var DropTextModel = DropAll("of the language model", "language_model.", "model.language_model.", "model.layers.",
	"model.embed_tokens.", "model.norm.", "lm_head.", "mtp.")

// DropAll drops tensors with one of the prefixes.
func DropAll(why string, prefixes ...string) []table.Drop {
	var list []table.Drop
	for _, p := range prefixes {
		list = append(list, table.Drop{Prefix: p, Why: why})
	}
	return list
}

// KernelType is the type of the first convolution, which runtimes support in F16 and F32.
func KernelType(out gguf.Type, _ table.Stored) gguf.Type {
	if out == gguf.TypeF16 {
		return out
	}
	return gguf.TypeF32
}

// kernelFrame returns the transform that takes one frame of a kernel over two frames, [out, in, 2, height, width] in
// the checkpoint.
func kernelFrame(i int64) *table.Transform {
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

// FramesRow splits the first convolution over two frames into a kernel for each.
func FramesRow(hf string) table.TensorRow {
	return table.TensorRow{HF: hf + ".weight", Exact: true, Type: KernelType,
		Split: []table.Part{{GGUF: "v.patch_embd.weight", Transform: kernelFrame(0)},
			{GGUF: "v.patch_embd.weight.1", Transform: kernelFrame(1)}}}
}

// ExpectAct expects the activation function of a part.
func ExpectAct(in table.In, values ...string) table.Expect {
	return table.Expect{Key: "hidden_act", In: in, Values: values}
}

// VisionEps is the row of the epsilon of norms from a key of the vision encoder; other is the default, 0 for an error.
func VisionEps(key string, other float32) table.Row {
	r := table.Row{Key: KeyVisionEps, Type: gguf.Float32Type, In: InVision, From: []string{key}}
	if r.Required = other == 0; !r.Required {
		r.Const = gguf.Float32(other)
	}
	return r
}

// Uint32Row is the row of a number in a part of the configuration; other is the default, 0 for none.
func Uint32Row(key string, in table.In, from string, other uint32) table.Row {
	r := table.Row{Key: key, Type: gguf.Uint32Type, In: in, From: []string{from}}
	if other != 0 {
		r.Const = gguf.Uint32(other)
	}
	return r
}

// RequiredUint32 is Uint32Row without a default: the key must be there.
func RequiredUint32(key string, in table.In, from string) table.Row {
	r := Uint32Row(key, in, from, 0)
	r.Required = true
	return r
}

// IntOr returns a non-negative number, n if the key is absent.
func IntOr(o config.Object, key string, n int64) (int64, error) {
	v, ok, err := o.Int(key)
	if !ok {
		v = n
	}
	if err == nil && v < 0 {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d, want a size", o.FileName(), o.Names([]string{key})[0], v)
	}
	return v, err
}

// Reciprocal writes 1/ratio, rounded down.
func Reciprocal(in table.In, key string) table.Derive {
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

// InText returns the configuration of the language model.
func InText(c *config.View) config.Object { return c.Thinker().Sub("text_config") }

// SavedNames removes the prefix "model." of tensors that the transformers library saves.
func SavedNames(prefixes ...string) []table.Rename {
	var list []table.Rename
	for _, p := range prefixes {
		list = append(list, table.Rename{Prefix: "model." + p, With: p})
	}
	return list
}

// QKVThirds are Q, K and V of a joined projection.
var QKVThirds = []table.Part{
	{GGUF: "v.blk.{bid}.attn_q", Transform: Third(0)}, {GGUF: "v.blk.{bid}.attn_k", Transform: Third(1)},
	{GGUF: "v.blk.{bid}.attn_v", Transform: Third(2)},
}

// PermuteVisionHeads permutes Q or K from RoPE over halves (NeoX) to interleaved RoPE.
var PermuteVisionHeads = &table.Transform{Name: "permute-rope-v",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Vision().Require("num_attention_heads")
		if err != nil {
			return nil, err
		}
		return rows.PermuteRope(s, heads)
	}}

// PoolSide writes the number of pooled patches per direction that leaves image_seq_length tokens; 4 is the runtimes'
// default. Sizes come from in; patch is the default patch size, 0 for an error.
func PoolSide(in table.In, patch int64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		length, err := IntOr(c.Processor(), "image_seq_length", 256)
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
		patch, err := IntOr(in(c), "patch_size", patch)
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

// ActivationFlag is the row of an activation function.
func ActivationFlag(act string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		s, _, err := c.Vision().String("hidden_act")
		return gguf.Bool(true), s == act, err
	}
}

// PerChannelOr writes a number per channel of an image, with a default.
func PerChannelOr(key string, other ...float64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		if !c.Processor().Present(key) {
			return FloatList(other)
		}
		return PerChannel(key)(c)
	}
}

// Keys of the projector types in files with a projector per modality.
const (
	KeyVisionKind = "vision.projector_type"
	KeyAudioKind  = "audio.projector_type"
)

// HasAudio is the condition that the configuration describes an audio encoder.
func HasAudio(l table.Layer) (bool, error) { return len(l.Audio().Members()) > 0, nil }

// MaxLayers returns the larger number of layers of the vision and the audio encoder.
func MaxLayers(c *config.View) (int64, error) {
	n, err := LayersIn(InVision, BlockKeys...)(c)
	if err != nil {
		return 0, err
	}
	if ok, err := HasAudio(table.Layer{View: c, Bid: -1}); err != nil || !ok {
		return n, err
	}
	m, err := LayersIn(InAudio, BlockKeys...)(c)
	return max(n, m), err
}

// LayersOfPart restricts rows to the layers of one encoder.
func LayersOfPart(in table.In, list []table.TensorRow) []table.TensorRow {
	return OnlyIf(func(l table.Layer) (bool, error) {
		n, err := LayersIn(in, BlockKeys...)(l.View)
		return l.Bid < n, err
	}, list)
}

// OnlyIf returns rows with a condition in addition to their own.
func OnlyIf(cond table.Cond, list []table.TensorRow) []table.TensorRow {
	list = slices.Clone(list)
	for i := range list {
		own := list[i].If
		list[i].If = func(l table.Layer) (bool, error) {
			ok, err := cond(l)
			if err != nil || !ok || own == nil {
				return ok, err
			}
			return own(l)
		}
	}
	return list
}

// WithKernel returns rows with a transform of the first convolution's weight.
func WithKernel(list []table.TensorRow, t *table.Transform) []table.TensorRow {
	for i := range list {
		if list[i].GGUF == "v.patch_embd" {
			list[i].Transform = t
		}
	}
	return list
}

// KernelOfPatches turns a matrix over patches, [out, height*width*3], channels innermost, into a convolution kernel;
// biases are unchanged.
var KernelOfPatches = &table.Transform{Name: "kernel-of-patches",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) == 1 {
			return s, nil
		}
		side := IntSqrt(ne[0] / 3)
		if len(ne) != 2 || ne[0] != 3*side*side {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of square patches in three channels",
				gguf.Shape(ne))
		}
		s, err := rows.Reshape(s, []int64{3, side * side, ne[1]})
		if err != nil {
			return nil, err
		}
		if s, err = rows.Transpose(s); err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{side, side, 3, ne[1]})
	}}

// IntSqrt returns the square root of n, rounded down.
func IntSqrt(n int64) int64 {
	r := int64(0)
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}

// NotReference and ReferenceOnly are the conditions of rows that files of the reference do not have, or have alone.
func NotReference(l table.Layer) (bool, error) { return !l.Options.Reference, nil }

// ReferenceOnly: see NotReference.
func ReferenceOnly(l table.Layer) (bool, error) { return l.Options.Reference, nil }
