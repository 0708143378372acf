package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/test/hftest"
)

// metadata is the new family's Metadata, Expect and Unused.
type metadata struct {
	items  []item
	rows   []table.Row
	expect []table.Expect
	unused []string // keys
	notes  []string // what to check
	taken  []string // what is as in other families
	unread []string // keys that nothing reads
}

// item is an expression in Metadata: a row, or a list of rows.
type item struct {
	text, key string // key of a row
	single    bool
}

// text returns the source of Metadata.
func (m *metadata) text() string {
	var lists, rows []string
	flush := func() {
		if len(rows) > 0 {
			lists = append(lists, "[]table.Row{\n"+strings.Join(rows, ",\n")+",\n}")
			rows = nil
		}
	}
	for _, i := range m.items {
		if i.single {
			rows = append(rows, i.text)
			continue
		}
		flush()
		lists = append(lists, i.text)
	}
	flush()
	if len(lists) == 1 {
		return lists[0]
	}
	return "slices.Concat(" + fill(lists) + ")"
}

// entry is an element of a list of metadata rows in the source.
type entry struct {
	expr
	key    string // of the row, "" where it is computed
	single bool
}

// entries divides an expression with metadata rows into lists and rows.
func (s *source) entries(e expr, depth int) (list []entry) {
	if depth++; depth > maxDepth {
		return nil
	}
	switch x := e.Expr.(type) {
	case *ast.CompositeLit:
		if a, ok := x.Type.(*ast.ArrayType); ok && strings.HasSuffix(s.src(a.Elt), "Row") {
			for _, elt := range x.Elts {
				list = append(list, entry{expr{e.pkg, elt}, s.rowKey(expr{e.pkg, elt}, 0), true})
			}
			return list
		}
		if v := fieldOf(x, "Rows"); v != nil {
			return s.entries(expr{e.pkg, v}, depth)
		}
	case *ast.CallExpr:
		if name := s.src(x.Fun); name == "slices.Concat" || name == "append" {
			for _, arg := range x.Args {
				if l := s.entries(expr{e.pkg, arg}, depth); l != nil {
					list = append(list, l...)
				}
			}
			return list
		}
	case *ast.SelectorExpr:
		if t := s.tableField(e.pkg, x); t != nil {
			return s.entries(expr{e.pkg, t}, depth)
		}
	case *ast.Ident: // a list of the family itself
		if d := s.decl(e.pkg, x); d != nil && d.pkg == "arch" && d.value != nil {
			if l := s.entries(expr{d.pkg, d.value}, depth); len(l) > 0 && !l[0].isExpr(d.value) {
				return l
			}
		}
	}
	return []entry{{e, s.rowKey(e, 0), false}}
}

func (e entry) isExpr(x ast.Expr) bool { return e.Expr == x }

// rowKey returns the key of a row in source, "" where it is computed.
func (s *source) rowKey(e expr, depth int) string {
	if depth++; depth > maxDepth {
		return ""
	}
	text := func(x ast.Expr) string {
		switch s.src(x) {
		case "table.KeyBlockCount":
			return table.KeyBlockCount
		case "table.KeyHeadCount":
			return table.KeyHeadCount
		case "table.KeyHeadCountKV":
			return table.KeyHeadCountKV
		case "gguf.KeyFileType":
			return gguf.KeyFileType
		}
		return s.str(x)
	}
	switch x := e.Expr.(type) {
	case *ast.CompositeLit:
		if v := fieldOf(x, "Key"); v != nil {
			return text(v)
		}
	case *ast.CallExpr:
		if len(x.Args) == 0 {
			return ""
		}
		if strings.HasSuffix(s.src(x.Fun), "Optional") {
			return s.rowKey(expr{e.pkg, x.Args[0]}, depth)
		}
		if strings.HasSuffix(s.src(x.Fun), "Row") {
			return text(x.Args[0])
		}
	case *ast.Ident, *ast.SelectorExpr:
		if d := s.decl(e.pkg, x); d != nil && d.value != nil {
			return s.rowKey(expr{d.pkg, d.value}, depth)
		}
	}
	return ""
}

