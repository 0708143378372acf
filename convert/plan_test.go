package convert

import (
	"errors"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
)

// TestTypes checks that tensors get the types of their rows, whatever the output's
// type is: see table.TypeOf.
func TestTypes(t *testing.T) {
	asStored := func(out gguf.Type, from table.Stored) gguf.Type {
		if from.Scheme == "" && from.Type == gguf.TypeBF16 {
			return gguf.TypeBF16
		}
		return out
	}
	const f32, bf16, i64 = safetensors.F32, safetensors.BF16, safetensors.I64
	for _, c := range []struct {
		what  string
		typ   table.TypeOf
		to    string // name in the file
		from  safetensors.DType
		shape []int64
		out   OutType
		want  gguf.Type
	}{
		{"no type", nil, "blk.0.attn_q.weight", f32, []int64{2, 32}, Q8_0, gguf.TypeQ8_0},
		{"no type, rows that are not whole", nil, "blk.0.attn_q.weight", f32, []int64{2, 16}, Q8_0, gguf.TypeF16},
		{"always F32", table.Always(gguf.TypeF32), "blk.0.attn_q.weight", bf16, []int64{2, 32}, Q8_0, gguf.TypeF32},
		{"always BF16", table.Always(gguf.TypeBF16), "blk.0.attn_q.weight", f32, []int64{2, 32}, F16, gguf.TypeBF16},
		{"always Q8_0", table.Always(gguf.TypeQ8_0), "blk.0.attn_q.weight", f32, []int64{2, 32}, F32, gguf.TypeQ8_0},
		{"always Q8_0, rows that are not whole", table.Always(gguf.TypeQ8_0), "blk.0.attn_q.weight", f32,
			[]int64{2, 16}, F32, gguf.TypeF16},
		{"a vector", table.Always(gguf.TypeQ8_0), "blk.0.attn_q.weight", f32, []int64{32}, F16, gguf.TypeF32},
		{"a norm", table.Always(gguf.TypeQ8_0), "blk.0.attn_q_norm.weight", f32, []int64{2, 32}, F16, gguf.TypeF32},
		{"where others stay F32", table.OutputType, "blk.0.ffn_gate_inp.weight", f32, []int64{2, 32}, BF16,
			gguf.TypeBF16},
		{"without .weight", table.OutputType, "blk.0.attn_q.bias", f32, []int64{2, 32}, BF16, gguf.TypeBF16},
		{"in ternary files", table.OutputType, "token_embd.weight", f32, []int64{2, 256}, TQ1_0, gguf.TypeTQ1_0},
		{"as stored", asStored, "blk.0.attn_q.weight", bf16, []int64{2, 32}, Q8_0, gguf.TypeBF16},
		{"as stored, otherwise", asStored, "blk.0.attn_q.weight", f32, []int64{2, 32}, Q8_0, gguf.TypeQ8_0},
		{"integers", table.Always(gguf.TypeI32), "blk.0.ffn_gate_tid2eid.weight", i64, []int64{2, 3}, Q8_0,
			gguf.TypeI32},
	} {
		row := &table.TensorRow{Exact: true, HF: "x", GGUF: c.to, Type: c.typ}
		j, err := planned(row, c.from, c.shape, c.out)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got := j.Plan[0]; got.Type != c.want {
			t.Errorf("%s: %v, want %v", c.what, got.Type, c.want)
		}
		if fallback := strings.HasSuffix(c.what, "whole"); fallback != (len(j.Warnings) == 1) {
			t.Errorf("%s: warnings %q", c.what, j.Warnings)
		}
	}
	row := &table.TensorRow{Exact: true, HF: "x", GGUF: "x.weight", Type: table.Always(gguf.TypeI32)}
	if _, err := planned(row, f32, []int64{2, 3}, F16); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), `"x" holds F32, want integers`) {
		t.Errorf("numbers for a table of integers: %v", err)
	}
}

// planned plans a tensor of zeros by a row.
func planned(row *table.TensorRow, from safetensors.DType, shape []int64, out OutType) (*Job, error) {
	n := int64(from.Bits()) / 8
	for _, d := range shape {
		n *= d
	}
	stored := &precision.Tensor{Name: "x", DType: from, Shape: shape, File: "x.safetensors", Mapped: make([]byte, n)}
	weights, _, err := precision.Weights([]*precision.Tensor{stored}, config.Object{})
	if err != nil {
		return nil, err
	}
	j := &Job{Type: out, Arch: &table.Arch{Name: "test"}}
	if err := j.build(&table.Output{Row: row, Layer: table.Layer{Bid: -1}, From: []int{0}}, weights); err != nil {
		return nil, err
	}
	return j, j.types()
}
