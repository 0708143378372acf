package calibrate

import (
	"strings"

	"ggforge/gguf"
	"ggforge/model"
)

// Approximate costs of parts of the work, in nanoseconds of a core: for the remaining time.
const (
	costForward = 0.025 // of a weight and token,
	costBack    = 4     // times that there and back
	costMoments = 0.012 // of a pair of columns and token
	costFactors = 0.010 // of three columns
	costBlocks  = 150   // of a weight,
	costColumns = 0.05  // and for each column of its row
)

// progress measures the work of a calibration.
type progress struct {
	forward, back, blocks, total float64
	run, there                   float64 // cost of running the model forwards, and forwards and backwards
	perToken                     float64
	show                         func(done float64)
}

// newProgress returns the progress for targets of a model over that many tokens. Experts count in proportion to those
// used per token.
func newProgress(m *model.Model, targets []Target, tokens, columns int, show func(done float64)) *progress {
	if show == nil {
		return nil
	}
	p := &progress{show: show}
	used := int64(1)
	if v, ok := m.Metadata.Get(gguf.ArchKey(m.Architecture(), "expert_used_count")); ok {
		if n, ok := v.Int(); ok && n > 0 && n < 1<<16 {
			used = n
		}
	}
	for i := range m.Tensors {
		t := &m.Tensors[i]
		if len(t.NE) < 2 || !strings.HasSuffix(t.Name, ".weight") {
			continue
		}
		n := float64(t.Elements())
		if len(t.NE) > 2 && t.NE[2] > used {
			n *= float64(used) / float64(t.NE[2])
		}
		p.perToken += costForward * n
	}
	p.run = p.perToken * float64(tokens)
	for _, t := range targets {
		x := &m.Tensors[t.Tensor]
		n := float64(min(x.NE[0], int64(columns)))
		p.run += costMoments * n * float64(x.NE[0]) * float64(tokens)
		p.total += p.matrix(x)
	}
	p.total += p.run
	return p
}

// backwards adds the work of gradients, of chunks of that many tokens.
func (p *progress) backwards(o *Options, chunk int) {
	if p != nil {
		p.there = costBack * p.perToken * float64(min(len(o.Run.Tokens), o.Gradients*chunk))
		p.total += p.there
	}
}

// without subtracts matrices that are encoded already.
func (p *progress) without(b *Blocks) {
	if p == nil {
		return
	}
	for _, k := range b.tensors {
		for _, seen := range k.seen {
			if seen {
				p.total -= p.matrix(&b.m.Tensors[k.Tensor]) / float64(len(k.seen))
			}
		}
	}
}

// matrix returns the work of encoding a tensor.
func (p *progress) matrix(x *model.Tensor) float64 {
	n := float64(x.NE[0])
	return costFactors*n*n*n + float64(x.Elements())*(costBlocks+costColumns*n)
}

// ran sets the share of the forward pass that is done.
func (p *progress) ran(done float64) {
	if p != nil {
		p.forward = done * p.run
		p.call()
	}
}

// wentBack sets the share of the gradients that is done.
func (p *progress) wentBack(done float64) {
	if p != nil {
		p.back = done * p.there
		p.call()
	}
}

// encoded adds a share of a tensor's blocks.
func (p *progress) encoded(x *model.Tensor, share float64) {
	if p != nil {
		p.blocks += share * p.matrix(x)
		p.call()
	}
}

// call shows the share that is done, below 1 until end.
func (p *progress) call() {
	if p.total > 0 {
		p.show(min(0.999, (p.forward+p.back+p.blocks)/p.total))
	}
}

func (p *progress) end() {
	if p != nil {
		p.show(1)
	}
}
