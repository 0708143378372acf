package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(minicpm, minicpm3)

// minicpm and minicpm3 are OpenBMB's MiniCPM 1, 2 and 4, and MiniCPM 3 with MLA. Source: the classes of minicpm.py of
// the reference's converter.
var (
	minicpm = &table.Arch{
		Name:      "minicpm",
		Classes:   []string{"MiniCPMForCausalLM"},
		Tokenizer: tokenizer.SentencePiece{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.FloatRow("embedding_scale", "scale_emb"),
			{Key: "residual_scale", Derive: func(c *config.View) (gguf.Value, bool, error) {
				layers, err := c.Require("num_hidden_layers")
				return quotient(c, "scale_depth", math.Sqrt(float64(layers)), err)
			}},
			{Key: "logit_scale", Derive: func(c *config.View) (gguf.Value, bool, error) {
				base, _, err := c.Float("dim_model_base")
				return quotient(c, "hidden_size", base, err)
			}},
		}),
		Expect:  []table.Expect{parts.SiLU},
		Unused:  append([]string{"rope_type"}, parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.NoBias), parts.MLPRows),
		Extra: parts.LongRopeFactors(func(c *config.View) (int64, error) {
			hidden, heads, err := c.HiddenAndHeads()
			return hidden / max(heads, 1), err
		}),
		Graph: &graph.Model{
			Norm: graph.RMS, Embed: graph.Embedding{Scale: "@embedding_scale or 12"},
			Layer: parts.Scaled("@residual_scale or "+minicpmResidual,
				parts.PreNorm(parts.GQA(parts.Interleaved), parts.SwiGLU)),
			Final: parts.OutputNorm,
			Head:  graph.LM{Scale: "1.0 / if(@logit_scale = 0, 1, @logit_scale or " + minicpmWidth + ")"},
		},
	}
	minicpm3 = &table.Arch{
		Name:      "minicpm3",
		Classes:   []string{"MiniCPM3ForCausalLM"},
		Tokenizer: tokenizer.SentencePiece{},
		Metadata: []table.Row{
			parts.FileTypeRow,
			parts.UintRow("context_length", "max_position_embeddings"),
			parts.UintRow("embedding_length", "hidden_size"),
			parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
			parts.UintRow("feed_forward_length", "intermediate_size"),
			parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
			parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads"),
			parts.FloatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
			parts.UintRow("vocab_size", "vocab_size"),
			parts.Optional(parts.UintRow("attention.q_lora_rank", "q_lora_rank")),
			parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
			{Key: "attention.key_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
				nope, err := c.Require("qk_nope_head_dim")
				if err != nil {
					return gguf.Value{}, false, err
				}
				rope, err := minicpm3RopeDims(c)
				return table.Uint32Of(min(nope, math.MaxUint32)+min(rope, math.MaxUint32), true, err)
			}},
			parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
		},
		// the runtime has the scales of the only published model built in
		Expect: append([]table.Expect{
			parts.Expect("scale_emb", "12"),
			parts.Expect("scale_depth", "1.4"),
			parts.Expect("dim_model_base", "256"),
		}, parts.SiLU),
		// the type follows from the factors
		Unused: append([]string{"v_head_dim", "rope_scaling.rope_type"}, parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.MLPRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a"},
			{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm"},
			{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b"},
			{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
			{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
			{HF: "model.layers.{bid}.self_attn.kv_b_proj", GGUF: "blk.{bid}.attn_kv_b"},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		}),
		Extra: parts.LongRopeFactors(minicpm3RopeDims),
		Graph: &graph.Model{
			Reads: []string{"attention.q_lora_rank!"},
			Norm:  graph.RMS, Embed: graph.Embedding{Scale: "12"},
			Layer: parts.Scaled(minicpmResidual,
				parts.PreNorm(graph.MLA{Steps: []graph.HeadStep{parts.NeoX}}, parts.SwiGLU)),
			Final: []graph.Step{parts.OutputNorm[0], graph.ScaleStream{By: minicpmWidth}},
			Head:  graph.LM{}, Unread: parts.MLAUnread,
		},
	}
)

// The factors of files without keys for them, rounded as in the runtime: of residual updates, and of the last states,
// since the models are built for widths that are multiples of 256. (MiniCPM 1 divides logits by the latter.)
const (
	minicpmResidual graph.Num = "f32(f32(1.4) / f32(sqrt(n_layer)))"
	minicpmWidth    graph.Num = "f32(256.0 / n_embd)"
)

func minicpm3RopeDims(c *config.View) (int64, error) { return c.Require("qk_rope_head_dim") }

// quotient returns the value of a key divided by d, which must be positive.
func quotient(c *config.View, key string, d float64, err error) (v gguf.Value, ok bool, _ error) {
	if err != nil {
		return v, false, err
	}
	n, ok, err := c.Float(key)
	if err == nil && (!ok || !(d > 0)) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %v cannot be divided by %v", config.ConfigFile, key,
			c.Value(key), d)
	}
	if err != nil {
		return v, false, err
	}
	return table.Float32Of(n/d, true, nil)
}
