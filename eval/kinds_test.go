package eval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// listed returns a small model of made-up weights by its keys, a line each, and its tensors
// with their dimensions, a line each: of every layer, of some (those before a colon), or of
// none (after "="). Names without a dot get the suffix .weight.
func listed(arch, list, tensors string) *model.Model {
	m := &model.Model{Path: arch + ".gguf"}
	m.Metadata.Set("general.architecture", gguf.String(arch))
	layers := 0
	for line := range strings.Lines(list) {
		key, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		if key == "block_count" {
			layers, _ = strconv.Atoi(text)
		}
		if !strings.HasPrefix(key, "xielu.") {
			key = arch + "." + key
		}
		m.Metadata.Set(key, valueOf(text))
	}
	seed := uint32(1)
	add := func(name string, ne []int64) {
		v := make([]float32, gguf.Rows(ne)*ne[0])
		for i := range v {
			seed = seed*1664525 + 1013904223
			if v[i] = float32(int32(seed)>>8) / (1 << 26); strings.Contains(name, "norm.weight") {
				v[i]++
			}
		}
		src, err := rows.Reshape(rows.Float32s(v), ne)
		if err != nil {
			panic(err)
		}
		m.Tensors = append(m.Tensors, model.New(name, src))
	}
	for line := range strings.Lines("= token_embd 32 300\n= output_norm 32\n= output 32 300\n" + tensors) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		of := make([]int, layers)
		for i := range of {
			of[i] = i
		}
		global := f[0] == "="
		if some, ok := strings.CutSuffix(f[0], ":"); ok {
			of = nil
			for s := range strings.SplitSeq(some, ",") {
				i, _ := strconv.Atoi(s)
				of = append(of, i)
			}
			f = f[1:]
		} else if global {
			f = f[1:]
		}
		name := f[0]
		if !strings.Contains(name, ".") {
			name += ".weight"
		}
		var ne []int64
		for _, s := range f[1:] {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				panic(line)
			}
			ne = append(ne, n)
		}
		if global {
			add(name, ne)
			continue
		}
		for _, i := range of {
			add(fmt.Sprintf("blk.%d.%s", i, name), ne)
		}
	}
	return m
}

// valueOf returns a number, truth value, list of either, or text.
func valueOf(s string) gguf.Value {
	if n, err := strconv.Atoi(s); err == nil {
		return gguf.Uint32(uint32(n))
	}
	if f, err := strconv.ParseFloat(s, 32); err == nil {
		return gguf.Float32(float32(f))
	}
	if b, err := strconv.ParseBool(s); err == nil {
		return gguf.Bool(b)
	}
	if strings.HasPrefix(s, "[") {
		var list []gguf.Value
		for e := range strings.SplitSeq(strings.Trim(s, "[]"), ",") {
			list = append(list, valueOf(strings.TrimSpace(e)))
		}
		return gguf.Array(list[0].Type(), list...)
	}
	return gguf.String(s)
}

// usualKeys and the tensors after them are of a model of two layers of four heads of eight values.
const (
	usualKeys = `
		block_count 2
		context_length 512
		embedding_length 32
		feed_forward_length 48
		attention.head_count 4
		attention.layer_norm_rms_epsilon 1e-5
		`
	usualNorms = `
		attn_norm 32
		ffn_norm 32
		`
	usualHeads = `
		attn_q 32 32
		attn_k 32 16
		attn_v 32 16
		attn_output 32 32
		`
	qkNorms = `
		attn_q_norm 8
		attn_k_norm 8
		`
	usualFeed = `
		ffn_gate 32 48
		ffn_up 32 48
		ffn_down 48 32
		`
	usualExperts = `
		ffn_gate_inp 32 6
		ffn_gate_exps 32 16 6
		ffn_up_exps 32 16 6
		ffn_down_exps 16 32 6
		`
)

// kind is a small model of an architecture whose layers have parts that others have not.
type kind struct{ name, arch, keys, tensors, want string }

