package eval

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/eval/internal/metadata"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/test/mutate"
)

// difference has quantities in which declared graphs differ from the evaluator's rows for a reason.
type difference struct {
	archs      string   // "*" for any: at least one differs
	quantities []string // as in messages
	reason     string
}

// Keys that one side reads and the other does not, as quantities.
const (
	evaluatorKey = "key of the evaluator only: "
	graphKey     = "key of the graph only: "
)

func evaluatorKeys(names string) []string { return prefixed(evaluatorKey, names) }
func graphKeys(names string) []string     { return prefixed(graphKey, names) }

func prefixed(prefix, names string) []string {
	list := strings.Fields(names)
	for i := range list {
		list[i] = prefix + list[i]
	}
	return list
}

const (
	noRoPE = "arwkv7 bert bloom gpt2 jais jamba jina-bert-v2 mamba mamba2 mpt refact rwkv6 rwkv6qwen2 rwkv7 starcoder " +
		"t5 t5encoder"
	noAttention = "arwkv7 mamba mamba2 rwkv6 rwkv6qwen2 rwkv7"
	scalingKeys = "rope.scaling.type rope.scaling.factor rope.scaling.original_context_length rope.scaling.attn_factor"
)

// graphDifferences has every difference that is wanted. TestGraphs fails for a pair of architecture and quantity that
// does not differ.
//
// The evaluator accepts files with keys of the evaluator only, which the graph refuses. It refuses files with keys of
// the graph only, since llama.cpp does not read them in files of the architecture (archKeys).
var graphDifferences = []difference{
	{noRoPE, evaluatorKeys("rope.dimension_count rope.freq_base " + scalingKeys),
		"the evaluator reads keys of RoPE in files without RoPE, too"},
	{"kimi-linear", evaluatorKeys(scalingKeys), "the evaluator reads keys of RoPE in files without RoPE, too"},
	{noAttention, evaluatorKeys("attention.key_length attention.value_length attention.causal"),
		"the evaluator reads keys of attention in files without attention, too"},
	{"*", evaluatorKeys("expert_count expert_used_count"), "the evaluator reads keys of experts in all files"},

	{"*", graphKeys("rope.dimension_sections rope.scaling.alpha rope.scaling.yarn_ext_factor " +
		"rope.scaling.yarn_attn_factor rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow " +
		"rope.scaling.yarn_log_multiplier"), "RoPE reads them whatever the architecture is"},
	{"*", graphKeys("attention.scale"), "attention reads it whatever the architecture is"},
	{"*", graphKeys("expert_gating_func expert_weights_norm expert_weights_scale"),
		"experts read them whatever the architecture is"},
	{"baichuan bert gpt2 gptneox jais jina-bert-v2 jina-bert-v3 modern-bert neo-bert nomic-bert nomic-bert-moe qwen rwkv6 " +
		"t5 t5encoder", graphKeys("attention.head_count_kv"),
		"the made-up models lack the key, which the evaluator reads in files that have it"},
	{"jamba mamba", graphKeys("ssm.group_count"), "d_conv to n_group are the sizes of all state space models"},
	{"jamba", graphKeys("ssm.dt_b_c_rms"), "Mamba 1 reads it whatever the architecture is"},
	{"granitehybrid jamba kimi-linear lfm2 lfm2moe",
		graphKeys("attention.recurrent_layers full_attention_interval"),
		"Recurrent reads them whatever the architecture is"},
	{"minicpm3 plm", graphKeys("attention.key_length_mla"),
		"the made-up models have attn_kv_b, with which the evaluator reads attention.key_length"},
	{"minicpm3 plm", graphKeys("attention.value_length_mla"),
		"the made-up models have attn_kv_b, with which the evaluator reads attention.value_length"},
	{"gemma4 mistral3", graphKeys("expert_group_count expert_group_used_count"),
		"the evaluator runs no made-up model with experts"},
}

// graphTest compares the graphs that package arch declares with the models that this package builds.
type graphTest struct {
	*testing.T
	found  map[string]bool            // "ARCH QUANTITY" of differences that are wanted
	failed map[string]bool            // and of others: each is reported once
	asked  map[string]map[string]bool // by architecture: the keys that the evaluator asks for, or ignores
}

