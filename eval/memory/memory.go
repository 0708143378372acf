package memory

import (
	"cmp"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model/limits"
)

// maxContext is the longest context, in tokens.
const maxContext = 1 << 31

// Options are settings of the runtime. The zero value is what llama-cli does: one sequence of as many tokens as the
// model was trained for.
type Options struct {
	// Context is the number of tokens of all sequences together; 0 for the
	// context_length of the file. The runtime rounds it up to a multiple of 256.
	Context int64
	// Keys and Values are the types of the cache.
	Keys, Values CacheType
	// Sequences is the number of texts in the cache at the same time, 1 for 0: --parallel.
	Sequences int64
	// Unified: sequences share the context, as with llama-server. Otherwise each has an equal part of it.
	Unified bool
	// Batch is the number of tokens that are computed at once, 512 for 0: --ubatch-size.
	Batch int64
	// FullWindows: sliding-window layers keep all tokens, too: --swa-full.
	FullWindows bool
}

// maxBatch is the largest batch, in tokens.
const maxBatch = 1 << 24

// maxSequences is the largest number of sequences that the runtime accepts.
const maxSequences = 256

// full returns the options with defaults in place of 0.
func (o Options) full() Options {
	if o.Sequences <= 0 {
		o.Sequences = 1
	}
	if o.Batch <= 0 {
		o.Batch = 512
	}
	return o
}

