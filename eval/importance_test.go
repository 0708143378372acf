package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
)

// fileOf returns the sums as a GGUF file.
func fileOf(t *testing.T, s *imatrix.Sums) []byte {
	t.Helper()
	f, err := s.Layout(imatrix.FormatGGUF)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCollect checks that importance has the same bits in every build, at every width,
// with any number of workers, however chunks are grouped, and after a run is resumed.
func TestCollect(t *testing.T) {
	const chunk, chunks = 40, 5
	for _, c := range []struct {
		arch string
		shape
		output bool
		want   string
	}{
		{"llama", shape{}, false, "668edf07cf7a"},
		{"llama", shape{experts: 5}, true, "d65222d4c693"},
		{"gemma2", shape{change: func(m *model.Model) {
			gemma2Norms(m)
			m.Metadata.Set("gemma2.attention.sliding_window",
				gguf.Uint32(9))
		}}, true, "84878ffa1138"},
	} {
		m, err := New(made(c.arch, c.shape))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct{ workers, every, stop int }{{1, 0, 0}, {3, 2, 0}, {2, 1, 3}} {
			sums := imatrix.NewSums(chunk)
			run := Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: v.workers}
			opt := Importance{Output: c.output, Every: v.every}
			if v.stop > 0 { // and resume from the saved state
				stop := errors.New("stop")
				opt.Save = func(done int) error {
					if done < v.stop {
						return nil
					}
					f, err := sums.State(nil)
					if err != nil {
						t.Fatal(err)
					}
					var b bytes.Buffer
					if _, err := f.WriteTo(&b); err != nil {
						t.Fatal(err)
					}
					if sums, _, err = imatrix.ParseState("state", b.Bytes()); err != nil {
						t.Fatal(err)
					}
					return stop
				}
				if err := m.Collect(context.Background(), run, sums, opt); !errors.Is(err, stop) {
					t.Fatal(err)
				}
				opt.Done, opt.Save = v.stop, nil
			}
			last := -1.0
			run.Progress = func(p Progress) {
				if p.Done < last || p.Done > 1 {
					t.Errorf("%v done after %v", p.Done, last)
				}
				last = p.Done
			}
			if err := m.Collect(context.Background(), run, sums, opt); err != nil {
				t.Fatal(err)
			}
			if last != 1 {
				t.Errorf("%v done", last)
			}
			if got := fmt.Sprintf("%x", sha256.Sum256(fileOf(t, sums)))[:12]; got != c.want {
				t.Errorf("%s of %d experts, %d workers, %d chunks at once: %s, want %s", c.arch, c.experts, v.workers,
					v.every, got, c.want)
			}
			seen := sums.Matrix("")
			if seen.Chunks != chunks {
				t.Errorf("%d chunks", seen.Chunks)
			}
			if got := seen.Entry("output.weight") != nil; got != c.output {
				t.Errorf("output.weight: %v", got)
			}
			if seen.Entry("token_embd.weight") != nil || seen.Entry("blk.1.attn_q.weight") == nil {
				t.Error("other tensors than expected")
			}
			if c.experts > 0 {
				var all int64
				for _, n := range seen.Entry("blk.1.ffn_down_exps.weight").Counts {
					all += n
				}
				if all != 2*chunk*chunks {
					t.Errorf("experts saw %d rows", all)
				}
			}
		}
	}
}

// TestCollectRefused checks models and runs without importance.
func TestCollectRefused(t *testing.T) {
	m, err := New(made("llama", shape{}))
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Tokens: text(80), Chunk: 40, Workers: 1}
	if err := m.Collect(context.Background(), run, imatrix.NewSums(40), Importance{Done: 3}); !errors.Is(err,
		fault.Usage) {
		t.Errorf("more chunks done than the text has: %v", err)
	}
	other, err := New(made("llama", shape{experts: 4}))
	if err != nil {
		t.Fatal(err)
	}
	sums := imatrix.NewSums(40)
	if _, err := sums.Tally("blk.0.attn_q.weight", 3, 1, false); err != nil {
		t.Fatal(err)
	}
	if err := other.Collect(context.Background(), run, sums, Importance{}); !errors.Is(err, fault.Refused) {
		t.Errorf("sums of another model: %v", err)
	}
	huge, err := New(made("llama", shape{change: func(m *model.Model) {
		m.Metadata.Set("llama.attention.layer_norm_rms_epsilon", gguf.Float32(0))
		for i := range m.Tensors {
			if m.Tensors[i].Name == "blk.1.attn_norm.weight" {
				v := make([]float32, 48)
				v[5] = 3e38
				m.Tensors[i].Source = encoded(v, []int64{48}, gguf.TypeF32)
			}
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Collect(context.Background(), run, imatrix.NewSums(40), Importance{}); !errors.Is(err,
		fault.Broken) {
		t.Errorf("inputs whose squares are infinite: %v", err)
	}
}

// TestExpect checks that the entries, their sizes and the chunks that a run will collect are known before it.
func TestExpect(t *testing.T) {
	list := slices.Concat(kinds, forwardKinds)
	models := []*model.Model{made("llama", shape{experts: 5})}
	for _, c := range list {
		models = append(models, listed(c.arch, c.keys, c.tensors))
	}
	for _, source := range models {
		m, err := New(source)
		if err != nil {
			t.Fatal(err)
		}
		run := Run{Tokens: text(2 * 40), Chunk: 40, Workers: 2}
		sums := imatrix.NewSums(run.Chunk)
		if err := m.Collect(context.Background(), run, sums, Importance{Output: true}); err != nil {
			t.Fatal(err)
		}
		c, err := m.Collector(imatrix.NewSums(run.Chunk), true)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := c.Expect(context.Background(), run)
		if err != nil {
			t.Fatal(err)
		}
		if expected.Len() == 0 || expected.Chunks() != sums.Chunks() ||
			!slices.EqualFunc(expected.Tallies(), sums.Tallies(), func(a, b *imatrix.Tally) bool {
				return a.Name == b.Name && a.Columns == b.Columns && len(a.Squares) == len(b.Squares) &&
					len(a.Counts) == len(b.Counts)
			}) {
			t.Errorf("%s: %d entries of %d chunks, want %d of %d", source.Path, expected.Len(), expected.Chunks(),
				sums.Len(), sums.Chunks())
		}
	}
}
