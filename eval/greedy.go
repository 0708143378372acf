package eval

import (
	"context"
	"slices"

	"ggforge/fault"
)

// guessed is the largest number of tokens that Greedy guesses of a continuation.
const guessed = 8

// Greedy returns the greedy continuation of each prompt: n tokens, each the most probable one after those before it,
// the first of equals. A token that ends a text is a token like others. A prompt without tokens is an error of kind
// fault.Refused.
//
// Nothing is kept of a run, so all prompts run again for each further token: with n - 1 further runs the weights are
// read n times. Fewer are needed where a text repeats itself: what followed the last two tokens before is guessed, and
// of a guess the tokens stand that the model finds the most probable, too. The result has the same bits as without.
func (m *Model) Greedy(ctx context.Context, prompts [][]int32, n int, o ScoreOptions) ([][]int32, error) {
	found := make([][]int32, len(prompts))
	for i, p := range prompts {
		if len(p) == 0 {
			return nil, fault.Errorf(fault.Refused, "prompt %d of %d has no tokens", i+1, len(prompts))
		}
	}
	for least := 0; least < n; {
		var groups [][]Sequence
		var of []int
		for i, p := range prompts {
			if len(found[i]) == n {
				continue
			}
			text := slices.Concat(p, found[i])
			guess := repeated(text, min(guessed, n-len(found[i])-1))
			s := Sequence{Tokens: append(text, guess...)}
			for at := len(text) - 1; at < len(s.Tokens); at++ {
				s.Queries = append(s.Queries, Query{At: at})
			}
			groups, of = append(groups, []Sequence{s}), append(of, i)
		}
		run := o
		if o.Progress != nil {
			run.Progress = func(p Progress) {
				o.Progress(Progress{Done: (float64(least) + p.Done) / float64(n)})
			}
		}
		answers, err := m.Score(ctx, groups, run)
		if err != nil {
			return nil, err
		}
		least = n
		for k, i := range of {
			s := groups[k][0]
			for j, a := range answers[k][0] {
				found[i] = append(found[i], a.Best)
				if at := s.Queries[j].At + 1; at < len(s.Tokens) && s.Tokens[at] != a.Best {
					break // what follows was answered after another token
				}
			}
			least = min(least, len(found[i]))
		}
	}
	return found, nil
}

// repeated returns what follows the last earlier occurrence of the last two tokens, at most n tokens.
func repeated(tokens []int32, n int) []int32 {
	end := len(tokens)
	for i := end - 3; i >= 0 && n > 0; i-- {
		if tokens[i] == tokens[end-2] && tokens[i+1] == tokens[end-1] {
			return slices.Clone(tokens[i+2 : min(i+2+n, end)])
		}
	}
	return nil
}

// Followed returns how many tokens of each path a model would have chosen as Greedy does, after the prompt and the
// tokens of the path so far, before its first other choice. All prompts run once.
func (m *Model) Followed(ctx context.Context, prompts, paths [][]int32, o ScoreOptions) ([]int, error) {
	if len(prompts) != len(paths) {
		return nil, fault.Errorf(fault.Usage, "%d prompts and %d continuations", len(prompts), len(paths))
	}
	groups := make([][]Sequence, len(prompts))
	for i, p := range prompts {
		if len(p) == 0 {
			return nil, fault.Errorf(fault.Refused, "prompt %d of %d has no tokens", i+1, len(prompts))
		}
		groups[i] = []Sequence{Continuation(slices.Concat(p, paths[i]), len(p), len(p)+len(paths[i]))}
	}
	answers, err := m.Score(ctx, groups, o)
	if err != nil {
		return nil, err
	}
	list := make([]int, len(paths))
	for i, path := range paths {
		for list[i] < len(path) && answers[i][0][list[i]].Best == path[list[i]] {
			list[i]++
		}
	}
	return list, nil
}
