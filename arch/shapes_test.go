package arch

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/shape"
	"ggforge/arch/table"
)

// outsideTables are names that no row of an architecture makes: tensors joined on
// request, and dense modules.
var outsideTables = []string{"attn_qkv", "ffn_gate_up_exps", "dense_2", "dense_3"}

// TestShapesOfArchitectures expects a rule for every tensor that an architecture without a graph can make, and a
// tensor for every rule. TestVerdicts checks the tensors of the others.
func TestShapesOfArchitectures(t *testing.T) {
	type use map[string]bool
	used := map[string]use{} // by architecture
	common := use{}
	for _, name := range outsideTables {
		common[name] = true
	}
	rules := map[string]shape.Rules{}
	for _, a := range slices.Concat(every(), encoders(), []*table.Arch{mistralFormatVision}) {
		id := a.Name
		switch {
		case a.Graph != nil:
			id += " with a graph"
		case len(a.Classes) > 0 && a.Encoder != nil:
			id = a.Classes[0] // all have one name
		}
		if other, ok := rules[id]; ok && !reflect.DeepEqual(other, a.Shapes) {
			t.Errorf("%s: tables with different Shapes", id)
		}
		rules[id] = a.Shapes
		if used[id] == nil {
			used[id] = use{}
		}
		var names []string
		for i := range a.Tensors {
			row := &a.Tensors[i]
			switch row.Kind.(type) {
			case *table.Meta, table.Integers:
				continue
			}
			if row.Drops() {
				continue
			}
			suffixes := []string{".weight"}
			if row.Exact {
				suffixes = []string{""}
			} else if row.Bias != table.NoBias {
				suffixes = append(suffixes, ".bias")
			}
			for _, suffix := range suffixes {
				names = append(names, row.Outputs(0, suffix)...)
				names = append(names, row.Outputs(1, suffix)...)
			}
		}
		for _, e := range a.Extra {
			names = append(names, e.GGUF)
		}
		for _, name := range names {
			if _, _, ok := a.Shapes.Rule(name); !ok && a.Graph == nil {
				t.Errorf("%s: no row has the dimensions of %s", id, name)
			}
			for _, row := range shape.Names(name) {
				used[id][row] = true
				common[row] = common[row] || a.Graph == nil || a.Graph.Ignores(name)
			}
		}
		// every expression, without a value for anything
		var tensors []shape.Tensor
		for _, name := range names {
			tensors = append(tensors, shape.Tensor{Name: name, NE: []int64{}})
		}
		if a.Shapes.Check(a.Name, nil, tensors, nil) == nil && a.Graph == nil {
			t.Errorf("%s: tensors without dimensions are accepted", id)
		}
	}
	for arch, r := range rules {
		for row := range r.Tensors {
			if !used[arch][row] && !slices.Contains(outsideTables, row) {
				t.Errorf("%s: a row for %q, which no table makes", arch, row)
			}
		}
		for name := range r.Dims {
			if !mentions(r, name) && !mentions(shape.Common, name) {
				t.Errorf("%s: no expression has %q", arch, name)
			}
		}
	}
	for row := range shape.Common.Tensors {
		if !common[row] {
			t.Errorf("a common row for %q, which no table makes", row)
		}
	}
}

// mentions reports whether an expression of r has a name.
func mentions(r shape.Rules, name string) bool {
	texts := append([]string{}, r.Relations...)
	for _, t := range []shape.Table{r.Tensors, r.Dims} {
		for _, text := range t {
			texts = append(texts, text)
		}
	}
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(text,
			func(c rune) bool { return strings.ContainsRune(" ,|+-*/()", c) }) {
			if word == name {
				return true
			}
		}
	}
	return false
}
