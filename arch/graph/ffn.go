package graph

import (
	"slices"

	"ggforge/fault"
)

// FFN is a feed-forward network: down(act(gate·x) ⊙ up·x), or without a gate down(act(up·x)).
type FFN struct {
	Act  Activation
	Gate Gate
	Norm Norm // of act(gate·x) ⊙ up·x, before ffn_down (BitNet's ffn_sub_norm)
}

// Gate is whether a feed-forward network has a gate.
type Gate int

const (
	Gated  Gate = iota // ffn_gate, or the first half of an ffn_up with twice the rows: SwiGLU, GeGLU, ReGLU
	NoGate             // a plain MLP
)

// Activation is the activation of a feed-forward network: of its gate, if it has one.
type Activation interface{ activation() }

// Act is an activation without parameters.
type Act string

const (
	SiLU    Act = "silu"
	GELU    Act = "gelu" // the approximation by tanh
	GELUErf Act = "gelu_erf"
	ReLU    Act = "relu"
	ReLU2   Act = "relu2" // the square of ReLU
	Tanh    Act = "tanh"
)

// SwiGLUOAI is the activation of gpt-oss: x·σ(Alpha·x) of the gate, limited, times 1 plus the limited other half.
type SwiGLUOAI struct{ Alpha, Limit float32 }

// LimitedSwiGLU is SwiGLU with limits: silu(min(gate, Limit)) ⊙ max(-Limit, min(up, Limit)) or, if Late,
// min(silu(gate), Limit) in place of the first factor. A Limit of 0, and missing keys, are no limits.
type LimitedSwiGLU struct {
	Limit Num
	Late  bool
}

// SiTU is Beta·tanh(gate/Beta)·σ(gate) ⊙ Linear·tanh(up/Linear), or ⊙ up where Linear is not above 0 (Kimi K3).
type SiTU struct{ Beta, Linear Num }

// SparseGELU is GELU of max(0, x - m - By·s), m being the mean of the row and s its standard deviation, of a sample
// (Gemma 3n).
type SparseGELU struct{ By Num }

// XIELU is the activation of Apertus, with parameters for each layer (xielu.*).
type XIELU struct{}

// ActOf is the activation that a key names; Or in files without it.
type ActOf struct {
	Key string
	Or  Act
}

func (Act) activation()           {}
func (SwiGLUOAI) activation()     {}
func (LimitedSwiGLU) activation() {}
func (SiTU) activation()          {}
func (SparseGELU) activation()    {}
func (XIELU) activation()         {}
func (ActOf) activation()         {}

// MoE is a mixture of experts: the weighted sum of the Experts that Router chooses and, with Shared, an expert for all
// tokens.
type MoE struct {
	Router  Router
	Experts FFN
	Shared  Shared
	With    []MoEOption
}

// MoEOption is a variation of MoE.
type MoEOption interface{ moeOption() }

// EarlyRouter: the router reads the residual stream before the layer's mixer, without a norm (SmallThinker).
type EarlyRouter struct{}

// WeighInputs: weights multiply the inputs of experts, which are chosen by the router's logits (Llama 4).
type WeighInputs struct{}

// LatentExperts: experts read and write a narrower space (ffn_latent_down, ffn_latent_up), in files with these tensors
// (Nemotron 3). Routed: the tensors are ffn_routed_down and ffn_routed_up, and ffn_routed_norm normalizes the sum of the
// experts in files that have it (Kimi K3).
type LatentExperts struct{ Routed bool }

// Name returns how the names of the tensors begin.
func (l LatentExperts) Name() string {
	if l.Routed {
		return "ffn_routed_"
	}
	return "ffn_latent_"
}

// Size returns the number of values of the narrower space.
func (l LatentExperts) Size() Num {
	if l.Routed {
		return "@expert_latent_length or n_embd"
	}
	return "@moe_latent_size or n_embd"
}

// SharedFFN is the network of the shared expert, where it differs from that of the others.
type SharedFFN struct{ FFN }

// HalvedSum halves the sum of the experts and the shared expert, in layers that have one (Cohere 2 MoE).
type HalvedSum struct{}

// GroupExperts are further experts (ffn_*_chexps), one for each experts_per_group experts, whose input is the output of
// the others: the groups of the chosen experts, weighted alike, times expert_group_scale (GroveMoE).
type GroupExperts struct{}

