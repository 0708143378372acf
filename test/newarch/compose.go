package main

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// grapher makes the graph of a new family.
type grapher struct {
	keys    map[string]any // of config.json
	file    *graph.File
	layers  []stringSet // names in each layer, without "blk.N." and ".weight"
	outside stringSet
	base    *graph.Model   // of the most similar family that has a graph
	baseOf  string         // its name
	baseHas stringSet      // names of tensors in layers of the similar family
	others  []*graph.Model // of all families, the most similar first
	permute bool           // rows of queries are permuted, for interleaved RoPE
	queries int            // rows of q_proj as a multiple of heads times their size, 0 if they are unknown
	notes   []string
}

func (g *grapher) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// find returns the first value of type T in graphs.
func find[T any](models ...*graph.Model) (found T, ok bool) {
	for _, m := range models {
		if m == nil {
			continue
		}
		walk(reflect.ValueOf(*m), func(v any) {
			if x, is := v.(T); is && !ok {
				found, ok = x, true
			}
		})
		if ok {
			break
		}
	}
	return found, ok
}

// walk calls f for every value in v.
func walk(v reflect.Value, f func(any)) {
	if v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	f(v.Interface())
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), f)
		}
	}
}

// has reports whether a layer has a tensor.
func (g *grapher) has(name string) bool {
	return slices.ContainsFunc(g.layers, func(l stringSet) bool { return l[name] })
}

// writes reports whether the file has a key.
func (g *grapher) writes(key string) bool {
	_, ok := g.file.Metadata.Get(gguf.ArchKey(g.file.Arch, key))
	return ok
}

// recurrent are names of tensors of mixers with a state.
var recurrent = regexp.MustCompile(`^(ssm_|shortconv\.|time_mix_)`)

func isRecurrent(l stringSet) bool {
	for name := range l {
		if recurrent.MatchString(name) {
			return true
		}
	}
	return false
}

// compose returns the graph.
func (g *grapher) compose() *graph.Model {
	m := &graph.Model{Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{}}
	if g.base != nil {
		c := *g.base
		m = &c
		m.Unread = slices.DeleteFunc(slices.Clone(m.Unread), func(u string) bool { return !g.writes(u) && !g.has(u) })
		if len(m.Unread) == 0 {
			m.Unread = nil
		}
	}
	g.norm(m)
	g.embed(m)
	g.head(m)
	mixer, ffn := g.mixer(), g.feedForward()
	m.Layer = g.arrange(m.Layer, mixer, ffn)
	m.Dims = maps.Clone(m.Dims)
	maps.DeleteFunc(m.Dims, func(name string, _ graph.Num) bool {
		return strings.Contains(name, "exp") &&
			!g.has("ffn_gate_inp")
	})
	if len(m.Dims) == 0 {
		m.Dims = nil
	}
	return m
}

func (g *grapher) norm(m *graph.Model) {
	rms, centered := g.writes("attention.layer_norm_rms_epsilon"), g.writes("attention.layer_norm_epsilon")
	switch {
	case rms && !centered && (m.Norm.Centered || m.Norm.Eps == ""):
		m.Norm = graph.RMS
	case centered && !rms && !m.Norm.Centered:
		m.Norm = graph.LayerNorm
	}
}

func (g *grapher) embed(m *graph.Model) {
	if g.outside["position_embd"] && m.Embed.Positions == graph.No {
		m.Embed.Positions = graph.Yes
	} else if !g.outside["position_embd"] {
		m.Embed.Positions = graph.No
	}
	m.Embed.Types = m.Embed.Types && g.outside["token_types"]
	if g.outside["token_embd_norm"] && g.outside["output_norm"] {
		m.Embed.Norm = parts.EmbeddingNorm
	} else if g.outside["output_norm"] {
		m.Embed.Norm = graph.Norm{}
		if f, ok := find[graph.Normalize](&graph.Model{Final: m.Final}); ok && f.Name == "token_embd_norm" {
			m.Final = parts.OutputNorm
		}
	}
	if g.writes("embedding_scale") && !strings.Contains(string(m.Embed.Scale), "embedding_scale") {
		for _, o := range g.others {
			if strings.Contains(string(o.Embed.Scale), "embedding_scale") {
				m.Embed.Scale = o.Embed.Scale
				break
			}
		}
	}
}

