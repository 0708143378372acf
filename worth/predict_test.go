package worth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/vocab"
	"ggforge/writer"
)

// gollama is a small model that is trained, and text of the kind that it knows.
func gollama(t *testing.T, chunk, chunks int) (*model.Model, eval.Run) {
	t.Helper()
	m, _, err := convert.Open(context.Background(), "../testdata/gollama", convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../quants/quants.go")
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

// candidates are some tensors of a model at some types.
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

// TestPredict compares what is predicted of tensors of each kind with what the model in which
// only that tensor is quantized loses.
func TestPredict(t *testing.T) {
	m, run := gollama(t, 20, 3)
	names := []string{"token_embd.weight", "output.weight", "blk.1.ffn_down.weight", "blk.4.attn_v.weight"}
	types := []gguf.Type{gguf.TypeQ2_K, gguf.TypeQ3_K, gguf.TypeQ8_0}
	all := candidates(m, names, types...)
	found, err := Predict(t.Context(), m, all, PredictOptions{Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if found.Tokens != len(run.Tokens) || found.Forwards != nil || found.Guessed != nil {
		t.Errorf("%+v", found)
	}
	base, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	err = eval.CompareVariants(t.Context(), base, eval.Variants{N: len(all), Model: func(i int) (*model.Model, error) {
		other := *m
		other.Release, other.Tensors = nil, slices.Clone(m.Tensors)
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
	all := candidates(m, []string{"token_embd.weight", "output.weight", "blk.5.attn_k.weight", "blk.5.ffn_down.weight"}, gguf.TypeQ4_K, gguf.TypeQ8_0)
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

// TestPredictForwards checks what is predicted without gradients, and of tensors that nothing is
// seen of.
func TestPredictForwards(t *testing.T) {
	m, run := gollama(t, 16, 1)
	names := []string{"token_embd.weight", "output.weight", "blk.0.attn_k.weight"}
	all := candidates(m, names, gguf.TypeQ2_K, gguf.TypeQ4_K)
	p := &predictor{ctx: t.Context(), m: m, candidates: all, at: map[string]int{}, run: run, held: map[matrix]*held{}}
	for k, c := range all {
		p.at[c.Name] = k
		p.sums = append(p.sums, map[part]*sums{})
	}
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	forward := run
	forward.Inputs = func(in eval.Inputs) error {
		if in.Name == "output.weight" {
			return nil
		}
		return p.linear(in, nil)
	}
	if _, err := e.Forward(t.Context(), forward); err != nil {
		t.Fatal(err)
	}
	if err := p.embeddings(0, nil); err != nil {
		t.Fatal(err)
	}
	found := &Predictions{}
	for k := range all {
		found.Losses = append(found.Losses, p.losses(k, false, 0))
	}
	if found.Losses[slices.Index(names, "output.weight")] == nil {
		t.Log("unseen")
	}
	if err := p.guess(found); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found.Guessed, []string{"output.weight"}) {
		t.Errorf("guessed %v", found.Guessed)
	}
	for k, l := range found.Losses {
		// relative squares: some percent at 2 bits
		if !(l[0] > 0.01 && l[0] < 0.3 && l[1] > 0.0005 && l[1] < l[0]/5) {
			t.Errorf("%s: %v", all[k].Name, l)
		}
	}
}

// TestCandidates checks which types tensors may have.
func TestCandidates(t *testing.T) {
	m, _ := gollama(t, 8, 1)
	lent := *m
	lent.Release = nil
	recipe, _ := quantize.LookupRecipe("Q4_K_M")
	q5 := gguf.TypeQ5_K
	b, err := quantize.PrepareBatch(t.Context(), &lent, []*quantize.Recipe{recipe}, quantize.Options{PlanOptions: quantize.PlanOptions{OutputTensorType: &q5}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	limit := func(s string) Limit {
		t.Helper()
		l, err := ParseLimit(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	all, err := Candidates(b.Jobs[0], []Limit{limit("attn_v=q6_k,q8_0"), limit(`ffn=Q3_K,IQ2_XS,f16`)})
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
		if _, err := Candidates(b.Jobs[0], []Limit{limit(s)}); err == nil {
			t.Errorf("%s: no error", s)
		}
	}
	for _, s := range []string{"", "q4_k,", "x=", "(=q4_k", "q4_k,q99", "a=b=c"} {
		if _, err := ParseLimit(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}
