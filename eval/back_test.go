package eval

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
)

// slopes are gradients of a loss w.r.t. tensors, in float64, summed over tokens.
type slopes map[string][]float64

// gradients runs a model backwards and returns its loss and the gradients w.r.t. the weights of
// linear layers and norms, and the embeddings.
func gradients(t *testing.T, m *model.Model, g Gradients) (float64, slopes) {
	t.Helper()
	e, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	all := slopes{}
	of := func(name string) []float64 {
		if all[name] == nil {
			for i := range m.Tensors {
				if m.Tensors[i].Name == name {
					all[name] = make([]float64, m.Tensors[i].Elements())
				}
			}
		}
		return all[name]
	}
	g.Linear = func(l LinearGradient) error {
		k, n := len(l.X)/l.Rows, len(l.G)/l.Rows
		w := of(l.Name)[l.Matrix*k*n:][:k*n]
		for t := range l.Rows {
			for r, d := range l.G[t*n:][:n] {
				for i, x := range l.X[t*k:][:k] {
					w[r*k+i] += float64(d) * float64(x)
				}
			}
		}
		return nil
	}
	g.Embeddings = func(first int, d []float32) error {
		w, width := of("token_embd.weight"), e.p.width
		for t := range len(d) / width {
			for i, v := range d[t*width:][:width] {
				w[int(g.Tokens[first+t])*width+i] += float64(v)
			}
		}
		return nil
	}
	g.Norms = func(name string, d []float64) error {
		w := of(name)
		if len(w) != len(d) {
			t.Errorf("%s: %d derivatives for %d weights", name, len(d), len(w))
		}
		for i, v := range d {
			w[i] += v
		}
		return nil
	}
	loss, err := e.Backward(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	return loss, all
}

// lossOf returns the loss of a model whose tensors are moved by step times their directions.
func lossOf(t *testing.T, m *model.Model, g Gradients, directions slopes, step float64) float64 {
	t.Helper()
	moved := *m
	moved.Tensors = slices.Clone(m.Tensors)
	for i := range moved.Tensors {
		x := &moved.Tensors[i]
		d := directions[x.Name]
		if d == nil {
			continue
		}
		v := make([]float32, x.Elements())
		if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
			t.Fatal(err)
		}
		for i := range v {
			v[i] = float32(float64(v[i]) + step*d[i])
		}
		*x = model.New(x.Name, rows.Stored(x.NE, gguf.TypeF32, bytesOf(v), nil))
	}
	e, err := New(&moved)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Forward(context.Background(), g.Run)
	if err != nil {
		t.Fatal(err)
	}
	keep := g.Chunk - g.First
	losses := make([]float64, s.Rows)
	if err := s.Logits(context.Background(), func(row int, logits []float32) error {
		at := row/keep*g.Chunk + g.First + row%keep
		if at%g.Chunk == g.Chunk-1 {
			return nil
		}
		var err error
		losses[row], err = e.loss(logits, int(g.Tokens[at+1]))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, l := range losses {
		sum += l
	}
	return sum
}

// checkSlopes compares gradients with finite differences of the loss. Tensors are moved together,
// along the signs of their gradients and so far that each changes the loss as much: no part
// hides another. If they disagree, tensors are moved alone.
func checkSlopes(t *testing.T, m *model.Model, g Gradients, tensors func(name string) bool) {
	t.Helper()
	_, all := gradients(t, m, g)
	directions := slopes{}
	for name, d := range all {
		if tensors != nil && !tensors(name) {
			continue
		}
		direction, total := make([]float64, len(d)), 0.0
		seed := uint32(7)
		for i, v := range d {
			seed = seed*1664525 + 1013904223
			if v != 0 {
				direction[i] = math.Copysign(0.5+float64(seed)/(1<<33), v)
			}
			total += direction[i] * v
		}
		if total == 0 {
			t.Errorf("%s: no gradient", name)
			continue
		}
		for i := range direction {
			direction[i] /= total
		}
		directions[name] = direction
	}
	off := func(directions slopes, far float64) float64 {
		step := far / float64(len(directions))
		at := func(k float64) float64 { return lossOf(t, m, g, directions, k*step) }
		got := (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * step)
		return math.Abs(got/float64(len(directions)) - 1)
	}
	e := off(directions, 0.5)
	t.Logf("%d tensors: off by %.2g", len(directions), e)
	limit := 2e-4
	if m.Architecture() == "smallthinker" {
		limit = 2e-3 // ReLU's derivative has a step
	}
	if m.Architecture() == "llama-all" { // the derivative of its clamps, by norms, has a step
		linear := maps.Clone(directions)
		maps.DeleteFunc(linear, func(name string, _ []float64) bool { return strings.Contains(name, "norm") })
		if d := off(linear, 0.5); !(d < limit) {
			t.Errorf("without norms off by %.2g, want less than %.2g", d, limit)
		}
		limit = 2e-3
	}
	if !(e < limit) {
		for name, direction := range directions {
			t.Errorf("%s: off by %.2g", name, off(slopes{name: direction}, 0.1))
		}
	}
}

// add adds a tensor with made-up values around middle, in place of one of that name.
func add(m *model.Model, middle float32, name string, ne ...int64) {
	m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool { return x.Name == name })
	v := make([]float32, gguf.Rows(ne)*ne[0])
	seed := uint32(len(name)*1000 + len(v))
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = middle + float32(int32(seed)>>8)/(1<<26)
	}
	m.Tensors = append(m.Tensors, model.New(name, rows.Stored(ne, gguf.TypeF32, bytesOf(v), nil)))
}