// ParseContext returns a number of tokens: digits, with a k for 1024 of them or an m for
// 1048576. Others are errors of kind fault.Usage.
func ParseContext(text string) (int64, error) {
	digits, unit := strings.ToLower(text), int64(1)
	for suffix, n := range map[string]int64{"k": 1 << 10, "m": 1 << 20} {
		if d, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = d, n
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > maxContext/unit {
		return 0, fault.Errorf(fault.Usage, "%q is no length of context: want a number of tokens such as 8192 or 32k",
			text)
	}
	return n * unit, nil
}

// CacheType is the type of keys or values in the cache. The zero value is F16; ParseCacheType returns others.
type CacheType struct {
	t   gguf.Type
	set bool
}

// ParseCacheType returns the type of that name, in any case. The name of no type, or of one that the runtime does not
// accept for a cache, is an error of kind fault.Usage.
func ParseCacheType(name string) (CacheType, error) {
	t, err := limits.ParseCacheType(name)
	return CacheType{t, err == nil}, err
}

// Type returns the type.
func (c CacheType) Type() gguf.Type {
	if !c.set {
		return gguf.TypeF16
	}
	return c.t
}

// String returns the type's name as in the runtime's flags: "q8_0".
func (c CacheType) String() string { return strings.ToLower(c.Type().String()) }

// Use is the memory that a model takes, in bytes.
type Use struct {
	Context int64  `json:"context"` // tokens, as the runtime rounds them
	Keys    string `json:"key_type"`
	Values  string `json:"value_type"`

	Weights int64 `json:"weights"` // of the tensors that the runtime reads
	Unread  int64 `json:"unread"`  // of the others, such as MTP layers; not part of Total
	Cache   int64 `json:"cache"`   // the sum of Caches
	State   int64 `json:"state"`   // of recurrent layers
	Compute int64 `json:"compute"` // an estimate: see the package's comment for its error
	Output  int64 `json:"output"`  // logits

	Caches []Cache `json:"caches"`
}

// Total returns the sum.
func (u *Use) Total() int64 { return u.Weights + u.Cache + u.State + u.Compute + u.Output }

// Cache is one of the runtime's caches.
type Cache struct {
	What   string `json:"what"`
	Cells  int64  `json:"cells"`  // tokens, per sequence unless sequences share the context
	Layers int    `json:"layers"` // that use it
	Keys   int64  `json:"keys"`   // bytes
	Values int64  `json:"values"` // bytes

	values int64 // the most values of a cell in a layer
}

// Model is the part of a model file that its memory depends on.
type Model struct {
	Metadata gguf.Metadata
	Tensors  iter.Seq[*gguf.Tensor]
}

// From returns the model of a file or of a set of shards.
func From(s *gguf.Set) Model {
	return Model{s.Metadata(), func(yield func(*gguf.Tensor) bool) {
		for _, t := range s.Tensors() {
			if !yield(t) {
				return
			}
		}
	}}
}

// Estimate returns the memory that the runtime takes for a model. A file that is not a text model (mmproj, adapter) is
// an error of kind fault.Unsupported, contradictory metadata are one of kind fault.Broken.
func Estimate(m Model, opt Options) (Use, error) {
	p, err := newModel(m)
	if err != nil {
		return Use{}, err
	}
	return p.estimate(opt)
}

// model holds the facts that sizes depend on.
type model struct {
	sizes
	arch     string
	metadata gguf.Metadata
	graph    *graph.Model
	file     *graph.File
	decl     *graph.Decl
	weights  int64
	unread   int64
	vocab    int64         // tokens
	kept     []graph.Cache // in the order of layers
	window   int64         // the longest

	noCache, noLogits, noFlash bool
	draftsCached               bool
	draftPrefixes, notLoaded   []string
	attends                    [2]bool // whether there are layers that attend to all tokens, to those of windows
	latent                     bool    // the cache has a latent vector per token as the key, and no values
}

var layerName = regexp.MustCompile(`^blk\.(\d+)\.(.+)$`)

// newModel reads the facts of a model.
func newModel(m Model) (*model, error) {
	p := &model{arch: m.Metadata.Architecture(), metadata: m.Metadata, graph: graph.Of(m.Metadata.Architecture())}
	switch {
	case p.arch == "":
		return nil, fault.Errorf(fault.Unsupported, "no key %q: not a model", gguf.KeyArchitecture)
	case p.arch == "clip":
		return nil, fault.Errorf(fault.Unsupported,
			"architecture %q: not a model of text, whose memory could be estimated", p.arch)
	}
	p.file = graph.NewFile(m.Metadata, m.Tensors)
	u, declared := lookup(p.arch), p.graph != nil
	if !declared {
		p.graph = u.model()
	}
	var err error
	if p.decl, err = graph.Declare(p.graph, p.file); err != nil {
		return nil, err
	}
	p.applyQuirks()
	if declared {
		p.keep(p.decl.Caches())
	} else {
		p.keepUndeclared(u)
	}
	for t := range m.Tensors {
		if p.reads(t.Name) {
			p.weights += t.Bytes()
		} else {
			p.unread += t.Bytes()
		}
	}
	p.vocab = p.vocabulary()
	return p, cmp.Or(p.err, p.decl.Err())
}

// applyQuirks sets the facts that the runtime adds to the graph.
func (p *model) applyQuirks() {
	for _, q := range p.graph.Runtime {
		switch q := q.(type) {
		case graph.NoCache:
			p.noCache = p.noCache || q.If == "" || p.decl.Holds(q.If)
		case graph.NoLogits:
			p.noLogits = p.noLogits || q.If == "" || p.decl.Holds(q.If)
		case graph.NoFlash:
			p.noFlash = true
		case graph.DraftsRead:
			p.draftPrefixes = q
		case graph.NotLoaded:
			p.notLoaded = q
		case graph.DraftsCached:
			p.draftsCached = true
		}
	}
}

// keep adds what layers keep of a text, but for what the runtime does not.
func (p *model) keep(caches []graph.Cache) {
	own := math.MaxInt // layers from here on use the keys and values of earlier ones
	for _, q := range p.graph.Runtime {
		if n, ok := q.(graph.OwnKV); ok {
			own = int(n)
		}
	}
	for _, c := range caches {
		if c.What == "" && c.Keys+c.Vals > 0 {
			if c.Layer >= own {
				continue
			}
			w := 0
			if c.Window > 0 {
				w = 1
			}
			p.attends[w] = true
			p.latent = p.latent || c.Vals == 0
			p.window = max(p.window, c.Window)
		}
		if !p.noCache {
			p.kept = append(p.kept, c)
		}
	}
	if !p.draftsCached || len(p.kept) == 0 {
		return
	}
	last := p.kept[len(p.kept)-1] // MTP layers are like the last one
	for range p.decl.Size("@nextn_predict_layers or 0") {
		last.Layer++
		p.kept = append(p.kept, last)
	}
}

// keepUndeclared is keep for an architecture without a graph.
func (p *model) keepUndeclared(u undeclared) {
	var all []graph.Cache
	for range max(1, min(limits.MaxLayers, p.decl.Size("@num_loops or 1"))) { // each time the layers run
		declared := p.decl.Caches()
		for i := range p.decl.Layers() {
			n := 0
			for n < len(declared) && declared[n].Layer == i {
				n++
			}
			c := slices.Clone(declared[:n])
			if declared = declared[n:]; u.caches != nil {
				c = u.caches(layer{p.decl.At(i), p.file}, c)
			}
			for _, x := range c {
				x.Layer = i
				all = append(all, x)
			}
		}
	}
	p.keep(all)
}

// reads reports whether the runtime reads a tensor. It reads MTP layers only as a draft model.
func (p *model) reads(tensor string) bool {
	m := layerName.FindStringSubmatch(tensor)
	if m == nil {
		return !slices.Contains(p.notLoaded, tensor)
	}
	i, err := strconv.Atoi(m[1])
	return err != nil || i < p.decl.Layers()+p.decl.DecisionLayers() || slices.ContainsFunc(p.draftPrefixes,
		func(s string) bool { return strings.HasPrefix(m[2], s) })
}

// vocabulary returns the number of tokens.
func (p *model) vocabulary() int64 {
	if v, ok := p.metadata.Get("tokenizer.ggml.tokens"); ok && v.Type() == gguf.ArrayType {
		return int64(v.Len())
	}
	return p.decl.Size("@vocab_size or 0")
}

// context returns the number of tokens that the model was trained for, 0 if the file does not have it. It may be larger
// than any other size.
func (p *model) context() int64 {
	key := gguf.ArchKey(p.arch, "context_length")
	v, ok := p.metadata.Get(key)
	if !ok {
		return 0
	}
	n, ok := v.Int()
	if !ok || n < 0 || n > maxContext {
		p.fail("%q is %s, want a whole number from 0 to %d", key, v.Short(), int64(maxContext))
		return 0
	}
	return n
}

// roundUp returns the next multiple of 256, in which the runtime counts the cells of caches.
func roundUp(n int64) int64 { return (n + 255) / 256 * 256 }

// estimate returns the memory of the model.
func (p *model) estimate(opt Options) (Use, error) {
	u := Use{Weights: p.weights, Unread: p.unread, Keys: opt.Keys.String(), Values: opt.Values.String()}
	opt = opt.full()
	context, sequences, batch := opt.Context, opt.Sequences, opt.Batch
	if context == 0 {
		context = p.context()
	}
	if context > maxContext || batch > maxBatch || sequences > maxSequences {
		return Use{}, fault.Errorf(fault.Usage,
			"want a context of at most %d tokens, batches of at most %d and at most %d sequences", int64(maxContext),
			maxBatch, maxSequences)
	}
	streams := sequences
	if opt.Unified {
		streams = 1
	}
	cells := roundUp((roundUp(context) + streams - 1) / streams)
	u.Context = cells * streams
	swaCells := cells
	if !opt.FullWindows {
		swaSequences := int64(1)
		if opt.Unified {
			swaSequences = sequences
		}
		swaCells = min(cells, roundUp(p.window*swaSequences+batch))
	}
	caches := []*Cache{{What: "all tokens", Cells: cells}, {What: "windows", Cells: swaCells}}
	// add adds bytes of one cell's keys and values, in a layer, to the cache of that name and size
	add := func(what string, cells, keys, values int64) {
		i := slices.IndexFunc(caches, func(c *Cache) bool { return c.What == what && c.Cells == cells })
		if i < 0 {
			i = len(caches)
			caches = append(caches, &Cache{What: what, Cells: cells})
		}
		c := caches[i]
		if keys+values > 0 {
			c.Layers++
		}
		c.Keys = p.sum("keys", c.Keys, p.product("keys", streams, cells, keys))
		c.Values = p.sum("values", c.Values, p.product("values", streams, cells, values))
	}
	for _, k := range p.kept {
		keys, values := p.rowBytes(opt.Keys, k.Keys), p.rowBytes(opt.Values, k.Vals)
		switch {
		case k.What != "":
			every := max(1, k.Every)
			add(k.What, roundUp((cells+every-1)/every), keys, values)
		case k.Window > 0:
			add(caches[1].What, swaCells, keys, values)
		default:
			add(caches[0].What, cells, keys, values)
			caches[0].values = max(caches[0].values, k.Vals)
		}
		u.State = p.sum("states", u.State, p.product("states", sequences, 4, k.State))
	}
	for _, c := range caches {
		if c.Keys+c.Values > 0 {
			u.Caches = append(u.Caches, *c)
			u.Cache = p.sum("the cache", u.Cache, c.Keys+c.Values)
		}
	}
	u.Output = p.product("logits", sequences, p.vocab, 4)
	u.Compute = p.compute(min(batch, u.Context), streams, caches)
	return u, cmp.Or(p.err, p.decl.Err())
}

// rowBytes returns the bytes of n values of keys or values, those of one cell in a layer.
func (p *model) rowBytes(c CacheType, n int64) int64 {
	t := c.Type()
	return (n + t.BlockLen() - 1) / t.BlockLen() * t.BlockBytes()
}
