package eval

import (
	"context"
	"slices"

	"ggforge/internal/kernel/gemm"
)

// Run is the tokens that a model is run over, and how.
type Run struct {
	Tokens  []int32 // chunks, one after the other
	Chunk   int     // tokens of a chunk, at least 1; len(Tokens) is a multiple
	First   int     // the first position of each chunk whose state is wanted; 0 is Chunk/2 where tokens are predicted
	Workers int
	// NextN runs the MTP (NextN) layers after the others, too, so that Inputs is called with theirs: those of all tokens
	// of a chunk but the last, of a second such layer all but the last two. First is 0.
	NextN bool
	// Inputs, if set, is called with the inputs of each linear layer, rows in the order of Tokens. Calls come one after
	// the other.
	Inputs func(in Inputs) error
	// HalfGELU rounds inputs and outputs of GELU to 16 bits, as llama.cpp's table does, for comparing with it.
	HalfGELU bool
	// Progress is called after each part of the work, from one goroutine; it may be nil.
	Progress func(Progress)

	// Sources are the texts that the encoder of an encoder-decoder reads, one for each chunk, and Tokens are those that
	// its decoder reads. Then chunks have Lengths, whose sum is len(Tokens), Chunk is about their mean, First is 0, and
	// each token predicts that of Next, of the same length as Tokens. SourceTargets makes such runs.
	Sources [][]int32
	Lengths []int
	Next    []int32

	encoded  *encoderStates // the last states of the encoder for Sources
	prefixes *prefixes      // of chunks that continue others, or nil
	at       int            // the position of the first token of each chunk
	dry      bool           // linear layers output zeros: their weights are not read
}

// Chunks returns the number of chunks.
func (r *Run) Chunks() int {
	if r.Lengths != nil {
		return len(r.Lengths)
	}
	return len(r.Tokens) / max(1, r.Chunk)
}

// Spread returns the run over n chunks that are spread evenly over its own, in their order; over all for n = 0, or if
// there are no more. It is for runs without Lengths.
func (r *Run) Spread(n int) Run {
	c, all := *r, r.Chunks()
	if n == 0 || n >= all {
		return c
	}
	c.Tokens = make([]int32, 0, n*r.Chunk)
	for i := range n {
		at := i * all / n
		c.Tokens = append(c.Tokens, r.Tokens[at*r.Chunk:(at+1)*r.Chunk]...)
	}
	return c
}

// chunks returns a run over chunks [from, to) only.
func (r *Run) chunks(from, to int) Run {
	c := *r
	if r.Lengths == nil {
		c.Tokens = r.Tokens[from*r.Chunk : to*r.Chunk]
		return c
	}
	a, n := 0, 0
	for i, length := range r.Lengths[:to] {
		if i < from {
			a += length
		} else {
			n += length
		}
	}
	c.Tokens, c.Lengths = r.Tokens[a:a+n], r.Lengths[from:to]
	if r.Sources != nil {
		c.Sources, c.Next = r.Sources[from:to], r.Next[a:a+n]
	}
	return c
}

// Positions returns the number of tokens that are predicted in chunk i.
func (r *Run) Positions(i int) int {
	if r.Lengths != nil {
		return r.Lengths[i]
	}
	first := r.First
	if first == 0 {
		first = r.Chunk / 2
	}
	return r.Chunk - first - 1
}

// positions returns the number of tokens that are predicted, and ends of chunks among them.
func (r *Run) positions() (n int, ends []int) {
	for i := range r.Chunks() {
		n += r.Positions(i)
		ends = append(ends, n)
	}
	return n, ends
}

// Ends returns the number of predicted positions up to the end of each chunk.
func (r *Run) Ends() []int {
	_, ends := r.positions()
	return ends
}

// predicted returns the token that the state of a row predicts, and its number among those that are predicted; -1 if it
// predicts none, because its successor is in the next chunk.
func (r *Run) predicted(row int) (at, token int) {
	if r.Next != nil {
		return row, int(r.Next[row])
	}
	keep := r.Chunk - r.First
	chunk, i := row/keep, row%keep
	if i == keep-1 {
		return -1, 0
	}
	return chunk*(keep-1) + i, int(r.Tokens[chunk*r.Chunk+r.First+i+1])
}

// Progress is how far a run is.
type Progress struct {
	Done float64 // share of the work
	// Chunks are those whose tokens are predicted already, Value is the perplexity over
	// them. Chunks go through the model together, so that there is none until its end.
	Chunks int
	Value  float64
}

