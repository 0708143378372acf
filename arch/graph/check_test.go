package graph

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

func TestCheck(t *testing.T) {
	for _, m := range []*Model{llama, allParts} {
		if err := Check(m); err != nil {
			t.Error(err)
		}
	}
	factor := func(n Num) *Model { return decoder(ScaleStream{n}) }
	dims := func(d Dims) *Model {
		m := decoder()
		m.Dims = d
		return m
	}
	in := func(l Layers) *Model { return mixer(Choose{{In: l, Then: swiGLU}}) }
	noNorm := decoder()
	noNorm.Norm = NormKind{}
	for name, c := range map[string]struct {
		m    *Model
		want string
	}{
		"nil":                 {nil, "no model"},
		"no head":             {&Model{Reads: ByName, Norm: RMS}, "Head is nil"},
		"no epsilon":          {noNorm, `Norm.Eps: expression "": want a number`},
		"no factor":           {factor(""), `Layer[0].By: expression "": want a number`},
		"no part":             {mixer(nil), "Layer[0].Part is nil"},
		"no part in a case":   {mixer(Choose{{In: Every{}}}), "Layer[0].Part[0].Then is nil"},
		"no part in a sum":    {mixer(Sum{nil}), "Layer[0].Part[0] is nil"},
		"no layers":           {in(nil), "Layer[0].Part[0].In is nil"},
		"not none":            {in(Not{}), "Layer[0].Part[0].In.Layers is nil"},
		"no activation":       {mixer(FFN{}), "Layer[0].Part.Act is nil"},
		"no step":             {decoder(nil), "Layer[0] is nil"},
		"no tensor":           {in(Has("")), "Layer[0].Part[0].In has no name of a tensor"},
		"no key":              {mixer(FFN{Act: ActOf{Or: GELU}}), "Layer[0].Part.Act has no key"},
		"does not parse":      {factor("n_embd +"), `Layer[0].By: expression "n_embd +"`},
		"condition":           {in(Where("i mod 4")), ""},
		"condition, no parse": {in(Where("i = ")), `Layer[0].Part[0].In: expression "i = "`},
		"comparison":          {factor("i = 3"), `found "="`},
		"unknown name": {factor("n_embd * n_unknown"),
			`Layer[0].By: unknown name "n_unknown" in "n_embd * n_unknown"`},
		"name in a condition":  {in(Where("n_unknown = 3")), `unknown name "n_unknown"`},
		"free size":            {factor("?n_embd"), `unknown name "?n_embd"`},
		"position":             {factor("1 + pos"), `unknown name "pos"`},
		"position in Dims":     {dims(Dims{"n_x": "pos"}), `Dims[n_x]: unknown name "pos"`},
		"position where it is": {mixer(Attention{Steps: []HeadStep{Temperature{Scale: "i", Times: "pos / 8192"}}}), ""},
		"scale by position":    {mixer(Attention{Steps: []HeadStep{Temperature{Scale: "pos", Times: "1"}}}), `"pos"`},
		"deep": {decoder(ChooseStep{{In: Every{}, Steps: []Step{Parallel{{}, {Part: Attention{
			Steps: []HeadStep{On{In: Every{}, Steps: []HeadStep{Clamp{By: "n_x"}}}}}}}}}}),
			"Layer[0][0].Steps[0][0].Part is nil"},
		"deeper": {decoder(ChooseStep{{In: Every{}, Steps: []Step{Parallel{{Part: Attention{
			Steps: []HeadStep{On{In: Every{}, Steps: []HeadStep{Clamp{By: "n_x"}}}}}}}}}}),
			`Layer[0][0].Steps[0][0].Part.Steps[0].Steps[0].By: unknown name "n_x"`},
		"row":              {dims(Dims{"n_x": "2 * n_embd", "n_embd": "@width"}), ""},
		"row, no parse":    {dims(Dims{"n_x": "2 *"}), `Dims[n_x]: expression "2 *"`},
		"row, unknown":     {dims(Dims{"n_x": "n_y"}), `Dims[n_x]: unknown name "n_y"`},
		"row, no name":     {dims(Dims{"n x": "1"}), `Dims: "n x" is no name`},
		"row, a key":       {dims(Dims{"@n_x": "1"}), `Dims: "@n_x" is no name`},
		"row, a free size": {dims(Dims{"?n_x": "1"}), `Dims: "?n_x" is no name`},
		"row, the layer":   {dims(Dims{"i": "1"}), `Dims: "i" is no name`},
		"row of itself":    {dims(Dims{"n_x": "n_x + 1"}), "Dims: n_x refers to itself: n_x → n_x"},
		"rows of each other": {dims(Dims{"n_a": "@a or n_b", "n_b": "if(n_c = 1, 2, 3)", "n_c": "n_a"}),
			"n_a → n_b → n_c → n_a"},
		"row of a common one": {dims(Dims{"n_embd": "n_head", "n_head": "n_embd_head_k"}), "refers to itself"},
	} {
		err := Check(c.m)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !errors.Is(err, fault.Usage) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, same := Declare(c.m, small.file()); c.want != "" && (same == nil || same.Error() != err.Error()) {
			t.Errorf("%s: Declare reports %v", name, same)
		}
	}
}