// composer makes the metadata of a checkpoint's family.
type composer struct {
	*checkpoint
	fam    *family
	tables []*table.Arch // the most similar first
	table  *table.Arch   // the new one, as far as it is known
	near   *known
	known  map[*table.Row]read // for rows of existing tables
	meta   metadata
}

// trial returns the table with the rows that are there so far.
func (c *composer) trial() *table.Arch {
	t := c.table
	return &table.Arch{Name: t.Name, Classes: t.Classes, NextN: t.NextN, RopePerAttention: t.RopePerAttention,
		RopeSections: t.RopeSections, Metadata: c.meta.rows, Expect: c.meta.expect, Unused: c.meta.unused,
		Tensors: t.Tensors, Drop: t.Drop, Rename: t.Rename, Extra: t.Extra}
}

// reads returns the keys of config.json that a row reads, as far as they are in Unread, and its value.
func (c *composer) reads(r *table.Row) (keys []string, ok bool, err error) {
	if known, there := c.known[r]; there {
		return known.keys, known.ok, known.err
	}
	keys, ok, err = c.readsOf(r)
	if c.known == nil {
		c.known = map[*table.Row]read{}
	}
	c.known[r] = read{keys, ok, err}
	return keys, ok, err
}

// read is what reads returns.
type read struct {
	keys []string
	ok   bool
	err  error
}

func (c *composer) readsOf(r *table.Row) (keys []string, ok bool, err error) {
	view, err := c.view()
	if err != nil {
		return nil, false, err
	}
	before := view.Unread()
	_, ok, err = r.Value(view)
	after := view.Unread()
	for _, key := range before {
		if !slices.Contains(after, key) {
			keys = append(keys, key)
		}
	}
	return keys, ok, err
}

// rowsOf takes the metadata rows of the nearest table, except those for which config.json has no key.
func (c *composer) rowsOf(a *table.Arch) error {
	t := c.fam.src.literalOf(a)
	e := t.field("Metadata")
	if e == nil {
		return fmt.Errorf("%s has no metadata", a.Name)
	}
	c.meta.rows = slices.Clone(a.Metadata)
	for _, en := range c.fam.src.entries(expr{"arch", e}, 0) {
		if en, ok := c.withoutOverrides(en); ok {
			c.meta.rows = slices.Clone(en.rows)
			text, err := c.fam.expr(en.expr)
			if err != nil {
				return err
			}
			c.meta.items = append(c.meta.items, item{text, "", false})
			continue
		}
		at := -1
		if en.single && en.key != "" {
			at = slices.IndexFunc(c.meta.rows, func(r table.Row) bool { return r.Key == en.key })
		}
		if at >= 0 {
			row := c.meta.rows[at] // of its own: rows move
			if why, drop := c.unneeded(&row, at); drop {
				if why != "" {
					c.meta.notes = append(c.meta.notes, why)
				}
				c.meta.rows = slices.Delete(c.meta.rows, at, at+1)
				continue
			}
		}
		text, err := c.fam.expr(en.expr)
		if err != nil {
			c.meta.notes = append(c.meta.notes, fmt.Sprintf("metadata row %s of %s is left out: %v", en.key, a.Name, err))
			if at >= 0 {
				c.meta.rows = slices.Delete(c.meta.rows, at, at+1)
			}
			continue
		}
		c.meta.items = append(c.meta.items, item{text, en.key, en.single})
	}
	return nil
}

// unneeded reports whether config.json has nothing for a row.
func (c *composer) unneeded(r *table.Row, at int) (why string, drop bool) {
	key := r.Key
	if r.Const != (gguf.Value{}) && !r.Setting() && r.Derive == nil { // a row before it may write the key
		for _, o := range c.meta.rows[:at] {
			if o.Key != r.Key || o.Key == gguf.KeyFileType || o.Many != nil {
				continue
			}
			if _, ok, err := c.reads(&o); ok && err == nil {
				return "", true
			}
		}
	}
	if r.Setting() && r.In == nil {
		view, err := c.view()
		if err != nil || slices.ContainsFunc(r.From, view.Present) || r.Const != (gguf.Value{}) {
			return "", false
		}
		if r.Required {
			why = fmt.Sprintf("row %s is left out: config.json has none of %q", r.Key, r.From)
		}
		return why, true
	}
	if r.Derive == nil {
		return "", false
	}
	keys, ok, err := c.reads(r)
	if err != nil {
		return fmt.Sprintf("row %s is left out: %v", r.Key, err), true
	}
	if !ok && len(keys) == 0 && r.Facts == nil {
		return "", true
	}
	if lacks := c.lacks(r); len(lacks) > 0 {
		return fmt.Sprintf("row %s is left out: config.json has no %s", key, strings.Join(lacks, ", ")), true
	}
	return "", false
}

