package quantize

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
)

// modelMeta returns metadata of a model with counts under arch, given as
// key, number pairs.
func modelMeta(arch string, counts ...any) gguf.Metadata {
	var meta gguf.Metadata
	meta.Set("general.architecture", gguf.String(arch))
	for i := 0; i < len(counts); i += 2 {
		v, ok := counts[i+1].(gguf.Value)
		if !ok {
			v = gguf.Uint32(uint32(counts[i+1].(int)))
		}
		meta.Set(arch+counts[i].(string), v)
	}
	return meta
}

// weights returns F32 tensors with rows of 256.
func weights(names ...string) []model.Tensor {
	var t []model.Tensor
	for _, n := range names {
		t = append(t, model.Tensor{Tensor: gguf.Tensor{Name: n + ".weight", NE: []int64{256, 2}, Type: gguf.TypeF32}})
	}
	return t
}

// perLayer returns names for layers 0 to n-1.
func perLayer(n int, names ...string) []string {
	var all []string
	for i := range n {
		for _, s := range names {
			all = append(all, fmt.Sprintf("blk.%d.%s", i, s))
		}
	}
	return all
}

func recipe(t *testing.T, name string) *Recipe {
	t.Helper()
	r, ok := LookupRecipe(name)
	if !ok {
		t.Fatalf("no recipe %s", name)
	}
	return r
}

// planTypes returns the types by name, without ".weight".
func planTypes(t *testing.T, meta gguf.Metadata, tensors []model.Tensor, opt PlanOptions) map[string]gguf.Type {
	t.Helper()
	plan, err := Plan(meta, tensors, opt)
	if refused := (*RefusedError)(nil); err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	types := map[string]gguf.Type{}
	for _, d := range plan.Decisions {
		types[strings.TrimSuffix(d.Name, ".weight")] = d.To
	}
	return types
}

// matrixOf returns a PlanOptions.Importance with entries for the names for which has returns true.
func matrixOf(has func(name string) bool) func(string, []int64) (bool, error, error) {
	return func(name string, _ []int64) (bool, error, error) { return has(name), nil, nil }
}

func ptr(t gguf.Type) *gguf.Type { return &t }

func TestPlanOrder(t *testing.T) {
	in := weights("blk.10.a", "output", "blk.9.b", "blk.9.a", "dec.blk.0.a", "blk.x", "blk.100000000000000000000.a")
	order := func(keep bool) (names []string) {
		plan, err := Plan(nil, in, PlanOptions{Recipe: recipe(t, "COPY"), KeepOrder: keep})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range plan.Decisions {
			if in[d.Tensor].Name != d.Name {
				t.Errorf("decision for %q points at %q", d.Name, in[d.Tensor].Name)
			}
			names = append(names, strings.TrimSuffix(d.Name, ".weight"))
		}
		return names
	}
	want := []string{"blk.x", "dec.blk.0.a", "output", "blk.9.a", "blk.9.b", "blk.10.a", "blk.100000000000000000000.a"}
	if got := order(false); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := order(true); got[0] != "blk.10.a" || got[6] != "blk.100000000000000000000.a" {
		t.Errorf("order not kept: %v", got)
	}
}

