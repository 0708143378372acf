package eval_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/graph"
	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
	"ggforge/writer"
)

// TestNextN checks the MTP (NextN) layers of the made-up model of every architecture that has them: all their matrices
// are reported with the rows that they have, the inputs of eh_proj are the norms of embeddings and of states, and what
// Expect plans is what Collect finds. What the layers make of other runs stays.
func TestNextN(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	dir, seen := t.TempDir(), map[string]bool{}
	for _, s := range hftest.Specs() {
		for _, v := range s.All() {
			if s.Base != nil || s.Target != "" {
				continue
			}
			src, err := s.Write(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			if m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32)); err == nil {
				if name := m.Architecture(); !seen[name] {
					if r, err := eval.New(m); err == nil && r.NextN() > 0 {
						seen[name] = true
						t.Run(name, func(t *testing.T) { nextN(t, m, r) })
					}
				}
				m.Close()
			}
			if err := os.RemoveAll(src); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d architectures", len(seen))
	}
}

// withoutNextN are the architectures whose MTP layers are refused, with what the message names.
var withoutNextN = map[string]string{"glm5-next": "HyperConnections", "qwen4exp": "GatedStreams"}

func nextN(t *testing.T, m *model.Model, r *eval.Model) {
	const chunk, chunks = 20, 3
	tokens := make([]int32, chunk*chunks)
	for i := range tokens {
		tokens[i] = int32(i*i*7+3*i+1) % int32(r.Vocab())
	}
	run := eval.Run{Tokens: tokens, Chunk: chunk, Workers: 1, NextN: true}
	sums := imatrix.NewSums(chunk)
	err := r.Collect(t.Context(), run, sums, eval.Importance{})
	if part := withoutNextN[m.Architecture()]; part != "" {
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "MTP (NextN) layers with several "+
			"residual streams, "+part) {
			t.Errorf("%v, want an error about %s", err, part)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if sums.NextN != r.NextN() {
		t.Errorf("%d MTP layers in the sums, want %d", sums.NextN, r.NextN())
	}
	decl, err := graph.Declare(graph.Of(m.Architecture()), graph.NewFile(m.Metadata, func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	drafts, err := decl.Drafts()
	if err != nil {
		t.Fatal(err)
	}
	layers := decl.Layers()

	// every matrix has an entry, with a row less for each layer
	seen := map[string]*imatrix.Tally{}
	for _, x := range sums.Tallies() {
		seen[x.Name] = x
	}
	file := map[string]*model.Tensor{}
	for i := range m.Tensors {
		file[m.Tensors[i].Name] = &m.Tensors[i]
	}
	matrices := 0
	for _, d := range drafts.Tensors() {
		switch d.Role {
		case graph.NormRole, graph.KernelRole, graph.EmbeddingRole:
			continue
		}
		if x := file[d.Name]; x == nil || len(x.NE) < 2 || x.Type == gguf.TypeI32 {
			continue
		}
		matrices++
		var layer int
		if _, err := fmt.Sscanf(d.Name, "blk.%d.", &layer); err != nil {
			t.Fatal(err)
		}
		want := int64(chunks * (chunk - 1 - layer + layers))
		switch x := seen[d.Name]; {
		case x == nil:
			t.Errorf("%s: no entry", d.Name)
		case len(x.Counts) == 1 && x.Counts[0] != want:
			t.Errorf("%s: %d rows, want %d", d.Name, x.Counts[0], want)
		}
	}
	if matrices < 3 {
		t.Errorf("%d matrices", matrices)
	}
	c, err := r.Collector(imatrix.NewSums(chunk), false)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := c.Expect(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	planned := expected.Tallies()
	if len(planned) != len(seen) || expected.NextN != sums.NextN {
		t.Errorf("%d entries expected, %d collected", len(planned), len(seen))
	}
	for _, x := range planned {
		if y := seen[x.Name]; y == nil || len(y.Counts) != len(x.Counts) || len(x.Counts) == 1 && x.Counts[0] != y.Counts[0] {
			t.Errorf("%s: expected %v, collected %v", x.Name, x, y)
		}
	}

	// the inputs of the first MTP layer, of blocks of a chunk
	defer eval.SetTokensPerBlock(chunk)()
	inputs := map[string][]float32{}
	first := fmt.Sprintf("blk.%d.", layers)
	run.Inputs = func(in eval.Inputs) error {
		if strings.HasPrefix(in.Name, first) && !in.Routed {
			inputs[in.Name] = append(inputs[in.Name], in.X...)
		}
		return nil
	}
	states, err := r.Forward(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	projected := inputs[first+"nextn.eh_proj.weight"]
	want, ok := projectionInputs(t, m, file, first, states.Inputs().X, tokens, chunk)
	if ok {
		if d := distance(projected, want); d > 1e-5 {
			t.Errorf("the inputs of eh_proj are %v apart from norms of embeddings and states", d)
		}
	}
	if graph.Of(m.Architecture()).Draft != nil { // it is not one of the layers before it
		return
	}
	ordinary := asOrdinary(t, m, file, layers, projected)
	of, err := eval.New(ordinary)
	if err != nil {
		t.Fatal(err)
	}
	rows := chunks * (chunk - 1)
	again := eval.Run{Chunk: chunk - 1, Workers: 1}
	for i := range rows {
		again.Tokens = append(again.Tokens, int32(i))
	}
	got := map[string][]float32{}
	again.Inputs = func(in eval.Inputs) error {
		if !in.Routed {
			got[in.Name] = append(got[in.Name], in.X...)
		}
		return nil
	}
	if _, err := of.Forward(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, x := range inputs {
		if strings.Contains(name, ".nextn.") {
			continue
		}
		compared++
		if d := distance(x, got[name]); d > 1e-4 {
			t.Errorf("%s: inputs are %v apart from those of an ordinary layer", name, d)
		}
	}
	if compared < 3 {
		t.Errorf("%d matrices compared", compared)
	}
}

// distance returns the largest difference of two lists, relative to the largest number; 1 if their lengths differ.
func distance(a, b []float32) float64 {
	if len(a) != len(b) || len(a) == 0 {
		return 1
	}
	var most, size float64
	for i := range a {
		most, size = max(most, math.Abs(float64(a[i]-b[i]))), max(size, math.Abs(float64(a[i])))
	}
	return most / size
}

// decoded returns the values of a tensor.
func decoded(t *testing.T, x *model.Tensor) []float32 {
	t.Helper()
	v := make([]float32, x.Elements())
	if err := rows.Decode(x.Source, v, new([]byte), 0, x.Elements()/x.NE[0]); err != nil {
		t.Fatal(x.Name, err)
	}
	return v
}

// rmsNorm returns the norm of x times weights in float64.
func rmsNorm(x, weights []float32, eps float64) []float32 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	f := 1 / math.Sqrt(sum/float64(len(x))+eps)
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(float64(v) * f * float64(weights[i]))
	}
	return y
}

// projectionInputs returns the inputs of eh_proj, computed from embeddings and from states, which are normalized for
// the output by a norm of the same kind. ok is false for a model without RMS norms.
func projectionInputs(t *testing.T, m *model.Model, file map[string]*model.Tensor, layer string, states []float32,
	tokens []int32, chunk int) (all []float32, ok bool) {
	v, ok := m.Metadata.Get(gguf.ArchKey(m.Architecture(), "attention.layer_norm_rms_epsilon"))
	eps, isFloat := v.Float()
	if !ok || !isFloat || file["output_norm.bias"] != nil {
		return nil, false
	}
	embed := file["token_embd.weight"]
	if own := file[layer+"nextn.embed_tokens.weight"]; own != nil {
		embed = own
	}
	e, width := decoded(t, embed), int(embed.NE[0])
	enorm, hnorm := decoded(t, file[layer+"nextn.enorm.weight"]), decoded(t, file[layer+"nextn.hnorm.weight"])
	out := decoded(t, file["output_norm.weight"])
	for at := range tokens {
		if at%chunk == chunk-1 {
			continue
		}
		all = append(all, rmsNorm(e[int(tokens[at+1])*width:][:width], enorm, eps)...)
		for i, v := range states[at*width:][:width] {
			all = append(all, float32(float64(v)/float64(out[i])*float64(hnorm[i])))
		}
	}
	return all, true
}

// outputs are the matrices that add to the stream.
var outputs = regexp.MustCompile(`attn_output|ffn_down|ssm_out|_exps_up|latent`)

// asOrdinary returns a model whose last layer is the first MTP layer of m. Its embeddings are the rows of eh_proj's
// outputs for inputs, and the layers before add nothing to them.
func asOrdinary(t *testing.T, m *model.Model, file map[string]*model.Tensor, layers int,
	inputs []float32) *model.Model {
	first := fmt.Sprintf("blk.%d.", layers)
	width := int(file["token_embd.weight"].NE[0])
	embed, weights := make([]float32, file["token_embd.weight"].Elements()), decoded(t, file[first+"nextn.eh_proj.weight"])
	for i := range len(inputs) / (2 * width) {
		for k := range width {
			var sum float64
			for j, v := range inputs[2*i*width:][:2*width] {
				sum += float64(v) * float64(weights[2*k*width+j])
			}
			embed[i*width+k] = float32(sum)
		}
	}
	c := *m
	c.Metadata = slices.Clone(m.Metadata)
	c.Metadata.Set(gguf.ArchKey(m.Architecture(), "block_count"), gguf.Uint32(uint32(layers+1)))
	c.Metadata.Set(gguf.ArchKey(m.Architecture(), "nextn_predict_layers"), gguf.Uint32(0))
	// Of lists for the layers before, without an element for the MTP layer: it has no window, and an indexer of its own.
	for key, element := range map[string]gguf.Value{"attention.sliding_window_pattern": gguf.Bool(false),
		"attention.indexer.types": gguf.Bool(true)} {
		key = gguf.ArchKey(m.Architecture(), key)
		if list, ok := c.Metadata.Get(key); ok && list.Type() == gguf.ArrayType && list.Len() == layers {
			c.Metadata.Set(key, gguf.Array(list.ElemType(), append(slices.Collect(list.Elems()), element)...))
		}
	}
	c.Tensors = nil
	add := func(name string, ne []int64, v []float32) {
		src, err := rows.Reshape(rows.Float32s(v), ne)
		if err != nil {
			t.Fatal(err)
		}
		c.Tensors = append(c.Tensors, model.New(name, src))
	}
	for i := range m.Tensors {
		x, layer := &m.Tensors[i], -1
		fmt.Sscanf(x.Name, "blk.%d.", &layer)
		switch {
		case x.Name == "token_embd.weight":
			add(x.Name, x.NE, embed)
		case layer > layers, strings.Contains(x.Name, ".nextn."),
			layer == layers && strings.Contains(x.Name, "layer_output_norm"):
		case layer >= 0 && layer < layers && outputs.MatchString(x.Name) && !strings.Contains(x.Name, "norm"):
			add(x.Name, x.NE, make([]float32, x.Elements()))
		default:
			c.Tensors = append(c.Tensors, *x)
		}
	}
	return &c
}

// TestNextNResumed checks that a run with MTP layers resumes from its state, to the same sums, and that one without them
// is refused.
func TestNextNResumed(t *testing.T) {
	const chunk, chunks = 12, 4
	r, run := glm4(t, chunk, chunks)
	whole := imatrix.NewSums(chunk)
	if err := r.Collect(t.Context(), run, whole, eval.Importance{}); err != nil {
		t.Fatal(err)
	}
	opt := eval.Calibration{Importance: eval.Importance{Every: 1}, State: filepath.Join(t.TempDir(), "state")}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := run
	stopped.Progress = func(p eval.Progress) {
		if p.Done > 0.6 {
			cancel()
		}
	}
	if _, err := r.Calibrate(ctx, stopped, imatrix.NewSums(chunk), opt); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	without := run
	without.NextN = false
	if _, err := r.Calibrate(t.Context(), without, imatrix.NewSums(chunk), opt); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "with another choice about MTP (NextN) layers") {
		t.Errorf("without MTP layers: %v", err)
	}
	done := 0
	opt.Resumed = func(n int) { done = n }
	sums, err := r.Calibrate(t.Context(), run, imatrix.NewSums(chunk), opt)
	if err != nil {
		t.Fatal(err)
	}
	if done < 1 || done >= chunks || sums.NextN != 1 || !reflect.DeepEqual(sums.Tallies(), whole.Tallies()) {
		t.Errorf("resumed from %d chunks: other sums than those of one run", done)
	}
	// a second name that a power failure has brought back, when nothing is left to do
	old := opt.State + writer.Suffix + ".old"
	if err := os.Link(opt.State, old); err != nil {
		t.Skip(err)
	}
	if _, err := r.Calibrate(t.Context(), run, imatrix.NewSums(chunk), opt); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the former name of the state is left: %v", err)
	}
}

// glm4 returns the made-up GLM-4.5 and a run with its MTP layer.
func glm4(t *testing.T, chunk, chunks int) (*eval.Model, eval.Run) {
	t.Helper()
	s := hftest.Lookup("glm4_moe")
	src, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	run := eval.Run{Chunk: chunk, Workers: 1, NextN: true}
	for i := range chunk * chunks {
		run.Tokens = append(run.Tokens, int32(i*i*7+3*i+1)%int32(r.Vocab()))
	}
	return r, run
}

// TestNextNOfTransformers compares sums of squares of an MTP layer with those of the decoder layer of transformers in
// float64, which test/interop/oracle/nextn.py prints: of all columns together, and of the first two.
func TestNextNOfTransformers(t *testing.T) {
	r, run := glm4(t, 20, 3)
	sums := imatrix.NewSums(20)
	if err := r.Collect(t.Context(), run, sums, eval.Importance{}); err != nil {
		t.Fatal(err)
	}
	squares := map[string][]float32{}
	for _, x := range sums.Tallies() {
		squares[x.Name] = x.Squares
	}
	for _, c := range []struct {
		tensor string
		all    float64
		first  [2]float64
	}{
		{"nextn.eh_proj", 7711.8, [2]float64{45.15734, 49.92399}},
		{"attn_q", 3456.112, [2]float64{84.6974, 67.65499}},
		{"attn_output", 362.1713, [2]float64{9.424879, 1.734529}},
		{"ffn_gate_inp", 3607.107, [2]float64{75.56766, 50.52256}},
		{"ffn_down_shexp", 4.415631, [2]float64{0.07444323, 0.1411256}},
		{"nextn.shared_head_head", 3675.864, [2]float64{65.06709, 65.17978}},
	} {
		x := squares["blk.2."+c.tensor+".weight"]
		if len(x) < 2 {
			t.Errorf("%s: no entry", c.tensor)
			continue
		}
		var all float64
		for _, v := range x {
			all += float64(v)
		}
		got, want := [3]float64{all, float64(x[0]), float64(x[1])}, [3]float64{c.all, c.first[0], c.first[1]}
		for i := range got {
			if math.Abs(got[i]-want[i]) > 2e-6*want[i] {
				t.Errorf("%s: %v, want %v", c.tensor, got, want)
				break
			}
		}
	}
}
