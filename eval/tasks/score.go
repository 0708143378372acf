package tasks

import (
	"context"
	"fmt"
	"math"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
)

// Options are the options of Score.
type Options struct {
	// LikeTool gives the figures of llama-perplexity where it slips: the first token of the second choice of a Winogrande
	// task is looked up at the end of the first choice's sentence; and if both choices are the same, the second one counts
	// as chosen.
	LikeTool bool
	Workers  int
	Progress func(eval.Progress) // or nil
	Warn     func(...string)     // is called with what is uncommon about tasks
	// Tokens, if it is not nil, is called before the model runs with all tokens, and the number of those of the longest
	// sequence.
	Tokens func(all []int32, longest int)
}

// Outcome is what a model makes of a task.
type Outcome struct {
	// Means are, by answer, the mean of ln p over its scored tokens; NaN if it has none. Sums are the sums. Bytes
	// are the bytes of answers.
	Means, Sums []float64
	Bytes       []int
	Chosen      int // the answer with the largest mean, the first one of equal ones; -1 for none
	Right       bool
}

// scoring is a task as sequences of tokens.
type scoring struct {
	sequences []eval.Sequence
	first     []int // by sequence the first query that counts; those before it are for others
	count     []int // and how many do
	slipped   bool  // the first sequence's query number 0 is the first of the second
}

// Score runs a model over tasks and returns the outcome of each. Texts become tokens with BOS if the vocabulary asks for
// it, and names of special tokens in them are text.
//
// Of HellaSwag and multiple choice a sequence is context, space and answer, and scored are the tokens from the first one
// on in which answers differ. If the tokens of an answer are the beginning of all others', the last token that all have
// in common is scored, too. Of Winogrande a sequence is the sentence with a choice, and scored are the tokens
// after the choice, if there are more than three after the first difference, else those from the difference on; the last
// one, mostly a full stop, is left out if there are others.
func Score(ctx context.Context, m *eval.Model, v *vocab.Vocab, list []Task, o Options) ([]Outcome, error) {
	all := make([]scoring, len(list))
	groups := make([][]eval.Sequence, len(list))
	var ids []int32
	longest := 0
	for i := range list {
		var err error
		if all[i], err = list[i].sequences(v, o); err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].Place, err)
		}
		groups[i] = all[i].sequences
		for _, s := range groups[i] {
			ids, longest = append(ids, s.Tokens...), max(longest, len(s.Tokens))
		}
	}
	if o.Tokens != nil {
		o.Tokens(ids, longest)
	}
	answers, err := m.Score(ctx, groups, eval.ScoreOptions{Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(list))
	for i := range list {
		outcomes[i] = list[i].outcome(&all[i], answers[i], o.LikeTool)
	}
	return outcomes, nil
}

func encode(v *vocab.Vocab, text string) ([]int32, error) {
	return v.Encode(text, vocab.Options{AddSpecial: true})
}

// sequences returns a sequence for each answer.
func (t *Task) sequences(v *vocab.Vocab, o Options) (x scoring, err error) {
	ids := make([][]int32, len(t.Answers))
	for i, answer := range t.Answers {
		text := t.Before + answer + t.After
		if t.Kind != Winogrande {
			text = t.Before + " " + answer
		}
		if ids[i], err = encode(v, text); err != nil {
			return x, err
		}
		if len(ids[i]) < 2 {
			return x, fault.Errorf(fault.Refused, "answer %d has no token to score after another one", i+1)
		}
	}
	n := common(ids)
	if t.Kind == Winogrande {
		return t.choices(v, ids, n, o)
	}
	for i := range ids {
		if len(ids[i]) == n {
			o.Warn(fmt.Sprintf("%s: the tokens of answer %d are the beginning of the others': the last token that all have "+
				"in common is scored, too", t.Place, i+1))
			n--
			break
		}
	}
	n = max(1, n)
	for _, tokens := range ids {
		x.add(eval.Continuation(tokens, n, len(tokens)))
	}
	return x, nil
}

// add adds a sequence of which all queries count.
func (x *scoring) add(s eval.Sequence) {
	x.sequences, x.first, x.count = append(x.sequences, s), append(x.first, 0), append(x.count, len(s.Queries))
}

// common returns how many tokens all sequences begin with.
func common(ids [][]int32) int {
	for n := 0; ; n++ {
		for _, x := range ids {
			if n == len(x) || x[n] != ids[0][n] {
				return n
			}
		}
	}
}

// choices returns the sequences of the choices of a Winogrande task, of which the first n tokens are the same.
func (t *Task) choices(v *vocab.Vocab, ids [][]int32, n int, o Options) (x scoring, err error) {
	skip := len(ids[0])-n > 3 && len(ids[1])-n > 3
	for i, tokens := range ids {
		first := n
		if skip {
			head, err := encode(v, t.Before+t.Answers[i])
			if err != nil {
				return x, err
			}
			first = len(head)
		}
		first = max(1, first)
		end := len(tokens)
		if end-first > 1 {
			end--
		}
		x.add(eval.Continuation(tokens, first, end))
		if x.count[i] == 0 {
			o.Warn(fmt.Sprintf("%s: choice %d has no token to score", t.Place, i+1))
		}
	}
	if second := &x.sequences[1]; o.LikeTool && !skip && x.count[1] > 0 {
		last := len(ids[0]) - 1
		x.sequences[0].Queries = append([]eval.Query{{At: last, Token: second.Queries[0].Token}}, x.sequences[0].Queries...)
		x.first[0], x.slipped = 1, true
	}
	return x, nil
}

// outcome returns the outcome of a task by the answers to the queries of its sequences.
func (t *Task) outcome(x *scoring, answers [][]eval.Answer, likeTool bool) Outcome {
	o := Outcome{Chosen: -1}
	for i, list := range answers {
		sum, own := 0.0, list[x.first[i]:]
		for k, a := range own {
			if i == 1 && k == 0 && x.slipped {
				a = answers[0][0]
			}
			sum += a.LogP
		}
		mean := math.NaN()
		if len(own) > 0 {
			mean = sum / float64(len(own))
		}
		o.Means, o.Sums, o.Bytes = append(o.Means, mean), append(o.Sums, sum), append(o.Bytes, len(t.Answers[i]))
	}
	switch {
	case t.Kind == Winogrande && o.Means[0] > o.Means[1]:
		o.Chosen = 0
	case t.Kind == Winogrande && (likeTool || o.Means[0] <= o.Means[1]):
		o.Chosen = 1
	case t.Kind != Winogrande:
		o.Chosen = largest(o.Means)
	}
	o.Right = o.Chosen >= 0 && t.Right[o.Chosen]
	return o
}

// largest returns the place of the largest value, the first one of equal ones.
func largest(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}
