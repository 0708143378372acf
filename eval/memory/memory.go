package memory

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/eval/internal/metadata"
	"ggforge/eval/internal/window"
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

// cacheTypes are the types that the runtime accepts for --cache-type-k and --cache-type-v.
var cacheTypes = []gguf.Type{gguf.TypeF32, gguf.TypeF16, gguf.TypeBF16, gguf.TypeQ8_0, gguf.TypeQ4_0, gguf.TypeQ4_1,
	gguf.TypeIQ4_NL, gguf.TypeQ5_0, gguf.TypeQ5_1}

// ParseCacheType returns the type of that name, in any case. The name of no type, or of one that the runtime does not
// accept for a cache, is an error of kind fault.Usage.
func ParseCacheType(name string) (CacheType, error) {
	if t, ok := gguf.ParseType(name); ok && slices.Contains(cacheTypes, t) {
		return CacheType{t, true}, nil
	}
	var names []string
	for _, t := range cacheTypes {
		names = append(names, strings.ToLower(t.String()))
	}
	return CacheType{}, fault.Errorf(fault.Usage, "%q is not a type of caches: want one of %s", name,
		strings.Join(names, ", "))
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
	*keys
	row
	layers  int // without MTP layers
	weights int64
	unread  int64
	tensors map[string]*gguf.Tensor
	names   []string // of tensors, in the order of the file

	headsKV        []int64
	keyLen, valLen []int64 // by layer, of one head
	windowed       []bool
	window         int64
	recurrent      []bool
	hasKV          []bool
	embd, vocab    int64
	latent         bool // MLA: the cache has a latent vector per token as the key, and no values
	repeats        int  // number of times that the layers run, each time with KV of their own
}

var layerName = regexp.MustCompile(`^blk\.(\d+)\.(.+)$`)

// newModel reads the facts of a model.
func newModel(m Model) (*model, error) {
	p := &model{keys: newKeys(m.Metadata), tensors: map[string]*gguf.Tensor{}}
	if p.Arch == "" {
		return nil, fault.Errorf(fault.Unsupported, "no key %q: not a model", gguf.KeyArchitecture)
	}
	p.row = lookup(p.Arch)
	if p.kind == notText {
		return nil, fault.Errorf(fault.Unsupported,
			"architecture %q: not a model of text, whose memory could be estimated", p.Arch)
	}
	all := p.size("block_count", -1)
	if p.err != nil {
		return nil, p.err
	}
	if all < 0 {
		return nil, fault.Errorf(fault.Broken, "no key %q", p.Arch+".block_count")
	}
	if all == 0 {
		return nil, fault.Errorf(fault.Broken, "%q is 0, want at least 1", p.Arch+".block_count")
	}
	if all > limits.MaxLayers {
		return nil, fault.Errorf(fault.Unsupported, "%d layers, want at most %d", all, limits.MaxLayers)
	}
	n := int(all)
	p.layers = max(0, n-int(p.size("nextn_predict_layers", 0)))
	for t := range m.Tensors {
		p.tensors[t.Name] = t
		p.names = append(p.names, t.Name)
		if p.reads(t.Name) {
			p.weights += t.Bytes()
		} else {
			p.unread += t.Bytes()
		}
	}
	p.repeats = int(min(limits.MaxLayers, p.size("num_loops", 1)))
	p.embd = p.size("embedding_length", 0)
	p.vocab = p.vocabulary()
	p.setHeads(n)
	p.setWindows(n)
	p.setLayerKinds(n)
	return p, p.err
}

// reads reports whether the runtime reads a tensor. It reads MTP layers only as a draft model.
func (p *model) reads(tensor string) bool {
	m := layerName.FindStringSubmatch(tensor)
	if m == nil {
		return !slices.Contains(p.unreadTensors, tensor)
	}
	i, err := strconv.Atoi(m[1])
	return err != nil || i < p.layers || slices.ContainsFunc(p.readInMTP,
		func(s string) bool { return strings.HasPrefix(m[2], s) })
}

// vocabulary returns the number of tokens.
func (p *model) vocabulary() int64 {
	if v, ok := p.Metadata.Get("tokenizer.ggml.tokens"); ok && v.Type() == gguf.ArrayType {
		return int64(v.Len())
	}
	return p.size("vocab_size", 0)
}

// setHeads sets the number of KV heads and the lengths of a head's key and value of each layer.
func (p *model) setHeads(n int) {
	heads := p.sizes("attention.head_count", n, 0)
	p.headsKV = p.sizes("attention.head_count_kv", n, -1)
	if !p.Has("attention.head_count_kv") {
		p.headsKV = heads
	}
	var each int64
	if len(heads) > 0 && heads[0] > 0 {
		each = p.embd / heads[0]
	}
	key, value := p.size("attention.key_length", each), p.size("attention.value_length", each)
	p.latent = p.Has("attention.key_length_mla") || p.keysOnly
	p.keyLen, p.valLen = slices.Repeat([]int64{key}, n), slices.Repeat([]int64{value}, n)
}

// setWindows sets which layers have a window, and head sizes of their own in these.
func (p *model) setWindows(n int) {
	p.windowed = make([]bool, n)
	row := window.Lookup(p.Arch)
	if row == nil {
		return
	}
	if p.window = row.Length(p.layers, p.size("attention.sliding_window", -1)); p.window == 0 {
		return
	}
	list, ok := p.Flags("attention.sliding_window_pattern", n, n)
	if ok {
		p.windowed = list
	} else {
		period := int(p.size("attention.sliding_window_pattern", int64(row.Period)))
		for i := range p.windowed {
			p.windowed[i] = row.Has(i, period)
		}
	}
	for i, w := range p.windowed {
		if w {
			p.keyLen[i] = p.size("attention.key_length_swa", p.keyLen[i])
			p.valLen[i] = p.size("attention.value_length_swa", p.valLen[i])
		}
	}
}

