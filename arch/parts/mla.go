package parts

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// The rows of this file are for DeepSeek models: multi-head latent attention (MLA), and MoE layers after dense ones.
// Source: the reference's DeepseekV2Model.

// MLAShapes are the dimensions of MLA tensors, in files of architectures without a graph.
var MLAShapes = shape.Rules{
	Dims: shape.Table{"n_embd_head_k_mla": "@attention.key_length_mla",
		"n_embd_head_v_mla": "@attention.value_length_mla"},
	Tensors: shape.Table{
		"attn_q": "n_embd, n_head * n_embd_head_k_mla", "attn_q_b": "n_lora_q, n_head * n_embd_head_k_mla",
		"attn_output": "n_head * n_embd_head_v_mla, n_embd",
		"attn_k_b":    "n_embd_head_k_mla - n_rot, n_lora_kv, n_head",
		"attn_v_b":    "n_lora_kv, n_embd_head_v_mla, n_head",
	},
}

// NeedsMLA are the keys without which runtimes do not load files of some architectures: see graph.Model.Reads.
var NeedsMLA = []string{"attention.key_length_mla!", "attention.value_length_mla!"}

// MLAMetadata is the metadata of a model with MLA. The file keeps keys and values compressed, with one KV head.
// UncompressedMetadata is for models with DeepSeek's MoE layers and plain attention.
var (
	MLAMetadata = slices.Concat(Override(CommonRows, table.Row{Key: table.KeyHeadCountKV, Const: gguf.Uint32(1)},
		mlaEpsilon, mlaExpertCount), mlaLead, []table.Row{
		{Key: "attention.kv_lora_rank", Derive: SumOf("kv_lora_rank")},
		{Key: "attention.key_length", Derive: SumOf("kv_lora_rank", "qk_rope_head_dim")},
		{Key: "attention.value_length", Derive: SumOf("kv_lora_rank")},
		{Key: "attention.key_length_mla", Derive: SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		{Key: "attention.value_length_mla", Derive: SumOf("v_head_dim")},
	}, mlaExperts, mlaRope)
	UncompressedMetadata = slices.Concat(Override(CommonRows, mlaEpsilon, mlaExpertCount), mlaLead,
		mlaExperts, []table.Row{
			{Key: "attention.sliding_window", Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := c.IntOr(0, "sliding_window_size")
				if err == nil && n == 0 {
					n, err = c.IntOr(0, "sliding_window")
				}
				return table.Uint32Of(n, n != 0, err)
			}},
		}, mlaRope)

	mlaEpsilon = table.Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type,
		From: []string{"rms_norm_eps"}, Const: gguf.Float32(1e-6)}
	// n_routed_experts first: the other keys may be defaults of the model type
	mlaExpertCount = table.Row{Key: "expert_count", Type: gguf.Uint32Type,
		From: []string{"n_routed_experts", "num_local_experts", "num_experts"}}
	mlaLead = []table.Row{
		{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := LeadingDense(c)
			return table.Uint32Of(n, true, err)
		}},
		UintRow("vocab_size", "vocab_size"),
		Optional(UintRow("attention.q_lora_rank", "q_lora_rank")),
	}
	mlaExperts = []table.Row{
		UintRow("expert_feed_forward_length", "moe_intermediate_size", "intermediate_size"),
		{Key: "expert_shared_count", Type: gguf.Uint32Type, From: []string{"n_shared_experts"}, Const: gguf.Uint32(0)},
		Optional(FloatRow("expert_weights_scale", "routed_scaling_factor")),
		{Key: "expert_weights_norm", Derive: TrueOnly("norm_topk_prob")},
		UintRow("rope.dimension_count", "qk_rope_head_dim"),
	}
	mlaRope = []table.Row{{Key: "rope.scaling.yarn_log_multiplier",
		Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, ok, err := c.Rope().Float("mscale_all_dim")
			return table.Float32Of(0.1*f, ok, err)
		}}}
)

// MLATensors are the tensors of a model with MLA.
var MLATensors = slices.Concat(EmbedRows, NormRows, MLARows, MLAFeedForward)

// MLAFeedForward are the FFN tensors of dense and MoE layers, MLAExperts of MoE layers only.
var (
	MLAFeedForward = slices.Concat(Only(DenseFirst, MLPRows),
		Only(MoEAfter, slices.Concat(routedExperts, []table.TensorRow{CorrectionRow})),
		Only(SharedAfter, SharedExpertRows))
	MLAExperts = slices.Concat(routedExperts, []table.TensorRow{CorrectionRow}, SharedExpertRows)
)

// routedExperts are ExpertRows with the number of experts read from n_routed_experts only: configs of some model types
// have another key, too, with a default that may not be the model's.
var routedExperts = func() []table.TensorRow {
	list := slices.Clone(ExpertRows)
	for i := range list {
		list[i].Experts = func(l table.Layer) (int64, error) { return l.Require("n_routed_experts") }
	}
	return list
}()

// MLAUnused are the keys of config.json that GGUF has no key for. Runtimes use mscale_all_dim for mscale, too; they are
// equal in published models.
var MLAUnused = []string{"topk_method", "ep_size", "num_nextn_predict_layers", "qk_head_dim", "num_key_value_heads",
	"rope_scaling.mscale"}

// MLAExpect are the required config values of a model with MLA.
var MLAExpect = []table.Expect{SiLU, Expect("moe_layer_freq", "1"), Expect("rope_interleave", "true")}

