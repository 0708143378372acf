package table

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// TensorRow says what becomes of a tensor of the checkpoint, or of the tensors
// whose names match a placeholder in HF: {bid} is a layer's number, {xid} an
// expert's, {part} each of Parts. A placeholder is a whole component of the
// name, except for {part}; {xid} may be what follows the component's last line, as in
// shard_{xid}.
//
// {bid} gives one tensor of the file per layer. {xid} and {part} join several
// tensors of the checkpoint into one, which takes the place of the last of them.
type TensorRow struct {
	HF   string // name in the checkpoint without ".weight" or ".bias"
	GGUF string // name in the file without suffix; "" drops the tensor, unless Split is set
	// Exact says that HF and GGUF are whole names.
	Exact    bool
	Bias     Bias
	Optional bool       // the tensor may be missing
	Number   bool       // a tensor without dimensions is a vector of one element
	If       Cond       // the row is there for layers that it accepts; nil for all
	Each     *Transform // of each tensor before they are joined
	Parts    []string
	Experts  Count // number of experts; nil for that of CommonRows
	Join     Join  // nil: rows.Stack for experts, else rows.Concat
	// Transform is the way of the (joined) tensor from the checkpoint to the file.
	Transform *Transform
	// Split is what one tensor becomes when it becomes several; it replaces GGUF
	// and Transform.
	Split []Part
	// Group joins rows whose outputs come together, in the order of the rows, at the
	// place of the last tensor of the layer that belongs to one of them. Rows
	// with {xid} are in the group "experts" unless it is set.
	Group string
	// Kind is what becomes of the outputs, if not simply tensors of the file.
	Kind Kind
	// Type is the type of the row's matrices in the file; nil for F32 where KeepF32
	// says so, else the output's.
	Type TypeOf
}

// TypeOf returns the type that a tensor of the file has, given the output's and what
// it is stored as. Vectors and norms are F32 whatever it says, and rows that are
// not whole blocks fall back to F16. A type of integers takes tensors of integers,
// which have to fit it.
type TypeOf func(out gguf.Type, from Stored) gguf.Type

// Stored is how a checkpoint keeps a weight, the last one where several are joined.
type Stored struct {
	Type   gguf.Type // of a plain weight
	Scheme string    // "" for plain weights, see precision.Weight
	NVFP4  bool      // the model is one in NVFP4, whatever this weight is
}

// Always is one type, whatever the output's.
func Always(t gguf.Type) TypeOf { return func(gguf.Type, Stored) gguf.Type { return t } }

// OutputType is the output's type, also where others of the name stay F32.
func OutputType(out gguf.Type, _ Stored) gguf.Type { return out }

// Kind is what becomes of a row's outputs: one of the types below.
type Kind interface{ kind() }

// First puts the outputs before all others.
type First struct{}

// Ahead puts the outputs before all others and before those of First, by their layers:
// all those of Ahead(0), then all those of Ahead(1).
type Ahead uint8

// Last puts the outputs after all others.
type Last struct{}

// Behind puts the outputs after all others and after those of Last, by their layers: all
// those of Behind(0), then all those of Behind(1).
type Behind uint8

// SameAs names a tensor of the file; the output is left out when it is that tensor
// again, value by value.
type SameAs string

// Zero leaves the output out, which must be zero everywhere.
type Zero struct{}

// Meta makes a metadata pair of the row's tensors; the row's GGUF is then no more
// than a name.
type Meta struct {
	Key string // the whole key
	// Make returns the value of the pair. layers are the numbers of the tensor of
	// each layer, or of the only tensor.
	Make func(c *config.View, layers [][]float32) (gguf.Value, error)
}

// Integers puts the numbers of the row's tensor, which has one dimension and integers,
// into Facts.Integers by the name of the output, for rows of metadata.
type Integers struct{}

// FactorOf names a weight of the file, which may have a {bid}. Where that is moved in
// blocks with factors of its own, for all of its experts, the output is left out and they
// are multiplied with it.
type FactorOf string

func (Integers) kind() {}
func (FactorOf) kind() {}

func (First) kind()  {}
func (Ahead) kind()  {}
func (Last) kind()   {}
func (Behind) kind() {}
func (SameAs) kind() {}
func (Zero) kind()   {}
func (*Meta) kind()  {}

// Bias says whether a row's ".weight" comes with a ".bias".
type Bias uint8

// The kinds of Bias.
const (
	NoBias Bias = iota
	MayBias
	NeedBias
)

