package graph

// Attention is softmax(Scores(q·k))·v over heads: MHA, GQA or MQA by the number of key heads. n_head, n_head_kv,
// n_embd_head_k and n_embd_head_v of Dims are its sizes in a layer. Steps of each list run in its order.
type Attention struct {
	QKV    Projection  // nil for Separate
	Steps  []HeadStep  // on queries, keys and values
	Scores []ScoreStep // on scores, between Scale and softmax
	Scale  Num         // of scores; "" for attention.scale or, if that is 0 or missing, 1/√n_embd_head_k
	Window Window      // zero: the whole context
	Sees   Direction   // the tokens to which a token attends
	After  []OutStep   // on the outputs of heads
	Out    string      // the output projection; "" for attn_output
}

// ScoreScale returns Scale, or its default.
func (a Attention) ScoreScale() Num {
	if a.Scale == "" {
		return "if(@attention.scale != 0, @attention.scale, 1 / sqrt(n_embd_head_k))"
	}
	return a.Scale
}

// Direction is the side on which the tokens are to which a token attends.
type Direction int

const (
	Causal Direction = iota // earlier tokens and itself, or all if attention.causal is false
	Both                    // all
	// CausalWhole is Causal in layers with a window; without one, attention is to earlier tokens even if
	// attention.causal is false (Gemma 4)
	CausalWhole
)

// Window is how far a token attends.
type Window struct {
	Tokens Num // "" or 0 for the whole context
	Shape  WindowShape
}

// WindowShape is where a window lies.
type WindowShape int

const (
	SlidingWindow   WindowShape = iota // the last Tokens
	ChunkedWindow                      // from the last multiple of Tokens on (Llama 4)
	SymmetricWindow                    // Tokens/2 to each side (encoders)
)

// Projection is how queries, keys and values are computed from the input.
type Projection interface{ projection() }

// Separate is attn_q, attn_k and attn_v, or in files that have it, attn_qkv.
type Separate struct{}

// GatedQueries is Separate with a query and a gate in each head of attn_q: outputs of the head are multiplied by the
// gate's sigmoid (Qwen3-Next).
type GatedQueries struct{}

// KeysAsValues is Separate in which layers without attn_v have the keys, before their norm, as values (Gemma 4).
type KeysAsValues struct{}

// ValueExperts is Separate in which layers with attn_v_exps choose experts for the values, by the sigmoid of the logits
// of attn_v_gate: the values are the weighted sum of SiLU(expert·x), the weights are normalized (K2 Horizon).
type ValueExperts struct{}

// SharedKV is Own in layers before From; later ones reuse the keys and values of Layer.
type SharedKV struct {
	From, Layer Num
	Own         Projection // nil for Separate
}

func (Separate) projection()     {}
func (GatedQueries) projection() {}
func (KeysAsValues) projection() {}
func (ValueExperts) projection() {}
func (SharedKV) projection()     {}

// HeadStep changes queries, keys or values, head by head.
type HeadStep interface{ headStep() }

// RoPE rotates pairs among the first n_rot values of each head of queries and keys by the token's position. The tensors
// rope_freqs, rope_factors_long and rope_factors_short divide the frequencies (Llama 3, LongRoPE).
type RoPE struct {
	Pairs    Pairs
	Base     Num // "" for rope.freq_base, or 10000
	Scaling  Scaling
	Sections Sections
}

// Theta returns Base, or its default.
func (r RoPE) Theta() Num {
	if r.Base == "" {
		return "@rope.freq_base or 10000"
	}
	return r.Base
}

// Pairs is which values RoPE rotates together.
type Pairs int

const (
	NeoX        Pairs = iota // i and i + n_rot/2 (rotate_half)
	Interleaved              // 2i and 2i+1 (GPT-J; Llama with permuted weights)
)

// Sections is how the axes of an M-RoPE position share the pairs, in files with rope.dimension_sections. These have
// pairs of NeoX.
type Sections int

