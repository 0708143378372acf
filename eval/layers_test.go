package eval_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ggforge/arch/graph"
	"ggforge/eval"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/mutate"
)

// TestLayersAsInMemory compares the evaluator's layers of every made-up model with the caches that package
// memory counts: which layers have keys, a state, a window, and of how many tokens.
func TestLayersAsInMemory(t *testing.T) {
	const context, batch = 1 << 20, 512
	seen, windows := map[string]bool{}, map[string]bool{}
	mutate.EachModel(t, func(name string, m *model.Model) {
		e, err := eval.New(m)
		if err != nil {
			if !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.Broken) {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		arch := m.Architecture()
		seen[arch] = true
		compareLayers(t, name, e.Layers(), memory.Model{Metadata: m.Metadata,
			Tensors: func(yield func(*gguf.Tensor) bool) {
				for i := range m.Tensors {
					if !yield(&m.Tensors[i].Tensor) {
						return
					}
				}
			}}, e.Predicts(), context, batch)
		for _, l := range e.Layers() {
			windows[arch] = windows[arch] || l.Window > 0
		}
	})
	if !cpu.HasVectors {
		return
	}
	for _, arch := range eval.Supported() {
		if !seen[arch] {
			t.Errorf("%s: no made-up model", arch)
		}
		sliding := false
		graph.Values(graph.Of(arch), func(v any) {
			_, ok := v.(graph.Sliding)
			sliding = sliding || ok
		})
		if sliding && !windows[arch] && arch != "exaone4" { // that has windows only with 64 layers
			t.Errorf("%s: no made-up model with windows", arch)
		}
	}
}

func compareLayers(t *testing.T, name string, layers []eval.Layer, m memory.Model, predicts bool, context,
	batch int64) {
	t.Helper()
	u, err := memory.Estimate(m, memory.Options{Context: context, Batch: batch})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	type cache struct {
		cells  int64
		layers int
	}
	want, state := map[cache]bool{}, false
	counts := map[int64]int{}
	for _, l := range layers {
		cells := context
		if l.Window > 0 {
			cells = min(context, (int64(l.Window)+batch+255)/256*256)
		}
		if l.Keys {
			counts[cells]++
		}
		if ratio := int64(l.Ratio); ratio > 0 {
			counts[(context/ratio+255)/256*256]++
		}
		state = state || l.State
	}
	for cells, n := range counts {
		want[cache{cells, n}] = true
	}
	if !predicts && len(u.Caches) == 0 && u.State == 0 { // the runtime makes caches for some encoders only
		return
	}
	drafts := 0 // other layers of which the runtime has caches: those of MTP
	arch, _ := m.Metadata.Get("general.architecture")
	of, _ := arch.Str()
	graph.Values(graph.Of(of), func(v any) {
		if _, ok := v.(graph.TokenAdapters); ok { // the head that chooses adapters
			drafts++
		}
		if _, ok := v.(graph.DraftsCached); ok {
			n, _ := m.Metadata.Get(gguf.ArchKey(of, "nextn_predict_layers"))
			more, _ := n.Int()
			drafts += int(more)
		}
	})
	got := map[cache]bool{}
	for _, c := range u.Caches {
		if c.What != "indexer" { // the evaluator refuses texts in which it chooses
			got[cache{c.Cells, c.Layers - drafts}] = true
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || state != (u.State > 0) {
		t.Errorf("%s: memory has caches of {cells layers} %v and %d bytes of states, the evaluator %v and %v", name,
			got, u.State, want, state)
	}
}

// TestNamesInTables checks that no code of this package compares the name of the architecture:
// a property of an architecture is in its graph.
func TestNamesInTables(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	asks := regexp.MustCompile(`(?i)\barch(itecture\(\))?\s*[!=]=\s*"[^"]|switch [\w.]*\barch\b(itecture\(\))? \{`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := asks.Find(text); at != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s: %s", name, at)
		}
	}
}
