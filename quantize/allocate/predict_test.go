package allocate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/test/hftest"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

// gollama returns a small trained model and a run over text of the kind that it was trained on.
func gollama(t *testing.T, chunk, chunks int) (*model.Model, eval.Run) {
	t.Helper()
	m, _, err := convert.Open(context.Background(), "../../test/testdata/gollama", convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	run, err := eval.Text{Chunk: chunk, Chunks: chunks}.Run(v, string(text))
	if err != nil {
		t.Fatal(err)
	}
	run.Workers = 2
	return m, run
}

// candidates returns some tensors of a model, each with some types.
func candidates(m *model.Model, names []string, types ...gguf.Type) (all []Candidate) {
	for i := range m.Tensors {
		x := &m.Tensors[i]
		if !slices.Contains(names, x.Name) {
			continue
		}
		c := Candidate{Tensor: i, Name: x.Name, Types: types}
		for _, t := range types {
			c.Rows = append(c.Rows, writer.Encoded(writer.Tensor{Name: x.Name, Type: t, Source: x.Source}))
		}
		all = append(all, c)
	}
	return all
}

// TestPredict compares the predictions for tensors of each kind with the losses of a model in which
// only that tensor is quantized.
func TestPredict(t *testing.T) {
	m, run := gollama(t, 20, 3)
	names := []string{"token_embd.weight", "output.weight", "blk.1.ffn_down.weight", "blk.4.attn_v.weight"}
	types := []gguf.Type{gguf.TypeQ2_K, gguf.TypeQ3_K, gguf.TypeQ8_0}
	all := candidates(m, names, types...)
	found, err := Predict(t.Context(), m, all, PredictOptions{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if found.Tokens != len(run.Tokens) || found.NoGradients != nil || found.Extrapolated != nil {
		t.Errorf("%+v", found)
	}
	base, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	err = eval.CompareVariants(t.Context(), base, eval.Variants{N: len(all), Model: func(i int) (*model.Model, error) {
		other := *m
		other.Tensors = slices.Clone(m.Tensors)
		other.Tensors[all[i].Tensor] = model.New(all[i].Name, all[i].Rows[1])
		return &other, nil
	}}, run, func(i int, c *eval.Comparison) error {
		l := found.Losses[i]
		ratio := math.Log(c.Divergence.Mean / l[1])
		t.Logf("%s: %.3g, predicted %.3g", all[i].Name, c.Divergence.Mean, l[1])
		if math.Abs(ratio) > math.Log(3.5) {
			t.Errorf("%s: %g, predicted %g", all[i].Name, c.Divergence.Mean, l[1])
		}
		if !(l[0] > 2*l[1] && l[1] > 20*l[2] && l[2] > 0) {
			t.Errorf("%s: %g at %v", all[i].Name, l, types)
		}
		sum += ratio / float64(len(all))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(sum) > math.Log(2) {
		t.Errorf("predictions are off by a factor of %.3g", math.Exp(sum))
	}
}

// TestPredictBits checks that predictions have the same bits for any number of workers, and in
// every build.
func TestPredictBits(t *testing.T) {
	m, run := gollama(t, 8, 1)
	all := candidates(m, []string{"token_embd.weight", "output.weight", "blk.5.attn_k.weight", "blk.5.ffn_down.weight"},
		gguf.TypeQ4_K, gguf.TypeQ8_0)
	for _, workers := range []int{1, 3} {
		run.Workers = workers
		found, err := Predict(t.Context(), m, all, PredictOptions{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		for _, l := range found.Losses {
			binary.Write(h, binary.LittleEndian, l)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != "418f1f61135b7917" {
			t.Errorf("%d workers: %s %v", workers, got, found.Losses)
		}
	}
}

// TestPredictForwards checks the predictions for a model without a backward pass, and for
// tensors whose inputs the run does not report.
func TestPredictForwards(t *testing.T) {
	dir, err := hftest.Lookup("rwkv6").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	names := []string{"token_embd.weight", "output.weight", "blk.0.time_mix_key.weight",
		"blk.1.channel_mix_value.weight"}
	all := candidates(m, names, gguf.TypeQ4_0, gguf.TypeQ8_0)
	if len(all) != len(names) {
		t.Fatalf("%d candidates", len(all))
	}
	run := eval.Run{Chunk: 16}
	for i := range int32(32) {
		run.Tokens = append(run.Tokens, 5+i*7%500)
	}
	var first [][]float64
	for _, workers := range []int{1, 3} {
		run.Workers = workers
		found, err := Predict(t.Context(), m, all, PredictOptions{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(found.NoGradients, fault.Unsupported) ||
			!slices.Equal(found.Extrapolated, []string{"output.weight"}) {
			t.Errorf("no gradients because of %v, extrapolated %v", found.NoGradients, found.Extrapolated)
		}
		for k, l := range found.Losses {
			// relative squares: some tenths of a percent at 4 bits
			if !(l[0] > 0.001 && l[0] < 0.05 && l[1] > 0 && l[1] < l[0]/50) {
				t.Errorf("%s: %v", all[k].Name, l)
			}
		}
		if first != nil && fmt.Sprint(found.Losses) != fmt.Sprint(first) {
			t.Errorf("%d workers: %v, want %v", workers, found.Losses, first)
		}
		first = found.Losses
	}
}

// TestCandidates checks which types tensors may have.
func TestCandidates(t *testing.T) {
	m, _ := gollama(t, 8, 1)
	recipe, _ := quantize.LookupRecipe("Q4_K_M")
	q5 := gguf.TypeQ5_K
	b, err := quantize.PrepareBatch(t.Context(), m, []*quantize.Recipe{recipe},
		quantize.Options{PlanOptions: quantize.PlanOptions{OutputTensorType: &q5}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	limit := func(s string) AllowedTypes {
		t.Helper()
		l, err := ParseAllowedTypes(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	all, err := Candidates(b.Jobs[0], []AllowedTypes{limit("attn_v=q6_k,q8_0"), limit(`ffn=Q3_K,IQ2_XS,f16`)})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 43 {
		t.Errorf("%d candidates, want all but output.weight", len(all))
	}
	for _, c := range all {
		want := "[Q2_K Q3_K IQ4_XS Q4_K Q5_K Q6_K Q8_0]"
		switch {
		case c.Name == "blk.3.attn_v.weight":
			want = "[Q6_K Q8_0]"
		case c.Name == "blk.3.ffn_up.weight":
			want = "[Q3_K F16]" // IQ2_XS needs importance
		case layerOf(c.Name) != "blk.3" || c.Name != "blk.3.attn_q.weight":
			continue
		}
		if got := fmt.Sprint(c.Types); got != want {
			t.Errorf("%s: %s, want %s", c.Name, got, want)
		}
	}
	for _, s := range []string{"nothing=q4_k", "attn_v=iq2_xs"} {
		if _, err := Candidates(b.Jobs[0], []AllowedTypes{limit(s)}); err == nil {
			t.Errorf("%s: no error", s)
		}
	}
	for _, s := range []string{"", "q4_k,", "x=", "(=q4_k", "q4_k,q99", "a=b=c"} {
		if _, err := ParseAllowedTypes(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

// TestWeightErrors compares the errors of weights with those of the decoded rows.
func TestWeightErrors(t *testing.T) {
	x := make([]float32, 256*4)
	for i := range x {
		x[i] = float32(math.Sin(float64(i) * 0.7))
	}
	flat := rows.Float32s(x)
	one, err := rows.Slice(flat, 0, 0, 256)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rows.Reshape(flat, []int64{256, 4})
	if err != nil {
		t.Fatal(err)
	}
	m := &model.Model{Tensors: []model.Tensor{model.New("a", large), model.New("b", one)}}
	half := rows.Map(large, rows.Scale(0.5))
	candidates := []Candidate{
		{Tensor: 0, Name: "a", Types: []gguf.Type{gguf.TypeF32, gguf.TypeF16}, Rows: []rows.Source{large, half}},
		{Tensor: 1, Name: "b", Types: []gguf.Type{gguf.TypeF32}, Rows: []rows.Source{rows.Map(one, rows.Scale(0))}},
	}
	var last float64
	p, err := WeightErrors(t.Context(), m, candidates, 1, func(done float64) { last = done })
	if err != nil {
		t.Fatal(err)
	}
	// shares of 0.8 and 0.2; halves are off by a quarter of the square, zeros by all of it
	for _, c := range []struct{ got, want float64 }{{p.Losses[0][0], 0}, {p.Losses[0][1], 0.8 * 0.25},
		{p.Losses[1][0], 0.2}} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	if !p.Weights || math.Abs(last-1) > 1e-9 {
		t.Errorf("%+v, progress %v", p, last)
	}
}