func (g *grapher) head(m *graph.Model) {
	lm, ok := m.Head.(graph.LM)
	if !ok {
		return
	}
	switch cap := present(g.keys, "final_logit_softcapping"); {
	case cap && lm.SoftCap == "":
		lm.SoftCap = parts.LogitSoftCap
	case !cap:
		lm.SoftCap = ""
	}
	if scaled := g.writes("logit_scale"); !scaled {
		lm.Scale = ""
	} else if lm.Scale == "" {
		for _, o := range g.others {
			if l, ok := o.Head.(graph.LM); ok && strings.Contains(string(l.Scale), "logit_scale") {
				lm.Scale = l.Scale
				break
			}
		}
	}
	m.Head = lm
}

// present reports whether a key has a value that is not off.
func present(keys map[string]any, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		v, ok := keys[name]
		return ok && !config.IsNo(v) && fmt.Sprint(v) != "0"
	})
}

// mixer returns what mixes tokens.
func (g *grapher) mixer() graph.Part {
	var rec, att, both, none int
	for _, l := range g.layers {
		a := l["attn_q"] || l["attn_qkv"] || l["attn_kv_a_mqa"] || l["attn_q_a"]
		switch r := isRecurrent(l); {
		case r && a && l["ssm_in"] && l["attn_output"]:
			both++
		case r:
			rec++
		case a:
			att++
		default:
			none++
		}
	}
	switch {
	case both > 0:
		if s, ok := find[graph.Sum](slices.Concat([]*graph.Model{g.base}, g.others)...); ok {
			return s
		}
	case rec > 0 && att == 0:
		return g.state()
	case rec > 0:
		cases := parts.RecurrentOr(g.state(), g.attention())
		if c, ok := g.baseChoose(); ok && len(c) == 2 {
			cases[0].In = c[0].In
		}
		return cases
	}
	if none > 0 && att > 0 {
		g.note("%d layers have no attention: graph.Choose with graph.Nothing (arch/deci.go)", none)
	}
	if att == 0 {
		return graph.Nothing{}
	}
	return g.attention()
}

// baseChoose returns the choice between a recurrent mixer and attention in the similar family.
func (g *grapher) baseChoose() (found graph.Choose, ok bool) {
	if g.base == nil {
		return nil, false
	}
	walk(reflect.ValueOf(*g.base), func(v any) {
		if c, is := v.(graph.Choose); is && !ok && len(c) == 2 && isState(c[0].Then) {
			found, ok = c, true
		}
	})
	return found, ok
}

func isState(p graph.Part) bool {
	switch p.(type) {
	case graph.Mamba1, graph.Mamba2, graph.GatedDeltaNet, graph.KDA, graph.RWKV6, graph.QRWKV6, graph.RWKV7,
		graph.ShortConv:
		return true
	}
	return false
}

// state returns the recurrent mixer of the most similar family whose tensors the layers have.
func (g *grapher) state() graph.Part {
	layer := slices.IndexFunc(g.layers, isRecurrent)
	for _, m := range slices.Concat([]*graph.Model{g.base}, g.others) {
		var found graph.Part
		if m == nil {
			continue
		}
		walk(reflect.ValueOf(*m), func(v any) {
			if p, ok := v.(graph.Part); ok && isState(p) && found == nil && g.declares(p, layer) {
				found = p
			}
		})
		if found != nil {
			return found
		}
	}
	g.note("no part of arch/graph/recurrent.go has the tensors of the recurrent layers")
	return graph.Nothing{}
}

