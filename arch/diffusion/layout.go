package diffusion

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
)

// Layout is how the diffusers library names and cuts the tensors of a model whose original checkpoint, and whose GGUF
// files, have other names:
//
//	transformer_blocks.3.attn.to_q.weight  ┐
//	transformer_blocks.3.attn.to_k.weight  ├─►  double_blocks.3.img_attn.qkv.weight    one below the other
//	transformer_blocks.3.attn.to_v.weight  ┘
//	norm_out.linear.weight  ─► final_layer.adaLN_modulation.1.weight                   its halves swapped
type Layout struct {
	Arch    string   // Model.Name
	Classes []string // what config.json may have as _class_name

	// Marks identify the layout: a checkpoint has all of them, and with those of one layout not those of another.
	Marks []string

	Rows []Row

	// Refused is the reason why checkpoints in this layout are not converted, "" for those that are.
	Refused string
}

// Row is one tensor of the original checkpoint, or one of each block: # is the number of the block. A name that ends in .*
// stands for the weight and, where there is one, the bias.
type Row struct {
	Name string   // of the original
	From []string // of diffusers: its parts, one below the other

	// Swapped: the second half of the rows comes first. The library has scale before shift where the original has
	// shift before scale.
	Swapped bool

	// Uneven: the parts may have different numbers of rows.
	Uneven bool

	// Group: models have all rows of a group or none; of those in some blocks, a block has all or none. Rows without a
	// group are those that every model has.
	Group string

	In Blocks
}

// Blocks are those of all blocks of a model that have a tensor.
type Blocks uint8

// The values of Blocks.
const (
	Every Blocks = iota
	AllButLast
	Last
	Some
)

func (b Blocks) has(block, last int) bool {
	return b == Every || b == Some || (b == Last) == (block == last)
}

// Original is a tensor of the original checkpoint.
type Original struct {
	*Row
	Name string   // with the number of the block
	From []string // the names of its parts
}

// Layouts returns the layouts. The caller must not change them.
func Layouts() []Layout { return layouts }

// DetectLayout finds the layout of a checkpoint by the names of its tensors, without prefix; nil for none.
func DetectLayout(names []string) *Layout {
	has := make(map[string]bool, len(names))
	for _, n := range names {
		has[n] = true
	}
	for i := range layouts {
		if !slices.ContainsFunc(layouts[i].Marks, func(n string) bool { return !has[n] }) {
			return &layouts[i]
		}
	}
	return nil
}

// ends returns what stands for .* at the end of the row's names.
func (r *Row) ends() []string {
	if strings.HasSuffix(r.Name, anyEnd) {
		return []string{".weight", ".bias"}
	}
	return []string{""}
}

const (
	anyEnd      = ".*"
	blockNumber = "#"
)

// maxBlocks bounds the numbers of blocks.
const maxBlocks = 1 << 16

// numbered returns name with # in place of the first of its components that is a number, and the number.
func numbered(name string) (pattern string, block int, ok bool) {
	at := 0
	for part := range strings.SplitSeq(name, ".") {
		if n, err := strconv.Atoi(part); err == nil && strconv.Itoa(n) == part && n >= 0 && n < maxBlocks {
			return name[:at] + blockNumber + name[at+len(part):], n, true
		}
		at += len(part) + 1
	}
	return "", 0, false
}

// slot is a place for a tensor in the table.
type slot struct{ row, end, part int }

// tensor is an original tensor: a row, one of its ends, and a block, -1 for none.
type tensor struct{ row, end, block int }

