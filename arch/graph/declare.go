package graph

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/model/limits"
)

// maxProduct is the largest dimension of a tensor, and the largest number of values in a token's keys, in its values
// and in a state: products of sizes.
const maxProduct = 1 << 32

// Role is what a tensor is for, as far as recipes and calibration distinguish tensors.
type Role int

// The roles.
const (
	Other Role = iota
	EmbeddingRole
	OutputRole
	NormRole // norms, biases, scales and other vectors: F32 in files of every type
	QueryRole
	KeyRole
	ValueRole
	QKVRole // queries, keys and values in one; inputs of recurrent mixers
	AttnOutRole
	UpRole
	GateRole
	DownRole
	RouterRole
	KernelRole // convolutions, decays, token shifts: F32 where llama.cpp does not quantize them
)

// Any is a dimension that does not follow from metadata.
const Any = -1

// Tensor is a tensor that a file has or, if May, may have.
type Tensor struct {
	Name string  // in the file: "blk.0.attn_q.weight"
	NE   []int64 // innermost first; Any for every size
	Role Role
	May  bool

	keys  []string // that decided the dimensions, and further ones of the part
	lacks []string // missing ones, which would decide dimensions that are Any
}

// Fits reports whether dimensions are those of the tensor. Dimensions of 1 at the end do not count.
func (t *Tensor) Fits(ne []int64) bool {
	at := func(ne []int64, i int) int64 {
		if i < len(ne) {
			return ne[i]
		}
		return 1
	}
	for i := range max(len(t.NE), len(ne)) {
		if want := at(t.NE, i); want != Any && want != at(ne, i) {
			return false
		}
	}
	return true
}

// Cache is what a part keeps of a text in a layer.
type Cache struct {
	Layer      int    // in a Loop the number of layers that ran before
	What       string // for messages; "" for keys and values of attention
	Window     int64  // tokens of which keys and values are kept; 0 for all
	Every      int64  // tokens that share a cell, where keys are compressed; 0 for 1
	Keys, Vals int64  // values for each cell
	State      int64  // values for each text
}

// Decl is what a model declares for one file. Its methods of Scope are for expressions outside of layers.
type Decl struct {
	Scope
	pass     int  // the number of layers that ran before the current one
	deciding bool // the layer is one of a Decision
	tensors  []Tensor
	index    map[string]int // of tensors, by name
	caches   []Cache
	fold     *Fold
}

// Declare returns what m declares for a file. A file whose metadata contradict themselves, or lack a key on which a
// size depends, is an error of kind fault.Broken; one with more layers than llama.cpp loads is one of kind
// fault.Unsupported. A model that Check refuses is an error of Check's kinds.
func Declare(m *Model, f *File) (*Decl, error) {
	if err := Check(m); err != nil {
		return nil, err
	}
	d := &Decl{Scope: Scope{facts: newFacts(m, f), layer: -1}, index: map[string]int{}}
	d.countLayers()
	d.required()
	if d.err == nil {
		d.readFold()
		d.outside()
	}
	for pass, i := range d.Order() {
		if d.err != nil {
			break
		}
		d.layer, d.pass = i, pass
		d.streams(m.Streams)
		d.adapters(m.Adapters)
		d.steps(m.Layer)
	}
	if d.err == nil {
		d.second()
	}
	d.layer = -1
	if d.err != nil {
		return nil, d.err
	}
	return d, nil
}

// Layers returns the number of layers, without MTP (NextN) layers.
func (d *Decl) Layers() int { return d.layers }

// Drafts returns what is declared for the MTP (NextN) layers of which the file has tensors. They follow the model's
// layers; each begins with a projection of the embedding and the state of a token. Metadata that contradict
// themselves are an error of Declare's kinds.
func (d *Decl) Drafts() (*Decl, error) {
	f := *d.facts
	n := &Decl{Scope: Scope{facts: &f, layer: -1}, index: map[string]int{}}
	for i := d.layers; i < d.all && f.err == nil; i++ {
		if d.file.hasLayer(i) {
			n.layer = i
			n.draft()
		}
	}
	n.layer = -1
	return n, f.err
}