const (
	Blocks     Sections = iota // time, height, width one after the other (Qwen2-VL)
	TakingTurn                 // interleaved M-RoPE (Qwen3-VL)
)

// Scaling is the RoPE scaling.
type Scaling int

const (
	ByKeys    Scaling = iota // that of the keys rope.scaling.*: none, linear, YaRN or LongRoPE
	NoScale                  // none, whatever the keys are; no divisors of frequencies (sliding-window layers)
	MScale                   // ByKeys; yarn_log_multiplier is a tenth of mscale_all_dim, mscale is 1 (Mistral 4)
	MScaleEq                 // MScale with mscale = mscale_all_dim (DeepSeek V2, V3)
	UnitScale                // ByKeys, but YaRN does not change the length of rotated values (DeepSeek V4)
)

// QKNorm normalizes queries and keys with the weights of attn_q_norm and attn_k_norm: one norm per head, with weights
// of its own or those of all heads, or one norm over all heads. May: in files that have the tensors.
type QKNorm struct{ May bool }

// QKLayerNorm is a layer norm of each head of queries and keys with the weights, and in files that have them the
// biases, of attn_q_norm and attn_k_norm: each head has its own (Chameleon).
type QKLayerNorm struct{ Eps Num }

// UnitNorm is the RMS norm of each head of queries and keys, without weights.
type UnitNorm struct{}

// QueryGain multiplies each head of queries by its value of attn_q_norm (Talkie).
type QueryGain struct{}

// SharedKeyNorm normalizes the shared part of the key with the weights of attn_k_norm, in MLA (dots3-note).
type SharedKeyNorm struct{}

// ValueNorm is the RMS norm of each head of values, without weights.
type ValueNorm struct{}

// Temperature multiplies queries by 1 + Scale·ln(1 + ⌊Times⌋), Times being an expression of the position pos (Llama 4,
// Mistral 3 and 4). A Scale of 0, and missing keys, mean no temperature.
type Temperature struct{ Scale, Times Num }

// Clamp limits queries, keys and values to ±By; 0 for no limit (DBRX, OLMo, MPT).
type Clamp struct{ By Num }

// On has steps of some layers.
type On struct {
	In    Layers
	Steps []HeadStep
}

func (RoPE) headStep()          {}
func (QKNorm) headStep()        {}
func (QKLayerNorm) headStep()   {}
func (UnitNorm) headStep()      {}
func (QueryGain) headStep()     {}
func (SharedKeyNorm) headStep() {}
func (ValueNorm) headStep()     {}
func (Temperature) headStep()   {}
func (Clamp) headStep()         {}
func (On) headStep()            {}

// ScoreStep changes attention scores.
type ScoreStep interface{ scoreStep() }

// SoftCap is By·tanh(x/By); 0 for no cap.
type SoftCap struct{ By Num }

// ALiBi subtracts the slope of the head times the distance of the tokens. Max is the ALiBi bias, from which slopes are
// computed; 0 for none.
type ALiBi struct{ Max Num }

// RelativeBias adds T5's relative position bias, a learned value for each bucket of distances.
type RelativeBias struct{}

// Sinks adds a learned score of each head to the sum of softmax (gpt-oss).
type Sinks struct{}

// BlockIndexer restricts attention to the best attention.indexer.top_k blocks of attention.indexer.block_size tokens, by
// the greatest score of an indexer in each: indexer.q_proj and indexer.k_proj with norms of heads and RoPE (MiniMax M3).
// The last attention.indexer.local_blocks blocks are among them. All tokens are attended to in a context of no more blocks.
type BlockIndexer struct{}

