package graph

import "slices"

// GatedStreams has hyper_connection.count streams x_s (Qwen 3.8 Flash Next), which are copies of the embedding at first.
// The parts of FromStreams read a mean of all: Σ σ(g_s)·y_s / n, where y_s is the RMS norm of x_s with its weights of
// hc_NAME_norm, and g = hc_NAME_up·SiLU(hc_NAME_down·y / n) of all streams in a row. After the last layer they become
// one likewise, with output_hc_norm, output_hc_down and output_hc_up.
type GatedStreams struct{}

// FromStreams adds 2·σ(i_s / n) times the output of a part to each of n streams of GatedStreams, i = hc_NAME_inject·y.
type FromStreams struct {
	Name string // attn: tensors are hc_attn_norm, …
	Part Part
}

// NgramEmbedding adds to each of GatedStreams an update from rows of a table, per_layer_token_embd, that hashes of the last
// 2 to ple.ngram_size tokens choose: ple.heads_per_ngram rows for each length. e being these rows, v = ple_value·e and
// k = ple_key·e, stream s becomes x_s + z_s + SiLU(conv(norm(z)))_s, with z_s = σ(sgn(d)·√max(|d|, 1e-6))·v and
// d = norm(k)_s·norm(x)_s / √n_embd. The convolution is over every ple.ngram_size-th token. All norms are RMS norms of
// each stream (Qwen 3.8 Flash Next).
//
// A hash is the XOR of tokens times ple.layer_multipliers, the token itself first, modulo the head's element of
// ple.head_vocab_sizes, plus that of ple.head_offsets. Tokens before the text, and those up to the last
// ple.eos_token_id before the token, count as ple.eos_token_id.
type NgramEmbedding struct{}

// PooledIndexer restricts attention to the tokens of the best blocks of attention.compress_ratios tokens, about
// attention.indexer.top_k tokens, by the scores of an indexer with means of keys: indexer.q_proj and indexer.k_proj with
// norms of heads and RoPE (Qwen 3.8 Flash Next). All tokens are attended to in a context of no more than that, and in
// layers with a ratio of 0.
type PooledIndexer struct{}

func (GatedStreams) streams()    {}
func (FromStreams) step()        {}
func (NgramEmbedding) step()     {}
func (PooledIndexer) scoreStep() {}

const (
	hyperRank  Num = "@hyper_connection.low_rank"
	ngramWidth Num = "@embedding_length_per_layer_input"
	ngramHeads Num = "@ple.heads_per_ngram * (@ple.ngram_size - 1)"
	ngramSize  Num = "@ple.ngram_size"
	ngramTaps  Num = "@ple.conv_kernel"
)

var ngramLists = []Num{"#ple.layers", "#ple.layer_multipliers", "#ple.head_offsets", "#ple.head_vocab_sizes"}

func (GatedStreams) asks() []Num { return []Num{hyperCount, hyperRank} }
func (FromStreams) asks() []Num  { return []Num{hyperCount, hyperRank} }

func (NgramEmbedding) asks() []Num {
	return slices.Concat(ngramLists, []Num{hyperCount, ngramWidth, ngramHeads, ngramTaps, "@ple.eos_token_id",
		"@ple.image_token_id"})
}

func (PooledIndexer) asks() []Num {
	return []Num{indexerHeads, indexerSize, "@attention.indexer.top_k", "@attention.compress_ratios"}
}

// gatedStreams declares the tensors that make one of all streams and, with inject, the factors of a part's outputs.
func (d *Decl) gatedStreams(p Presence, name string, inject bool) {
	n, rank := d.Size(hyperCount), d.Size(hyperRank)
	if n < 2 || rank < 1 {
		d.contradiction("%d streams, and a rank of %d, want at least 2 streams and a rank of 1", n, rank)
		return
	}
	all := mul(n, d.Size("n_embd"))
	d.weight(p, name+"_norm", NormRole, all)
	d.linear(p, name+"_down", Other, all, rank)
	d.linear(p, name+"_up", Other, rank, all)
	if inject {
		d.linear(p, name+"_inject", Other, all, n)
	}
}

// ngrams declares what NgramEmbedding needs.
func (d *Decl) ngrams() {
	embd, all := d.Size("n_embd"), mul(d.Size(hyperCount), d.Size("n_embd"))
	width, heads := d.sizeOrAny(ngramWidth), d.sizeOrAny(ngramHeads)
	in := int64(Any)
	if width != Any && heads != Any {
		if in = mul(width, heads); in == 0 {
			d.contradiction("%d rows of %d values for a token, want more", heads, width)
			return
		}
	}
	for _, l := range []struct{ list, want Num }{{"#ple.layer_multipliers", ngramSize},
		{"#ple.head_offsets", ngramHeads}, {"#ple.head_vocab_sizes", ngramHeads}} {
		if have, n := d.sizeOrAny(l.list), d.sizeOrAny(l.want); have != Any && n != Any && have < n {
			d.contradiction("%d elements of %s, want %d", have, l.list, n)
			return
		}
	}
	d.linear(Yes, "ple_key", Other, in, all)
	d.linear(Yes, "ple_value", Other, in, embd)
	for _, name := range []string{"ple_norm_key", "ple_norm_query", "ple_norm_conv"} {
		d.weight(Yes, name, NormRole, all)
	}
	taps := d.Size(ngramTaps)
	d.weight(Yes, "ple_conv1d", KernelRole, taps, all)
	d.outsideLayers(func() { d.weight(Yes, "per_layer_token_embd", EmbeddingRole, width, Any) })
	d.state(mul(max(0, taps-1), d.Size(ngramSize), all))
}
