package graph

import (
	"slices"
	"strings"
)

// Mamba1 is a selective state space model with a step for each channel. The step, B and C are normalized in files with
// weights for it (Jamba), or without weights if ssm.dt_b_c_rms is true (Falcon Mamba).
type Mamba1 struct{}

// Mamba2 is a state space model of heads with one decay each.
type Mamba2 struct{}

// ProjectedMamba2 is Mamba 2 in which, as in Mamba 1, the convolution is over channels only, and B, C and the low-rank
// input of steps are a projection of its output; all three are normalized (PLaMo 2). In ssm_in each head has its gate
// before its channels.
type ProjectedMamba2 struct{}

// StepsRank is the rank of the steps, as llama.cpp has it.
func (ProjectedMamba2) StepsRank() Num { return "max(64, n_embd / 16)" }

// GatedDeltaNet is the gated delta rule. Several heads share queries and keys: head h those of h mod n_group if
// KeysTakeTurns, otherwise those of its group of neighbours. The gate of outputs goes through SiLU or, with SigmoidGate,
// a sigmoid.
type GatedDeltaNet struct{ KeysTakeTurns, SigmoidGate bool }

// KDA is Kimi's delta attention: each element of a key has a decay, e^g with g = ssm_a · ln(1 + e^(f + ssm_dt)) or, if
// Bounded, g = kda.gate_lower_bound · σ(ssm_a · (f + ssm_dt)) (Ling 3). f and the gate of the output are ssm_f_b·ssm_f_a·x
// and ssm_g_b·ssm_g_a·x or, in files without the second matrix, products with one.
type KDA struct {
	Bounded  bool
	Negative bool // ssm_a is a vector of numbers below 0: those of a bounded decay are multiplied by -1
	FullGate bool // the gate of the output is ssm_g·x (Kimi K3)
	UnitEps  Num  // of the lengths of queries and keys; "" for that of norms
}

// Lightning is lightning attention (MiniMax-Text-01): attention without softmax or positions, in which the product of a
// query and a key decays by e^-slope for each token between them. Queries, keys and values have SiLU. The slope of head h
// is that of ALiBi, 2^(-8(h+1)/n_head), times 1 - i/(n_layer - 1) + 1e-5. One RMS norm over all heads (attn_norm_2)
// and OutGate's gate follow.
type Lightning struct{}

// RWKV6 is the time mixing of RWKV 6. QRWKV6 is that of models converted from attention: no bonus for the token itself,
// keys times 1 - decay, and heads may share keys and values.
type (
	RWKV6  struct{}
	QRWKV6 struct{}
)

// RWKV7 is the time mixing of RWKV 7. Later layers mix their values with those of the first.
type RWKV7 struct{}

// ShortConv is the gated convolution of LFM2; it is centered where attention is not causal.
type ShortConv struct{}

func (Mamba1) part()          {}
func (Mamba2) part()          {}
func (ProjectedMamba2) part() {}
func (GatedDeltaNet) part()   {}
func (KDA) part()             {}
func (Lightning) part()       {}
func (RWKV6) part()           {}
func (QRWKV6) part()          {}
func (RWKV7) part()           {}
func (ShortConv) part()       {}

const (
	kdaSize    Num = "@kda.head_dim"
	wkvSize    Num = "@wkv.head_size"
	wkvShifts  Num = "@token_shift_count or 2"
	wkvHeads   Num = "@attention.head_count_kv or 0"
	wkvExtra   Num = "@time_mix_extra_dim"
	wkvDecay   Num = "@time_decay_extra_dim"
	iclrRank   Num = "@attention.iclr_lora_rank"
	convLength Num = "@shortconv.l_cache"
)

var (
	ssmSizes   = []Num{"d_conv", "d_inner", "d_state", "dt_rank", "n_group"}
	rwkv6Sizes = []Num{wkvSize, wkvShifts, wkvHeads, wkvExtra, wkvDecay}
)

func (Mamba1) asks() []Num            { return slices.Concat(ssmSizes, []Num{"@ssm.dt_b_c_rms"}) }
func (Mamba2) asks() []Num            { return ssmSizes }
func (p ProjectedMamba2) asks() []Num { return slices.Concat(ssmSizes, []Num{p.StepsRank()}) }
func (GatedDeltaNet) asks() []Num     { return ssmSizes }
func (Lightning) asks() []Num         { return []Num{"n_head", "n_embd_head_k", "n_layer"} }
func (RWKV6) asks() []Num             { return rwkv6Sizes }
func (QRWKV6) asks() []Num            { return rwkv6Sizes }
func (ShortConv) asks() []Num         { return []Num{convLength, "@attention.causal"} }

