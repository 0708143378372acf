package precision

import (
	"slices"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/rows"
)

// scheme is a way of storing quantized weights.
type scheme struct {
	name string // as quantization_config calls it
	// parts are the stored tensors of a weight X, named X plus suffix. The scheme matches if the first and all other
	// required parts exist with their types.
	parts []part
	// as is the suffix of the weight's name, in place of the first part's.
	as     string
	place  place
	float8 bool // affected by --fp8-as-q8
	// inverse: the factors of nvfp4 are stored as their inverses.
	inverse bool
	// holds decides whether the scheme matches if names and types are not sufficient; nil otherwise.
	holds func(parts []*Tensor, settings Settings) bool
	// why is the reason why a scheme is not decoded; "" for not yet.
	why string
	// source returns the weight's rows; nil for a scheme without a decoder. It checks shapes and settings, and reads at
	// most a few numbers.
	source func(parts []*Tensor, settings Settings) (rows.Source, error)
}

// kernelOrder is the reason for layouts such as gemv_fast and Marlin.
const kernelOrder = "codes are in the order of one GPU kernel's registers; the tool that made them has a portable layout, too"

// place is the position of a weight among all others, which determines the order of the file; each row follows the
// reference.
type place uint8

const (
	atFirst  place = iota // at its first part
	atLast                // at its last part
	afterAll              // after all others, by its first part
)

type part struct {
	suffix   string
	types    []safetensors.DType // nil for any
	optional bool
}

func (p part) takes(t *Tensor) bool {
	return p.types == nil || slices.Contains(p.types, t.DType)
}

// need and may return parts.
func need(suffix string, types []safetensors.DType) part { return part{suffix, types, false} }
func may(suffix string, types []safetensors.DType) part  { return part{suffix, types, true} }