// lacks returns the keys that a row reads in the config.json of the similar made-up model, and that this one lacks.
func (c *composer) lacks(r *table.Row) (lacks []string) {
	text, _, err := c.near.spec.Example(hftest.Variant{})
	if err != nil {
		return nil
	}
	other := *c.checkpoint
	other.config, other.class, other.unknownType = text, c.near.class, false
	keys, _, err := (&composer{checkpoint: &other}).reads(r)
	if err != nil {
		return nil
	}
	mine := keysOf(c.root)
	for _, key := range keys {
		if key, isRope := strings.CutPrefix(key, "rope_scaling."); !isRope && !hasKey(mine, key) &&
			!hasKey(c.ropeKeys(), key) {
			lacks = append(lacks, key)
		}
	}
	return lacks
}

func (c *composer) ropeKeys() map[string]any {
	view, err := c.view()
	if err != nil {
		return nil
	}
	return view.RopeRoot().Members()
}

// withoutOverrides returns the first argument of parts.Override, if config.json has nothing for the others.
func (c *composer) withoutOverrides(en entry) (base struct {
	expr
	rows []table.Row
}, ok bool) {
	call, ok := en.Expr.(*ast.CallExpr)
	if !ok || c.fam.src.callName(en.pkg, call) != "parts.Override" || c.fam.src.src(call.Args[0]) != "parts.CommonRows" {
		return base, false
	}
	for _, arg := range call.Args[1:] {
		key := c.fam.src.rowKey(expr{en.pkg, arg}, 0)
		at := slices.IndexFunc(c.meta.rows, func(r table.Row) bool { return r.Key == key })
		if key == table.KeyBlockCount && len(c.mtp) == 0 { // it adds MTP layers
			continue
		}
		if key == "" || at < 0 || c.meta.rows[at].Derive == nil || len(c.lacks(&c.meta.rows[at])) == 0 {
			return base, false
		}
	}
	base.expr = expr{en.pkg, call.Args[0]}
	for _, r := range c.meta.rows {
		if i := slices.IndexFunc(parts.CommonRows, func(o table.Row) bool { return o.Key == r.Key }); i >= 0 {
			r = parts.CommonRows[i]
		}
		base.rows = append(base.rows, r)
	}
	return base, true
}

// settings decides about every key that the rows do not read: as the most similar family that knows it.
func (c *composer) settings(nearest *table.Arch) error {
	for _, e := range nearest.Expect {
		c.expectAs(nearest, e, true)
	}
	if key := c.expertKey(); key != "" && !c.hasValue("expert_count") {
		c.addRow(fmt.Sprintf("parts.UintRow(\"expert_count\", %q)", key), parts.UintRow("expert_count", key))
		c.note("%s → expert_count: the number of experts in TENSORS", key)
	}
	c.window()
	decided := stringSet{}
	for range 4 { // rows may lead to others
		keys, err := c.unreadKeys()
		if err != nil {
			return err
		}
		changed := false
		for _, key := range keys {
			if decided[key] {
				continue
			}
			decided[key] = true
			for _, a := range c.tables {
				if c.decide(a, key, a == nearest) {
					changed = true
					break
				}
			}
		}
		if !changed {
			break
		}
	}
	var err error
	c.meta.unread, err = c.unreadKeys()
	return err
}

// window adds a row for the sliding window, if config.json has one and no row writes it.
func (c *composer) window() {
	view, err := c.view()
	if err != nil {
		return
	}
	n, _, ok := view.Window()
	if !ok || c.writes("attention.sliding_window") {
		return
	}
	for _, key := range []string{"sliding_window", "sliding_window_size"} {
		if fmt.Sprint(keysOf(c.root)[key]) == fmt.Sprint(n) {
			c.addRow(fmt.Sprintf("parts.UintRow(\"attention.sliding_window\", %q)", key),
				parts.UintRow("attention.sliding_window", key))
			c.note("%s → attention.sliding_window%s", key, hint(key, nil))
			return
		}
	}
}

