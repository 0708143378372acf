package main

import (
	"fmt"
	"go/ast"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
)

// chosen is an atom of the new family's Tensors.
type chosen struct {
	atom   *atom
	from   *table.Arch
	guess  string            // why a person must look at the row; "" if nothing is guessed
	text   string            // instead of that of the atom
	edit   *table.TensorRow  // the row, where the literal of the atom has another bias or condition; nil for its text
	rows   []table.TensorRow // that are added
	mapped []*want
}

// chooser finds the rows for the tensors of a checkpoint.
type chooser struct {
	*checkpoint
	src    *source
	tables []*table.Arch // the most similar first
	view   *config.View
	chosen []chosen
	used   stringSet // outputs
	pass
	nearest bool // the most similar family is looked at
	conds   []condition
	found   map[*want]*condition // by pattern, nil for none
	// countKey is the key of the number of experts, "" for one of config.ExpertKeys; experts is the function for it.
	countKey, experts string
}

// pass are the restrictions of one look at all families.
type pass struct {
	shared bool // no names of other families than the most similar one
	exact  bool // conditions hold for the layers that have the tensors
}

// chooseRows maps every pattern of the checkpoint that a family maps, by the expressions of the most similar family.
func (c *checkpoint) chooseRows(src *source, all []*table.Arch, experts string) ([]chosen, error) {
	view, err := c.view()
	if err != nil {
		return nil, err
	}
	ch := &chooser{checkpoint: c, src: src, tables: all, view: view, used: stringSet{}, experts: experts,
		countKey: c.expertKey()}
	for _, how := range []pass{{shared: true, exact: true}, {exact: true}, {}} {
		ch.pass = how
		for i, a := range all {
			ch.nearest = i == 0
			if root := src.atoms(a); root != nil {
				ch.take(a, root)
			} else if how.exact {
				ch.takeRows(a)
			}
			if ch.left() == 0 {
				break
			}
		}
	}
	ch.guess()
	return ch.chosen, nil
}

// left returns the number of patterns without rows.
func (c *checkpoint) left() (n int) {
	for _, w := range c.wants {
		if w.atom == nil {
			n++
		}
	}
	return n
}

// take chooses a if all of its rows are of use, else those of its parts that are.
func (ch *chooser) take(from *table.Arch, a *atom) {
	if len(a.rows) == 0 {
		return
	}
	if !ch.src.isConcat(a) && ch.allowed(a) && !slices.ContainsFunc(a.rows,
		func(r table.TensorRow) bool { return ch.loose(&r) }) {
		if w, ok := ch.fits(a); ok {
			ch.add(chosen{atom: a, from: from, mapped: w, rows: a.rows})
			return
		}
	}
	for _, b := range ch.src.otherBiases(a) {
		if w, ok := ch.fits(b); ok {
			ch.add(chosen{atom: b, from: from, mapped: w, rows: b.rows})
			return
		}
	}
	for _, k := range a.kids {
		ch.take(from, k)
	}
	if len(a.kids) > 0 {
		return
	}
	for i := range a.rows { // rows of a list whose expression cannot be divided
		row := a.rows[i]
		if w, cond, guess, ok := ch.single(&row); ok {
			c := chosen{atom: &atom{expr: a.expr, single: true, wraps: cond, n: 1, rows: []table.TensorRow{row}}, from: from,
				guess: guess, mapped: w, rows: []table.TensorRow{row}}
			var err error
			c.text, err = literalText(&row, len(cond) > 0)
			if err != nil && !ch.exact && ch.src.unusable(a) && row.Split == nil && row.Join == nil && row.Kind == nil {
				ch.withoutFunctions(a, &c, w[0])
				err = nil
			}
			if err != nil {
				if _, ok := a.Expr.(*ast.CompositeLit); !ok || !a.single || !ch.allowed(a) {
					continue
				}
				c.edit = &c.rows[0]
			}
			ch.add(c)
		}
	}
}