// without removes tensors.
func without(m *model.Model, names ...string) {
	m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(x.Name, n) })
	})
}

// each adds a tensor to both layers.
func each(m *model.Model, middle float32, name string, ne ...int64) {
	for i := range 2 {
		add(m, middle, fmt.Sprintf("blk.%d.%s", i, name), ne...)
	}
}

// init adds the graphs of made-up architectures, whose files may have many keys and tensors.
func init() {
	scaled := func(norm graph.Norm, part graph.Part, post string) graph.Step {
		r := graph.Residual{Pre: norm, Part: part, Scale: "@residual_scale or 1"}
		return graph.ChooseStep{{In: graph.Has(post), Steps: []graph.Step{graph.Residual{Pre: norm, Part: part,
			Post: graph.Norm{Name: post}, Scale: r.Scale}}}, {In: graph.Every{}, Steps: []graph.Step{r}}}
	}
	attention := graph.Attention{
		Steps: []graph.HeadStep{graph.Clamp{By: "@attention.clamp_kqv or 0"}, graph.QKNorm{May: true}},
		Scores: []graph.ScoreStep{graph.SoftCap{By: "@attn_logit_softcapping or 0"},
			graph.ALiBi{Max: "@attention.max_alibi_bias or 0"},
			graph.OnScores{In: graph.Has("attn_sinks"), Steps: []graph.ScoreStep{graph.Sinks{}}}},
	}
	all := func(p graph.Pairs, r graph.Router, s graph.Shared, embedding graph.Norm) *graph.Model {
		attention := attention
		attention.Steps = append(slices.Clone(attention.Steps), graph.RoPE{Pairs: p})
		experts := graph.MoE{Router: r, Experts: graph.FFN{Act: graph.SiLU}, Shared: s}
		return &graph.Model{
			Reads: graph.ByName, Norm: graph.RMS,
			Embed: graph.Embedding{Scale: "@embedding_scale or 1", Norm: embedding},
			Layer: []graph.Step{
				scaled(graph.Norm{Name: "attn_norm"}, attention, "post_attention_norm"),
				scaled(graph.Norm{Name: "ffn_norm"}, graph.Choose{{In: graph.Has("ffn_gate_inp"), Then: experts},
					{In: graph.Every{}, Then: experts.Experts}}, "post_ffw_norm"),
			},
			Final: []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "output_norm"}}},
			Head:  graph.LM{Scale: "1 / (@logit_scale or 1)", SoftCap: "@final_logit_softcapping or 0"},
		}
	}
	topK := graph.Router{Score: graph.Softmax, Bias: true, TopKNorm: true}
	made := map[string]*graph.Model{
		"llama-all": all(graph.Interleaved, topK, graph.NoShared, graph.Norm{Name: "token_embd_norm"}),
		"llama-never": {Norm: graph.RMS, Final: []graph.Step{graph.Normalize{Norm: graph.Norm{Name: "output_norm"}}},
			Layer: []graph.Step{
				graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.Attention{
					Steps: []graph.HeadStep{graph.QKLayerNorm{Eps: "0.01"}, graph.RoPE{Pairs: graph.Interleaved}}}},
				graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: graph.FFN{Act: graph.SiLU}},
			}, Head: graph.LM{Never: graph.TokenRange{From: 3, End: 7}}}, // none is in a text
		"llama-all-moe": all(graph.Interleaved, topK, graph.NoShared, graph.Norm{}),
		"qwen2moe-all":  all(graph.NeoX, graph.Router{Score: graph.Softmax, Bias: true}, graph.NoShared, graph.Norm{}),
	}
	names, mu, copies := graph.Names(), new(sync.Mutex), map[string]*graph.Model{}
	graph.Provide(func() []string { return names }, func(name string) *graph.Model {
		if m := made[name]; m != nil {
			return m
		}
		mu.Lock()
		defer mu.Unlock()
		m := arch.Graph(name)
		if m != nil && copies[name] == nil {
			c := *m
			c.Layer = biased(m.Layer)
			copies[name] = &c
		}
		return copies[name]
	})
}

