package quantize

import "strings"

// keepTable lists the weights that are never converted: small, or run by
// operations that have no quantized form.
var keepTable = []nameTest{
	// normalization, position, type
	has("_norm.weight"), is("position_embd.weight"), is("token_types.weight"), has("attn_rel_b.weight"),
	// expert routing
	has("ffn_gate_inp.weight"), has("ffn_gate_tid2eid.weight"),
	// gemma3n
	has("altup"), has("laurel"), has("per_layer_model_proj"),
	// short convolutions, sparse attention index
	has("ssm_conv1d"), has("shortconv.conv.weight"), has("indexer.k_proj.weight"), has("indexer.q_proj.weight"),
	// rwkv
	has("time_mix_first.weight"), has("time_mix_lerp_fused.weight"),
	has("time_mix_w0.weight"), has("time_mix_w1.weight"), has("time_mix_w2.weight"),
	has("time_mix_v0.weight"), has("time_mix_v1.weight"), has("time_mix_v2.weight"),
	has("time_mix_a0.weight"), has("time_mix_a1.weight"), has("time_mix_a2.weight"),
	has("time_mix_g1.weight"), has("time_mix_g2.weight"),
	has("time_mix_decay_w1.weight"), has("time_mix_decay_w2.weight"),
	// vision and audio encoders
	has(".position_embd"), has("sam.pos_embd"), has("sam.neck."), has("sam.net_"), has(".rel_pos"),
	has(".patch_embd"), has(".patch_merger"), has("a.rvq.codebook"), has("mm.a.code_embd"),
}

// keptName returns the reason why the tensor called name is never converted, "" if it may be.
func keptName(name string) string {
	if !strings.HasSuffix(name, "weight") {
		return "not a weight"
	}
	for _, t := range keepTable {
		if t.match(name) {
			return "name holds " + t.text
		}
	}
	return ""
}