// withoutFunctions makes a row plain whose functions have no exported names; its condition stays if it can.
func (ch *chooser) withoutFunctions(a *atom, c *chosen, w *want) {
	r := &c.rows[0]
	var lost []string
	for _, t := range []*table.Transform{r.PerSource, r.Transform} {
		if t != nil {
			lost = append(lost, "transform "+t.Name)
		}
	}
	r.PerSource, r.Transform, r.Type = nil, nil, nil
	var only []wrap
	for _, wr := range a.wraps {
		if call := ch.src.callName(wr.pkg, wr.call); call == "parts.Only" && !ch.src.unusable(&atom{expr: noExpr,
			wraps: []wrap{wr}}) {
			only = append(only, wr)
		}
	}
	cond := r.If
	r.If = nil
	c.text, _ = literalRow(r)
	if len(c.atom.wraps) == 0 {
		c.atom.wraps = only
	}
	switch {
	case len(c.atom.wraps) > 0:
		r.If = cond
	case !ch.everyLayer(w) && !r.Optional:
		r.Optional = true
		c.text, _ = literalRow(r)
		lost = append(lost, "condition")
	}
	c.guess = fmt.Sprintf("%s has it with what is not exported: %s", c.from.Name, strings.Join(lost, ", "))
}

// takeRows chooses rows of a table that a function makes, as far as their values show their source.
func (ch *chooser) takeRows(from *table.Arch) {
	for i := range from.Tensors {
		row := from.Tensors[i]
		text, err := literalRow(&row)
		if err != nil || ch.loose(&row) {
			continue
		}
		if w, ok := ch.fits(&atom{n: 1, rows: []table.TensorRow{row}}); ok {
			ch.add(chosen{atom: &atom{single: true, n: 1}, from: from, text: text, mapped: w, rows: []table.TensorRow{row}})
		}
	}
}

// isConcat reports whether an atom is a call of slices.Concat, whose arguments are taken one by one.
func (s *source) isConcat(a *atom) bool {
	call, ok := a.Expr.(*ast.CallExpr)
	return ok && len(a.wraps) == 0 && len(a.kids) > 0 && (s.src(call.Fun) == "slices.Concat" ||
		s.src(call.Fun) == "append")
}

// allowed reports whether an atom may be taken in this pass.
func (ch *chooser) allowed(a *atom) bool {
	private, unusable := ch.src.names(a)
	return !unusable && (ch.nearest || !ch.shared || !private)
}

// unusable reports whether an atom has names of arch/parts that are not exported.
func (s *source) unusable(a *atom) bool {
	_, u := s.names(a)
	return u
}

// names reports whether an atom has names of a family, or of arch/parts that are not exported.
func (s *source) names(a *atom) (private, unusable bool) {
	note := func(d *decl) (string, error) { private = true; return d.name, nil }
	check := func(pkg string, n ast.Node) {
		if _, err := s.rewrite(pkg, n, note); err != nil {
			unusable = true
		}
	}
	check(a.pkg, a.Expr)
	for _, w := range a.wraps {
		check(w.pkg, w.call.Fun)
		for i, arg := range w.call.Args {
			if i != w.arg {
				check(w.pkg, arg)
			}
		}
	}
	return private, unusable
}

// single reports whether one row maps a tensor that no row maps yet; it may change the row's kind of bias and its
// condition, which may be a function around it.
func (ch *chooser) single(row *table.TensorRow) (w []*want, cond []wrap, guess string, ok bool) {
	one := func() bool { w, ok = ch.fits(&atom{n: 1, rows: []table.TensorRow{*row}}); return ok }
	if must, _ := rowPatterns(row); ch.loose(row) {
		c, found := ch.conditionFor(ch.want(must[0]))
		if !found && ch.exact {
			return nil, nil, "", false
		}
		old := *row
		if row.If, row.Optional = c.holds, false; found && one() {
			return w, []wrap{c.wrap}, "", true
		}
		*row = old
	}
	if one() {
		return w, nil, "", true
	}
	if row.Bias == table.NoBias && !row.Exact {
		row.Bias = table.MayBias
		if one() {
			return w, nil, "", true
		}
	}
	if ch.exact {
		return nil, nil, "", false
	}
	must, _ := rowPatterns(row)
	if m := ch.want(must[0]); m != nil && m.atom == nil && m.layers != nil && !ch.everyLayer(m) {
		if c, found := ch.conditionFor(m); found {
			old := row.If
			if row.If = c.holds; one() {
				return w, []wrap{c.wrap}, "the condition is one that holds for the layers that have it", true
			}
			row.If = old
		}
	}
	if row.If != nil {
		row.If, row.Optional = nil, true
		if one() {
			return w, nil, "its condition in the other family does not hold for the layers that have it", true
		}
	}
	if !row.Optional {
		row.Optional = true
		if one() {
			return w, nil, "only some layers have it: give its condition (arch/parts/conditions.go)", true
		}
	}
	return nil, nil, "", false
}