// declares reports whether a layer has all tensors that a part needs.
func (g *grapher) declares(p graph.Part, layer int) bool {
	m := &graph.Model{Norm: graph.NormKind{Eps: "1"}, Head: graph.LM{}, Layer: []graph.Step{graph.Residual{Part: p}}}
	f := *g.file
	f.Tensors = map[string][]int64{}
	for i := range g.layers {
		for name := range g.layers[layer] {
			f.Tensors[fmt.Sprintf("blk.%d.%s", i, whole(name))] = nil
		}
	}
	d, err := graph.Declare(m, &f)
	if err != nil {
		return false
	}
	for _, t := range d.Tensors() {
		name, ok := strings.CutPrefix(t.Name, "blk.0.")
		if ok && !t.May && !g.layers[layer][strings.TrimSuffix(name, ".weight")] {
			return false
		}
	}
	return true
}

// whole returns a name of a layer's tensor with its suffix.
func whole(name string) string {
	if strings.HasSuffix(name, ".bias") || strings.HasSuffix(name, "|") {
		return strings.TrimSuffix(name, "|")
	}
	return name + ".weight"
}

// attention returns the attention of layers, those with a window among them.
func (g *grapher) attention() graph.Part {
	if g.has("attn_kv_a_mqa") {
		mla, ok := find[graph.MLA](slices.Concat([]*graph.Model{g.base}, g.others)...)
		if !ok {
			mla = graph.MLA{Steps: []graph.HeadStep{parts.Interleaved}}
		}
		return mla
	}
	local, global := g.baseAttention()
	window := g.windowed()
	global = g.adapt(global)
	if !window {
		global.Window = graph.Window{}
		return global
	}
	if local == nil {
		l := global
		l.Window = parts.Window
		l.Steps = slices.Clone(l.Steps)
		for i, s := range l.Steps {
			if r, ok := s.(graph.RoPE); ok && r.Base == "" && g.writes("rope.freq_base_swa") {
				r.Base = parts.LocalNeoX.Base
				l.Steps[i] = r
			}
		}
		local = &l
	} else {
		l := g.adapt(*local)
		local = &l
	}
	if local.Window == (graph.Window{}) {
		local.Window = parts.Window
	}
	kind, every := g.windows()
	if every {
		return *local
	}
	if old, ok := find[graph.Sliding](g.base); ok && (kind == graph.Sliding{}) {
		kind = old
		g.note("which layers have a window is as in %s (%s): check it", g.baseOf, value(old))
	} else if (kind == graph.Sliding{}) && !g.writes("attention.sliding_window_pattern") {
		g.note("which layers have a window: N of graph.Sliding, or a row attention.sliding_window_pattern " +
			"(parts.SlidingLayers)")
	}
	g.note("RoPE of layers with and without a window (base, scaling, NoPE) is as in %s: the modeling code decides",
		g.baseOf)
	return parts.LocalGlobal(kind, *local, global)
}

// baseAttention returns the attention of layers of the similar family with a window, nil for none, and of the others.
func (g *grapher) baseAttention() (local *graph.Attention, global graph.Attention) {
	global = parts.GQA(parts.NeoX)
	if g.base == nil {
		return nil, global
	}
	var windowed, whole []graph.Attention
	walk(reflect.ValueOf(*g.base), func(v any) {
		if a, ok := v.(graph.Attention); ok {
			if a.Window.Tokens != "" {
				windowed = append(windowed, a)
			} else {
				whole = append(whole, a)
			}
		}
	})
	if len(windowed) > 0 {
		local, global = &windowed[0], windowed[0]
	}
	if len(whole) > 0 {
		global = whole[0]
	}
	return local, global
}