// Indexer restricts attention in MLA to the attention.indexer.top_k tokens with the greatest scores of an indexer, which
// has heads of queries made from those of MLA before attn_q_b (indexer.attn_q_b), one head of keys (indexer.attn_k), which
// has a layer norm with the epsilon Eps, and a weight for each head and token (indexer.proj). RoPE rotates the first n_rot
// values of both, or the last ones. The score of a token is the sum over heads of weight · ReLU(q·k). All tokens are attended to in a
// context of no more than top_k (DeepSeek V3.2).
//
// Pooled: it chooses among pools of attention.indexer.kpool tokens, top_k tokens in all; without RoPE. The key of a pool is
// the sum of its keys weighted, element by element, by the softmax of indexer_compressor_gate·x plus
// indexer_compressor_ape. The last tokens, which are no pool yet, are chosen always, unless
// attention.indexer.kpool_select_tail is false (GLM 5.3 Flash).
type Indexer struct {
	Pairs  Pairs
	Last   bool
	Eps    Num
	Pooled bool
}

// SharedIndexer restricts attention to the tokens that the last Indexer before chose (GLM 5).
type SharedIndexer struct{}

// OnScores has steps of some layers.
type OnScores struct {
	In    Layers
	Steps []ScoreStep
}

func (SoftCap) scoreStep()       {}
func (ALiBi) scoreStep()         {}
func (RelativeBias) scoreStep()  {}
func (Sinks) scoreStep()         {}
func (BlockIndexer) scoreStep()  {}
func (Indexer) scoreStep()       {}
func (SharedIndexer) scoreStep() {}
func (OnScores) scoreStep()      {}

// OutStep changes the outputs of heads.
type OutStep interface{ outStep() }

// OutGate multiplies by the sigmoid of attn_gate·x: a gate for each value, or for each head.
type OutGate struct{}

// SoftplusGate is OutGate with ln(1 + e^x) in place of the sigmoid (Laguna) or, if Binary, with log2(1 + 2^x)
// (K2 Horizon). May: in files that have the tensor.
type SoftplusGate struct{ Binary, May bool }

// OutFactor multiplies by a number.
type OutFactor struct{ By Num }

// OutNorm is one norm over the outputs of all heads (BitNet's attn_sub_norm).
type OutNorm struct{ Name string }

func (OutGate) outStep()      {}
func (SoftplusGate) outStep() {}
func (OutFactor) outStep()    {}
func (OutNorm) outStep()      {}

// MLA is multi-head latent attention: keys and values are computed from one compressed vector of kv_lora_rank values
// for each token, and n_rot values of the key are common to all heads. Queries may be compressed, too (q_lora_rank).
// Scores are multiplied by the square of YaRN's mscale.
//
// A file has attn_k_b and attn_v_b, which llama.cpp multiplies with queries and outputs: then it caches the compressed
// vectors. With attn_kv_b it caches the keys and values of all heads.
type MLA struct {
	Steps  []HeadStep // RoPE rotates the last n_rot values of a head of queries, and the shared part of the key
	Scores []ScoreStep
	Window Window
	After  []OutStep // on the outputs of heads
}

// Linear is one matrix in place of attention, attn_output (Nemotron models from an architecture search).
type Linear struct{}

func (Attention) part() {}
func (MLA) part()       {}
func (Linear) part()    {}

func (a Attention) asks() []Num {
	return []Num{"n_head", "n_head_kv", "n_embd_head_k", "n_embd_head_v", "@attention.causal", a.ScoreScale()}
}

func (r RoPE) asks() []Num {
	keys := []Num{"n_rot", "n_freqs", r.Theta(), "@rope.dimension_sections"}
	if r.Scaling == NoScale {
		return keys
	}
	return append(keys, "@rope.scaling.type", "@rope.scaling.factor", "@rope.scaling.original_context_length",
		"@rope.scaling.attn_factor", "@rope.scaling.alpha", "@rope.scaling.yarn_ext_factor",
		"@rope.scaling.yarn_attn_factor", "@rope.scaling.yarn_beta_fast", "@rope.scaling.yarn_beta_slow",
		"@rope.scaling.yarn_log_multiplier")
}

func (RelativeBias) asks() []Num { return []Num{relativeBuckets} }

