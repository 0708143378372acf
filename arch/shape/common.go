package shape

import "maps"

// nonNegative are keys that must not be negative.
var nonNegative = []string{"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
	"attention.group_norm_epsilon",
	"rope.freq_base", "rope.freq_base_swa", "rope.scaling.factor"}

// infinite are keys whose values may be infinite.
var infinite = []string{"activation_sparsity_scale"}

// perLayer are keys whose value is one number, or a list with one per layer.
var perLayer = []string{"feed_forward_length", "attention.head_count", "attention.head_count_kv", "expert_used_count",
	"expert_feed_forward_length",
	"activation_sparsity_scale"}

// Common has the default rows, for names without a row in the architecture's table. Sizes without a row here are those
// of graph.Common.
var Common = Rules{
	Dims: Table{
		"n_vocab":  "#tokenizer.ggml.tokens or @vocab_size",
		"n_ctx":    "@context_length",
		"n_types":  "@tokenizer.ggml.token_type_count",
		"n_labels": "#classifier.output_labels or 1",

		"n_embd_q":  "n_head * n_embd_head_k",
		"n_embd_k":  "n_head_kv * n_embd_head_k",
		"n_embd_v":  "n_head_kv * n_embd_head_v",
		"n_lora_q":  "@attention.q_lora_rank",
		"n_lora_kv": "@attention.kv_lora_rank",

		// vision and audio encoders
		"v_embd": "@vision.embedding_length", "v_ff": "@vision.feed_forward_length", "v_proj": "@vision.projection_dim",
		"v_patch": "@vision.patch_size",
		"a_embd":  "@audio.embedding_length", "a_ff": "@audio.feed_forward_length", "a_proj": "@audio.projection_dim",
		"v_grid":     "@vision.image_size / v_patch",
		"v_merged":   "v_embd * @vision.spatial_merge_size * @vision.spatial_merge_size",
		"v_shuffled": "v_embd * @vision.projector.scale_factor * @vision.projector.scale_factor",
	},
	Tensors: Table{
		"token_embd": "n_embd, n_vocab", "token_embd_norm": "n_embd",
		"token_types": "n_embd, n_types",
		"output_norm": "n_embd", "output": "n_embd, n_vocab",
		"rope_freqs": "n_rot / 2",
		"cls.output": "n_embd, n_labels",
		"dense_2":    "@dense_2_feat_in, @dense_2_feat_out", "dense_3": "@dense_3_feat_in, @dense_3_feat_out",

		"attn_norm": "n_embd", "attn_norm_2": "n_embd", "post_attention_norm": "n_embd",
		"ffn_norm": "n_embd", "post_ffw_norm": "n_embd",

		"attn_q": "n_embd, n_embd_q", "attn_k": "n_embd, n_embd_k", "attn_v": "n_embd, n_embd_v",
		"attn_qkv":    "n_embd, n_embd_q + n_embd_k + n_embd_v",
		"attn_output": "n_head * n_embd_head_v, n_embd", "attn_gate": "n_embd, n_embd_q",
		"attn_q_norm": "n_embd_head_k", "attn_k_norm": "n_embd_head_k", "attn_sinks": "n_head",
		"attn_q_a": "n_embd, n_lora_q", "attn_q_a_norm": "n_lora_q", "attn_q_b": "n_lora_q, n_embd_q",
		"attn_kv_a_norm": "n_lora_kv",

		"ffn_up": "n_embd, n_ff", "ffn_gate": "n_embd, n_ff", "ffn_down": "n_ff, n_embd",
		"ffn_gate_inp": "n_embd, n_expert", "exp_probs_b.bias": "n_expert",
		"ffn_up_exps": "n_embd, n_ff_exp, n_expert", "ffn_gate_exps": "n_embd, n_ff_exp, n_expert",
		"ffn_down_exps":    "n_ff_exp, n_embd, n_expert",
		"ffn_gate_up_exps": "n_embd, 2 * n_ff_exp, n_expert",
		"ffn_up_shexp":     "n_embd, n_ff_shexp", "ffn_gate_shexp": "n_embd, n_ff_shexp",
		"ffn_down_shexp": "n_ff_shexp, n_embd",

		"nextn.eh_proj": "2 * n_embd, n_embd", "nextn.embed_tokens": "n_embd, n_vocab", "nextn.enorm": "n_embd",
		"nextn.hnorm":            "n_embd",
		"nextn.shared_head_head": "n_embd, n_vocab", "nextn.shared_head_norm": "n_embd",

		"ssm_conv1d": "d_conv, d_inner", "ssm_dt": "dt_rank, d_inner", "ssm_a": "d_state, d_inner",
		"ssm_out": "d_inner, n_embd",

		// T5
		"attn_o": "n_head * n_embd_head_v, n_embd", "cross_attn_norm": "n_embd",
		"cross_attn_q": "n_embd, n_embd_q", "cross_attn_k": "n_embd, n_embd_k",
		"cross_attn_v": "n_embd, n_embd_v",
		"cross_attn_o": "n_head * n_embd_head_v, n_embd",

		// vision encoder
		"v.patch_embd": "v_patch, v_patch, 3, v_embd", "v.patch_embd.weight.{bid}": "v_patch, v_patch, 3, v_embd",
		"v.patch_embd.bias": "v_embd",
		"v.class_embd":      "v_embd", "v.position_embd": "v_embd, v_grid * v_grid", "v.norm_embd": "v_embd",
		"v.pre_ln": "v_embd", "v.post_ln": "v_embd",
		"v.blk.{bid}.ln1": "v_embd", "v.blk.{bid}.ln2": "v_embd",
		"v.blk.{bid}.attn_q": "v_embd, v_embd", "v.blk.{bid}.attn_k": "v_embd, v_embd",
		"v.blk.{bid}.attn_v": "v_embd, v_embd", "v.blk.{bid}.attn_out": "v_embd, v_embd",
		"v.blk.{bid}.attn_q_norm": "v_embd / @vision.attention.head_count",
		"v.blk.{bid}.attn_k_norm": "v_embd / @vision.attention.head_count",
		"v.blk.{bid}.attn_qkv":    "v_embd, 3 * v_embd", "v.blk.{bid}.ls1": "v_embd", "v.blk.{bid}.ls2": "v_embd",
		"v.blk.{bid}.ffn_up": "v_embd, v_ff", "v.blk.{bid}.ffn_gate": "v_embd, v_ff",
		"v.blk.{bid}.ffn_down": "v_ff, v_embd",

		// audio encoder
		"a.conv1d.1": "3, @audio.num_mel_bins, a_embd", "a.conv1d.2": "3, a_embd, a_embd",
		"a.conv1d.1.bias": "1, a_embd", "a.conv1d.2.bias": "1, a_embd",
		"a.position_embd": "a_embd, ?positions", "a.post_ln": "a_embd", "a.blk.{bid}.ln1": "a_embd",
		"a.blk.{bid}.ln2":    "a_embd",
		"a.blk.{bid}.attn_q": "a_embd, a_embd", "a.blk.{bid}.attn_k": "a_embd, a_embd",
		"a.blk.{bid}.attn_v": "a_embd, a_embd", "a.blk.{bid}.attn_out": "a_embd, a_embd",
		"a.blk.{bid}.ffn_up": "a_embd, a_ff", "a.blk.{bid}.ffn_down": "a_ff, a_embd",
	},
	Relations: []string{
		"1 <= n_embd",
		"1 <= n_ctx",
		"1 <= @block_count",
		"n_head_kv divides n_head",
		"@expert_used_count <= n_expert",
		"1 <= n_expert implies 1 <= ^expert_used_count",
		"1 <= n_expert implies @expert_group_count + 1 <= n_expert",
		"@expert_group_count divides n_expert",
		"2 <= @expert_group_count implies @expert_group_used_count + 1 <= @expert_group_count",
		"n_rot <= n_embd_head_k",
	},
}

// Rows that several architectures have in place of Common's.

// Merge returns the rows of several tables; later ones win.
func Merge(tables ...Table) Table {
	all := Table{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// NormsPerHead are Q and K norms with separate weights per head.
var NormsPerHead = Table{"attn_q_norm": "n_embd_head_k, n_head", "attn_k_norm": "n_embd_head_k, n_head_kv"}

// WholeHeadRotates is the relation for runtimes that refuse partial RoPE.
var WholeHeadRotates = Rules{Relations: []string{"n_rot = n_embd_head_k"}}
