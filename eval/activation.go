package eval

import (
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// ffnActivation replaces activation(gate) ⊙ up in a feed-forward network.
type ffnActivation interface {
	// apply sets dst to the activation of the outputs of the gate and of the up matrix; up is nil without a gate.
	apply(dst, gate, up []float32)
	// derivatives sets dgate and dup to the derivatives by both.
	derivatives(dgate, dup, gate, up []float32)
}

// swigluOAI is the activation of gpt-oss: SwiGLU with clamped inputs and up + 1.
type swigluOAI struct{ alpha, limit float32 }

func (u swigluOAI) apply(dst, gate, up []float32) {
	for i, g := range gate {
		g = min(g, u.limit)
		dst[i] = g * vecmath.Sigmoid(u.alpha*g) * (max(-u.limit, min(u.limit, up[i])) + 1)
	}
}

func (u swigluOAI) derivatives(dgate, dup, gate, up []float32) {
	for i, g := range gate {
		v := up[i]
		limited := g > u.limit
		g = min(g, u.limit)
		s := vecmath.Sigmoid(u.alpha * g)
		dup[i] = g * s
		dgate[i] = (s + float32(float32(u.alpha*g)*float32(s*(1-s)))) * (max(-u.limit, min(u.limit, v)) + 1)
		if limited {
			dgate[i] = 0
		}
		if v > u.limit || v < -u.limit {
			dup[i] = 0
		}
	}
}

// limitedSwiGLU is SwiGLU with limits of both factors; late: the first is limited after SiLU.
type limitedSwiGLU struct {
	limit float32
	late  bool
}

func (u limitedSwiGLU) apply(dst, gate, up []float32) {
	if u.late {
		vecmath.SiLUOf.Apply(dst, gate)
		for i, g := range dst {
			dst[i] = min(g, u.limit)
		}
	} else {
		for i, g := range gate {
			dst[i] = min(g, u.limit)
		}
		vecmath.SiLUOf.Apply(dst, dst)
	}
	for i, v := range up {
		dst[i] *= max(-u.limit, min(u.limit, v))
	}
}

func (u limitedSwiGLU) derivatives(dgate, dup, gate, up []float32) {
	vecmath.SiLUOf.Apply(dup, gate)
	vecmath.SiLUOf.Slope(dgate, gate)
	for i, g := range gate {
		v := up[i]
		switch {
		case u.late && dup[i] > u.limit:
			dup[i], dgate[i] = u.limit, 0
		case !u.late && g > u.limit:
			dup[i], dgate[i] = u.limit*vecmath.Sigmoid(u.limit), 0
		}
		dgate[i] *= max(-u.limit, min(u.limit, v))
		if v > u.limit || v < -u.limit {
			dup[i] = 0
		}
	}
}

// situ is b·tanh(gate/b)·σ(gate) ⊙ l·tanh(up/l), or ⊙ up where l is not above 0.
type situ struct{ beta, linear float32 }

// factors returns the three factors.
func (u situ) factors(gate, up float32) (a, s, v float32) {
	a, s, v = vecmath.Tanh(gate*(1/u.beta))*u.beta, vecmath.Sigmoid(gate), up
	if u.linear > 0 {
		v = vecmath.Tanh(up*(1/u.linear)) * u.linear
	}
	return a, s, v
}

func (u situ) apply(dst, gate, up []float32) {
	for i, g := range gate {
		a, s, v := u.factors(g, up[i])
		dst[i] = float32(a*s) * v
	}
}

func (u situ) derivatives(dgate, dup, gate, up []float32) {
	for i, g := range gate {
		a, s, v := u.factors(g, up[i])
		slope := func(y, cap float32) float32 { return 1 - float32(y/cap)*float32(y/cap) } // of cap·tanh(x/cap)
		dgate[i] = (float32(slope(a, u.beta)*s) + float32(a*float32(s*(1-s)))) * v
		dup[i] = float32(a * s)
		if u.linear > 0 {
			dup[i] *= slope(v, u.linear)
		}
	}
}

// xIELU is the activation of Apertus: a parabola above 0 and an exponential below.
type xIELU struct{ alphaN, alphaP, beta, eps float32 }

func (u xIELU) apply(dst, gate, _ []float32) {
	for i, x := range gate {
		if x > 0 {
			dst[i] = float32(u.alphaP*x*x) + float32(u.beta*x)
		} else {
			less := float32(vecmath.Exp64(float64(min(x, u.eps))) - 1)
			dst[i] = float32((less-x)*u.alphaN) + float32(u.beta*x)
		}
	}
}

func (u xIELU) derivatives(dgate, _, gate, _ []float32) {
	for i, x := range gate {
		switch {
		case x > 0:
			dgate[i] = float32(2*u.alphaP*x) + u.beta
		case x < u.eps:
			dgate[i] = float32(u.alphaN*float32(vecmath.Exp64(float64(x))-1)) + u.beta
		default:
			dgate[i] = u.beta - u.alphaN
		}
	}
}

// functions are the activations without parameters.
var functions = map[graph.Activation]vecmath.Function{
	graph.SiLU: vecmath.SiLUOf, graph.GELU: vecmath.GELUOf, graph.GELUErf: vecmath.GELUErfOf,
	graph.ReLU: vecmath.ReLUOf, graph.ReLU2: vecmath.ReLUSquaredOf, graph.Tanh: vecmath.TanhOf,
}

// activation returns the activation of a feed-forward network in the layer: one of both.
func (b *builder) activation(a graph.Activation) (vecmath.Function, ffnActivation) {
	switch a := a.(type) {
	case graph.Act:
		if f, ok := functions[a]; ok {
			return f, nil
		}
	case graph.SwiGLUOAI:
		return vecmath.Function{}, swigluOAI{a.Alpha, a.Limit}
	case graph.LimitedSwiGLU:
		if limit := float32(b.float(a.Limit)); limit != 0 {
			return vecmath.Function{}, limitedSwiGLU{limit, a.Late}
		}
		return vecmath.SiLUOf, nil
	case graph.SiTU:
		u := situ{float32(b.float(a.Beta)), float32(b.float(a.Linear))}
		if u.beta <= 0 {
			b.fail(fault.Broken, "%s is %v, want a number above 0", a.Beta, u.beta)
		}
		return vecmath.Function{}, u
	case graph.SparseGELU: // feedForward.sparse is the other part
		return vecmath.GELUOf, nil
	case graph.XIELU:
		return vecmath.Function{}, newXIELU(b)
	case graph.ActOf:
		return b.namedActivation(a.Key, functions[a.Or]), nil
	}
	b.unsupported("activation", a)
	return vecmath.Function{}, nil
}

// newXIELU returns the activation of the layer. Its keys have no architecture prefix.
func newXIELU(b *builder) ffnActivation {
	number := func(name string) float32 { return float32(b.float(graph.Num("@xielu." + name))) }
	soft := func(x float32) float32 {
		if x > 20 {
			return x
		}
		return float32(vecmath.Log(1 + vecmath.Exp64(float64(x))))
	}
	u := xIELU{beta: number("beta"), eps: number("eps"), alphaP: soft(number("alpha_p"))}
	u.alphaN = u.beta + soft(number("alpha_n"))
	return u
}
