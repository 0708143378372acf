package memory

import "strconv"

// kind is the kind of memory that a model has of the tokens before.
type kind uint8

const (
	attention kind = iota // keys and values, or the state of recurrent layers
	stateless             // none: all tokens are in one batch
	notText               // not a text model
)

// row has the facts of an architecture that follow neither from metadata nor from tensors.
type row struct {
	name string
	kind kind
	// stateAndKV: recurrent layers have keys and values, too.
	stateAndKV bool
	// statelessIf reports whether a model of kind attention is stateless after all; nil for no.
	statelessIf func(p *model) bool
	// statePrefix begins the name of a tensor that only recurrent layers have; "" for the usual prefixes.
	statePrefix string
	// state returns the number of elements in the state of recurrent layer i, for one sequence; nil if it follows from
	// the usual keys.
	state func(p *model, i int) int64
	// ownKVLayers is the number of layers that have keys and values of their own; 0 for attention.shared_kv_layers.
	ownKVLayers int
	// mtpKV: MTP layers have keys and values, too.
	mtpKV bool
	// keysOnly: the keys are the values, too.
	keysOnly bool
	// extraHead: there are keys and values of one more head, in a layer of its own.
	extraHead bool
	// noLogits: the model returns embeddings.
	noLogits bool
	// scores is not 0 if the attention scores of a layer are all in memory at a time, since flash attention does not
	// support the model; 2 if there is a relative position bias for each score.
	scores int
	// blockMasks: groups of heads choose the blocks of tokens that they attend to.
	blockMasks bool
	// readInMTP are prefixes of the names of tensors that the runtime reads in MTP layers, too; it never reads
	// unreadTensors.
	readInMTP, unreadTensors []string
	// indexCache calls add for the caches by which layer i chooses the tokens that it attends to: name of the cache,
	// tokens of a cell, bytes of a cell's keys and values.
	indexCache func(p *model, i int, opt Options, add func(what string, tokens, keys, values int64))
}

// rows are sorted by kind. An architecture without a row has keys and values in every layer. Package window has the
// windows.
//
// Source: the sizes of caches that the runtime of llama.cpp 0.7.0 prints.
var rows = []row{
	{name: "cohere2moe", readInMTP: []string{"nextn.shared_head_norm."}},
	{name: "bailingmoe3", mtpKV: true},
	{name: "deepseek32", indexCache: indexer(1), readInMTP: []string{"exp_probs_b."}},
	{name: "deepseek4", keysOnly: true, indexCache: compressedCache, statePrefix: "attn_compressor_", stateAndKV: true,
		state: compressorState},
	{name: "dots3note", indexCache: indexer(1)},
	{name: "falcon-h1", stateAndKV: true},
	{name: "gemma3n", ownKVLayers: 20},
	{name: "glm-dsa", indexCache: indexer(1), readInMTP: []string{"exp_probs_b."}},
	{name: "glm5-next", indexCache: indexer(3)},
	{name: "graniteswitch", extraHead: true},
	{name: "grok", scores: 1},
	{name: "hy_v3", readInMTP: []string{"exp_probs_b", "ffn_gate_inp.", "ffn_down_", "ffn_gate_", "ffn_up_",
		"nextn.shared_head_norm."}},
	{name: "hy_v4", indexCache: indexer(1)},
	{name: "lfm2", statelessIf: func(p *model) bool {
		v, _ := p.Get("decision.type")
		s, _ := v.Str()
		return s == "lfm2-d1-omni"
	}},
	{name: "llama-embed", noLogits: true},
	{name: "minimax-01", statePrefix: "attn_qkv.", state: func(p *model, _ int) int64 {
		n := p.size("attention.key_length", 0)
		return p.product("a state", p.size("attention.head_count", 0), n, n)
	}},
	{name: "minimax-m3", blockMasks: true, indexCache: func(p *model, i int, opt Options,
		add func(string, int64, int64, int64)) {
		if int64(i) >= p.size("leading_dense_block_count", 0) {
			add("indexer", 1, p.rowBytes(opt.Keys, 1, p.size("attention.indexer.key_length", 0)),
				p.rowBytes(opt.Values, 1, p.valLen[i]))
		}
	}},
	{name: "qwen4exp", indexCache: indexer(2), state: func(p *model, i int) int64 {
		n := p.mambaState(i)
		if t, ok := p.tensors["blk."+strconv.Itoa(i)+".ple_conv1d.weight"]; ok && len(t.NE) > 1 {
			// the convolution's last inputs, ple.ngram_size apart
			n += p.product("a state", max(0, t.NE[0]-1), t.NE[1], p.size("ple.ngram_size", 0))
		}
		return n
	}},
	{name: "step35", readInMTP: []string{"attn_gate.", "attn_k_norm.", "attn_q_norm.", "ffn_down.", "ffn_gate.",
		"ffn_up.", "nextn.shared_head_"}},

	{name: "t5", scores: 2, unreadTensors: []string{"dec.blk.0.cross_attn_rel_b.weight"}},

	{name: "bert", kind: stateless, noLogits: true},
	{name: "clef", kind: stateless},
	{name: "clip", kind: notText},
	{name: "dream", kind: stateless},
	{name: "eurobert", kind: stateless, noLogits: true},
	{name: "gemma-embedding", kind: stateless, noLogits: true},
	{name: "gemma-embedding2", kind: stateless, noLogits: true},
	{name: "jina-bert-v2", kind: stateless, noLogits: true},
	{name: "jina-bert-v3", kind: stateless, noLogits: true},
	{name: "llada", kind: stateless},
	{name: "llada-moe", kind: stateless},
	{name: "modern-bert", kind: stateless, noLogits: true},
	{name: "neo-bert", kind: stateless, noLogits: true},
	{name: "nomic-bert", kind: stateless, noLogits: true},
	{name: "nomic-bert-moe", kind: stateless, noLogits: true},
	{name: "rnd1", kind: stateless},
	{name: "wavtokenizer-dec", kind: stateless},
}