// unreadKeys returns the keys that the table so far does not read.
func (c *composer) unreadKeys() ([]string, error) {
	view, err := c.view()
	if err != nil {
		return nil, err
	}
	t := c.trial()
	for i := range t.Metadata { // each of them, although one may fail
		if t.Metadata[i].Key != gguf.KeyFileType && t.Metadata[i].Many == nil {
			t.Metadata[i].Value(view)
		}
	}
	for _, e := range t.Expect {
		if e.Rope {
			view.Rope().Value(e.Key)
		} else if e.In == nil {
			view.Given(e.Key)
		}
	}
	for i := range t.Tensors {
		if r := &t.Tensors[i]; r.If != nil {
			for bid := range int64(c.layers) {
				r.If(table.Layer{View: view, Bid: bid})
			}
		}
		if r := &t.Tensors[i]; r.Experts != nil {
			r.Experts(table.Layer{View: view})
		}
	}
	for _, e := range t.Extra {
		e.Make(view)
	}
	t.Blocks(view)
	view.Value("vocab_size") // compared with the vocabulary
	return t.Unread(view), nil
}

// decide takes what a table has for a key: a row, an expected value, or that it has no effect. It reports
// false if the
// table does not know the key.
func (c *composer) decide(a *table.Arch, key string, nearest bool) bool {
	rope, isRope := strings.CutPrefix(key, "rope_scaling.")
	for i := range a.Metadata {
		r := a.Metadata[i]
		if isRope || !r.Setting() || r.In != nil || !slices.Contains(r.From, key) || c.writes(r.Key) {
			continue
		}
		if _, ok, err := c.reads(&r); err != nil || !ok {
			continue
		}
		r.From, r.Required, r.Const = []string{key}, true, gguf.Value{}
		text, ok := rowText(&r)
		if !ok {
			continue
		}
		c.addRow(text, r)
		c.take("%s → %s, as in %s", key, r.Key, a.Name)
		return true
	}
	for i := range a.Metadata {
		r := a.Metadata[i]
		if r.Derive == nil || c.writes(r.Key) || r.Facts != nil {
			continue
		}
		if keys, ok, err := c.reads(&a.Metadata[i]); err != nil || !ok || !slices.Contains(keys, key) {
			continue
		}
		if text, ok := c.sharedRow(a, r.Key); ok {
			c.addRow(text, r)
			c.note("%s → %s by the function of %s: check it", key, r.Key, a.Name)
			return true
		}
	}
	for _, e := range a.Expect {
		if e.Key == key && !e.Rope && !isRope || e.Rope && e.Key == rope && isRope {
			return c.expectAs(a, e, false)
		}
	}
	if slices.Contains(a.Unused, key) && (nearest || len(featuresOf(key, nil)) == 0) {
		c.meta.unused = append(c.meta.unused, key)
		if !nearest {
			c.take("%s has no effect, as in %s", key, a.Name)
		}
		return true
	}
	return false
}

func (c *composer) note(format string, args ...any) {
	c.meta.notes = append(c.meta.notes, fmt.Sprintf(format, args...))
}

func (c *composer) take(format string, args ...any) {
	c.meta.taken = append(c.meta.taken, fmt.Sprintf(format, args...))
}

// writes reports whether the rows so far write a key, other than by a constant that a row may replace.
func (c *composer) writes(key string) bool {
	return slices.ContainsFunc(c.meta.rows, func(r table.Row) bool {
		return r.Key == key && (r.Setting() || r.Derive != nil ||
			!slices.ContainsFunc(c.meta.items, func(i item) bool { return i.single && i.key == key }))
	})
}

// hasValue reports whether the rows so far write a key for this config.json.
func (c *composer) hasValue(key string) bool {
	return slices.ContainsFunc(c.meta.rows, func(r table.Row) bool {
		if r.Key != key {
			return false
		}
		_, ok, err := c.reads(&r)
		return ok && err == nil
	})
}