// Part is one of the tensors that a row splits another one into.
type Part struct {
	GGUF      string
	Transform *Transform
}

// Layer is the config with the number of the layer that is asked about, -1
// outside the layers.
type Layer struct {
	*config.View
	Bid int64
}

// Cond reports whether a row is there.
type Cond func(Layer) (bool, error)

// Count is a number of experts.
type Count func(Layer) (int64, error)

// Join makes one tensor of several, in the order of their numbers or of Parts.
type Join func(Layer, []rows.Source) (rows.Source, error)

// Transform is a rearrangement of a tensor on its way from the checkpoint to the
// file, and the way back; Inverse is nil where that is not known.
type Transform struct {
	Name    string
	Forward func(Layer, rows.Source) (rows.Source, error)
	Inverse func(*Keys, rows.Source) (rows.Source, error)
}

// ExtraTensor is a tensor that is computed from the config. They come before
// all others.
type ExtraTensor struct {
	GGUF string // whole name
	// Make returns the tensor, nil when the model has none.
	Make func(*config.View) (rows.Source, error)
}

// Rename replaces a prefix of tensor names of the checkpoint before the rows see
// them.
type Rename struct {
	Prefix, With string // Prefix may have a {bid}, which With may have, too
	If           Cond   // nil for always
	// Beyond says that With has a {bid}, for a layer after those of the model: their
	// number plus the one that follows Prefix, if one does.
	Beyond bool
	// Number makes the {bid} of With from the number after Prefix, with Beyond from 0 where
	// there is none.
	Number func(c *config.View, n int64) (int64, error)
}

// Drop leaves out tensors of the checkpoint by a prefix of their names, after
// Rename; Why is what a user reads. Beyond asks for the number of a layer after
// the last one after the prefix.
type Drop struct {
	Prefix, Why string
	Suffix      string // in addition to the prefix
	If          Cond
	Beyond      bool
}

// Silent is the reason of drops that nobody needs to know about: the file says the
// same without them.
const Silent = ""

// OtherPart is the reason why the tensors of a larger model are left out that are
// not of its language model.
const OtherPart = "of the parts of the model for pictures and sound"

// pattern is one name that a row matches: the row's HF name with one of Parts and
// one suffix.
type pattern struct {
	row    *TensorRow
	comps  []string // of the whole name; "{bid}" and "{xid}" match a number, "shard_{xid}" one at its end
	part   int64    // index in Parts
	suffix string
}

// index finds the patterns of a name; numbers in its keys are "#".
type index map[string][]pattern

// lookup builds the index of an architecture's rows when it is first asked for.
type lookup struct {
	once   sync.Once
	byName index
}

func (a *Arch) index() index {
	a.lookup.once.Do(func() {
		a.lookup.byName = index{}
		for i := range a.Tensors {
			row := &a.Tensors[i]
			suffixes := []string{".weight"}
			if row.Exact || row.GGUF == "" && row.Split == nil {
				suffixes = []string{""}
			} else if row.Bias != NoBias {
				suffixes = append(suffixes, ".bias")
			}
			parts := row.Parts
			if len(parts) == 0 {
				parts = []string{""}
			}
			for p, part := range parts {
				for _, suffix := range suffixes {
					name := strings.ReplaceAll(row.HF, "{part}", part) + suffix
					comps := strings.Split(name, ".")
					key := make([]string, len(comps))
					for i, c := range comps {
						if c == "{bid}" {
							c = "#"
						}
						key[i] = numberless(strings.ReplaceAll(c, "{xid}", "0"))
					}
					k := strings.Join(key, ".")
					a.lookup.byName[k] = append(a.lookup.byName[k], pattern{row, comps, int64(p), suffix})
				}
			}
		}
	})
	return a.lookup.byName
}

// numberless returns a component of a name with "#" for the number that it is, or that
// follows its last line.
func numberless(s string) string {
	if at := strings.LastIndexByte(s, '_') + 1; isNumber(s[at:]) {
		return s[:at] + "#"
	}
	return s
}

func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// Below reports whether s is the number of a layer below blocks.
func Below(s string, blocks int64) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && isNumber(s) && n < blocks
}

// match is a tensor of the checkpoint at its place in a row.
type match struct {
	pattern
	bid, xid int64 // -1 for none
}