// biased returns steps whose routers all have a correction bias, by which tests fix the choice of experts.
func biased(steps []graph.Step) []graph.Step {
	var part func(p graph.Part) graph.Part
	part = func(p graph.Part) graph.Part {
		switch p := p.(type) {
		case graph.MoE:
			p.Router.Bias = true
			return p
		case graph.Choose:
			p = slices.Clone(p)
			for i := range p {
				p[i].Then = part(p[i].Then)
			}
			return p
		}
		return p
	}
	steps = slices.Clone(steps)
	for i, s := range steps {
		if r, ok := s.(graph.Residual); ok {
			r.Part = part(r.Part)
			steps[i] = r
		}
	}
	return steps
}

// backModels are made-up models that together have every part of a graph.
var backModels = []struct {
	name, arch string
	shape
}{
	{"llama", "llama", shape{}},
	{"all attention options", "llama-all", shape{change: func(m *model.Model) {
		for k, v := range map[string]float32{"attn_logit_softcapping": 0.7, "final_logit_softcapping": 3,
			"attention.clamp_kqv": 0.9, "embedding_scale": 3, "residual_scale": 0.6, "logit_scale": 0.7,
			"attention.max_alibi_bias": 4} {
			m.Metadata.Set("llama-all."+k, gguf.Float32(v))
		}
		add(m, 1, "token_embd_norm.weight", 48)
		each(m, 0, "attn_q.bias", 64)
		each(m, 0, "attn_sinks.weight", 4)
		each(m, 1, "attn_q_norm.weight", 16)
		each(m, 1, "attn_k_norm.weight", 16, 2)
		each(m, 1, "post_attention_norm.weight", 48)
		each(m, 1, "post_ffw_norm.weight", 48)
		each(m, 0, "ffn_down.bias", 48)
	}}},
	{"QK norm after RoPE", "hunyuan-dense", shape{change: func(m *model.Model) {
		each(m, 1, "attn_q_norm.weight", 16)
		each(m, 1, "attn_k_norm.weight", 16)
	}}},
	{"QK layer norm, tokens without probability", "llama-never", shape{change: func(m *model.Model) {
		for name, heads := range map[string]int64{"attn_q_norm": 4, "attn_k_norm": 2} {
			each(m, 1, name+".weight", 16, heads)
			each(m, 0, name+".bias", 16, heads)
		}
	}}},
	{"QK norm over all heads", "olmo2", shape{change: func(m *model.Model) {
		without(m, "attn_norm.weight", "ffn_norm.weight")
		each(m, 1, "attn_q_norm.weight", 64)
		each(m, 1, "attn_k_norm.weight", 32)
		each(m, 1, "post_attention_norm.weight", 48)
		each(m, 1, "post_ffw_norm.weight", 48)
	}}},
	{"windows", "gemma2", shape{change: func(m *model.Model) {
		gemma2Norms(m)
		m.Metadata.Set("gemma2.attention.sliding_window", gguf.Uint32(9))
	}}},
	{"LayerNorm, parallel residual", "gptneox", shape{change: func(m *model.Model) {
		m.Metadata.Set("gptneox.use_parallel_residual", gguf.Bool(true))
		without(m, "ffn_gate.weight")
		each(m, 0, "attn_norm.bias", 48)
		each(m, 0, "ffn_norm.bias", 48)
	}}},
	{"parallel residual, one norm", "falcon", shape{change: func(m *model.Model) {
		without(m, "ffn_gate.weight",
			"ffn_norm.weight")
	}}},
	{"norms without weights", "olmo", shape{change: func(m *model.Model) { without(m, "norm.weight") }}},
	{"squared ReLU", "nemotron", shape{change: func(m *model.Model) { without(m, "ffn_gate.weight") }}},
	{"experts", "llama", shape{experts: 4, change: func(m *model.Model) { fixed(m, 4) }}},
	{"experts with a shared expert", "qwen2moe", shape{experts: 5, change: func(m *model.Model) {
		fixed(m, 5)
		m.Metadata.Set("qwen2moe.expert_shared_feed_forward_length", gguf.Uint32(64))
		each(m, 0, "ffn_gate_inp_shexp.weight", 48)
		each(m, 0, "ffn_gate_shexp.weight", 48, 64)
		each(m, 0, "ffn_up_shexp.weight", 48, 64)
		each(m, 0, "ffn_down_shexp.weight", 64, 48)
		each(m, 0, "ffn_down_shexp.bias", 48)
	}}},
	{"sigmoid router", "llama-all-moe", shape{experts: 4, change: func(m *model.Model) {
		fixed(m, 4)
		m.Metadata.Set("llama-all-moe.expert_gating_func", gguf.Uint32(uint32(graph.Sigmoid)))
		m.Metadata.Set("llama-all-moe.expert_weights_scale", gguf.Float32(2.5))
		each(m, 1, "post_ffw_norm.weight", 48)
		each(m, 0, "ffn_down_exps.bias", 48, 4)
	}}},
	{"softmax over the chosen experts", "qwen2moe-all", shape{experts: 4, change: func(m *model.Model) {
		fixed(m, 4)
		m.Metadata.Set("qwen2moe-all.expert_gating_func", gguf.Uint32(uint32(graph.SoftmaxOfChosen)))
	}}},
}

