package graph

import (
	"strconv"

	"ggforge/fault"
)

// CompressedAttention is the attention of DeepSeek V4. One head of keys, which are the values, too (attn_kv with
// the norm attn_kv_a_norm), serves all heads of queries (attn_q_a, attn_q_a_norm, attn_q_b, then an RMS norm of
// each head without weights). RoPE rotates the last n_rot values of queries and keys, and the outputs of heads
// back. A token attends to the last Window tokens, to a learned score of each head (attn_sinks), and in layers
// whose attention.compress_ratios is not 0, to vectors of the same size that stand for as many tokens each, all of
// them before the token or the token itself.
//
// Such a vector is Σ softmax(gate·x + ape) ⊙ kv·x over its tokens, element by element (attn_compressor_gate,
// attn_compressor_ape, attn_compressor_kv), with the norm attn_compressor_norm and rotated as at its first token.
// With a ratio of 4 both matrices have twice the rows, and the sum is over the first half of the tokens of the
// vector before, and over the second half of its own. Of these vectors an indexer chooses the
// attention.indexer.top_k best: their score is Σ weight · ReLU(q·k) over heads of queries (indexer.attn_q_b of the
// normalized attn_q_a·x), keys made by a compressor of the same kind (indexer_compressor_*), and weights
// indexer.proj·x.
//
// Outputs of heads are projected in attention.output_group_count groups of heads (attn_output_a), then together
// (attn_output_b).
//
// Source: the DeepSeek V4 report; the graph of llama.cpp.
type CompressedAttention struct {
	Local      RoPE // of layers that compress nothing
	Compressed RoPE // of others
	Window     Num
}

// IndexedRatio is the ratio of layers of CompressedAttention with an indexer, WideRatio the other one.
const (
	IndexedRatio = 4
	WideRatio    = 128
)

const (
	compressRatio Num = "@attention.compress_ratios or 0"
	outputGroups  Num = "@attention.output_group_count"
	outputRank    Num = "@attention.output_lora_rank"
)

func (CompressedAttention) part() {}

func (CompressedAttention) asks() []Num {
	return []Num{"n_head", "n_head_kv", "n_embd_head_k", "n_embd_head_v", "n_rot", "n_lora_q", compressRatio, outputGroups, outputRank,
		indexerHeads, indexerSize, "@attention.indexer.top_k"}
}

// RoPE returns the RoPE of layers with a ratio.
func (a CompressedAttention) RoPE(ratio int64) RoPE {
	if ratio == 0 {
		return a.Local
	}
	return a.Compressed
}

// Declare is Part.Declare.
func (a CompressedAttention) Declare(d *Decl) {
	embd, heads, key, low := d.Size("n_embd"), d.Size("n_head"), d.Size("n_embd_head_k"), d.Size("n_lora_q")
	ratio, groups, rank := d.Size(compressRatio), d.Size(outputGroups), d.Size(outputRank)
	if kv := d.Size("n_head_kv"); kv != 1 {
		d.contradiction("%d heads of keys, want 1", kv)
		return
	}
	if groups < 1 || heads%groups != 0 {
		d.contradiction("%d heads in %d groups, want a multiple", heads, groups)
		return
	}
	rotated := d.headSteps([]HeadStep{a.RoPE(ratio)}, heads, 1, key)
	if rotated > key || d.Size("n_embd_head_v") != key {
		d.contradiction("keys of %d values, which are the values, too, of which RoPE rotates %d", key, rotated)
		return
	}
	d.linear(Yes, "attn_q_a", QueryRole, embd, low)
	d.vector(Yes, "attn_q_a_norm", low)
	d.linear(Yes, "attn_q_b", QueryRole, low, mul(heads, key))
	d.linear(Yes, "attn_kv", KeyRole, embd, key)
	d.vector(Yes, "attn_kv_a_norm", key)
	d.weight(Yes, "attn_sinks", NormRole, heads)
	d.linear(Yes, "attn_output_a", AttnOutRole, mul(heads/groups, key), mul(groups, rank))
	d.linear(Yes, "attn_output_b", AttnOutRole, mul(groups, rank), embd)
	d.keep(Cache{Window: d.window(Window{Tokens: a.Window}), Keys: key})
	switch ratio {
	case 0:
		return
	case IndexedRatio, WideRatio:
	default:
		d.fail(fault.Unsupported, "layer %d compresses %d tokens to one, want 0, %d or %d", d.layer, ratio, IndexedRatio,
			WideRatio)
		return
	}
	d.keep(Cache{What: "compressed by " + strconv.FormatInt(ratio, 10), Every: ratio, Keys: key})
	d.compressor("attn_compressor", embd, key, ratio)
	if ratio != IndexedRatio {
		return
	}
	count, size := d.Size(indexerHeads), d.Size(indexerSize)
	d.linear(Yes, "indexer.attn_q_b", QueryRole, low, mul(count, size))
	d.linear(Yes, "indexer.proj", Other, embd, count)
	d.keep(Cache{What: "indexer", Every: ratio, Keys: size})
	d.compressor("indexer_compressor", embd, size, ratio)
}

// compressor declares what makes vectors of size values of ratio tokens each. It keeps its inputs since the last vector
// and, where vectors overlap, of the vector before.
func (d *Decl) compressor(name string, embd, size, ratio int64) {
	halves := int64(1)
	if ratio == IndexedRatio {
		halves = 2
	}
	d.linear(Yes, name+"_kv", KeyRole, embd, mul(halves, size))
	d.linear(Yes, name+"_gate", Other, embd, mul(halves, size))
	d.weight(Yes, name+"_ape", NormRole, mul(halves, size), ratio)
	d.vector(Yes, name+"_norm", size)
	d.state(mul(2, halves, size, ratio, halves))
}
