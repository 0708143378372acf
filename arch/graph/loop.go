package graph

import (
	"slices"

	"ggforge/fault"
	"ggforge/model/limits"
)

// Loop is the order in which a model runs its layers more than once. Each time a layer has keys and values, or a state,
// of its own.
type Loop interface{ loop() }

// Repeat runs all layers Times times, with the steps of Between in between (Nanbeige).
type Repeat struct {
	Times   Num
	Between []Step
}

// HRM is the hierarchy of HRM-Text: layers 0 to N-1 are the low stack, N to 2N-1 the high one, N being
// hrm.layers_per_stack. h is the stream before the first layer, l is the vector hrm.z_l_init for all tokens. In each of
// hrm.h_cycles cycles the low stack runs hrm.l_cycles times, l = norm(low(h + l)), and then the high stack once,
// h = norm(high(h + l)), with norms without weights. The result is h. block_count is the number of layers that run.
type HRM struct{}

func (Repeat) loop() {}
func (HRM) loop()    {}

func (HRM) asks() []Num { return []Num{stackLayers, highCycles, lowCycles} }

const (
	stackLayers Num = "@hrm.layers_per_stack"
	highCycles  Num = "@hrm.h_cycles"
	lowCycles   Num = "@hrm.l_cycles"
)

// countPasses sets the number of layers of a model with a Loop, and checks how often they run.
func (d *Decl) countPasses() {
	runs := int64(d.layers)
	switch loop := d.model.Loop.(type) {
	case nil:
		return
	case Repeat:
		runs = mul(runs, d.Size(loop.Times))
	case HRM:
		stack, high, low := d.Size(stackLayers), d.Size(highCycles), d.Size(lowCycles)
		if n := mul(stack, high, low+1); n != runs {
			d.broken("%d layers run, want %q: %d", n, d.fullKey("block_count"), runs)
			return
		}
		d.layers = int(mul(2, stack))
	default:
		d.unknown("loop", loop)
	}
	switch {
	case d.err != nil:
	case runs == 0:
		d.broken("layers run 0 times%s", d.describe(d.used))
	case runs > limits.MaxLayers:
		d.fail(fault.Unsupported, "%d layers run: llama.cpp runs at most %d", runs, limits.MaxLayers)
	}
}

// Order returns the layers in the order in which they run.
func (d *Decl) Order() []int {
	stack := func(first, n int) (layers []int) {
		for i := range n {
			layers = append(layers, first+i)
		}
		return layers
	}
	switch loop := d.model.Loop.(type) {
	case Repeat:
		return slices.Repeat(stack(0, d.layers), int(d.Size(loop.Times)))
	case HRM:
		n := d.layers / 2
		cycle := slices.Concat(slices.Repeat(stack(0, n), int(d.Size(lowCycles))), stack(n, n))
		return slices.Repeat(cycle, int(d.Size(highCycles)))
	}
	return stack(0, d.layers)
}

// loop declares what a Loop needs outside of layers.
func (d *Decl) loop(l Loop) {
	switch l := l.(type) {
	case Repeat:
		d.steps(l.Between)
	case HRM:
		d.exact(Yes, "hrm.z_l_init", NormRole, d.Size("n_embd"))
	}
}
