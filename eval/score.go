package eval

import (
	"context"
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// Query asks for the probability of a token as the successor of Tokens[At] of a sequence.
type Query struct {
	At    int
	Token int32
}

// Sequence is tokens that a model reads, from the first position of its context on, and what is asked about them.
type Sequence struct {
	Tokens  []int32
	Queries []Query
}

// Continuation returns the sequence that asks for each of tokens [first, end), first at least 1.
func Continuation(tokens []int32, first, end int) Sequence {
	s := Sequence{Tokens: tokens}
	for i := first; i < end; i++ {
		s.Queries = append(s.Queries, Query{i - 1, tokens[i]})
	}
	return s
}

// Answer is that to a Query.
type Answer struct {
	LogP float64 // ln of the probability
	Top  bool    // no token is more probable
	Best int32   // the most probable token, the first of equals
}

// Candidate is a token of the vocabulary and ln of its probability.
type Candidate struct {
	Token int32
	LogP  float64
}

// ScoreOptions are the options of Score.
type ScoreOptions struct {
	Workers  int
	Progress func(Progress) // or nil
	// Found, unless it is nil, is called for each query with the Best most probable tokens, the most probable one first, of
	// equal ones that with the smaller id. Calls may be concurrent.
	Best  int
	Found func(group, sequence, query int, best []Candidate)
}

// Score returns the answers to all queries, by group, sequence and query. A group is sequences that may begin with
// the same tokens. These run once, if the model's tokens depend on each other by attention alone. Tokens after the last
// one of a query do not run. The answers of a sequence have the same bits whatever the others are.
//
// All sequences go through a layer before the next one, so that each weight is read once. Memory: that of Forward; if
// the stream had more than four gigabytes, groups go through in several passes, for each of which the weights are read
// again.
func (m *Model) Score(ctx context.Context, groups [][]Sequence, o ScoreOptions) ([][][]Answer, error) {
	if err := m.checkContinues(); err != nil {
		return nil, err
	}
	answers := make([][][]Answer, len(groups))
	all, costs := 0, make([]int, len(groups))
	for i, g := range groups {
		answers[i] = make([][]Answer, len(g))
		for k := range g {
			if err := m.checkSequence(&g[k]); err != nil {
				return nil, fmt.Errorf("sequence %d of group %d: %w", k+1, i+1, err)
			}
			answers[i][k] = make([]Answer, len(g[k].Queries))
			costs[i] += read(&g[k])
		}
		all += costs[i]
	}
	most := max(tokensPerBlock, streamBytes/(4*m.p.width))
	done := 0
	for from := 0; from < len(groups); {
		to, tokens := from, 0
		for to < len(groups) && (to == from || tokens+costs[to] <= most) {
			tokens += costs[to]
			to++
		}
		var progress func(Progress)
		if o.Progress != nil {
			progress = func(p Progress) {
				o.Progress(Progress{Done: (float64(done) + p.Done*float64(tokens)) / float64(all)})
			}
		}
		if tokens > 0 {
			if err := m.scoreSome(ctx, groups[from:to], answers[from:to], from, o, progress); err != nil {
				return nil, err
			}
		}
		done += tokens
		from = to
	}
	return answers, nil
}

// checkContinues returns an error if the model does not predict how a text goes on.
func (m *Model) checkContinues() error {
	if err := m.checkPredicts(); err != nil {
		return err
	}
	if m.Decodes() || m.output == nil {
		return fault.Errorf(fault.Unsupported, "%s: this %q predicts no continuations of a text alone", m.source.Path,
			m.p.arch)
	}
	return nil
}

// checkSequence returns an error if a query is not about a token of the sequence, or asks for none of the vocabulary.
func (m *Model) checkSequence(s *Sequence) error {
	for _, q := range s.Queries {
		if q.At < 0 || q.At >= len(s.Tokens) {
			return fault.Errorf(fault.Usage, "the successor of token %d, of %d", q.At, len(s.Tokens))
		}
		if q.Token < 0 || int(q.Token) >= m.p.vocab {
			return fault.Errorf(fault.Refused, "%s: token %d, want less than %d", m.source.Path, q.Token, m.p.vocab)
		}
	}
	return nil
}

// read returns how many tokens of a sequence a model reads for its queries.
func read(s *Sequence) int {
	n := 0
	for _, q := range s.Queries {
		n = max(n, q.At+1)
	}
	return n
}

// question is a query, the row of states that answers it, and the place of the answer.
type question struct {
	row    int
	token  int32
	answer *Answer
	place  place
}

// place is that of a query.
type place struct{ group, sequence, query int }

// scored collects the runs over sequences and the questions to their states.
type scored struct {
	runs      []*Run
	questions []question
	rows      int
	before    int // groups before the first one
}

// ask adds the queries of a sequence. row returns the row of a token.
func (x *scored) ask(s *Sequence, answers []Answer, group, sequence int, row func(at int) int) {
	for i, q := range s.Queries {
		x.questions = append(x.questions, question{row(q.At), q.Token, &answers[i], place{x.before + group, sequence, i}})
	}
}

// scoreSome is Score for groups whose streams are in memory together; there are so many groups before them.
func (m *Model) scoreSome(ctx context.Context, groups [][]Sequence, answers [][][]Answer, before int, o ScoreOptions,
	progress func(Progress)) error {
	workers := o.Workers
	longest := 0
	for _, g := range groups {
		for k := range g {
			longest = max(longest, read(&g[k]))
		}
	}
	x := scored{before: before}
	if m.sharesPrefixes(longest) {
		x.share(groups, answers, longest)
	} else {
		x.byLength(groups, answers)
	}
	share := m.layerShare(&Run{Chunk: 1})
	for _, r := range x.runs {
		r.Workers = workers
		if progress != nil {
			r.Progress = func(p Progress) { progress(Progress{Done: share * p.Done}) }
		}
	}
	s, err := m.newStream(ctx, x.runs, newWorkspace(workers))
	if err != nil {
		return err
	}
	for i := range m.layers {
		if err := s.runLayer(i, x.runs); err != nil {
			return fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
	}
	slices.SortStableFunc(x.questions, func(a, b question) int { return a.row - b.row })
	st, first, err := x.states(s, workers)
	if err != nil {
		return err
	}
	return st.logits(ctx, func(row int, logits []float32) error {
		return m.answer(x.questions[first[row]:first[row+1]], logits, &o)
	}, func(rows int) error {
		if progress != nil {
			progress(Progress{Done: share + (1-share)*float64(rows)/float64(st.Rows)})
		}
		return nil
	})
}

// share adds one run in which the sequences of a group continue the tokens that they have in common.
func (x *scored) share(groups [][]Sequence, answers [][][]Answer, longest int) {
	r := &Run{Chunk: longest, prefixes: new(prefixes)}
	x.runs = []*Run{r}
	add := func(ids []int32, of, position int) (chunk int) {
		r.Tokens = append(r.Tokens, ids...)
		for i := range ids {
			r.prefixes.positions = append(r.prefixes.positions, position+i)
		}
		r.Lengths, r.prefixes.of = append(r.Lengths, len(ids)), append(r.prefixes.of, of)
		return len(r.Lengths) - 1
	}
	for i, group := range groups {
		for from := 0; from < len(group); {
			to, n := grouped(group, from)
			some := group[from:to]
			first, of := len(r.Tokens), -1
			if n > 0 {
				of = add(some[0].Tokens[:n], -1, 0)
			}
			for k := range some {
				s := &some[k]
				start, ids := len(r.Tokens)-n, s.Tokens[:read(s)]
				if len(ids) > n {
					add(ids[n:], of, n)
				}
				x.ask(s, answers[i][from+k], i, from+k, func(at int) int {
					if at < n {
						return first + at
					}
					return start + at
				})
			}
			from = to
		}
	}
	x.rows = len(r.Tokens)
}

// grouped returns the sequences [from, to) of a group that go through a layer together, and how many tokens all of them
// begin with: as many sequences as make a block, at least one.
func grouped(group []Sequence, from int) (to, common int) {
	first := group[from].Tokens[:read(&group[from])]
	common = len(first)
	tokens := common
	for to = from + 1; to < len(group); to++ {
		ids := group[to].Tokens[:read(&group[to])]
		n := 0
		for n < min(common, len(ids)) && first[n] == ids[n] {
			n++
		}
		if n == 0 || tokens+len(ids)-n > tokensPerBlock {
			break
		}
		// what earlier ones do not share any more runs for each of them
		tokens += len(ids) - n + (to-from-1)*(common-n)
		common = n
	}
	if to == from+1 {
		common = 0
	}
	return to, common
}

// byLength adds a run for each length of sequences.
func (x *scored) byLength(groups [][]Sequence, answers [][][]Answer) {
	type part struct{ group, at, n int }
	var order []part
	for i, group := range groups {
		for k := range group {
			if n := read(&group[k]); n > 0 {
				order = append(order, part{i, k, n})
			}
		}
	}
	slices.SortStableFunc(order, func(a, b part) int { return a.n - b.n })
	for _, p := range order {
		if len(x.runs) == 0 || x.runs[len(x.runs)-1].Chunk != p.n {
			x.runs = append(x.runs, &Run{Chunk: p.n})
		}
		r, s, start := x.runs[len(x.runs)-1], &groups[p.group][p.at], x.rows
		r.Tokens = append(r.Tokens, s.Tokens[:p.n]...)
		x.ask(s, answers[p.group][p.at], p.group, p.at, func(at int) int { return start + at })
		x.rows += p.n
	}
}

// states returns the normalized last states of the rows that questions are about, and the first question of each row,
// with the number of all at the end. Questions are sorted by row.
func (x *scored) states(s *stream, workers int) (st *States, first []int, err error) {
	width, kept := s.m.p.width, 0
	for i, q := range x.questions {
		if i > 0 && x.questions[i-1].row == q.row {
			continue
		}
		copy(s.h[kept*width:][:width], s.h[q.row*width:][:width]) // rows rise
		kept++
		first = append(first, i)
	}
	s.h = s.h[:kept*width]
	st, err = s.finish(&Run{Workers: workers})
	return st, append(first, len(x.questions)), err
}

// answer answers questions by the logits of their row, which it overwrites.
func (m *Model) answer(questions []question, logits []float32, o *ScoreOptions) error {
	most, _ := vecmath.Max(logits)
	var first []Candidate
	if o.Found != nil {
		first = mostProbable(logits, o.Best)
	}
	best := int32(slices.Index(logits, most))
	for _, q := range questions {
		q.answer.Best = best
		q.answer.LogP = float64(logits[q.token])
		q.answer.Top = logits[q.token] == most
	}
	zero, err := m.normalizer(logits, logits)
	for _, q := range questions {
		q.answer.LogP -= zero
	}
	for i := range first {
		first[i].LogP -= zero
	}
	if o.Found != nil && err == nil {
		for _, q := range questions {
			o.Found(q.place.group, q.place.sequence, q.place.query, first)
		}
	}
	return err
}

// mostProbable returns the tokens of the n largest logits, with these, the largest one first, of equal ones that of the smaller token.
func mostProbable(logits []float32, n int) []Candidate {
	var list []Candidate
	for token, x := range logits {
		v := float64(x)
		if len(list) == n && (n == 0 || !(v > list[n-1].LogP)) {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, v, func(c Candidate, v float64) int {
			if c.LogP >= v {
				return -1
			}
			return 1
		})
		list = slices.Insert(list, at, Candidate{int32(token), v})
		list = list[:min(len(list), n)]
	}
	return list
}
