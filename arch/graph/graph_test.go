package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/model/limits"
)

// values are metadata below the architecture "made".
type values map[string]gguf.Value

func u32(n uint32) gguf.Value  { return gguf.Uint32(n) }
func f32(x float32) gguf.Value { return gguf.Float32(x) }

// with returns the keys and more.
func (v values) with(more values) values {
	c := maps.Clone(v)
	maps.Copy(c, more)
	return c
}

func (v values) without(key string) values {
	c := maps.Clone(v)
	delete(c, key)
	return c
}

// file returns a file with these tensors, each of one value, and others outside of layers, as many as the largest
// number of layers needs. Without names the tensors of the file are unknown.
func (v values) file(names ...string) *File {
	f := NewFile(v.metadata(), nil)
	if len(names) == 0 {
		return f
	}
	for _, name := range names {
		f.Tensors[name] = []int64{1}
	}
	for i := range limits.MaxLayers {
		f.Tensors[fmt.Sprintf("other.%d", i)] = []int64{1}
	}
	return f
}

func (v values) metadata() gguf.Metadata {
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("made")}}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		name := key
		if !strings.HasPrefix(key, "xielu.") && !strings.HasPrefix(key, "tokenizer.") {
			name = "made." + key
		}
		m = append(m, gguf.KV{Key: name, Value: v[key]})
	}
	return m
}

// small are the keys of a model of two layers.
var small = values{
	"block_count": u32(2), "context_length": u32(512), "embedding_length": u32(64), "feed_forward_length": u32(96),
	"attention.head_count": u32(4), "attention.head_count_kv": u32(2), "vocab_size": u32(10),
	"attention.layer_norm_rms_epsilon": f32(1e-5),
}

func norm(name string) Norm { return Norm{Name: name} }

// preNorm are the steps of a pre-norm layer.
func preNorm(mixer, feed Part) []Step {
	return []Step{Residual{Pre: norm("attn_norm"), Part: mixer}, Residual{Pre: norm("ffn_norm"), Part: feed}}
}

// decoder returns a model of these steps.
func decoder(steps ...Step) *Model {
	return &Model{Reads: ByName, Norm: RMS, Layer: steps, Final: []Step{Normalize{norm("output_norm")}}, Head: LM{}}
}

// mixer returns a model of layers that have nothing but a mixer.
func mixer(p Part) *Model { return decoder(Residual{Part: p}) }

var (
	swiGLU = FFN{Act: SiLU}
	rope   = RoPE{Pairs: Interleaved}
	llama  = decoder(preNorm(Attention{Steps: []HeadStep{rope}}, Choose{
		{In: Has("ffn_gate_inp"), Then: MoE{Router: Router{Score: Softmax, TopKNorm: true}, Experts: swiGLU}},
		{In: Every{}, Then: swiGLU}})...)
)

// declare is Declare for files that are right. All keys that were read are keys of the model.
func declare(t *testing.T, m *Model, f *File) *Decl {
	t.Helper()
	d, err := Declare(m, f)
	if err != nil {
		t.Fatal(err)
	}
	checkKeys(t, m, d)
	return d
}

func checkKeys(t *testing.T, m *Model, d *Decl) {
	t.Helper()
	all := Keys(m)
	for _, key := range d.Keys() {
		if !slices.Contains(all, key) {
			t.Errorf("Declare reads %q, which is no key of the model", key)
		}
	}
}

// required lists the required tensors below a prefix, which is cut: a line for each.
func required(d *Decl, prefix string) string {
	var b strings.Builder
	for _, x := range d.Tensors() {
		name, ok := strings.CutPrefix(x.Name, prefix)
		if ok && !x.May && strings.HasPrefix(x.Name, "blk.") == strings.HasPrefix(prefix, "blk.") {
			fmt.Fprintf(&b, "%s: %s\n", strings.TrimSuffix(name, ".weight"), gguf.Shape(x.NE))
		}
	}
	return b.String()
}

// same compares lists of lines.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("%s:\n%swant:\n%s", what, got, want)
	}
}

