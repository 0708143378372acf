package graph

import (
	"sync"

	"ggforge/arch/expr"
)

// Num is a number of a model, an expression of package expr:
//
//	"n_layer"                                       a row of the model's Dims, or of Common
//	"@attention.key_length or n_embd / n_head"      the value of a key below the architecture's name
//	"^attention.head_count"                         the greatest value of a key with a list
//	"#attention.sliding_window_pattern"             the number of elements of a list
//	"i", "pos"                                      the number of the layer, -1 outside of layers; a token's position
//
// "@" returns the layer's element of a list, the first one outside of layers. True is 1, false is 0.
type Num string

// Cond is a condition of package expr: "i mod 4 = 3 and n_swa != 0". A comparison with a missing key does not hold.
type Cond string

// Dims are names for numbers.
type Dims map[string]Num

// Common are the sizes of most architectures. A model overrides them with Dims.
var Common = Dims{
	"n_layer": "@block_count - (@nextn_predict_layers or 0)", // without MTP (NextN) layers
	"n_embd":  "@embedding_length",

	"n_head":        "@attention.head_count",
	"n_head_kv":     "@attention.head_count_kv or n_head",
	"n_embd_head_k": "@attention.key_length or n_embd / ^attention.head_count",
	"n_embd_head_v": "@attention.value_length or n_embd / ^attention.head_count",
	"n_rot":         "@rope.dimension_count or n_embd_head_k",
	"n_freqs":       "n_rot / 2", // divisors of frequencies (rope_freqs): the first ones count
	"n_swa":         "@attention.sliding_window or 0",

	"n_embd_head_k_mla": "@attention.key_length_mla or @attention.key_length",
	"n_embd_head_v_mla": "@attention.value_length_mla or @attention.value_length or n_embd / n_head",
	"n_lora_kv":         "@attention.kv_lora_rank",
	"n_lora_q":          "@attention.q_lora_rank or 0",

	"n_ff":       "@feed_forward_length or 0",
	"n_expert":   "@expert_count or 0",
	"n_ff_exp":   "@expert_feed_forward_length or n_ff",
	"n_ff_shexp": "@expert_shared_feed_forward_length or n_ff_exp * @expert_shared_count or n_ff",

	"d_conv":  "@ssm.conv_kernel",
	"d_inner": "@ssm.inner_size",
	"d_state": "@ssm.state_size",
	"dt_rank": "@ssm.time_step_rank",
	"n_group": "@ssm.group_count or 0",
}

// dim returns the row of a name.
func (m *Model) dim(name string) (Num, bool) {
	n, ok := m.Dims[name]
	if !ok {
		n, ok = Common[name]
	}
	return n, ok
}

// source is the text of an expression or, with cond, of a condition.
type source struct {
	text string
	cond bool
}

// parsed has the expressions that were parsed so far, by source. Texts are those of models, so that it stays small.
var parsed sync.Map

func (s source) parse() (*expr.Expr, error) {
	if e, ok := parsed.Load(s); ok {
		return e.(*expr.Expr), nil
	}
	parse := expr.Parse
	if s.cond {
		parse = expr.ParseCond
	}
	e, err := parse(s.text)
	if err != nil {
		return nil, err
	}
	parsed.Store(s, e)
	return e, nil
}