func (ch *chooser) add(c chosen) {
	c.atom.wraps = ch.useful(c.atom.wraps, c.rows)
	for _, w := range c.mapped {
		w.atom = c.atom
	}
	for i := range c.rows {
		for _, name := range c.rows[i].Outputs(0, "") {
			ch.used[name] = true
		}
	}
	ch.chosen = append(ch.chosen, c)
}

// loose reports whether a row is optional without a condition and its tensor is in some layers only.
func (ch *chooser) loose(r *table.TensorRow) bool {
	must, _ := rowPatterns(r)
	w := ch.want(must[0])
	return w != nil && w.layers != nil && !ch.everyLayer(w) && r.Optional && r.If == nil
}

// useful returns wraps without those that change no row.
func (ch *chooser) useful(wraps []wrap, rows []table.TensorRow) (list []wrap) {
	for _, w := range wraps {
		if len(w.call.Args) == 3 && ch.src.callName(w.pkg, w.call) == "parts.TransformBySuffix" {
			suffix := ch.src.str(w.call.Args[1])
			if suffix != "" && !slices.ContainsFunc(rows, func(r table.TensorRow) bool {
				return strings.HasSuffix(r.HF,
					suffix)
			}) {
				continue
			}
		}
		list = append(list, w)
	}
	return list
}

// condition is a call of parts.Only whose condition has exported names only.
type condition struct {
	wrap
	holds table.Cond
}

// findConditions returns the conditions of all families.
func (ch *chooser) findConditions() (list []condition) {
	seen := map[string]bool{}
	var visit func(a *atom)
	visit = func(a *atom) {
		if len(a.wraps) > 0 && len(a.rows) > 0 && a.rows[0].If != nil {
			w := a.wraps[0]
			text := w.pkg + ch.src.src(w.call.Args[0])
			if ch.src.callName(w.pkg, w.call) == "parts.Only" && !seen[text] {
				seen[text] = true
				if private, unusable := ch.src.names(&atom{expr: noExpr, wraps: []wrap{w}}); !private && !unusable &&
					!hasFunc(w.call.Args[0]) {
					list = append(list, condition{w, a.rows[0].If})
				}
			}
		}
		for _, k := range a.kids {
			visit(k)
		}
	}
	for _, a := range ch.tables {
		if root := ch.src.atoms(a); root != nil {
			visit(root)
		}
	}
	return list
}

// noExpr is no expression.
var noExpr = expr{"arch", ast.NewIdent("nil")}

// conditionFor returns a condition that holds for the layers of a pattern and no other one.
func (ch *chooser) conditionFor(w *want) (c condition, ok bool) {
	if ch.conds == nil {
		ch.conds, ch.found = ch.findConditions(), map[*want]*condition{}
	}
	if known, tried := ch.found[w]; tried {
		if known == nil {
			return c, false
		}
		return *known, true
	}
	ch.found[w] = nil
	for _, c := range ch.conds {
		same := true
		for bid := 0; bid < ch.layers && same; bid++ {
			holds, err := c.holds(table.Layer{View: ch.view, Bid: int64(bid)})
			same = err == nil && holds == slices.Contains(w.layers, bid)
		}
		if same {
			ch.found[w] = &c
			return c, true
		}
	}
	return condition{}, false
}

// fits reports whether rows are of use: each maps a pattern or is optional, at least one maps a pattern that
// has no row
// yet and none one that has, and each layer that has a tensor has a row for it, and no other layer needs it.
func (ch *chooser) fits(a *atom) (mapped []*want, ok bool) {
	some := false
	for i := range a.rows {
		r := &a.rows[i]
		found := 0
		must, may := rowPatterns(r)
		for j, p := range append(must, may...) {
			w := ch.want(p)
			if w == nil {
				if j < len(must) && !r.Optional && ch.somewhere(r) {
					return nil, false
				}
				continue
			}
			found++
			if w.atom != nil {
				return nil, false
			}
			if slices.Contains(mapped, w) { // rows for different layers
				continue
			}
			mapped = append(mapped, w)
			some = true
		}
		if found == 0 {
			continue
		}
		if r.Bias == table.NoBias && !r.Exact && len(must) > 0 && !r.Drops() {
			if b := ch.want(strings.TrimSuffix(must[0], ".weight") + ".bias"); b != nil && !hasBiasRow(a.rows, b.pattern) {
				return nil, false
			}
		}
	}
	return mapped, some && ch.conditions(a, mapped)
}