// indexer is row.indexCache for layers that choose tokens by n vectors of attention.indexer.key_length for each token.
func indexer(n int64) func(*model, int, Options, func(string, int64, int64, int64)) {
	return func(p *model, i int, opt Options, add func(string, int64, int64, int64)) {
		if types, ok := p.Flags("attention.indexer.types", len(p.hasKV), len(p.hasKV)); p.windowed[i] ||
			ok && !types[i] {
			return
		}
		add("indexer", 1, p.rowBytes(opt.Keys, n, p.size("attention.indexer.key_length", 0)), 0)
	}
}

// compressedCache is row.indexCache for layers that also keep one vector for every few tokens.
func compressedCache(p *model, i int, opt Options, add func(string, int64, int64, int64)) {
	ratio := p.sizes("attention.compress_ratios", len(p.hasKV), 0)[i]
	if ratio == 0 {
		return
	}
	add("compressed by "+strconv.FormatInt(ratio, 10), ratio, p.rowBytes(opt.Keys, 1, p.keyLen[i]), 0)
	if _, ok := p.tensors["blk."+strconv.Itoa(i)+".indexer.attn_q_b.weight"]; ok {
		add("indexer", ratio, p.rowBytes(opt.Keys, 1, p.size("attention.indexer.key_length", 0)), 0)
	}
}

// compressorState is row.state for the inputs of the vectors of compressedCache: values and weights of the tokens since
// the last vector and, where vectors overlap, of the tokens before. They overlap if the compressor is wider than a
// vector.
func compressorState(p *model, i int) (n int64) {
	for _, c := range []struct {
		tensor string
		length int64
	}{{"attn_compressor_ape", p.keyLen[i]}, {"indexer_compressor_ape", p.size("attention.indexer.key_length", 0)}} {
		if t, ok := p.tensors["blk."+strconv.Itoa(i)+"."+c.tensor+".weight"]; ok && len(t.NE) > 1 && c.length > 0 {
			n += p.product("a state", 2, t.NE[0], t.NE[1], max(1, t.NE[0]/c.length))
		}
	}
	return n
}

// lookup returns the row of an architecture.
func lookup(arch string) row {
	for _, r := range rows {
		if r.name == arch {
			return r
		}
	}
	return row{name: arch}
}
