package calibrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ggforge/convert"
	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/test/hftest"
)

// TestMemory checks that the memory of a run depends on width and tokens as documented for Run, not on the number of
// layers: for a model that is larger than the limit, with all of its moments written to a file and read from it.
func TestMemory(t *testing.T) {
	const width, wide, tokens = 128, 512, 16
	// Two streams and the intermediate results of a block; moments of all inputs of a layer and their pending rows;
	// factors of the widest input, and its rows that are being encoded.
	streams := 4 * tokens * (2*width + 8*width + 3*wide)
	moments := 4 * (3*width*width + wide*wide + runRows*(3*width+wide))
	encoding := 4*wide*wide + 4*batchRows*wide + 20*width*wide
	limit := uint64(streams+moments+encoding) + 2<<20 // panels of weights, tables
	for _, layers := range []int{2, 30} {
		m := layered(t, width, wide, layers)
		var targets []Target
		for i := range m.Tensors {
			if name := m.Tensors[i].Name; name == "blk.0.attn_v.weight" || name == "blk.1.ffn_down.weight" {
				targets = append(targets, Target{i, gguf.TypeQ4_0})
			}
		}
		path := filepath.Join(t.TempDir(), "moments")
		for _, what := range []string{"collecting", "from a file"} {
			heap := func() uint64 {
				runtime.GC()
				runtime.GC() // pools keep what is unused for one collection
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				return s.HeapAlloc
			}
			before, most := heap(), uint64(0)
			run := eval.Run{Tokens: text(tokens), Chunk: 16, Workers: 1}
			for i := range run.Tokens {
				run.Tokens[i] %= 200
			}
			b, err := Run(context.Background(), m, targets,
				Options{Run: run, Dir: t.TempDir(), Passes: 1, Feedback: true, Moments: path,
					Progress: func(float64) { most = max(most, heap()) }})
			if err != nil {
				t.Fatal(err)
			}
			b.Close()
			most -= before
			t.Logf("%d layers, %s: %d bytes, limit %d, model %d", layers, what, most, limit, m.Bytes)
			if most > limit {
				t.Errorf("%d layers, %s: %d bytes, want at most %d", layers, what, most, limit)
			}
			if st, err := os.Stat(path); err != nil ||
				layers > 2 && (m.Bytes < int64(limit) || st.Size() < int64(limit)) {
				t.Errorf("%d bytes of a model, %v: the model or its moments are below the limit", m.Bytes, err)
			}
		}
	}
}

// TestBestMemory checks that the memory of Best does not grow with the number of layers, but for the states that the
// backward pass keeps, although the moments of gradients of all layers together are larger than the limit.
func TestBestMemory(t *testing.T) {
	const width, wide, tokens = 128, 512, 16
	used := map[int]uint64{}
	const few, many = 2, 30
	for _, layers := range []int{few, many} {
		m := layered(t, width, wide, layers)
		heap := func() uint64 {
			runtime.GC()
			runtime.GC() // pools keep what is unused for one collection
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return s.HeapAlloc
		}
		before, most := heap(), uint64(0)
		run := eval.Run{Tokens: text(tokens), Chunk: 16, Workers: 1}
		for i := range run.Tokens {
			run.Tokens[i] %= 200
		}
		// All layers have gradients, as another output may need them; two tensors are encoded.
		out := as(m, map[string]gguf.Type{"blk.0.ffn_gate": gguf.TypeQ4_0, "blk.1.ffn_down": gguf.TypeQ4_0})
		shared := new(Shared)
		b, err := Best(context.Background(), m, out, Options{Run: run, Dir: t.TempDir(), Passes: 1, Feedback: true,
			Gradients: 1, Shared: shared, Progress: func(float64) { most = max(most, heap()) }})
		if err != nil {
			t.Fatal(err)
		}
		if !b.TwoSided {
			t.Error("no gradients at outputs")
		}
		if size := uint64(shared.outputs.size); layers == many && size < most-before {
			t.Errorf("moments of gradients have %d bytes, want more than the memory, %d", size, most-before)
		}
		b.Close()
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
		used[layers] = most - before
	}
	limit := used[few] + (many-few)*4*width*tokens + 1<<20 // tables of tensors
	t.Logf("%d bytes, with %d layers %d, limit %d", used[few], many, used[many], limit)
	if used[many] > limit {
		t.Errorf("%d bytes with %d layers, want at most %d", used[many], many, limit)
	}
}

// layered opens a made-up Llama of so many layers, whose weights repeat: that is fast.
func layered(t *testing.T, width, wide, layers int) *model.Model {
	t.Helper()
	dir, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "F32", Ring: true,
		Set: fmt.Sprintf(`{"hidden_size": %d, "intermediate_size": %d, "num_hidden_layers": %d}`, width, wide, layers)})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := convert.Open(t.Context(), dir, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
