package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/writer"
)

// TestImatrix compares importance matrices with those of the real runtime, which runs the
// same weights in float32, for every spec of an architecture that can be run.
func TestImatrix(t *testing.T) {
	o := start(t)
	text := work + "/text.txt"
	must(t, os.WriteFile(root+text, []byte(evalWords), 0o666))
	everyModel(t, "importance matrix", false, func(t *testing.T, file string) { o.importance(t, file, text, 64, 6) })
}

// TestImatrixGollama is TestImatrix for the real model.
func TestImatrixGollama(t *testing.T) {
	start(t)
	text, file := evalText(t), work+"/f32.gguf"
	ours(t, "ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", root+file, root+gollama(t))
	m, err := model.Open(root + file)
	must(t, err)
	defer m.Close()
	const chunk, chunks = 512, 8
	sums := collected(t, m, eval.Run{Tokens: chunksOf(t, m, text, chunk, chunks), Chunk: chunk, Workers: 2})
	sums.Datasets = []string{text}
	sameImportance(t, sums, nil, true, file, text, chunk, chunks)
}

// TestImatrixMerged compares merged importance matrices with those that the reference merges.
func TestImatrixMerged(t *testing.T) {
	start(t)
	const samples = "../../imatrix/testdata/imatrix_"
	for _, c := range []struct {
		in    string
		chunk int
	}{
		{"real.gguf real.gguf", 128}, {"gg_imm.gguf", 512}, {"gg_imx.gguf dat_imm.dat", 512},
		{"dat_imd.dat gg_imd.gguf", 512}, {"real.dat", 128},
		{"real.dat real.gguf", 64}, {"gg_imx.gguf", 512}, {"dat_imm.dat gg_imx.gguf", 96},
		{"dat_imold.dat real.gguf", 100},
	} {
		for format := range imatrix.FormatDat + 1 {
			t.Run(fmt.Sprintf("%s %d %v", c.in, c.chunk, format), func(t *testing.T) {
				argv := []string{root, "env", "-C", work, "llama-imatrix", "-m", "none", "-c", strconv.Itoa(c.chunk),
					"-o", "merged", "--output-format", format.String()}
				sums := imatrix.NewSums(c.chunk)
				for name := range strings.FieldsSeq(c.in) {
					data, err := os.ReadFile(samples + name)
					must(t, err)
					must(t, os.WriteFile(root+work+"/"+name, data, 0o666))
					argv = append(argv, "--in-file", name)
					m, err := imatrix.Parse(name, data)
					must(t, err)
					_, err = sums.Merge(m)
					must(t, err)
				}
				os.Remove(root + work + "/merged")
				if log, err := exec.Command("chroot", argv...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, complaints(log))
				}
				want, err := os.ReadFile(root + work + "/merged")
				must(t, err)
				if !bytes.Equal(matrixFile(t, sums, format), want) {
					t.Error("the merged file differs from the reference's")
				}
			})
		}
	}
}

// TestImatrixFromChunk compares the matrix of a share of a text with llama-imatrix's.
func TestImatrixFromChunk(t *testing.T) {
	o := start(t)
	f32, _, text := o.calibrated(t)
	const chunk, from, chunks = "128", "3", "4"
	theirs, made := work+"/theirs.gguf", work+"/made.gguf"
	os.Remove(root + theirs)
	o.tool(t, append([]string{"llama-imatrix", "-m", f32, "-f", text, "-o", theirs, "-c", chunk, "-b", chunk, "--chunk",
		from, "--chunks", chunks, "--no-ppl"}, exactImatrix()...)...)
	ours(t, "ggeval", "imatrix", root+f32, "-f", root+text, "-o", root+made, "-c", chunk, "--chunk", from, "--chunks",
		chunks, "--force", "--progress", "none")
	want, err := imatrix.Open(root + theirs)
	must(t, err)
	defer want.Close()
	got, err := imatrix.Open(root + made)
	must(t, err)
	defer got.Close()
	if got.Chunks != want.Chunks || got.Len() != want.Len() || got.Len() == 0 {
		t.Fatalf("%d chunks, %d tensors, the tool has %d, %d", got.Chunks, got.Len(), want.Chunks, want.Len())
	}
	most := 0.0
	for i := range want.Entries() {
		e := &want.Entries()[i]
		x, err := want.Sums(e)
		must(t, err)
		y, err := got.Sums(got.Entry(e.Name))
		must(t, err)
		d, _ := largestDifference(x, y)
		most = max(most, d)
	}
	t.Logf("%d tensors, largest relative difference of a column %.2g", got.Len(), most)
	if most > 1e-4 {
		t.Errorf("columns differ by up to %v of their value", most)
	}
}

