package eval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/rows"
)

// shape has the differences between made-up models.
type shape struct {
	experts int
	change  func(*model.Model)
}

// made returns a small model of an architecture with made-up weights.
func made(arch string, sh shape) *model.Model {
	m := &model.Model{Path: arch + ".gguf"}
	set := func(key string, v gguf.Value) { m.Metadata.Set(key, v) }
	set("general.architecture", gguf.String(arch))
	for key, n := range map[string]int{"block_count": 2, "embedding_length": 48, "feed_forward_length": 96,
		"attention.head_count": 4, "attention.head_count_kv": 2,
		"context_length": 512, "attention.key_length": 16, "attention.value_length": 16, "expert_count": sh.experts,
		"expert_used_count": min(2, sh.experts)} {
		set(arch+"."+key, gguf.Uint32(uint32(n)))
	}
	if sh.experts > 0 {
		set(arch+".expert_feed_forward_length", gguf.Uint32(96))
	}
	set(arch+"."+epsilonOf(arch), gguf.Float32(1e-5))
	seed := uint32(1)
	add := func(name string, ne ...int64) {
		v := make([]float32, gguf.Rows(ne)*ne[0])
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = float32(int32(seed)>>8) / (1 << 26)
			if len(ne) == 1 {
				v[i]++
			}
		}
		src, err := rows.Reshape(rows.Float32s(v), ne)
		if err != nil {
			panic(err)
		}
		if strings.Contains(name, "ffn_down") {
			src = encoded(v, ne, gguf.TypeQ8_0)
		}
		m.Tensors = append(m.Tensors, model.New(name, src))
	}
	add("token_embd.weight", 48, 300)
	add("output_norm.weight", 48)
	add("output.weight", 48, 300)
	for i := range 2 {
		b := fmt.Sprintf("blk.%d.", i)
		add(b+"attn_norm.weight", 48)
		add(b+"attn_q.weight", 48, 64)
		add(b+"attn_k.weight", 48, 32)
		add(b+"attn_v.weight", 48, 32)
		add(b+"attn_output.weight", 64, 48)
		add(b+"ffn_norm.weight", 48)
		if n := int64(sh.experts); n > 0 {
			add(b+"ffn_gate_inp.weight", 48, n)
			add(b+"ffn_gate_exps.weight", 48, 96, n)
			add(b+"ffn_up_exps.weight", 48, 96, n)
			add(b+"ffn_down_exps.weight", 96, 48, n)
			continue
		}
		add(b+"ffn_gate.weight", 48, 96)
		add(b+"ffn_up.weight", 48, 96)
		add(b+"ffn_down.weight", 96, 48)
	}
	if sh.change != nil {
		sh.change(m)
	}
	return m
}

// gemma2Norms adds the norms of outputs.
func gemma2Norms(m *model.Model) {
	each(m, 1, "post_attention_norm.weight", 48)
	each(m, 1, "post_ffw_norm.weight", 48)
}

// epsilonOf returns the key that the norms of an architecture need.
func epsilonOf(arch string) string {
	if g := graph.Of(arch); g != nil && strings.Contains(string(g.Norm.Eps), string(graph.LayerNorm.Eps[1:])) {
		return "attention.layer_norm_epsilon"
	}
	return "attention.layer_norm_rms_epsilon"
}

// encoded returns values as a tensor of a type.
func encoded(v []float32, ne []int64, t gguf.Type) rows.Source {
	data := make([]byte, gguf.DataBytes(t, ne))
	if err := quants.Lookup(t).Quantize(data, v, int(ne[0]), nil); err != nil {
		panic(err)
	}
	return rows.Stored(ne, t, data, nil)
}

// text is made-up tokens.
func text(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * 7919 % 300)
	}
	return ids
}