// draft declares what an MTP layer has.
func (d *Decl) draft() {
	d.used = nil
	embd := d.Size("n_embd")
	d.linear(Yes, "nextn.eh_proj", Other, mul(2, embd), embd)
	d.vector(Yes, "nextn.enorm", embd)
	hidden := embd
	if _, ok := d.model.Streams.(GatedStreams); ok { // an output for each stream
		hidden = mul(d.Size(hyperCount), embd)
		d.gatedStreams(Yes, "nextn.hc_head", false)
	}
	d.vector(Yes, "nextn.hnorm", hidden)
	d.vector(May, "nextn.shared_head_norm", embd)
	d.vector(May, "layer_output_norm", embd) // in place of it
	vocab := d.vocab()
	d.linear(May, "nextn.embed_tokens", EmbeddingRole, embd, vocab)
	d.linear(May, "nextn.shared_head_head", OutputRole, embd, vocab)
	steps := d.model.Draft
	if steps == nil {
		steps = d.model.Layer
	}
	d.steps(steps)
}

// vocab returns the number of tokens, Any if it is unknown.
func (d *Decl) vocab() int64 {
	d.use([]string{tokens})
	if d.file.Vocab <= 0 {
		return Any
	}
	return d.file.Vocab
}

// At returns the scope of layer i, or with -1 that outside of layers.
func (d *Decl) At(i int) *Scope { return &Scope{facts: d.facts, layer: i} }

// Tensors returns the tensors of the file, each once, those outside of layers first.
func (d *Decl) Tensors() []Tensor { return d.tensors }

// Tensor returns the tensor of a name.
func (d *Decl) Tensor(name string) (t Tensor, ok bool) {
	i, ok := d.index[name]
	if ok {
		t = d.tensors[i]
	}
	return t, ok
}

// Caches returns what is kept of a text, in the order of layers. A layer may have several entries, or none. With a
// Decoder, whose attention to earlier tokens has the caches, they are those of as many layers as the encoder has, as
// llama.cpp makes them.
func (d *Decl) Caches() []Cache { return d.caches }

// Keys returns the keys of the file that decided so far, sorted, without the architecture's name.
func (d *Decl) Keys() []string { return slices.Sorted(maps.Keys(d.read)) }

// countLayers sets the number of layers. It bounds the work and the memory of Declare: every layer of a file has a
// tensor, unless the file has MTP (NextN) layers only.
func (d *Decl) countLayers() {
	all := d.Size("@block_count")
	key := d.fullKey("block_count")
	switch n := int64(len(d.file.Tensors)); {
	case d.err != nil:
		return
	case all == 0:
		d.broken("%q is 0, want at least 1", key)
	case n > 0 && all > n && !d.DraftsOnly():
		d.broken("%q is %d, in a file of %d tensors", key, all, n)
	case all > limits.MaxLayers:
		d.fail(fault.Unsupported, "%q is %d: llama.cpp loads at most %d", key, all, limits.MaxLayers)
	}
	d.layers, d.all = int(min(all, d.Size("n_layer"))), int(all)
	n := int(d.countDecision())
	d.layers, d.all, d.decisionLayers = d.layers-n, d.all-n, n
	d.countPasses()
}

// required records an error for a key of Reads that the file lacks.
func (d *Decl) required() {
	if d.file.MayLackKeys {
		return
	}
	for _, name := range d.model.Reads {
		if name, must := strings.CutSuffix(name, "!"); must {
			if _, ok := d.lookup(name); !ok {
				d.broken("no key %q, which runtimes require of this architecture", d.fullKey(name))
			}
		}
	}
}

// DraftsOnly reports whether the only layers of the file are MTP (NextN) layers, as in files for speculative decoding.
func (d *Decl) DraftsOnly() bool {
	first := int(d.Size("n_layer"))
	return d.file.hasLayer(first) && !slices.ContainsFunc(d.file.inLayers(), func(i int) bool { return i < first })
}

// outside declares the tensors outside of layers.
func (d *Decl) outside() {
	d.used = nil
	m, embd, vocab := d.model, d.Size("n_embd"), d.vocab()
	d.weight(Yes, "token_embd", EmbeddingRole, embd, vocab)
	d.checkNumbers(m.Norm.Eps, m.Norm.OrRMS, m.Embed.Scale)
	if groups := m.Norm.Groups; groups != "" {
		if n := d.Size(groups); n < 1 || embd%n != 0 {
			d.broken("%d values in %d groups of a norm, want a multiple%s", embd, n, d.describe(d.used))
		}
	}
	if m.Embed.Positions != No {
		d.weight(m.Embed.Positions, "position_embd", KernelRole, embd, d.Size("@context_length"))
	}
	if m.Embed.Types {
		d.weight(May, "token_types", KernelRole, embd, d.sizeOrAny(tokenTypes))
	}
	d.norm(m.Embed.Norm)
	d.steps(m.Final)
	d.loop(m.Loop)
	d.used = nil
	d.use([]string{"embedding_length"})
	d.vocab()
	d.head(m.Head)
}