// matrixFile returns the file of sums.
func matrixFile(t *testing.T, sums *imatrix.Sums, format imatrix.Format) []byte {
	t.Helper()
	layout, err := sums.Layout(format)
	must(t, err)
	var b bytes.Buffer
	_, err = layout.WriteTo(&b)
	must(t, err)
	return b.Bytes()
}

// collected returns the sums of a model over chunks.
func collected(t *testing.T, m *model.Model, run eval.Run) *imatrix.Sums {
	t.Helper()
	e := runnable(t, m, strings.TrimPrefix(m.Path, root))
	if e.Decodes() {
		skip(t, "llama-imatrix runs no encoder-decoders")
	}
	sums := imatrix.NewSums(run.Chunk)
	err := e.Collect(t.Context(), run, sums, eval.Importance{Output: e.Predicts()})
	if errors.Is(err, fault.Broken) {
		skip(t, "sums of squares are beyond float32")
	}
	must(t, err)
	return sums
}

// importance compares the importance matrix of a file with the runtime's, which gets its
// weights decoded to float32, and returns the largest relative difference of a column.
func (o *oracle) importance(t *testing.T, file, text string, chunk, chunks int) float64 {
	t.Helper()
	m, err := model.Open(root + file)
	must(t, err)
	defer m.Close()
	tokens := runtimeTokens(t, m, file, text, chunk, chunks)
	skipWrong(t, m)
	run := eval.Run{Tokens: tokens, Chunk: chunk, Workers: 2, HalfGELU: true}
	sums, other := collected(t, m, run), collected(t, perturbed(t, m), run)
	sums.Datasets = []string{text}
	e, err := eval.New(m)
	must(t, err)
	if !e.Predicts() {
		file = bidirectional(t, m)
	}
	return sameImportance(t, sums, other.Matrix(""), e.Predicts(), o.decoded(t, m, file), text, chunk, chunks)
}

// perturbed returns the model with all weights in float32 and changed by at most one part in 2^22: about the effect of
// rounding on sums of products. The inputs of a layer may change as much by another order of summation, or by rounding
// to 16 bits before GELU, as the runtime does it.
func perturbed(t *testing.T, m *model.Model) *model.Model {
	t.Helper()
	c := *m
	c.Tensors = slices.Clone(m.Tensors)
	r := rand.New(rand.NewPCG(1, 2))
	for i, x := range m.Tensors {
		if x.Type == gguf.TypeI32 { // tables of experts
			continue
		}
		c.Tensors[i] = float32s(t, x, func(v float32) float32 { return v + v*(2*r.Float32()-1)/(1<<22) })
	}
	return &c
}

// decoded returns the file with its weights decoded to float32: by llama-quantize, and by our codecs those that it keeps,
// such as routers of BF16.
func (o *oracle) decoded(t *testing.T, m *model.Model, file string) string {
	t.Helper()
	if !slices.ContainsFunc(m.Tensors, rounded) {
		return file
	}
	decoded := work + "/decoded.gguf"
	os.Remove(root + decoded)
	o.tool(t, "llama-quantize", "--allow-requantize", file, decoded, "F32")
	d, err := model.Open(root + decoded)
	must(t, err)
	defer d.Close()
	if !slices.ContainsFunc(d.Tensors, rounded) {
		return decoded
	}
	whole := work + "/whole.gguf"
	out := &writer.File{Path: root + whole, Metadata: d.Metadata}
	for _, x := range d.Tensors {
		if rounded(x) {
			x = float32s(t, x, func(v float32) float32 { return v })
		}
		out.Tensors = append(out.Tensors, writer.Tensor{Name: x.Name, Type: x.Type, Source: x.Source})
	}
	_, err = writer.Write(context.Background(), out, writer.Options{Force: true})
	must(t, err)
	return whole
}