// Originals returns the tensors of the original checkpoint, by name. A tensor that is missing gives an error of kind
// fault.Broken, one that no row has an error of kind fault.Unsupported.
func (l *Layout) Originals(names []string) ([]Original, error) {
	slots := map[string][]slot{}
	for i := range l.Rows {
		r := &l.Rows[i]
		for e, end := range r.ends() {
			for p, from := range r.From {
				name := strings.TrimSuffix(from, anyEnd) + end
				slots[name] = append(slots[name], slot{i, e, p})
			}
		}
	}
	last := map[string]int{} // the last block by stack
	find := func(name string) (found []slot, block int) {
		if found = slots[name]; found != nil {
			return found, -1
		}
		pattern, block, ok := numbered(name)
		if found = slots[pattern]; !ok || found == nil {
			return nil, -1
		}
		return found, block
	}
	for _, name := range names {
		if found, block := find(name); found != nil && block >= 0 {
			stack := stackOf(l.Rows[found[0].row].From[0])
			last[stack] = max(last[stack], block)
		}
	}
	parts := map[tensor][]string{}
	var others []string
	for _, name := range names {
		found, block := find(name)
		i := slices.IndexFunc(found, func(s slot) bool {
			r := &l.Rows[s.row]
			return block < 0 || r.In.has(block, last[stackOf(r.From[0])])
		})
		if i < 0 {
			others = append(others, name)
			continue
		}
		s := found[i]
		t := tensor{s.row, s.end, block}
		if parts[t] == nil {
			parts[t] = make([]string, len(l.Rows[s.row].From))
		}
		parts[t][s.part] = name
	}
	if len(others) > 0 {
		slices.Sort(others)
		return nil, fault.Errorf(fault.Unsupported, "%d tensors that %s of the diffusers library does not have:%s",
			len(others), strings.Join(l.Classes, " or "), fault.Lines(others))
	}
	if err := l.whole(parts, last); err != nil {
		return nil, err
	}
	var list []Original
	for t, from := range parts {
		r := &l.Rows[t.row]
		list = append(list, Original{r, r.named(r.Name, t), from})
	}
	slices.SortFunc(list, func(a, b Original) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// stackOf returns the first component of a name in blocks, "" for other names. The stacks of a model, which have numbers
// of blocks of their own, differ in it.
func stackOf(name string) string {
	if !strings.Contains(name, blockNumber) {
		return ""
	}
	stack, _, _ := strings.Cut(name, ".")
	return stack
}

// named returns a name of the row for one of its tensors.
func (r *Row) named(name string, t tensor) string {
	return strings.Replace(strings.TrimSuffix(name, anyEnd)+r.ends()[t.end], blockNumber, strconv.Itoa(t.block), 1)
}

// whole returns an error if a part of a tensor is missing, a weight that models have, or a bias that other blocks have.
func (l *Layout) whole(parts map[tensor][]string, last map[string]int) error {
	ends := map[string]bool{} // weights and biases of any block, by the original name without its number
	type group struct {
		name  string
		block int // -1 for all
	}
	groups := map[group]bool{}
	for t := range parts {
		r := &l.Rows[t.row]
		groups[group{r.Group, t.block}], groups[group{r.Group, -1}] = true, true
		ends[r.Name+r.ends()[t.end]] = true
	}
	// the missing one with the smallest row comes first, so that the error does not depend on the order of a map
	var partial []tensor
	for t, from := range parts {
		if slices.Contains(from, "") {
			partial = append(partial, t)
		}
	}
	if len(partial) > 0 {
		t := slices.MinFunc(partial, func(a, b tensor) int {
			return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.block, b.block), cmp.Compare(a.end, b.end))
		})
		return l.missing(t, parts[t])
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		stack := stackOf(r.From[0])
		for e, end := range r.ends() {
			if there := r.Group == "" || groups[group{r.Group, -1}]; !there || e > 0 && !ends[r.Name+end] {
				continue
			}
			first, blocks := -1, 0
			if stack != "" {
				first, blocks = 0, last[stack]+1
			}
			for b := first; b < blocks; b++ { // ends at the first that is missing
				if !r.In.has(b, last[stack]) || r.In == Some && !groups[group{r.Group, b}] {
					continue
				}
				if t := (tensor{i, e, b}); parts[t] == nil {
					return l.missing(t, nil)
				}
			}
		}
	}
	return nil
}

// missing is the error about a tensor of which only some parts are there, or none.
func (l *Layout) missing(t tensor, there []string) error {
	r := &l.Rows[t.row]
	var absent string
	var found []string
	for p, from := range r.From {
		if there != nil && there[p] != "" {
			found = append(found, fmt.Sprintf("%q", there[p]))
		} else if absent == "" {
			absent = r.named(from, t)
		}
	}
	text := "of its parts none is there"
	switch {
	case len(found) > 0:
		text = "of its parts only " + strings.Join(found, ", ") + " are there"
	case len(r.From) == 1:
		text = "which is made of it alone"
	}
	return fault.Errorf(fault.Broken, "%s in the layout of the diffusers library: tensor %q is missing, for %q: %s",
		l.Arch, absent, r.named(r.Name, t), text)
}
