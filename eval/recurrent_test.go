package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
)

// recurrent are small recurrent models, as lines of keys, "KEY NUMBER…", where several numbers are one per layer, and
// of tensors, "LAYERS NAME DIMENSIONS…", where * stands for all layers and - for none.
var recurrent = map[string]string{
	"mamba": `
		ssm.conv_kernel 4
		ssm.inner_size 150
		ssm.state_size 5
		ssm.time_step_rank 3` + mambaTensors,
	"mamba2": `
		ssm.conv_kernel 3
		ssm.inner_size 120
		ssm.state_size 7
		ssm.group_count 2
		ssm.time_step_rank 6
		* ssm_norm.weight 60 2` + mamba2Tensors,
	"falcon-h1": `
		ssm.conv_kernel 3
		ssm.inner_size 120
		ssm.state_size 7
		ssm.group_count 2
		ssm.time_step_rank 6
		* ssm_norm.weight 60 2
		* ffn_norm 48` + mamba2Tensors + strings.ReplaceAll(attentionTensors, "1 attn", "* attn") + feedTensors,
	"jamba": `
		attention.head_count_kv 0 2 0
		ssm.conv_kernel 4
		ssm.inner_size 150
		ssm.state_size 5
		ssm.time_step_rank 3
		02 ssm_dt_norm.weight 3
		02 ssm_b_norm.weight 5
		02 ssm_c_norm.weight 5
		* ffn_norm.weight 48` + strings.ReplaceAll(mambaTensors, "* ssm", "02 ssm") + attentionTensors + feedTensors,
	"qwen3next": `
		full_attention_interval 2
		expert_count 3
		expert_used_count 2
		expert_feed_forward_length 32
		expert_shared_feed_forward_length 40
		ssm.inner_size 120
		ssm.time_step_rank 6
		ssm.group_count 2
		02 ssm_ba.weight 48 12
		* ffn_gate_inp.weight 48 3
		* ffn_gate_exps.weight 48 32 3
		* ffn_up_exps.weight 48 32 3
		* ffn_down_exps.weight 32 48 3
		* ffn_gate_inp_shexp.weight 48
		* ffn_gate_shexp.weight 48 40
		* ffn_up_shexp.weight 48 40
		* ffn_down_shexp.weight 40 48` + deltaTensors,
	"qwen35": `
		rope.dimension_sections 3 0 0 0
		full_attention_interval 2
		ssm.inner_size 120
		ssm.time_step_rank 6
		ssm.group_count 2
		02 ssm_alpha.weight 48 6
		02 ssm_beta.weight 48 6` + deltaTensors + feedTensors,
	"rwkv6": `
		attention.head_count_kv 0
		wkv.head_size 12
		time_mix_extra_dim 5
		rescale_every_n_layers 2
		* time_mix_first.weight 12 4
		* time_mix_ln.weight 48
		* time_mix_ln.bias 48
		* channel_mix_receptance.weight 48 48
		* channel_mix_lerp_r.weight 48
		* time_mix_key.weight 48 48
		* time_mix_value.weight 48 48` + wkv6Tensors + channelTensors,
	"rwkv6qwen2": `
		wkv.head_size 12
		time_mix_extra_dim 5
		* ffn_norm.weight 48
		* time_mix_key.weight 48 24
		* time_mix_value.weight 48 24
		* time_mix_value.bias 24` + wkv6Tensors + feedTensors,
	"rwkv7": `
		wkv.head_size 16
		* time_mix_ln.weight 48
		* time_mix_ln.bias 48
		* time_mix_g1.weight 48 7
		* time_mix_g2.weight 7 48
		* time_mix_lerp_fused.weight 48 1 1 6` + wkv7Tensors + channelTensors,
	"arwkv7": `
		wkv.head_size 16
		* ffn_norm.weight 48
		* time_mix_lerp_fused.weight 48 1 1 5` + wkv7Tensors + feedTensors,
	"nemotron_h_moe": `
		feed_forward_length 0 32 0
		attention.head_count_kv 0 0 2
		expert_count 5
		expert_used_count 0 2 0
		moe_latent_size 20
		expert_shared_feed_forward_length 40
		ssm.conv_kernel 3
		ssm.inner_size 120
		ssm.state_size 7
		ssm.group_count 2
		ssm.time_step_rank 6
		0 ssm_norm.weight 60 2
		1 ffn_gate_inp.weight 48 5
		1 exp_probs_b.bias 5
		1 ffn_up_exps.weight 20 32 5
		1 ffn_down_exps.weight 32 20 5
		1 ffn_latent_down.weight 48 20
		1 ffn_latent_up.weight 20 48
		1 ffn_up_shexp.weight 48 40
		1 ffn_down_shexp.weight 40 48` + strings.ReplaceAll(mamba2Tensors, "* ssm", "0 ssm") + strings.ReplaceAll(attentionTensors, "1 attn", "2 attn"),
	"nemotron_h": `
		feed_forward_length 0 32 0
		attention.head_count_kv 0 0 2
		ssm.conv_kernel 3
		ssm.inner_size 120
		ssm.state_size 7
		ssm.group_count 2
		ssm.time_step_rank 6
		0 ssm_norm.weight 60 2
		1 ffn_up.weight 48 32
		1 ffn_down.weight 32 48` + strings.ReplaceAll(mamba2Tensors, "* ssm", "0 ssm") + strings.ReplaceAll(attentionTensors, "1 attn", "2 attn"),
	"kimi-linear": `
		attention.head_count_kv 0 1 0
		attention.kv_lora_rank 14
		attention.key_length_mla 20
		attention.value_length_mla 12
		rope.dimension_count 8
		kda.head_dim 13
		expert_gating_func 1
		ssm.conv_kernel 4
		* ffn_norm.weight 48
		02 attn_q.weight 48 52
		02 attn_k.weight 48 52
		02 attn_v.weight 48 52
		02 ssm_conv1d_q.weight 4 1 52
		02 ssm_conv1d_k.weight 4 1 52
		02 ssm_conv1d_v.weight 4 1 52
		02 ssm_f_a.weight 48 13
		02 ssm_f_b.weight 13 52
		02 ssm_g_a.weight 48 13
		02 ssm_g_b.weight 13 52
		02 ssm_beta.weight 48 4
		02 ssm_dt.bias 52
		02 ssm_a 1 4
		02 ssm_norm.weight 13
		02 attn_output.weight 52 48
		1 attn_q.weight 48 80
		1 attn_kv_a_mqa.weight 48 22
		1 attn_kv_a_norm.weight 14
		1 attn_k_b.weight 12 14 4
		1 attn_v_b.weight 14 12 4
		1 attn_output.weight 48 48` + feedTensors,
	"lfm2": `
		attention.head_count_kv 0 2 0
		shortconv.l_cache 3
		02 shortconv.in_proj.weight 48 144
		02 shortconv.out_proj.weight 48 48
		02 shortconv.conv.weight 3 48
		- token_embd_norm.weight 48
		* ffn_norm.weight 48
		1 attn_q_norm.weight 16
		1 attn_k_norm.weight 16` + attentionTensors + feedTensors,
}