// Inputs are the inputs (activations) of a linear layer.
type Inputs struct {
	Name             string // of the tensor
	Matrix, Matrices int    // index in the tensor and their number, usually 0 of 1
	Routed           bool   // tokens choose among the matrices
	Single           bool   // the runtime multiplies row by row, so that llama-imatrix does not count it
	Rows, Columns    int
	X                []float32 // [Rows, Columns], valid during the call
	// Product is the same number for tensors that are multiplied with the same rows in one product; they are reported
	// one after the other.
	Product int
}

// States are the last states of a model, normalized.
type States struct {
	model *Model
	width int
	Rows  int // Chunk - First for each chunk
	data  []float32
	run   Run
}

// stream is the residual stream of some chunks, with the buffers of a run.
type stream struct {
	m                *Model
	r                *Run
	ctx              context.Context
	h                []float32 // [tokens, width]
	firstToken       int       // the first token of those that go through a layer together
	firstLayerValues []float32 // of the first layer, for mixers that need them: [tokens, width]
	firstLayerStart  int       // tokens in values that are before the stream's first
	firstChunk       int       // the first chunk of those that go through a layer together
	lengths          []int     // of these chunks; nil for Run.Chunk
	chunk            int       // the chunk length that the tables are for
	// tables of positions: of Model.ropes, and of Model.temperatures
	rotations, queryFactors [][]float32
	layerInput              []float32 // the stream before the layer, for steps that need it
	wholeInput              []float32 // the same of all tokens
	hrm                     hrmStreams
	altUp                   altUpStreams
	hyper                   hyperStreams
	leavesOut               bool // a step after this one leaves out tokens that are not wanted

	rereads  bool // weights are read again for other tokens
	heldRows []*heldRows
	reverse  *backwardState // nil forwards
	// checksFinite: inputs and outputs of linear layers must be finite. It is set to find the origin of a value that
	// is not.
	checksFinite bool
	// adaptersUnseen: Run.Inputs is not called for adapters, whose rows depend on the tokens.
	adaptersUnseen bool
	// products counts calls of linear.
	products int
	*workspace
}

// keepState copies what steps change of n tokens, from token at on, beside the stream. The returned function restores it.
func (s *stream) keepState(at, n int) (restore func()) {
	width := s.m.p.width
	type rows struct{ live, copied []float32 }
	var all []rows
	keep := func(x []float32, perToken int) {
		live := x[at*perToken:][:n*perToken]
		all = append(all, rows{live, slices.Clone(live)})
	}
	for _, x := range slices.Concat(s.altUp.others, s.hyper.others) {
		keep(x, width)
	}
	if streams := len(s.hyper.others) + 1; streams > 1 {
		keep(s.hyper.first, width)
		keep(s.hyper.gates, gatesOf(streams))
	}
	return func() {
		for _, x := range all {
			copy(x.live, x.copied)
		}
	}
}

// workspace is memory for intermediate results. Streams that run one after the other may share it.
type workspace struct {
	x, qkv, a, mid, y []float32
	transformed       []float32 // inputs of folded weights
	before, input     []float32 // the stream before a step, and before a layer
	sum               []float32 // the outputs of a part that is added to others
	queries           []float32 // with their gates
	inner             []float32 // the inputs of a part in a part
	all               []float32 // the outputs of a part, of all tokens
	acc               []float32 // the sum of the experts' outputs, which is added to h
	routerLogits      []float32 // of early routers
	sharedKVs         map[*attention][]float32
	tokens            []int32      // that go through a layer now
	adapterOf         [2][]int32   // of each of them, and of the wanted ones, where the model has adapters
	adapted           [3][]float32 // inputs and outputs of the matrices of an adapter
	expertTokens      []int32      // of all runs that experts run for
	latent            struct{ kv, q, a []float32 }
	xp                gemm.Panels
	scratch           []gemm.Scratch
	states            [][]float32  // of each worker, for mixers
	latentExperts     [2][]float32 // inputs and summed outputs of experts with a latent projection
	temp              [3][]float32 // intermediate results of a mixer
	attention         []attentionScratch
	freeBytes         [][]byte // of rows that are not held any more
}

// newWorkspace returns the workspace of so many workers.
func newWorkspace(workers int) *workspace {
	n := max(1, workers)
	return &workspace{scratch: make([]gemm.Scratch, n), attention: make([]attentionScratch, n),
		states: make([][]float32, n)}
}
