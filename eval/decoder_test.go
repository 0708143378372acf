package eval_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/eval/evaltest"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
	"ggforge/tokenizer/vocab"
)

// openSpec opens the first made-up checkpoint of a spec, as converted to F32.
func openSpec(t *testing.T, name string) *model.Model {
	t.Helper()
	s := hftest.Lookup(name)
	src, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func newModel(t *testing.T, m *model.Model) *eval.Model {
	t.Helper()
	r, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDecoder compares perplexities of encoder-decoders with those of transformers in float64, by
// test/interop/decoder.py.
func TestDecoder(t *testing.T) {
	for name, want := range map[string]float64{"t5": 1089.191342, "t5-base": 1047.556053, "umt5": 1081.521515,
		"mt5": 1108.094589} {
		r := newModel(t, openSpec(t, name))
		p, err := r.Perplexity(t.Context(), evaltest.Sources(r.Vocab()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !(math.Abs(p.Value/want-1) < 1e-7) || p.Chunks != 6 || p.Predicted != 311 || !r.Decodes() {
			t.Errorf("%s: %v over %d tokens of %d pairs, want %v", name, p.Value, p.Predicted, p.Chunks, want)
		}
	}
}

// TestDecoderParts checks that losses have the same bits with other workers, blocks and shares of the pairs, and that
// those of a pair do not depend on the others.
func TestDecoderParts(t *testing.T) {
	r := newModel(t, openSpec(t, "mt5"))
	run := evaltest.Sources(r.Vocab())
	p, err := r.Perplexity(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	losses := func(run eval.Run, from, to int) []float64 {
		t.Helper()
		list, err := r.Losses(t.Context(), run, from, to)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	run.Workers = 3
	var ends []float64
	run.Progress = func(p eval.Progress) { ends = append(ends, p.Done) }
	if got := losses(run, 0, 6); !slices.Equal(got, p.Losses) {
		t.Error("three workers: other losses")
	}
	if !slices.IsSorted(ends) || len(ends) == 0 || ends[len(ends)-1] != 1 {
		t.Errorf("progress: %v", ends)
	}
	run.Progress = nil
	for _, tokens := range []int{1, 60} {
		restore := eval.SetTokensPerBlock(tokens)
		if got := losses(run, 0, 6); !slices.Equal(got, p.Losses) {
			t.Errorf("blocks of %d tokens: other losses", tokens)
		}
		restore()
	}
	var all []float64
	for i := range 6 {
		all = append(all, losses(run, i, i+1)...)
	}
	if !slices.Equal(all, p.Losses) {
		t.Error("pair by pair: other losses")
	}
	if got := losses(run, 2, 2); len(got) != 0 {
		t.Errorf("no pair: %d losses", len(got))
	}
	other := run
	other.Sources = slices.Clone(run.Sources)
	other.Sources[1] = []int32{17, 18}
	got := losses(other, 0, 6)
	for i, x := range got {
		if at := i - run.Lengths[0]; at >= 0 && at < run.Lengths[1] == (x == p.Losses[i]) {
			t.Errorf("another source of pair 1: loss %d is %v, before %v", i, x, p.Losses[i])
		}
	}
	other = run
	other.Tokens = slices.Clone(run.Tokens)
	other.Tokens[2+3]++ // the last but one of pair 1
	for i, x := range losses(other, 0, 6) {
		if changed := i == 5 || i == 6; changed == (x == p.Losses[i]) {
			t.Errorf("another token: loss %d is %v, before %v", i, x, p.Losses[i])
		}
	}
}

// TestDecoderCompare checks divergences of encoder-decoders against losses of each.
func TestDecoderCompare(t *testing.T) {
	m := openSpec(t, "t5")
	r, other := newModel(t, m), newModel(t, scaled(m, "dec.blk.0.cross_attn_v"))
	run := evaltest.Sources(r.Vocab())
	var all []*eval.Comparison
	compare := func() {
		t.Helper()
		if err := eval.Compare(t.Context(), r, []*eval.Model{r, other}, run, func(i int, c *eval.Comparison) error {
			all = append(all, c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	compare()
	if c := all[0]; math.Abs(c.Divergence.Mean) > 1e-9 || c.Top.Mean != 1 || len(c.Layers) != 2 || c.Layers[1].RMS != 0 {
		t.Errorf("divergence from itself: %+v", c.Divergence)
	}
	for i, m := range []*eval.Model{r, other} {
		p, err := m.Perplexity(t.Context(), run)
		if err != nil || !slices.Equal(p.Losses, all[i].Model.Losses) {
			t.Errorf("model %d: losses other than those of Perplexity; %v", i, err)
		}
	}
	if c := all[1]; c.Divergence.Mean <= 0 || c.Layers[0].RMS != 0 || c.Layers[1].RMS == 0 || len(c.Divergences) != 311 {
		t.Errorf("divergence of another model: %+v, layers %v", c.Divergence, c.Layers)
	}
	defer eval.SetTokensPerBlock(1)()
	defer eval.SetStreamBytes(1)()
	if compare(); !reflect.DeepEqual(all[:2], all[2:]) {
		t.Error("pair by pair: other figures")
	}
}

// TestDecoderImportance checks which matrices of an encoder-decoder importance is collected for, and over how many
// tokens.
func TestDecoderImportance(t *testing.T) {
	r := newModel(t, openSpec(t, "t5"))
	run := evaltest.Sources(r.Vocab())
	sources := len(slices.Concat(run.Sources...))
	collect := func(opt eval.Importance) *imatrix.Sums {
		t.Helper()
		sums := imatrix.NewSums(run.Chunk)
		if err := r.Collect(t.Context(), run, sums, opt); err != nil {
			t.Fatal(err)
		}
		return sums
	}
	sums := collect(eval.Importance{Output: true})
	found := map[string]bool{}
	for _, x := range sums.Tallies() {
		found[x.Name] = true
		want := len(run.Tokens)
		if strings.HasPrefix(x.Name, "enc.") || strings.Contains(x.Name, "cross_attn_k") ||
			strings.Contains(x.Name, "cross_attn_v") {
			want = sources
		}
		if len(x.Counts) != 1 || x.Counts[0] != int64(want) {
			t.Errorf("%s: %v tokens, want %d", x.Name, x.Counts, want)
		}
	}
	for _, name := range strings.Fields(`enc.blk.1.attn_q enc.blk.0.ffn_down dec.blk.0.attn_o dec.blk.0.cross_attn_q
		dec.blk.0.cross_attn_k dec.blk.0.cross_attn_v dec.blk.0.cross_attn_o dec.blk.0.ffn_gate token_embd`) {
		if !found[name+".weight"] {
			t.Errorf("nothing for %s", name)
		}
	}
	if len(found) != 2*7+11+1 {
		t.Errorf("%d matrices", len(found))
	}
	if x := collect(eval.Importance{Output: true, Every: 2}); !reflect.DeepEqual(x.Tallies(), sums.Tallies()) {
		t.Error("two pairs at a time: other sums")
	}
}

// TestDecoderRefusals checks that a run of another kind than the model's is refused.
func TestDecoderRefusals(t *testing.T) {
	r, encoder, llama := newModel(t, openSpec(t, "t5")), newModel(t, openSpec(t, "t5-encoder")),
		newModel(t, openSpec(t, "llama"))
	run := evaltest.Sources(r.Vocab())
	plain := eval.Run{Tokens: make([]int32, 64), Chunk: 32}
	change := func(f func(r *eval.Run)) eval.Run {
		c := run
		c.Sources, c.Lengths, c.Next = slices.Clone(c.Sources), slices.Clone(c.Lengths), slices.Clone(c.Next)
		f(&c)
		return c
	}
	for name, c := range map[string]struct {
		model *eval.Model
		run   eval.Run
		kind  error
		text  string
	}{
		"a text for an encoder-decoder": {r, plain, fault.Refused, "predicts a text for a source"},
		"sources for an encoder":        {encoder, run, fault.Refused, "reads no sources"},
		"sources for a decoder":         {llama, run, fault.Refused, "reads no sources"},
		"lengths that do not add up":    {r, change(func(r *eval.Run) { r.Lengths[0]++ }), fault.Usage, "chunks of a sum"},
		"a source less": {r, change(func(r *eval.Run) { r.Sources = r.Sources[1:] }), fault.Usage,
			"5 sources"},
		"an empty source": {r, change(func(r *eval.Run) { r.Sources[3] = nil }), fault.Refused,
			"source 4 has no tokens"},
		"no such token": {r, change(func(r *eval.Run) { r.Next[3] = 1 << 20 }), fault.Refused,
			"token 3 of the targets"},
		"no such token in a source": {r, change(func(r *eval.Run) { r.Sources[2] = []int32{-1} }), fault.Refused,
			"token"},
	} {
		_, err := c.model.Perplexity(t.Context(), c.run)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Collect(t.Context(), plain, imatrix.NewSums(32), eval.Importance{}); !errors.Is(err, fault.Refused) {
		t.Errorf("importance over a text: %v", err)
	}
	if err := eval.Compare(t.Context(), r, []*eval.Model{llama}, run, nil); !errors.Is(err, fault.Refused) {
		t.Errorf("comparison with another kind: %v", err)
	}
}

// TestSourceTargets checks the tokens of pairs of texts.
func TestSourceTargets(t *testing.T) {
	m := openSpec(t, "t5")
	r := newModel(t, m)
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.SourceTargets(v, []string{"hello world", ""}, []string{"", "the fox"}, false)
	if err != nil {
		t.Fatal(err)
	}
	fox, err := v.Encode("the fox", vocab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := len(fox)
	if first := run.Sources[0]; first[len(first)-1] != 1 || !slices.Equal(run.Sources[1], []int32{1}) {
		t.Errorf("sources %v, want EOS (1) at the ends", run.Sources)
	}
	if !slices.Equal(run.Lengths, []int{1, n + 1}) || !slices.Equal(run.Tokens, append([]int32{0, 0}, fox...)) ||
		!slices.Equal(run.Next, slices.Concat([]int32{1}, fox, []int32{1})) {
		t.Errorf("lengths %v, tokens %v, which predict %v", run.Lengths, run.Tokens, run.Next)
	}
	if _, err := r.SourceTargets(v, []string{"a"}, nil, false); !errors.Is(err, fault.Refused) {
		t.Errorf("a source without a target: %v", err)
	}
}