// TestGraphs compares the declared graph of each architecture with the evaluator's, by what both make of every made-up
// model: tensors, keys, sizes, factors, the order of norms and blocks, and the parts of each layer. The values of
// states, and thus the order of operations in a part, are not compared.
func TestGraphs(t *testing.T) {
	g := &graphTest{t, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}}
	mutate.EachModel(t, g.compare)
	if !cpu.HasVectors { // a part of the models
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.asked)) {
		g.compareKeys(name)
	}
	for _, d := range graphDifferences {
		for _, quantity := range d.quantities {
			for name := range strings.FieldsSeq(d.archs) {
				if !g.found[name+" "+quantity] {
					t.Errorf("%s: graphDifferences has %q, but there is no difference", name, quantity)
				}
			}
		}
	}
}

// report fails unless the difference is wanted.
func (g *graphTest) report(name, quantity, format string, args ...any) {
	for _, d := range graphDifferences {
		if !slices.Contains(d.quantities, quantity) {
			continue
		}
		for of := range strings.FieldsSeq(d.archs) {
			if of == name || of == "*" {
				g.found[of+" "+quantity] = true
				return
			}
		}
	}
	if pair := name + " " + quantity; !g.failed[pair] {
		g.failed[pair] = true
		g.Errorf(format, args...)
	}
}

// compareKeys compares the keys that an architecture reads in whatever file.
func (g *graphTest) compareKeys(name string) {
	m := arch.Graph(name)
	declared, asked := graph.Keys(m), g.asked[name]
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		if !knownKey(m, declared, key) {
			g.report(name, evaluatorKey+key, "%s: %q: the evaluator reads it, the graph does not", name, key)
		}
	}
	for _, key := range declared {
		if !asked[key] {
			g.report(name, graphKey+key, "%s: %q: the graph reads it, the evaluator does not", name, key)
		}
	}
}

// knownKey reports whether a graph reads or ignores a key. declared are those that it reads.
func knownKey(m *graph.Model, declared []string, key string) bool {
	return slices.Contains(declared, key) || m.Ignores(key) || slices.Contains(ignoredKeys, key)
}

// graphCase compares one model.
type graphCase struct {
	*graphTest
	name, arch string
	layer      int // that is compared, or -1
	// what the graph declares
	declared *graph.Model
	file     *graph.File
	d        *graph.Decl
	// what the evaluator builds
	r     *Model
	p     *params
	k     *keys
	t     *tensors
	used  map[string]bool   // keys that it asked for
	norms map[string]string // names of norms, without ".weight", by valuesKey of the weights
}

// compare compares the model of a name, if the evaluator supports it. TestLayersAsInMemory checks that there is one of
// each architecture.
func (g *graphTest) compare(name string, m *model.Model) {
	c := &graphCase{graphTest: g, name: name, arch: m.Architecture(), layer: -1, used: map[string]bool{}}
	if lookup(c.arch) == nil || c.build(m) != nil {
		return
	}
	if c.declared = arch.Graph(c.arch); c.declared == nil {
		g.report(c.arch, "graph", "%s (%s): no graph is declared", name, c.arch)
		return
	}
	c.file = graph.NewFile(m.Metadata, func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	})
	var err error
	if c.d, err = graph.Declare(c.declared, c.file); err != nil {
		g.report(c.arch, "error", "%s (%s): the evaluator accepts the model, the graph does not: %v", name, c.arch, err)
		return
	}
	c.compareModel()
	for i := range min(c.d.Layers(), len(c.r.layers)) {
		c.compareLayer(i)
	}
	c.layer = -1
	c.compareTensors(m)
	c.compareFileKeys(m)
	if err := c.d.Err(); err != nil {
		g.report(c.arch, "error", "%s (%s): %v", name, c.arch, err)
	}
}

// build sets the fields of the evaluator as New does. The error is New's.
func (c *graphCase) build(m *model.Model) (err error) {
	defer func() {
		if x := recover(); x != nil {
			failure, ok := x.(buildError)
			if !ok {
				panic(x)
			}
			err = failure.err
		}
	}()
	row := lookup(c.arch)
	c.k, c.t = newKeys(m.Path, m.Metadata), newTensors(m)
	c.k.Usage = func(name, key string) metadata.Usage {
		u := keyUsage(name, key)
		if u != metadata.Unread {
			c.used[key] = true
		}
		return u
	}
	c.p = row.params(c.k, len(m.Tensors))
	c.r = &Model{source: m, graph: row, p: c.p, costs: c.t.costs}
	c.r.resolve(c.k, c.t)
	if err := c.k.checkUnused(); err != nil {
		return err
	}
	if err := c.t.checkUnused(); err != nil {
		return err
	}
	c.norms = map[string]string{}
	for name, x := range c.t.all {
		if len(x.NE) == 1 && x.NE[0] == int64(c.p.width) && strings.Contains(name, "norm") &&
			!strings.HasSuffix(name, ".bias") {
			c.norms[valuesKey(c.t.vector(name, c.p.width))] = strings.TrimSuffix(name, ".weight")
		}
	}
	return nil
}

