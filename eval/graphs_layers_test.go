package eval

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/graph"
)

// graphLayer is one layer of a graph, with choices made.
type graphLayer struct {
	order      []string // norms and blocks, as evaluatorOrder has them
	mixer, ffn graph.Part
	scales     []graph.Num // of residual updates
}

// residualText describes a residual update: its norm before the block, after it, and of the sum.
func residualText(pre, block, post, sum string) string {
	words := slices.DeleteFunc([]string{pre, block, post, "add", sum}, func(s string) bool { return s == "" })
	return strings.Join(words, " ")
}

// graphLayer returns the layer of a scope.
func (c *graphCase) graphLayer(s *graph.Scope) (l graphLayer) {
	residual := func(r graph.Residual) string {
		block := "mixer"
		switch p := s.Part(r.Part).(type) {
		case graph.FFN, graph.MoE, graph.ChannelMix6, graph.ChannelMix7:
			block, l.ffn = "FFN", p
		default:
			l.mixer = p
		}
		l.scales = append(l.scales, r.Scale)
		return residualText(r.Pre.Name, block, r.Post.Name, r.Sum.Name)
	}
	for _, x := range s.Steps(c.declared.Layer) {
		switch x := x.(type) {
		case graph.Residual:
			l.order = append(l.order, residual(x))
		case graph.Parallel:
			var blocks []string
			for _, r := range x {
				blocks = append(blocks, residual(r))
			}
			l.order = append(l.order, "{"+strings.Join(blocks, " | ")+"}")
		case graph.AddInput:
			if s.Has(x.Norm.Name) {
				l.order = append(l.order, "add the input, "+x.Norm.Name)
			}
		case graph.PerLayerEmbedding:
			if s.Size("@embedding_length_per_layer_input or 0") > 0 {
				l.order = append(l.order, "per-layer embedding "+graphActivation(c, x.Act))
			}
		case graph.LearnedScale:
			if s.Has(x.Tensor) {
				l.order = append(l.order, x.Tensor)
			}
		case graph.ScaleStream:
			l.order = append(l.order, fmt.Sprintf("scale %v", s.Float(x.By)))
		default:
			l.order = append(l.order, fmt.Sprintf("%T", x))
		}
	}
	return l
}

// evaluatorOrder returns the norms and blocks of a layer.
func (c *graphCase) evaluatorOrder(l *layer) (order []string) {
	pre := l.ffnNorm
	if l.parallel && pre == nil {
		pre = l.attnNorm
	}
	mix := residualText(c.normName(l.attnNorm), "mixer", c.normName(l.postAttn), c.normName(l.residualNorms[0]))
	ffn := residualText(c.normName(pre), "FFN", c.normName(l.postFFN), c.normName(l.residualNorms[2]))
	switch {
	case l.parallel:
		order = append(order, "{"+mix+" | "+ffn+"}")
	case l.mixer != (noMixer{}):
		order = append(order, mix)
	}
	if n := l.residualNorms[1]; n != nil {
		order = append(order, "add the input, "+c.normName(n))
	}
	if !l.parallel && (l.ffn != nil || l.experts != nil) {
		order = append(order, ffn)
	}
	if l.perLayer != nil {
		order = append(order, "per-layer embedding "+functionName(c.p.graph.Activation))
	}
	if l.outputScale != nil {
		order = append(order, "layer_output_scale")
	}
	if l.halved {
		order = append(order, "scale 0.5")
	}
	return order
}

// compareLayer compares layer i.
func (c *graphCase) compareLayer(i int) {
	c.layer = i
	s, of := c.d.At(i), &c.r.layers[i]
	l := c.graphLayer(s)
	same(c, "order of norms and blocks", strings.Join(l.order, ", "), strings.Join(c.evaluatorOrder(of), ", "))
	for _, scale := range l.scales {
		c.sameFactor("scale of residual updates", s.Float(scale), c.p.residualScale)
	}
	parts, mixers := []graph.Part{l.mixer}, []mixer{of.mixer}
	if sum, ok := l.mixer.(graph.Sum); ok {
		parts = nil
		for _, p := range sum {
			parts = append(parts, s.Part(p))
		}
	}
	if both, ok := of.mixer.(parallelMixers); ok {
		mixers = []mixer{both.a, both.b}
	}
	var got, want []string
	for _, p := range parts {
		got = append(got, graphMixer(p))
	}
	for _, m := range mixers {
		want = append(want, evaluatorMixer(m))
	}
	if same(c, "mixer", strings.Join(got, " + "), strings.Join(want, " + ")) {
		for j, p := range parts {
			c.compareAttention(s, p, mixers[j])
		}
		c.compareKept(mixers)
	}
	c.compareFFN(s, l.ffn, of)
}