// fixed makes routers choose the same experts for each token: their choice must not
// change when weights are moved.
func fixed(m *model.Model, n int) {
	for i := range 4 {
		if !slices.ContainsFunc(m.Tensors,
			func(x model.Tensor) bool { return x.Name == fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i) }) {
			continue
		}
		bias := make([]float32, n)
		for e := range bias {
			bias[e] = float32((e + i) % n * 10)
		}
		m.Tensors = append(m.Tensors, model.New(fmt.Sprintf("blk.%d.exp_probs_b.bias", i),
			rows.Stored([]int64{int64(n)}, gguf.TypeF32, bytesOf(bias), nil)))
	}
}

// kindFixed is listed with routers that choose the same experts for each token.
func kindFixed(arch, keys, tensors string) *model.Model {
	m := listed(arch, keys, tensors)
	without(m, "exp_probs_b.bias")
	fixed(m, 6)
	return m
}

// backRun is the text of backward passes of made-up models.
var backRun = Run{Tokens: text(3 * 30), Chunk: 30, First: 5, Workers: 2}

// smallBlocks makes blocks of two chunks of backRun.
func smallBlocks(t *testing.T) {
	n := tokensPerBlock
	tokensPerBlock = 60
	t.Cleanup(func() { tokensPerBlock = n })
}