const (
	mambaTensors = `
		* ssm_in.weight 48 300
		* ssm_conv1d.weight 4 150
		* ssm_conv1d.bias 150
		* ssm_x.weight 150 13
		* ssm_dt.weight 3 150
		* ssm_dt.bias 150
		* ssm_a 5 150
		* ssm_d 150
		* ssm_out.weight 150 48`
	mamba2Tensors = `
		* ssm_in.weight 48 274
		* ssm_conv1d.weight 3 148
		* ssm_conv1d.bias 148
		* ssm_dt.bias 6
		* ssm_a 1 6
		* ssm_d 1 6
		* ssm_out.weight 120 48`
	wkv6Tensors = `
		* time_mix_lerp_x.weight 48
		* time_mix_lerp_fused.weight 48 1 1 5
		* time_mix_w1.weight 48 25
		* time_mix_w2.weight 5 48 5
		* time_mix_decay.weight 48
		* time_mix_decay_w1.weight 48 6
		* time_mix_decay_w2.weight 6 48
		* time_mix_gate.weight 48 48
		* time_mix_receptance.weight 48 48
		* time_mix_output.weight 48 48`
	wkv7Tensors = `
		* time_mix_w0.weight 48
		* time_mix_w1.weight 48 5
		* time_mix_w2.weight 5 48
		* time_mix_a0.weight 48
		* time_mix_a1.weight 48 4
		* time_mix_a2.weight 4 48
		* time_mix_v0.weight 48
		* time_mix_v1.weight 48 3
		* time_mix_v2.weight 3 48
		* time_mix_k_k.weight 48
		* time_mix_k_a.weight 48
		* time_mix_r_k.weight 48
		* time_mix_key.weight 48 48
		* time_mix_value.weight 48 48
		* time_mix_receptance.weight 48 48
		* time_mix_output.weight 48 48`
	channelTensors = `
		- token_embd_norm.weight 48
		- output_norm.bias 48
		* attn_norm.bias 48
		* attn_norm_2.weight 48
		* attn_norm_2.bias 48
		* channel_mix_lerp_k.weight 48
		* channel_mix_key.weight 48 96
		* channel_mix_value.weight 96 48`
	deltaTensors = `
		ssm.conv_kernel 4
		ssm.state_size 13
		rope.dimension_count 6
		* post_attention_norm.weight 48
		02 attn_qkv.weight 48 172
		02 attn_gate.weight 48 120
		02 ssm_conv1d.weight 4 172
		02 ssm_dt.bias 6
		02 ssm_a 6
		02 ssm_norm.weight 20
		02 ssm_out.weight 120 48
		1 attn_q.weight 48 128
		1 attn_k.weight 48 32
		1 attn_v.weight 48 32
		1 attn_output.weight 64 48
		1 attn_q_norm.weight 16
		1 attn_k_norm.weight 16`
	attentionTensors = `
		1 attn_q.weight 48 64
		1 attn_k.weight 48 32
		1 attn_v.weight 48 32
		1 attn_output.weight 64 48`
	feedTensors = `
		* ffn_gate.weight 48 96
		* ffn_up.weight 48 96
		* ffn_down.weight 96 48`
)

