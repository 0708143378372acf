package graph

import (
	"slices"
	"strings"

	"ggforge/gguf"
)

// Fold is how weights of a file are folded with Hadamard matrices, which spreads outliers over a block of columns: the
// file has W·D·H in place of W, where D has signs in its diagonal, and H the normalized Sylvester-Walsh-Hadamard matrix
// of Block columns, over and over. A product has H·D·x in place of its inputs x; a row of a folded embedding y is
// D·H·y after the lookup.
//
// Source: libllama 0.7.0, its messages about these keys and the order of its operations.
type Fold struct {
	Block   int64             // a power of two
	Signs   map[int][]float32 // 1 or -1, by the length of inputs; nil if all are 1
	Weights []string          // tensors whose inputs are transformed, sorted
	Lookup  bool              // rows of token_embd are transformed back
	Tied    bool              // the output matrix is token_embd, which is folded
	Grouped bool              // inputs of ssm_out are transformed in the order [head, value head of a key head, key head]
}

// foldKeys are the keys of a Fold, which are not below the architecture's name.
var foldKeys = []string{foldVersion, "prism.hadamard.tied_output", "prism.hadamard.block_size",
	"prism.hadamard.transform", "prism.hadamard.axis", "prism.hadamard.sign_mode", "prism.hadamard.sign_widths",
	"prism.hadamard.sign_values", "prism.hadamard.weight_names", "prism.hadamard.inverse_weight_names",
	"prism.hadamard.gdn_v_grouped"}

const (
	foldVersion   = "prism.hadamard.version"
	embeddingName = "token_embd.weight"
	outputName    = "output.weight"
)

// Fold returns how the weights of the file are folded, nil if they are not.
func (d *Decl) Fold() *Fold { return d.fold }

// readFold sets the fold of a file.
func (d *Decl) readFold() {
	if !d.model.Folds {
		return
	}
	version, ok := d.lookup(foldVersion)
	if !ok {
		return
	}
	want := func(key, want string) {
		v, ok := d.values["prism.hadamard."+key]
		found := "missing"
		if ok {
			found = v.Short()
		}
		d.broken("%q is %s, want %s", "prism.hadamard."+key, found, want)
	}
	value := func(key string) gguf.Value {
		v, _ := d.lookup("prism.hadamard." + key)
		return v
	}
	f := &Fold{}
	f.Tied, _ = value("tied_output").Bool()
	f.Grouped, _ = value("gdn_v_grouped").Bool()
	switch n, _ := version.Int(); {
	case n != 1 && n != 2:
		want("version", "1 or 2")
	case f.Tied != (n == 2):
		want("tied_output", "true in version 2, and in no other")
	}
	if f.Block, _ = value("block_size").Int(); f.Block < 1 || f.Block&(f.Block-1) != 0 {
		want("block_size", "a power of two")
	}
	if s, _ := value("transform").Str(); s != "normalized-sylvester-walsh-hadamard" {
		want("transform", `"normalized-sylvester-walsh-hadamard"`)
	}
	if s, _ := value("axis").Str(); s != "input-last-dimension" {
		want("axis", `"input-last-dimension"`)
	}
	switch s, _ := value("sign_mode").Str(); s {
	case "identity":
	case "explicit":
		f.Signs = d.foldSigns(value("sign_widths"), value("sign_values"))
	default:
		want("sign_mode", `"identity" or "explicit"`)
	}
	f.Weights = foldNames(value("weight_names"))
	if len(f.Weights) == 0 {
		want("weight_names", "a list of tensors")
	}
	inverse := foldNames(value("inverse_weight_names"))
	if f.Lookup = len(inverse) == 1 && inverse[0] == embeddingName; len(inverse) > 0 && !f.Lookup {
		want("inverse_weight_names", `["`+embeddingName+`"]`)
	}
	if _, has := d.file.Tensors[outputName]; f.Tied && (has || !f.Lookup) {
		want("tied_output", `false in a file with "`+outputName+`", or without a folded "`+embeddingName+`"`)
	}
	d.checkFolded(f)
	d.fold = f
}

// foldSigns returns the signs by the lengths of inputs.
func (d *Decl) foldSigns(widths, values gguf.Value) map[int][]float32 {
	var all []float32
	for v := range values.Elems() {
		n, _ := v.Int()
		if n != 1 && n != -1 {
			d.broken("%q has the element %s, want 1 or -1", "prism.hadamard.sign_values", v.Short())
			return nil
		}
		all = append(all, float32(n))
	}
	signs := map[int][]float32{}
	for v := range widths.Elems() {
		n, _ := v.Int()
		if n < 1 || n > int64(len(all)) || signs[int(n)] != nil {
			d.broken("%q has the element %s, want one length of inputs each, as many signs altogether as are in %q",
				"prism.hadamard.sign_widths", v.Short(), "prism.hadamard.sign_values")
			return nil
		}
		signs[int(n)], all = all[:n:n], all[n:]
	}
	if len(all) > 0 || len(signs) == 0 {
		d.broken("%q has %d elements more than those of %q add up to", "prism.hadamard.sign_values", len(all),
			"prism.hadamard.sign_widths")
	}
	return signs
}

// checkFolded compares the tensors of a fold with those of the file.
func (d *Decl) checkFolded(f *Fold) {
	slices.Sort(f.Weights)
	names := f.Weights
	if f.Lookup {
		names = append(slices.Clone(names), embeddingName)
	}
	if len(d.file.Tensors) == 0 || d.err != nil {
		return
	}
	for i, name := range names {
		ne, ok := d.file.Tensors[name]
		switch {
		case !ok || len(ne) < 2 || !strings.HasSuffix(name, ".weight"):
			d.broken("%q has %q, want the names of matrices of the file", "prism.hadamard.weight_names", name)
		case i > 0 && name == names[i-1]:
			d.broken("%q has %q twice", "prism.hadamard.weight_names", name)
		case ne[0]%f.Block != 0:
			d.broken("tensor %q has rows of %d, want a multiple of %q, which is %d", name, ne[0],
				"prism.hadamard.block_size", f.Block)
		case f.Signs != nil && f.Signs[int(ne[0])] == nil:
			d.broken("%q has no %d, the length of the rows of %q", "prism.hadamard.sign_widths", ne[0], name)
		}
	}
}

// foldNames returns the texts of a list.
func foldNames(v gguf.Value) []string {
	var list []string
	for e := range v.Elems() {
		s, _ := e.Str()
		list = append(list, s)
	}
	return list
}
