package eval_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
)

// TestConsistent checks, with the made-up model of every architecture, that runs which compute a part of a model again,
// or leave out what models have in common, see the same as plain ones: Pair the inputs of Forward, CompareVariants the
// divergences of Compare.
func TestConsistent(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	dir, seen := t.TempDir(), map[string]bool{}
	for _, s := range hftest.Specs() {
		if s.Base != nil || s.Target != "" {
			continue
		}
		src, err := s.Write(dir, s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32)); err == nil {
			if name := m.Architecture(); !seen[name] {
				if r, err := eval.New(m); err == nil && r.Predicts() {
					seen[name] = true
					t.Run(name, func(t *testing.T) { consistent(t, m, r) })
				}
			}
			m.Close()
		}
		if err := os.RemoveAll(src); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d architectures", len(seen))
	}
}

// unpaired are the architectures that Pair refuses.
var unpaired = []string{"grovemoe", "k2-horizon"}

func consistent(t *testing.T, m *model.Model, r *eval.Model) {
	const chunk = 12
	tokens := make([]int32, 4*chunk)
	for i := range tokens {
		tokens[i] = int32(i*i*7+3*i+1) % int32(r.Vocab())
	}
	run := eval.Run{Tokens: tokens, Chunk: chunk, Workers: 1}
	defer eval.SetTokensPerBlock(2 * chunk)()

	// The first is multiplied twice in a layer, which Pair does not expect, and Pair does not report adapters. Both are
	// not quantized.
	wanted := func(name string) bool {
		return !strings.Contains(name, "altup_router") && !strings.Contains(name, ".lora_")
	}
	type key struct {
		name   string
		matrix int
	}
	plain, paired := map[key][]float32{}, map[key][]float32{}
	collect := run
	collect.Inputs = func(in eval.Inputs) error {
		k := key{in.Name, in.Matrix}
		plain[k] = append(plain[k], in.X...)
		return nil
	}
	if _, err := r.Forward(t.Context(), collect); err != nil {
		t.Fatal(err)
	}
	differ := false
	if err := r.Pair(t.Context(), r, eval.Pairs{Run: run,
		Wanted: func(in eval.Inputs) bool { return wanted(in.Name) },
		Rows: func(in eval.Inputs, base []float32) error {
			k := key{in.Name, in.Matrix}
			paired[k] = append(paired[k], in.X...)
			differ = differ || !slices.Equal(in.X, base)
			return nil
		},
		Seen: func() error { return nil },
	}); errors.Is(err, fault.Unsupported) && slices.Contains(unpaired, m.Architecture()) {
		plain = nil
	} else if err != nil || slices.Contains(unpaired, m.Architecture()) {
		t.Fatal(err)
	}
	if differ {
		t.Error("Pair: inputs of a model differ from those of itself")
	}
	for k, x := range plain {
		if wanted(k.name) && !slices.Equal(paired[k], x) {
			t.Errorf("Pair: %s, matrix %d: %d inputs, other than the %d of Forward", k.name, k.matrix, len(paired[k]), len(x))
			break
		}
	}

	var models []*model.Model
	var alone []*eval.Model
	for _, prefix := range []string{"blk.1.", "blk.0.", "token_embd.", "none", "output"} {
		v := scaled(m, prefix)
		own, err := eval.New(v)
		if err != nil {
			t.Fatal(err)
		}
		models, alone = append(models, v), append(alone, own)
	}
	want, got := make([]*eval.Comparison, len(models)), make([]*eval.Comparison, len(models))
	if err := eval.Compare(t.Context(), r, alone, run, func(i int, c *eval.Comparison) error {
		c.Layers = nil
		want[i] = c
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := eval.CompareVariants(t.Context(), r, eval.Variants{N: len(models),
		Model: func(i int) (*model.Model, error) { return models[i], nil }}, run,
		func(i int, c *eval.Comparison) error { got[i] = c; return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("CompareVariants: model %d: divergence %v, alone %v", i, got[i].Divergence, want[i].Divergence)
		}
	}
}

// scaled returns a copy of a model, whose matrices below a prefix of names are scaled.
func scaled(m *model.Model, prefix string) *model.Model {
	c := *m
	c.Tensors = slices.Clone(m.Tensors)
	for i := range c.Tensors {
		x := &c.Tensors[i]
		if len(x.Name) < len(prefix) || x.Name[:len(prefix)] != prefix || len(x.NE) < 2 ||
			x.Type == gguf.TypeI32 { // tables of experts
			continue
		}
		v := make([]float32, x.Elements())
		if err := rows.Decode(x.Source, v, new([]byte), 0, x.Elements()/x.NE[0]); err != nil {
			panic(fmt.Sprint(x.Name, err))
		}
		for k := range v {
			v[k] *= 1 + float32(k%5)/64
		}
		src, err := rows.Reshape(rows.Float32s(v), x.NE)
		if err != nil {
			panic(err)
		}
		*x = model.New(x.Name, src)
	}
	return &c
}