// adapt changes attention of the similar family by the tensors and keys of the new one.
func (g *grapher) adapt(a graph.Attention) graph.Attention {
	var steps []graph.HeadStep
	norm, clamp := g.has("attn_q_norm") || g.has("attn_k_norm"), g.writes("attention.clamp_kqv")
	hadNorm := false
	for _, s := range a.Steps {
		switch x := s.(type) {
		case graph.QKNorm:
			if hadNorm = true; !norm {
				continue
			}
			x.May = x.May && slices.ContainsFunc(g.layers, func(l stringSet) bool {
				return l["attn_q"] &&
					!l["attn_q_norm"] && !isRecurrent(l)
			})
			s = x
		case graph.Clamp:
			if !clamp {
				continue
			}
		case graph.RoPE:
			x.Pairs = g.pairs(x.Pairs)
			s = x
		case graph.On:
			x.Steps = g.pairsOf(x.Steps)
			s = x
		}
		steps = append(steps, s)
	}
	if norm && !hadNorm {
		steps = slices.Insert(steps, 0, graph.HeadStep(parts.QKNorm))
		g.note("QK-norm is before RoPE: exchange the steps if the model rotates first (hunyuan)")
	}
	if clamp && !slices.ContainsFunc(steps, func(s graph.HeadStep) bool { _, ok := s.(graph.Clamp); return ok }) {
		steps = slices.Insert(steps, 0, graph.HeadStep(parts.KeyClamp))
	}
	a.Steps = steps
	if _, gated := a.QKV.(graph.GatedQueries); g.queries == 2 && !gated {
		a.QKV = graph.GatedQueries{}
	} else if gated && g.queries == 1 {
		a.QKV = nil
	}
	var scores []graph.ScoreStep
	hadCap, hadSinks := false, false
	for _, s := range a.Scores {
		switch s.(type) {
		case graph.SoftCap:
			if hadCap = true; !present(g.keys, "attn_logit_softcapping") {
				continue
			}
		case graph.Sinks:
			if hadSinks = true; !g.has("attn_sinks") {
				continue
			}
		}
		scores = append(scores, s)
	}
	if present(g.keys, "attn_logit_softcapping") && !hadCap {
		scores = append(scores, graph.SoftCap{By: "@attn_logit_softcapping or 0"})
	}
	if g.has("attn_sinks") && !hadSinks {
		scores = append(scores, graph.Sinks{})
	}
	a.Scores = scores
	var after []graph.OutStep
	hadGate := false
	for _, s := range a.After {
		if _, ok := s.(graph.OutGate); ok {
			if hadGate = true; !g.gate() {
				continue
			}
		}
		after = append(after, s)
	}
	if g.gate() && !hadGate {
		after = append(after, graph.OutGate{})
	}
	a.After = after
	return a
}

// gate reports whether attention layers have a gate of the outputs.
func (g *grapher) gate() bool {
	return slices.ContainsFunc(g.layers, func(l stringSet) bool { return l["attn_gate"] && !isRecurrent(l) })
}

func (g *grapher) pairs(p graph.Pairs) graph.Pairs {
	switch {
	case g.permute:
		return graph.Interleaved
	case p == graph.Interleaved && g.baseHas["permuted"]: // the other family permutes rows, this one does not
		return graph.NeoX
	}
	return p
}

func (g *grapher) pairsOf(steps []graph.HeadStep) []graph.HeadStep {
	steps = slices.Clone(steps)
	for i, s := range steps {
		if r, ok := s.(graph.RoPE); ok {
			r.Pairs = g.pairs(r.Pairs)
			steps[i] = r
		}
	}
	return steps
}

// windowed reports whether layers have a sliding window that the file keeps.
func (g *grapher) windowed() bool {
	if g.writes("attention.sliding_window") {
		return true
	}
	_, ok := find[graph.Sliding](g.base)
	return ok && len(g.local()) > 0
}

// local returns for each layer whether config.json gives it a window; nil if it has no list with some of both kinds.
func (g *grapher) local() []bool {
	for _, key := range slices.Sorted(maps.Keys(g.keys)) {
		list, _ := g.keys[key].([]any)
		if len(list) != len(g.layers) || !windowLists.MatchString(key) {
			continue
		}
		local, n := make([]bool, len(list)), 0
		for i, v := range list {
			text := fmt.Sprint(v)
			if local[i] = windowKinds.MatchString(text) || text == "1" || text == "true"; local[i] {
				n++
			}
		}
		if n > 0 {
			return local
		}
	}
	return nil
}