func (k KDA) asks() []Num {
	if k.Bounded {
		return []Num{"n_head", "d_conv", kdaSize, "@kda.gate_lower_bound", "@kda.safe_gate"}
	}
	return []Num{"n_head", "d_conv", kdaSize}
}

func (RWKV7) asks() []Num {
	keys := []Num{wkvSize, wkvShifts}
	for _, m := range rwkv7MLPs {
		keys = append(keys, m.rank)
	}
	return keys
}

// convolution declares the weights of a convolution, the row of a channel innermost, and its bias, if the file has it.
// It returns the number of earlier inputs that the convolution keeps for each channel.
func (d *Decl) convolution(name string, size int64, channels ...int64) (kept int64) {
	d.weight(Yes, name, KernelRole, slices.Concat([]int64{size}, channels)...)
	d.exact(May, name+".bias", NormRole, channels[len(channels)-1])
	return max(0, size-1)
}

// Declare is Part.Declare.
func (Mamba1) Declare(d *Decl) {
	embd, inner, state, rank := d.Size("n_embd"), d.Size("d_inner"), d.Size("d_state"), d.Size("dt_rank")
	d.linear(Yes, "ssm_in", QKVRole, embd, mul(2, inner))
	kept := d.convolution("ssm_conv1d", d.Size("d_conv"), inner)
	d.linear(Yes, "ssm_x", Other, inner, add(rank, mul(2, state)))
	d.linear(Yes, "ssm_dt", Other, rank, inner)
	d.exact(Yes, "ssm_a", KernelRole, state, inner)
	d.exact(Yes, "ssm_d", KernelRole, inner)
	d.linear(Yes, "ssm_out", AttnOutRole, inner, embd)
	d.vector(May, "ssm_dt_norm", rank)
	d.vector(May, "ssm_b_norm", state)
	d.vector(May, "ssm_c_norm", state)
	d.state(mul(inner, add(kept, state)))
}

// Declare is Part.Declare. dt_rank is the number of heads.
func (Mamba2) Declare(d *Decl) {
	embd, inner, state := d.Size("n_embd"), d.Size("d_inner"), d.Size("d_state")
	heads, groups := d.Size("dt_rank"), d.Size("n_group")
	if heads < 1 || groups < 1 || inner%heads != 0 || heads%groups != 0 || inner%groups != 0 {
		d.contradiction("a state space model of %d channels, %d heads and %d groups, want multiples", inner, heads,
			groups)
		return
	}
	shared := mul(2, groups, state) // B and C
	d.linear(Yes, "ssm_in", QKVRole, embd, add(mul(2, inner), shared, heads))
	kept := d.convolution("ssm_conv1d", d.Size("d_conv"), add(inner, shared))
	d.exact(Yes, "ssm_dt.bias", KernelRole, heads)
	d.exact(Yes, "ssm_a", KernelRole, 1, heads)
	d.exact(Yes, "ssm_d", KernelRole, 1, heads)
	size := inner / groups
	d.vector(May, "ssm_norm", d.pick("ssm_norm", []int64{size, groups}, []int64{size}, []int64{inner})...)
	d.linear(Yes, "ssm_out", AttnOutRole, inner, embd)
	d.state(add(mul(kept, add(inner, shared)), mul(state, inner)))
}

// Declare is Part.Declare. dt_rank is the number of heads, which share B and C.
func (p ProjectedMamba2) Declare(d *Decl) {
	embd, inner, state, heads := d.Size("n_embd"), d.Size("d_inner"), d.Size("d_state"), d.Size("dt_rank")
	if groups := d.Size("n_group"); heads < 1 || inner%heads != 0 || groups != 0 {
		d.contradiction("a state space model of %d channels, %d heads and %d groups, want a multiple and no groups",
			inner, heads, groups)
		return
	}
	rank := d.Size(p.StepsRank())
	d.linear(Yes, "ssm_in", QKVRole, embd, mul(2, inner))
	kept := d.convolution("ssm_conv1d", d.Size("d_conv"), inner)
	d.linear(Yes, "ssm_x", Other, inner, add(rank, mul(2, state)))
	d.exact(Yes, "ssm_dt.bias", KernelRole, heads)
	d.linear(Yes, "ssm_dt", Other, rank, heads)
	d.exact(Yes, "ssm_a", KernelRole, heads)
	d.exact(Yes, "ssm_d", KernelRole, heads)
	d.exact(Yes, "ssm_dt_norm", NormRole, rank)
	d.exact(Yes, "ssm_b_norm", NormRole, state)
	d.exact(Yes, "ssm_c_norm", NormRole, state)
	d.linear(Yes, "ssm_out", AttnOutRole, inner, embd)
	d.state(mul(inner, add(kept, state)))
}