// float32s returns a tensor with its values decoded to float32 and changed.
func float32s(t *testing.T, x model.Tensor, change func(float32) float32) model.Tensor {
	t.Helper()
	raw, err := x.Source.Raw(new([]byte), 0, gguf.Rows(x.NE))
	must(t, err)
	v := make([]float32, x.Elements())
	must(t, quants.Lookup(x.Type).Dequantize(v, raw))
	for i := range v {
		v[i] = change(v[i])
	}
	src, err := rows.Reshape(rows.Float32s(v), x.NE)
	must(t, err)
	return model.New(x.Name, src)
}

// sameImportance compares sums with those of the real runtime for a file and a text: the
// files must be the same but for the values. These may differ by 1e-5 in each column, or by the
// effect of rounding: eight times the difference of other, the matrix of perturbed weights, in that
// tensor, but not more than its largest difference in any tensor. Where that is not enough,
// differences between the runtime's kernels for other CPUs and for this one count like those of
// other. It returns the largest relative difference of a column.
func sameImportance(t *testing.T, sums *imatrix.Sums, other *imatrix.Matrix, predicts bool, file, text string, chunk,
	chunks int, flags ...string) (worst float64) {
	t.Helper()
	data, err := backend("").importance(file, text, chunk, chunks, flags...)
	if err != nil {
		skip(t, err)
	}
	mine := matrixFile(t, sums, imatrix.FormatGGUF)
	ours, err := gguf.Parse("ours", mine)
	must(t, err)
	ref, err := gguf.Parse("the runtime's", data)
	must(t, err)
	if !bytes.Equal(mine[:min(ours.DataStart, ours.Size)], data[:min(ref.DataStart, ref.Size)]) {
		lines, err := gguf.Diff(t.Context(), ours.Set(), ref.Set())
		must(t, err)
		lines = slices.DeleteFunc(lines, func(s string) bool { return strings.Contains(s, "bytes differ") })
		left := slices.DeleteFunc(slices.Clone(lines), func(s string) bool {
			// llama-imatrix computes logits of a bidirectional model, too
			return !predicts &&
				(strings.HasPrefix(s, `tensor "output.weight.`) || strings.HasPrefix(s, `tensor "token_embd.weight.`))
		})
		if len(left) < len(lines) { // so that offsets differ
			left = slices.DeleteFunc(left, func(s string) bool { return strings.HasPrefix(s, "offsets of ") })
		}
		if len(left) > 0 || len(lines) == 0 {
			t.Errorf("ours differs from the runtime's file:\n%s", strings.Join(left[:min(len(left), 20)], "\n"))
		}
	}
	want, err := imatrix.Parse("the runtime's", data)
	must(t, err)
	got, err := imatrix.Parse("ours", mine)
	must(t, err)
	noises, most := map[string]float64{}, 0.0
	for i := range got.Entries() {
		e := &got.Entries()[i]
		if other == nil {
			break
		}
		x, err := got.Sums(e)
		must(t, err)
		z, err := other.Sums(other.Entry(e.Name))
		must(t, err)
		noises[e.Name], _ = largestDifference(x, z)
		most = max(most, noises[e.Name])
	}
	type difference struct {
		name     string
		worst    float64
		column   int
		ours, it float32
		rows     int64
	}
	var all []difference
	for i := range want.Entries() {
		e := &want.Entries()[i]
		f := got.Entry(e.Name)
		if f == nil || f.Len() != e.Len() {
			continue // the comparison of the headers above has reported it
		}
		if !slices.Equal(f.Counts, e.Counts) {
			if other != nil && !slices.Equal(f.Counts, other.Entry(e.Name).Counts) {
				t.Logf("%s: counts %v, the runtime's %v: rounding decides which experts tokens choose", e.Name,
					f.Counts, e.Counts)
				continue
			}
			t.Errorf("%s: counts %v, want %v", e.Name, f.Counts, e.Counts)
			continue
		}
		x, err := got.Sums(f)
		must(t, err)
		y, err := want.Sums(e)
		must(t, err)
		d, j := largestDifference(x, y)
		all = append(all, difference{e.Name, d, j, x[j], y[j], slices.Max(e.Counts)})
		worst = max(worst, d)
	}
	beyond := func(d difference) bool {
		return !(d.worst <= max(1e-5, min(max(8*noises[d.name], most), 5e-2)))
	}
	if other != nil && slices.ContainsFunc(all, beyond) {
		for _, b := range backends(t) {
			if data, err := b.importance(file, text, chunk, chunks, flags...); err == nil {
				addNoise(t, noises, want, data)
			}
		}
	}
	if slices.ContainsFunc(all, beyond) && most > 5e-2 {
		skip(t, "rounding changes some sums by more than a twentieth")
	}
	var rounded []string
	for _, d := range all {
		if beyond(d) {
			t.Errorf("%s: column %d: %v, want %v, of %v rows: %.2g apart, rounding makes %.2g", d.name,
				d.column, d.ours,
				d.it, d.rows, d.worst, noises[d.name])
		}
		if d.worst > 1e-5 {
			rounded = append(rounded, fmt.Sprintf("%s %.2g (%.1f)", d.name, d.worst, d.worst/noises[d.name]))
		}
	}
	t.Logf("largest relative difference of a column %.2g", worst)
	if rounded != nil {
		t.Logf("above 1e-5, and how many times what rounding makes: %s", strings.Join(rounded, ", "))
	}
	return worst
}