var (
	windowLists = regexp.MustCompile(`layer_types|sliding|window|swa|attn_type|attention_type`)
	windowKinds = regexp.MustCompile(`sliding|local|swa|chunk`)
)

// windows returns which layers have a window, the zero value if there is no pattern; every reports whether all
// have one.
func (g *grapher) windows() (kind graph.Sliding, every bool) {
	local := g.local()
	if local == nil {
		for _, key := range []string{"sliding_window_pattern", "_sliding_window_pattern"} {
			var n int
			if fmt.Sscan(fmt.Sprint(g.keys[key]), &n); n > 1 {
				return graph.Sliding{N: n}, false
			}
		}
		return kind, false
	}
	if !slices.Contains(local, false) {
		return kind, true
	}
	for n := 2; n <= min(16, len(local)); n++ {
		for _, first := range []bool{false, true} {
			same := true
			for i, l := range local {
				same = same && l == (first && i%n != 0 || !first && i%n < n-1)
			}
			if same {
				return graph.Sliding{N: n, First: first}, false
			}
		}
	}
	return kind, false
}

// activations are the names of transformers' activations.
var activations = map[string]graph.Act{"silu": graph.SiLU, "swish": graph.SiLU, "gelu": graph.GELU,
	"gelu_new": graph.GELU, "gelu_fast": graph.GELU, "gelu_pytorch_tanh": graph.GELU, "gelu_python": graph.GELUErf,
	"relu": graph.ReLU, "relu2": graph.ReLU2, "tanh": graph.Tanh}

// activation returns the activation that config.json names, or that of the similar family.
func (g *grapher) activation(base graph.Activation) graph.Activation {
	for _, key := range []string{"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act"} {
		name, ok := g.keys[key].(string)
		if !ok {
			continue
		}
		act, known := activations[name]
		if !known {
			g.note("activation %q is unknown: a type of graph.Activation (arch/graph/ffn.go)", name)
			break
		}
		if old, plain := base.(graph.Act); !plain && base != nil {
			g.note("the activation is that of %s, not %s = %q: check it", g.baseOf, key, name)
			break
		} else if old == graph.GELUErf && act == graph.GELU {
			break
		}
		return act
	}
	if base == nil {
		return graph.SiLU
	}
	return base
}

// feedForward returns the second part of layers, nil if there is none.
func (g *grapher) feedForward() graph.Part {
	experts, dense := 0, 0
	for _, l := range g.layers {
		if l["ffn_gate_inp"] {
			experts++
		} else if l["ffn_down"] {
			dense++
		}
	}
	gated := func(suffix string) graph.Gate {
		if g.has("ffn_gate"+suffix) || g.has("ffn_gate_up"+suffix) ||
			!g.baseHas["ffn_gate"+suffix] && g.baseHas["ffn_up"+suffix] && g.baseGate() == graph.Gated {
			return graph.Gated
		}
		return graph.NoGate
	}
	if g.has("channel_mix_key") {
		if p, ok := find[graph.ChannelMix6](g.base); ok {
			return p
		}
		return graph.ChannelMix7{}
	}
	ffn, ok := g.baseFFN()
	if !ok {
		ffn = graph.FFN{Act: graph.SiLU}
	}
	ffn = graph.FFN{Act: g.activation(ffn.Act), Gate: gated("")}
	if experts == 0 && dense == 0 {
		return nil
	}
	if experts == 0 {
		return ffn
	}
	moe, ok := find[graph.MoE](slices.Concat([]*graph.Model{g.base}, g.others)...)
	if !ok {
		moe = parts.Experts(parts.Router, graph.NoShared)
	}
	moe.Experts = graph.FFN{Act: g.activation(moe.Experts.Act), Gate: gated("_exps")}
	moe.Router = g.router(moe.Router)
	switch {
	case g.has("ffn_gate_inp_shexp"):
		moe.Shared = graph.GatedShared
	case g.has("ffn_down_shexp") && moe.Shared != graph.MayShared:
		moe.Shared = graph.HasShared
	case !g.has("ffn_down_shexp"):
		moe.Shared = graph.NoShared
	}
	if dense == 0 {
		if c, ok := find[graph.Choose](g.base); ok && reflect.DeepEqual(c, parts.Sparse(moe, ffn)) {
			return c
		}
		return moe
	}
	return parts.Sparse(moe, ffn)
}

