package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
)

// cuts are ways to share five chunks.
var cuts = [][]int{{0, 2, 2, 5}, {0, 1, 2, 3, 4, 5}}

// TestParts checks that the results of chunks do not depend on the other chunks of the same run,
// and that the figures of all chunks have the same bits.
func TestParts(t *testing.T) {
	ctx := context.Background()
	const chunk, chunks = 16, 5
	for _, c := range []struct {
		arch    string
		experts int
	}{{"llama", 0}, {"llama", 5}, {"gemma2", 0}} {
		open := func(sh shape) *Model {
			if sh.experts = c.experts; c.arch == "gemma2" {
				sh.change = gemma2Norms
			}
			m, err := New(made(c.arch, sh))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		base, near, far := open(shape{}), open(rounded(gguf.TypeF16)), open(rounded(gguf.TypeBF16))
		run := Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: 2}
		want, err := base.Perplexity(ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		var compared []*Comparison
		if err := Compare(ctx, base, []*Model{near, far}, run,
			func(_ int, c *Comparison) error { compared = append(compared, c); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, cut := range cuts {
			var losses []float64
			found := []*Measured{{}, {}}
			for i := range cut[1:] {
				run.Workers = 1 + i%3
				some, err := base.Losses(ctx, run, cut[i], cut[i+1])
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, some...)
				list, err := Measure(ctx, base, []*Model{near, far}, run, cut[i], cut[i+1])
				if err != nil {
					t.Fatal(err)
				}
				for k, x := range list {
					b, err := x.MarshalBinary()
					var again Measured
					if err == nil {
						err = again.UnmarshalBinary(b)
					}
					if err == nil {
						err = found[k].Append(&again)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := PerplexityOf(losses, chunks); !reflect.DeepEqual(got, want) {
				t.Errorf("%v, cut at %v: perplexity %v, want %v", c, cut, got.Value, want.Value)
			}
			for k, x := range found {
				if got := x.Comparison(); !reflect.DeepEqual(got, compared[k]) || len(got.Layers) == 0 {
					t.Errorf("%v, cut at %v: model %d: %+v, want %+v", c, cut, k, got, compared[k])
				}
			}
		}
		if _, err := base.Losses(ctx, run, 3, 6); !errors.Is(err, fault.Usage) {
			t.Errorf("chunks to 6 of 5: %v", err)
		}
	}
	one, other := &Measured{chunks: 1, positions: make([]positionResult, 3)},
		&Measured{chunks: 1, positions: make([]positionResult, 4)}
	if err := one.Append(other); !errors.Is(err, fault.Refused) {
		t.Errorf("4 positions of a chunk after 3: %v", err)
	}
}

// TestGroups checks that sums of groups of chunks equal the sums of one process, however the groups
// are shared among processes, and that a run does not resume from the state of another.
func TestGroups(t *testing.T) {
	ctx := context.Background()
	const chunk, chunks, group = 16, 7, 2
	for _, c := range []struct {
		sh   shape
		want string
	}{{shape{}, "e7f0ccbe0bbb"}, {shape{experts: 5}, "b451d75b2e12"}} {
		m, err := New(made("llama", c.sh))
		if err != nil {
			t.Fatal(err)
		}
		run := Run{Tokens: text(chunk * chunks), Chunk: chunk, Workers: 2}
		collect := func(r Run, opt Importance) *imatrix.Sums {
			t.Helper()
			sums := imatrix.NewSums(chunk)
			opt.Output = true
			if err := m.Collect(ctx, r, sums, opt); err != nil {
				t.Fatal(err)
			}
			return sums
		}
		whole := fileOf(t, collect(run, Importance{Group: group}))
		if got := fmt.Sprintf("%x", sha256.Sum256(whole))[:len(c.want)]; got != c.want {
			t.Errorf("%+v: %s, want %s", c.sh, got, c.want)
		}
		joined := imatrix.NewSums(chunk)
		for at := 0; at < chunks; at += group {
			r := run
			r.Tokens, r.Workers = run.Tokens[at*chunk:min(at+group, chunks)*chunk], 1+at%3
			f, err := collect(r, Importance{}).State(nil)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			f.WriteTo(&b)
			sums, _, err := imatrix.ParseState("part", b.Bytes())
			if err == nil {
				err = joined.Join(sums)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(fileOf(t, joined), whole) {
			t.Errorf("%+v: the sum of groups from different runs differs", c.sh)
		}
		if !bytes.Equal(fileOf(t, collect(run, Importance{Group: chunks})), fileOf(t, collect(run, Importance{}))) {
			t.Errorf("%+v: one group of all chunks differs from no groups", c.sh)
		}
		var saved []int
		collect(run, Importance{Group: group, Every: 2 * group,
			Save: func(done int) error { saved = append(saved, done); return nil }})
		if fmt.Sprint(saved) != "[4 7]" {
			t.Errorf("saved after %v chunks, want 4 and 7", saved)
		}
		for _, opt := range []Importance{{Group: 2, Every: 3}, {Group: 2, Done: 3}, {Group: -1}} {
			if err := m.Collect(ctx, run, imatrix.NewSums(chunk), opt); !errors.Is(err, fault.Usage) {
				t.Errorf("%+v: %v", opt, err)
			}
		}
	}
}

func FuzzMeasured(f *testing.F) {
	seed := func(x *Measured) {
		b, err := x.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(&Measured{})
	seed(&Measured{chunks: 2, positions: make([]positionResult, 6)})
	seed(&Measured{chunks: 1, positions: make([]positionResult, 2),
		layers: [][]stateDistance{{{1, 2}, {3, math.NaN()}}, {{5, 6}, {7, 8}}}})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Measured
		if err := x.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, fault.Broken) {
				t.Fatal(err)
			}
			return
		}
		again, err := x.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x, %v", b, again, err)
		}
	})
}
