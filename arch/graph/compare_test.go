package graph

import (
	"errors"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// compared returns the comparison of a file that has the required tensors of a model, after change.
func compared(t *testing.T, m *Model, kv values, change func(tensors map[string][]int64)) *Comparison {
	t.Helper()
	f := kv.file()
	d := declare(t, m, f)
	f.Tensors = map[string][]int64{}
	for _, x := range d.Tensors() {
		if !x.May {
			f.Tensors[x.Name] = x.NE
		}
	}
	if change != nil {
		change(f.Tensors)
	}
	f.Source = func(key string) string {
		return map[string]string{"embedding_length": "hidden_size"}[key]
	}
	c, err := declare(t, m, f).Compare()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// texts joins errors, which must be of kind fault.Broken.
func texts(t *testing.T, errs ...error) string {
	t.Helper()
	var list []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		if !errors.Is(err, fault.Broken) {
			t.Errorf("%v is not of kind fault.Broken", err)
		}
		list = append(list, err.Error())
	}
	return strings.Join(list, "\n")
}

func TestCompare(t *testing.T) {
	c := compared(t, llama, small, nil)
	if got := texts(t, c.Missing()...); got != "" {
		t.Error(got)
	}
	for _, x := range []struct {
		name string
		ne   []int64
		want string
	}{
		{"blk.0.attn_k.weight", []int64{64, 32}, ""},
		{"blk.0.attn_k.weight", []int64{64, 32, 1, 1}, ""},
		{"no.such.tensor", []int64{1}, ""},
		{"blk.0.attn_k.weight", []int64{64, 64}, `tensor "it": dimensions 64 x 64, want 64 x 32: "made.embedding_length" is ` +
			`64 (from "hidden_size"), "made.attention.head_count" is 4, "made.attention.head_count_kv" is 2`},
		{"blk.1.ffn_down.weight", []int64{64, 96},
			`tensor "it": dimensions 64 x 96, want 96 x 64: "made.embedding_length" is 64 (from "hidden_size"), ` +
				`"made.feed_forward_length" is 96`},
		{"output_norm.bias", []int64{63}, `tensor "it": dimensions 63, want 64: "made.embedding_length" is 64 (from "hidden_size")`},
	} {
		if got := texts(t, c.Tensor(x.name, `"it"`, x.ne)); got != x.want {
			t.Errorf("%s %v: %s\nwant %s", x.name, x.ne, got, x.want)
		}
	}
	for name, want := range map[string]bool{"blk.0.attn_k.weight": true, "blk.0.attn_k.bias": true,
		"blk.2.attn_k.weight": false, "attn_k.weight": false} {
		if c.Declares(name) != want {
			t.Errorf("%s is declared: %v", name, !want)
		}
	}
}

func TestMissing(t *testing.T) {
	c := compared(t, llama, small, func(tensors map[string][]int64) {
		delete(tensors, "blk.0.ffn_norm.weight")
		for name := range tensors {
			if strings.HasPrefix(name, "blk.1.") {
				delete(tensors, name)
			}
		}
	})
	want := `no tensors of layer 1: "made.block_count" is 2
no tensor "blk.0.ffn_norm.weight", of dimensions 64: "made.embedding_length" is 64 (from "hidden_size")`
	if got := texts(t, c.Missing()...); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestDrafts: MTP layers are those of which the file has a tensor. They are no recurrent layers, have no window by a list
// that leaves them out, and may have steps of their own.
func TestDrafts(t *testing.T) {
	local := Attention{Window: Window{Tokens: "n_swa"}, After: []OutStep{OutGate{}}}
	own := decoder(Residual{Part: Choose{{In: Sliding{}, Then: local}, {In: Recurrent{}, Then: Mamba1{}},
		{In: Every{}, Then: Attention{}}}})
	steps := *own
	steps.Draft = []Step{Residual{Pre: norm("other_norm"), Part: Nothing{}}}
	kv := ssm.with(values{"block_count": u32(4), "nextn_predict_layers": u32(2), "full_attention_interval": u32(2),
		"attention.sliding_window": u32(8), swaPattern: gguf.Bools([]bool{true, false})})
	const drafted = `
nextn.eh_proj: 128 x 64
nextn.enorm: 64
nextn.hnorm: 64
`
	for _, c := range []struct {
		m    *Model
		want string
	}{
		{own, drafted + "attn_q: 64 x 64\nattn_k: 64 x 32\nattn_v: 64 x 32\nattn_output: 64 x 64\n"},
		{&steps, drafted + "other_norm: 64\n"},
	} {
		d := declare(t, c.m, kv.file("blk.2.attn_q.weight"))
		drafts, err := d.Drafts()
		if err != nil {
			t.Fatal(err)
		}
		same(t, "layer 2", required(drafts, "blk.2."), c.want)
		if got := required(drafts, "blk.3."); got != "" {
			t.Errorf("layer 3, of which there are no tensors:\n%s", got)
		}
		if _, ok := d.Tensor("blk.2.nextn.enorm.weight"); ok || d.Layers() != 2 {
			t.Error("MTP layers are among the model's layers")
		}
	}
}

// TestDraftsOnly: a file of MTP layers has no other layers.
func TestDraftsOnly(t *testing.T) {
	kv := small.with(values{"block_count": u32(40), "nextn_predict_layers": u32(1)})
	c := compared(t, llama, kv, func(tensors map[string][]int64) {
		for name := range tensors {
			if strings.HasPrefix(name, "blk.") {
				delete(tensors, name)
			}
		}
		tensors["blk.39.nextn.enorm.weight"] = []int64{64}
	})
	got := texts(t, c.Missing()...)
	if strings.Contains(got, "blk.0.") || strings.Contains(got, "layer") ||
		!strings.HasPrefix(got, `no tensor "blk.39.nextn.eh_proj.weight", of dimensions 128 x 64: `) {
		t.Error(got)
	}
}

func TestCompareIgnores(t *testing.T) {
	m := *llama
	m.Unread = []string{"attn_rot_embd", "dec.*", "further"}
	c := compared(t, &m, small, nil)
	for name, want := range map[string]bool{"blk.1.attn_rot_embd.weight": true, "dec.blk.0.attn_q.weight": true,
		"further.weight": true, "blk.0.attn_x.weight": false} {
		if c.Ignores(name) != want {
			t.Errorf("%s is ignored: %v", name, !want)
		}
	}
}