func TestPlanReasons(t *testing.T) {
	tensors := weights("token_embd", "blk.0.attn_v", "blk.0.attn_k", "blk.0.attn_q", "output",
		"blk.0.ffn_gate_inp", "blk.0.x")
	tensors[0].NE = []int64{160, 4}
	tensors[3].NE = []int64{256, 1, 1}
	tensors = append(tensors, model.Tensor{Tensor: gguf.Tensor{Name: "s", NE: []int64{256, 2}}})
	rule, err := CompileTensorRule("Attn_K=Q8_0")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Plan(modelMeta("llama", ".block_count", 1), tensors, PlanOptions{
		Recipe: recipe(t, "Q4_K_M"), OutputTensorType: ptr(gguf.TypeQ5_0), TensorTypes: []TensorTypeRule{rule},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"token_embd.weight":         "Q5_0 from Q4_K fallback: row of 160 is not a multiple of 256 (Q4_K)",
		"blk.0.attn_v.weight":       "Q6_K recipe Q4_K_M: attn_v, outer or every third layer",
		"blk.0.attn_k.weight":       "Q8_0 override tensor rule attn_k",
		"blk.0.attn_q.weight":       "F32 kept: 1-D",
		"output.weight":             "Q5_0 override output tensor type",
		"blk.0.ffn_gate_inp.weight": "F32 kept: name holds ffn_gate_inp.weight",
		"blk.0.x.weight":            "Q4_K recipe Q4_K_M: default",
		"s":                         "F32 kept: not a weight",
	}
	for _, d := range plan.Decisions {
		got := d.To.String() + " "
		if d.Want != d.To {
			got += "from " + d.Want.String() + " "
		}
		if got += d.Reason.String(); got != want[d.Name] {
			t.Errorf("%s: got %q, want %q", d.Name, got, want[d.Name])
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	meta := modelMeta("llama", ".block_count", 1)
	tensors := weights("token_embd", "blk.0.attn_q", "blk.0.ffn_up")
	all := matrixOf(func(string) bool { return true })
	for _, c := range []struct {
		name   string
		recipe string
		set    func(*PlanOptions, []model.Tensor)
		want   string // in the message; "" for no error
	}{
		{"no matrix", "IQ2_XS", nil, "needs an importance matrix (and 1 more tensors)"},
		{"covered", "IQ2_XS", func(o *PlanOptions, _ []model.Tensor) { o.Importance = all }, ""},
		{"no entry", "IQ2_XS", func(o *PlanOptions, _ []model.Tensor) {
			o.Importance = matrixOf(func(n string) bool { return !strings.Contains(n, "ffn_up") })
		}, `tensor "blk.0.ffn_up.weight", type IQ2_XS: the importance matrix has no entry`},
		{"embedding without entry", "IQ2_S", func(o *PlanOptions, _ []model.Tensor) {
			o.TokenEmbeddingType = ptr(gguf.TypeIQ2_S)
			o.Importance = matrixOf(func(n string) bool { return n != embdName })
		}, ""},
		{"embedding needs importance", "Q8_0", func(o *PlanOptions, _ []model.Tensor) {
			o.TokenEmbeddingType = ptr(gguf.TypeIQ2_XS)
		}, `"token_embd.weight"`},
		{"Q2_K under Q2_K_S", "Q2_K_S", nil, "type Q2_K: needs"},
		{"Q2_K under Q2_K", "Q2_K", nil, ""},
		{"fallback needs none", "IQ2_XS", func(_ *PlanOptions, ts []model.Tensor) {
			for i := range ts {
				ts[i].NE = []int64{96, 2}
			}
		}, ""},
		{"requantize", "Q4_0", func(_ *PlanOptions, ts []model.Tensor) { ts[1].Type = gguf.TypeQ8_0 },
			"type Q8_0: already quantized"},
		{"requantize allowed", "Q4_0", func(o *PlanOptions, ts []model.Tensor) {
			ts[1].Type, o.AllowRequantize = gguf.TypeQ8_0, true
		}, ""},
		{"same type", "IQ2_XS", func(_ *PlanOptions, ts []model.Tensor) {
			ts[1].Type, ts[2].Type = gguf.TypeIQ2_XS, gguf.TypeIQ2_XS
		}, ""},
	} {
		ts := slices.Clone(tensors)
		opt := PlanOptions{Recipe: recipe(t, c.recipe)}
		if c.set != nil {
			c.set(&opt, ts)
		}
		plan, err := Plan(meta, ts, opt)
		if len(plan.Decisions) != len(ts) {
			t.Errorf("%s: %d decisions", c.name, len(plan.Decisions))
		}
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if e := (*RefusedError)(nil); !errors.As(err, &e) || !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestPlanUnsupported(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*PlanOptions, []model.Tensor)
	}{
		{"no fallback", func(o *PlanOptions, ts []model.Tensor) {
			ts[0].NE[0], o.Pure, o.Recipe = 96, true,
				recipe(t, "Q1_0")
		}},
		{"override does not fit", func(o *PlanOptions,
			ts []model.Tensor) {
			ts[0].NE[0] = 96
			o.OutputTensorType = ptr(gguf.TypeQ6_K)
		}},
		{"override without encoder", func(o *PlanOptions,
			_ []model.Tensor) {
			o.OutputTensorType = ptr(gguf.TypeQ8_1)
		}},
		{"rule without encoder", func(o *PlanOptions, _ []model.Tensor) {
			r, _ := CompileTensorRule("output=i8")
			o.TensorTypes = []TensorTypeRule{r}
		}},
		{"integers", func(_ *PlanOptions, ts []model.Tensor) { ts[0].Type = gguf.TypeI32 }},
		{"doubles", func(_ *PlanOptions, ts []model.Tensor) { ts[0].Type = gguf.TypeF64 }},
	} {
		ts := weights("output")
		opt := PlanOptions{Recipe: recipe(t, "Q4_0")}
		c.set(&opt, ts)
		plan, err := Plan(nil, ts, opt)
		if e := (*UnsupportedError)(nil); !errors.As(err, &e) || !errors.Is(err, gguf.ErrUnsupported) || plan != nil {
			t.Errorf("%s: got %v, %v", c.name, plan, err)
		}
	}
}

func TestPlanInput(t *testing.T) {
	down := weights("blk.0.ffn_down")
	for _, c := range []struct {
		name    string
		recipe  string
		meta    gguf.Metadata
		tensors []model.Tensor
		want    string
	}{
		{"layers needed", "Q4_K_M", modelMeta("llama"), down, `key "llama.block_count"`},
		{"layers not needed", "Q6_K", modelMeta("llama"), down, ""},
		{"no metadata", "Q4_1", nil, down, ""},
		{"encoder without layers", "Q4_K_M", modelMeta("clip", ".block_count", 4), down, ""},
		{"not a count", "Q4_K_M", modelMeta("llama", ".block_count", gguf.String("many")), down, `got "many"`},
		{"negative", "Q4_K_M", modelMeta("llama", ".block_count", gguf.Int32(-1)), down, "got -1"},
		{"expert outside of layers", "Q4_K_M", modelMeta("llama", ".block_count", 2, ".expert_count", 4),
			weights("dec.blk.0.ffn_down"), `tensor "dec.blk.0.ffn_down.weight"`},
		{"expert outside of layers, not needed", "IQ2_S", modelMeta("llama", ".block_count", 2, ".expert_count", 4),
			weights("dec.blk.0.ffn_down"), ""},
		{"layer out of range", "Q4_K_M", modelMeta("llama", ".block_count", 2, ".expert_count", 4),
			weights("blk.2.ffn_down"), "blk.<0 to 1>"},
	} {
		plan, err := Plan(c.meta, c.tensors, PlanOptions{
			Recipe: recipe(t, c.recipe), Importance: matrixOf(func(string) bool { return true }),
		})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if e := (*InputError)(nil); !errors.As(err, &e) || !errors.Is(err, gguf.ErrBroken) ||
			!strings.Contains(err.Error(), c.want) || plan != nil {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// The following tests expect the results of llama-quantize 0.7.0 --dry-run.

func TestPlanHeads(t *testing.T) {
	tensors := weights("blk.0.attn_v")
	for _, c := range []struct {
		heads, kv any
		want      gguf.Type
	}{
		{8, 8, gguf.TypeQ2_K},
		{8, 2, gguf.TypeQ4_K},
		{8, nil, gguf.TypeQ2_K},
		{nil, 8, gguf.TypeQ2_K},
		{nil, nil, gguf.TypeQ2_K},
		{8, gguf.Int32s([]int32{2, 8, 8}), gguf.TypeQ4_K},
		{8, gguf.Int32s([]int32{0, 2, 2}), gguf.TypeQ2_K},
	} {
		counts := []any{".block_count", 3}
		if c.heads != nil {
			counts = append(counts, ".attention.head_count", c.heads)
		}
		if c.kv != nil {
			counts = append(counts, ".attention.head_count_kv", c.kv)
		}
		got := planTypes(t, modelMeta("llama", counts...), tensors, PlanOptions{Recipe: recipe(t, "Q2_K_S")})
		if got["blk.0.attn_v"] != c.want {
			t.Errorf("heads %v, %v: got %v, want %v", c.heads, c.kv, got["blk.0.attn_v"], c.want)
		}
	}
}

// MTP (NextN) layers do not count towards the size of a model, but towards its depth.
func TestPlanPredictLayers(t *testing.T) {
	for _, c := range []struct {
		arch            string
		layers, predict int
		headsKV         int
		want            gguf.Type // of attn_v in layer 10
	}{
		{"llama", 80, 0, 8, gguf.TypeQ5_K},
		{"llama", 80, 0, 64, gguf.TypeQ4_K},
		{"llama", 80, 1, 8, gguf.TypeQ4_K},
		{"llama", 81, 1, 8, gguf.TypeQ5_K},
		{"llama", 81, 0, 8, gguf.TypeQ4_K},
		{"deci", 82, 2, 64, gguf.TypeQ5_K},
		{"qwen2", 81, 1, 64, gguf.TypeQ5_K},
		{"qwen3", 80, 0, 8, gguf.TypeQ4_K},
	} {
		meta := modelMeta(c.arch, ".block_count", c.layers, ".nextn_predict_layers", c.predict,
			".attention.head_count", 64, ".attention.head_count_kv", c.headsKV)
		got := planTypes(t, meta, weights(perLayer(c.layers, "attn_v", "ffn_down")...),
			PlanOptions{Recipe: recipe(t, "Q4_K_M")})
		last := fmt.Sprintf("blk.%d.ffn_down", c.layers-1)
		if got["blk.10.attn_v"] != c.want || got["blk.10.ffn_down"] != gguf.TypeQ4_K || got[last] != gguf.TypeQ6_K {
			t.Errorf("%v: got attn_v %v, ffn_down %v, last ffn_down %v", c, got["blk.10.attn_v"],
				got["blk.10.ffn_down"], got[last])
		}
	}
}

// Encoders count as models without layers, so that every ffn_down is in an outer layer. Value tensors are counted
// themselves.
func TestPlanEncoder(t *testing.T) {
	tensors := weights("mm.0")
	for i := range 8 {
		for _, s := range []string{"attn_v", "ffn_down"} {
			tensors = append(tensors, weights(fmt.Sprintf("v.blk.%d.%s", i, s))...)
		}
	}
	got := planTypes(t, modelMeta("clip", ".block_count", 4), tensors, PlanOptions{Recipe: recipe(t, "Q4_K_M")})
	for i := range 8 {
		v := gguf.TypeQ4_K
		if slices.Contains([]int{0, 3, 6, 7}, i) {
			v = gguf.TypeQ6_K
		}
		if g := got[fmt.Sprintf("v.blk.%d.attn_v", i)]; g != v {
			t.Errorf("layer %d: attn_v %v, want %v", i, g, v)
		}
		if g := got[fmt.Sprintf("v.blk.%d.ffn_down", i)]; g != gguf.TypeQ6_K {
			t.Errorf("layer %d: ffn_down %v", i, g)
		}
	}
}

// Which option wins for embeddings and output head.
func TestPlanOverrides(t *testing.T) {
	rule, err := CompileTensorRule("embd|output=q5_1")
	if err != nil {
		t.Fatal(err)
	}
	const emb, out, tt, tied, pure = 1, 2, 4, 8, 16
	for _, c := range []struct {
		recipe string
		opts   int
		want   string // token_embd per_layer_token_embd output
	}{
		{"Q4_K_M", 0, "Q4_K Q4_K Q6_K"},
		{"Q4_K_M", tt, "Q5_1 Q5_1 Q5_1"},
		{"Q4_K_M", emb, "Q5_0 Q5_0 Q6_K"},
		{"Q4_K_M", emb | tt, "Q5_0 Q5_1 Q5_1"},
		{"Q4_K_M", out | tt, "Q5_1 Q5_1 Q8_0"},
		{"Q4_K_M", emb | out | tt, "Q5_0 Q5_1 Q8_0"},
		{"Q4_K_M", pure | emb | out, "Q5_0 Q5_0 Q8_0"},
		{"Q4_K_M", pure | emb | out | tt, "Q5_0 Q5_1 Q8_0"},
		{"Q4_K_M", tied, "Q6_K Q6_K"},
		{"Q4_K_M", tied | out, "Q8_0 Q8_0"},
		{"Q4_K_M", tied | out | tt, "Q5_1 Q5_1"},
		{"Q4_K_M", tied | out | emb, "Q5_0 Q5_0"},
		{"Q4_K_M", tied | out | pure, "Q4_K Q4_K"},
		{"F16", tt, "F16 F16 F16"},
		{"F16", emb | out, "Q5_0 Q5_0 Q8_0"},
		{"F16", emb | tt, "Q5_0 F16 F16"},
		{"F16", tied | out, "F16 F16"},
		{"COPY", emb | out | tt, "F32 F32 F32"},
	} {
		names := []string{"token_embd", "per_layer_token_embd", "output"}
		opt := PlanOptions{Recipe: recipe(t, c.recipe), Pure: c.opts&pure != 0}
		if c.opts&tied != 0 {
			names = names[:2]
		}
		if c.opts&emb != 0 {
			opt.TokenEmbeddingType = ptr(gguf.TypeQ5_0)
		}
		if c.opts&out != 0 {
			opt.OutputTensorType = ptr(gguf.TypeQ8_0)
		}
		if c.opts&tt != 0 {
			opt.TensorTypes = []TensorTypeRule{rule}
		}
		types := planTypes(t, modelMeta("llama", ".block_count", 1), weights(names...), opt)
		var got []string
		for _, n := range names {
			got = append(got, types[n].String())
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s, options %b: got %s, want %s", c.recipe, c.opts, g, c.want)
		}
	}
}

func TestCompileTensorRule(t *testing.T) {
	for _, c := range []struct{ rule, yes, no string }{
		{"attn_v=q8_0", "blk.1.attn_v.weight", "blk.1.attn_k.weight"},
		{"ATTN_[VK]$=q8_0", "attn_k", "attn_k.weight"},
		{`^blk\.\D\.=q8_0`, "blk.1.x", "blk.x.x"},
		{`\attn_v=q8_0`, "attn_v", "ttn_v"},
		{"a[]v]=q8_0", "", "av]"},
		{"attn_[^]=q8_0", "attn_k", "attn_"},
		{`[[:digit:]x\]]-=q8_0`, "]-", "a-"},
		{`[\w.]+(?:up|gate)_exps=q8_0`, "blk.0.ffn_up_exps", "blk.0.ffn_down_exps"},
		{`\x41?b=q8_0`, "b", "c"},
	} {
		r, err := CompileTensorRule(c.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Type != gguf.TypeQ8_0 || c.yes != "" && !r.Match(c.yes) || r.Match(c.no) {
			t.Errorf("%s: type %v, %q %v, %q %v", c.rule, r.Type, c.yes, r.Match(c.yes), c.no, r.Match(c.no))
		}
	}
	for _, s := range []string{
		"", "=q8_0", "attn_v", "attn_v=", "attn_v=q9", "attn_v=q6_k=q8_0", "attn_(v=q8_0", "attn_(?!v)=q8_0",
		"attn_(?=v)=q8_0", `(a)\1=q8_0`, "(?i)a=q8_0", `\u0041=q8_0`, "a[v=q8_0", "[[:alpha=q8_0", `a\=q8_0`,
	} {
		if r, err := CompileTensorRule(s); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: got %v, %v, want a usage error", s, r, err)
		}
	}
}
