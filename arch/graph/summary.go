package graph

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Summary returns what the model computes in one line of standard terms: mixers; feed-forward networks; what else differs
// from a decoder of pre-norm layers with RMS norms. Alternatives that layers or files have are between slashes, or have
// the layers in parentheses. Sizes, factors and bases are left out, parts without a usual term have the name of their
// type. Summary returns "" for nil.
func (m *Model) Summary() string {
	if m == nil {
		return ""
	}
	s := summary{model: m}
	l := s.steps(m.Layer)
	var rest phrases
	switch {
	case m.Norm.OrRMS != "":
		rest.add("layer norm or RMS norm")
	case m.Norm.Centered:
		rest.add("layer norm")
	}
	if m.Norm.Groups != "" {
		rest.add("norms of groups")
	}
	rest.add(l.order()...)
	rest.add(s.outside()...)
	rest.add(l.rest...)
	switch x := m.Second.(type) {
	case Decoder:
		rest.add("a decoder of " + strings.Join(s.steps(x.Layer).mixers, " and "))
	case Decision:
		rest.add("a decision head of " + strings.Join(s.steps(x.Layer).mixers, " and "))
	}
	var parts []string
	for _, p := range []phrases{l.mixers, l.ffns, rest} {
		if len(p) > 0 {
			parts = append(parts, strings.Join(p, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// phrases is a list without repetitions.
type phrases []string

func (l *phrases) add(items ...string) {
	for _, s := range items {
		if s != "" && !slices.Contains(*l, s) {
			*l = append(*l, s)
		}
	}
}

type summary struct{ model *Model }

// layerSummary is the summary of some steps.
type layerSummary struct{ mixers, ffns, orders, rest phrases }

// add adds the summary of further steps.
func (l *layerSummary) add(o layerSummary) {
	l.mixers.add(o.mixers...)
	l.ffns.add(o.ffns...)
	l.orders.add(o.orders...)
	l.rest.add(o.rest...)
}

// The arrangements of norms that order compares.
const (
	preNorms      = "pre-norm"
	parallelParts = "parallel"
	sandwich      = "sandwich norms"
	outputNorm    = "norms of outputs only"
	noNorm        = "no norm"
)

// order returns the arrangements of norms that are not those of a pre-norm model.
func (l *layerSummary) order() []string {
	orders := slices.DeleteFunc(slices.Clone(l.orders), func(s string) bool {
		return s == noNorm && len(l.orders) > 1 || s == outputNorm && slices.Contains(l.orders, sandwich)
	})
	switch {
	case len(orders) == 1 && orders[0] == preNorms:
		return nil
	case slices.Contains(orders, parallelParts) && slices.Contains(orders, preNorms):
		return []string{"parallel or sequential"}
	}
	return slices.DeleteFunc(orders, func(s string) bool { return s == preNorms })
}

// outside returns what is outside of layers.
func (s *summary) outside() (l phrases) {
	e := s.model.Embed
	for text, is := range map[string]bool{
		"scaled embeddings": e.Scale != "", "learned positions": e.Positions != No, "token types": e.Types,
		"embedding norm": e.Norm != Norm{},
	} {
		if is {
			l = append(l, text)
		}
	}
	slices.Sort(l)
	switch x := s.model.Streams.(type) {
	case nil:
	case AttentionResiduals:
		l.add("attention residuals")
	case HyperConnections:
		l.add("hyper-connections")
	case GatedStreams:
		l.add("gated residual streams")
	default:
		l.add(TypeName(x))
	}
	switch x := s.model.Loop.(type) {
	case nil:
	case Repeat:
		l.add("layers run several times")
	case HRM:
		l.add("two stacks of layers in cycles")
	default:
		l.add(TypeName(x))
	}
	switch x := s.model.Adapters.(type) {
	case nil:
	case TokenAdapters:
		l.add("adapters by control tokens")
	default:
		l.add(TypeName(x))
	}
	switch h := s.model.Head.(type) {
	case LM:
		if h.Scale != "" {
			l.add("scaled logits")
		}
		if h.SoftCap != "" {
			l.add("logit soft cap")
		}
		if h.Never != (TokenRange{}) {
			l.add("tokens without probability")
		}
	case Pool:
		l.add("pooling")
	}
	return l
}

// steps returns the summary of steps one after the other.
func (s *summary) steps(steps []Step) (l layerSummary) {
	for _, step := range steps {
		switch step := step.(type) {
		case Residual:
			l.add(s.residual(step))
		case FromInput:
			l.add(s.residual(step.Residual))
			l.rest.add("a part reads the layer's input")
		case FromUpdate:
			l.add(s.residual(step.Residual))
			l.rest.add("a part reads another's output")
		case Connected:
			l.add(s.residual(step.Residual))
		case Attended:
			l.add(s.residual(step.Residual))
		case Mixed:
			l.add(s.residual(step.Residual))
			l.rest.add("mixed streams")
		case FromStreams:
			l.add(s.residual(Residual{Pre: Norm{Name: "hc_" + step.Name + "_norm"}, Part: step.Part}))
		case Parallel:
			for _, r := range step {
				o := s.residual(r)
				o.orders = phrases{parallelParts}
				l.add(o)
			}
		case ChooseStep:
			var cases []layerSummary
			for _, c := range step {
				cases = append(cases, s.steps(c.Steps))
			}
			l.add(choose(cases))
		case ScaleStream, LearnedScale:
			l.rest.add("scaled stream")
		case AddInput:
			l.rest.add("adds the layer's input again")
		case AddEmbedding:
			l.rest.add("adds the embedding in each layer")
		case PerLayerEmbedding:
			l.rest.add("per-layer embeddings")
		case NgramEmbedding:
			l.rest.add("n-gram embeddings")
		case Normalize:
			l.orders.add("norms of the stream")
		default:
			l.rest.add(TypeName(step))
		}
	}
	return l
}

// choose returns the summary of alternatives.
func choose(cases []layerSummary) (l layerSummary) {
	var mixers, ffns phrases
	for _, c := range cases {
		mixers.add(strings.Join(c.mixers, ", "))
		ffns.add(strings.Join(c.ffns, ", "))
		l.orders.add(c.orders...)
		l.rest.add(c.rest...)
	}
	l.mixers.add(strings.Join(mixers, " / "))
	l.ffns.add(strings.Join(ffns, " / "))
	return l
}

func (s *summary) residual(r Residual) (l layerSummary) {
	switch none := (Norm{}); {
	case r.Sum != none:
		l.orders.add("post-norm")
	case r.Pre != none && r.Post != none:
		l.orders.add(sandwich)
	case r.Post != none:
		l.orders.add(outputNorm)
	case r.Pre != none:
		l.orders.add(preNorms)
	default:
		l.orders.add(noNorm)
	}
	for _, n := range []Norm{r.Pre, r.Post, r.Sum} {
		if n.Name == Bare.Name {
			l.rest.add("norms without weights")
		}
	}
	if r.Scale != "" || r.Carry != "" {
		l.rest.add("scaled residuals")
	}
	mixers, ffns := s.part(r.Part)
	l.mixers.add(join(mixers))
	l.ffns.add(join(denseFirst(ffns)))
	if len(mixers) > 0 && len(ffns) > 0 {
		l.rest.add("one part in a layer")
	}
	return l
}

// alternative is a part of some layers: its name, and what it has in addition to others of that name.
type alternative struct {
	name, where string
	traits      phrases
}

// part returns the alternatives of a part among mixers, and among feed-forward networks.
func (s *summary) part(p Part) (mixers, ffns []alternative) {
	switch p := p.(type) {
	case Choose:
		for _, c := range p {
			m, f := s.part(c.Then)
			for _, x := range []struct{ to, from *[]alternative }{{&mixers, &m}, {&ffns, &f}} {
				for _, a := range *x.from {
					a.where = strings.Trim(layersOf(c.In)+", "+a.where, ", ")
					*x.to = append(*x.to, a)
				}
			}
		}
	case Sum:
		var m, f phrases
		for _, x := range p {
			a, b := s.part(x)
			m.add(join(a))
			f.add(join(b))
		}
		if len(m) > 0 {
			mixers = []alternative{{name: strings.Join(m, " + ")}}
		}
		if len(f) > 0 {
			ffns = []alternative{{name: strings.Join(f, " + ")}}
		}
	case Normed:
		return s.part(p.Part)
	case Scaled:
		return s.part(p.Part)
	case FFN:
		return nil, []alternative{{name: p.summary()}}
	case MoE:
		return nil, []alternative{s.experts(p)}
	case ChannelMix6, ChannelMix7:
		return nil, []alternative{{name: "RWKV channel mixing"}}
	case Attention:
		return []alternative{s.attention(p)}, nil
	case MLA:
		a := alternative{name: "MLA", traits: s.headSteps(p.Steps)}
		a.traits.add(scoreSteps(p.Scores)...)
		a.traits.add(p.Window.summary())
		a.traits.add(outSteps(p.After)...)
		return []alternative{a}, nil
	case CompressedAttention:
		a := alternative{name: "attention", traits: phrases{"keys as values", s.rope(p.Compressed), "sinks"}}
		a.traits.add(Window{Tokens: p.Window}.summary())
		a.traits.add("compressed keys (some layers)", "sparse by an indexer (some layers)", "grouped output")
		return []alternative{a}, nil
	case Nothing:
	default:
		name, ok := mixerNames[TypeName(p)]
		if !ok {
			name = TypeName(p)
		}
		return []alternative{{name: name}}, nil
	}
	return mixers, ffns
}

// mixerNames are the usual names of parts without options, by type.
var mixerNames = map[string]string{
	"Mamba1": "Mamba", "Mamba2": "Mamba 2",
	"ProjectedMamba2": "Mamba 2 with projected B and C", "GatedDeltaNet": "gated DeltaNet", "Lightning": "lightning attention",
	"RWKV6": "RWKV 6", "QRWKV6": "RWKV 6 without bonus", "RWKV7": "RWKV 7", "ShortConv": "gated short convolution",
	"Matrix": "linear layer", "Laurel": "LAuReL", "CrossAttention": "cross-attention",
}

// join returns the text of alternatives: those of one name together, with what they share first.
func join(all []alternative) string {
	var names phrases
	for _, a := range all {
		names.add(a.name)
	}
	for i, name := range names {
		var same []alternative
		for _, a := range all {
			if a.name == name {
				same = append(same, a)
			}
		}
		shared := slices.DeleteFunc(slices.Clone(same[0].traits), func(t string) bool {
			return slices.ContainsFunc(same, func(a alternative) bool { return !slices.Contains(a.traits, t) })
		})
		texts := append(phrases{name}, shared...)
		for k, a := range same {
			own := slices.DeleteFunc(slices.Clone(a.traits), func(t string) bool { return slices.Contains(shared, t) })
			if len(own) == 0 {
				continue
			}
			where := a.where
			if where == "" && k > 0 {
				where = "other layers"
			}
			texts.add(in(where, strings.Join(own, " and ")))
		}
		names[i] = strings.Join(texts, ", ")
	}
	return strings.Join(names, " / ")
}

func (s *summary) attention(a Attention) alternative {
	r := alternative{name: "attention"}
	if a.Sees == Both {
		r.name = "bidirectional attention"
	}
	projection := a.QKV
	if shared, ok := projection.(SharedKV); ok {
		r.traits.add("shared KV")
		projection = shared.Own
	}
	switch projection.(type) {
	case GatedQueries:
		r.traits.add("output gate")
	case KeysAsValues:
		r.traits.add("keys as values")
	case ValueExperts:
		r.traits.add("experts of values")
	}
	r.traits.add(s.headSteps(a.Steps)...)
	r.traits.add(scoreSteps(a.Scores)...)
	r.traits.add(a.Window.summary())
	r.traits.add(outSteps(a.After)...)
	return r
}

func (w Window) summary() string {
	if w.Tokens == "" {
		return ""
	}
	return map[WindowShape]string{SlidingWindow: "sliding window", ChunkedWindow: "chunked window",
		SymmetricWindow: "symmetric window"}[w.Shape]
}

func (s *summary) headSteps(steps []HeadStep) (l phrases) {
	for _, step := range steps {
		switch step := step.(type) {
		case On:
			where := layersOf(step.In)
			for _, text := range s.headSteps(step.Steps) {
				l.add(in(where, text))
			}
		case RoPE:
			l.add(s.rope(step))
		case QKNorm:
			if step.May {
				l.add("optional QK-norm")
				continue
			}
			l.add("QK-norm")
		case QKLayerNorm:
			l.add("QK layer norm")
		case UnitNorm:
			l.add("QK-norm without weights")
		case SharedKeyNorm:
			l.add("norm of the shared key")
		case ValueNorm:
			l.add("V-norm")
		case QueryGain:
			l.add("gain of queries")
		case Temperature:
			l.add("attention temperature")
		case Clamp:
			l.add("clamped QKV")
		default:
			l.add(TypeName(step))
		}
	}
	return l
}

// rope has sections where the file may have them, with NeoX pairs.
func (s *summary) rope(r RoPE) string {
	switch {
	case r.Sections == TakingTurn:
		return "interleaved M-RoPE"
	case s.model.Counts("rope.dimension_sections") && r.Pairs == Interleaved:
		return "RoPE GPT-J or M-RoPE"
	case s.model.Counts("rope.dimension_sections"):
		return "M-RoPE"
	case r.Pairs == Interleaved:
		return "RoPE GPT-J"
	}
	return "RoPE NeoX"
}

func scoreSteps(steps []ScoreStep) (l phrases) {
	for _, step := range steps {
		switch step := step.(type) {
		case OnScores:
			where := layersOf(step.In)
			for _, text := range scoreSteps(step.Steps) {
				l.add(in(where, text))
			}
		case SoftCap:
			l.add("soft cap")
		case ALiBi:
			l.add("ALiBi")
		case RelativeBias:
			l.add("relative position bias")
		case Sinks:
			l.add("sinks")
		case Indexer:
			if step.Pooled {
				l.add("sparse by an indexer of pools")
				continue
			}
			l.add("sparse by an indexer")
		case SharedIndexer:
			l.add("sparse by the indexer of an earlier layer")
		case BlockIndexer, PooledIndexer:
			l.add("block-sparse by an indexer")
		default:
			l.add(TypeName(step))
		}
	}
	return l
}

func outSteps(steps []OutStep) (l phrases) {
	for _, step := range steps {
		switch step := step.(type) {
		case OutGate:
			l.add("output gate")
		case SoftplusGate:
			l.add("softplus output gate")
		case OutFactor:
			l.add("scaled outputs")
		case OutNorm:
			l.add("output norm")
		default:
			l.add(TypeName(step))
		}
	}
	return l
}

func (f FFN) summary() string {
	name := ""
	switch a := f.Act.(type) {
	case Act:
		name = map[Act]string{SiLU: "SwiGLU", GELU: "GeGLU", GELUErf: "GeGLU", ReLU: "ReGLU", ReLU2: "ReLU² GLU",
			Tanh: "tanh GLU"}[a]
		if f.Gate == NoGate {
			name = map[Act]string{SiLU: "SiLU MLP", GELU: "GELU MLP", GELUErf: "GELU MLP", ReLU: "ReLU MLP",
				ReLU2: "ReLU² MLP", Tanh: "tanh MLP"}[a]
		}
	case SwiGLUOAI, LimitedSwiGLU:
		name = "limited SwiGLU"
	case SiTU:
		name = "SiTU GLU"
	case SparseGELU:
		name = "sparse GeGLU"
	case XIELU:
		name = "xIELU MLP"
	case ActOf:
		name = "GLU by key"
	}
	if name == "" {
		name = TypeName(f.Act)
	}
	if f.Norm.Name != "" {
		name += " with a norm"
	}
	return name
}

// experts returns the text of a mixture of experts.
func (s *summary) experts(m MoE) alternative {
	var l phrases
	switch {
	case m.Router.Score == SqrtSoftplus:
		l.add("√softplus")
	case s.model.Counts("expert_gating_func"):
		l.add("softmax or sigmoid")
	case m.Router.Score == Sigmoid:
		l.add("sigmoid")
	case m.Router.Score == SoftmaxOfChosen:
		l.add("softmax of top-k")
	default:
		l.add("softmax")
	}
	switch {
	case m.Router.TopKNorm:
		l.add("top-k norm")
	case s.model.Counts("expert_weights_norm"):
		l.add("optional top-k norm")
	}
	if m.Router.Bias {
		l.add("bias")
	}
	if m.Router.Groups {
		l.add("groups")
	}
	switch m.Shared {
	case HasShared:
		l.add("shared expert")
	case MayShared:
		l.add("optional shared expert")
	case GatedShared:
		l.add("gated shared expert")
	}
	for _, o := range m.With {
		switch o := o.(type) {
		case EarlyRouter:
			l.add("router before the mixer")
		case WeighInputs:
			l.add("weighted inputs")
		case LatentExperts:
			l.add("latent experts")
		case GroupExperts:
			l.add("experts of groups")
		case HalvedSum, SharedFFN:
		case RouterNorm:
			l.add("router norm")
		case TokenTable:
			l.add("experts by token")
		default:
			l.add(TypeName(o))
		}
	}
	return alternative{name: moeOf + m.Experts.summary() + " (" + strings.Join(l, ", ") + ")"}
}

const moeOf = "MoE of "

// denseFirst puts dense networks before experts, and leaves out the network of experts that is that of a dense one.
func denseFirst(ffns []alternative) []alternative {
	var dense, sparse []alternative
	for _, a := range ffns {
		if strings.HasPrefix(a.name, moeOf) {
			sparse = append(sparse, a)
		} else {
			dense = append(dense, a)
		}
	}
	for i := range sparse {
		for _, a := range dense {
			if rest, ok := strings.CutPrefix(sparse[i].name, moeOf+a.name+" ("); ok {
				sparse[i].name = "MoE (" + rest
			}
		}
	}
	return append(dense, sparse...)
}

// in returns a text with the layers that it is about, "" for all, before those that it has.
func in(where, text string) string {
	before, inner, ok := strings.Cut(text, " (")
	switch {
	case where == "":
		return text
	case ok && before+" ("+inner == text && strings.HasSuffix(text, ")"):
		return before + " (" + where + ", " + inner
	}
	return text + " (" + where + ")"
}

const someLayers, someModels = "some layers", "some models"

var (
	periodic = regexp.MustCompile(`^\(?i(?: \+ \d+\))? mod (\d+) (!?=) \d+$`)
	byLayer  = regexp.MustCompile(`\bi\b|\bn_head\b|\bn_head_kv\b|\bn_ff\b`)
)

// layersOf returns a phrase for a set of layers, "" for all.
func layersOf(l Layers) string {
	n, in := 0, 0 // in of n layers
	switch l := l.(type) {
	case Every:
		return ""
	case Sliding:
		n, in = l.N, l.N-1
	case Where:
		cond := string(l)
		for part := range strings.SplitSeq(cond, " and ") {
			if m := periodic.FindStringSubmatch(part); m != nil {
				n, _ = strconv.Atoi(m[1])
				if in = n - 1; m[2] == "=" {
					in = 1
				}
			}
		}
		if n == 0 && !byLayer.MatchString(cond) {
			return someModels
		}
	case Not:
		phrase := layersOf(l.Layers)
		if _, err := fmt.Sscanf(phrase, "%d of %d layers", &in, &n); err != nil {
			return phrase
		}
		in = n - in
	}
	if n == 0 {
		return someLayers
	}
	return fmt.Sprintf("%d of %d layers", in, n)
}