// forwardKinds have no backward pass.
var forwardKinds = []kind{
	{"shared KV, per-layer embeddings", "gemma4", strings.Replace(usualKeys, "block_count 2", "block_count 6", 1) + `
		attention.head_count_kv 2
		attention.sliding_window 12
		attention.sliding_window_pattern [true,true,false,true,true,false]
		attention.key_length 16
		attention.value_length 16
		attention.key_length_swa 8
		attention.value_length_swa 8
		attention.shared_kv_layers 3
		rope.dimension_count 16
		rope.dimension_count_swa 8
		embedding_length_per_layer_input 6
		`, usualNorms + usualFeed + `
		= rope_freqs 8
		= per_layer_token_embd 36 300
		= per_layer_model_proj 32 36
		= per_layer_proj_norm 6
		post_attention_norm 32
		post_ffw_norm 32
		post_norm 32
		inp_gate 32 6
		proj 6 32
		layer_output_scale 1
		0,1,3,4: attn_q 32 32
		0,1,3,4: attn_q_norm 8
		0,1,3,4: attn_output 32 32
		2,5: attn_q 32 64
		2,5: attn_q_norm 16
		2,5: attn_output 64 32
		0,1: attn_k 32 16
		0,1: attn_k_norm 8
		0: attn_v 32 16
		2: attn_k 32 32
		2: attn_k_norm 16
		`, "f1c967090eab"},
}

// kinds have a backward pass.
var kinds = []kind{
	{"keys as values, norms of values", "gemma4", usualKeys + `
		attention.head_count_kv 2
		attention.sliding_window 12
		attention.sliding_window_pattern [true,false]
		attention.key_length 16
		attention.value_length 16
		attention.key_length_swa 8
		attention.value_length_swa 8
		rope.dimension_count 16
		rope.dimension_count_swa 8
		`, usualNorms + usualFeed + `
		post_attention_norm 32
		post_ffw_norm 32
		layer_output_scale 1
		0: attn_q 32 32
		0: attn_q_norm 8
		0: attn_output 32 32
		0: attn_k 32 16
		0: attn_k_norm 8
		0: attn_v 32 16
		1: attn_q 32 64
		1: attn_q_norm 16
		1: attn_output 64 32
		1: attn_k 32 32
		1: attn_k_norm 16
		`, "527623a34783"},
	{"MLA", "deepseek2", usualKeys + `
		attention.head_count_kv 1
		attention.q_lora_rank 12
		attention.kv_lora_rank 16
		attention.key_length 20
		attention.value_length 16
		attention.key_length_mla 12
		attention.value_length_mla 6
		rope.dimension_count 4
		rope.scaling.type yarn
		rope.scaling.factor 4.0
		rope.scaling.original_context_length 32
		rope.scaling.yarn_log_multiplier 0.0707
		attention.temperature_scale 0.1
		attention.temperature_length 16
		expert_count 6
		expert_used_count 2
		expert_group_count 2
		expert_group_used_count 1
		expert_gating_func 2
		expert_weights_scale 2.5
		expert_weights_norm true
		expert_feed_forward_length 16
		expert_shared_count 1
		leading_dense_block_count 1
		`, usualNorms + `
		attn_q_a 32 12
		attn_q_a_norm 12
		attn_q_b 12 48
		attn_kv_a_mqa 32 20
		attn_kv_a_norm 16
		attn_k_b 8 16 4
		attn_v_b 16 6 4
		attn_output 24 32
		0: ffn_gate 32 48
		0: ffn_up 32 48
		0: ffn_down 48 32
		1: ffn_gate_inp 32 6
		1: exp_probs_b.bias 6
		1: ffn_gate_exps 32 16 6
		1: ffn_up_exps 32 16 6
		1: ffn_down_exps 16 32 6
		1: ffn_gate_shexp 32 16
		1: ffn_up_shexp 32 16
		1: ffn_down_shexp 16 32
		`, "6609cd2a9b76"},
	{"MLA, expanded keys and values", "deepseek2", usualKeys + `
		attention.q_lora_rank 12
		attention.kv_lora_rank 16
		attention.key_length 12
		attention.value_length 6
		rope.dimension_count 4
		`, usualNorms + usualFeed + `
		attn_q 32 48
		attn_kv_a_mqa 32 20
		attn_kv_a_norm 16
		attn_kv_b 16 56
		attn_output 24 32
		`, "e482f7736ec9"},
	{"attention sinks, clamped SwiGLU", "gpt-oss", usualKeys + `
		expert_feed_forward_length 16
		attention.head_count_kv 2
		attention.sliding_window 11
		expert_count 6
		expert_used_count 2
		`, usualHeads + usualExperts + `
		attn_norm 32
		post_attention_norm 32
		attn_sinks 4
		attn_q.bias 32
		attn_output.bias 32
		ffn_gate_inp.bias 6
		ffn_gate_exps.bias 16 6
		ffn_up_exps.bias 16 6
		ffn_down_exps.bias 32 6
		`, "4a9f390b660c"},
	{"expert weights on inputs", "llama4", usualKeys + `
		expert_feed_forward_length 16
		block_count 4
		attention.head_count_kv 2
		expert_count 6
		expert_used_count 1
		expert_shared_count 1
		`, usualNorms + usualHeads + usualExperts + `
		ffn_gate_shexp 32 16
		ffn_up_shexp 32 16
		ffn_down_shexp 16 32
		`, "aa1c57584687"},
	{"pre-attention router", "smallthinker", usualKeys + `
		expert_feed_forward_length 16
		attention.head_count_kv 2
		expert_gating_func 1
		expert_count 6
		expert_used_count 2
		`, usualNorms + usualHeads + usualExperts, "02d502bb1781"},
	{"xIELU", "apertus", usualKeys + `
		attention.head_count_kv 2
		xielu.alpha_n [0.8,0.7]
		xielu.alpha_p [0.5,0.6]
		xielu.beta [0.5,0.5]
		xielu.eps 1e-6
		`, usualNorms + usualHeads + `
		attn_q_norm 8
		attn_k_norm 8
		ffn_up 32 48
		ffn_down 48 32
		`, "099dcd2183a5"},
	{"weight scales, interleaved M-RoPE", "qwen3vlmoe", usualKeys + `
		expert_feed_forward_length 16
		attention.head_count_kv 2
		rope.dimension_sections [2,1,1,0]
		rope.scaling.type longrope
		expert_count 6
		expert_used_count 2
		`, usualNorms + usualHeads + usualExperts + `
		attn_q_norm 8
		attn_k_norm 8
		attn_v.scale 1
		attn_v.input_scale 1
		ffn_up_exps.scale 6
		= rope_factors_long 4
		= rope_factors_short 4
		`, "6e28e5f314c5"},
	{"gated attention output", "afmoe", usualKeys + `
		attention.head_count_kv 2
		attention.sliding_window 16
		`, usualNorms + usualHeads + usualFeed + `
		post_attention_norm 32
		post_ffw_norm 32
		attn_q_norm 8
		attn_k_norm 8
		0: attn_gate 32 32
		1: attn_gate 32 4
		`, "e253eef5e612"},
}

