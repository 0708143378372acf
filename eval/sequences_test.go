package eval

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestMeasureSequences checks that sequences that are the chunks of a text have the results of Measure, to the bit, and
// that those of a sequence do not depend on the others, in one pass or several.
func TestMeasureSequences(t *testing.T) {
	const chunk, chunks = 40, 5
	run := Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: 2}
	var list []Sequence
	for i := range chunks {
		list = append(list, Continuation(run.Tokens[i*chunk:][:chunk], chunk/2+1, chunk))
	}
	list = append(list[:3:3], slices.Concat([]Sequence{{Tokens: run.Tokens[:7]}, Continuation(run.Tokens[:30], 3, 9)},
		list[3:])...)
	open := func(sh shape) *Model {
		m, err := New(made("llama", sh))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base, other := open(shape{}), open(rounded(gguf.TypeBF16))
	want, err := Measure(t.Context(), base, []*Model{other, base}, run, 0, chunks)
	if err != nil {
		t.Fatal(err)
	}
	defer func(n, k int) { tokensPerBlock, streamBytes = n, k }(tokensPerBlock, streamBytes)
	for _, pass := range []int{2048, 90, 1} {
		tokensPerBlock, streamBytes = pass, 1
		last := 0.0
		got, err := MeasureSequences(t.Context(), base, []*Model{other, base}, list, ScoreOptions{Workers: 3,
			Progress: func(p Progress) {
				if p.Done < last || p.Done > 1 {
					t.Errorf("progress %v after %v", p.Done, last)
				}
				last = p.Done
			}})
		if err != nil {
			t.Fatal(err)
		}
		if last != 1 {
			t.Errorf("progress %v at the end", last)
		}
		const per = chunk/2 - 1
		for k, x := range got {
			if x.chunks != len(list) || len(x.positions) != chunks*per+6 {
				t.Fatalf("%d positions of %d sequences", len(x.positions), x.chunks)
			}
			same := slices.Concat(x.positions[:3*per], x.positions[3*per+6:])
			if !slices.Equal(same, want[k].positions) {
				t.Errorf("model %d, %d tokens at once: other results than those of chunks", k, pass)
			}
			for i := range x.layers {
				// those of Measure are also for the last token of a chunk
				for j, d := range slices.Concat(x.layers[i][:3*per], x.layers[i][3*per+6:]) {
					if w := want[k].layers[i][j/per*(per+1)+j%per]; d != w {
						t.Fatalf("layer %d, position %d: %v, want %v", i, j, d, w)
					}
				}
			}
			if len(x.layers) != len(want[k].layers) {
				t.Errorf("%d layers, want %d", len(x.layers), len(want[k].layers))
			}
		}
		answers, err := other.Score(context.Background(), [][]Sequence{list}, ScoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, a := range answers[0] {
			for _, one := range a {
				if d := got[0].positions[at]; d.model != -one.LogP {
					t.Fatalf("position %d: loss %v, Score %v", at, d.model, -one.LogP)
				}
				at++
			}
		}
	}
	bad := []Sequence{{Tokens: run.Tokens[:3], Queries: []Query{{1, 2}, {1, 3}}}}
	if _, err := MeasureSequences(t.Context(), base, []*Model{other}, bad, ScoreOptions{}); !errors.Is(err, fault.Usage) {
		t.Errorf("two queries about one token: %v", err)
	}
}