func (ValueExperts) asks() []Num {
	return []Num{valueExperts, "@attention.value_expert_used_count", "@expert_weights_scale", "@expert_weights_norm"}
}

func (MLA) asks() []Num {
	return []Num{"n_head", "n_rot", "n_embd_head_k_mla", "n_embd_head_v_mla", "n_lora_kv", "n_lora_q", "@attention.causal"}
}

func (x Indexer) asks() []Num {
	keys := []Num{indexerHeads, indexerSize, "@attention.indexer.top_k"}
	if x.Pooled {
		keys = append(keys, indexerPool, "@attention.indexer.kpool_select_tail")
	}
	return keys
}

func (SharedIndexer) asks() []Num { return []Num{"@attention.indexer.top_k"} }

func (BlockIndexer) asks() []Num {
	return []Num{indexerHeads, indexerSize, "@attention.indexer.top_k", "@attention.indexer.block_size",
		"@attention.indexer.local_blocks"}
}

const (
	indexerHeads    Num = "@attention.indexer.head_count"
	indexerSize     Num = "@attention.indexer.key_length"
	indexerPool     Num = "@attention.indexer.kpool"
	relativeBuckets Num = "@attention.relative_buckets_count"
	valueExperts    Num = "@attention.value_expert_count"
)

// Declare is Part.Declare.
func (a Attention) Declare(d *Decl) {
	embd, heads, kv := d.Size("n_embd"), d.Size("n_head"), d.Size("n_head_kv")
	key, val := d.Size("n_embd_head_k"), d.Size("n_embd_head_v")
	if kv > 0 && heads%kv != 0 {
		d.contradiction("%d heads, want a multiple of the %d heads of keys", heads, kv)
	}
	rotated := d.headSteps(a.Steps, heads, kv, key)
	if rotated > key {
		d.contradiction("RoPE rotates %d of the %d values of a key", rotated, key)
	}
	d.scoreSteps(a.Scores, heads)
	d.checkNumbers(a.ScoreScale())

	own, queries, values := true, mul(heads, key), Yes
	projection := a.QKV
	if shared, ok := projection.(SharedKV); ok {
		from := d.Size(shared.From)
		projection, own = shared.Own, int64(d.layer) < from
		if !own {
			if layer := d.Size(shared.Layer); layer >= from {
				d.contradiction("keys and values are those of layer %d, which has none of its own", layer)
			}
		}
	}
	switch projection.(type) {
	case nil, Separate:
	case GatedQueries:
		queries = mul(2, queries)
	case KeysAsValues:
		values = May
	case ValueExperts:
		if d.Has("attn_v_exps") {
			values = No
			experts := d.Size(valueExperts)
			d.linear(Yes, "attn_v_gate", RouterRole, embd, experts)
			d.linear(Yes, "attn_v_exps", ValueRole, embd, mul(kv, val), experts)
		}
	default:
		d.unknown("projection", projection)
	}
	keys := Yes
	if !own { // some files have them nevertheless
		keys, values = May, May
	}
	if d.Has("attn_qkv") {
		d.linear(Yes, "attn_qkv", QKVRole, embd, add(queries, mul(kv, add(key, val))))
	} else {
		d.linear(Yes, "attn_q", QueryRole, embd, queries)
		d.linear(keys, "attn_k", KeyRole, embd, mul(kv, key))
		d.linear(values, "attn_v", ValueRole, embd, mul(kv, val))
	}
	d.outSteps(a.After, embd, heads, val)
	out := a.Out
	if out == "" {
		out = "attn_output"
	}
	d.linear(Yes, out, AttnOutRole, mul(heads, val), embd)
	if window := d.window(a.Window); own {
		d.keep(Cache{Window: window, Keys: mul(kv, key), Vals: mul(kv, val)})
	}
}