// head declares the tensors of a head.
func (d *Decl) head(h Head) {
	embd, vocab := d.Size("n_embd"), d.vocab()
	switch head := h.(type) {
	case LM:
		if head.Codes {
			vocab = Any
		}
		d.linear(May, "output", OutputRole, embd, vocab)
		d.checkNumbers(head.Scale, head.SoftCap)
		if end := int64(head.Never.End); vocab != Any && vocab < end {
			d.broken("%d tokens, want %d or more: tokens %d to %d are never the next one%s", vocab, end, head.Never.From, end-1,
				d.describe(d.used))
		}
		d.classifier(head.Rank)
	case Pool: // output is the head of pretraining, which is not used
		if head.Projected {
			d.linear(Yes, "output", OutputRole, embd, d.Size(embeddingOut))
		} else {
			d.linear(May, "output", OutputRole, embd, vocab)
		}
		d.classifier(head.Rank)
	default:
		d.unknown("head", head)
	}
}

// classifier declares the tensors of dense modules and of a classifier, which files of any architecture may have.
func (d *Decl) classifier(c Classifier) {
	switch c.(type) {
	case nil, MeanGELU, LastSoftmax:
	default:
		d.unknown("classifier", c)
	}
	embd, labels := d.Size("n_embd"), d.Size(classLabels)
	for _, name := range []string{"dense_2", "dense_3"} {
		in, out := Num("@"+name+"_feat_in or n_embd"), Num("@"+name+"_feat_out or "+embeddingOut+" or n_embd")
		d.linear(May, name, Other, d.Size(in), d.Size(out))
	}
	d.linear(May, "cls", Other, d.pick("cls", []int64{embd, embd}, []int64{embd, labels})...)
	d.vector(May, "cls.norm", embd)
	d.linear(May, "cls.output", Other, embd, labels)
}

const (
	classLabels  Num = "#classifier.output_labels or " + embeddingOut + " or 1"
	embeddingOut     = "@embedding_length_out"
	tokenTypes   Num = "@tokenizer.ggml.token_type_count"
)

// steps declares what steps of the current layer need.
func (d *Decl) steps(steps []Step) {
	for _, s := range d.Steps(steps) {
		d.step(s)
	}
}

func (d *Decl) step(s Step) {
	switch s := s.(type) {
	case FromInput:
		d.step(s.Residual)
	case FromUpdate:
		d.step(s.Residual)
	case Connected:
		d.hyperConnections("hc_"+s.Name, 2, 0)
		d.checkNumbers("@hyper_connection.magnitude")
		d.step(s.Residual)
	case Attended:
		d.weight(Yes, s.Name+"_res_score", NormRole, d.Size("n_embd"))
		d.step(s.Residual)
	case Mixed:
		d.hyperConnections("hc_"+s.Name, 2, 1)
		d.checkNumbers(sinkhorn)
		d.step(s.Residual)
	case FromStreams:
		d.gatedStreams(Yes, "hc_"+s.Name, true)
		d.part(d.Part(s.Part))
	case NgramEmbedding:
		d.ngrams()
	case AddEmbedding:
		d.weight(Yes, s.Tensor, NormRole, 1)
	case Residual:
		d.norm(s.Pre)
		d.part(d.Part(s.Part))
		d.norm(s.Post)
		d.norm(s.Sum)
		d.checkNumbers(s.Scale, s.Carry)
	case Parallel:
		for _, r := range s {
			d.step(r)
		}
	case AddInput:
		if d.Has(s.Norm.Name) {
			d.norm(s.Norm)
		}
	case Normalize:
		d.norm(s.Norm)
	case ScaleStream:
		d.checkNumbers(s.By)
	case LearnedScale:
		d.weight(May, s.Tensor, NormRole, 1)
	case PerLayerEmbedding:
		d.perLayerEmbedding(s)
	default:
		d.unknown("step", s)
	}
}

