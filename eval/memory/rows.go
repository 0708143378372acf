package memory

import "strconv"

// kind is what a model remembers of a text.
type kind uint8

const (
	attention kind = iota // keys and values, a state where layers are recurrent
	stateless             // nothing: the text is seen whole
	notText               // no model of text
)

// row has the facts of an architecture that follow neither from metadata nor from tensors.
type row struct {
	name string
	kind kind
	// both: layers have a state and keys, too.
	both bool
	// unless reports whether the model is stateless after all.
	unless func(p *model) bool
	// stateBy is the beginning of a tensor's name that recurrent layers have, where it is
	// none of the usual ones.
	stateBy string
	// state returns the numbers that recurrent layer i keeps of a sequence, where it is not
	// the keys' of other architectures.
	state func(p *model, i int) int64
	// own is the number of layers that have keys of their own, where no key says it.
	own int
	// drafts: MTP layers have keys, too.
	drafts bool
	// keysOnly: values are the keys.
	keysOnly bool
	// extra: there are keys and values of one more head, in a layer of its own.
	extra bool
	// silent: nothing is predicted, there are no logits.
	silent bool
	// scores is not 0 if a layer's scores of all tokens are in memory at a time, since flash
	// attention cannot compute them; 2 if there are as many biases.
	scores int
	// blocks: groups of heads choose the blocks of tokens that they attend to.
	blocks bool
	// alsoRead are beginnings of the names of tensors that the runtime reads also in layers
	// that predict further tokens; ignored are tensors that it reads nowhere.
	alsoRead, ignored []string
	// index adds what is kept of layer i to find the tokens that it looks at: name of the
	// cache, tokens of a cell, bytes of a cell's keys and values.
	index func(p *model, i int, opt Options, add func(what string, tokens, keys, values int64))
}

// rows of architectures; what is not here has keys and values of every layer. Package window has
// their windows.
//
// Source: what the runtime of llama.cpp 0.7.0 prints of its caches.
var rows = []row{
	{name: "cohere2moe", alsoRead: []string{"nextn.shared_head_norm."}},
	{name: "bailingmoe3", drafts: true},
	{name: "deepseek32", index: indexer(1), alsoRead: []string{"exp_probs_b."}},
	{name: "deepseek4", keysOnly: true, index: compressed, stateBy: "attn_compressor_", both: true, state: compressing},
	{name: "dots3note", index: indexer(1)},
	{name: "falcon-h1", both: true},
	{name: "gemma3n", own: 20},
	{name: "glm-dsa", index: indexer(1), alsoRead: []string{"exp_probs_b."}},
	{name: "glm5-next", index: indexer(3)},
	{name: "graniteswitch", extra: true},
	{name: "grok", scores: 1},
	{name: "hy_v3", alsoRead: []string{"exp_probs_b", "ffn_gate_inp.", "ffn_down_", "ffn_gate_", "ffn_up_",
		"nextn.shared_head_norm."}},
	{name: "hy_v4", index: indexer(1)},
	{name: "lfm2", unless: func(p *model) bool {
		v, _ := p.Get("decision.type")
		s, _ := v.Str()
		return s == "lfm2-d1-omni"
	}},
	{name: "llama-embed", silent: true},
	{name: "minimax-01", stateBy: "attn_qkv.", state: func(p *model, _ int) int64 {
		n := p.size("attention.key_length", 0)
		return p.product("a state", p.size("attention.head_count", 0), n, n)
	}},
	{name: "minimax-m3", blocks: true, index: func(p *model, i int, opt Options,
		add func(string, int64, int64, int64)) {
		if int64(i) >= p.size("leading_dense_block_count", 0) {
			add("indexer", 1, p.rowBytes(opt.Keys, 1, p.size("attention.indexer.key_length", 0)),
				p.rowBytes(opt.Values, 1, p.valLen[i]))
		}
	}},
	{name: "qwen4exp", index: indexer(2), state: func(p *model, i int) int64 {
		n := p.convolved(i)
		if t, ok := p.tensors["blk."+strconv.Itoa(i)+".ple_conv1d.weight"]; ok && len(t.NE) > 1 {
			// the convolution's last inputs, ple.ngram_size apart
			n += p.product("a state", max(0, t.NE[0]-1), t.NE[1], p.size("ple.ngram_size", 0))
		}
		return n
	}},
	{name: "step35", alsoRead: []string{"attn_gate.", "attn_k_norm.", "attn_q_norm.", "ffn_down.", "ffn_gate.",
		"ffn_up.", "nextn.shared_head_"}},

	{name: "t5", scores: 2, ignored: []string{"dec.blk.0.cross_attn_rel_b.weight"}},

	{name: "bert", kind: stateless, silent: true},
	{name: "clef", kind: stateless},
	{name: "clip", kind: notText},
	{name: "dream", kind: stateless},
	{name: "eurobert", kind: stateless, silent: true},
	{name: "gemma-embedding", kind: stateless, silent: true},
	{name: "gemma-embedding2", kind: stateless, silent: true},
	{name: "jina-bert-v2", kind: stateless, silent: true},
	{name: "jina-bert-v3", kind: stateless, silent: true},
	{name: "llada", kind: stateless},
	{name: "llada-moe", kind: stateless},
	{name: "modern-bert", kind: stateless, silent: true},
	{name: "neo-bert", kind: stateless, silent: true},
	{name: "nomic-bert", kind: stateless, silent: true},
	{name: "nomic-bert-moe", kind: stateless, silent: true},
	{name: "rnd1", kind: stateless},
	{name: "wavtokenizer-dec", kind: stateless},
}

// indexer is row.index for layers that choose what they look at by vectors of their own, n
// of attention.indexer.key_length for each token.
func indexer(n int64) func(*model, int, Options, func(string, int64, int64, int64)) {
	return func(p *model, i int, opt Options, add func(string, int64, int64, int64)) {
		if types, ok := p.Flags("attention.indexer.types", len(p.attends), len(p.attends)); p.windowed[i] ||
			ok && !types[i] {
			return
		}
		add("indexer", 1, p.rowBytes(opt.Keys, n, p.size("attention.indexer.key_length", 0)), 0)
	}
}

// compressed is row.index for layers that also keep a vector for each few tokens.
func compressed(p *model, i int, opt Options, add func(string, int64, int64, int64)) {
	ratio := p.sizes("attention.compress_ratios", len(p.attends), 0)[i]
	if ratio == 0 {
		return
	}
	add("compressed by "+strconv.FormatInt(ratio, 10), ratio, p.rowBytes(opt.Keys, 1, p.keyLen[i]), 0)
	if _, ok := p.tensors["blk."+strconv.Itoa(i)+".indexer.attn_q_b.weight"]; ok {
		add("indexer", ratio, p.rowBytes(opt.Keys, 1, p.size("attention.indexer.key_length", 0)), 0)
	}
}

// compressing is row.state for the inputs of the vectors of compressed: numbers and their
// weights of the tokens since the last vector and, where vectors overlap, of those before.
// Whether they overlap follows from the width of the compressor.
func compressing(p *model, i int) (n int64) {
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

func lookup(arch string) row {
	for _, r := range rows {
		if r.name == arch {
			return r
		}
	}
	return row{name: arch}
}
