package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/rows"
)

// sample has a row of every kind.
var sample = &Arch{
	Name:   "sample",
	Rename: []Rename{{Prefix: "transformer.", With: "model."}},
	Drop:   []Drop{{Prefix: "mtp.", Why: "a head for drafts"}},
	Tensors: []TensorRow{
		{HF: "model.embed", GGUF: "token_embd"},
		{HF: "head", GGUF: "output", Optional: true},
		{HF: "model.layers.{bid}.{part}_proj", Parts: []string{"q", "k"}, GGUF: "blk.{bid}.attn_qk", Bias: MayBias},
		{HF: "model.layers.{bid}.experts.{xid}.up", GGUF: "blk.{bid}.ffn_up_exps", If: odd},
		{HF: "model.layers.{bid}.experts.{xid}.down", GGUF: "blk.{bid}.ffn_down_exps", If: odd},
		{HF: "model.layers.{bid}.experts.up_all", GGUF: "blk.{bid}.ffn_up_exps.weight", Exact: true,
			Optional: true, If: odd},
		{HF: "model.layers.{bid}.kv", Split: []Part{{GGUF: "blk.{bid}.attn_k"}, {GGUF: "blk.{bid}.attn_v"}}, If: even,
			Bias: NeedBias},
		{HF: "model.mask"},
	},
}

func odd(l Layer) (bool, error) { return l.Bid%2 == 1, nil }

func even(l Layer) (bool, error) { return l.Bid%2 == 0, nil }

// sampleNames are the tensors of a whole model of two layers with two experts.
var sampleNames = []string{
	"head.weight", "model.layers.0.k_proj.weight", "model.layers.0.kv.bias", "model.layers.0.kv.weight",
	"model.layers.0.q_proj.weight",
	"model.layers.1.experts.0.down.weight", "model.layers.1.experts.0.up.weight",
	"model.layers.1.experts.1.down.weight", "model.layers.1.experts.1.up.weight",
	"model.layers.1.k_proj.weight", "model.layers.1.q_proj.weight", "model.mask", "mtp.0.x.weight", "mtp.1.x.weight",
	"transformer.embed.weight",
}

