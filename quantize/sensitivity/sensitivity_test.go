package sensitivity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

// gollama returns a small trained model, and text of the kind that it was trained on.
func gollama(t *testing.T) (*model.Model, eval.Run) {
	t.Helper()
	m, _, err := convert.Open(context.Background(), "../../test/testdata/gollama", convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	v, err := vocab.New(m.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := v.Encode(string(text[:2000]), vocab.Options{AddSpecial: true})
	if err != nil {
		t.Fatal(err)
	}
	run, err := eval.Text{Chunk: 16, Chunks: 2}.Cut(v, ids)
	if err != nil {
		t.Fatal(err)
	}
	run.Workers = 2
	return m, run
}

// matrix writes an importance matrix for the tensors of layers.
func matrix(t *testing.T, m *model.Model) string {
	t.Helper()
	var entries []imatrixtest.Entry
	for _, x := range m.Tensors {
		if len(x.NE) == 2 && strings.HasPrefix(x.Name, "blk.") {
			e := imatrixtest.Entry{Name: x.Name, Calls: 1, Counts: []float32{1}}
			for k := range x.NE[0] {
				e.Sums = append(e.Sums, 1+float32(k%5))
			}
			entries = append(entries, e)
		}
	}
	path := filepath.Join(t.TempDir(), "imatrix.gguf")
	if err := os.WriteFile(path, imatrixtest.GGUF(entries, []string{"x"}, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMeasure compares rows with whole files in which only the group has the type.
func TestMeasure(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no figure")
	}
	ctx := context.Background()
	m, run := gollama(t)
	im := matrix(t, m)
	base, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		group  Group
		types  []gguf.Type
		matrix string
		rows   int
		row    string // compared with a file
		typ    gguf.Type
		of     int // tensors
	}{
		{ByRole, []gguf.Type{gguf.TypeQ2_K, gguf.TypeQ6_K}, "", 2 * 10, "ffn_down", gguf.TypeQ2_K, 6},
		{ByLayer, []gguf.Type{gguf.TypeIQ2_XS}, im, 7, "blk.4", gguf.TypeIQ2_XS, 7},
		{ByTensor, []gguf.Type{gguf.TypeQ4_0}, "", 6*7 + 3, "output", gguf.TypeQ4_0, 1},
		{ByLayer, []gguf.Type{gguf.TypeF16}, "", 6 + 3, "all", gguf.TypeF16, 44},
	} {
		table, err := Measure(ctx, m, Options{Types: c.types, Group: c.group, Matrix: c.matrix, Run: run})
		if err != nil {
			t.Fatal(err)
		}
		if len(table.Rows) != c.rows {
			t.Errorf("%s: %d rows, want %d", c.group, len(table.Rows), c.rows)
		}
		if !slices.IsSortedFunc(table.Rows, func(a, b Row) int { return cmp.Compare(b.rank(), a.rank()) }) {
			t.Errorf("%s: not sorted", c.group)
		}
		i := slices.IndexFunc(table.Rows, func(r Row) bool { return r.Group == c.row && r.Type == c.typ.String() })
		if i < 0 {
			t.Fatalf("%s: no row %s", c.group, c.row)
		}
		row := table.Rows[i]
		if len(row.Tensors) != c.of {
			t.Errorf("%s: %v, want %d tensors", c.row, row.Tensors, c.of)
		}
		path := filepath.Join(t.TempDir(), "m.gguf")
		opt := quantize.Options{PlanOptions: quantize.PlanOptions{Pure: true,
			Recipe: &quantize.Recipe{Name: "x", Type: c.typ}}, Matrix: c.matrix}
		batch, err := quantize.PrepareBatch(ctx, m, []*quantize.Recipe{opt.Recipe}, opt)
		if batch == nil {
			t.Fatal(err)
		}
		one, err := batch.Jobs[0].Model(func(d *quantize.Decision) bool { return slices.Contains(row.Tensors, d.Name) })
		if err != nil {
			t.Fatal(err)
		}
		f := &writer.File{Path: path, Metadata: one.Metadata}
		for _, x := range one.Tensors {
			f.Tensors = append(f.Tensors, writer.Tensor{Name: x.Name, Type: x.Type, Source: x.Source})
		}
		if _, err := writer.Write(ctx, f, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		batch.Close()
		file, err := model.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		written, err := eval.New(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := eval.Compare(ctx, base, []*eval.Model{written}, run, func(_ int, w *eval.Comparison) error {
			if row.Divergence != w.Divergence.Mean || row.DivergenceError != w.Divergence.Error ||
				row.LogRatio != w.LogRatio.Mean || row.Top != w.Top.Mean ||
				(!(row.Divergence > 0) && c.typ != gguf.TypeF16) {
				t.Errorf("%s as %v: %+v, of the file %+v", c.row, c.typ, row, w.Divergence)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var bytes int64
		for _, x := range file.Tensors {
			if slices.Contains(row.Tensors, x.Name) {
				bytes += x.Bytes()
			}
		}
		if bytes != row.Bytes || bytes == 0 || row.BPW != 8*float64(bytes)/float64(row.Weights) {
			t.Errorf("%s as %v: %d bytes of %d weights, %v bits per weight; in the file %d", c.row, c.typ, row.Bytes,
				row.Weights, row.BPW, bytes)
		}
		if c.typ == gguf.TypeIQ2_XS && (len(table.Skipped) != 2 ||
			!strings.Contains(table.Skipped[0].Reason, "no entry")) {
			t.Errorf("skipped %+v", table.Skipped)
		}
		if saves := row.BaseBytes > row.Bytes; saves != (row.PerByte != nil) ||
			saves && *row.PerByte != row.Divergence/float64(row.BaseBytes-row.Bytes) {
			t.Errorf("%s as %v: %v for each byte", c.row, c.typ, row.PerByte)
		}
	}
}

func TestGroups(t *testing.T) {
	for name, want := range map[string][3]string{
		"blk.12.ffn_down_exps.weight": {"blk.12.ffn_down_exps", "ffn_down_exps", "blk.12"},
		"token_embd.weight":           {"token_embd", "token_embd", "token_embd"},
		"blk.weight":                  {"blk", "blk", "blk"},
		"enc.blk.0.attn_q.weight":     {"enc.blk.0.attn_q", "enc.blk.0.attn_q", "enc.blk.0.attn_q"},
	} {
		for i, g := range Groups {
			if got := g.of(name); got != want[[]int{0, 1, 2}[i]] {
				t.Errorf("%s by %s: %s, want %s", name, g, got, want[i])
			}
		}
	}
}

func TestRefused(t *testing.T) {
	m, run := gollama(t)
	for name, c := range map[string]struct {
		opt  Options
		kind error
		want string
	}{
		"group": {Options{Group: "x", Types: []gguf.Type{gguf.TypeQ8_0}}, fault.Usage, "groups by"},
		"types": {Options{Group: ByRole}, fault.Usage, "no types"},
		"importance": {Options{Group: ByRole, Types: []gguf.Type{gguf.TypeIQ2_XS}}, fault.Refused,
			"needs an importance matrix"},
		"encoder": {Options{Group: ByRole, Types: []gguf.Type{gguf.TypeQ8_K}}, fault.Unsupported,
			"cannot be converted to this type"},
		"the same": {Options{Group: ByRole, Types: []gguf.Type{gguf.TypeBF16}}, fault.Refused,
			"no tensor can be converted to [BF16]"},
		"matrix": {Options{Group: ByRole, Types: []gguf.Type{gguf.TypeQ8_0}, Matrix: "none"},
			os.ErrNotExist, "none"},
	} {
		c.opt.Run = run
		if _, err := Measure(context.Background(), m, c.opt); !errors.Is(err, c.kind) ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %v: %s", name, err, c.kind, c.want)
		}
	}
}