// Declare is Part.Declare. dt_rank is the number of heads, n_group that of heads of queries and keys.
func (GatedDeltaNet) Declare(d *Decl) {
	embd, inner, state := d.Size("n_embd"), d.Size("d_inner"), d.Size("d_state")
	heads, groups := d.Size("dt_rank"), d.Size("n_group")
	if heads < 1 || groups < 1 || inner%heads != 0 || heads%groups != 0 {
		d.contradiction("a delta net of %d values, %d heads and %d heads of keys, want multiples", inner, heads, groups)
		return
	}
	mixed := add(inner, mul(2, groups, state))
	d.linear(Yes, "attn_qkv", QKVRole, embd, mixed)
	d.linear(Yes, "attn_gate", Other, embd, inner)
	if d.Has("ssm_ba") {
		d.linear(Yes, "ssm_ba", Other, embd, mul(2, heads))
	} else {
		d.linear(Yes, "ssm_alpha", Other, embd, heads)
		d.linear(Yes, "ssm_beta", Other, embd, heads)
	}
	kept := d.convolution("ssm_conv1d", d.Size("d_conv"), mixed)
	d.exact(Yes, "ssm_dt.bias", KernelRole, heads)
	d.exact(Yes, "ssm_a", KernelRole, heads)
	d.weight(Yes, "ssm_norm", NormRole, inner/heads)
	d.linear(Yes, "ssm_out", AttnOutRole, inner, embd)
	d.state(add(mul(kept, mixed), mul(state, inner)))
}

// Declare is Part.Declare.
func (k KDA) Declare(d *Decl) {
	embd, heads, size, length := d.Size("n_embd"), d.Size("n_head"), d.Size(kdaSize), d.Size("d_conv")
	all, kept := mul(heads, size), int64(0)
	for _, t := range []struct {
		letter string
		role   Role
	}{{"q", QueryRole}, {"k", KeyRole}, {"v", ValueRole}} {
		d.linear(Yes, "attn_"+t.letter, t.role, embd, all)
		kept = d.convolution("ssm_conv1d_"+t.letter, length, 1, all)
	}
	for _, name := range []string{"ssm_f", "ssm_g"} { // decay, output gate
		if k.FullGate && name == "ssm_g" {
			d.linear(Yes, name, Other, embd, all)
			continue
		}
		if d.Has(name+"_a") && !d.Has(name+"_b") {
			d.linear(Yes, name+"_a", Other, embd, all)
			continue
		}
		d.linear(Yes, name+"_a", Other, embd, size)
		d.linear(Yes, name+"_b", Other, size, all)
	}
	d.linear(Yes, "ssm_beta", Other, embd, heads)
	d.exact(Yes, "ssm_dt.bias", KernelRole, all)
	if k.Negative {
		d.exact(Yes, "ssm_a", KernelRole, heads)
	} else {
		d.exact(Yes, "ssm_a", KernelRole, 1, heads)
	}
	d.weight(Yes, "ssm_norm", NormRole, size)
	d.linear(Yes, "attn_output", AttnOutRole, all, embd)
	d.state(mul(all, add(mul(3, kept), size)))
}

// Declare is Part.Declare.
func (Lightning) Declare(d *Decl) {
	embd, heads, size := d.Size("n_embd"), d.Size("n_head"), d.Size("n_embd_head_k")
	d.linear(Yes, "attn_qkv", QKVRole, embd, mul(3, heads, size))
	d.vector(Yes, "attn_norm_2", mul(heads, size))
	d.linear(Yes, "attn_gate", Other, embd, mul(heads, size))
	d.linear(Yes, "attn_output", AttnOutRole, mul(heads, size), embd)
	d.state(mul(heads, size, size))
}