// somewhere reports whether a row's condition holds in a layer.
func (ch *chooser) somewhere(r *table.TensorRow) bool {
	for bid := int64(-1); bid < int64(ch.layers); bid++ {
		if (bid >= 0) != strings.Contains(r.HF, "{bid}") {
			continue
		}
		if r.If == nil {
			return true
		}
		if holds, err := r.If(table.Layer{View: ch.view, Bid: bid}); err != nil || holds {
			return true
		}
	}
	return false
}

// hasBiasRow reports whether a row maps a bias by its whole name.
func hasBiasRow(rows []table.TensorRow, pattern string) bool {
	return slices.ContainsFunc(rows, func(r table.TensorRow) bool { return r.Exact && r.HF == pattern })
}

// conditions reports whether each layer that has a tensor has a row for it, and no other layer needs it.
func (ch *chooser) conditions(a *atom, mapped []*want) bool {
	for _, w := range mapped {
		for bid := range ch.layers {
			has := slices.Contains(w.layers, bid)
			need, may := false, false
			for i := range a.rows {
				r := &a.rows[i]
				must, other := rowPatterns(r)
				if !slices.Contains(append(must, other...), w.pattern) {
					continue
				}
				at := int64(bid)
				if !strings.Contains(r.HF, "{bid}") {
					at = -1
				}
				holds := true
				if r.If != nil {
					var err error
					if holds, err = r.If(table.Layer{View: ch.view, Bid: at}); err != nil {
						return false
					}
				}
				may = may || holds
				need = need || holds && !r.Optional && slices.Contains(must, w.pattern)
			}
			if w.layers == nil {
				if !may {
					return false
				}
				break
			}
			if has && !may || !has && need {
				return false
			}
		}
	}
	return true
}

// rowPatterns returns the patterns of the names that a row maps: those that it needs unless it is optional, and those
// of biases that a tensor may have.
func rowPatterns(r *table.TensorRow) (must, may []string) {
	list := r.Parts
	if len(list) == 0 {
		list = []string{""}
	}
	for _, part := range list {
		name := strings.ReplaceAll(r.HF, "{part}", part)
		suffix := ".weight"
		if r.Exact || r.Drops() {
			suffix = ""
		}
		p, _, _ := patternOf(name + suffix)
		must = append(must, p)
		if suffix == "" || r.Bias == table.NoBias {
			continue
		}
		p, _, _ = patternOf(name + ".bias")
		if r.Bias == table.NeedBias {
			must = append(must, p)
		} else {
			may = append(may, p)
		}
	}
	return must, may
}

