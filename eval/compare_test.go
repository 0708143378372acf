package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// TestLayers checks how far hidden states are from the base's.
func TestLayers(t *testing.T) {
	ctx := context.Background()
	const chunk = 50
	run := Run{Tokens: text(7 * chunk), Chunk: chunk, Workers: 2}
	open := func(sh shape, layers int) *Model {
		m := made("llama", sh)
		m.Metadata.Set("llama.block_count", gguf.Uint32(uint32(layers)))
		m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool {
			var i int
			_, err := fmt.Sscanf(x.Name, "blk.%d.", &i)
			return err == nil && i >= layers
		})
		r, err := New(m)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	compare := func(run Run, base *Model, models ...*Model) (all []*Comparison) {
		t.Helper()
		if err := Compare(ctx, base, models, run,
			func(_ int, c *Comparison) error { all = append(all, c); return nil }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, experts := range []int{0, 4} {
		with := func(sh shape) shape { sh.experts = experts; return sh }
		base, near, far := open(with(shape{}), 2), open(with(rounded(gguf.TypeF16)), 2),
			open(with(rounded(gguf.TypeBF16)), 2)
		all := compare(run, base, base, near, far)
		for _, d := range all[0].Layers {
			if d != (Distance{}) {
				t.Errorf("a model from itself: %+v", d)
			}
		}
		for i := range 3 {
			if n := len(all[i].Layers); n != 3 {
				t.Fatalf("%d layers, want embeddings and 2", n)
			}
			if d, e := all[1].Layers[i], all[2].Layers[i]; !(d.RMS > 0 && e.RMS > 5*d.RMS &&
				(experts > 0 || e.RMS < 12*d.RMS) && e.Mean.Mean > 5*d.Mean.Mean && e.Mean.Error > 0) {
				t.Errorf("%d experts, layer %d: %+v of F16, %+v of BF16", experts, i, d, e)
			}
		}
		// A model that ends after a layer has the same states there.
		one := compare(run, open(with(shape{}), 1), open(with(rounded(gguf.TypeBF16)), 1))[0]
		if !slices.Equal(one.Layers, all[2].Layers[:2]) {
			t.Errorf("%d experts: %+v with one layer, %+v with two", experts, one.Layers, all[2].Layers)
		}
		if other := compare(run, base, open(with(shape{}), 1))[0]; other.Layers != nil || !(other.Divergence.Mean > 0) {
			t.Errorf("other layers: %+v", other.Layers)
		}
		// In several passes, with other workers.
		defer func(n, m int) { streamBytes, tokensPerBlock = n, m }(streamBytes, tokensPerBlock)
		streamBytes, tokensPerBlock = 4*48*chunk*3*2, 60
		run.Workers = 1
		last := 0.0
		run.Progress = func(p Progress) {
			if p.Done < last || p.Done > 1 {
				t.Errorf("%v done after %v", p.Done, last)
			}
			last = p.Done
		}
		again := compare(run, base, near, far)
		if last != 1 {
			t.Errorf("%v done at the end", last)
		}
		for i, c := range again {
			if want := all[i+1]; !slices.Equal(c.Layers, want.Layers) ||
				!slices.Equal(c.Divergences, want.Divergences) || c.Divergence != want.Divergence ||
				c.Model.Value != want.Model.Value || c.Model.Chunks != 7 {
				t.Errorf("%d experts: in several passes %+v, %v, in one %+v, %v", experts, c.Layers, c.Divergence,
					want.Layers, want.Divergence)
			}
		}
		run.Progress = nil
	}
	// The difference of the embeddings is computed here, too.
	base, far := made("llama", shape{}), made("llama", rounded(gguf.TypeBF16))
	value := func(m *model.Model) []float32 {
		for _, x := range m.Tensors {
			if x.Name == "token_embd.weight" {
				v := make([]float32, x.Elements())
				if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
					t.Fatal(err)
				}
				return v
			}
		}
		return nil
	}
	a, b := value(base), value(far)
	var square, norm, mean float64
	n := 0
	for i, id := range run.Tokens {
		if i%chunk < chunk/2 {
			continue
		}
		var s, q float64
		for j := range 48 {
			x, y := float64(a[int(id)*48+j]), float64(b[int(id)*48+j])
			s, q = s+(y-x)*(y-x), q+x*x
		}
		square, norm, mean, n = square+s, norm+q, mean+math.Sqrt(s/q), n+1
	}
	d := compare(run, open(shape{}, 2), open(rounded(gguf.TypeBF16), 2))[0].Layers[0]
	if want := math.Sqrt(square / norm); math.Abs(d.RMS-want) > 1e-6*want ||
		math.Abs(d.Mean.Mean-mean/float64(n)) > 1e-6*d.Mean.Mean {
		t.Errorf("embeddings: %+v, want %v and %v", d, want, mean/float64(n))
	}
	if err := Compare(ctx, open(shape{}, 2), nil, Run{Tokens: text(3), Chunk: chunk}, nil); err == nil ||
		!strings.Contains(err.Error(), "3 tokens") {
		t.Errorf("a text that is too short: %v", err)
	}
}
