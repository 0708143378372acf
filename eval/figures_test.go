package eval_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "ggforge/arch"
	"ggforge/convert"
	"ggforge/eval"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
)

var update = flag.Bool("update", false, "write testdata/figures.txt")

// TestFigures computes the figures of the made-up model of every architecture, and compares hashes of their bits with
// those of testdata/figures.txt: logits, inputs of matrices, vectors of texts, loss and gradients. A line is the name of
// a model and the hashes, or what is refused.
func TestFigures(t *testing.T) {
	golden := filepath.Join("testdata", "figures.txt")
	text, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, figures, _ := strings.Cut(strings.TrimSpace(line), ": ")
		want[name] = figures
	}
	var lines []string
	dir := t.TempDir()
	for i, s := range hftest.Specs() {
		if s.Base != nil || s.Target != "" || !cpu.HasVectors && i%8 != 0 {
			continue
		}
		for j, v := range s.All() {
			if j > 0 && v.Set == "" { // the configuration of the first one
				continue
			}
			src, err := s.Write(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			name := s.Name + "/" + v.Name
			m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32))
			if err == nil {
				got := figures(t.Context(), m)
				m.Close()
				lines = append(lines, name+": "+got+"\n")
				if want[name] != got && !*update {
					t.Errorf("%s (%s):\n%s\nwant\n%s", name, m.Architecture(), got, want[name])
				}
			}
			if err := os.RemoveAll(src); err != nil {
				t.Fatal(err)
			}
		}
	}
	if *update {
		slices.Sort(lines)
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// bits is a hash of names and values.
type bits struct{ sum uint64 }

func (b *bits) add(name string, x []float32) {
	h := fnv.New64a()
	binary.Write(h, binary.LittleEndian, b.sum)
	h.Write([]byte(name))
	buf := make([]byte, 0, 4*len(x))
	for _, v := range x {
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
	}
	h.Write(buf)
	b.sum = h.Sum64()
}

func (b *bits) String() string { return fmt.Sprintf("%016x", b.sum) }

// figures returns the line of a model.
func figures(ctx context.Context, m *model.Model) string {
	r, err := eval.New(m)
	if err != nil {
		return refusal(m, err)
	}
	const chunk = 24
	tokens := make([]int32, 2*chunk)
	for i := range tokens {
		tokens[i] = int32(i*i*7+3*i+1) % int32(r.Vocab())
	}
	var parts []string
	for _, first := range []int{0, 7} { // the second leaves out positions of the last layer
		var states bits
		inputs := bits{}
		run := eval.Run{Tokens: tokens, Chunk: chunk, First: first, Workers: 1, Inputs: func(in eval.Inputs) error {
			inputs.add(fmt.Sprint(in.Name, in.Matrix, in.Matrices, in.Routed, in.Single, in.Rows, in.Columns,
				in.Product), in.X)
			return nil
		}}
		st, err := r.Forward(ctx, run)
		if err != nil {
			return refusal(m, err)
		}
		if !r.Predicts() {
			parts = append(parts, "inputs "+inputs.String())
			continue
		}
		rows := make([][]float32, st.Rows)
		if err := st.Logits(ctx, func(row int, logits []float32) error {
			rows[row] = slices.Clone(logits)
			return nil
		}); err != nil {
			return refusal(m, err)
		}
		for _, row := range rows {
			states.add("", row)
		}
		parts = append(parts, fmt.Sprintf("logits %v inputs %v", &states, &inputs))
	}
	texts := [][]int32{tokens[:5], tokens[7:20], tokens[20:25]}
	for _, pooling := range []eval.Pooling{r.Pooling(), eval.PoolNone, eval.PoolLast, eval.PoolRank} {
		e, err := r.Embed(ctx, texts, eval.EmbedOptions{Pooling: pooling, Workers: 1})
		if err != nil {
			continue
		}
		var vectors bits
		for _, v := range e.Texts {
			vectors.add("", v)
		}
		parts = append(parts, fmt.Sprintf("%v %v", pooling, &vectors))
	}
	if r.Decodes() {
		parts = append(parts, decoderFigures(ctx, r))
	}
	var gradients bits
	loss, err := r.Backward(ctx, eval.Gradients{
		Run: eval.Run{Tokens: tokens, Chunk: chunk, Workers: 1},
		Linear: func(g eval.LinearGradient) error {
			gradients.add(g.Name, g.X)
			gradients.add(fmt.Sprint(g.Matrix, g.Rows), g.G)
			return nil
		},
		States: func(layer, first int, g []float32) error { gradients.add(fmt.Sprint(layer, first), g); return nil },
		Embeddings: func(first int, g []float32) error {
			gradients.add(fmt.Sprint(first), g)
			return nil
		},
	})
	if err != nil {
		return strings.Join(parts, " ") + "; " + refusal(m, err)
	}
	return fmt.Sprintf("%s loss %016x gradients %v", strings.Join(parts, " "), math.Float64bits(loss), &gradients)
}

// decoderFigures is the part of the line of an encoder-decoder that is about its decoder.
func decoderFigures(ctx context.Context, r *eval.Model) string {
	run := eval.Run{Chunk: 9, Workers: 1}
	for i, n := range []int{3, 1, 40} {
		source := make([]int32, 5*i+2)
		for k := range source {
			source[k] = int32(k*k*5+11*i+2) % int32(r.Vocab())
		}
		run.Sources, run.Lengths = append(run.Sources, source), append(run.Lengths, n)
		for k := range n {
			run.Tokens = append(run.Tokens, int32(k*k*7+3*i)%int32(r.Vocab()))
			run.Next = append(run.Next, int32((k+1)*(k+1)*7+3*i)%int32(r.Vocab()))
		}
	}
	var inputs, losses bits
	run.Inputs = func(in eval.Inputs) error {
		inputs.add(fmt.Sprint(in.Name, in.Rows, in.Columns, in.Product), in.X)
		return nil
	}
	p, err := r.Perplexity(ctx, run)
	if err != nil {
		return err.Error()
	}
	for _, x := range p.Losses {
		losses.add("", []float32{float32(x)})
	}
	return fmt.Sprintf("decoder losses %v inputs %v", &losses, &inputs)
}

// refusal is the text of an error without the path of the model.
func refusal(m *model.Model, err error) string {
	s, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), m.Path+": ", ""), "; supported: ")
	return strings.ReplaceAll(s, "\n", " ")
}