// baseFFN returns the dense network of the similar family.
func (g *grapher) baseFFN() (found graph.FFN, ok bool) {
	if g.base == nil {
		return found, false
	}
	var inside []graph.FFN
	walk(reflect.ValueOf(*g.base), func(v any) {
		switch x := v.(type) {
		case graph.MoE:
			inside = append(inside, x.Experts)
		case graph.FFN:
			if len(inside) > 0 && inside[0] == x {
				inside = inside[1:]
				if !ok {
					found = x
				}
				return
			}
			if !ok {
				found, ok = x, true
			}
		}
	})
	return found, ok || found != graph.FFN{}
}

func (g *grapher) baseGate() graph.Gate {
	f, _ := g.baseFFN()
	return f.Gate
}

// router changes the similar family's router by tensors and keys.
func (g *grapher) router(r graph.Router) graph.Router {
	r.Bias = g.has("exp_probs_b.bias") || g.has("exp_probs_b")
	r.Groups = r.Groups && g.writes("expert_group_count") || g.writes("expert_group_count")
	if norm, ok := g.keys["norm_topk_prob"].(bool); ok && !g.writes("expert_weights_norm") {
		r.TopKNorm = norm
	}
	if s, _ := g.keys["scoring_func"].(string); s == "sigmoid" && !g.writes("expert_gating_func") {
		r.Score = graph.Sigmoid
	}
	return r
}

// arrange puts both parts into layers as the similar family does, if its layers have the same norms.
func (g *grapher) arrange(base []graph.Step, mixer, ffn graph.Part) []graph.Step {
	if arranged, ok := g.substitute(base, mixer, ffn); ok {
		return arranged
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !g.has(n) })
	}
	var scale graph.Num
	if r, ok := find[graph.Residual](&graph.Model{Layer: base}); ok {
		scale = r.Scale
	}
	if g.writes("residual_scale") && scale == "" {
		for _, o := range g.others {
			if r, ok := find[graph.Residual](o); ok && strings.Contains(string(r.Scale), "residual_scale") {
				scale = r.Scale
				break
			}
		}
	}
	var steps []graph.Step
	switch {
	case ffn == nil:
		return []graph.Step{graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: mixer, Scale: scale}}
	case has("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
		steps = parts.Sandwich(mixer, ffn)
	case has("post_attention_norm", "post_ffw_norm"):
		steps = parts.OutputNormOnly(mixer, ffn)
	case has("attn_norm", "ffn_norm"):
		steps = parts.PreNorm(mixer, ffn)
	case has("attn_norm", "post_attention_norm"):
		steps = parts.PreNormAs("post_attention_norm", mixer, ffn)
	case has("attn_output_norm", "layer_output_norm"):
		steps = parts.PostLN(mixer, ffn)
	case has("attn_norm", "attn_norm_2"):
		steps = []graph.Step{parts.Parallel("attn_norm", mixer, "attn_norm_2", ffn)}
	case has("attn_norm"):
		steps = []graph.Step{parts.Parallel("attn_norm", mixer, "attn_norm", ffn)}
		g.note("a layer has one norm: attention and FFN read the same input (parts.Parallel)")
	default:
		steps = parts.PreNorm(mixer, ffn)
		g.note("no arrangement of arch/parts/graph.go has the norms of a layer")
	}
	if scale != "" {
		return parts.Scaled(scale, steps)
	}
	return steps
}