// TestGradients compares gradients with finite differences of the loss.
func TestGradients(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	smallBlocks(t)
	for _, c := range backModels {
		t.Run(c.name, func(t *testing.T) { checkSlopes(t, made(c.arch, c.shape), Gradients{Run: backRun}, nil) })
	}
	for _, c := range kinds {
		t.Run(c.name, func(t *testing.T) {
			checkSlopes(t, kindFixed(c.arch, c.keys, c.tensors),
				Gradients{Run: backRun}, nil)
		})
	}
	t.Run("some tokens of an expert", func(t *testing.T) {
		checkSlopes(t, made("llama", shape{experts: 5}), Gradients{Run: backRun}, func(name string) bool {
			// their output is not read by a router
			return strings.HasPrefix(name, "blk.1.ffn") && strings.Contains(name, "exps")
		})
	})
}

// reported returns the gradients that a backward pass reports, by tensor and layer.
func reported(t *testing.T, m *Model, g Gradients) (loss float64, all map[string][]float32) {
	t.Helper()
	all = map[string][]float32{}
	g.Linear = func(l LinearGradient) error {
		if len(l.X)%l.Rows != 0 || len(l.G)%l.Rows != 0 {
			t.Errorf("%s: %d and %d values in %d rows", l.Name, len(l.X), len(l.G), l.Rows)
		}
		name := fmt.Sprint(l.Name, l.Matrix)
		all[name+"x"], all[name] = append(all[name+"x"], l.X...), append(all[name], l.G...)
		return nil
	}
	g.States = func(layer, first int, d []float32) error {
		name := fmt.Sprint(layer)
		if len(all[name]) != first*m.p.width {
			t.Errorf("layer %d: token %d after %d values", layer, first, len(all[name]))
		}
		all[name] = append(all[name], d...)
		return nil
	}
	g.Embeddings = func(_ int, d []float32) error { all["embeddings"] = append(all["embeddings"], d...); return nil }
	loss, err := m.Backward(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	return loss, all
}

// digest is a hash of the bits of reported inputs and gradients.
func digest(all map[string][]float32) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h.Write([]byte(name))
		h.Write(bytesOf(all[name]))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}

// TestGradientBits checks that gradients have the same bits in every build, at every width
// of vectors, with any number of workers, and however chunks are grouped.
func TestGradientBits(t *testing.T) {
	smallBlocks(t)
	models := map[string]*model.Model{}
	for _, c := range backModels {
		models[c.name] = made(c.arch, c.shape)
	}
	for _, c := range kinds {
		models[c.name] = listed(c.arch, c.keys, c.tensors)
	}
	for name := range recurrent {
		if !slices.Contains(forwardOnlyModels, name) {
			models[name] = smallRecurrent(name)
		}
	}
	for name, of := range models {
		m, err := New(of)
		if err != nil {
			t.Fatal(err)
		}
		settings := []func(*Gradients){func(g *Gradients) { g.Workers = 3; g.Chunks = 1 }, func(g *Gradients) {},
			func(g *Gradients) { g.Workers = 1 }, func(g *Gradients) { g.Chunks = 2 }}
		if !cpu.HasVectors || testing.Short() {
			settings = settings[:1] // the same kernels in each
		}
		for _, set := range settings {
			g := Gradients{Run: backRun}
			set(&g)
			loss, all := reported(t, m, g)
			all["loss"] = []float32{float32(loss)}
			if got := digest(all); got != gradientBits[name] {
				t.Errorf("%s, %d workers, %d chunks at a time: %s, want %s (loss %v)", name, g.Workers, g.Chunks, got,
					gradientBits[name], loss)
			}
		}
	}
}