// addRow adds a row after the others, or in place of a constant with its key.
func (c *composer) addRow(text string, r table.Row) {
	same := func(i item) bool { return i.single && i.key == r.Key }
	if at := slices.IndexFunc(c.meta.items, same); at >= 0 { // instead of a constant
		c.meta.items[at].text = text
		at = slices.IndexFunc(c.meta.rows, func(o table.Row) bool { return o.Key == r.Key })
		c.meta.rows[at] = r
		return
	}
	c.meta.rows = append(c.meta.rows, r)
	c.meta.items = append(c.meta.items, item{text, r.Key, true})
}

// rowText returns the source of a row that is a setting.
func rowText(r *table.Row) (string, bool) {
	name := map[gguf.ValueType]string{gguf.Uint32Type: "UintRow", gguf.Float32Type: "FloatRow",
		gguf.BoolType: "BoolRow"}[r.Type]
	if name == "" || r.Whole || r.Deviates {
		return "", false
	}
	var from []string
	for _, key := range r.From {
		from = append(from, fmt.Sprintf("%q", key))
	}
	text := fmt.Sprintf("parts.%s(%q, %s)", name, r.Key, strings.Join(from, ", "))
	if !r.Required {
		text = "parts.Optional(" + text + ")"
	}
	return text, true
}

// sharedRow returns the source of a table's row, if it has no names of the other family.
func (c *composer) sharedRow(a *table.Arch, key string) (string, bool) {
	t := c.fam.src.literalOf(a)
	if t == nil || t.field("Metadata") == nil {
		return "", false
	}
	for _, en := range c.fam.src.entries(expr{"arch", t.field("Metadata")}, 0) {
		if !en.single || en.key != key || hasFunc(en.Expr) {
			continue
		}
		private := false
		text, err := c.fam.src.rewrite(en.pkg, en.Expr, func(d *decl) (string, error) {
			private = true
			return d.name,
				nil
		})
		if err == nil && !private {
			return text, true
		}
	}
	return "", false
}

// hasFunc reports whether an expression has a function literal.
func hasFunc(e ast.Expr) (has bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		_, is := n.(*ast.FuncLit)
		has = has || is
		return !has
	})
	return has
}

// expectAs takes an expectation of a table, if config.json has the key with one of its values.
func (c *composer) expectAs(a *table.Arch, e table.Expect, nearest bool) bool {
	view, err := c.view()
	if err != nil || e.In != nil || e.With != "" {
		return false
	}
	var v any
	if e.Rope {
		v = view.Rope().Value(e.Key)
	} else {
		v = view.Given(e.Key)
	}
	if v == nil {
		return false
	}
	if view, err = c.view(); err != nil {
		return false
	}
	if _, _, err := (&table.Arch{Name: a.Name, Expect: []table.Expect{e}, RopePerAttention: true,
		RopeSections: true}).KVs(view, 0); err != nil {
		if nearest {
			c.note("%s is %v, but %s computes with %s only%s", e.Key, v, a.Name, strings.Join(e.Values, " or "),
				hint(e.Key, v))
		}
		return false
	}
	if slices.ContainsFunc(c.meta.expect, func(o table.Expect) bool { return o.Key == e.Key && o.Rope == e.Rope }) {
		return true
	}
	if nearest || !config.IsNo(v) {
		c.meta.expect = append(c.meta.expect, e)
	}
	if !nearest {
		c.take("%s = %v is expected, as in %s", e.Key, v, a.Name)
	}
	return true
}

// expectText returns the source of an expectation.
func expectText(e table.Expect) string {
	switch {
	case e.Rope:
		return fmt.Sprintf("{Key: %q, Values: %#v, Rope: true}", e.Key, e.Values)
	case e.Key == parts.SiLU.Key && slices.Equal(e.Values, parts.SiLU.Values):
		return "parts.SiLU"
	case slices.Equal(e.Values, parts.GELUTanh):
		return fmt.Sprintf("parts.Expect(%q, parts.GELUTanh...)", e.Key)
	case slices.Equal(e.Values, parts.GELU):
		return fmt.Sprintf("parts.Expect(%q, parts.GELU...)", e.Key)
	}
	text := fmt.Sprintf("parts.Expect(%q", e.Key)
	for _, v := range e.Values {
		text += fmt.Sprintf(", %q", v)
	}
	return text + ")"
}
