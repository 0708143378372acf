package convert_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/test/hftest"
)

// mistralDir writes a checkpoint in Mistral's own format; see hftest.WriteMistral.
func mistralDir(t *testing.T, params map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	if err := hftest.WriteMistral(dir, params); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMistralFormat converts a checkpoint in Mistral's own format. The reference needs a library that is not available,
// so the expectations follow its source.
func TestMistralFormat(t *testing.T) {
	job, err := convert.Prepare(t.Context(), mistralDir(t,
		map[string]any{"yarn": map[string]any{"factor": 4, "beta": 32, "alpha": 1, "apply_scale": false,
			"original_max_position_embeddings": 1024}}),
		convert.Options{Mistral: true, Type: convert.F16})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	for key, want := range map[string]gguf.Value{
		"general.architecture": gguf.String("llama"), "llama.block_count": gguf.Uint32(1),
		"llama.attention.head_count_kv": gguf.Uint32(2),
		"llama.rope.dimension_count":    gguf.Uint32(16), "llama.rope.freq_base": gguf.Float32(1e6),
		"llama.rope.scaling.type":                gguf.String("yarn"),
		"llama.rope.scaling.yarn_log_multiplier": gguf.Float32(1), "llama.rope.scaling.yarn_beta_slow": gguf.Float32(1),
		"llama.vocab_size": gguf.Uint32(277), "tokenizer.ggml.pre": gguf.String("tekken"),
		"tokenizer.chat_template": gguf.String("mistral-v7-tekken"),
	} {
		if got, _ := job.Metadata().Get(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	from := map[string]string{}
	for _, p := range job.Plan {
		from[p.Name] = p.From
	}
	if len(from) != 12 || from["blk.0.ffn_gate.weight"] != "layers.0.feed_forward.w1.weight" ||
		from["blk.0.attn_output.weight"] != "layers.0.attention.wo.weight" {
		t.Errorf("tensors %v", from)
	}

	scaled, err := convert.Prepare(t.Context(),
		mistralDir(t, map[string]any{"llama_4_scaling": map[string]any{"beta": 0.5}}), convert.Options{Mistral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer scaled.Close()
	if v, _ := scaled.Metadata().Get("mistral3.attention.temperature_scale"); v != gguf.Float32(0.5) {
		t.Errorf("temperature scale %v", v)
	}

	quantized, err := convert.Prepare(t.Context(),
		mistralDir(t, map[string]any{"quantization": map[string]any{"qformat_weight": "fp8_e4m3",
			"qscheme_act": "TENSOR"}}), convert.Options{Mistral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer quantized.Close()
	i := slices.IndexFunc(quantized.Plan, func(p convert.Tensor) bool { return p.Name == "blk.0.ffn_down.weight" })
	row := make([]float32, 96)
	if err := rows.Decode(quantized.Plan[i].Source, row, new([]byte), 0, 1); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]float32{0x01: 0x1p-10, 0x38: 0.5, 0x5F: 15} { // half of 2^-9, of 1, of 30
		if row[code] != want {
			t.Errorf("code %#x: %v, want %v", code, row[code], want)
		}
	}
	warns(t, quantized, "7 tensors left out: scales of activations")

	for name, c := range map[string]struct {
		params map[string]any
		kind   error
		text   string
	}{
		"other format": {map[string]any{"quantization": map[string]any{"qformat_weight": "int4"}}, fault.Unsupported,
			`want "fp8_e4m3"`},
		"no head":   {map[string]any{"head_dim": nil}, fault.Broken, "head_dim"},
		"half yarn": {map[string]any{"yarn": map[string]any{"factor": 4}}, fault.Broken, "yarn.beta"},
	} {
		_, err := convert.Prepare(t.Context(), mistralDir(t, c.params), convert.Options{Mistral: true})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestMistralExperts converts models with experts in Mistral's own format; make interop
// compares the files with the reference's.
func TestMistralExperts(t *testing.T) {
	params := func(set func(all, moe map[string]any)) map[string]any {
		all := hftest.MistralExperts()
		set(all, all["moe"].(map[string]any))
		return all
	}
	job, err := convert.Prepare(t.Context(), mistralDir(t, hftest.MistralExperts()),
		convert.Options{Mistral: true, Type: convert.F16})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	for key, want := range map[string]gguf.Value{
		"general.architecture": gguf.String("deepseek2"), "deepseek2.block_count": gguf.Uint32(3),
		"deepseek2.attention.head_count_kv":          gguf.Uint32(1),
		"deepseek2.attention.layer_norm_rms_epsilon": gguf.Float32(1e-5),
		"deepseek2.leading_dense_block_count":        gguf.Uint32(1), "deepseek2.expert_count": gguf.Uint32(4),
		"deepseek2.expert_used_count": gguf.Uint32(2), "deepseek2.expert_weights_scale": gguf.Float32(1.5),
		"deepseek2.expert_weights_norm": gguf.Bool(true),
		"deepseek2.expert_gating_func":  gguf.Uint32(1), "deepseek2.attention.temperature_scale": gguf.Float32(0.1),
		"deepseek2.attention.temperature_length":     gguf.Uint32(1024),
		"deepseek2.rope.scaling.yarn_log_multiplier": gguf.Float32(0.1),
		"deepseek2.rope.scaling.factor":              gguf.Float32(36),
	} {
		if got, _ := job.Metadata().Get(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	from := map[string]string{}
	for _, p := range job.Plan {
		from[p.Name] = p.From
	}
	if len(from) != 50 || from["blk.0.ffn_gate.weight"] != "layers.0.feed_forward.w1.weight" ||
		from["blk.2.attn_q_b.weight"] != "layers.2.attention.wq_b.weight" {
		t.Errorf("%d tensors: %v", len(from), from)
	}
	quantized, err := convert.Prepare(t.Context(),
		mistralDir(t, params(func(all,
			_ map[string]any) {
			all["quantization"] = map[string]any{"qformat_weight": "fp8_e4m3"}
		})),
		convert.Options{Mistral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer quantized.Close()
	i := slices.IndexFunc(quantized.Plan, func(p convert.Tensor) bool { return p.Name == "blk.1.ffn_gate_exps.weight" })
	row := make([]float32, 64)
	if err := rows.Decode(quantized.Plan[i].Source, row, new([]byte), 0, 1); err != nil {
		t.Fatal(err)
	}
	if row[0x01] != 0x1p-10 || row[0x38] != 0.5 {
		t.Errorf("experts in FP8: %v", row)
	}

	for name, c := range map[string]struct {
		set  func(all, moe map[string]any)
		kind error
		text string
	}{
		"unknown key of moe": {func(_, moe map[string]any) { moe["router_bias"] = true }, fault.Unsupported,
			`key "moe.router_bias"`},
		"experts are text": {func(all, _ map[string]any) { all["moe"] = "8" }, fault.Broken,
			`key "moe": want an object`},
		"every second": {func(_, moe map[string]any) { moe["route_every_n"] = 2 }, fault.Unsupported,
			"moe_layer_freq"},
		"no yarn": {func(all, _ map[string]any) { delete(all, "yarn") }, fault.Broken, "yarn"},
		"no rank": {func(all, _ map[string]any) { delete(all, "kv_lora_rank") }, fault.Broken,
			"kv_lora_rank"},
		"more experts":  {func(_, moe map[string]any) { moe["num_experts"] = 5 }, fault.Broken, "experts"},
		"fewer experts": {func(_, moe map[string]any) { moe["num_experts"] = 3 }, fault.Broken, "experts"},
		"other heads":   {func(all, _ map[string]any) { all["n_kv_heads"] = 3 }, fault.Broken, "want 3 heads"},
		"other attention": {func(all, _ map[string]any) { delete(all, "q_lora_rank") },
			fault.Unsupported, "wq_a"},
		"other size of experts": {func(_, moe map[string]any) { moe["expert_hidden_dim"] = 48 }, fault.Broken, "ffn_"},
	} {
		_, err := convert.Prepare(t.Context(), mistralDir(t, params(c.set)), convert.Options{Mistral: true})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestMistralMMProj converts the vision encoder in Mistral's own format; make interop compares the
// files with the reference's.
func TestMistralMMProj(t *testing.T) {
	prepare := func(vision map[string]any, params ...any) (*convert.Job, error) {
		all := map[string]any{"vision_encoder": vision}
		for i := 0; i < len(params); i += 2 {
			all[params[i].(string)] = params[i+1]
		}
		return convert.Prepare(t.Context(), mistralDir(t, all),
			convert.Options{Mistral: true, MMProj: true, Type: convert.F16})
	}
	with := func(key string, value any) map[string]any {
		m := hftest.MistralVision()
		m[key] = value
		return m
	}
	for _, id := range []int64{5, -1} { // the token's, or that of tekken.json
		job, err := prepare(with("image_break_token_id", id))
		if err != nil {
			t.Fatal(err)
		}
		defer job.Close()
		for key, want := range map[string]gguf.Value{
			"general.type": gguf.String("mmproj"), "clip.projector_type": gguf.String("pixtral"),
			"clip.vision.projection_dim": gguf.Uint32(64), "clip.vision.block_count": gguf.Uint32(4),
			"clip.vision.attention.layer_norm_epsilon": gguf.Float32(1e-5), "clip.rope.freq_base": gguf.Float32(10000),
			"clip.vision.spatial_merge_size": gguf.Uint32(2),
			"clip.vision.image_std":          gguf.Float32s([]float32{0.26862954, 0.26130258, 0.27577711}),
		} {
			if got, _ := job.Metadata().Get(key); got != want {
				t.Errorf("%s is %v, want %v", key, got, want)
			}
		}
		from := map[string]string{}
		for _, p := range job.Plan {
			from[p.Name] = p.From
		}
		if len(from) != 43 ||
			from["v.blk.0.ffn_gate.weight"] != "vision_encoder.transformer.layers.0.feed_forward.w1.weight" ||
			from["mm.patch_merger.weight"] != "patch_merger.merging_layer.weight" {
			t.Errorf("%d tensors %v", len(from), from)
		}
		i := slices.IndexFunc(job.Plan, func(p convert.Tensor) bool { return p.Name == "v.token_embd.img_break" })
		row := make([]float32, 64)
		if err := rows.Decode(job.Plan[i].Source, row, new([]byte), 0, 1); err != nil || row[0] != 5*64%97/8. {
			t.Errorf("embedding of the break %v, %v", row, err)
		}
		if len(job.Warnings) > 0 && strings.Contains(strings.Join(job.Warnings, " "), "vision_encoder") {
			t.Errorf("warnings %q", job.Warnings)
		}
	}
	for name, c := range map[string]struct {
		vision map[string]any
		params []any
		kind   error
		text   string
	}{
		"no vision encoder": {nil, nil, fault.Unsupported, `params.json: has no key "vision_encoder"`},
		"no break token": {with("image_break_token_id", nil), nil, fault.Broken,
			`params.json: has no key "vision_encoder.image_break_token_id"`},
		"first token": {with("image_break_token_id", 0), nil, fault.Broken,
			`"vision_encoder.image_break_token_id": want the id of a token`},
		"break token out of range": {with("image_break_token_id", 277), nil, fault.Broken, "want a row for token 277"},
		"no epsilon": {with("", nil), []any{"norm_eps", nil}, fault.Broken,
			`params.json: has none of the keys ["norm_eps"]`},
		"other mapping": {with("mm_projector_id", "pool"), nil, fault.Unsupported,
			`key "vision_encoder.mm_projector_id" is "pool"`},
	} {
		if c.vision == nil {
			c.params = []any{"vision_encoder", nil}
		}
		if _, err := prepare(c.vision, c.params...); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