// substitute returns steps with the parts of a new family; ok is false if their norms are not those of its layers.
func (g *grapher) substitute(steps []graph.Step, mixer, ffn graph.Part) (out []graph.Step, ok bool) {
	norms := stringSet{}
	n := 0
	residual := func(r graph.Residual) (graph.Residual, bool) {
		for _, norm := range []graph.Norm{r.Pre, r.Post, r.Sum} {
			if norm.Name != "" && norm != graph.Bare {
				norms[norm.Name] = true
			}
		}
		n++
		switch n {
		case 1:
			r.Part = mixer
		case 2:
			r.Part = ffn
		}
		return r, n <= 2 && r.Part != nil
	}
	for _, s := range steps {
		switch x := s.(type) {
		case graph.Residual:
			if x, ok = residual(x); !ok {
				return nil, false
			}
			if x.Scale != "" && !g.writes("residual_scale") && strings.Contains(string(x.Scale), "residual_scale") {
				x.Scale = ""
			}
			s = x
		case graph.Parallel:
			list := make(graph.Parallel, len(x))
			for i, r := range x {
				if list[i], ok = residual(r); !ok {
					return nil, false
				}
			}
			s = list
		case graph.LearnedScale:
			if !g.has(x.Tensor) {
				continue
			}
		case graph.ChooseStep, graph.AddInput, graph.PerLayerEmbedding:
			return nil, false
		}
		out = append(out, s)
	}
	if n == 0 || (n == 2) != (ffn != nil) {
		return nil, false
	}
	for name := range norms {
		if !g.has(name) {
			return nil, false
		}
	}
	for _, name := range []string{"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "attn_norm_2",
		"attn_output_norm", "layer_output_norm"} {
		if g.has(name) && !norms[name] {
			return nil, false
		}
	}
	return out, true
}

// check declares the tensors and keys of the graph for the file, and notes the differences.
func (g *grapher) check(m *graph.Model) {
	d, err := graph.Declare(m, g.file)
	if err != nil {
		g.note("the graph does not fit the file: %v", err)
		return
	}
	declared := stringSet{}
	missing := stringSet{}
	for _, t := range d.Tensors() {
		declared[t.Name] = true
		if _, ok := g.file.Tensors[t.Name]; !ok && !t.May {
			missing[layerless(t.Name)] = true
		}
	}
	list := func(names []string, format string) {
		if len(names) > 0 {
			g.note(format+"%s", strings.Join(names, ", "), hint(names[0], nil))
		}
	}
	list(slices.Sorted(maps.Keys(missing)), "the graph needs tensors that layers lack: %s")
	extra := stringSet{}
	for name := range g.file.Tensors {
		if !declared[name] && !m.Ignores(name) && !m.Ignores(layerless(name)) {
			extra[layerless(name)] = true
		}
	}
	list(slices.Sorted(maps.Keys(extra)), "no part of the graph has tensors %s")
	read := graph.Keys(m)
	var unread []string
	for _, kv := range g.file.Metadata {
		key, ok := strings.CutPrefix(kv.Key, g.file.Arch+".")
		if ok && !slices.Contains(read, key) && !m.Ignores(key) && !slices.Contains(unreadKeys, key) {
			unread = append(unread, key)
		}
	}
	list(unread, "no part of the graph reads keys %s")
}

// unreadKeys are keys that no graph reads: those for programs, and those that are there for other versions.
var unreadKeys = []string{"context_length", "vocab_size", "attention.layer_norm_rms_epsilon", "block_count",
	"embedding_length", "rope.scaling.yarn_truncate", "rope.dimension_count", "rope.scaling.type", "rope.scaling.factor",
	"rope.scaling.original_context_length"}

var blk = regexp.MustCompile(`^blk\.\d+\.`)

func layerless(name string) string { return blk.ReplaceAllString(name, "blk.N.") }