// gradientBits has the digest of the gradients of each model.
var gradientBits = map[string]string{
	"llama":                  "f5307feb7ab6",
	"all attention options":  "736242bd5b06",
	"QK norm after RoPE":     "45867cd038b6",
	"QK norm over all heads": "8a48be88e9fb",
	"QK layer norm, tokens without probability": "87752e9ff0e6",
	"windows":                           "a7c4957c7fbe",
	"LayerNorm, parallel residual":      "53ea883b8a5d",
	"parallel residual, one norm":       "6ca64e61ea5a",
	"norms without weights":             "51d4cd11f10b",
	"squared ReLU":                      "a1a61c9ba080",
	"experts":                           "aa6a9a5fe88e",
	"experts with a shared expert":      "262b70e79b9b",
	"sigmoid router":                    "0c6794b7a22a",
	"softmax over the chosen experts":   "d25680b60e9a",
	"MLA":                               "e9d229598d8c",
	"expert weights on inputs":          "c312690254e3",
	"pre-attention router":              "f4d1c1794545",
	"xIELU":                             "57c26972d3dc",
	"MLA, expanded keys and values":     "d821c5e5395d",
	"attention sinks, clamped SwiGLU":   "9be2580aaba8",
	"falcon-h1":                         "02073c08b232",
	"jamba":                             "f5d6395c532d",
	"mamba2":                            "a27b384467e3",
	"lfm2":                              "130f76be7939",
	"mamba":                             "bd85a4b70c71",
	"qwen35":                            "a94b159261c0",
	"qwen3next":                         "468e2d9dae6c",
	"weight scales, interleaved M-RoPE": "3c5275babd0e",
	"gated attention output":            "5a0d18318a92",
	"keys as values, norms of values":   "ebd5e0c332d9",
	"nemotron_h":                        "e67ab97155ad",
}

