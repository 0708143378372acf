package arch

import (
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// minicpm and minicpm3 are OpenBMB's MiniCPM 1, 2 and 4, and MiniCPM 3 with
// compressed keys and values. Source: the classes of minicpm.py of the reference's
// converter.
var (
	minicpm = &Arch{
		Name:      "minicpm",
		Classes:   []string{"MiniCPMForCausalLM"},
		Tokenizer: tokenizer.ClassMiniCPM,
		Metadata: slices.Concat(commonRows, []Row{
			floatRow("embedding_scale", "scale_emb"),
			{Key: "residual_scale", Derive: func(c *Config) (gguf.Value, bool, error) {
				layers, err := c.Require("num_hidden_layers")
				return c.quotient("scale_depth", math.Sqrt(float64(layers)), err)
			}},
			{Key: "logit_scale", Derive: func(c *Config) (gguf.Value, bool, error) {
				base, _, err := c.Float("dim_model_base")
				return c.quotient("hidden_size", base, err)
			}},
		}),
		Expect:  []Expect{silu},
		Unused:  append([]string{"rope_type"}, biasKeys...),
		Tensors: slices.Concat(embedRows, normRows, permutedRows(NoBias), mlpRows),
		Extra: longRopeFactors(func(c *Config) (int64, error) {
			hidden, heads, err := c.hiddenAndHeads()
			return hidden / max(heads, 1), err
		}),
	}
	minicpm3 = &Arch{
		Name:      "minicpm3",
		Classes:   []string{"MiniCPM3ForCausalLM"},
		Tokenizer: tokenizer.ClassMiniCPM,
		Metadata: []Row{
			fileTypeRow,
			uintRow("context_length", "max_position_embeddings"),
			uintRow("embedding_length", "hidden_size"),
			uintRow(keyBlockCount, blockCountKeys...),
			uintRow("feed_forward_length", "intermediate_size"),
			uintRow(keyHeadCount, "num_attention_heads"),
			uintRow(keyHeadCountKV, "num_key_value_heads"),
			floatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
			uintRow("vocab_size", "vocab_size"),
			optional(uintRow("attention.q_lora_rank", "q_lora_rank")),
			uintRow("attention.kv_lora_rank", "kv_lora_rank"),
			{Key: "attention.key_length", Derive: func(c *Config) (gguf.Value, bool, error) {
				nope, err := c.Require("qk_nope_head_dim")
				if err != nil {
					return gguf.Value{}, false, err
				}
				rope, err := c.minicpm3RopeDims()
				return uint32Of(min(nope, math.MaxUint32)+min(rope, math.MaxUint32), true, err)
			}},
			uintRow("rope.dimension_count", "qk_rope_head_dim"),
		},
		// the runtime has the scales of the only published model built in
		Expect: append([]Expect{
			{"scale_emb", []string{"12", "12.0"}},
			{"scale_depth", []string{"1.4"}},
			{"dim_model_base", []string{"256"}},
		}, silu),
		Unused: append([]string{"v_head_dim", "rope_scaling.rope_type"}, biasKeys...), // the factors tell the type
		Tensors: slices.Concat(embedRows, normRows, mlpRows, []TensorRow{
			{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a"},
			{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm"},
			{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b"},
			{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
			{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
			{HF: "model.layers.{bid}.self_attn.kv_b_proj", GGUF: "blk.{bid}.attn_kv_b"},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		}),
		Extra: longRopeFactors((*Config).minicpm3RopeDims),
	}
)

func (c *Config) minicpm3RopeDims() (int64, error) { return c.Require("qk_rope_head_dim") }

// quotient is the value of a key divided by d, an error for a d that nothing can
// be divided by.
func (c *Config) quotient(key string, d float64, err error) (v gguf.Value, ok bool, _ error) {
	if err != nil {
		return v, false, err
	}
	n, ok, err := c.Float(key)
	if err == nil && (!ok || !(d > 0)) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %v cannot be divided by %v", ConfigFile, key, c.Value(key), d)
	}
	if err != nil {
		return v, false, err
	}
	return float32Of(n/d, true, nil)
}
