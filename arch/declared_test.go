package arch_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/test/mutate"
)

// notGraphs are keys of files that the graph of their architecture does not describe: decision models with layers of
// their own.
var notGraphs = []string{"decision.block_count"}

// commonKeys are keys that change nothing, whatever the architecture is.
var commonKeys = []string{"context_length", "vocab_size", "rope.scaling.finetuned", "nextn_predict_layers",
	"tensor_data_layout"}

// TestDeclared checks the graph of each architecture against the made-up models: every tensor is declared with its
// dimensions, or ignored; every required tensor is in the file; every key of the architecture is one of the graph.
func TestDeclared(t *testing.T) {
	if testing.Short() {
		t.Skip("writes all made-up models")
	}
	mutate.EachModel(t, func(name string, m *model.Model) {
		of := m.Architecture()
		g := arch.Graph(of)
		if g == nil || slices.ContainsFunc(notGraphs, func(key string) bool {
			_, ok := m.Metadata.Get(gguf.ArchKey(of, key))
			return ok
		}) {
			return
		}
		f := graph.NewFile(m.Metadata, nil)
		for _, x := range m.Tensors {
			f.Tensors[x.Name] = x.NE
		}
		if ne := f.Tensors["token_embd.weight"]; len(ne) == 2 {
			f.Vocab = ne[1]
		}
		d, err := graph.Declare(g, f)
		if err != nil && name != "exaone-moe/no-draft" { // llama.cpp does not load it, for lack of a key
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			return
		}
		for _, tensor := range slices.Sorted(maps.Keys(f.Tensors)) {
			ne := f.Tensors[tensor]
			if x, ok := d.Tensor(tensor); ok && !x.Fits(ne) {
				t.Errorf("%s: %s is %s, declared are %s", name, tensor, gguf.Shape(ne), gguf.Shape(x.NE))
			} else if !ok && !ignored(g, tensor, d.Layers()) {
				t.Errorf("%s: %s %s is not declared", name, tensor, gguf.Shape(ne))
			}
		}
		for _, x := range d.Tensors() {
			if _, ok := f.Tensors[x.Name]; !ok && !x.May {
				t.Errorf("%s: %s is declared, but not in the file", name, x.Name)
			}
		}
		keys := slices.Concat(graph.Keys(g), commonKeys, graph.ByName) // files have those, whether they count or not
		for _, kv := range m.Metadata {
			if key, ok := strings.CutPrefix(kv.Key, of+"."); ok && !slices.Contains(keys, key) && !g.Ignores(key) {
				t.Errorf("%s: %s is no key of the graph", name, kv.Key)
			}
		}
	})
}

// ignored reports whether a tensor is ignored: by its name in the layer, or since it is in an MTP (NextN) layer.
func ignored(g *graph.Model, tensor string, layers int) bool {
	if g.Ignores(tensor) {
		return true
	}
	_, inLayer, _ := strings.Cut(tensor, "blk.")
	number, inLayer, _ := strings.Cut(inLayer, ".")
	n, err := strconv.Atoi(number)
	return err == nil && (n >= layers || g.Ignores(inLayer))
}
