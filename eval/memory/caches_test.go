package memory_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ggforge/eval/memory"
	"ggforge/gguf"
)

// published has the keys on which the caches of published models depend: numbers, "key=1,2" lists, and tensors.
var published = map[string]string{
	"smallthinker": `block_count=32 embedding_length=1536 attention.head_count=12 attention.head_count_kv=2
		attention.key_length=128 attention.value_length=128 attention.sliding_window=512 expert_gating_func=2`,
	"gpt-oss": `block_count=24 embedding_length=2880 attention.head_count=64 attention.head_count_kv=8
		attention.key_length=64 attention.value_length=64 attention.sliding_window=128`,
	"llama4": `block_count=48 embedding_length=5120 attention.head_count=40 attention.head_count_kv=8
		attention.key_length=128 attention.value_length=128`,
	"exaone4": `block_count=64 embedding_length=5120 attention.head_count=40 attention.head_count_kv=8
		attention.sliding_window=4096`,
	"gemma2": `block_count=26 embedding_length=2304 attention.head_count=8 attention.head_count_kv=4
		attention.key_length=256 attention.value_length=256`,
	"gemma3n": `block_count=30 embedding_length=2048 attention.head_count=8 attention.head_count_kv=2 vocab_size=1
		attention.key_length=256 attention.value_length=256 attention.sliding_window=512 altup.num_inputs=4
		altup.active_idx=0 embedding_length_per_layer_input=256 attention.shared_kv_layers=10`,
	"cohere2": `block_count=32 embedding_length=4096 attention.head_count=32 attention.head_count_kv=8
		attention.sliding_window=4096 logit_scale=1`,
	"modern-bert": `block_count=22 embedding_length=768 attention.head_count=12 attention.sliding_window=128`,
	"qwen3next": `block_count=48 embedding_length=2048 attention.head_count=16 attention.head_count_kv=2
		attention.key_length=256 attention.value_length=256 full_attention_interval=4 ssm.conv_kernel=4
		ssm.inner_size=4096 ssm.state_size=128 ssm.group_count=16 ssm.time_step_rank=32 expert_count=512
		expert_used_count=10`,
	"lfm2": `block_count=16 embedding_length=2048 attention.head_count=32 shortconv.l_cache=3
		attention.head_count_kv=0,0,8,0,0,8,0,0,8,0,8,0,8,0,8,0`,
	"mamba2": `block_count=64 embedding_length=2560 ssm.conv_kernel=4 ssm.inner_size=5120 ssm.state_size=128
		ssm.group_count=1 ssm.time_step_rank=80`,
	"rwkv7": `block_count=24 embedding_length=1024 wkv.head_size=64 attention.decay_lora_rank=64`,
	"falcon-h1": `block_count=36 embedding_length=2048 attention.head_count=8 attention.head_count_kv=2
		attention.key_length=128 attention.value_length=128 ssm.conv_kernel=4 ssm.inner_size=3072 ssm.state_size=256
		ssm.group_count=1 ssm.time_step_rank=48`,
	"deepseek2": `block_count=61 embedding_length=7168 attention.head_count=128 attention.head_count_kv=1
		attention.key_length=576 attention.value_length=512 attention.key_length_mla=192
		attention.value_length_mla=128 attention.kv_lora_rank=512 attention.q_lora_rank=1536 rope.dimension_count=64`,
	"an architecture without a graph": `block_count=32 embedding_length=4096 attention.head_count=32
		attention.head_count_kv=8`,
	"grok": `block_count=64 embedding_length=6144 attention.head_count=48 attention.head_count_kv=8
		attention.key_length=128 attention.value_length=128 expert_count=8`,
}

// parsed returns metadata from text.
func parsed(t *testing.T, text string) map[string]gguf.Value {
	t.Helper()
	kv := map[string]gguf.Value{"context_length": u32(1 << 20), "feed_forward_length": u32(1024)}
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		var all []int32
		for part := range strings.SplitSeq(value, ",") {
			var n int32
			if _, err := fmt.Sscan(part, &n); err != nil {
				t.Fatal(field, err)
			}
			all = append(all, n)
		}
		if kv[key] = gguf.Int32s(all); len(all) == 1 {
			kv[key] = u32(uint32(all[0]))
		}
	}
	return kv
}

// TestCaches has the caches and states of published models for 32768 tokens and batches of 512.
func TestCaches(t *testing.T) {
	want := map[string]string{
		// layers × cells of elements, keys and values of a layer and cell
		"smallthinker": "8 x 32768 of 256+256, 24 x 4608 of 256+256", // the window is 4096, whatever the key has
		"gpt-oss":      "12 x 32768 of 512+512, 12 x 768 of 512+512",
		"llama4":       "12 x 32768 of 1024+1024, 36 x 8704 of 1024+1024",
		"exaone4":      "16 x 32768 of 1024+1024, 48 x 4608 of 1024+1024",
		"gemma2":       "13 x 32768 of 1024+1024, 13 x 4608 of 1024+1024", // 4096 without the key
		"gemma3n":      "4 x 32768 of 512+512, 16 x 1024 of 512+512",      // later layers use those of earlier ones
		"cohere2":      "8 x 32768 of 1024+1024, 24 x 4608 of 1024+1024",
		"modern-bert":  "",
		"qwen3next":    "12 x 32768 of 512+512, state 19759104", // 36 x (3 x 8192 + 128 x 4096)
		"lfm2":         "6 x 32768 of 512+512, state 40960",     // 10 x 2 x 2048
		"mamba2":       "state 42975232",                        // 64 x (3 x 5376 + 128 x 5120)
		"rwkv7":        "state 1622016",                         // 24 x 1024 x (2 + 64)
		"falcon-h1":    "36 x 32768 of 256+256, state 28698624", // 36 x (3 x 3584 + 256 x 3072)
		"deepseek2":    "61 x 32768 of 576+0",
		"grok":         "64 x 32768 of 1024+1024",

		"an architecture without a graph": "32 x 32768 of 1024+1024",
	}
	for _, arch := range slices.Sorted(maps.Keys(published)) {
		u, err := memory.Estimate(header(arch, parsed(t, published[arch])), memory.Options{Context: 32768})
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		var got []string
		for _, c := range u.Caches {
			each := 2 * int64(c.Layers) * c.Cells // F16
			got = append(got, fmt.Sprintf("%d x %d of %d+%d", c.Layers, c.Cells, c.Keys/each, c.Values/each))
		}
		if u.State > 0 {
			got = append(got, fmt.Sprintf("state %d", u.State/4))
		}
		if text := strings.Join(got, ", "); text != want[arch] {
			t.Errorf("%s: %s, want %s", arch, text, want[arch])
		}
	}
}
