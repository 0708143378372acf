package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	archgraph "ggforge/arch/graph"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	source "ggforge/model"
	"ggforge/test/mutate"
)

// kept is what the runtime keeps of a text in a layer: elements of keys and values for each token of a window, 0 for all
// tokens, and elements of a state.
type kept struct{ keys, values, window, state int64 }

// TestGraphs compares the caches and states of each layer, for every made-up model, with those that the declared graph
// of its architecture has, and the facts of each row with the quirks of the graph. No difference is wanted.
//
// Files of decision models have further layers, and the name of an architecture whose graph is not theirs.
func TestGraphs(t *testing.T) {
	seen, failed := map[string]bool{}, map[string]bool{}
	mutate.EachModel(t, func(name string, m *source.Model) {
		of := m.Architecture()
		declared := arch.Graph(of)
		if _, decides := m.Metadata.Get(gguf.ArchKey(of, "decision.type")); declared == nil || decides {
			return
		}
		if !seen[of] {
			seen[of] = true
			if got, want := quirkTexts(declared.Runtime), quirkTexts(lookup(of).quirks()); got != want {
				t.Errorf("%s: quirks: the graph has %s, the row %s", of, got, want)
			}
		}
		differ := func(layer int, quantity string, got, want any) {
			if failed[of+quantity] { // the first one of the architecture
				return
			}
			failed[of+quantity] = true
			t.Errorf("%s (%s), layer %d: %s: the graph has %v, memory %v", name, of, layer, quantity, got, want)
		}
		if err := compareGraph(declared, m, differ); err != nil {
			t.Errorf("%s (%s): %v", name, of, err)
		}
	})
	if cpu.HasVectors && len(seen) < 124 { // all with a graph, by arch's TestGraphs
		t.Errorf("%d architectures were compared, want at least 124", len(seen))
	}
	for _, r := range rows {
		if cpu.HasVectors && arch.Graph(r.name) != nil && !seen[r.name] {
			t.Errorf("%s: no made-up model", r.name)
		}
	}
}

// compareGraph calls differ for each quantity of a layer in which a model's graph differs from this package.
func compareGraph(declared *archgraph.Model, m *source.Model, differ func(int, string, any, any)) error {
	tensors := func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	}
	p, err := newModel(Model{m.Metadata, tensors})
	if err != nil {
		return err
	}
	d, err := archgraph.Declare(declared, archgraph.NewFile(m.Metadata, tensors))
	if err != nil {
		return err
	}
	if declared.Loop != nil || p.indexCache != nil { // memory counts these by other means
		return nil
	}
	if p.layers != d.Layers() {
		return fmt.Errorf("layers: the graph has %d, memory %d", d.Layers(), p.layers)
	}
	if p.repeats != 1 || p.extraHead {
		return fmt.Errorf("memory has caches that no graph declares")
	}
	got := declaredCaches(declared, d)
	for i := range p.hasKV {
		var want kept
		if p.hasKV[i] {
			want.keys = p.headsKV[i] * p.keyLen[i]
			if !p.latent {
				want.values = p.headsKV[i] * p.valLen[i]
			}
		}
		if p.windowed[i] && want.keys+want.values > 0 {
			want.window = p.window
		}
		if p.recurrent[i] {
			want.state = p.stateLen(i)
		}
		var have kept
		if i < len(got) {
			have = got[i]
		} else if p.mtpKV { // the graph has no sizes of MTP layers, but a quirk
			continue
		}
		for _, q := range []struct {
			name       string
			have, want int64
		}{
			{"elements of keys", have.keys, want.keys}, {"elements of values", have.values, want.values},
			{"window", have.window, want.window}, {"elements of the state", have.state, want.state},
		} {
			if q.have != q.want {
				differ(i, q.name, q.have, q.want)
			}
		}
	}
	return p.err
}

// declaredCaches returns what a graph and its quirks keep, by layer.
func declaredCaches(declared *archgraph.Model, d *archgraph.Decl) []kept {
	all := make([]kept, d.Layers())
	own := len(all)
	for _, q := range declared.Runtime {
		switch q := q.(type) {
		case archgraph.NoCache:
			return all
		case archgraph.OwnKV:
			own = int(q)
		}
	}
	for _, c := range d.Caches() {
		k := &all[c.Layer]
		k.state += c.State
		if c.Layer < own && c.Keys+c.Vals > 0 {
			k.keys, k.values, k.window = k.keys+c.Keys, k.values+c.Vals, max(k.window, c.Window)
		}
	}
	return all
}

// quirks returns the facts of a row that graphs have as quirks. Graphs have no quirk for unreadTensors.
func (r row) quirks() (list []archgraph.Quirk) {
	if r.kind == stateless {
		list = append(list, archgraph.NoCache{})
	}
	if r.noLogits {
		list = append(list, archgraph.NoLogits{})
	}
	if r.scores > 0 {
		list = append(list, archgraph.NoFlash{Biases: r.scores - 1})
	}
	if r.mtpKV {
		list = append(list, archgraph.DraftsCached{})
	}
	if r.readInMTP != nil {
		list = append(list, archgraph.DraftsRead(r.readInMTP))
	}
	if r.ownKVLayers > 0 {
		list = append(list, archgraph.OwnKV(r.ownKVLayers))
	}
	return list
}

// quirkTexts returns the sorted texts of quirks.
func quirkTexts(list []archgraph.Quirk) string {
	var texts []string
	for _, q := range list {
		texts = append(texts, fmt.Sprintf("%T%v", q, q))
	}
	slices.Sort(texts)
	return "[" + strings.Join(texts, " ") + "]"
}