// TestKinds checks that each kind of layer gives the same bits with any number of workers,
// for however many tokens at once, and in every build; that chunks do not see each other,
// nor tokens what comes after them; and that inputs that are not finite are found.
func TestKinds(t *testing.T) {
	for _, c := range slices.Concat(kinds, forwardKinds) {
		t.Run(c.name, func(t *testing.T) {
			m, err := New(listed(c.arch, c.keys, c.tensors))
			if err != nil {
				t.Fatal(err)
			}
			const chunk, chunks = 70, 3
			ids := text(chunk * chunks)
			run := func(ids []int32, workers, tokens int) *Perplexity {
				defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
				tokensPerBlock = tokens
				p, err := m.Perplexity(context.Background(), Run{Tokens: ids, Chunk: chunk, Workers: workers})
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			all := run(ids, 1, 2048)
			if got := sum(all); got != c.want {
				t.Errorf("losses %s, want %s (perplexity %v)", got, c.want, all.Value)
			}
			if !(all.Value > 100 && all.Value < 1000) {
				t.Errorf("%+v", all.Value)
			}
			if got := sum(run(ids, 3, 150)); got != c.want {
				t.Errorf("losses %s in two blocks by three workers, want %s", got, c.want)
			}
			n := len(all.Losses) / chunks
			alone := run(ids[2*chunk:], 2, 2048)
			if last := (&Perplexity{Losses: all.Losses[2*n:]}); sum(last) != sum(alone) {
				t.Error("the last chunk has other losses alone")
			}
			changed := append([]int32{}, ids...)
			for i := range chunk / 4 {
				changed[len(ids)-1-i] = 7 // the end of the last chunk
			}
			later := run(changed, 2, 2048).Losses
			for i := range len(later) - chunk/4 {
				if later[i] != all.Losses[i] {
					t.Fatalf("loss %d of %d depends on later tokens", i, len(later))
				}
			}
			if later[len(later)-1] == all.Losses[len(later)-1] {
				t.Error("the last loss does not depend on the tokens before it")
			}
		})
	}
}
