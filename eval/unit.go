package eval

import (
	"math"

	"ggforge/internal/kernel/vecmath"
)

// unit is what lies between the matrices of a feed-forward layer, where that is not an
// activation times what is gated.
type unit interface {
	// apply sets dst to what becomes of the outputs of the gate and of the other matrix, which
	// is nil if there is one only.
	apply(dst, gate, up []float32)
	// slopes sets dgate and dup to the derivatives by both.
	slopes(dgate, dup, gate, up []float32)
}

// swigluOAI is the unit of gpt-oss: both are limited, and one is added to what is gated.
type swigluOAI struct{ alpha, limit float32 }

func (u swigluOAI) apply(dst, gate, up []float32) {
	for i, g := range gate {
		g = min(g, u.limit)
		dst[i] = g * vecmath.Sigmoid(u.alpha*g) * (max(-u.limit, min(u.limit, up[i])) + 1)
	}
}

func (u swigluOAI) slopes(dgate, dup, gate, up []float32) {
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

// xIELU is the unit of Apertus: a parabola above 0 and an exponential below.
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

func (u xIELU) slopes(dgate, _, gate, _ []float32) {
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

// newXIELU returns the unit of layer i by the keys of the file, which are of no
// architecture.
func newXIELU(b *builder, i int) unit {
	number := func(name string) float32 { return float32(b.k.each("xielu."+name, b.p.blocks)[i]) }
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

// temper makes queries longer the further they are from the beginning: by scale times the
// logarithm of how many times every tokens come before them, and one.
type temper struct {
	scale, offset float32
	every         int // 0 for queries as they are
}

// apply multiplies the queries of a position.
func (t temper) apply(q []float32, pos int) {
	if t.every == 0 || t.scale == 0 {
		return
	}
	times := math.Floor(float64((float32(pos) + t.offset) / float32(t.every)))
	vecmath.Scale(q, q, float32(vecmath.Log(times+1)*float64(t.scale)+1))
}

// temperatureOfYaRN is temperature where the context of the training is the length.
func temperatureOfYaRN(k *keys, p *params) temper {
	t := temperature(k, p)
	t.every = p.rope.original
	return t
}

// temperature is Graph.Temper by the file's keys.
func temperature(k *keys, _ *params) temper {
	return temper{scale: float32(k.float("attention.temperature_scale", 0)),
		every: k.size("attention.temperature_length", 0)}
}
