package eval

import (
	"context"
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// MeasureSequences is Measure over sequences of any length, for the tokens that their queries ask for; results are by
// sequence and query, and each sequence is a chunk. The results of a sequence have the same bits whatever the others
// are.
func MeasureSequences(ctx context.Context, base *Model, models []*Model, list []Sequence,
	o ScoreOptions) ([]*Measured, error) {
	c := &sequenceComparison{sides: append([]*Model{base}, models...), results: make([]*Measured, len(models)),
		workers: o.Workers, workspace: newWorkspace(o.Workers)}
	for _, m := range c.sides {
		if err := m.comparable(base.p.vocab, base.source.Path); err != nil {
			return nil, err
		}
		if err := m.checkContinues(); err != nil {
			return nil, err
		}
	}
	all, longest := 0, 1
	for i := range list {
		if err := base.checkSequence(&list[i]); err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i+1, err)
		}
		n := read(&list[i])
		all, longest = all+n, max(longest, n)
	}
	for i := range c.results {
		c.results[i] = &Measured{chunks: len(list)}
	}
	// Rows of all sides are in one order.
	c.shares = !slices.ContainsFunc(c.sides, func(m *Model) bool { return !m.sharesPrefixes(longest) })
	most := max(tokensPerBlock, streamBytes/(4*base.p.width*len(c.sides)))
	done := 0
	for from := 0; from < len(list); {
		to, tokens := from, 0
		for to < len(list) && (to == from || tokens+read(&list[to]) <= most) {
			tokens += read(&list[to])
			to++
		}
		c.report = func(share float64) {
			if o.Progress != nil {
				o.Progress(Progress{Done: (float64(done) + share*float64(tokens)) / float64(max(1, all))})
			}
		}
		if tokens > 0 {
			if err := c.pass(ctx, list[from:to]); err != nil {
				return nil, err
			}
		}
		from, done = to, done+tokens
	}
	return c.results, nil
}

// sequenceComparison is a comparison over sequences in progress.
type sequenceComparison struct {
	sides     []*Model // the base first
	results   []*Measured
	shares    bool // one run has all sequences, otherwise there is one for each length
	workers   int
	workspace *workspace
	report    func(share float64)
}

// runs returns the runs over sequences, for one side, and the questions to their states, sorted by row, each with the
// number of its query.
func (c *sequenceComparison) runs(list []Sequence) (x *scored, numbers []int) {
	groups, answers := make([][]Sequence, len(list)), make([][][]Answer, len(list))
	longest, number := 1, map[*Answer]int{}
	for i := range list {
		longest = max(longest, read(&list[i]))
		a := make([]Answer, len(list[i].Queries))
		for k := range a {
			number[&a[k]] = len(number)
		}
		groups[i], answers[i] = list[i:i+1], [][]Answer{a}
	}
	x = new(scored)
	if c.shares {
		x.share(groups, answers, longest)
	} else {
		x.byLength(groups, answers)
	}
	for _, r := range x.runs {
		r.Workers = c.workers
	}
	slices.SortStableFunc(x.questions, func(a, b question) int { return a.row - b.row })
	for _, q := range x.questions {
		numbers = append(numbers, number[q.answer])
	}
	return x, numbers
}

// pass runs all models over sequences that are in memory together.
func (c *sequenceComparison) pass(ctx context.Context, list []Sequence) error {
	streams, runs, layers := make([]*stream, len(c.sides)), make([]*scored, len(c.sides)), 0
	var numbers []int
	for k, m := range c.sides {
		runs[k], numbers = c.runs(list)
		var err error
		if streams[k], err = m.newStream(ctx, runs[k].runs, c.workspace); err != nil {
			return err
		}
		layers = max(layers, len(m.layers))
	}
	if len(numbers) == 0 {
		return nil
	}
	if err := c.distances(streams, runs[0].questions, numbers, 0); err != nil {
		return err
	}
	inside := c.sides[0].layerShare(&Run{Chunk: 1})
	for i := range layers {
		for k, s := range streams {
			if i >= len(s.m.layers) {
				continue
			}
			if err := s.runLayer(i, runs[k].runs); err != nil {
				return fmt.Errorf("%s: layer %d: %w", s.m.source.Path, i, err)
			}
			c.report(inside * float64(i*len(streams)+k+1) / float64(layers*len(streams)))
		}
		if err := c.distances(streams, runs[0].questions, numbers, i+1); err != nil {
			return err
		}
	}
	states := make([]*States, len(streams))
	for k, s := range streams {
		st, first, err := runs[k].states(s, c.workers)
		if err != nil {
			return err
		}
		if st.Rows != len(numbers) {
			return fault.Errorf(fault.Usage, "%d queries about %d tokens: want one about each", len(numbers), st.Rows)
		}
		for _, i := range first[:st.Rows] {
			st.run.Next = append(st.run.Next, runs[k].questions[i].token)
		}
		st.run.Lengths = []int{st.Rows}
		states[k] = st
	}
	found, err := comparePositions(ctx, states[0].output(ctx), states[1:],
		func(done float64) { c.report(inside + (1-inside)*done) })
	for k := range found {
		list := make([]positionResult, len(numbers))
		for row, number := range numbers {
			list[number] = found[k][row]
		}
		c.results[k].positions = append(c.results[k].positions, list...)
	}
	return err
}

// distances is layerDistances for the rows of questions.
func (c *sequenceComparison) distances(streams []*stream, questions []question, numbers []int, i int) error {
	base := streams[0]
	for k, s := range streams[1:] {
		if s.m.p.width != base.m.p.width || len(s.m.layers) != len(base.m.layers) || len(s.h) != len(base.h) {
			continue
		}
		far := &c.results[k].layers
		if i == len(*far) {
			*far = append(*far, nil)
		}
		width := s.m.p.width
		list, scratch := make([]stateDistance, len(questions)), make([][]float32, len(s.scratch))
		err := parallel.For(s.ctx, len(scratch), len(questions), func(at, worker int) error {
			row := questions[at].row
			x, b, d := s.h[row*width:][:width], base.h[row*width:][:width], buffer.Resize(&scratch[worker], width)
			for j, v := range x {
				d[j] = v - b[j]
			}
			list[numbers[at]] = stateDistance{vecmath.SumSquares(d, 0), vecmath.SumSquares(b, 0)}
			return nil
		})
		if err != nil {
			return err
		}
		(*far)[i] = append((*far)[i], list...)
	}
	return nil
}