// Names of mixers.
const (
	isAttention = "attention"
	isMLA       = "MLA"
	isMamba1    = "Mamba 1"
	isMamba2    = "Mamba 2"
	isDeltaNet  = "gated delta net"
	isKDA       = "KDA"
	isRWKV6     = "RWKV 6"
	isQRWKV6    = "RWKV 6, converted from attention"
	isRWKV7     = "RWKV 7"
	isShortConv = "short convolution"
	isNone      = "none"

	withGates       = ", gates next to queries"
	withSharedKV    = ", shared KV, keys as values"
	interleavedKeys = ", head h has key head h mod n_group"
)

func graphMixer(p graph.Part) string {
	switch p := p.(type) {
	case nil, graph.Nothing:
		return isNone
	case graph.Attention:
		switch qkv := p.QKV.(type) {
		case nil, graph.Separate:
			return isAttention
		case graph.GatedQueries:
			return isAttention + withGates
		case graph.SharedKV:
			if _, ok := qkv.Own.(graph.KeysAsValues); ok {
				return isAttention + withSharedKV
			}
		}
	case graph.MLA:
		return isMLA
	case graph.Mamba1:
		return isMamba1
	case graph.Mamba2:
		return isMamba2
	case graph.GatedDeltaNet:
		if p.KeysTakeTurns {
			return isDeltaNet + interleavedKeys
		}
		return isDeltaNet
	case graph.KDA:
		return isKDA
	case graph.RWKV6:
		return isRWKV6
	case graph.QRWKV6:
		return isQRWKV6
	case graph.RWKV7:
		return isRWKV7
	case graph.ShortConv:
		return isShortConv
	}
	return fmt.Sprintf("%+v", p)
}

func evaluatorMixer(m mixer) string {
	switch m := m.(type) {
	case noMixer:
		return isNone
	case *attention, *outputGate:
		return isAttention
	case *gatedQueryAttention:
		return isAttention + withGates
	case *sharedKVAttention:
		return isAttention + withSharedKV
	case *mla:
		return isMLA
	case *mamba:
		return isMamba1
	case *mamba2:
		return isMamba2
	case *deltaNet:
		if m.interleavedKeys {
			return isDeltaNet + interleavedKeys
		}
		return isDeltaNet
	case *kimiDeltaNet:
		return isKDA
	case *wkv6:
		if m.first == nil {
			return isQRWKV6
		}
		return isRWKV6
	case *wkv7:
		return isRWKV7
	case *shortConv:
		return isShortConv
	}
	return fmt.Sprintf("%T", m)
}

// compareKept compares what a layer keeps of a text: elements of keys and values for each token, and of states. The
// evaluator does not know the states of RWKV.
func (c *graphCase) compareKept(mixers []mixer) {
	type kept struct{ keys, values, window, state int }
	var got, want kept
	for _, x := range c.d.Caches() {
		if x.Layer == c.layer {
			got.keys, got.values = got.keys+int(x.Keys), got.values+int(x.Vals)
			got.window, got.state = max(got.window, int(x.Window)), got.state+int(x.State)
		}
	}
	for _, m := range mixers {
		switch m := m.(type) {
		case *mla:
			want.window = m.window
			if m.kvUp == nil {
				want.keys += m.rank + m.ropeDim
			} else {
				want.keys, want.values = want.keys+m.n*m.keyLen, want.values+m.n*m.valueLen
			}
		case *sharedKVAttention:
			if m.source == nil {
				want = kept{m.kv * m.keyLen, m.kv * m.valueLen, m.window, 0}
			}
		case *mamba:
			want.state += m.inner * (m.ssm.conv - 1 + m.state)
		case *mamba2:
			want.state += (m.ssm.conv-1)*(m.inner+2*m.groups*m.state) + m.state*m.inner
		case *deltaNet:
			values := m.heads * m.valueLen
			want.state += (len(m.conv.taps)-1)*(values+2*m.keys*m.keyLen) + values*m.keyLen
		case *kimiDeltaNet:
			want.state += m.heads * m.size * (3*(len(m.convs[0].taps)-1) + m.size)
		case *shortConv:
			want.state += m.width * (len(m.conv.taps) - 1)
		case *wkv6, *wkv7:
			want.state = got.state
		default:
			if a := c.evaluatorAttention(m); a != nil {
				want.keys, want.values = want.keys+a.kv*a.keyLen, want.values+a.kv*a.valueLen
				want.window = a.window
			}
		}
	}
	same(c, "cache and state", got, want)
}

