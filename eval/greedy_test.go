package eval

import (
	"errors"
	"slices"
	"testing"

	"ggforge/fault"
)

// TestGreedy compares continuations with those that one run for each token finds, and checks how far a model follows.
func TestGreedy(t *testing.T) {
	m, err := New(made("llama", shape{}))
	if err != nil {
		t.Fatal(err)
	}
	const n = 12
	prompts := [][]int32{text(20), text(3), {5}, {7, 8, 9, 7, 8, 9, 7, 8}}
	got, err := m.Greedy(t.Context(), prompts, n, ScoreOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range prompts {
		all := slices.Clone(p)
		for range n {
			answers, err := m.Score(t.Context(), [][]Sequence{{{Tokens: all, Queries: []Query{{At: len(all) - 1}}}}},
				ScoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			best := answers[0][0][0].Best
			again, err := m.Score(t.Context(), [][]Sequence{{{Tokens: all, Queries: []Query{{len(all) - 1, best}}}}},
				ScoreOptions{})
			if err != nil || !again[0][0][0].Top {
				t.Errorf("prompt %d: token %d is not the most probable one: %v", i, best, err)
			}
			all = append(all, best)
		}
		if want := all[len(p):]; !slices.Equal(got[i], want) {
			t.Errorf("prompt %d: %v, want %v", i, got[i], want)
		}
	}
	lengths, err := m.Followed(t.Context(), prompts, got, ScoreOptions{Workers: 3})
	if err != nil || !slices.Equal(lengths, []int{n, n, n, n}) {
		t.Errorf("a model follows %v of its own tokens: %v", lengths, err)
	}
	paths := [][]int32{slices.Clone(got[0]), got[1][:4], slices.Clone(got[2]), nil}
	paths[0][5] = (paths[0][5] + 1) % int32(m.p.vocab)
	paths[2][0] = (paths[2][0] + 1) % int32(m.p.vocab)
	lengths, err = m.Followed(t.Context(), prompts, paths, ScoreOptions{})
	if err != nil || !slices.Equal(lengths, []int{5, 4, 0, 0}) {
		t.Errorf("%v: %v", lengths, err)
	}
	if _, err := m.Greedy(t.Context(), [][]int32{{}}, 1, ScoreOptions{}); !errors.Is(err, fault.Refused) {
		t.Errorf("an empty prompt: %v", err)
	}
	if none, err := m.Greedy(t.Context(), prompts, 0, ScoreOptions{}); err != nil || none[0] != nil {
		t.Errorf("no tokens: %v, %v", none, err)
	}
}

func TestRepeated(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		n      int
		want   []int32
	}{
		{[]int32{1, 2, 3, 4, 1, 2}, 8, []int32{3, 4, 1, 2}}, {[]int32{1, 2, 3, 4, 1, 2}, 1, []int32{3}},
		{[]int32{1, 2, 5, 1, 2, 6, 1, 2}, 2, []int32{6, 1}}, {[]int32{4, 4, 4}, 3, []int32{4}},
		{[]int32{1, 2, 3}, 8, nil}, {[]int32{1}, 8, nil}, {nil, 8, nil}, {[]int32{1, 2, 1, 2}, 0, nil},
	} {
		if got := repeated(c.tokens, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%v, %d: %v, want %v", c.tokens, c.n, got, c.want)
		}
	}
}