// timeMix declares the common part of the time mixing of RWKV 6 and 7, with keys and values of kv values.
func (d *Decl) timeMix(embd, kv int64) {
	size := d.Size(wkvSize)
	if size < 1 || embd%size != 0 {
		d.contradiction("embeddings of %d values, want a multiple of the %d values of a head", embd, size)
		return
	}
	d.linear(Yes, "time_mix_receptance", QueryRole, embd, embd)
	d.linear(Yes, "time_mix_key", KeyRole, embd, kv)
	d.linear(Yes, "time_mix_value", ValueRole, embd, kv)
	d.linear(Yes, "time_mix_output", AttnOutRole, embd, embd)
	d.vector(May, "time_mix_ln", embd)
	d.state(mul(embd, add(d.Size(wkvShifts), size)))
}

// Declare is Part.Declare.
func (RWKV6) Declare(d *Decl) {
	QRWKV6{}.Declare(d)
	embd, size := d.Size("n_embd"), max(1, d.Size(wkvSize))
	d.vector(Yes, "time_mix_ln", embd)
	d.weight(Yes, "time_mix_first", KernelRole, size, embd/size)
}

// Declare is Part.Declare.
func (QRWKV6) Declare(d *Decl) {
	embd := d.Size("n_embd")
	kv := embd
	if heads := d.Size(wkvHeads); heads > 0 {
		kv = mul(heads, d.Size(wkvSize))
	}
	d.timeMix(embd, kv)
	d.linear(Yes, "time_mix_gate", GateRole, embd, embd)
	d.weight(Yes, "time_mix_lerp_x", KernelRole, embd)
	const shifts = "wkvrg" // of decay, key, value, receptance, gate
	if d.Has("time_mix_lerp_w") {
		for letter := range strings.SplitSeq(shifts, "") {
			d.weight(Yes, "time_mix_lerp_"+letter, KernelRole, embd)
		}
	} else {
		d.weight(Yes, "time_mix_lerp_fused", KernelRole, embd, 1, 1, int64(len(shifts)))
	}
	extra, decay := d.Size(wkvExtra), d.sizeOrAny(wkvDecay)
	d.linear(Yes, "time_mix_w1", KernelRole, embd, mul(int64(len(shifts)), extra))
	d.linear(Yes, "time_mix_w2", KernelRole, extra, embd, int64(len(shifts)))
	d.weight(Yes, "time_mix_decay", KernelRole, embd)
	d.linear(Yes, "time_mix_decay_w1", KernelRole, embd, decay)
	d.linear(Yes, "time_mix_decay_w2", KernelRole, decay, embd)
}

// rwkv7MLPs are the low-rank MLPs of RWKV 7.
var rwkv7MLPs = []struct {
	letter string
	rank   Num
}{
	{"w", "@attention.decay_lora_rank"},
	{"a", iclrRank},
	{"v", "@attention.value_residual_mix_lora_rank"},
	{"g", "@attention.gate_lora_rank"},
}

// Declare is Part.Declare.
func (RWKV7) Declare(d *Decl) {
	embd := d.Size("n_embd")
	d.timeMix(embd, embd)
	// there may be a token shift of the gate without its matrices
	d.weight(Yes, "time_mix_lerp_fused", KernelRole,
		d.pick("time_mix_lerp_fused", []int64{embd, 1, 1, 6}, []int64{embd, 1, 1, 5})...)
	for _, m := range rwkv7MLPs {
		rank, presence := m.rank, Yes
		switch {
		case m.letter == "v" && d.layer == 0: // copies of those of a, which are not used
			rank, presence = iclrRank, May
		case m.letter == "g" && !d.Has("time_mix_g1"):
			continue
		}
		n := d.sizeOrAny(rank)
		d.linear(presence, "time_mix_"+m.letter+"1", KernelRole, embd, n)
		d.linear(presence, "time_mix_"+m.letter+"2", KernelRole, n, embd)
		if m.letter != "g" {
			d.weight(presence, "time_mix_"+m.letter+"0", KernelRole, embd)
		}
	}
	for _, name := range []string{"time_mix_k_k", "time_mix_k_a", "time_mix_r_k"} {
		d.weight(Yes, name, KernelRole, embd)
	}
}

// Declare is Part.Declare.
func (ShortConv) Declare(d *Decl) {
	embd := d.Size("n_embd")
	d.linear(Yes, "shortconv.in_proj", QKVRole, embd, mul(3, embd))
	kept := d.convolution("shortconv.conv", d.Size(convLength), embd)
	d.linear(Yes, "shortconv.out_proj", AttnOutRole, embd, embd)
	d.state(mul(embd, kept))
}