// TiedHead drops the copy of a tied embedding that some checkpoints store as lm_head.
var TiedHead = table.Drop{Prefix: "lm_head.weight", Why: table.Silent, If: Tied}

// BeyondNextN drops MTP layers, which follow the last layer.
var BeyondNextN = table.Drop{Prefix: "model.layers.", AfterModel: true, Why: MTP}

// MLAKeys and MLAValues take the K and V parts of kv_b_proj, the up-projection of the compressed KV:
// [heads, nope+value, rank]. The K part is transposed, because runtimes absorb it into the queries. MLAKeysOf and
// MLAValuesOf read the number of heads from a key other than num_key_value_heads.
var (
	MLAKeys   = MLAKeysOf("num_key_value_heads")
	MLAValues = MLAValuesOf("num_key_value_heads")
)

// MLAKeysOf: see MLAKeys.
func MLAKeysOf(heads string) *table.Transform { return MLAKeysBy(mlaDimension(heads)) }

// MLAValuesOf: see MLAKeys.
func MLAValuesOf(heads string) *table.Transform { return MLAValuesBy(mlaDimension(heads)) }

// MLAGeometry returns a layer's number of heads, the key length without the RoPE part, and the value length.
type MLAGeometry func(table.Layer) (heads, nope, value int64, err error)

// MLAKeysBy and MLAValuesBy are MLAKeys and MLAValues for models whose layers differ.
func MLAKeysBy(of MLAGeometry) *table.Transform {
	return &table.Transform{Name: "mla-keys", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		s, nope, _, err := mlaHeads(l, s, of)
		if err != nil {
			return nil, err
		}
		if s, err = rows.Slice(s, 1, 0, nope); err != nil {
			return nil, err
		}
		return rows.Transpose(s)
	}}
}

// MLAValuesBy: see MLAKeysBy.
func MLAValuesBy(of MLAGeometry) *table.Transform {
	return &table.Transform{Name: "mla-values", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		s, nope, value, err := mlaHeads(l, s, of)
		if err != nil {
			return nil, err
		}
		return rows.Slice(s, 1, nope, nope+value)
	}}
}

func mlaDimension(key string) MLAGeometry {
	return func(l table.Layer) (heads, nope, value int64, err error) {
		heads, err = l.Require(key)
		if err == nil {
			nope, err = l.Require("qk_nope_head_dim")
		}
		if err == nil {
			value, err = l.Require("v_head_dim")
		}
		return heads, nope, value, err
	}
}

// mlaHeads reshapes kv_b_proj from [heads*(nope+value), rank] to [heads, nope+value, rank], and returns both lengths.
func mlaHeads(l table.Layer, s rows.Source, of MLAGeometry) (_ rows.Source, nope, value int64, err error) {
	heads, nope, value, err := of(l)
	ne := s.NE()
	if err == nil && (heads < 1 || nope < 1 || value < 1 || len(ne) != 2 || ne[1]%heads != 0 ||
		ne[1]/heads != nope+value) {
		err = fault.Errorf(fault.Broken, "dimensions %s, want %d heads of %d and %d rows", gguf.Shape(ne),
			heads, nope, value)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	s, err = rows.Reshape(s, []int64{ne[0], nope + value, heads})
	return s, nope, value, err
}

// TrueOnly derives a boolean that is written only if it is true.
func TrueOnly(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		b, ok, err := c.Bool(key)
		return table.BoolOf(b, ok && b, err)
	}
}

// IndexerMetadata is the metadata of an indexer, which selects the positions that a token attends to (DeepSeek sparse
// attention, DSA).
var IndexerMetadata = []table.Row{
	UintRow("attention.indexer.head_count", "index_n_heads"),
	UintRow("attention.indexer.key_length", "index_head_dim"),
	UintRow("attention.indexer.top_k", "index_topk"),
}

// IndexerTensors are the tensors of an indexer.
var IndexerTensors = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.indexer.k_norm", GGUF: "blk.{bid}.indexer.k_norm", Bias: table.MayBias},
	{HF: "model.layers.{bid}.self_attn.indexer.weights_proj", GGUF: "blk.{bid}.indexer.proj"},
	{HF: "model.layers.{bid}.self_attn.indexer.wk", GGUF: "blk.{bid}.indexer.attn_k"},
	{HF: "model.layers.{bid}.self_attn.indexer.wq_b", GGUF: "blk.{bid}.indexer.attn_q_b"},
}

// IndexerShapes are the dimensions of indexer and MLA tensors.
var IndexerShapes = shape.Rules{
	Dims: shape.Merge(MLAShapes.Dims, shape.Table{"n_idx": "@attention.indexer.head_count",
		"n_idx_head": "@attention.indexer.key_length"}),
	Tensors: shape.Merge(MLAShapes.Tensors, shape.Table{
		"indexer.k_norm": "n_idx_head", "indexer.proj": "n_embd, n_idx", "indexer.attn_k": "n_embd, n_idx_head",
		"indexer.attn_q_b": "n_lora_q, n_idx * n_idx_head",
	}),
}

// RotaryHeadDim is the rule of head_dim in model types with MLA: it is the size of the rotary part.
var RotaryHeadDim = config.DerivedKeys{
	"head_dim": func(v config.Values) (any, error) { return v.Int("qk_rope_head_dim") },
}