// TokenTable: experts are those of ffn_gate_tid2eid for the token. The router weighs them (DeepSeek V4).
type TokenTable struct{}

// RouterNorm: the input has no norm; experts read Experts(x), the router the RMS norm of x without weights, times
// ffn_gate_inp.scale/√n_embd (Gemma 4).
type RouterNorm struct{ Experts Norm }

func (EarlyRouter) moeOption()   {}
func (WeighInputs) moeOption()   {}
func (LatentExperts) moeOption() {}
func (SharedFFN) moeOption()     {}
func (HalvedSum) moeOption()     {}
func (GroupExperts) moeOption()  {}
func (RouterNorm) moeOption()    {}
func (TokenTable) moeOption()    {}

// Router chooses experts by the logits of ffn_gate_inp, and weighs them.
type Router struct {
	Score    Score // in files without expert_gating_func
	Bias     bool  // exp_probs_b is added to scores for the choice only, in files that have it
	Groups   bool  // experts are chosen in the best expert_group_used_count of expert_group_count groups
	ChosenBy Score // the scores by which experts are chosen, 0 for Score
	TopKNorm bool  // weights are divided by their sum, in files without expert_weights_norm
}

// Score is how a router computes weights from logits.
type Score int

// The values of expert_gating_func.
const (
	Softmax         Score = 1 + iota
	Sigmoid               // of each logit
	SoftmaxOfChosen       // over the logits of the chosen experts
	SqrtSoftplus          // the square root of ln(1 + e^x) of each logit
)

// Shared is whether there is an expert for all tokens (ffn_*_shexp).
type Shared int

const (
	NoShared    Shared = iota
	HasShared          // one
	MayShared          // one, in files that have it
	GatedShared        // one, times the sigmoid of ffn_gate_inp_shexp·x
)

// ChannelMix6 is the feed-forward network of RWKV 6, over tokens mixed with those before them and with a gate
// (receptance). ChannelMix7, of RWKV 7, has no gate.
type (
	ChannelMix6 struct{}
	ChannelMix7 struct{}
)

func (FFN) part()         {}
func (MoE) part()         {}
func (ChannelMix6) part() {}
func (ChannelMix7) part() {}

func (FFN) asks() []Num         { return []Num{"n_ff"} }
func (ChannelMix6) asks() []Num { return []Num{"n_ff"} }
func (ChannelMix7) asks() []Num { return []Num{"n_ff"} }

func (a ActOf) asks() []Num { return []Num{Num("@" + a.Key)} }
func (XIELU) asks() []Num   { return xieluKeys }

var xieluKeys = []Num{"@xielu.alpha_p", "@xielu.alpha_n", "@xielu.beta", "@xielu.eps"}

func (MoE) asks() []Num {
	return []Num{"n_expert", "n_ff_exp", "n_ff_shexp", "@expert_used_count", "@expert_gating_func",
		"@expert_weights_norm", "@expert_weights_scale", "@expert_group_count", "@expert_group_used_count",
		"@expert_shared_count", "@leading_dense_block_count", "@interleave_moe_layer_step"}
}

func (l LatentExperts) asks() []Num { return []Num{l.Size()} }

func (GroupExperts) asks() []Num { return []Num{perGroup, groupWidth, "@expert_group_scale"} }

const (
	perGroup   Num = "@experts_per_group"
	groupWidth Num = "@expert_chunk_feed_forward_length or n_ff_exp"
)

// activation records an error for an activation that this package does not know.
func (d *Decl) activation(a Activation) {
	switch a := a.(type) {
	case Act:
		switch a {
		case SiLU, GELU, GELUErf, ReLU, ReLU2, Tanh:
		default:
			d.fail(fault.Unsupported, "unknown activation %q", string(a))
		}
	case SwiGLUOAI, ActOf:
	case LimitedSwiGLU:
		d.checkNumbers(a.Limit)
	case SiTU:
		d.checkNumbers(a.Beta, a.Linear)
	case SparseGELU:
		d.checkNumbers(a.By)
	case XIELU:
		d.checkNumbers(xieluKeys...)
	default:
		d.unknown("activation", a)
	}
}