// graphOf makes the graph for a table, whose rows are complete.
func graphOf(c *checkpoint, t *table.Arch, list []*known, names []string) (*graph.Model, []string, error) {
	view, err := c.view()
	if err != nil {
		return nil, nil, err
	}
	g := &grapher{keys: keysOf(c.root), outside: stringSet{}, baseHas: stringSet{}}
	g.layers = make([]stringSet, c.layers)
	for i := range g.layers {
		g.layers[i] = stringSet{}
	}
	_, kvs, err := t.KVs(view, 1)
	if err != nil {
		g.note("the metadata rows give an error: %v", err)
		kvs = nil
		for i := range t.Metadata {
			if t.Metadata[i].Key == gguf.KeyFileType || t.Metadata[i].Many != nil {
				continue
			}
			if v, ok, err := t.Metadata[i].Value(view); err == nil && ok {
				kvs.Set(gguf.ArchKey(t.Name, t.Metadata[i].Key), v)
			}
		}
	}
	g.file = &graph.File{Arch: t.Name, Metadata: kvs, Tensors: map[string][]int64{}}
	for i := range t.Tensors {
		for _, l := range c.layersOf(&t.Tensors[i]) {
			for _, name := range l.outputs {
				g.file.Tensors[name] = nil
				short := strings.TrimSuffix(name, ".weight")
				if l.bid < 0 {
					g.outside[short] = true
				} else if l.bid < c.layers {
					g.layers[l.bid][strings.TrimPrefix(short, fmt.Sprintf("blk.%d.", l.bid))] = true
				}
			}
		}
		if tr := t.Tensors[i].Transform; tr != nil && tr.Name == parts.PermuteQ.Name {
			g.permute = true
		}
	}
	for _, k := range list {
		if k.table.Graph == nil {
			continue
		}
		if g.base == nil {
			g.base, g.baseOf = k.table.Graph, k.table.Name
			for i := range k.table.Tensors {
				r := &k.table.Tensors[i]
				if r.Transform != nil && r.Transform.Name == parts.PermuteQ.Name {
					g.baseHas["permuted"] = true
				}
				for _, name := range r.Outputs(0, "") {
					g.baseHas[strings.TrimPrefix(name, "blk.0.")] = true
				}
			}
		}
		g.others = append(g.others, k.table.Graph)
	}
	g.queries = c.queryRows()
	m := g.compose()
	g.check(m)
	if g.baseOf != "" {
		g.notes = append([]string{"the graph is that of " + g.baseOf + ", changed by tensors and keys"}, g.notes...)
	}
	return m, g.notes, nil
}

// placed are outputs of a row in a layer.
type placed struct {
	bid     int // -1 outside of layers
	outputs []string
}

// layersOf returns what a row makes of the checkpoint's tensors.
func (c *checkpoint) layersOf(r *table.TensorRow) (list []placed) {
	must, may := rowPatterns(r)
	if r.Drops() || r.Kind != nil {
		return nil
	}
	view, err := c.view()
	if err != nil {
		return nil
	}
	for _, p := range append(must, may...) {
		w := c.want(p)
		if w == nil {
			continue
		}
		suffix := ""
		switch {
		case r.Exact:
		case strings.HasSuffix(p, ".bias"):
			suffix = ".bias"
		default:
			suffix = ".weight"
		}
		layers := w.layers
		if layers == nil {
			layers = []int{-1}
		}
		for _, bid := range layers {
			if r.If != nil {
				if ok, err := r.If(table.Layer{View: view, Bid: int64(bid)}); err != nil || !ok {
					continue
				}
			}
			list = append(list, placed{bid, r.Outputs(int64(bid), suffix)})
		}
	}
	return list
}

// queryRows returns how many values q_proj makes for each value of a head: 2 if half of them are a gate.
func (c *checkpoint) queryRows() int {
	view, err := c.view()
	if err != nil {
		return 0
	}
	heads, err := view.Heads()
	head, err2 := view.HeadDim()
	if err != nil || err2 != nil || heads*head == 0 {
		return 0
	}
	for name, shape := range c.shapes {
		if strings.HasSuffix(name, ".q_proj.weight") && len(shape) == 2 && shape[0]%(heads*head) == 0 {
			return int(shape[0] / (heads * head))
		}
	}
	return 0
}