// valuesKey has the bits of all values.
func valuesKey(values []float32) string {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return string(b)
}

// normName returns the name of a norm of the residual stream as graphs have it: "" for none, "-" for one without
// weights. The weights of made-up norms differ from each other.
func (c *graphCase) normName(n *norm) string {
	switch {
	case n == nil:
		return ""
	case n.weight == nil:
		return graph.Bare.Name
	}
	name, ok := c.norms[valuesKey(n.weight)]
	switch {
	case !ok:
		return "unknown"
	case c.layer >= 0:
		name = strings.TrimPrefix(name, c.tensorName(""))
	}
	return name
}

// tensorName returns the name of a tensor of the layer in the file.
func (c *graphCase) tensorName(name string) string {
	return fmt.Sprintf("%sblk.%d.%s", c.p.graph.TensorPrefix, c.layer, name)
}

// has reports whether the file has a tensor.
func (c *graphCase) has(name string) bool {
	_, ok := c.file.Tensors[name]
	return ok
}

// differ reports a difference in a quantity.
func (c *graphCase) differ(quantity string, got, want any) {
	place := fmt.Sprintf("%s (%s)", c.name, c.arch)
	if c.layer >= 0 {
		place += fmt.Sprintf(", layer %d", c.layer)
	}
	c.report(c.arch, quantity, "%s: %s: the graph has %s, the evaluator %s", place, quantity, shown(got), shown(want))
}

func shown(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%+v", v)
}

// same compares a quantity of the graph with the evaluator's.
func same[V comparable](c *graphCase, quantity string, got, want V) bool {
	if got != want {
		c.differ(quantity, got, want)
	}
	return got == want
}

// sameFactor compares numbers that the evaluator rounds to float32 before it computes with them.
func (c *graphCase) sameFactor(quantity string, got, want float64) {
	if a, b := float32(got), float32(want); math.Float32bits(a) != math.Float32bits(b) {
		c.differ(quantity, a, b)
	}
}

// compareModel compares what is outside of layers.
func (c *graphCase) compareModel() {
	m, d, p, r := c.declared, c.d, c.p, c.r
	same(c, "layers", d.Layers(), p.layers)
	same(c, "embedding length", d.Size("n_embd"), int64(p.width))
	same(c, "vocabulary", c.file.Vocab, int64(p.vocab))
	same(c, "norm kind: centered", m.Norm.Centered, !p.rms)
	same(c, "epsilon of norms", d.Float(m.Norm.Eps), p.eps)

	c.sameFactor("embedding scale", d.Float(m.Embed.Scale), p.embedScale)
	same(c, "norm of embeddings", m.Embed.Norm.Name, c.normName(r.embedNorm))
	positions := m.Embed.Positions == graph.Yes || m.Embed.Positions == graph.May && c.has("position_embd.weight")
	same(c, "learned positions", positions, r.positions != nil)
	same(c, "token types", m.Embed.Types && c.has("token_types.weight"), r.tokenType != nil)

	last, scale := "", 1.0
	for _, s := range d.Steps(m.Final) {
		switch s := s.(type) {
		case graph.Normalize:
			last = s.Norm.Name
		case graph.ScaleStream:
			scale *= d.Float(s.By)
		default:
			c.differ("step after the last layer", fmt.Sprintf("%T", s), "none")
		}
	}
	same(c, "last norm", last, c.normName(r.outNorm))
	c.sameFactor("scale of the last states", scale, p.finalScale)

	var rank graph.Classifier
	predicts, softCap := false, 0.0
	switch head := m.Head.(type) {
	case graph.LM:
		predicts, rank = true, head.Rank
		if head.SoftCap != "" {
			softCap = d.Float(head.SoftCap)
		}
		c.sameFactor("scale of logits", d.Float(head.Scale), p.logitScale)
	case graph.Pool:
		rank = head.Rank
	}
	same(c, "logits", predicts, r.output != nil)
	c.sameFactor("soft cap of logits", softCap, p.logitSoftCap)
	c.compareClassifier(rank)
}

