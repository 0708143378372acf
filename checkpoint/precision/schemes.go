package precision

import (
	"slices"
	"strings"

	"ggforge/rows"
	"ggforge/safetensors"
)

// scheme is a way of storing quantized weights.
type scheme struct {
	name string // as quantization_config calls it
	// parts are the stored tensors of a weight X: their names are X and the suffix. The
	// scheme holds where the first one and all that are not optional are there, in
	// their types.
	parts []part
	// as is the suffix that the weight's name has instead.
	as     string
	place  place
	float8 bool // what --fp8-as-q8 is about
	// source returns the weight's rows; nil for a scheme that is known by name only.
	// It looks at shapes and settings, and reads no more than a few numbers.
	source func(parts []*Tensor, settings Settings) (rows.Source, error)
}

// place is where a weight comes among all others. The order of a file follows it, so
// each row has what the reference does.
type place uint8

const (
	atFirst  place = iota // where its first part is
	atLast                // where its last part is
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

// schemes is the table. The first row that holds for a tensor counts, so that rows
// with more parts come before those with fewer.
var schemes = []scheme{
	{"mxfp4", []part{need("_blocks", u8), need("_scales", u8)}, "_blocks", atLast, false, mxfp4},
	{"gptq", []part{need("qweight", nil), need("qzeros", nil), need("g_idx", nil), may("scales", nil)}, "weight", afterAll, false, nil},
	{"awq", []part{need("qweight", nil), may("qzeros", nil), may("scales", nil)}, "weight", afterAll, false, nil},

	// FP8: scales of DeepSeek and its kin, of Mistral's own format, of compressed-tensors, ModelOpt and FBGEMM
	{"fp8", []part{need("qkv_proj.weight", f8), need("qkv_proj.weight_scale_inv", scales)}, "qkv_proj.weight", atFirst, true, ranked},
	{"fp8", []part{need("", f8), need("_scale_inv", scales)}, "", atFirst, true, scaled},
	{"fp8", []part{need("weight", f8), need("qscale_weight", scales)}, "weight", atFirst, true, scaled},
	{"fp8", []part{need("", f8), need("_scale", scales)}, "", atFirst, true, scaled},
	{"fp8", []part{need("weight", f8), need("scale", e8m0)}, "weight", atFirst, true, scaled},
	{"compressed-tensors", []part{need("weight", i8), need("weight_scale", scales), may("weight_zero_point", i8)}, "weight", atFirst, false, scaled},

	{"nvfp4", []part{need("weight", u8), need("weight_scale_2", nil), may("weight_scale", nil), may("input_scale", nil)}, "weight", atFirst, false, nil},
	{"bitnet", []part{need("weight", u8), need("weight_scale", nil)}, "weight", atFirst, false, nil},
	{"compressed-tensors", []part{need("weight_packed", nil), may("weight_scale", nil), may("weight_zero_point", nil), may("weight_shape", nil),
		may("weight_g_idx", nil), may("weight_global_scale", nil), may("input_global_scale", nil)}, "weight", afterAll, false, nil},
	{"bitsandbytes", []part{need("weight", u8), need("weight.absmax", nil), may("weight.quant_map", nil), may("weight.nested_absmax", nil),
		may("weight.nested_quant_map", nil), may("weight.quant_state.bitsandbytes__nf4", nil), may("weight.quant_state.bitsandbytes__fp4", nil)}, "weight", atFirst, false, nil},
	{"bitsandbytes", []part{need("weight", i8), need("SCB", nil), may("weight_format", nil)}, "weight", atFirst, false, nil},

	// known by name only
	{"eetq", []part{need("weight", i8), need("weight_scales", nil)}, "weight", atFirst, false, nil},
	{"hqq", []part{need("W_q", nil), may("scale", nil), may("zero", nil), may("meta", nil)}, "weight", atFirst, false, nil},
	{"aqlm", []part{need("codes", nil), need("codebooks", nil), may("scales", nil)}, "weight", atFirst, false, nil},
	{"quanto", []part{need("weight._data", nil), may("weight._scale", nil), may("input_scale", nil), may("output_scale", nil)}, "weight", atFirst, false, nil},
}

// leftovers are the ends of names of tensors that go with quantized weights and of
// which no weight is made: scales of activations and of the cache of keys and values,
// which files have no place for.
var leftovers = []string{".input_scale", ".output_scale", ".k_scale", ".v_scale", ".q_scale", ".prob_output_scale", ".kv_scale", ".activation_scale",
	"_activation_scale", ".qscale_act", ".input_zero_point", ".output_zero_point", ".input_scale_ub", ".input_global_scale"}

// leftover reports whether t, which is no part of a weight, is one of leftovers, or the
// scale of a weight that is not there.
func leftover(t *Tensor, byName map[string]*Tensor) bool {
	if base, ok := strings.CutSuffix(t.Name, ".weight_scale"); ok && byName[base+".weight"] == nil && byName[base+".weight_packed"] == nil {
		return true
	}
	return slices.ContainsFunc(leftovers, func(end string) bool { return strings.HasSuffix(t.Name, end) })
}
