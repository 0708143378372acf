package eval

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ggforge/fault"
)

// TestScore checks with each kind of layer that answers are those of logits of each sequence alone, to the bit, with any
// number of workers and tokens at once, whether sequences share prefixes or not, and in one pass or several.
func TestScore(t *testing.T) {
	ids := text(400)
	group := func(prefix int, lengths ...int) (g []Sequence) {
		for i, n := range lengths {
			tokens := slices.Concat(ids[:prefix], ids[100+30*i:][:n])
			s := Continuation(tokens, max(1, prefix-1), len(tokens))
			s.Queries = append(s.Queries, Query{len(tokens) - 1, 5}, Query{0, 7})
			g = append(g, s)
		}
		return g
	}
	groups := [][]Sequence{group(20, 7, 3, 11, 1), group(70, 5, 0, 66), group(3, 9), nil, group(0, 4, 6, 4),
		{{Tokens: ids[:8]}, Continuation(ids[:8], 1, 8)}}
	shared := 0
	for _, c := range slices.Concat(kinds, forwardKinds) {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(listed(c.arch, c.keys, c.tensors))
			if err != nil {
				t.Fatal(err)
			}
			if m.sharesPrefixes(136) {
				shared++
			}
			score := func(groups [][]Sequence, workers, tokens, bytes int) [][][]Answer {
				defer func(n, k int) { tokensPerBlock, streamBytes = n, k }(tokensPerBlock, streamBytes)
				tokensPerBlock, streamBytes = tokens, bytes
				last := 0.0
				all, err := m.Score(context.Background(), groups, ScoreOptions{Workers: workers, Progress: func(p Progress) {
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
				return all
			}
			want := score(groups, 1, 2048, 1<<30)
			equal := func(what string, got [][][]Answer) {
				for i := range want {
					for k := range want[i] {
						if !slices.Equal(got[i][k], want[i][k]) {
							t.Errorf("%s: group %d, sequence %d: %v, want %v", what, i, k, got[i][k], want[i][k])
						}
					}
				}
			}
			equal("three workers, small blocks", score(groups, 3, 90, 1<<30))
			equal("several passes", score(groups, 2, 100, 1))
			for i, g := range groups {
				for k, s := range g {
					if len(s.Queries) == 0 {
						continue
					}
					st, err := m.Forward(context.Background(), Run{Tokens: s.Tokens, Chunk: len(s.Tokens), Workers: 1})
					if err != nil {
						t.Fatal(err)
					}
					rows := make([][]float32, len(s.Tokens))
					if err := st.Logits(context.Background(), func(row int, logits []float32) error {
						rows[row] = slices.Clone(logits)
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					for j, q := range s.Queries {
						row := rows[q.At]
						loss, err := m.loss(slices.Clone(row), int(q.Token))
						if err != nil {
							t.Fatal(err)
						}
						if got := want[i][k][j]; got.LogP != -loss || got.Top != (row[q.Token] == slices.Max(row)) ||
							math.IsNaN(got.LogP) {
							t.Fatalf("group %d, sequence %d, query %d: %+v, alone %v", i, k, j, got, -loss)
						}
					}
				}
			}
		})
	}
	if shared < 8 {
		t.Errorf("%d models share prefixes", shared)
	}
}

// TestScoreRefused checks what Score refuses.
func TestScoreRefused(t *testing.T) {
	m, err := New(listed(kinds[0].arch, kinds[0].keys, kinds[0].tensors))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    Sequence
		kind error
	}{
		{Sequence{[]int32{1, 2}, []Query{{2, 1}}}, fault.Usage}, {Sequence{[]int32{1, 2}, []Query{{-1, 1}}}, fault.Usage},
		{Sequence{[]int32{1, 2}, []Query{{1, 300}}}, fault.Refused}, {Sequence{[]int32{1, 2}, []Query{{1, -1}}}, fault.Refused},
		{Sequence{[]int32{1, 300}, []Query{{1, 1}}}, fault.Refused},
	} {
		if _, err := m.Score(context.Background(), [][]Sequence{{c.s}}, ScoreOptions{}); !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

// TestMostProbable compares with sorting, ties included.
func TestMostProbable(t *testing.T) {
	logits := make([]float32, 200)
	for i := range logits {
		logits[i] = float32(i * 37 % 50)
	}
	var want []Candidate
	for i, x := range logits {
		want = append(want, Candidate{int32(i), float64(x)})
	}
	slices.SortStableFunc(want, func(a, b Candidate) int { return int(b.LogP - a.LogP) })
	for _, n := range []int{0, 1, 2, 7, 200} {
		if got := mostProbable(logits, n); !slices.Equal(got, want[:n]) {
			t.Errorf("%d: %v, want %v", n, got, want[:n])
		}
	}
}