// smallRecurrent returns the model of an architecture in recurrent, with three layers.
func smallRecurrent(arch string) *model.Model {
	m := &model.Model{Path: arch + ".gguf"}
	set := func(key string, v gguf.Value) { m.Metadata.Set(arch+"."+key, v) }
	m.Metadata.Set("general.architecture", gguf.String(arch))
	for key, n := range map[string]uint32{"block_count": 3, "embedding_length": 48, "feed_forward_length": 96,
		"attention.head_count": 4, "attention.head_count_kv": 2, "context_length": 512, "attention.key_length": 16,
		"attention.value_length": 16} {
		set(key, gguf.Uint32(n))
	}
	set(epsilonOf(arch), gguf.Float32(1e-5))
	seed := uint32(1)
	add := func(name string, ne ...int64) {
		v := make([]float32, gguf.Rows(ne)*ne[0])
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = float32(int32(seed)>>8) / (1 << 25)
			switch {
			case strings.HasSuffix(name, "ssm_a"):
				v[i] = -0.3 - v[i]
			case strings.HasSuffix(name, "time_mix_decay.weight"):
				v[i] -= 2
			case len(ne) == 1:
				v[i]++
			}
		}
		src, err := rows.Reshape(rows.Float32s(v), ne)
		if err != nil {
			panic(err)
		}
		m.Tensors = append(m.Tensors, model.New(name, src))
	}
	add("token_embd.weight", 48, 300)
	if arch != "lfm2" {
		add("output_norm.weight", 48)
	}
	for i := range 3 {
		add(fmt.Sprintf("blk.%d.attn_norm.weight", i), 48)
	}
	for line := range strings.Lines(recurrent[arch]) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var numbers []int64
		number := func(s string) {
			var n int64
			if _, err := fmt.Sscan(s, &n); err != nil {
				panic(err)
			}
			numbers = append(numbers, n)
		}
		if strings.Trim(words[0], "*-012") != "" { // a key
			for _, w := range words[1:] {
				number(w)
			}
			v := gguf.Uint32(uint32(numbers[0]))
			if len(numbers) > 1 {
				list := make([]int32, len(numbers))
				for i, n := range numbers {
					list[i] = int32(n)
				}
				v = gguf.Int32s(list)
			}
			set(words[0], v)
			continue
		}
		for _, w := range words[2:] {
			number(w)
		}
		if words[0] == "-" {
			add(words[1], numbers...)
		}
		for i := range 3 {
			if words[0] == "*" || strings.Contains(words[0], fmt.Sprint(i)) {
				add(fmt.Sprintf("blk.%d.%s", i, words[1]), numbers...)
			}
		}
	}
	return m
}

