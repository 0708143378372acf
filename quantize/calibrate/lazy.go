package calibrate

import (
	"sync"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// lazy encodes rows when they are read: one batch of rows at a time, with all workers.
type lazy struct {
	run       *run
	inputs    map[key]*storedInput // of targets that have one in the moments file
	gradients bool

	mu   sync.Mutex
	done map[Target]map[int64]bool // encoded batches, by their first row
	// The last matrix. Rows are read in about the order of the tensor.
	way   *method
	ofWay entry
	from  *storedInput
	last  []*Moments // of from
}

// prepareLazy prepares for encoding targets when they are read.
func (c *run) prepareLazy(r *eval.Model) error {
	if c.saved == nil {
		return fault.Errorf(fault.Usage,
			"%s: lazy encoding needs an existing moments file", c.opt.Moments)
	}
	if err := c.embedding(r); err != nil {
		return err
	}
	z := &lazy{run: c, inputs: map[key]*storedInput{}, done: map[Target]map[int64]bool{}}
	for i := range c.saved.inputs {
		in := &c.saved.inputs[i]
		for _, k := range in.readers {
			for _, t := range c.targets[k.name] {
				if err := c.reads(in, k, t); err != nil {
					return err
				}
				if c.embeddings[in.readers[0].name] && c.costs != nil {
					continue // as in encode
				}
				if len(c.blocks.of(t, in.matrices).seen) != in.matrices {
					return fault.Errorf(fault.Broken, "%s: tensor %q has %d matrices, and %d", c.opt.Moments, k.name,
						in.matrices, len(c.blocks.of(t, 1).seen))
				}
				z.inputs[k] = in
			}
		}
	}
	for name := range c.embeddings {
		for _, t := range c.targets[name] {
			if c.blocks.tensors[t] == nil {
				c.blocks.of(t, 1)
				z.gradients = z.gradients || c.costs[name] != nil
			}
		}
	}
	c.blocks.lazy = z
	return nil
}

// lazySource reads a target that is encoded when it is read.
type lazySource struct {
	rows.Source // the encoded blocks
	lazy        *lazy
	target      Target
}

func (s lazySource) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	if err := s.lazy.encode(s.target, a, b); err != nil {
		return nil, err
	}
	return s.Source.Raw(buf, a, b)
}

// Cost was measured with a model of 7 million weights at Q4_K_M, with rows of 256 and 768.
func (s lazySource) Cost() int64 { return 300_000 }

// encode encodes the batches with rows [a, b) of a target that are not encoded yet.
func (z *lazy) encode(t Target, a, b int64) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	k, done := z.run.blocks.tensors[t], z.done[t]
	if done == nil {
		done = map[int64]bool{}
		z.done[t] = done
	}
	count := gguf.Rows(z.run.blocks.m.Tensors[t.Tensor].NE) / int64(len(k.seen))
	for a < b {
		at := a / count
		from := a - (a-at*count)%batchRows
		to := min(from+batchRows, (at+1)*count)
		if !done[from] {
			if err := z.prepare(k, int(at)); err != nil {
				return err
			}
			if err := z.run.some(k, from, to, z.way.encode); err != nil {
				return err
			}
			done[from] = true
		}
		a = to
	}
	return nil
}

// prepare sets the method for a matrix.
func (z *lazy) prepare(k *encodedTensor, at int) error {
	e := entry{k.Target, at}
	if z.way != nil && z.ofWay == e {
		return nil
	}
	c, in := z.run, z.inputs[key{k.Name, at}]
	switch {
	case in != nil:
		if z.from != in {
			z.way, z.from, z.last = nil, nil, nil // room for the next
			x, err := c.saved.input(in, c.opt.Run.Workers)
			if err != nil {
				return err
			}
			if z.last, err = c.momentsOf(x); err != nil {
				return err
			}
			z.from = in
		}
		z.way = c.byMoments(k.Type, z.last, nil)
	case z.seen(k):
		z.way = c.unweighted(k.Type)
	default:
		z.way = c.byEmbedding(k.Type, k.Name)
	}
	z.ofWay = e
	return nil
}

// seen reports whether a matrix of a tensor has an input.
func (z *lazy) seen(k *encodedTensor) bool {
	for at := range k.seen {
		if z.inputs[key{k.Name, at}] != nil {
			return true
		}
	}
	return false
}