// guess adds rows for tensors of layers by the words in their names: as the row of any family whose name is
// most alike.
func (ch *chooser) guess() {
	type known struct {
		words stringSet
		must  string
		row   *table.TensorRow
		from  *table.Arch
	}
	var all []known
	count := map[string]float64{}
	for _, a := range ch.tables {
		for i := range a.Tensors {
			r := &a.Tensors[i]
			if must, _ := rowPatterns(r); len(must) > 0 && strings.HasPrefix(r.GGUF, "blk.{bid}.") && !r.Drops() &&
				r.Kind == nil &&
				r.Split == nil && (r.Transform == nil || transformNames[r.Transform] != "") && r.PerSource == nil &&
				r.Join == nil &&
				len(r.Parts) == 0 {
				w := wordsOf(must[0])
				all = append(all, known{w, must[0], r, a})
				for name := range w {
					count[name]++
				}
			}
		}
	}
	weight := func(s stringSet, in func(string) bool) (sum float64) {
		for name := range s {
			switch {
			case in(name) && count[name] > 0:
				sum += math.Log(2 + float64(len(all))/(1+count[name]))
			case in(name): // no family has it
				sum += 2.5
			}
		}
		return sum
	}
	for _, w := range ch.wants {
		if w.atom != nil || !strings.Contains(w.pattern, "{bid}") || strings.HasSuffix(w.pattern, ".bias") {
			continue
		}
		words := wordsOf(w.pattern)
		var best *known
		most := 0.4
		for i := range all {
			k := &all[i]
			if strings.Contains(k.must, "{xid}") != strings.Contains(w.pattern, "{xid}") ||
				strings.HasSuffix(k.must, ".weight") != strings.HasSuffix(w.pattern, ".weight") || ch.used[k.row.Outputs(0,
				"")[0]] {
				continue
			}
			both := weight(words, k.words.has)
			alike := both / (weight(words, func(string) bool { return true }) + weight(k.words,
				func(n string) bool { return !words[n] }))
			if alike > most {
				best, most = k, alike
			}
		}
		if best == nil {
			continue
		}
		row := table.TensorRow{HF: w.pattern, GGUF: best.row.GGUF, Exact: best.row.Exact, Transform: best.row.Transform}
		if !row.Exact {
			row.HF = strings.TrimSuffix(row.HF, ".weight")
			if ch.want(row.HF+".bias") != nil {
				row.Bias = table.MayBias
			}
		}
		if w.experts > 0 && ch.countKey != "" {
			key := ch.countKey
			row.Experts = func(l table.Layer) (int64, error) { return l.Require(key) }
		}
		ch.addGuess(w, row, fmt.Sprintf("by the words of its name: %s maps %s so", best.from.Name, best.must), best.from)
	}
}

// addGuess adds a row that nobody has.
func (ch *chooser) addGuess(w *want, row table.TensorRow, why string, from *table.Arch) {
	var wraps []wrap
	if !ch.everyLayer(w) {
		if c, ok := ch.conditionFor(w); ok {
			wraps, row.If = []wrap{c.wrap}, c.holds
		} else {
			row.Optional = true
		}
	}
	mapped, ok := ch.fits(&atom{n: 1, rows: []table.TensorRow{row}})
	if !ok {
		return
	}
	plain := row
	plain.Experts, plain.If = nil, nil
	text, err := literalRow(&plain)
	if err != nil {
		return
	}
	if row.Experts != nil {
		text = strings.TrimSuffix(text, "}") + ", Experts: " + ch.experts + "}"
	}
	ch.add(chosen{atom: &atom{single: true, wraps: wraps, n: 1, rows: []table.TensorRow{row}}, from: from, text: text,
		rows: []table.TensorRow{row}, mapped: mapped, guess: why})
}

// wordsOf returns the words of a pattern that tell what a tensor is for.
func wordsOf(pattern string) stringSet {
	words := stringSet{}
	for _, w := range strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("._{}", r) }) {
		switch w = strings.TrimSuffix(w, "s"); w {
		case "model", "layer", "bid", "xid", "weight", "proj", "linear", "transformer", "h", "block":
		case "w1":
			words["gate"] = true
		case "w2":
			words["down"] = true
		case "w3":
			words["up"] = true
		case "layernorm", "ln", "rmsnorm":
			words["norm"] = true
		default:
			words[w] = true
		}
	}
	return words
}

// literalText is literalRow for a row whose condition is in a function around it, if cond.
func literalText(r *table.TensorRow, cond bool) (string, error) {
	plain := *r
	if cond {
		plain.If = nil
	}
	return literalRow(&plain)
}

// literalRow returns the source of a row; an error if it has parts that the value does not show.
func literalRow(r *table.TensorRow) (string, error) {
	if r.If != nil || r.PerSource != nil || r.Experts != nil || r.Join != nil || r.Split != nil || r.Kind != nil ||
		r.Type != nil {
		return "", fmt.Errorf("row %s has functions", r.HF)
	}
	t := ""
	if r.Transform != nil {
		if t = transformNames[r.Transform]; t == "" {
			return "", fmt.Errorf("row %s has transform %s", r.HF, r.Transform.Name)
		}
	}
	s := fmt.Sprintf("{HF: %q, ", r.HF)
	if r.Exact {
		s += "Exact: true, "
	}
	if r.Optional {
		s += "Optional: true, "
	}
	if r.Number {
		s += "Number: true, "
	}
	if len(r.Parts) > 0 {
		s += fmt.Sprintf("Parts: %#v, ", r.Parts)
	}
	s += fmt.Sprintf("GGUF: %q", r.GGUF)
	if r.Bias != table.NoBias {
		s += ", Bias: " + biasNames[r.Bias]
	}
	if t != "" {
		s += ", Transform: " + t
	}
	return s + "}", nil
}

