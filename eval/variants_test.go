package eval

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
)

// variantOf returns a model like m but for tensors whose names have one of the parts.
func variantOf(m *model.Model, parts ...string) *model.Model {
	c := *m
	c.Path = strings.Join(parts, "+")
	c.Tensors = slices.Clone(m.Tensors)
	for i := range c.Tensors {
		x := &c.Tensors[i]
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(x.Name, part) }) {
			continue
		}
		v := make([]float32, x.Elements())
		if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
			panic(err)
		}
		for k := range v {
			v[k] *= 1 + float32(k%7)/64
		}
		*x = model.New(x.Name, encoded(v, x.NE, gguf.TypeF16))
	}
	return &c
}

// TestVariants compares models that share layers with runs of their own.
func TestVariants(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	ctx := context.Background()
	for _, c := range []struct {
		arch string
		shape
		block int
	}{{"llama", shape{}, 2048}, {"llama", shape{experts: 3}, 40},
		{"gemma2", shape{change: func(m *model.Model) {
			gemma2Norms(m)
			m.Metadata.Set("gemma2.attention.sliding_window",
				gguf.Uint32(9))
		}}, 20}, {"rwkv7", shape{}, 20}} {
		tokensPerBlock = c.block
		source := made(c.arch, c.shape)
		if c.arch == "rwkv7" { // whose later layers all read values of the first
			source = smallRecurrent(c.arch)
		}
		base, err := New(source)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var models []*model.Model
		var alone []*Model
		for _, parts := range [][]string{{"blk.1.ffn_down", "blk.1.channel_mix_value"}, {"output.weight"},
			{"token_embd.weight"}, {"blk.0.attn_q", "blk.0.time_mix_value"}, {"attn_v", "time_mix_receptance"},
			{"none of them"}, {"blk.1."}, {"blk.0.", "output.weight"}, {"output_norm"}, {"blk.1.attn_output"}} {
			m := variantOf(source, parts...)
			own, err := New(m)
			if err != nil {
				t.Fatal(err)
			}
			names, models, alone = append(names, m.Path), append(models, m), append(alone, own)
		}
		run := Run{Tokens: text(4 * 16), Chunk: 16, Workers: 2}
		want := make([]*Comparison, len(models))
		if err := Compare(ctx, base, alone, run,
			func(i int, c *Comparison) error { c.Layers = nil; want[i] = c; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, memory := range []int64{0, 1, 3 * 4 * 48 * 64} {
			last := 0.0
			run.Progress = func(p Progress) {
				if !(p.Done >= last && p.Done <= 1) {
					t.Errorf("%v done after %v", p.Done, last)
				}
				last = p.Done
			}
			got := make([]*Comparison, len(models))
			v := Variants{N: len(models), Model: func(i int) (*model.Model, error) { return models[i], nil },
				Memory: memory}
			if err := CompareVariants(ctx, base, v, run,
				func(i int, c *Comparison) error { got[i] = c; return nil }); err != nil {
				t.Fatal(err)
			}
			for i := range models {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("%s, %d bytes, %s: divergence %v, alone %v", c.arch, memory, names[i], got[i].Divergence,
						want[i].Divergence)
				}
			}
			if last != 1 {
				t.Errorf("ends at %v", last)
			}
		}
		if d := want[5].Divergence.Mean; d != 0 {
			t.Errorf("the base from itself: %v", d)
		}
		if d := want[0].Divergence.Mean; !(d > 0) {
			t.Errorf("%s: %v", names[0], d)
		}
	}
}

// TestVariantErrors checks models that are not variants, and errors during a run.
func TestVariantErrors(t *testing.T) {
	source := made("llama", shape{})
	base, err := New(source)
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	fewer, other := *source, *variantOf(source, "blk.0.attn_q")
	fewer.Tensors = fewer.Tensors[:len(fewer.Tensors)-1]
	other.Metadata = slices.Clone(other.Metadata)
	other.Metadata.Set("llama.block_count", gguf.Uint32(1))
	bad := variantOf(source, "blk.1.attn_q")
	for i := range bad.Tensors {
		if bad.Tensors[i].Name == "blk.1.attn_q.weight" {
			bad.Tensors[i].Source = failing{bad.Tensors[i].Source, stop}
		}
	}
	good := variantOf(source, "blk.1.attn_q")
	for name, c := range map[string]struct {
		m    *model.Model
		err  error
		is   error
		want string
	}{
		"fewer tensors": {&fewer, nil, fault.Refused, "different tensors"},
		"fewer layers":  {&other, nil, fault.Unsupported, "blk.1."},
		"source":        {bad, nil, stop, "blk.1.attn_q.weight"},
		"model":         {nil, stop, stop, "enough"},
		"callback":      {good, nil, stop, "enough"},
	} {
		err := CompareVariants(context.Background(), base,
			Variants{N: 1, Model: func(int) (*model.Model, error) { return c.m, c.err }},
			Run{Tokens: text(100), Chunk: 50}, func(int, *Comparison) error { return stop })
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %v: %s", name, err, c.is, c.want)
		}
	}
}

// failing is a tensor that cannot be read.
type failing struct {
	rows.Source
	err error
}

func (f failing) Raw(*[]byte, int64, int64) ([]byte, error) { return nil, f.err }