// streams declares what several residual streams need.
func (d *Decl) streams(s Streams) {
	switch s := s.(type) {
	case nil:
	case AltUp:
		d.altUp(s)
	case AttentionResiduals:
		if d.Size(keptEvery) < 1 {
			d.contradiction("the stream is kept before no layer")
			return
		}
		d.outsideLayers(func() { d.weight(Yes, "output_res_score", NormRole, d.Size("n_embd")) })
	case HyperConnections:
		if !s.Mean {
			d.outsideLayers(func() { d.hyperConnections("output_hc", 1, 0) })
		}
	case GatedStreams:
		p := Yes
		if d.DraftsOnly() { // drafts have those of their own
			p = May
		}
		d.outsideLayers(func() { d.gatedStreams(p, "output_hc", false) })
	default:
		d.unknown("kind of streams", s)
	}
}

// hyperConnections declares the tensors that make kinds of factors of each stream, and of each pair of streams.
func (d *Decl) hyperConnections(name string, kinds, ofPairs int64) {
	n, embd := d.Size(hyperCount), d.Size("n_embd")
	if n < 1 {
		d.contradiction("there are no streams")
		return
	}
	d.checkNumbers(hyperEps)
	all := mul(n, add(kinds, mul(n, ofPairs)))
	d.linear(Yes, name+"_fn", Other, mul(n, embd), all)
	d.weight(Yes, name+"_base", NormRole, all)
	d.weight(Yes, name+"_scale", NormRole, kinds+ofPairs)
}

func (d *Decl) altUp(a AltUp) {
	n, embd := d.Size(altUpInputs), d.Size("n_embd")
	if n < 2 || d.Float("@altup.active_idx or 0") != 0 {
		d.contradiction("%d streams, the first one active, are needed", n)
		return
	}
	d.linear(Yes, "altup_router", RouterRole, embd, n)
	d.vector(Yes, "altup_router_norm", embd)
	d.linear(Yes, "altup_predict_coef", KernelRole, n, mul(n, n))
	d.linear(Yes, "altup_correct_coef", KernelRole, n, n)
	d.weight(Yes, "altup_correct_scale", NormRole, embd)
	d.outsideLayers(func() {
		d.linear(Yes, "altup_proj", KernelRole, embd, embd, n-1)
		d.linear(Yes, "altup_unembd_proj", KernelRole, embd, embd, n-1)
	})
	d.perLayerEmbedding(PerLayerEmbedding{Act: a.Act})
}

func (d *Decl) perLayerEmbedding(p PerLayerEmbedding) {
	n, embd := d.Size("@embedding_length_per_layer_input or 0"), d.Size("n_embd")
	if n == 0 {
		return
	}
	d.activation(p.Act)
	d.linear(Yes, "inp_gate", Other, embd, n)
	d.linear(Yes, "proj", Other, n, embd)
	d.vector(Yes, "post_norm", embd)
	d.outsideLayers(func() {
		all := mul(n, int64(d.layers))
		if !p.Computed {
			d.weight(Yes, "per_layer_token_embd", EmbeddingRole, all, d.vocab())
		}
		d.linear(Yes, "per_layer_model_proj", KernelRole, embd, all)
		d.vector(Yes, "per_layer_proj_norm", n)
	})
}

// part declares what a part needs.
func (d *Decl) part(p Part) {
	if p == nil {
		d.unknown("part", p)
		return
	}
	d.used, d.lacked = nil, nil // tensors keep the lists
	p.Declare(d)
}

// outsideLayers calls f, in which names of tensors have no layer.
func (d *Decl) outsideLayers(f func()) {
	layer := d.layer
	d.layer = -1
	f()
	d.layer = layer
}

// contradiction records an error about the current part, with the values of the keys that its expressions asked for.
func (d *Decl) contradiction(format string, args ...any) {
	d.broken("layer %d: "+format+"%s", slices.Concat([]any{d.layer}, args, []any{d.describe(d.used)})...)
}

// sizeOrAny returns the size of an expression, Any if keys are missing.
func (d *Decl) sizeOrAny(n Num) int64 {
	if _, used, ok := d.value(n); !ok {
		for _, key := range used {
			if _, there := d.values[key]; !there {
				d.lacked = append(d.lacked, key)
			}
		}
		return Any
	}
	return d.Size(n)
}