// addNoise raises the noise of tensors, by name, to the difference between the file of another backend and that of the
// backend that the runtime chooses.
func addNoise(t *testing.T, noises map[string]float64, want *imatrix.Matrix, data []byte) {
	t.Helper()
	m, err := imatrix.Parse("another backend's", data)
	must(t, err)
	for i := range want.Entries() {
		e := &want.Entries()[i]
		f := m.Entry(e.Name)
		if f == nil || !slices.Equal(f.Counts, e.Counts) {
			continue
		}
		x, err := want.Sums(e)
		must(t, err)
		y, err := m.Sums(f)
		must(t, err)
		d, _ := largestDifference(x, y)
		noises[e.Name] = max(noises[e.Name], d)
	}
}

// exactImatrix is exactPath for llama-imatrix.
func exactImatrix() []string {
	return slices.DeleteFunc(slices.Clone(exactPath), func(s string) bool { return s == "--no-warmup" })
}

// importance returns the file that llama-imatrix writes with the backend.
func (b backend) importance(file, text string, chunk, chunks int, flags ...string) ([]byte, error) {
	c, out := strconv.Itoa(chunk), work+"/ref.imatrix"
	os.Remove(root + out)
	argv := append([]string{"timeout", "120", "llama-imatrix", "-m", file, "-f", text, "-c", c, "-b", c,
		"--chunks", strconv.Itoa(chunks), "-o", out, "--output-format", "gguf", "--process-output", "--no-ppl"},
		slices.Concat(exactImatrix(), flags)...)
	if log, err := b.command(argv...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the runtime: %s", complaints(log))
	}
	return os.ReadFile(root + out)
}

// largestDifference returns the largest relative difference of two vectors, and its index.
func largestDifference(a, b []float32) (most float64, at int) {
	for i, v := range a {
		d := math.Abs(float64(v) - float64(b[i]))
		if d != 0 {
			d /= max(math.Abs(float64(v)), math.Abs(float64(b[i])))
		}
		if !(d <= most) {
			most, at = d, i
		}
	}
	return most, at
}