// compareClassifier compares pooling, and the defaults of a classification.
func (c *graphCase) compareClassifier(rank graph.Classifier) {
	pooling, _ := c.d.Value("@pooling_type or 0")
	n, _ := pooling.Int()
	same(c, "pooling", Pooling(n), c.p.pooling)
	type classifier struct {
		mean, last, softmax bool
		act                 string
	}
	got := classifier{act: string(graph.Tanh)}
	switch rank.(type) {
	case graph.MeanGELU:
		got = classifier{mean: true, act: string(graph.GELUErf)}
	case graph.LastSoftmax:
		got.last, got.softmax = true, true
	}
	if v, ok := c.d.Value("@classifier.pooling_type"); ok {
		n, _ := v.Int()
		got.mean, got.last = Pooling(n) == PoolMean, Pooling(n) == PoolLast
	}
	if f, ok := activations[c.text("classifier.activation")]; ok {
		got.act = functionName(f)
	}
	h := c.r.head
	same(c, "classifier", got, classifier{h.fromMean, h.fromLast, h.softmaxed, functionName(h.act)})
}

// text returns the string of a key, "" for none.
func (c *graphCase) text(key string) string {
	v, _ := c.file.Metadata.Get(gguf.ArchKey(c.arch, key))
	s, _ := v.Str()
	return s
}

// functionName returns the name of an activation in graphs.
func functionName(f vecmath.Function) string {
	for act, of := range map[graph.Act]vecmath.Function{graph.SiLU: vecmath.SiLUOf, graph.GELU: vecmath.GELUOf,
		graph.GELUErf: vecmath.GELUErfOf, graph.ReLU: vecmath.ReLUOf, graph.ReLU2: vecmath.ReLUSquaredOf,
		graph.Tanh: vecmath.TanhOf} {
		if f.Is(of) {
			return string(act)
		}
	}
	return "unknown"
}

var layerTensor = regexp.MustCompile(`^(?:enc\.)?blk\.(\d+)\.`)

// compareTensors compares the tensors of the file, all of which the evaluator reads or ignores, with those that the
// graph declares.
func (c *graphCase) compareTensors(m *model.Model) {
	inLayer := func(name string) string { return name[len(layerTensor.FindString(name)):] }
	for i := range m.Tensors {
		x := &m.Tensors[i]
		if at := layerTensor.FindStringSubmatch(x.Name); at != nil {
			if n, err := strconv.Atoi(at[1]); err != nil || n >= c.d.Layers() { // of MTP (NextN) layers
				continue
			}
		}
		declared, ok := c.d.Tensor(x.Name)
		switch {
		case !ok && !c.declared.Ignores(inLayer(x.Name)):
			c.differ("tensor "+inLayer(x.Name), "none", fmt.Sprintf("%s %v", x.Name, x.NE))
		case ok && !declared.Fits(x.NE):
			c.differ("dimensions of "+inLayer(x.Name), declared.NE, x.NE)
		}
	}
	for _, x := range c.d.Tensors() {
		if !x.May && !c.has(x.Name) {
			c.differ("tensor "+inLayer(x.Name), fmt.Sprintf("%s %v", x.Name, x.NE), "none")
		}
	}
}

// compareFileKeys checks that the graph knows all keys of the file, as the evaluator does, and keeps the keys that the
// evaluator asks for.
func (c *graphCase) compareFileKeys(m *model.Model) {
	declared, asked := graph.Keys(c.declared), c.asked[c.arch]
	if asked == nil {
		asked = map[string]bool{}
		c.asked[c.arch] = asked
	}
	maps.Copy(asked, c.used)
	for _, key := range declared {
		if c.k.WasRead(key) {
			asked[key] = true
		}
	}
	for _, kv := range m.Metadata {
		key, below := strings.CutPrefix(kv.Key, c.arch+".")
		if (below || strings.HasPrefix(key, "xielu.")) && !knownKey(c.declared, declared, key) {
			c.differ("key "+key, "none", kv.Value.Short())
		}
	}
}
