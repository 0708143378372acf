package table

import (
	"slices"
	"strings"

	"ggforge/gguf"
)

// TypeOf returns the type of a tensor of the file from the output type and the stored type. Vectors and norms are F32
// in any case, and rows that are not whole blocks fall back to F16. An integer type needs an integer tensor, whose
// values have to fit.
type TypeOf func(out gguf.Type, from Stored) gguf.Type

// Stored describes how a checkpoint stores a weight; of joined weights, the last one.
type Stored struct {
	Type   gguf.Type // of an unquantized weight
	Scheme string    // "" for unquantized weights, see precision.Weight
	NVFP4  bool      // the model has NVFP4 weights, even if this one is not
}

// Always returns a TypeOf of one type, whatever the output's.
func Always(t gguf.Type) TypeOf { return func(gguf.Type, Stored) gguf.Type { return t } }

// OutputType is the output's type, even for tensors that KeepF32 keeps.
func OutputType(out gguf.Type, _ Stored) gguf.Type { return out }

// KeepF32 reports whether a tensor of the file is stored as F32 in every output
// type: vectors, norms, everything that is not a weight, and some small weights
// that the runtime reads in F32. Source: the reference's rule in prepare_tensors.
func KeepF32(name string, ne []int64) bool {
	return PlainF32(name, ne) || !isWeight(name) || keptF32[Base(name)]
}

// isWeight reports whether a tensor is a weight or an adapter's matrix A or B.
func isWeight(name string) bool {
	return slices.ContainsFunc([]string{".weight", ".lora_a", ".lora_b"},
		func(s string) bool { return strings.HasSuffix(name, s) })
}

// PlainF32 reports whether a tensor of the file is a vector or a norm, which are F32 even if the row has a Type.
// Source: as KeepF32.
func PlainF32(name string, ne []int64) bool {
	return len(ne) <= 1 || strings.HasSuffix(name, "_norm.weight")
}

// Base returns the name of a weight of the file without "blk.N." and ".weight".
func Base(name string) string {
	name = strings.TrimSuffix(name, ".weight")
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		if bid, rest, ok := strings.Cut(rest, "."); ok && isNumber(bid) {
			return rest
		}
	}
	return name
}

// keptF32 are the weights that stay F32.
var keptF32 = map[string]bool{
	"position_embd": true, "v.position_embd": true, "a.position_embd": true, "token_types": true, "ffn_gate_inp": true,
	"ffn_gate_inp_shexp": true,
	"ssm_conv1d":         true, "ssm_conv1d_q": true, "ssm_conv1d_k": true, "ssm_conv1d_v": true,
	"shortconv.conv": true,
	"time_mix_first": true, "time_mix_w1": true, "time_mix_w2": true, "time_mix_decay_w1": true,
	"time_mix_decay_w2": true, "time_mix_lerp_fused": true,
	"altup_correct_coef": true, "altup_predict_coef": true, "indexer.proj": true,
}