// TestRecurrentBits checks that losses have the same bits in every build, at every width
// of vectors and with any number of workers.
func TestRecurrentBits(t *testing.T) {
	for arch, want := range map[string]string{
		"mamba":          "ea20dba4ac1f",
		"mamba2":         "6ced4d80a0e1",
		"falcon-h1":      "83a40c0cf26d",
		"jamba":          "a65f1253aad6",
		"qwen3next":      "da27979fd708",
		"qwen35":         "b04c98a37aee",
		"rwkv6":          "6e02b6b85d02",
		"rwkv6qwen2":     "a174a22e8177",
		"rwkv7":          "cc19756b8891",
		"arwkv7":         "b67895526def",
		"nemotron_h":     "f7c59db5384a",
		"nemotron_h_moe": "9ae7f299662c",
		"kimi-linear":    "f0a0f9364e31",
		"lfm2":           "b0551ace4dff",
	} {
		workerCounts := []int{3, 1}
		if !cpu.HasVectors || testing.Short() {
			workerCounts = workerCounts[:1] // the same kernels with one
		}
		for _, workers := range workerCounts {
			m, err := New(smallRecurrent(arch))
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Perplexity(context.Background(), Run{Tokens: text(3 * 70), Chunk: 70, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if got := sum(p); got != want {
				t.Errorf("%s, %d workers: losses %s, want %s (perplexity %v)", arch, workers, got, want, p.Value)
			}
			if !(p.Value > 100 && p.Value < 1e5) {
				t.Errorf("%s: perplexity %v", arch, p.Value)
			}
		}
	}
}

// TestRecurrentAlone checks that chunks do not depend on each other, nor tokens on later ones, and that outputs do not
// depend on the first position that is requested.
func TestRecurrentAlone(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	tokensPerBlock = 110 // two chunks
	const chunk, first = 50, 31
	ids := text(3 * chunk)
	for arch := range recurrent {
		m, err := New(smallRecurrent(arch))
		if err != nil {
			t.Fatal(err)
		}
		run := func(ids []int32, first int) []float32 {
			st, err := m.Forward(context.Background(), Run{Tokens: ids, Chunk: chunk, First: first, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			return st.data
		}
		same := func(what string, a, b []float32) {
			t.Helper()
			if !slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%s: %s differ", arch, what)
			}
		}
		all, alone := run(ids, 0), run(ids[2*chunk:], 0)
		same("states of the last chunk alone", all[len(all)-len(alone):], alone)
		var wanted []float32
		for c := range 3 {
			wanted = append(wanted, all[(c*chunk+first)*48:][:(chunk-first)*48]...)
		}
		same("states that are requested", run(ids, first), wanted)
		changed := slices.Clone(ids)
		changed[chunk+20]++
		other := run(changed, 0)
		same("states before a change", other[:(chunk+20)*48], all[:(chunk+20)*48])
		same("states of the chunk after a change", other[2*chunk*48:], all[2*chunk*48:])
		if slices.Equal(other[(2*chunk-1)*48:2*chunk*48], all[(2*chunk-1)*48:2*chunk*48]) {
			t.Errorf("%s: the last token does not depend on a change before it", arch)
		}
	}
}

// TestRecurrentVariants compares variants that share layers with runs of their own, for an architecture whose layers
// read more than the residual stream, and for another.
func TestRecurrentVariants(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	tokensPerBlock = 20
	ctx := context.Background()
	for _, arch := range []string{"rwkv7", "jamba"} {
		source := smallRecurrent(arch)
		base, err := New(source)
		if err != nil {
			t.Fatal(err)
		}
		var models []*model.Model
		var alone []*Model
		for _, parts := range [][]string{{"blk.1."}, {"blk.0."}, {"token_embd"}, {"blk.2."},
			{"blk.1.attn_norm", "blk.2.attn_norm"}} {
			m := variantOf(source, parts...)
			own, err := New(m)
			if err != nil {
				t.Fatal(err)
			}
			models, alone = append(models, m), append(alone, own)
		}
		run := Run{Tokens: text(4 * 16), Chunk: 16, Workers: 2}
		want := make([]*Comparison, len(models))
		if err := Compare(ctx, base, alone, run,
			func(i int, c *Comparison) error { c.Layers = nil; want[i] = c; return nil }); err != nil {
			t.Fatal(err)
		}
		v := Variants{N: len(models), Model: func(i int) (*model.Model, error) { return models[i], nil }}
		if err := CompareVariants(ctx, base, v, run, func(i int, c *Comparison) error {
			if !reflect.DeepEqual(c, want[i]) || !(c.Divergence.Mean > 0) {
				t.Errorf("%s, %s: divergence %v, alone %v", arch, models[i].Path, c.Divergence, want[i].Divergence)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecurrentRefused checks invalid recurrent models.
func TestRecurrentRefused(t *testing.T) {
	for _, c := range []struct {
		arch, key string
		n         uint32
		want      string
	}{
		{"mamba", "ssm.conv_kernel", 0, "at least 1"},
		{"mamba", "ssm.inner_size", 149, "blk.0.ssm_in.weight"},
		{"mamba2", "ssm.time_step_rank", 7, "7 heads"},
		{"mamba2", "ssm.group_count", 0, "0 groups"},
		{"mamba2", "ssm.group_count", 4, "4 groups"},
		{"mamba2", "ssm.state_size", 1 << 24, "blk.0.ssm_in.weight"},
		{"jamba", "attention.head_count_kv", 0, "blk.1.ssm_in.weight"},
		{"jamba", "attention.head_count", 3, "want a multiple"},
		{"qwen3next", "ssm.group_count", 4, "want multiples"},
		{"qwen35", "ssm.state_size", 12, "blk.0.attn_qkv.weight"},
		{"qwen35", "full_attention_interval", 3, "blk.1.attn_qkv.weight"},
		{"rwkv6", "wkv.head_size", 13, "multiple of the 13"},
		{"rwkv6", "wkv.head_size", 0, "multiple of the 0"},
		{"rwkv6", "time_mix_extra_dim", 6, "blk.0.time_mix_w1.weight"},
		{"rwkv6qwen2", "attention.head_count_kv", 3, "want a multiple"},
		{"rwkv7", "wkv.head_size", 13, "multiple of the 13"},
		{"nemotron_h_moe", "ssm.group_count", 4, "4 groups"},
		{"kimi-linear", "kda.head_dim", 12, "blk.0.attn_q.weight"},
		{"kimi-linear", "kda.head_dim", 0, "at least 1"},
		{"lfm2", "shortconv.l_cache", 1 << 24, "blk.0.shortconv.conv.weight"},
		{"lfm2", "shortconv.l_cache", 1 << 30, "shortconv.l_cache"},
	} {
		m := smallRecurrent(c.arch)
		m.Metadata.Set(c.arch+"."+c.key, gguf.Uint32(c.n))
		if _, err := New(m); !errors.Is(err, fault.Broken) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s with %s = %d: %v, want %s", c.arch, c.key, c.n, err, c.want)
		}
	}
}
