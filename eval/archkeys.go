package eval

import (
	"strings"
	"sync"

	"ggforge/eval/internal/metadata"
)

// archKeys are, by architecture, the keys that llama.cpp reads in files of some architectures only; "!" marks required
// ones. A key that is in the rows of other architectures only is ignored: llama.attn_logit_softcapping is not read.
// Keys that are in no row are read in every file, or follow from the tensors.
//
// Source: the keys that libllama 0.7.0 passed to gguf_find_key as it loaded the made-up model of every architecture,
// and those of them without which it did not load it.
var archKeys = map[string]string{
	"afmoe": "attention.sliding_window! attention.sliding_window_pattern expert_gating_func " +
		"expert_weights_norm expert_weights_scale rope.freq_base_swa",
	"arwkv7":      "wkv.head_size!",
	"bailingmoe":  "expert_weights_norm expert_weights_scale",
	"bailingmoe2": "expert_gating_func! expert_weights_norm expert_weights_scale",
	"cohere2":     "attention.sliding_window! attention.sliding_window_pattern logit_scale! rope.freq_base_swa",
	"command-r":   "logit_scale",
	"dbrx":        "attention.clamp_kqv!",
	"deepseek":    "expert_weights_scale",
	"deepseek2": "attention.key_length_mla attention.kv_lora_rank! attention.q_lora_rank " +
		"attention.temperature_length attention.temperature_scale attention.value_length_mla expert_gating_func " +
		"expert_weights_norm expert_weights_scale rope.scaling.yarn_log_multiplier",
	"deepseek2-ocr": "expert_gating_func expert_weights_norm expert_weights_scale",
	"dots1":         "expert_gating_func! expert_weights_norm expert_weights_scale",
	"ernie4_5":      "rope.dimension_sections",
	"ernie4_5-moe":  "rope.dimension_sections",
	"exaone-moe": "attention.sliding_window! attention.sliding_window_pattern expert_gating_func! " +
		"expert_weights_norm expert_weights_scale rope.freq_base_swa",
	"exaone4":         "attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa",
	"falcon-h1":       "ssm.conv_kernel! ssm.group_count! ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"gemma-embedding": "attention.sliding_window! attention.sliding_window_pattern rope.freq_base_swa",
	"gemma2": "attention.sliding_window attention.sliding_window_pattern attn_logit_softcapping " +
		"final_logit_softcapping rope.freq_base_swa",
	"gemma3": "attention.sliding_window attention.sliding_window_pattern final_logit_softcapping rope.freq_base_swa",
	"gemma4": "attention.shared_kv_layers attention.sliding_window! attention.sliding_window_pattern! " +
		"final_logit_softcapping rope.freq_base_swa",
	"glm4":    "rope.dimension_sections",
	"glm4moe": "expert_gating_func expert_weights_norm expert_weights_scale rope.dimension_sections",
	"gpt-oss": "attention.sliding_window! attention.sliding_window_pattern rope.freq_base_swa",
	"gptneox": "use_parallel_residual!",
	"granite": "attention.scale embedding_scale logit_scale! residual_scale",
	"granite_swa": "attention.rope_pattern attention.scale attention.sliding_window! " +
		"attention.sliding_window_pattern! embedding_scale logit_scale! residual_scale",
	"granitehybrid": "attention.scale embedding_scale logit_scale residual_scale ssm.conv_kernel! ssm.group_count! " +
		"ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"granitemoe":    "attention.scale embedding_scale logit_scale! residual_scale",
	"grok":          "rope.scaling.yarn_attn_factor rope.scaling.yarn_ext_factor", // that no graph is of
	"hunyuan-dense": "rope.dimension_sections rope.scaling.alpha",
	"hunyuan_vl":    "rope.dimension_sections rope.scaling.alpha",
	"jais":          "attention.max_alibi_bias",
	"jamba":         "ssm.conv_kernel! ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"kimi-linear": "attention.key_length_mla! attention.kv_lora_rank! attention.q_lora_rank " +
		"attention.value_length_mla! expert_gating_func! expert_weights_scale kda.head_dim! ssm.conv_kernel!",
	"lfm2":    "attention.sliding_window shortconv.l_cache!",
	"lfm2moe": "expert_gating_func! shortconv.l_cache!",
	"llama4":  "attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa",
	"mamba":   "ssm.conv_kernel! ssm.dt_b_c_rms ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"mamba2":  "ssm.conv_kernel! ssm.group_count! ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"mellum": "attention.sliding_window attention.sliding_window_pattern expert_gating_func " +
		"expert_weights_norm rope.freq_base_swa",
	"mimo2":      "attention.sliding_window! attention.sliding_window_pattern! attention.value_scale rope.freq_base_swa",
	"minicpm":    "embedding_scale logit_scale residual_scale",
	"minicpm3":   "attention.key_length_mla attention.kv_lora_rank! attention.q_lora_rank! attention.value_length_mla",
	"minimax-m2": "expert_gating_func!",
	"mistral3": "attention.temperature_length attention.temperature_scale rope.scaling.yarn_beta_fast " +
		"rope.scaling.yarn_beta_slow rope.scaling.yarn_log_multiplier",
	"mistral4": "attention.key_length_mla attention.kv_lora_rank! attention.q_lora_rank " +
		"attention.temperature_length attention.temperature_scale attention.value_length_mla expert_gating_func " +
		"expert_weights_norm expert_weights_scale rope.scaling.yarn_log_multiplier",
	"modern-bert": "attention.sliding_window attention.sliding_window_pattern hidden_activation rope.freq_base_swa",
	"mpt":         "attention.clamp_kqv attention.max_alibi_bias",
	"nemotron_h": "expert_weights_norm expert_weights_scale ssm.conv_kernel! ssm.group_count! ssm.inner_size! " +
		"ssm.state_size! ssm.time_step_rank!",
	"nemotron_h_moe": "expert_weights_norm expert_weights_scale ssm.conv_kernel! ssm.group_count! ssm.inner_size! " +
		"ssm.state_size! ssm.time_step_rank!",
	"olmo":      "attention.clamp_kqv",
	"olmo2":     "attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa",
	"paddleocr": "rope.dimension_sections!",
	"phi3":      "attention.sliding_window",
	"plamo3":    "attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa",
	"plm":       "attention.key_length_mla attention.kv_lora_rank! attention.q_lora_rank attention.value_length_mla",
	"qwen2vl":   "rope.dimension_sections!",
	"qwen35": "attention.recurrent_layers full_attention_interval rope.dimension_sections! ssm.conv_kernel! " +
		"ssm.group_count! ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"qwen35moe": "attention.recurrent_layers full_attention_interval rope.dimension_sections! ssm.conv_kernel! " +
		"ssm.group_count! ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"qwen3next": "attention.recurrent_layers full_attention_interval ssm.conv_kernel! ssm.group_count! " +
		"ssm.inner_size! ssm.state_size! ssm.time_step_rank!",
	"qwen3vl":      "rope.dimension_sections!",
	"qwen3vlmoe":   "rope.dimension_sections!",
	"rwkv6":        "rescale_every_n_layers time_mix_extra_dim! wkv.head_size!",
	"rwkv6qwen2":   "rescale_every_n_layers time_mix_extra_dim! wkv.head_size!",
	"rwkv7":        "wkv.head_size!",
	"smallthinker": "attention.sliding_window attention.sliding_window_pattern expert_gating_func! rope.freq_base_swa",
	"t5":           "attention.relative_buckets_count!",
	"t5encoder":    "attention.relative_buckets_count!",
}

// archKeyNames are the keys of all rows of archKeys.
var archKeyNames = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, row := range archKeys {
		for key := range strings.FieldsSeq(row) {
			all[strings.TrimSuffix(key, "!")] = true
		}
	}
	return all
})

// keyUsage returns whether llama.cpp reads a key in files of an architecture.
func keyUsage(arch, key string) metadata.Usage {
	if !archKeyNames()[key] {
		return metadata.Optional
	}
	for name := range strings.FieldsSeq(archKeys[arch]) {
		if name, must := strings.CutSuffix(name, "!"); name == key {
			if must {
				return metadata.Required
			}
			return metadata.Optional
		}
	}
	return metadata.Unread
}