func layoutOf(t *testing.T, names []string) (*Layout, error) {
	t.Helper()
	c, err := config.Parse([]byte(`{"architectures": ["Sample"], "num_hidden_layers": 2, "num_experts": 2}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sample.Layout(c.View(config.Options{}), names)
}

func TestLayout(t *testing.T) {
	lay, err := layoutOf(t, sampleNames)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range lay.Outputs {
		var from []string
		for _, i := range o.From {
			from = append(from, sampleNames[i])
		}
		got = append(got, fmt.Sprintf("%s < %s", strings.Join(o.Row.Outputs(o.Layer.Bid, o.Suffix), " "),
			strings.Join(from, " ")))
	}
	want := []string{
		"output.weight < head.weight",
		"blk.0.attn_k.bias blk.0.attn_v.bias < model.layers.0.kv.bias",
		"blk.0.attn_k.weight blk.0.attn_v.weight < model.layers.0.kv.weight",
		"blk.0.attn_qk.weight < model.layers.0.q_proj.weight model.layers.0.k_proj.weight",
		// both at the place of the last expert tensor, in the order of the rows
		"blk.1.ffn_up_exps.weight < model.layers.1.experts.0.up.weight model.layers.1.experts.1.up.weight",
		"blk.1.ffn_down_exps.weight < model.layers.1.experts.0.down.weight model.layers.1.experts.1.down.weight",
		"blk.1.attn_qk.weight < model.layers.1.q_proj.weight model.layers.1.k_proj.weight",
		"token_embd.weight < transformer.embed.weight",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(lay.Unmapped) > 0 || len(lay.Missing) > 0 {
		t.Errorf("unmapped %q, missing %q", lay.Unmapped, lay.Missing)
	}
	if want := []Dropped{{"a head for drafts", 2}}; !slices.Equal(lay.Dropped, want) ||
		!lay.Skipped["mtp.1.x.weight"] || lay.Skipped["model.mask"] {
		t.Errorf("dropped %v, skipped %v", lay.Dropped, lay.Skipped)
	}
}

// TestLayoutDefects takes tensors away or adds some.
func TestLayoutDefects(t *testing.T) {
	for name, c := range map[string]struct {
		drop, add         string
		missing, unmapped string
	}{
		"weight":               {"transformer.embed.weight", "", "model.embed.weight", ""},
		"optional":             {"head.weight", "", "", ""},
		"part":                 {"model.layers.1.k_proj.weight", "", "model.layers.1.k_proj.weight", ""},
		"part of a bias":       {"", "model.layers.0.q_proj.bias", "model.layers.0.k_proj.bias", ""},
		"expert":               {"model.layers.1.experts.1.up.weight", "", "model.layers.1.experts.1.up.weight", ""},
		"bias":                 {"model.layers.0.kv.bias", "", "model.layers.0.kv.bias", ""},
		"expert too many":      {"", "model.layers.1.experts.2.up.weight", "", "model.layers.1.experts.2.up.weight"},
		"layer without":        {"", "model.layers.0.experts.0.up.weight", "", "model.layers.0.experts.0.up.weight"},
		"layer beyond":         {"", "model.layers.2.k_proj.weight", "", "model.layers.2.k_proj.weight"},
		"bias where none is":   {"", "transformer.embed.bias", "", "transformer.embed.bias"},
		"suffix of exact name": {"", "model.mask.weight", "", "model.mask.weight"},
	} {
		names := slices.DeleteFunc(slices.Clone(sampleNames), func(s string) bool { return s == c.drop })
		if c.add != "" {
			names = append(names, c.add)
		}
		lay, err := layoutOf(t, names)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(lay.Missing, " "); got != c.missing {
			t.Errorf("%s: missing %q, want %q", name, got, c.missing)
		}
		if got := strings.Join(slices.Concat(lay.Unmapped, lay.ExtraExperts), " "); got != c.unmapped {
			t.Errorf("%s: unmapped %q, want %q", name, got, c.unmapped)
		}
		if expert := name == "expert too many"; expert != (len(lay.ExtraExperts) > 0) {
			t.Errorf("%s: beyond the experts %q", name, lay.ExtraExperts)
		}
	}
}

// TestLayoutOther takes the experts in the other form, as one tensor: then the
// separate ones are not missed.
func TestLayoutOther(t *testing.T) {
	names := slices.DeleteFunc(slices.Clone(sampleNames), func(s string) bool { return strings.Contains(s, ".up") })
	lay, err := layoutOf(t, append(names, "model.layers.1.experts.up_all"))
	if err != nil || len(lay.Missing) > 0 {
		t.Errorf("missing %q, %v", lay.Missing, err)
	}
}

func TestLayoutSamePlace(t *testing.T) {
	_, err := layoutOf(t, append(slices.Clone(sampleNames), "model.embed.weight"))
	if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), "transformer.embed.weight") {
		t.Errorf("got %v", err)
	}
}

// TestBuild joins and splits.
func TestBuild(t *testing.T) {
	half := func(name string, a, b int64) *Transform {
		return &Transform{Name: name, Forward: func(_ Layer, s rows.Source) (rows.Source,
			error) {
			return rows.Slice(s, 0, a, b)
		}}
	}
	o := Output{Row: &TensorRow{HF: "l.{bid}.{part}", Parts: []string{"q", "k"}, Split: []Part{
		{GGUF: "blk.{bid}.a", Transform: half("first", 0, 3)}, {GGUF: "blk.{bid}.b", Transform: half("rest", 3, 4)},
	}}, Layer: Layer{nil, 7}, Suffix: ".weight"}
	out, err := o.Build([]rows.Source{rows.Float32s([]float32{1, 2}), rows.Float32s([]float32{3, 4})})
	if err != nil || len(out) != 2 || out[0].Name != "blk.7.a.weight" || out[1].Name != "blk.7.b.weight" {
		t.Fatalf("%+v %v", out, err)
	}
	x := make([]float32, 3)
	if err := rows.Decode(out[0].Source, x, new([]byte), 0, 1); err != nil || !slices.Equal(x, []float32{1, 2, 3}) {
		t.Errorf("%v %v", x, err)
	}
	_, err = o.Build([]rows.Source{rows.Float32s([]float32{1}), rows.Float32s([]float32{3})})
	if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), "first") {
		t.Errorf("a shape that does not split: %v", err)
	}
}

// TestKeepF32 recognizes weights that the runtime reads in F32 by their place.
func TestKeepF32(t *testing.T) {
	matrix := []int64{4, 4}
	for name, want := range map[string]bool{
		"blk.3.attn_q.weight": false, "blk.3.attn_q.bias": true, "blk.3.attn_q_norm.weight": true,
		"blk.3.ffn_gate_inp.weight": true,
		"ffn_gate_inp.weight":       true, "position_embd.weight": true, "token_embd.weight": false,
		"blk.3.ssm_a":               true,
		"blk.x.ffn_gate_inp.weight": false,
	} {
		if got := KeepF32(name, matrix); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !KeepF32("blk.3.attn_q.weight", []int64{4}) {
		t.Error("a vector")
	}
}

// TestExpect compares values of config.json with what an architecture does.
func TestExpect(t *testing.T) {
	for value, want := range map[string]bool{
		"7": true, "7.00": true, "0.7e1": true, `"7"`: true, "7.5": false, "true": false, `"7.00"`: false, "null": true,
		"[0, Infinity]": true, "[0.00, Infinity]": true, "[0.0, 1e30]": false, "1e999": false, "[]": false,
	} {
		c, err := config.Parse([]byte(`{"architectures": ["Sample"], "key": `+value+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = Expect{Key: "key", Values: []string{"7", "[0 Infinity]"}}.check(sample, c.View(config.Options{}))
		if (err == nil) != want || err != nil && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