// Declare is Part.Declare.
func (f FFN) Declare(d *Decl) { f.declare(d, "", d.Size("n_embd"), d.Size("n_ff")) }

// declare adds the tensors of a network from width values to ff and back, with a suffix of their names; or those of a
// stack of experts.
func (f FFN) declare(d *Decl, suffix string, width, ff int64, experts ...int64) {
	d.activation(f.Act)
	matrix := func(name string, r Role, in, out int64) {
		d.linear(Yes, name+suffix, r, append([]int64{in, out}, experts...)...)
	}
	switch {
	case f.Gate == NoGate:
		matrix("ffn_up", UpRole, width, ff)
	case len(experts) > 0 && d.Has("ffn_gate_up"+suffix):
		matrix("ffn_gate_up", UpRole, width, mul(2, ff))
	case !d.Has("ffn_gate"+suffix) && d.Has("ffn_up"+suffix):
		matrix("ffn_up", UpRole, width, mul(2, ff))
	default:
		matrix("ffn_gate", GateRole, width, ff)
		matrix("ffn_up", UpRole, width, ff)
	}
	matrix("ffn_down", DownRole, ff, width)
	if f.Norm.Name != "" {
		d.vector(Yes, f.Norm.Name+suffix, ff)
	}
}

// Declare is Part.Declare.
func (m MoE) Declare(d *Decl) {
	embd, experts := d.Size("n_embd"), d.Size("n_expert")
	width, shared := embd, m.Experts
	if slices.ContainsFunc(m.With, func(o MoEOption) bool { _, ok := o.(RouterNorm); return ok }) {
		d.exact(Yes, "ffn_gate_inp.scale", NormRole, embd) // not the scale of NVFP4
	}
	d.linear(Yes, "ffn_gate_inp", RouterRole, embd, experts)
	if m.Router.Bias {
		d.exact(May, "exp_probs_b.bias", NormRole, experts)
		d.exact(May, "exp_probs_b", NormRole, experts) // of Hunyuan 3
	}
	for _, option := range m.With {
		switch option := option.(type) {
		case EarlyRouter, WeighInputs:
		case LatentExperts:
			if name := option.Name(); d.Has(name + "down") {
				width = d.Size(option.Size())
				d.linear(Yes, name+"down", Other, embd, width)
				d.linear(Yes, name+"up", Other, width, embd)
				if option.Routed {
					d.vector(May, name+"norm", width)
				}
			}
		case SharedFFN:
			shared = option.FFN
		case HalvedSum:
		case TokenTable:
			d.weight(Yes, "ffn_gate_tid2eid", KernelRole, d.Size("@expert_used_count"), d.vocab())
		case GroupExperts:
			group, ff := d.Size(perGroup), d.Size(groupWidth)
			if group < 1 || experts%group != 0 {
				d.contradiction("%d experts, want a multiple of the %d of a group", experts, group)
				return
			}
			m.Experts.declare(d, "_chexps", embd, ff, experts/group)
		case RouterNorm:
			d.norm(option.Experts)
		default:
			d.unknown("option of MoE", option)
		}
	}
	m.Experts.declare(d, "_exps", width, d.Size("n_ff_exp"), experts)
	if m.Shared == NoShared || m.Shared == MayShared && !d.Has("ffn_down_shexp") {
		return
	}
	shared.declare(d, "_shexp", embd, d.Size("n_ff_shexp"))
	if m.Shared == GatedShared {
		d.weight(Yes, "ffn_gate_inp_shexp", RouterRole, embd)
	}
}

// Declare is Part.Declare.
func (ChannelMix6) Declare(d *Decl) {
	ChannelMix7{}.Declare(d)
	embd := d.Size("n_embd")
	d.linear(Yes, "channel_mix_receptance", GateRole, embd, embd)
	d.weight(Yes, "channel_mix_lerp_r", KernelRole, embd)
}

// Declare is Part.Declare.
func (ChannelMix7) Declare(d *Decl) {
	embd, ff := d.Size("n_embd"), d.Size("n_ff")
	d.linear(Yes, "channel_mix_key", UpRole, embd, ff)
	d.linear(Yes, "channel_mix_value", DownRole, ff, embd)
	d.weight(Yes, "channel_mix_lerp_k", KernelRole, embd)
}