// sum returns a hash of the bits of losses.
func sum(p *Perplexity) string {
	h := sha256.New()
	for _, v := range p.Losses {
		binary.Write(h, binary.LittleEndian, math.Float64bits(v))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// TestBits checks that the losses of each position have the same bits in every build, at
// every width of vectors and with any number of workers.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		arch string
		shape
		want string
	}{
		{"llama", shape{}, "01559774c5eb"},
		{"qwen2", shape{}, "a1ae8c8b690f"},
		{"gemma2", shape{change: func(m *model.Model) {
			gemma2Norms(m)
			m.Metadata.Set("gemma2.attention.sliding_window", gguf.Uint32(9))
		}}, "a612085fe189"},
		{"llama", shape{experts: 5}, "468218693f0c"},
	} {
		for _, workers := range []int{1, 3} {
			m, err := New(made(c.arch, c.shape))
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Perplexity(context.Background(), Run{Tokens: text(3 * 80), Chunk: 80, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if got := sum(p); got != c.want {
				t.Errorf("%s of %d experts, %d workers: losses %s, want %s (perplexity %v)", c.arch, c.experts, workers,
					got, c.want, p.Value)
			}
			if p.Chunks != 3 || p.Predicted != 3*39 || !(p.Value > 100 && p.Value < 1000) || !(p.Error > 0) {
				t.Errorf("%s: %+v", c.arch, p)
			}
		}
	}
}

// TestChunksAlone checks that chunks do not see each other, also where they go through
// the layers in several blocks.
func TestChunksAlone(t *testing.T) {
	defer func(n int) { tokensPerBlock = n }(tokensPerBlock)
	tokensPerBlock = 110 // two chunks
	for _, experts := range []int{0, 4} {
		m, err := New(made("llama", shape{experts: experts}))
		if err != nil {
			t.Fatal(err)
		}
		const chunk = 50
		ids := text(3 * chunk)
		all, err := m.Perplexity(context.Background(), Run{Tokens: ids, Chunk: chunk, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		alone, err := m.Perplexity(context.Background(), Run{Tokens: ids[2*chunk:], Chunk: chunk, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		last := *all
		last.Losses = all.Losses[2*len(alone.Losses):]
		if sum(&last) != sum(alone) {
			t.Errorf("%d experts: the last chunk has other losses alone", experts)
		}
	}
}

// TestRefused checks models that the evaluator does not support, and invalid texts.
func TestRefused(t *testing.T) {
	set := func(key string, v gguf.Value) shape {
		return shape{change: func(m *model.Model) { m.Metadata.Set(key, v) }}
	}
	drop := func(name string) shape {
		return shape{change: func(m *model.Model) {
			for i := range m.Tensors {
				if m.Tensors[i].Name == name {
					m.Tensors = append(m.Tensors[:i], m.Tensors[i+1:]...)
					return
				}
			}
		}}
	}
	extra := func(name string, ne ...int64) shape {
		return shape{change: func(m *model.Model) {
			m.Tensors = append(m.Tensors, model.New(name,
				encoded(make([]float32, gguf.Rows(ne)*ne[0]), ne, gguf.TypeF32)))
		}}
	}
	for _, c := range []struct {
		arch string
		shape
		kind error
		want string
	}{
		{"no-such", shape{}, fault.Unsupported, `architecture "no-such" is not supported`},
		{"llama", set("llama.new_feature", gguf.Bool(true)), fault.Unsupported, "llama.new_feature = true"},
		{"llama", set("new.feature", gguf.Bool(true)), fault.Unsupported, "new.feature = true"},
		{"llama", extra("blk.0.new.weight", 48), fault.Unsupported, "blk.0.new.weight"},
		{"qwen3", extra("blk.0.attn_q_norm.weight", 15), fault.Broken, `"blk.0.attn_q_norm.weight" is [15]`},
		{"command-r", shape{experts: 4}, fault.Unsupported, "command-r.expert_feed_forward_length"},
		{"olmo2", shape{}, fault.Broken, "blk.0.attn_q_norm.weight"},
		{"llama", drop("blk.1.attn_k.weight"), fault.Broken, `no tensor "blk.1.attn_k.weight"`},
		{"llama", drop("output_norm.weight"), fault.Broken, `no tensor "output_norm.weight"`},
		{"llama", drop("blk.0.ffn_norm.weight"), fault.Broken, `no tensor "blk.0.ffn_norm.weight"`},
		{"llama", set("llama.block_count", gguf.Uint32(1<<31)), fault.Broken, "llama.block_count"},
		{"llama", set("llama.block_count", gguf.Uint32(9999)), fault.Broken, "tensors"},
		{"llama", set("llama.block_count", gguf.String("2")), fault.Broken, "want a number"},
		{"llama", set("llama.attention.head_count", gguf.Uint32(6)), fault.Broken, "blk.0.attn_q.weight"},
		{"llama", set("llama.attention.head_count", gguf.Uint32(0)), fault.Unsupported, "layer 0 has 0 heads"},
		{"llama", set("llama.attention.head_count_kv", gguf.Uint32(3)), fault.Broken, "want a multiple"},
		{"llama", set("llama.rope.dimension_count", gguf.Uint32(17)), fault.Broken, "17 of the 16"},
		{"llama", set("llama.rope.scaling.type", gguf.String("new")), fault.Unsupported, `"new"`},
		{"llama", set("llama.attention.key_length", gguf.Uint32(1<<20)), fault.Broken, "key"},
	} {
		_, err := New(made(c.arch, c.shape))
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.want) ||
			!strings.Contains(fmt.Sprint(err), ".gguf") {
			t.Errorf("%v, want %v: %s", err, c.kind, c.want)
		}
	}
	m, err := New(made("llama", shape{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run  Run
		want string
	}{
		{Run{Tokens: text(10), Chunk: 64}, "10 tokens"},
		{Run{Tokens: append(text(63), 300), Chunk: 64}, "token 63 of the text is 300"},
		{Run{Tokens: append(text(63), -1), Chunk: 64}, "is -1"},
	} {
		if _, err := m.Perplexity(context.Background(), c.run); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Perplexity(ctx, Run{Tokens: text(64), Chunk: 64}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestNotFinite checks that the error names the tensor whose output is not finite.
func TestNotFinite(t *testing.T) {
	for _, c := range []struct {
		tensor  string
		at      int // index of the value that becomes NaN
		experts int
		want    string
	}{
		{"token_embd.weight", 48*7 + 3, 0, `tensor "token_embd.weight": the row of token 7 is not finite`},
		{"blk.0.attn_norm.weight", 5, 0,
			`layer 0: tensor "blk.0.attn_q.weight": its inputs are not finite`},
		{"blk.1.attn_v.weight", 100, 0, `layer 1: tensor "blk.1.attn_v.weight": its output for token 0 is not finite`},
		{"blk.1.ffn_up.weight", 100, 0, `layer 1: tensor "blk.1.ffn_up.weight": its output for token 0 is not finite`},
		{"blk.1.ffn_gate_inp.weight", 20, 5,
			`layer 1: tensor "blk.1.ffn_gate_inp.weight": the router's output is not a number`},
		{"blk.0.ffn_up_exps.weight", 3*48*96 + 50, 5,
			`layer 0: tensor "blk.0.ffn_up_exps.weight", matrix 3: its output for token 0 is not finite`},
		{"output.weight", 48 * 250, 0, `tensor "output.weight": logits that are not finite`},
	} {
		src := made("llama", shape{experts: c.experts})
		for i := range src.Tensors {
			x := &src.Tensors[i]
			if x.Name != c.tensor {
				continue
			}
			v := make([]float32, gguf.Rows(x.NE)*x.NE[0])
			if err := decode(x, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
				t.Fatal(err)
			}
			v[c.at] = float32(math.NaN())
			*x = model.New(x.Name, rows.Stored(x.NE, gguf.TypeF32, bytesOf(v), nil))
		}
		m, err := New(src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Perplexity(context.Background(), Run{Tokens: text(240), Chunk: 80, Workers: 2})
		if !errors.Is(err, fault.Broken) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("not a number in %s: %v, want %s", c.tensor, err, c.want)
		}
	}
}

func bytesOf(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// TestInputs checks the reported inputs of linear layers.
func TestInputs(t *testing.T) {
	m, err := New(made("llama", shape{experts: 4}))
	if err != nil {
		t.Fatal(err)
	}
	const chunk, chunks = 64, 3
	rows := map[string]int{}
	run := Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: 2, Inputs: func(in Inputs) error {
		if experts := strings.Contains(in.Name, "_exps."); len(in.X) != in.Rows*in.Columns || in.Routed != experts ||
			(in.Matrices == 4) != experts || in.Matrix >= in.Matrices {
			t.Errorf("%s: %d values in %d rows of %d, matrix %d of %d", in.Name, len(in.X), in.Rows, in.Columns,
				in.Matrix, in.Matrices)
		}
		rows[in.Name] += in.Rows
		return nil
	}}
	if _, err := m.Forward(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"blk.0.attn_q.weight": chunk * chunks,
		"blk.1.attn_output.weight": chunk * chunks, "blk.1.ffn_gate_inp.weight": chunk * chunks,
		"blk.0.ffn_up_exps.weight": 2 * chunk * chunks, "blk.1.ffn_down_exps.weight": 2 * chunk * chunks} {
		if rows[name] != want {
			t.Errorf("%s: %d rows, want %d", name, rows[name], want)
		}
	}
	stop := errors.New("enough")
	run.Inputs = func(Inputs) error { return stop }
	if _, err := m.Forward(context.Background(), run); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// rounded gives matrices another type, where their rows fit.
func rounded(t gguf.Type) shape {
	return shape{change: func(m *model.Model) {
		for i := range m.Tensors {
			x := &m.Tensors[i]
			if len(x.NE) < 2 || x.Type != gguf.TypeF32 {
				continue
			}
			v := make([]float32, x.Elements())
			if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
				panic(err)
			}
			if x.NE[0]%t.BlockLen() == 0 {
				*x = model.New(x.Name, encoded(v, x.NE, t))
			}
		}
	}}
}

// TestCompare compares a model with itself, whose divergence is 0, and with others, whose
// figures must be those of both alone.
func TestCompare(t *testing.T) {
	ctx := context.Background()
	run := Run{Tokens: text(4 * 50), Chunk: 50, Workers: 2}
	open := func(sh shape) *Model {
		m, err := New(made("llama", sh))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base, near, far := open(shape{}), open(rounded(gguf.TypeF16)), open(rounded(gguf.TypeBF16))
	var all []*Comparison
	if err := Compare(ctx, base, []*Model{base, near, far}, run,
		func(_ int, c *Comparison) error { all = append(all, c); return nil }); err != nil {
		t.Fatal(err)
	}
	same := all[0]
	if same.Divergence.Mean != 0 || same.Top.Mean != 1 || math.Abs(same.Top5.Mean-1) > 1e-12 ||
		same.LogRatio.Mean != 0 || same.DeltaPRMS != (Figure{}) || same.Quantiles[len(Ranks)-1] != 0 {
		t.Errorf("a model with itself: %+v", same)
	}
	for i, m := range []*Model{base, near, far} {
		p, err := m.Perplexity(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		c := all[i]
		if sum(&c.Model) != sum(p) || c.Model.Value != p.Value || c.Model.Error != p.Error ||
			sum(&c.Base) != sum(&same.Base) {
			t.Errorf("model %d: perplexity %v next to its base, %v alone", i, c.Model.Value, p.Value)
		}
		if got, want := c.LogRatio.Mean, math.Log(c.Model.Value/c.Base.Value); math.Abs(got-want) > 1e-12 {
			t.Errorf("model %d: ratio %v, want %v", i, got, want)
		}
	}
	if !(all[1].Divergence.Mean > 0 && all[2].Divergence.Mean > 4*all[1].Divergence.Mean) ||
		!(all[2].Divergence.Error > 0) {
		t.Errorf("divergence %v of F16, %v of BF16", all[1].Divergence, all[2].Divergence)
	}
	for i := 1; i < len(Ranks); i++ {
		if q := all[2].Quantiles; q[i] < q[i-1] {
			t.Errorf("quantiles %v", q)
		}
	}
	other := open(shape{change: func(m *model.Model) {
		for i := range m.Tensors {
			if x := &m.Tensors[i]; len(x.NE) == 2 && x.NE[1] == 300 {
				*x = model.New(x.Name, encoded(make([]float32, 48*200), []int64{48, 200}, gguf.TypeF32))
			}
		}
	}})
	if err := Compare(ctx, base, []*Model{other}, run, nil); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "200") {
		t.Errorf("other tokens: %v", err)
	}
}

// TestDivergence compares divergences with sums in float64 of softmax by the standard library.
func TestDivergence(t *testing.T) {
	m, err := New(made("llama", shape{}))
	if err != nil {
		t.Fatal(err)
	}
	p, q := make([]float32, 300), make([]float32, 300)
	for i := range p {
		p[i], q[i] = float32(i%37)/5-2, float32(i%41)/6
	}
	soft := func(x []float32) []float64 {
		y, s := make([]float64, len(x)), 0.0
		for i, v := range x {
			y[i] = math.Exp(float64(v))
			s += y[i]
		}
		for i := range y {
			y[i] /= s
		}
		return y
	}
	a, b := soft(p), soft(q)
	var want float64
	for i := range a {
		want += a[i] * math.Log(a[i]/b[i])
	}
	st := &States{model: m}
	d, err := m.comparePosition(st.output(context.Background()), make([]float32, 600), p, q, 7)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(d.divergence-want) > 1e-6*want || math.Abs(d.base+math.Log(a[7])) > 1e-6 ||
		math.Abs(d.deltaP-(b[7]-a[7])) > 1e-8 {
		t.Errorf("%+v, want a divergence of %v", d, want)
	}
	if got := top5([]float32{1, 9, 3, 9, 5, 7, 2}); fmt.Sprint(got) != "[1 3 5 4 2]" {
		t.Errorf("top five %v", got)
	}
	if got := top5([]float32{2, 3}); fmt.Sprint(got) != "[1 0]" {
		t.Errorf("of two %v", got)
	}
}