// match finds the place of a name; ok is false when no row has one. m has a row all
// the same when the name is that of an expert beyond their number.
func (a *Arch) match(c *config.View, name string, blocks int64) (m match, ok bool, err error) {
	comps := strings.Split(name, ".")
	key := make([]string, len(comps))
	for i, s := range comps {
		key[i] = numberless(s)
	}
	var beyond match
	for _, p := range a.index()[strings.Join(key, ".")] {
		m := match{pattern: p, bid: -1, xid: -1}
		ok := true
		for i, s := range p.comps {
			switch s {
			case "{bid}":
				m.bid, _ = strconv.ParseInt(comps[i], 10, 64)
			case "{xid}":
				m.xid, _ = strconv.ParseInt(comps[i], 10, 64)
			default:
				before, numbered := strings.CutSuffix(s, "{xid}")
				if numbered && strings.HasPrefix(comps[i], before) {
					m.xid, _ = strconv.ParseInt(comps[i][len(before):], 10, 64)
				} else {
					ok = ok && s == comps[i]
				}
			}
		}
		if !ok || m.bid >= blocks {
			continue
		}
		l := Layer{c, m.bid}
		if ok, err = p.row.applies(l); err != nil || !ok {
			if err != nil {
				return m, false, err
			}
			continue
		}
		if m.xid >= 0 {
			n, err := p.row.experts(l)
			if err != nil {
				return m, false, err
			}
			if m.xid >= n {
				beyond = m
				continue
			}
		}
		return m, true, nil
	}
	return beyond, false, nil
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

// Drops reports whether the row leaves its tensors out.
func (t *TensorRow) Drops() bool { return t.GGUF == "" && t.Split == nil }

// joins reports whether the row makes one tensor of several.
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

// Way names what is done to the tensors of the row, for messages.
func (t *TensorRow) Way() string {
	var names []string
	for _, done := range append([]*Transform{t.Each, t.Transform}, partsOf(t.Split)...) {
		if done != nil {
			names = append(names, done.Name)
		}
	}
	if t.joins() {
		names = append(names, "joined")
	}
	return strings.Join(names, ", ")
}

func partsOf(split []Part) (list []*Transform) {
	for _, p := range split {
		list = append(list, p.Transform)
	}
	return list
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

// Outputs returns the names of the tensors of the file that the row makes.
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

// Output is a tensor of the file, or several that are made of the same tensors
// of the checkpoint.
type Output struct {
	Row    *TensorRow
	Layer  Layer
	Suffix string
	From   []int // indices of names, in the order in which they are joined
}

// Experts returns the number of experts that a stack of one tensor for each has, 1 for
// any other output.
func (o *Output) Experts() int64 {
	if !o.Row.hasExperts() {
		return 1
	}
	return int64(len(o.From)) / max(int64(len(o.Row.Parts)), 1)
}

// Layout is what becomes of all tensors of a checkpoint.
type Layout struct {
	Outputs  []Output // in file order
	Unmapped []string // names without a place
	Beyond   []string // names of experts beyond their number
	Missing  []string // names that the model needs, at most MaxMissing
	Dropped  []Dropped
	Skipped  map[string]bool // names of dropped tensors
}

// Dropped counts tensors that are left out for one reason.
type Dropped struct {
	Why   string
	Count int
}

// MaxMissing bounds what a number of layers makes up: the number comes from a
// file.
const MaxMissing = 10_000

// Layout finds the place of every tensor of a checkpoint. names are in the
// reading order of the checkpoint.
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
			lay.Beyond = append(lay.Beyond, names[i])
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
		case Ahead:
			p.at = -len(names) - (256-int(kind))*layers + int(k.bid)
		case Behind:
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

// canonical returns the name that the rows know; drop reports whether the tensor is
// left out.
func (a *Arch) canonical(c *config.View, name string, blocks int64) (canonical, why string, drop bool, err error) {
	l := Layer{c, -1}
	if a.Encoder == nil {
		// parts of larger models keep their tensors under a name of their own
		name = strings.ReplaceAll(name, "language_model.", "")
	}
	stored := name
	if slices.Contains(a.Body.Classes, c.Class) && !strings.HasPrefix(name, a.Body.Prefix) {
		name = a.Body.Prefix + name
	}
	for _, r := range a.Rename {
		if after, bid, ok := r.cut(name); ok {
			if r.If != nil {
				if ok, err = r.If(Layer{c, bid}); err != nil {
					return "", "", false, err
				}
			}
			if ok {
				if name, err = r.rename(c, after, bid); err != nil {
					return "", "", false, err
				}
				break
			}
		}
	}
	if drop, err = a.NextN.unwanted(c, stored, name); err != nil || drop {
		return name, Silent, drop, err
	}
	for _, d := range a.Drop {
		rest, ok := strings.CutPrefix(name, d.Prefix)
		ok = ok && strings.HasSuffix(name, d.Suffix)
		if d.Beyond && ok {
			rest, _, _ = strings.Cut(rest, ".")
			ok = isNumber(rest) && !Below(rest, blocks)
		}
		if !ok {
			continue
		}
		if d.If != nil {
			if ok, err = d.If(l); err != nil {
				return "", "", false, err
			}
		}
		if ok {
			return name, d.Why, true, nil
		}
	}
	for _, suffix := range buffers {
		if strings.HasSuffix(name, suffix) {
			return name, Silent, true, nil
		}
	}
	if a.Encoder == nil && !a.KeepAll && isOtherPart(name) {
		return name, OtherPart, true, nil
	}
	return name, "", false, nil
}

// cut returns what follows the prefix in a name, and the number that is the prefix's
// {bid}, -1 for none.
func (r Rename) cut(name string) (after string, bid int64, ok bool) {
	first, second, numbered := strings.Cut(r.Prefix, "{bid}")
	after, ok = strings.CutPrefix(name, first)
	if !ok || !numbered {
		return after, -1, ok
	}
	number, _, _ := strings.Cut(after, ".")
	if !isNumber(number) {
		return "", -1, false
	}
	bid, _ = strconv.ParseInt(number, 10, 64)
	after, ok = strings.CutPrefix(after[len(number):], second)
	return after, bid, ok
}

// rename returns the new name of a tensor of which after follows the prefix, whose {bid}
// is bid.
func (r Rename) rename(c *config.View, after string, bid int64) (string, error) {
	var err error
	number, rest, numbered := strings.Cut(after, ".")
	numbered = numbered && isNumber(number)
	switch n, _ := strconv.ParseInt(number, 10, 64); {
	case r.Number != nil && numbered:
		bid, after = n, rest
		bid, err = r.Number(c, bid)
	case r.Number != nil && r.Beyond:
		bid, err = r.Number(c, 0)
	case r.Beyond:
		if bid, err = c.BlockCount(); numbered {
			bid, after = bid+n, rest
		}
	}
	return strings.ReplaceAll(r.With, "{bid}", strconv.FormatInt(bid, 10)) + after, err
}

// buffers are the ends of names of what every loader computes itself.
var buffers = []string{".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"}

// otherParts are the parts of a model that are not its language model. Source:
// the tensors that the reference's TextModel passes over.
var otherParts = struct{ prefixes, anywhere []string }{
	[]string{"mlp", "vit.", "vpm.", "siglip2.", "conformer.", "connector.", "merger.", "resampler.", "sound_encoder.",
		"sound_projection.", "speech_embeddings."},
	[]string{"visual.", "vision.", "audio.", "talker.", "vision_", "audio_", "token2wav.", "code2wav.", "projector.",
		"pre_mm_projector_norm",
		"image_newline", "view_seperator", "patch_embed", "patch_merger.", "patch_merge_mlp."},
}

func isOtherPart(name string) bool {
	name = strings.TrimPrefix(name, "model.")
	return slices.ContainsFunc(otherParts.prefixes, func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(otherParts.anywhere, func(s string) bool { return strings.Contains(name, s) })
}

// missing lists the names that no source was found for. A row of which a part is
// there must be whole, even if it is optional; a row is not missed when others
// provide what it would make.
func (a *Arch) missing(c *config.View, blocks int64, provided map[string]bool,
	found func(*TensorRow, int64, string) []int) ([]string, error) {
	var missing []string
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if row.Drops() {
			continue
		}
		first, end := int64(-1), int64(0)
		alone := a.NextN != nil && c.Options.NextN == config.OnlyNextN
		switch {
		case strings.Contains(row.HF, "{bid}"):
			first, end = 0, blocks
			if alone {
				n, err := c.BlockCount()
				if err != nil {
					return nil, err
				}
				first = n
			}
		case alone && !a.NextN.shared(row.HF+".weight"):
			continue
		}
		for bid := first; bid < end && len(missing) < MaxMissing; bid++ {
			l := Layer{c, bid}
			ok, err := row.applies(l)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			suffix := ".weight"
			if row.Exact {
				suffix = ""
			}
			weight := found(row, bid, suffix)
			bias := []int(nil)
			if row.Bias != NoBias && !row.Exact {
				bias = found(row, bid, ".bias")
			}
			add := func(have []int, suffix string) error {
				n, err := row.sources(l)
				for i := int64(0); i < n && len(missing) < MaxMissing; i++ {
					if have == nil || have[i] < 0 {
						missing = append(missing, row.hfName(l, i, suffix))
					}
				}
				return err
			}
			others := !slices.ContainsFunc(row.Outputs(bid, suffix), func(name string) bool { return !provided[name] })
			if weight != nil || !row.Optional && !others {
				if err := add(weight, suffix); err != nil {
					return nil, err
				}
			}
			if bias != nil || row.Bias == NeedBias && weight != nil {
				if err := add(bias, ".bias"); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// Result is a tensor of the file.
type Result struct {
	Name   string
	Source rows.Source
}

// Build makes the tensors of an output from its sources.
func (o *Output) Build(sources []rows.Source) ([]Result, error) {
	row := o.Row
	for i, s := range sources {
		var err error
		if sources[i], err = row.Each.Apply(o.Layer, s); err != nil {
			return nil, err
		}
	}
	src := sources[0]
	if row.joins() {
		join := row.Join
		switch {
		case join != nil:
		case row.hasExperts():
			join = func(_ Layer, s []rows.Source) (rows.Source, error) { return rows.Stack(s) }
		default:
			join = func(_ Layer, s []rows.Source) (rows.Source, error) { return rows.Concat(s) }
		}
		var err error
		if src, err = join(o.Layer, sources); err != nil {
			return nil, broken(err)
		}
	}
	parts := row.Split
	if parts == nil {
		parts = []Part{{row.GGUF, row.Transform}}
	}
	var out []Result
	names := row.Outputs(o.Layer.Bid, o.Suffix)
	for i, p := range parts {
		s, err := p.Transform.Apply(o.Layer, src)
		if err != nil {
			return nil, err
		}
		out = append(out, Result{names[i], s})
	}
	return out, nil
}

// Apply returns the tensor after the transform; t is nil for none. A shape that does
// not fit gives an error of kind fault.Broken.
func (t *Transform) Apply(l Layer, s rows.Source) (rows.Source, error) {
	if t == nil {
		return s, nil
	}
	s, err := t.Forward(l, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, broken(err))
	}
	return s, nil
}

// broken gives errors about the shape of a tensor their kind.
func broken(err error) error {
	if fault.Has(err) {
		return err
	}
	return fault.Errorf(fault.Broken, "%w", err)
}

// KeepF32 reports whether a tensor of the file is stored as F32 in every output
// type: vectors, norms, everything that is not a weight, and some small weights
// that the runtime reads in F32. Source: the reference's rule in prepare_tensors.
func KeepF32(name string, ne []int64) bool {
	return PlainF32(name, ne) || !isWeight(name) || keptF32[Base(name)]
}

// isWeight reports whether a tensor is a weight or a side of an adapter.
func isWeight(name string) bool {
	return slices.ContainsFunc([]string{".weight", ".lora_a", ".lora_b"},
		func(s string) bool { return strings.HasSuffix(name, s) })
}

// PlainF32 reports whether a tensor of the file is a vector or a norm, which are F32
// even where a row has a type of its own. Source: as KeepF32.
func PlainF32(name string, ne []int64) bool {
	return len(ne) <= 1 || strings.HasSuffix(name, "_norm.weight")
}

// Base returns the name of a weight of the file without "blk.N." and ".weight".
func Base(name string) string {
	name = strings.TrimSuffix(name, ".weight")
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		if bid, rest, ok := strings.Cut(rest, "."); ok && isNumber(bid) {
			return rest
		}
	}
	return name
}

// keptF32 are the weights that stay F32.
var keptF32 = map[string]bool{
	"position_embd": true, "v.position_embd": true, "a.position_embd": true, "token_types": true, "ffn_gate_inp": true,
	"ffn_gate_inp_shexp": true,
	"ssm_conv1d":         true, "ssm_conv1d_q": true, "ssm_conv1d_k": true, "ssm_conv1d_v": true,
	"shortconv.conv": true,
	"time_mix_first": true, "time_mix_w1": true, "time_mix_w2": true, "time_mix_decay_w1": true,
	"time_mix_decay_w2": true, "time_mix_lerp_fused": true,
	"altup_correct_coef": true, "altup_predict_coef": true, "indexer.proj": true,
}