// Declare is Part.Declare.
func (m MLA) Declare(d *Decl) {
	embd, heads, rot := d.Size("n_embd"), d.Size("n_head"), d.Size("n_rot")
	key, val, rank := d.Size("n_embd_head_k_mla"), d.Size("n_embd_head_v_mla"), d.Size("n_lora_kv")
	if key <= rot {
		d.contradiction("MLA with keys of %d values, of which RoPE rotates %d", key, rot)
		return
	}
	d.headSteps(m.Steps, heads, heads, key)
	if q := d.Size("n_lora_q"); d.Has("attn_q") || q == 0 && !d.Has("attn_q_a") {
		d.linear(Yes, "attn_q", QueryRole, embd, mul(heads, key))
	} else {
		d.linear(Yes, "attn_q_a", QueryRole, embd, q)
		d.vector(Yes, "attn_q_a_norm", q)
		d.linear(Yes, "attn_q_b", QueryRole, q, mul(heads, key))
	}
	d.linear(Yes, "attn_kv_a_mqa", KeyRole, embd, rank+rot)
	d.vector(Yes, "attn_kv_a_norm", rank)
	d.scoreSteps(m.Scores, heads)
	window := d.window(m.Window)
	if d.Has("attn_kv_b") {
		d.linear(Yes, "attn_kv_b", ValueRole, rank, mul(heads, key-rot+val))
		d.keep(Cache{Window: window, Keys: mul(heads, key), Vals: mul(heads, val)})
	} else {
		for _, name := range []string{"attention.key_length_mla", "attention.value_length_mla"} {
			if _, ok := d.lookup(name); !ok {
				d.broken("layer %d: no key %q: runtimes read attn_kv_b then, which the file lacks", d.layer, d.fullKey(name))
				return
			}
		}
		d.linear(Yes, "attn_k_b", KeyRole, key-rot, rank, heads)
		d.linear(Yes, "attn_v_b", ValueRole, rank, val, heads)
		d.keep(Cache{Window: window, Keys: rank + rot})
	}
	d.outSteps(m.After, embd, heads, val)
	d.linear(Yes, "attn_output", AttnOutRole, mul(heads, val), embd)
}

// Declare is Part.Declare.
func (Linear) Declare(d *Decl) {
	embd := d.Size("n_embd")
	d.linear(Yes, "attn_output", AttnOutRole, embd, embd)
}

// window returns the tokens of a window, 0 for the whole context.
func (s *Scope) window(w Window) int64 {
	if w.Tokens == "" {
		return 0
	}
	return s.Size(w.Tokens)
}

// headSteps declares what steps need, for kv of heads heads with keys of so many values. It returns the values of a key
// that RoPE rotates, 0 without RoPE.
func (d *Decl) headSteps(steps []HeadStep, heads, kv, key int64) (rotated int64) {
	for _, s := range d.HeadSteps(steps) {
		switch s := s.(type) {
		case RoPE:
			rotated = d.Size("n_rot")
			d.checkNumbers(s.Theta())
			if s.Scaling == NoScale {
				break
			}
			freqs := d.Size("n_freqs")
			d.outsideLayers(func() {
				for _, name := range []string{"rope_freqs", "rope_factors_long", "rope_factors_short"} {
					d.weight(May, name, NormRole, freqs)
				}
			})
		case QKNorm:
			presence := Yes
			if s.May {
				presence = May
			}
			d.headNorm(presence, "attn_q_norm", heads, key)
			d.headNorm(May, "attn_k_norm", kv, key) // layers that reuse keys have none
		case QKLayerNorm:
			d.vector(Yes, "attn_q_norm", key, heads)
			d.vector(Yes, "attn_k_norm", key, kv)
			d.checkNumbers(s.Eps)
		case UnitNorm, ValueNorm:
		case SharedKeyNorm:
			d.vector(Yes, "attn_k_norm", d.Size("n_rot"))
		case QueryGain:
			d.weight(Yes, "attn_q_norm", NormRole, 1, heads)
		case Temperature:
			d.checkNumbers(s.Scale, s.Times)
		case Clamp:
			d.checkNumbers(s.By)
		default:
			d.unknown("head step", s)
		}
	}
	return rotated
}

