package calibrate

import (
	"context"
	"testing"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/rows"
)

// TestRanges checks a tensor whose rows are cut into ranges of columns: its error is the sum of the errors
// that the moments of each range give, and it falls.
func TestRanges(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	ctx := context.Background()
	m := open(t)
	run := eval.Run{Tokens: text(3 * 64), Chunk: 64, Workers: 2}
	const columns = 256 // of 768
	target := Target{-1, gguf.TypeQ4_K}
	for i := range m.Tensors {
		if m.Tensors[i].Name == "blk.1.ffn_down.weight" {
			target.Tensor = i
		}
	}
	b, err := Run(ctx, m, []Target{target}, Options{Run: run, Dir: t.TempDir(), MaxColumns: columns, Passes: 3,
		Feedback: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var parts []*MomentSums
	run.Inputs = func(in eval.Inputs) error {
		if in.Name != "blk.1.ffn_down.weight" {
			return nil
		}
		for from := 0; from < in.Columns; from += columns {
			if len(parts) <= from/columns {
				parts = append(parts, NewMomentSums(columns, 1))
			}
			if err := parts[from/columns].AddColumns(ctx, in.X, in.Columns, from); err != nil {
				return err
			}
		}
		return nil
	}
	e, err := eval.New(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Forward(ctx, run); err != nil {
		t.Fatal(err)
	}
	x := &m.Tensors[target.Tensor]
	count, n := int(gguf.Rows(x.NE)), int(x.NE[0])
	w := make([]float32, count*n)
	if err := rows.Decode(x.Source, w, new([]byte), 0, int64(count)); err != nil {
		t.Fatal(err)
	}
	data, err := b.Source(target).Raw(new([]byte), 0, int64(count))
	if err != nil {
		t.Fatal(err)
	}
	exact := 0.0
	perRow, perPart := int(target.Type.RowBytes(int64(n))), int(target.Type.RowBytes(columns))
	for i, p := range parts {
		moments, err := p.Moments(ctx, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		var part []float32
		var blocks []byte
		for r := range count {
			part = append(part, w[r*n+i*columns:][:columns]...)
			blocks = append(blocks, data[r*perRow+i*perPart:][:perPart]...)
		}
		exact += errorOf(t, moments, target.Type, part, blocks)
	}
	l := b.Errors[0]
	if d := l.After - exact; len(parts) != 3 || d > 1e-4*exact || d < -1e-4*exact || !(l.After < 0.7*l.Before) {
		t.Errorf("%d ranges, %+v, want an error of %v", len(parts), l, exact)
	}
}