// schemes is the table. The first matching row applies, so rows with more parts come before rows with fewer.
var schemes = []scheme{
	{name: "mxfp4", parts: []part{need("_blocks", u8), need("_scales", u8)}, as: "_blocks", place: atLast,
		source: mxfp4},
	{name: "awq", parts: []part{need("qweight", i32), need("qzeros", i32), need("scales", floats)}, as: "weight",
		place: afterAll, holds: isAWQ, source: awq},
	{name: "awq", parts: []part{need("qweight", i32), need("qzeros", i32), need("scales", floats)}, as: "weight",
		place: afterAll, holds: isGEMV, source: gemv},
	{name: "gptq", parts: []part{need("qweight", i32), need("qzeros", i32), need("scales", floats), may("g_idx", i32)},
		as: "weight", place: afterAll, source: gptq},
	{name: "compressed-tensors", parts: []part{need("weight_packed", i32), need("weight_scale", floats),
		need("weight_shape", integers), may("weight_zero_point", i32),
		may("weight_g_idx", i32)}, as: "weight", place: afterAll, source: packedInts},

	// ComfyUI's: a text next to a weight names its format
	{name: "comfy_quant", parts: []part{comfyCodes: need("weight", nil), comfyText: need("comfy_quant", u8),
		comfyScale: may("weight_scale", nil), comfyScale2: may("weight_scale_2", nil),
		comfyPreScale: may("pre_quant_scale", nil), comfyInput: may("input_scale", nil)}, as: "weight", float8: true,
		source: comfy},
	{name: "fp8", parts: []part{need("weight", f8), need("scale_weight", scales), may("scale_input", floats)},
		as: "weight", float8: true, source: weightScaled},

	// FP8: as in DeepSeek's models, Mistral's own format, compressed-tensors, ModelOpt and FBGEMM
	{name: "fp8", parts: []part{need("qkv_proj.weight", f8), need("qkv_proj.weight_scale_inv", scales)},
		as: "qkv_proj.weight", float8: true, source: ranked},
	{name: "fp8", parts: []part{need("", f8), need("_scale_inv", scales)}, as: "", float8: true, source: scaled},
	{name: "fp8", parts: []part{need("weight", f8), need("qscale_weight", scales)}, as: "weight", float8: true,
		source: scaled},
	{name: "fp8", parts: []part{need("", f8), need("_scale", scales)}, as: "", float8: true, source: scaled},
	{name: "fp8", parts: []part{need("weight", f8), need("scale", e8m0)}, as: "weight", float8: true, source: scaled},
	{name: "compressed-tensors", parts: []part{need("weight", i8), need("weight_scale", scales),
		may("weight_zero_point", i8)}, as: "weight", source: scaled},

	// MXFP4: as in MiMo, DeepSeek V4 and compressed-tensors
	{name: "mxfp4", parts: []part{need("weight", u8), need("weight_scale", exponents)}, as: "weight",
		source: nibblesMXFP4},
	{name: "mxfp4", parts: []part{need("weight", i8), need("scale", exponents)}, as: "weight", source: nibblesMXFP4},
	{name: "mxfp4", parts: []part{need("weight_packed", u8), need("weight_scale", exponents)}, as: "weight",
		source: nibblesMXFP4},

	// NVFP4: as in ModelOpt and compressed-tensors; see nvfp4Parts
	{name: "nvfp4", parts: []part{need("weight", u8), need("weight_scale", e4m3), may("weight_scale_2", floats),
		may("input_scale", floats)}, as: "weight", source: nvfp4},
	{name: "nvfp4", parts: []part{need("weight_packed", u8), need("weight_scale", e4m3),
		may("weight_global_scale", floats), may("input_global_scale", floats)}, as: "weight", inverse: true,
		source: nvfp4},

	{name: "bitnet", parts: []part{need("weight", u8), need("weight_scale", floats)}, as: "weight", source: ternary},
	{name: "bitsandbytes", parts: []part{bnbCodes: need("weight", slices.Concat(u8, floats)),
		bnbLargest: need("weight.absmax", slices.Concat(floats, u8)), bnbValues: need("weight.quant_map", floats),
		bnbStateNF4:      may("weight.quant_state.bitsandbytes__nf4", u8),
		bnbStateFP4:      may("weight.quant_state.bitsandbytes__fp4", u8),
		bnbNestedLargest: may("weight.nested_absmax", floats), bnbNestedValues: may("weight.nested_quant_map", floats)},
		as: "weight", source: fourBits},
	{name: "bitsandbytes", parts: []part{need("weight", i8), need("SCB", floats),
		may("weight_format", slices.Concat(u8, i8, integers))}, as: "weight", source: int8Rows},
	{name: "hqq", parts: hqqParts, as: "weight", source: hqq},

	// schemes without a decoder
	{name: "eetq", parts: []part{need("weight", i8), need("weight_scales", nil)}, as: "weight"},
	{name: "awq", why: kernelOrder, parts: []part{need("qweight", i16), need("scales", nil), need("scaled_zeros", nil)},
		as: "weight"},
	{name: "gptq", parts: []part{need("qweight", nil), may("qzeros", nil), may("scales", nil), may("g_idx", nil)},
		as: "weight"},
	{name: "compressed-tensors", parts: []part{need("weight_packed", nil), may("weight_scale", nil),
		may("weight_zero_point", nil), may("weight_shape", nil), may("weight_g_idx", nil)}, as: "weight"},
	{name: "hqq", why: "they lack numbers that describe them, such as nbits, or their scales are quantized themselves",
		parts: []part{need("W_q", nil), may("scale", nil), may("zero", nil), may("meta", nil)}, as: "weight"},
	{name: "marlin", why: kernelOrder, parts: []part{need("B", i32), need("s", floats), may("workspace", nil)},
		as: "weight"},
	{name: "compressed-tensors", why: "the matrices are sparse",
		parts: []part{need("compressed", nil), need("bitmask", nil), may("shape", nil), may("row_offsets", nil),
			may("weight_scale", nil)}, as: "weight"},
	{name: "aqlm", parts: []part{need("codes", nil), need("codebooks", nil), may("scales", nil)}, as: "weight"},
	{name: "quanto", parts: []part{need("weight._data", nil), may("weight._scale", nil), may("input_scale", nil),
		may("output_scale", nil)}, as: "weight"},
}

// leftovers are name suffixes of tensors next to quantized weights that files cannot hold: scales of activations and of
// the KV cache.
var leftovers = []string{".input_scale", ".output_scale", ".k_scale", ".v_scale", ".q_scale", ".prob_output_scale",
	".kv_scale", ".activation_scale",
	"_activation_scale", ".qscale_act", ".input_zero_point", ".output_zero_point", ".input_scale_ub",
	".input_global_scale", ".scale_input", "scaled_fp8", ".comfy_quant"}

// leftover reports whether t, which is no part of a weight, matches leftovers or is the scale of a missing weight.
func leftover(t *Tensor, byName map[string]*Tensor) bool {
	if base, ok := strings.CutSuffix(t.Name, ".weight_scale"); ok && byName[base+".weight"] == nil &&
		byName[base+".weight_packed"] == nil {
		return true
	}
	return slices.ContainsFunc(leftovers, func(end string) bool { return strings.HasSuffix(t.Name, end) })
}