// headNorm declares the weights of a norm of heads: of all heads alike, of each its own, or over all of them.
func (d *Decl) headNorm(p Presence, name string, heads, size int64) {
	d.vector(p, name, d.pick(name, []int64{size}, []int64{size, heads}, []int64{mul(size, heads)})...)
}

// scoreSteps declares what steps need.
func (d *Decl) scoreSteps(steps []ScoreStep, heads int64) {
	for _, s := range d.ScoreSteps(steps) {
		switch s := s.(type) {
		case SoftCap:
			d.checkNumbers(s.By)
		case ALiBi:
			d.checkNumbers(s.Max)
		case RelativeBias: // layers without a table use that of the first
			presence := May
			if d.layer == 0 {
				presence = Yes
			}
			d.weight(presence, "attn_rel_b", KernelRole, heads, d.Size(relativeBuckets))
		case Sinks:
			d.weight(Yes, "attn_sinks", NormRole, heads)
		case Indexer:
			embd, count, size := d.Size("n_embd"), d.Size(indexerHeads), d.Size(indexerSize)
			d.linear(Yes, "indexer.attn_q_b", QueryRole, d.Size("n_lora_q"), mul(count, size))
			d.linear(Yes, "indexer.attn_k", KeyRole, embd, size)
			d.vector(Yes, "indexer.k_norm", size)
			d.linear(Yes, "indexer.proj", Other, embd, count)
			d.checkNumbers(s.Eps)
			if !s.Pooled {
				d.keep(Cache{What: "indexer", Keys: size})
				break
			}
			d.linear(Yes, "indexer_compressor_gate", Other, embd, size)
			d.weight(Yes, "indexer_compressor_ape", KernelRole, size, d.Size(indexerPool))
			d.keep(Cache{What: "indexer", Keys: mul(3, size)}) // key, gate, and that of the pool
		case SharedIndexer:
		case PooledIndexer:
			embd, count, size := d.Size("n_embd"), d.Size(indexerHeads), d.Size(indexerSize)
			d.linear(Yes, "indexer.q_proj", KernelRole, embd, mul(count, size))
			d.linear(Yes, "indexer.k_proj", KernelRole, embd, size)
			d.vector(Yes, "indexer.q_norm", size)
			d.vector(Yes, "indexer.k_norm", size)
			d.keep(Cache{What: "indexer", Keys: mul(2, size)})
		case BlockIndexer:
			embd, count, size := d.Size("n_embd"), d.Size(indexerHeads), d.Size(indexerSize)
			d.linear(Yes, "indexer.q_proj", KernelRole, embd, mul(count, size))
			d.linear(Yes, "indexer.k_proj", KernelRole, embd, size)
			d.vector(Yes, "indexer.q_norm", size)
			d.vector(Yes, "indexer.k_norm", size)
			d.keep(Cache{What: "indexer", Keys: size, Vals: d.Size("n_embd_head_v")})
		default:
			d.unknown("score step", s)
		}
	}
}

// outSteps declares what steps need.
func (d *Decl) outSteps(steps []OutStep, embd, heads, val int64) {
	for _, s := range steps {
		switch s := s.(type) {
		case OutGate:
			ne := d.pick("attn_gate", []int64{embd, mul(heads, val)}, []int64{embd, heads})
			d.linear(Yes, "attn_gate", Other, ne...)
		case SoftplusGate:
			ne := d.pick("attn_gate", []int64{embd, mul(heads, val)}, []int64{embd, heads})
			presence := Yes
			if s.May {
				presence = May
			}
			d.linear(presence, "attn_gate", Other, ne...)
		case OutFactor:
			d.checkNumbers(s.By)
		case OutNorm:
			d.vector(Yes, s.Name, mul(heads, val))
		default:
			d.unknown("output step", s)
		}
	}
}
