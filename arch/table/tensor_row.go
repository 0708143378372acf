package table

import (
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/rows"
)

// TensorRow maps a tensor of the checkpoint, or the tensors whose names match a placeholder in HF: {bid} is a layer's
// number, {xid} an expert's, {part} each of Parts. A placeholder is a whole component of the name, except for {part};
// {xid} may follow the component's last underscore, as in shard_{xid}.
//
// {bid} gives one tensor of the file per layer. {xid} and {part} join several tensors of the checkpoint into one, at
// the position of the last of them.
type TensorRow struct {
	HF   string // name in the checkpoint without ".weight" or ".bias"
	GGUF string // name in the file without suffix; "" drops the tensor, unless Split is set
	// Exact: HF and GGUF are whole names.
	Exact     bool
	Bias      Bias
	Optional  bool       // the tensor may be missing
	Number    bool       // a tensor without dimensions is a vector of one element
	If        Cond       // condition on the layer; nil for all layers
	PerSource *Transform // applied to each tensor before Join
	Parts     []string
	Experts   Count // number of experts; nil for the keys of CommonRows
	Join      Join  // nil: rows.Stack for experts, else rows.Concat
	// Transform is applied to the (joined) tensor.
	Transform *Transform
	// Split has the tensors that the (joined) tensor is split into; it replaces GGUF and Transform.
	Split []Part
	// Group names rows whose outputs are adjacent, in the order of the rows, at the position of the last of their
	// tensors in the layer. Rows with {xid} are in group "experts" by default.
	Group string
	// Kind is the position or use of the outputs; nil for tensors at the position of their sources.
	Kind Kind
	// Type is the type of the row's matrices in the file; nil for the output's type, or F32 by KeepF32.
	Type TypeOf
}

func (t *TensorRow) applies(l Layer) (bool, error) {
	if t.If == nil {
		return true, nil
	}
	return t.If(l)
}

func (t *TensorRow) experts(l Layer) (int64, error) {
	count := t.Experts
	if count == nil {
		count = func(l Layer) (int64, error) { return l.Require(config.ExpertKeys...) }
	}
	n, err := count(l)
	if err == nil && (n < 1 || n > config.MaxParts) {
		err = fault.Errorf(fault.Broken, "%s: %d experts, want 1 to %d", config.ConfigFile, n, config.MaxParts)
	}
	return n, err
}

// hasExperts reports whether the row joins experts.
func (t *TensorRow) hasExperts() bool { return strings.Contains(t.HF, "{xid}") }

// Drops reports whether the row drops its tensors.
func (t *TensorRow) Drops() bool { return t.GGUF == "" && t.Split == nil }

// joins reports whether the row joins several tensors.
func (t *TensorRow) joins() bool { return t.hasExperts() || len(t.Parts) > 0 }

// sources returns how many tensors the row takes per layer.
func (t *TensorRow) sources(l Layer) (n int64, err error) {
	n = max(int64(len(t.Parts)), 1)
	if t.hasExperts() {
		x, err := t.experts(l)
		return n * x, err
	}
	return n, nil
}

func (t *TensorRow) group() string {
	if t.Group == "" && t.hasExperts() {
		return "experts"
	}
	return t.Group
}

// hfName returns the whole name of source i of the row in a layer.
func (t *TensorRow) hfName(l Layer, i int64, suffix string) string {
	n := max(int64(len(t.Parts)), 1)
	name := t.HF
	if len(t.Parts) > 0 {
		name = strings.ReplaceAll(name, "{part}", t.Parts[i%n])
	}
	name = strings.ReplaceAll(name, "{xid}", strconv.FormatInt(i/n, 10))
	return strings.ReplaceAll(name, "{bid}", strconv.FormatInt(l.Bid, 10)) + suffix
}

// Outputs returns the names of the row's tensors in the file.
func (t *TensorRow) Outputs(bid int64, suffix string) []string {
	parts := t.Split
	if parts == nil {
		parts = []Part{{GGUF: t.GGUF}}
	}
	var names []string
	for _, p := range parts {
		names = append(names, strings.ReplaceAll(p.GGUF, "{bid}", strconv.FormatInt(bid, 10))+suffix)
	}
	return names
}

// TransformNames returns the names of the row's transforms, for messages.
func (t *TensorRow) TransformNames() string {
	var names []string
	for _, done := range append([]*Transform{t.PerSource, t.Transform}, transformsOf(t.Split)...) {
		if done != nil {
			names = append(names, done.Name)
		}
	}
	if t.joins() {
		names = append(names, "joined")
	}
	return strings.Join(names, ", ")
}

func transformsOf(split []Part) (list []*Transform) {
	for _, p := range split {
		list = append(list, p.Transform)
	}
	return list
}

// makesTensor reports whether the row's outputs are in the file as tensors.
func (t *TensorRow) makesTensor() bool {
	switch t.Kind.(type) {
	case Zero, Integers, *Meta:
		return false
	}
	return true
}

// Bias is whether a row's ".weight" comes with a ".bias".
type Bias uint8

// The kinds of Bias.
const (
	NoBias Bias = iota
	MayBias
	NeedBias
)

// Part is one of the tensors that a row splits its tensor into.
type Part struct {
	GGUF      string
	Transform *Transform
}

// Layer is the config and the number of a layer, -1 outside the layers.
type Layer struct {
	*config.View
	Bid int64
}

// Cond is the condition of a row.
type Cond func(Layer) (bool, error)

// Count is a number of experts.
type Count func(Layer) (int64, error)

// Join joins tensors, in the order of their numbers or of Parts.
type Join func(Layer, []rows.Source) (rows.Source, error)

// ExtraTensor is a tensor computed from the config. Extra tensors come before all others.
type ExtraTensor struct {
	GGUF string // whole name
	// Make returns the tensor, nil for none.
	Make func(*config.View) (rows.Source, error)
}