// edited returns a row of another family with another kind of bias, and with no condition where the new row has none.
func (f *family) edited(a *atom, r *table.TensorRow) (string, error) {
	var fields []string
	for _, elt := range a.Expr.(*ast.CompositeLit).Elts {
		kv, ok := elt.(*ast.KeyValueExpr)
		if !ok {
			return "", fmt.Errorf("a row without names of fields")
		}
		name := f.src.src(kv.Key)
		if name == "Bias" || name == "Optional" || name == "If" && r.If == nil {
			continue
		}
		text, err := f.expr(expr{a.pkg, kv.Value})
		if err != nil {
			return "", err
		}
		fields = append(fields, name+": "+text)
	}
	if r.Optional {
		fields = append(fields, "Optional: true")
	}
	if r.Bias != table.NoBias {
		fields = append(fields, "Bias: "+biasNames[r.Bias])
	}
	return "{" + strings.Join(fields, ", ") + "}", nil
}

// tensorsExpr returns the source of Tensors.
func (f *family) tensorsExpr(list []chosen) (string, []error) {
	var items []string
	var rows []string // of the literal that is being made
	var errs []error
	flush := func() {
		if len(rows) > 0 {
			items = append(items, "[]table.TensorRow{\n"+strings.Join(rows, ",\n")+",\n}")
			rows = nil
		}
	}
	for i := 0; i < len(list); i++ {
		c := list[i]
		text, err := c.text, error(nil)
		switch {
		case c.edit != nil:
			text, err = f.edited(c.atom, c.edit)
		case text == "":
			text, err = f.inner(c.atom)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.rows[0].HF, err))
			continue
		}
		if len(c.atom.wraps) > 0 {
			// neighbours with the same functions around them share these
			group := []chosen{c}
			for i+1 < len(list) && sameWraps(list[i+1].atom, c.atom) {
				i++
				group = append(group, list[i])
			}
			var inner []chosen
			for _, g := range group {
				a := *g.atom
				a.wraps = nil
				g.atom = &a
				inner = append(inner, g)
			}
			text, more := f.tensorsExpr(inner)
			errs = append(errs, more...)
			for j := len(c.atom.wraps) - 1; j >= 0; j-- {
				before, after, err := f.around(c.atom.wraps[j])
				if err != nil {
					errs = append(errs, err)
					text = ""
					break
				}
				text = before + text + after
			}
			if text != "" {
				flush()
				items = append(items, text)
			}
			continue
		}
		if !c.atom.single {
			flush()
			items = append(items, text)
			continue
		}
		rows = append(rows, text)
	}
	flush()
	switch len(items) {
	case 0:
		return "nil", errs
	case 1:
		return items[0], errs
	}
	return "slices.Concat(" + fill(items) + ")", errs
}

func sameWraps(a, b *atom) bool { return slices.Equal(a.wraps, b.wraps) }

// transformNames are the transforms of arch/parts that rows of several families have.
var transformNames = map[*table.Transform]string{
	parts.PermuteQ: "parts.PermuteQ", parts.PermuteK: "parts.PermuteK", parts.PlusOne: "parts.PlusOne",
	parts.SqueezeKernel: "parts.SqueezeKernel", parts.NegExp: "parts.NegExp", parts.Column: "parts.Column",
	parts.NegExpColumn: "parts.NegExpColumn", parts.Squeeze: "parts.Squeeze", parts.Transpose: "parts.Transpose",
	parts.TransposeLast: "parts.TransposeLast", parts.MLAKeys: "parts.MLAKeys", parts.MLAValues: "parts.MLAValues",
}

// expertKey returns the key of the number of experts if the usual ones are not there, "" if they are.
func (c *checkpoint) expertKey() string {
	n := 0
	for _, w := range c.wants {
		n = max(n, w.experts)
	}
	keys := keysOf(c.root)
	if n == 0 || slices.ContainsFunc(config.ExpertKeys, func(key string) bool { return hasKey(keys, key) }) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if fmt.Sprint(keys[key]) == strconv.Itoa(n) && strings.Contains(key, "expert") {
			return key
		}
	}
	return ""
}