// Expressions of callers are refused with an error, too.
func TestForeignExpressions(t *testing.T) {
	for n, want := range map[Num]string{"1 +": "at the end", "n_unknown": `unknown name "n_unknown"`} {
		d := declare(t, llama, small.file())
		if v, ok := d.At(0).Value(n); ok || !errors.Is(d.Err(), fault.Usage) ||
			!strings.Contains(d.Err().Error(), want) {
			t.Errorf("%s: %v, %v", n, v, d.Err())
		}
	}
	d := declare(t, llama, small.file())
	if d.Holds("i = "); !errors.Is(d.Err(), fault.Usage) {
		t.Error(d.Err())
	}
}

func TestKeys(t *testing.T) {
	head := []string{"classifier.activation", "classifier.output_labels", "classifier.pooling_type", "dense_2_feat_in",
		"dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out", "embedding_length_out", "pooling_type"}
	m := decoder(Residual{Part: ShortConv{}, Scale: "@residual_scale or 1"})
	m.Unread = []string{"feed_forward_length"}
	want := append([]string{"attention.causal", "attention.layer_norm_rms_epsilon", "block_count", "embedding_length",
		"nextn_predict_layers", "residual_scale", "shortconv.l_cache"}, head...)
	slices.Sort(want)
	if got := Keys(m); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	m.Head, m.Dims = LM{SoftCap: "@final_logit_softcapping or 0", Scale: "n_x"},
		Dims{"n_x": "if(#list = 2, ^first, @second)", "n_unused": "@third"}
	want = append(want, "final_logit_softcapping", "list", "first", "second")
	slices.Sort(want)
	if got := Keys(m); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	has := func(m *Model, keys ...string) {
		t.Helper()
		for _, key := range keys {
			name, not := strings.CutPrefix(key, "-")
			if slices.Contains(Keys(m), name) == not {
				t.Errorf("%s: %v", name, not)
			}
		}
	}
	has(llama, "attention.head_count_kv", "attention.scale", "rope.freq_base", "rope.scaling.yarn_beta_fast",
		"expert_gating_func", "expert_shared_count", "-attention.max_alibi_bias", "-final_logit_softcapping",
		"-attention.sliding_window", "-context_length", "-ssm.conv_kernel")
	has(mixer(Attention{Scale: "1", Steps: []HeadStep{RoPE{Base: "@rope.freq_base_swa or 10000", Scaling: NoScale}}}),
		"rope.freq_base_swa", "-rope.freq_base", "-rope.scaling.type", "-attention.scale")
	has(mixer(Choose{{In: Sliding{}, Then: FFN{Act: ActOf{Key: "hidden_activation"}}}}), swaPattern,
		"attention.sliding_window", "hidden_activation")
	has(mixer(Choose{{In: Not{Where("@a.b = 1")}, Then: FFN{Act: XIELU{}}}}), "a.b", "xielu.alpha_n")
	has(mixer(RWKV7{}), "attention.gate_lora_rank", "wkv.head_size", "-time_mix_extra_dim")
	has(mixer(MoE{Experts: swiGLU, With: []MoEOption{LatentExperts{}}}), "moe_latent_size")
}

// Common is right by itself.
func TestCommon(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(Common)) {
		if err := Check(decoder(ScaleStream{Num(name)})); err != nil {
			t.Error(err)
		}
	}
}