// setLayerKinds sets which layers have keys and values in the cache, and which have a recurrent state.
func (p *model) setLayerKinds(n int) {
	p.recurrent, p.hasKV = make([]bool, n), make([]bool, n)
	prefixes := []string{"ssm_", "shortconv.", "time_mix_"}
	if p.statePrefix != "" {
		prefixes = []string{p.statePrefix}
	}
	stateful := p.kind != stateless && (p.statelessIf == nil || !p.statelessIf(p))
	for _, name := range p.names {
		m := layerName.FindStringSubmatch(name)
		if m == nil || !stateful {
			continue
		}
		i, err := strconv.Atoi(m[1])
		if err != nil || i >= p.layers {
			continue
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(m[2], prefix) {
				p.recurrent[i] = true
			}
		}
	}
	own := n // layers from here on use KV of earlier layers
	if p.ownKVLayers > 0 {
		own = p.ownKVLayers
	} else if shared := int(p.size("attention.shared_kv_layers", 0)); shared > 0 {
		own = n - shared
	}
	keep := p.layers
	if p.mtpKV {
		keep = n
	}
	for i := range p.hasKV {
		p.hasKV[i] = stateful && i < min(keep, own) && (!p.recurrent[i] || p.stateAndKV)
	}
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
	if context > maxContext || batch > metadata.MaxSize || sequences > maxSequences {
		return Use{}, fault.Errorf(fault.Usage,
			"want a context of at most %d tokens, batches of at most %d and at most %d sequences", int64(maxContext),
			metadata.MaxSize, maxSequences)
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
	// add adds bytes of one token's keys and values, of several equal layers, to the cache of that name and size
	add := func(times int, what string, cells, keys, values int64) {
		i := slices.IndexFunc(caches, func(c *Cache) bool { return c.What == what && c.Cells == cells })
		if i < 0 {
			i = len(caches)
			caches = append(caches, &Cache{What: what, Cells: cells})
		}
		c := caches[i]
		if keys+values > 0 {
			c.Layers += times
		}
		c.Keys = p.sum("keys", c.Keys, p.product("keys", int64(times), streams, cells, keys))
		c.Values = p.sum("values", c.Values, p.product("values", int64(times), streams, cells, values))
	}
	for i, of := range p.hasKV {
		if !of {
			continue
		}
		keys, values := p.rowBytes(opt.Keys, p.headsKV[i], p.keyLen[i]), int64(0)
		if !p.latent {
			values = p.rowBytes(opt.Values, p.headsKV[i], p.valLen[i])
		}
		what, n := caches[0].What, cells
		if p.windowed[i] {
			what, n = caches[1].What, swaCells
		}
		add(p.repeats, what, n, keys, values)
		if p.indexCache != nil {
			p.indexCache(p, i, opt, func(what string, tokens, keys, values int64) {
				add(1, what, roundUp((cells+tokens-1)/tokens), keys, values)
			})
		}
	}
	if p.extraHead {
		add(1, caches[0].What, cells, p.rowBytes(opt.Keys, 1, p.keyLen[0]), p.rowBytes(opt.Values, 1, p.valLen[0]))
	}
	for _, c := range caches {
		if c.Keys+c.Values > 0 {
			u.Caches = append(u.Caches, *c)
			u.Cache = p.sum("the cache", u.Cache, c.Keys+c.Values)
		}
	}
	for i, of := range p.recurrent {
		if of {
			u.State = p.sum("states", u.State, p.product("states", sequences, 4, p.stateLen(i)))
		}
	}
	u.Output = p.product("logits", sequences, p.vocab, 4)
	u.Compute = p.compute(min(batch, u.Context), caches)
	return u, p.err
}

// rowBytes returns the bytes of one token's keys or values in a layer.
func (p *model) rowBytes(c CacheType, heads, length int64) int64 {
	n := p.product("a row of the cache", heads, length)
	t := c.Type()
	return (n + t.BlockLen() - 1) / t.BlockLen() * t.BlockBytes()
}

// stateLen returns the number of elements in the state of recurrent layer i, for one sequence.
func (p *model) stateLen(i int) int64 {
	less := func(n int64) int64 { return max(0, n-1) }
	conv := p.size("ssm.conv_kernel", 0)
	switch {
	case p.state != nil:
		return p.state(p, i)
	case p.Has("wkv.head_size"):
		return p.product("a state", p.embd, p.size("token_shift_count", 2)+p.size("wkv.head_size", 0))
	case p.Has("shortconv.l_cache"):
		return p.product("a state", p.embd, less(p.size("shortconv.l_cache", 0)))
	case p.Has("kda.head_dim"):
		dim, heads := p.size("kda.head_dim", 0), p.size("attention.head_count", 0)
		return p.product("a state", heads, dim, 3*less(conv)+dim)
	}
	return p.mambaState(i)
}

// mambaState returns the number of elements in a state of Mamba: the last inputs of the convolution, and the state of
// each channel.
func (p *model) mambaState(int) int64 {
	inner, state := p.size("ssm.inner_size", 0), p.size("ssm.state_size", 0)
	inputs := inner + 2*p.product("a state", p.size("ssm.group_count", 0), state)
	return p.product("a state", max(0, p.size("ssm.conv_kernel", 0)-1), inputs) + p.product("a state", inner, state)
}
