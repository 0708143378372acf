package table

import (
	"cmp"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
)

// Layout maps all tensors of a checkpoint to tensors of the file.
type Layout struct {
	Outputs      []Output // in file order
	Unmapped     []string // names without a row
	ExtraExperts []string // names with an expert number beyond the model's
	Missing      []string // names of missing required tensors, at most MaxMissing
	Dropped      []Dropped
	Skipped      map[string]bool // names of dropped tensors
}

// Output is a tensor of the file, or several made from the same tensors of the checkpoint.
type Output struct {
	Row    *TensorRow
	Layer  Layer
	Suffix string
	From   []int // indices of names, in the order in which they are joined
}

// Experts returns the number of experts in an output stacked from one tensor per expert, 1 for any other output.
func (o *Output) Experts() int64 {
	if !o.Row.hasExperts() {
		return 1
	}
	return int64(len(o.From)) / max(int64(len(o.Row.Parts)), 1)
}

// Dropped counts the tensors dropped for one reason.
type Dropped struct {
	Why   string
	Count int
}

// Layout maps every tensor of a checkpoint to an output. names are in the reading order of the checkpoint.
func (a *Arch) Layout(c *config.View, names []string) (*Layout, error) {
	blocks, err := a.Blocks(c)
	if err != nil {
		return nil, err
	}
	lay := &Layout{Skipped: map[string]bool{}}
	type key struct {
		row    *TensorRow
		bid    int64
		suffix string
	}
	found := map[key]*[]int{} // per output, the index of each source, -1 for none
	type groupKey struct {
		group  string
		bid    int64
		suffix string
	}
	last := map[groupKey]int{} // the last tensor of a group
	var order []key            // outputs by first source
	dropped := map[string]int{}
	for i, name := range names {
		name, why, drop, err := a.canonical(c, name, blocks)
		if err != nil {
			return nil, err
		}
		if drop {
			dropped[why]++
			lay.Skipped[names[i]] = true
			continue
		}
		m, ok, err := a.match(c, name, blocks)
		if err != nil {
			return nil, err
		}
		if !ok && m.row != nil {
			lay.ExtraExperts = append(lay.ExtraExperts, names[i])
			continue
		}
		if !ok {
			lay.Unmapped = append(lay.Unmapped, names[i])
			continue
		}
		if m.row.Drops() {
			continue
		}
		l := Layer{c, m.bid}
		k := key{row: m.row, bid: m.bid, suffix: m.suffix}
		sources := found[k]
		if sources == nil {
			n, err := m.row.sources(l)
			if err != nil {
				return nil, err
			}
			s := make([]int, n)
			for i := range s {
				s[i] = -1
			}
			sources = &s
			found[k] = sources
			order = append(order, k)
		}
		at := m.part
		if m.xid >= 0 {
			at += m.xid * max(int64(len(m.row.Parts)), 1)
		}
		if other := (*sources)[at]; other >= 0 {
			return nil, fault.Errorf(fault.Broken, "tensors %q and %q have the same place in architecture %s",
				names[other], names[i], a.Name)
		}
		(*sources)[at] = i
		if g := m.row.group(); g != "" {
			last[groupKey{group: g, bid: m.bid, suffix: m.suffix}] = i
		}
	}
	for why, n := range dropped {
		if why != Silent {
			lay.Dropped = append(lay.Dropped, Dropped{why, n})
		}
	}
	slices.SortFunc(lay.Dropped, func(a, b Dropped) int { return strings.Compare(a.Why, b.Why) })

	provided := map[string]bool{}
	for _, k := range order {
		for _, name := range k.row.Outputs(k.bid, k.suffix) {
			provided[name] = true
		}
	}
	if lay.Missing, err = a.missing(c, blocks, provided, func(row *TensorRow, bid int64, suffix string) []int {
		if s := found[key{row: row, bid: bid, suffix: suffix}]; s != nil {
			return *s
		}
		return nil
	}); err != nil {
		return nil, err
	}
	type placed struct {
		Output
		at, row int
	}
	var all []placed
	const layers = 2 * config.MaxBlocks
	for _, k := range order {
		p := placed{Output: Output{k.row, Layer{c, k.bid}, k.suffix, *found[k]}}
		p.at = slices.Max(p.From)
		if g := k.row.group(); g != "" {
			p.at = last[groupKey{group: g, bid: k.bid, suffix: k.suffix}]
		}
		switch kind := k.row.Kind.(type) {
		case First:
			p.at -= len(names)
		case Last:
			p.at += len(names)
		case FirstByLayer:
			p.at = -len(names) - (256-int(kind))*layers + int(k.bid)
		case LastByLayer:
			p.at = 2*len(names) + int(kind)*layers + int(k.bid) + 1
		}
		p.row = slices.IndexFunc(a.Tensors, func(t TensorRow) bool { return t.HF == k.row.HF && t.GGUF == k.row.GGUF })
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.row, b.row), strings.Compare(b.Suffix, a.Suffix)) // a bias after its weight
	})
	for _, p := range all {
		lay.Outputs = append(lay.Outputs, p.Output)
	}
	return lay, nil
}