// TestLoss checks the loss of the next tokens, the divergence from a base, and a loss of the
// caller that equals the first.
func TestLoss(t *testing.T) {
	ctx := context.Background()
	open := func(sh shape) *Model {
		m, err := New(made("llama", sh))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open(shape{})
	run := backRun
	run.First = run.Chunk / 2
	loss, all := reported(t, m, Gradients{Run: run})
	p, err := m.Perplexity(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	var want float64
	for _, l := range p.Losses {
		want += l
	}
	if math.Abs(loss-want) > 1e-9*want {
		t.Errorf("loss %v, want %v", loss, want)
	}
	var steps []float64
	run.Progress = func(p Progress) { steps = append(steps, p.Done) }
	own, mine := reported(t, m, Gradients{Run: run, Chunks: 2,
		Loss: func(at int, logits, d []float32) (float64, error) {
			if at%run.Chunk < run.First || len(d) != len(logits) {
				t.Errorf("position %d, %d logits and %d derivatives", at, len(logits), len(d))
			}
			if at%run.Chunk == run.Chunk-1 {
				clear(d)
				return 0, nil
			}
			var sum float64
			for _, v := range logits {
				sum += math.Exp(float64(v))
			}
			for i, v := range logits {
				d[i] = float32(math.Exp(float64(v)) / sum)
			}
			next := run.Tokens[at+1]
			d[next]--
			return math.Log(sum) - float64(logits[next]), nil
		}})
	if math.Abs(own-want) > 1e-6*want {
		t.Errorf("own loss %v, want %v", own, want)
	}
	near(t, mine, all)
	if !slices.IsSorted(steps) || steps[0] <= 0 || math.Abs(steps[len(steps)-1]-1) > 1e-12 {
		t.Errorf("progress %v", steps)
	}
	run.Progress = nil

	// The divergence from itself has gradient 0; that from a similar model has the gradient of a loss of the caller's
	// that computes it in float64.
	none, flat := reported(t, m, Gradients{Run: run, Base: m})
	if none != 0 || largest(flat["0"]) > 1e-6 {
		t.Errorf("divergence %v of a model from itself, gradients up to %v", none, largest(flat["0"]))
	}
	base := open(shape{change: func(m *model.Model) { add(m, 0, "output.weight", 48, 300) }})
	states, err := base.Forward(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	logits := make([][]float32, states.Rows)
	if err := states.Logits(ctx, func(row int,
		l []float32) error {
		logits[row] = slices.Clone(l)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got, theirs := reported(t, m, Gradients{Run: run, Base: base, Chunks: 1})
	want, mine = reported(t, m, Gradients{Run: run, Loss: func(at int, q, d []float32) (loss float64, _ error) {
		clear(d)
		if at%run.Chunk == run.Chunk-1 {
			return 0, nil
		}
		p := logits[at/run.Chunk*(run.Chunk-run.First)+at%run.Chunk-run.First]
		var sp, sq float64
		for i := range p {
			sp, sq = sp+math.Exp(float64(p[i])), sq+math.Exp(float64(q[i]))
		}
		for i := range p {
			a, b := math.Exp(float64(p[i]))/sp, math.Exp(float64(q[i]))/sq
			loss += a * math.Log(a/b)
			d[i] = float32(b - a)
		}
		return loss, nil
	}})
	if math.Abs(got-want) > 1e-5*want {
		t.Errorf("divergence %v, want %v", got, want)
	}
	near(t, theirs, mine)
}

// near checks that gradients are about the same.
func near(t *testing.T, got, want map[string][]float32) {
	t.Helper()
	for name, g := range want {
		most := largest(g)
		for i, v := range got[name] {
			if math.Abs(float64(v-g[i])) > 1e-5*most {
				t.Fatalf("%s: %v, want %v", name, v, g[i])
			}
		}
		if len(got[name]) != len(g) {
			t.Errorf("%s: %d values, want %d", name, len(got[name]), len(g))
		}
	}
}

func largest(x []float32) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

// forwardOnly is a mixer that cannot be run backwards.
type forwardOnly struct{ mixer }

// TestBackwardRefused checks models and runs without a backward pass, and that errors of callers are
// returned.
func TestBackwardRefused(t *testing.T) {
	ctx := context.Background()
	m, err := New(made("llama", shape{experts: 3}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Gradients)
		want   string
	}{
		{func(g *Gradients) { g.Chunk = 64 }, "90 tokens in chunks of 64"},
		{func(g *Gradients) { g.First = 29 }, "from position 29"},
		{func(g *Gradients) { g.Chunks = -1 }, "-1 chunks"},
		{func(g *Gradients) { g.Tokens = nil }, "0 tokens"},
		{func(g *Gradients) { g.HalfGELU = true }, "HalfGELU"},
		{func(g *Gradients) { g.Tokens = append(text(89), 300) }, "token 89 of the text is 300"},
	} {
		g := Gradients{Run: backRun}
		c.change(&g)
		if _, err := m.Backward(ctx, g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	stop := errors.New("enough")
	for _, g := range []Gradients{
		{Linear: func(LinearGradient) error { return stop }}, {States: func(int, int, []float32) error { return stop }},
		{Embeddings: func(int, []float32) error { return stop }},
		{Loss: func(int, []float32, []float32) (float64, error) { return 0, stop }},
	} {
		g.Run = backRun
		if _, err := m.Backward(ctx, g); !errors.Is(err, stop) {
			t.Errorf("%v", err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Backward(canceled, Gradients{Run: backRun}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	first := &m.layers[1].steps[0].(*residual).branches[0]
	first.part = forwardOnly{first.part}
	if _, err := m.Backward(ctx, Gradients{Run: backRun}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), `"llama" cannot be run backwards`) {
		t.Errorf("%v", err)
	}
}

// forwardOnlyModels are the recurrent models without a backward pass.
var forwardOnlyModels = strings.Fields("rwkv6 rwkv7 rwkv6qwen2 arwkv7 kimi-linear nemotron_h_moe")

// TestRecurrentGradients is TestGradients for recurrent models.
func TestRecurrentGradients(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	smallBlocks(t)
	for name := range recurrent {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(forwardOnlyModels, name) {
				m := smallRecurrent(name)
				fixed(m, 3)
				checkSlopes(t, m, Gradients{Run: backRun}, nil)
				return
			}
			m, err := New(smallRecurrent(name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Backward(context.Background(), Gradients{Run: backRun}); !errors.Is(err,
				fault.Unsupported) || !strings.Contains(err.Error(), name) {
				t.Errorf("%v", err)
			}
		})
	}
}