// weight declares NAME.weight, unless p is No.
func (d *Decl) weight(p Presence, name string, r Role, ne ...int64) {
	d.exact(p, name+".weight", r, ne...)
}

// linear declares a matrix, or a stack of them: NAME.weight, and its bias and the scales of NVFP4 if the file has them.
func (d *Decl) linear(p Presence, name string, r Role, ne ...int64) {
	d.weight(p, name, r, ne...)
	if p == No || len(ne) < 2 {
		return
	}
	d.exact(May, name+".bias", NormRole, ne[1:]...)
	matrices := int64(1)
	if len(ne) > 2 {
		matrices = ne[2]
	}
	d.exact(May, name+".scale", NormRole, matrices)
	d.exact(May, name+".input_scale", NormRole, matrices)
}

// vector declares the weights of a norm and, if the file has it, its bias.
func (d *Decl) vector(p Presence, name string, ne ...int64) {
	d.weight(p, name, NormRole, ne...)
	if p != No {
		d.exact(May, name+".bias", NormRole, ne...)
	}
}

// norm declares a norm of the residual stream. One of Falcon H1 has no ".weight".
func (d *Decl) norm(w Norm) {
	d.checkNumbers(w.Eps)
	if w.Name == "" || w.Name == Bare.Name {
		return
	}
	d.used, d.lacked = nil, nil
	embd := d.Size("n_embd")
	if _, ok := d.file.Tensors[d.fullName(w.Name)]; ok && !d.Has(w.Name) {
		d.exact(Yes, w.Name, NormRole, embd)
		d.exact(May, w.Name+".bias", NormRole, embd)
		return
	}
	d.vector(Yes, w.Name, embd)
}

// exact declares a tensor by its name in the layer, with nothing added. One that is already there stays; it is required
// if one of both is.
func (d *Decl) exact(p Presence, name string, r Role, ne ...int64) {
	if p == No || d.err != nil {
		return
	}
	name = d.fullName(name)
	for _, n := range ne {
		if n < Any || n > maxProduct {
			d.broken("tensor %q has a dimension of %d, want one up to %d%s", name, n, int64(maxProduct),
				d.describe(d.used))
			return
		}
	}
	if i, ok := d.index[name]; ok {
		d.tensors[i].May = d.tensors[i].May && p == May
		return
	}
	d.index[name] = len(d.tensors)
	t := Tensor{Name: name, NE: ne, Role: r, May: p == May, keys: slices.Clip(d.used)}
	if slices.Contains(ne, Any) {
		t.lacks = slices.Clip(d.lacked)
	}
	d.tensors = append(d.tensors, t)
}

// pick returns the dimensions that NAME.weight has in the file, or if it has none of these, the first.
func (d *Decl) pick(name string, alternatives ...[]int64) []int64 {
	ne := d.file.Tensors[d.fullName(name)+".weight"]
	for _, a := range alternatives {
		if t := (Tensor{NE: a}); len(ne) > 0 && t.Fits(ne) {
			return a
		}
	}
	return alternatives[0]
}

// keep adds what the current part keeps of a text; of a Decoder nothing: see Caches. Nor of a Decision, which has all
// tokens of a text at once.
func (d *Decl) keep(c Cache) {
	if d.inDecoder || d.deciding {
		return
	}
	c.Layer = d.pass
	if most := max(c.Keys, c.Vals, c.State); most > maxProduct {
		d.contradiction("%d values of a token or a text are kept, want at most %d", most, int64(maxProduct))
		return
	}
	d.caches = append(d.caches, c)
}

// state is keep for a recurrent state of n values.
func (d *Decl) state(n int64) { d.keep(Cache{State: n}) }

// mul returns the product of numbers of at least 0, or the greatest integer.
func mul(a int64, factors ...int64) int64 {
	for _, b := range factors {
		hi, lo := bits.Mul64(uint64(a), uint64(b))
		if hi != 0 || lo > math.MaxInt64 {
			return math.MaxInt64
		}
		a = int64(lo)
	}
	return a
}

// add returns the sum of numbers of at least 0, or the greatest integer.
func add(a int64, more ...int64) int64 {
	for _, b := range more {
		if a += b; a < 0 {
			return math.MaxInt64
		}
	}
	return a
}
