package eval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
)

// opened is a tensor that must not be read before open has its name.
type opened struct {
	rows.Source
	name string
	open map[string]bool
}

func (o *opened) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	if !o.open[o.name] {
		return nil, fmt.Errorf("%q is read too early", o.name)
	}
	return o.Source.Raw(buf, a, b)
}

// inputsOf returns the inputs that Forward reports, by tensor and matrix, and the routed ones.
func inputsOf(t *testing.T, m *model.Model, r Run) (all map[string][]float32, routed map[string]bool) {
	e, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	all, routed = map[string][]float32{}, map[string]bool{}
	r.Inputs = func(in Inputs) error {
		k := fmt.Sprint(in.Name, " ", in.Matrix)
		all[k], routed[k] = append(all[k], in.X...), in.Routed
		return nil
	}
	states, err := e.Forward(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if out := e.Output(); out != "" {
		all[out+" 0"] = slices.Clone(states.data)
	}
	return all, routed
}

// TestPair checks, for all kinds of layers, that both models' inputs are those that they have
// when they run alone, and that no weights are read before theirs have been seen.
func TestPair(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	models := map[string]*model.Model{
		"llama": made("llama", shape{}), "experts": made("llama", shape{experts: 5}), "gemma2": made("gemma2", shape{change: gemma2Norms}),
	}
	for _, c := range slices.Concat(kinds, forwardKinds) {
		models[c.name] = listed(c.arch, c.keys, c.tensors)
	}
	for arch := range recurrent {
		models[arch] = smallRecurrent(arch)
	}
	for _, c := range encoders[:2] {
		models[c.arch+", encoder"] = lacking(listed(c.arch, c.keys, c.tensors), c.without...)
	}
	for name, base := range models {
		t.Run(name, func(t *testing.T) {
			run := Run{Tokens: text(3 * 24), Chunk: 24, Workers: 2}
			m := variantOf(base, "blk.")
			tokensPerBlock = 2048
			wantBase, _ := inputsOf(t, base, run)
			want, routed := inputsOf(t, m, run)
			open := map[string]bool{}
			gated := *m
			gated.Tensors = slices.Clone(m.Tensors)
			for i := range gated.Tensors {
				x := &gated.Tensors[i]
				if len(x.NE) > 1 && x.Name != "token_embd.weight" &&
					slices.ContainsFunc(slices.Collect(maps.Keys(want)),
						func(k string) bool { return strings.HasPrefix(k, x.Name+" ") }) {
					x.Source = &opened{x.Source, x.Name, open}
				}
			}
			b, err := New(base)
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(&gated)
			if err != nil {
				t.Fatal(err)
			}
			got, gotBase, since := map[string][]float32{}, map[string][]float32{}, []string(nil)
			tokensPerBlock = 50
			last := 0.0
			run.Progress = func(p Progress) {
				if !(p.Done >= last && p.Done <= 1) {
					t.Errorf("%v done after %v", p.Done, last)
				}
				last = p.Done
			}
			err = e.Pair(context.Background(), b, Pairs{Run: run,
				Wanted: func(in Inputs) bool { return !in.Routed || got[fmt.Sprint(in.Name, " ", in.Matrix)] == nil },
				Rows: func(in Inputs, base []float32) error {
					k := fmt.Sprint(in.Name, " ", in.Matrix)
					if len(in.X) != in.Rows*in.Columns || len(base) != len(in.X) {
						t.Errorf("%s: %d rows of %d, %d and %d values", k, in.Rows, in.Columns, len(in.X), len(base))
					}
					got[k], gotBase[k] = append(got[k], in.X...), append(gotBase[k], base...)
					since = append(since, in.Name)
					return nil
				},
				Seen: func() error {
					for _, name := range since {
						open[name] = true
					}
					since = nil
					return nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			if last != 1 {
				t.Errorf("ends at %v", last)
			}
			for k := range want {
				if !slices.Equal(got[k], want[k]) {
					t.Errorf("%s: other inputs of the model than alone (%d, want %d)", k, len(got[k]), len(want[k]))
				}
				if !routed[k] && !slices.Equal(gotBase[k], wantBase[k]) {
					t.Errorf("%s: other inputs of the base than alone", k)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d inputs, want %d", len(got), len(want))
			}
		})
	}
}

// TestPairRouted checks that the base's experts get the tokens that the model chose.
func TestPairRouted(t *testing.T) {
	m, err := New(made("llama", shape{experts: 5}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = m.Pair(context.Background(), m, Pairs{Run: Run{Tokens: text(60), Chunk: 20, Workers: 1},
		Wanted: func(in Inputs) bool { return in.Routed },
		Rows: func(in Inputs, base []float32) error {
			seen += in.Rows
			if !slices.Equal(in.X, base) {
				t.Errorf("%s, matrix %d: the base's inputs differ from its own", in.Name, in.Matrix)
			}
			return nil
		}, Seen: func() error { return nil }})
	if err != nil || seen != 2*3*2*60 {
		t.Errorf("%d rows of experts, %v", seen, err)
	}
}

// TestPairErrors checks models that are no pair, and errors during a run.
func TestPairErrors(t *testing.T) {
	ctx := context.Background()
	open := func(m *model.Model) *Model {
		e, err := New(m)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	base := open(made("llama", shape{}))
	stop := errors.New("stop")
	all := Pairs{Run: Run{Tokens: text(20), Chunk: 10}, Wanted: func(Inputs) bool { return true },
		Rows: func(Inputs, []float32) error { return nil }, Seen: func() error { return nil }}
	if err := open(made("qwen2", shape{})).Pair(ctx, base, all); !errors.Is(err, fault.Refused) {
		t.Errorf("another architecture: %v", err)
	}
	bad := all
	bad.First = 5
	if err := base.Pair(ctx, base, bad); err == nil {
		t.Error("runs from the middle of chunks")
	}
	bad = all
	bad.Rows = func(Inputs, []float32) error { return stop }
	if err := base.Pair(ctx, base, bad); !errors.Is(err, stop) {
		t.Errorf("rows: %v", err)
	}
	bad = all
	bad.Seen = func() error { return stop }
	if err := base.Pair(ctx, base, bad); !errors.Is(err, stop) {
		t.Errorf("seen: %v", err)
	}
	parts := open(made("llama", shape{experts: 3}))
	if err := parts.Pair(ctx, base, all); err == nil {
		t.Error("experts and a base without")
	}
}