// compareFFN compares the feed-forward block of a layer.
func (c *graphCase) compareFFN(s *graph.Scope, p graph.Part, l *layer) {
	got, want := isNone, isNone
	const (
		isFFN     = "FFN"
		isExperts = "experts"
		isMix6    = "channel mix of RWKV 6"
		isMix7    = "channel mix of RWKV 7"
	)
	switch p.(type) {
	case graph.FFN:
		got = isFFN
	case graph.MoE:
		got = isExperts
	case graph.ChannelMix6:
		got = isMix6
	case graph.ChannelMix7:
		got = isMix7
	}
	switch f := l.ffn.(type) {
	case *feedForward:
		want = isFFN
	case *channelMix:
		if want = isMix7; f.receptance != nil {
			want = isMix6
		}
	}
	if l.experts != nil {
		want = isExperts
	}
	if !same(c, "feed-forward block", got, want) {
		return
	}
	switch p := p.(type) {
	case graph.FFN:
		f := l.ffn.(*feedForward)
		same(c, "length of the FFN", s.Size("n_ff"), int64(f.ff))
		same(c, "activation", graphFFN(c, p), c.evaluatorFFN(f))
	case graph.MoE:
		c.compareExperts(s, p, l.experts)
	case graph.ChannelMix6, graph.ChannelMix7:
		same(c, "length of the FFN", s.Size("n_ff"), int64(l.ffn.(*channelMix).key.w.Rows))
	}
}

const gated = ", gated"

// graphFFN describes the activation and the gate of a network.
func graphFFN(c *graphCase, f graph.FFN) string {
	text := graphActivation(c, f.Act)
	if f.Gate == graph.Gated {
		text += gated
	}
	return text
}

func graphActivation(c *graphCase, a graph.Activation) string {
	switch a := a.(type) {
	case graph.Act:
		return string(a)
	case graph.SwiGLUOAI:
		return fmt.Sprint("SwiGLU OAI ", a.Alpha, a.Limit)
	case graph.XIELU:
		return "xIELU"
	case graph.ActOf:
		if name := c.text(a.Key); name != "" {
			return functionName(activations[name])
		}
		return string(a.Or)
	}
	return fmt.Sprintf("%T", a)
}

// evaluatorFFN describes the same of the evaluator's network.
func (c *graphCase) evaluatorFFN(f *feedForward) string {
	suffix := ""
	act := c.p.activation
	if f.gate != nil || f.fused {
		suffix = gated
	} else if u := c.p.graph.UngatedActivation; u != nil {
		act = *u
	}
	switch a := f.activation.(type) {
	case swigluOAI:
		return fmt.Sprint("SwiGLU OAI ", a.alpha, a.limit) + suffix
	case xIELU:
		return "xIELU" + suffix
	}
	return functionName(act) + suffix
}

// compareExperts compares experts and their router.
func (c *graphCase) compareExperts(s *graph.Scope, p graph.MoE, x *experts) {
	same(c, "experts", s.Size("n_expert"), int64(x.n))
	same(c, "experts of a token", s.Size("@expert_used_count"), int64(x.used))
	same(c, "length of an expert", s.Size("n_ff_exp"), int64(x.ff))
	same(c, "activation of experts", graphFFN(c, p.Experts), c.evaluatorFFN(x.expert(0)))

	r := p.Router
	score, topK := int64(r.Score), r.TopKNorm
	if n := s.Size("@expert_gating_func or 0"); n != 0 {
		score = n
	}
	if v, ok := s.Value("@expert_weights_norm"); ok {
		topK = !v.IsZero()
	}
	same(c, "score of the router", score, int64(x.score))
	same(c, "normalized top-k weights", topK, x.normalizeTopK)
	c.sameFactor("scale of expert weights", s.Float("@expert_weights_scale or 1"), float64(x.scale))
	same(c, "router bias", r.Bias && c.has(c.tensorName("exp_probs_b.bias")), x.routerBias != nil)
	groups, used := int64(0), int64(0)
	if r.Groups {
		groups, used = s.Size("@expert_group_count or 0"), s.Size("@expert_group_used_count or 0")
	}
	same(c, "groups of experts", groups, int64(x.groups))
	same(c, "groups of a token", used, int64(x.groupsUsed))

	early, weigh, latent := false, false, false
	for _, option := range p.With {
		switch option.(type) {
		case graph.EarlyRouter:
			early = true
		case graph.WeighInputs:
			weigh = true
		case graph.LatentExperts:
			latent = s.Has("ffn_latent_down")
		default:
			c.differ("option of experts", fmt.Sprintf("%T", option), "none")
		}
	}
	same(c, "early router", early, x.earlyRouter)
	same(c, "weighed inputs", weigh, x.weighInputs)
	same(c, "latent experts", latent, x.projection != nil)

	shared := p.Shared == graph.HasShared || p.Shared == graph.GatedShared ||
		p.Shared == graph.MayShared && s.Has("ffn_down_shexp")
	same(c, "shared expert", shared, x.shared != nil)
	same(c, "gate of the shared expert", p.Shared == graph.GatedShared, x.sharedGate != nil)
	if shared && x.shared != nil {
		same(c, "length of the shared expert", s.Size("n_ff_shexp"), int64(x.shared.ff))
		same(c, "activation of the shared expert", graphFFN(c, p.Experts), c.evaluatorFFN(x.shared))
	}
}
