package quantize

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/writer"
)

// sums returns importance of two tensors; one has experts, the second of which has seen that many tokens.
func sums(t *testing.T, value func(i int) float32, seen int) *imatrix.Matrix {
	s := imatrix.NewSums(8)
	for _, name := range []string{"blk.0.attn_q.weight", "blk.0.ffn_down_exps.weight"} {
		matrices := 1
		if strings.Contains(name, "exps") {
			matrices = 2
		}
		tally, err := s.Tally(name, 256, matrices, matrices > 1)
		if err != nil {
			t.Fatal(err)
		}
		for k := range matrices {
			n := 8
			if k > 0 {
				n = seen
			}
			tally.Count(k, n, matrices > 1)
			for i := range tally.Columns {
				tally.Squares[k*256+i] = value(i) * float32(n)
			}
		}
	}
	return s.Matrix("imatrix.gguf")
}

// TestSetImportance checks that importance set after planning replaces the earlier importance, and that its
// compromises and errors are reported.
func TestSetImportance(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	m := &model.Model{Path: "made", Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)}}}
	for name, ne := range map[string][]int64{"blk.0.attn_q.weight": {256, 4},
		"blk.0.ffn_down_exps.weight": {256, 4, 2}} {
		v := make([]float32, gguf.Rows(ne)*ne[0])
		for i := range v {
			v[i] = float32(i*7919%1000)/1000 - 0.5
		}
		s, err := rows.Reshape(rows.Float32s(v), ne)
		if err != nil {
			t.Fatal(err)
		}
		m.Tensors = append(m.Tensors, model.New(name, s))
	}
	recipe, _ := LookupRecipe("Q4_K_M")
	prepare := func(im *imatrix.Matrix, strict bool) *Batch {
		b, err := PrepareBatch(ctx, m, []*Recipe{recipe}, Options{Importance: im, Strict: strict})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(b *Batch) []byte {
		path := filepath.Join(dir, "out.gguf")
		if _, err := b.Write(ctx, []string{path}, writer.Options{Force: true}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	known := func(i int) float32 { return float32(1 + i*i%97) }
	ones := func(int) float32 { return 1 }
	want := write(prepare(sums(t, known, 8), false))
	b := prepare(sums(t, ones, 8), false)
	if bytes.Equal(write(b), want) {
		t.Fatal("importance does not change the bytes")
	}
	found := len(b.Jobs[0].Compromises)
	if err := b.SetImportance(ctx, sums(t, known, 8)); err != nil || len(b.Jobs[0].Compromises) != found {
		t.Fatal(err, b.Jobs[0].Compromises)
	}
	if !bytes.Equal(write(b), want) {
		t.Error("the bytes differ from those with the importance given before planning")
	}
	if err := b.SetImportance(ctx, sums(t, known, 0)); err != nil || len(b.Jobs[0].Compromises) != found+1 {
		t.Errorf("%v, %v", err, b.Jobs[0].Compromises)
	}
	if !bytes.Equal(write(b), write(prepare(sums(t, known, 0), false))) {
		t.Error("a matrix without inputs: the bytes differ from those with the importance given before planning")
	}
	if err := prepare(sums(t, ones, 8), true).SetImportance(ctx, sums(t, known, 0)); !errors.As(err,
		new(*StrictError)) {
		t.Errorf("strict: %v", err)
	}
	other := imatrix.NewSums(8)
	if _, err := other.Tally("blk.0.attn_q.weight", 256, 1, false); err != nil {
		t.Fatal(err)
	}
	if err := b.SetImportance(ctx, other.Matrix("imatrix.gguf")); err == nil ||
		!strings.Contains(err.Error(), "planned with 2") {
		t.Errorf("other entries: %v", err)
	}
	if err := b.SetImportance(ctx, sums(t, func(int) float32 { return -1 }, 8)); !errors.As(err,
		new(*imatrix.ValueError)) {
		t.Errorf("values below 0: %v", err)
	}
}