func TestLlama(t *testing.T) {
	d := declare(t, llama, small.file())
	if d.Layers() != 2 {
		t.Errorf("%d layers", d.Layers())
	}
	same(t, "outside of layers", required(d, ""), `
token_embd: 64 x 10
output_norm: 64
`)
	same(t, "layer 1", required(d, "blk.1."), `
attn_norm: 64
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_output: 64 x 64
ffn_norm: 64
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
`)
	for name, want := range map[string]Tensor{
		"output.weight":              {NE: []int64{64, 10}, Role: OutputRole, May: true},
		"rope_freqs.weight":          {NE: []int64{8}, Role: NormRole, May: true},
		"cls.weight":                 {NE: []int64{64, 64}, May: true},
		"cls.output.weight":          {NE: []int64{64, 1}, May: true},
		"dense_2.weight":             {NE: []int64{64, 64}, May: true},
		"token_embd.weight":          {NE: []int64{64, 10}, Role: EmbeddingRole},
		"blk.0.attn_q.weight":        {NE: []int64{64, 64}, Role: QueryRole},
		"blk.0.attn_q.bias":          {NE: []int64{64}, Role: NormRole, May: true},
		"blk.0.attn_q.scale":         {NE: []int64{1}, Role: NormRole, May: true},
		"blk.0.ffn_down.input_scale": {NE: []int64{1}, Role: NormRole, May: true},
		"blk.0.ffn_down.bias":        {NE: []int64{64}, Role: NormRole, May: true},
		"blk.1.attn_norm.bias":       {NE: []int64{64}, Role: NormRole, May: true},
	} {
		got, ok := d.Tensor(name)
		if !ok || !slices.Equal(got.NE, want.NE) || got.Role != want.Role || got.May != want.May || got.Name != name {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range []string{"token_embd.bias", "blk.2.attn_norm.weight", "blk.0.attn_qkv.weight",
		"blk.0.attn_norm.scale", "blk.0.ffn_gate_inp.weight"} {
		if x, ok := d.Tensor(name); ok {
			t.Errorf("%+v is declared", x)
		}
	}
	if want := []Cache{{Layer: 0, Keys: 32, Vals: 32}, {Layer: 1, Keys: 32, Vals: 32}}; !slices.Equal(d.Caches(),
		want) {
		t.Errorf("caches %+v, want %+v", d.Caches(), want)
	}
	seen := map[string]bool{}
	for _, x := range d.Tensors() {
		if seen[x.Name] {
			t.Errorf("%s is declared twice", x.Name)
		}
		seen[x.Name] = true
	}
}

// Lists have an element for each layer, other keys the same value for all.
func TestLists(t *testing.T) {
	kv := small.with(values{"attention.head_count_kv": gguf.Int32s([]int32{4, 1, 7}), // one for an MTP layer
		"block_count": u32(3), "nextn_predict_layers": u32(1), "attention.key_length": u32(8)})
	d := declare(t, llama, kv.file())
	if want := []Cache{{Layer: 0, Keys: 32, Vals: 64}, {Layer: 1, Keys: 8, Vals: 16}}; !slices.Equal(d.Caches(), want) {
		t.Errorf("caches %+v, want %+v", d.Caches(), want)
	}
	for n, want := range map[Num]float64{"@attention.head_count_kv": 1, "^attention.head_count_kv": 7,
		"#attention.head_count_kv": 3, "i": 1, "pos + 1": 6, "n_layer": 2, "@attention.layer_norm_rms_epsilon * 0": 0,
		"": 1} {
		s := d.At(1).AtPosition(5)
		if got := s.Float(n); got != want || s.Layer() != 1 {
			t.Errorf("%q is %v in layer %d, want %v", n, got, s.Layer(), want)
		}
	}
	if v, ok := d.Value("@attention.head_count_kv"); !ok || v.Float() != 4 { // the first, outside of layers
		t.Errorf("%v %v", v, ok)
	}
	if d.Err() != nil {
		t.Error(d.Err())
	}
	if d.At(0).Float("@nowhere"); d.Err() == nil || !strings.Contains(d.Err().Error(), `no key "made.nowhere"`) {
		t.Errorf("%v for a missing key", d.Err())
	}
}

// The tensors of a file decide between dimensions, and which optional parts there are.
func TestPresent(t *testing.T) {
	kv := small.with(values{"expert_count": u32(8), "expert_used_count": u32(2), "expert_feed_forward_length": u32(32)})
	d := declare(t, llama, kv.file("blk.1.ffn_gate_inp.weight", "blk.1.attn_qkv.weight"))
	same(t, "layer 1", required(d, "blk.1."), `
attn_norm: 64
attn_qkv: 64 x 128
attn_output: 64 x 64
ffn_norm: 64
ffn_gate_inp: 64 x 8
ffn_gate_exps: 64 x 32 x 8
ffn_up_exps: 64 x 32 x 8
ffn_down_exps: 32 x 64 x 8
`)
	for name, want := range map[string]int64{"blk.1.ffn_up_exps.bias": 32, "blk.1.ffn_up_exps.scale": 8} {
		if x, _ := d.Tensor(name); len(x.NE) == 0 || x.NE[0] != want || !x.May {
			t.Errorf("%s: %+v", name, x)
		}
	}
	if x, _ := d.Tensor("blk.0.ffn_up.weight"); x.Role != UpRole {
		t.Errorf("layer 0 has no dense network: %+v", x)
	}
	d = declare(t, mixer(FFN{Act: GELU}), small.file("blk.0.ffn_up.weight"))
	same(t, "fused", required(d, "blk.0."), "ffn_up: 64 x 192\nffn_down: 96 x 64\n")
	d = declare(t, mixer(FFN{Act: GELU, Gate: NoGate}), small.file("blk.0.ffn_up.weight"))
	same(t, "no gate", required(d, "blk.0."), "ffn_up: 64 x 96\nffn_down: 96 x 64\n")
	d = declare(t, decoder(Normalize{norm("ffn_norm")}), small.file("blk.0.ffn_norm"))
	same(t, "no ending", required(d, "blk.0."), "ffn_norm: 64\n")
	if _, ok := d.Tensor("blk.0.ffn_norm"); !ok {
		t.Error("a norm without an ending is declared with one")
	}
	qkNorm := mixer(Attention{Steps: []HeadStep{QKNorm{}}, After: []OutStep{OutGate{}}})
	file := small.file()
	for _, ne := range [][]int64{{16}, {16, 4}, {64}, {64, 1}} {
		file.Tensors = map[string][]int64{"blk.0.attn_q_norm.weight": ne, "blk.1.a": {1}, "blk.1.b": {1}}
		d := declare(t, qkNorm, file)
		if x, _ := d.Tensor("blk.0.attn_q_norm.weight"); !x.Fits(ne) {
			t.Errorf("norm of queries %v, want %v", x.NE, ne)
		}
	}
	for _, ne := range [][]int64{{64, 64}, {64, 4}} {
		file.Tensors = map[string][]int64{"blk.0.attn_gate.weight": ne, "blk.1.a": {1}, "blk.1.b": {1}}
		if x, _ := declare(t, qkNorm, file).Tensor("blk.0.attn_gate.weight"); !slices.Equal(x.NE, ne) {
			t.Errorf("gates %v, want %v", x.NE, ne)
		}
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		want, have []int64
		fits       bool
	}{
		{[]int64{8}, []int64{8}, true}, {[]int64{8}, []int64{8, 1, 1}, true}, {[]int64{8, 1}, []int64{8}, true},
		{[]int64{8}, []int64{8, 2}, false}, {[]int64{8}, nil, false}, {[]int64{1}, nil, true},
		{[]int64{8, Any}, []int64{8, 5}, true}, {[]int64{8, Any}, []int64{8}, true},
		{[]int64{8, Any}, []int64{7, 5}, false}, {[]int64{Any}, []int64{8, 2}, false},
	} {
		if x := (Tensor{NE: c.want}); x.Fits(c.have) != c.fits {
			t.Errorf("%v fits %v: %v", c.have, c.want, !c.fits)
		}
	}
}

// TestLayers has a model of six layers. A window is "w".
func TestLayers(t *testing.T) {
	flags := gguf.Bools([]bool{true, false, false, true, true, false, true})
	swa := func(pattern gguf.Value) values {
		return values{"attention.sliding_window": u32(100), "attention.sliding_window_pattern": pattern}
	}
	window := values{"attention.sliding_window": u32(100)}
	for _, c := range []struct {
		in   Layers
		kv   values
		want string
	}{
		{Every{}, nil, "wwwwww"},
		{Where("i mod 4 = 3"), nil, "...w.."},
		{Where("@nowhere = 0"), nil, "......"},
		{Where("n_head_kv = 0"), values{"attention.head_count_kv": gguf.Int32s([]int32{2, 0, 2, 0, 0, 2})}, ".w.ww."},
		{Has("attn_sinks"), nil, "..w..."},
		{Not{Has("attn_sinks")}, nil, "ww.www"},
		{Not{Not{Where("i < 2")}}, nil, "ww...."},
		{Sliding{N: 3}, window, "ww.ww."},
		{Sliding{N: 3, First: true}, window, ".ww.ww"},
		{Sliding{N: 1}, window, "......"},
		{Sliding{N: 3}, nil, "......"},
		{Sliding{N: 3}, values{"attention.sliding_window": u32(0)}, "......"},
		{Sliding{N: 3}, swa(u32(2)), "w.w.w."},
		{Sliding{N: 3, First: true}, swa(u32(2)), ".w.w.w"},
		{Sliding{N: 3}, swa(u32(0)), "wwwwww"},
		{Sliding{N: 3}, swa(flags), "w..ww."},
		{Sliding{First: true}, swa(flags), "w..ww."},
		{Sliding{}, swa(gguf.Int32s([]int32{0, 1, 1, 1, 0, 2})), ".www.w"},
		{Sliding{}, nil, "......"}, // no windows, so no list
		{Recurrent{}, values{"attention.recurrent_layers": flags}, "w..ww."},
		{Recurrent{}, values{"full_attention_interval": u32(4)}, "www.ww"},
		{Recurrent{}, values{"attention.head_count_kv": gguf.Int32s([]int32{2, 0, 2, 0, 0, 2})}, ".w.ww."},
		{Recurrent{}, nil, "......"},
	} {
		m := mixer(Choose{{In: c.in, Then: Attention{Window: Window{Tokens: "n_swa"}}},
			{In: Every{}, Then: Attention{}}})
		d := declare(t, m, small.with(values{"block_count": u32(6)}).with(c.kv).file("blk.2.attn_sinks.weight"))
		var got strings.Builder
		for i := range d.Layers() {
			if d.At(i).In(c.in) {
				got.WriteByte('w')
			} else {
				got.WriteByte('.')
			}
		}
		if got.String() != c.want {
			t.Errorf("%#v, %v: layers %s, want %s", c.in, c.kv, got.String(), c.want)
		}
		if _, ok := c.in.(Sliding); !ok {
			continue
		}
		for i, cache := range d.Caches() {
			if wide := c.want[i] == 'w'; wide != (cache.Window == 100) {
				t.Errorf("%#v: layer %d keeps %d tokens", c.in, i, cache.Window)
			}
		}
		if len(d.Caches()) != 6 {
			t.Errorf("%#v: %d caches", c.in, len(d.Caches()))
		}
	}
}

// Choose, ChooseStep, On and OnScores have the steps of a layer.
func TestChoose(t *testing.T) {
	first, later := Where("i = 0"), Where("i < 2")
	m := decoder(ChooseStep{
		{In: first, Steps: []Step{Normalize{norm("a")}}},
		{In: later, Steps: []Step{ChooseStep{{In: Every{},
			Steps: []Step{Normalize{norm("b")}, Normalize{norm("c")}}}}}},
	}, Residual{Part: Choose{{In: first, Then: Choose{{In: later, Then: swiGLU}}}}})
	d := declare(t, m, small.with(values{"block_count": u32(3)}).file())
	var got []string
	for i := range 3 {
		s := d.At(i)
		got = append(got, fmt.Sprintf("%d %T", len(s.Steps(m.Layer)), s.Part(m.Layer[1].(Residual).Part)))
	}
	if want := "[2 graph.FFN 3 graph.Nothing 1 graph.Nothing]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
	same(t, "layer 1", required(d, "blk.1."), "b: 64\nc: 64\n")
	same(t, "layer 2", required(d, "blk.2."), "")

	heads := []HeadStep{On{In: Every{}, Steps: []HeadStep{On{In: first, Steps: []HeadStep{rope}}, QKNorm{}}}}
	scores := []ScoreStep{OnScores{In: first, Steps: []ScoreStep{Sinks{}}}, SoftCap{By: "50"}}
	for i, want := range []int{2, 1} {
		if h, s := d.At(i).HeadSteps(heads), d.At(i).ScoreSteps(scores); len(h) != want || len(s) != want {
			t.Errorf("layer %d: %v and %v, want %d each", i, h, s, want)
		}
	}
	d = declare(t, mixer(Attention{Steps: heads, Scores: scores}), small.file())
	for i, want := range []bool{true, false} {
		if _, ok := d.Tensor(fmt.Sprintf("blk.%d.attn_sinks.weight", i)); ok != want {
			t.Errorf("layer %d has sinks: %v", i, ok)
		}
	}
}

func TestIgnores(t *testing.T) {
	m := &Model{Unread: []string{"attention.sliding_window", "dec.*", "output.weight", "mtp"}}
	for name, want := range map[string]bool{"attention.sliding_window": true, "attention.sliding_window_pattern": false,
		"dec.blk.0.attn_q.weight": true, "dec": false, "output.weight": true, "output": true, "mtp.weight": true,
		"mtp_norm.weight": false} {
		if m.Ignores(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestNewFile(t *testing.T) {
	tokens := gguf.Strings([]string{"a", "b", "c"})
	embd := gguf.Tensor{Name: "token_embd.weight", NE: []int64{64, 5}}
	for _, c := range []struct {
		kv      values
		tensors []*gguf.Tensor
		want    int64
	}{
		{values{"tokenizer.ggml.tokens": tokens, "vocab_size": u32(9)}, []*gguf.Tensor{&embd}, 5},
		{values{"tokenizer.ggml.tokens": tokens, "vocab_size": u32(9)}, nil, 3},
		{values{"vocab_size": u32(9)}, nil, 9},
		{nil, nil, 0},
	} {
		f := NewFile(c.kv.metadata(), slices.Values(c.tensors))
		if f.Vocab != c.want || f.Arch != "made" || len(f.Tensors) != len(c.tensors) {
			t.Errorf("%+v, want %d tokens", f, c.want)
		}
	}
	d := declare(t, llama, small.without("vocab_size").file())
	if x, _ := d.Tensor("token_embd.weight"); x.NE[1] != Any {
		t.Errorf("%+v without a number of tokens", x)
	}
}
