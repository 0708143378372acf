package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type filterFunc struct {
	params []string // the first one is what is filtered
	fn     func(r *run, v []Value) Value
	raw    func(r *run, a *callArgs) Value // instead of fn, of a filter with any number of arguments
}

// filters are the filters by name: those of Jinja, and tojson of transformers. What no chat template uses and depends
// on more than its arguments is left out: random, pprint, urlize, xmlattr, filesizeformat, wordwrap, striptags.
var filters map[string]filterFunc

func init() { // map and select find filters by their names
	f := func(params string, fn func(r *run, v []Value) Value) filterFunc {
		return filterFunc{params: strings.Fields(params), fn: fn}
	}
	text := func(fn func(s string) string) filterFunc {
		return f("s", func(r *run, v []Value) Value {
			s := r.soft(v[0])
			t, _ := textOf(s)
			r.alloc(len(t))
			return like(s, fn(t))
		})
	}
	same := func(v Value) Value { return v }
	length := f("obj", func(r *run, v []Value) Value { return r.length(v[0]) })
	byDefault := f("value default_value? boolean?", func(r *run, v []Value) Value {
		_, no := v[0].(*undefined)
		if no || optional(v[2], false, truth) && !truth(v[0]) {
			return optional(v[1], "", same)
		}
		return v[0]
	})
	escaped := f("s", func(r *run, v []Value) Value {
		if _, ok := v[0].(markup); ok {
			return v[0]
		}
		s := escape(r.str(v[0]))
		r.alloc(len(s))
		return markup(s)
	})
	filters = map[string]filterFunc{
		"abs":        f("x", filterAbs),
		"attr":       f("obj name", filterAttr),
		"batch":      f("value linecount fill_with?", filterBatch),
		"capitalize": text(capitalize),
		"center":     f("value width?", filterCenter),
		"count":      length,
		"d":          byDefault,
		"default":    byDefault,
		"dictsort":   f("value case_sensitive? by? reverse?", filterDictSort),
		"e":          escaped,
		"escape":     escaped,
		"first":      f("seq", filterFirst),
		"float":      f("value default?", filterFloat),
		"forceescape": f("value", func(r *run, v []Value) Value {
			s := escape(r.str(v[0]))
			r.alloc(len(s))
			return markup(s)
		}),
		"format":     {raw: filterFormat},
		"groupby":    f("value attribute default? case_sensitive?", filterGroupBy),
		"indent":     f("s width? first? blank?", filterIndent),
		"int":        f("value default? base?", filterInt),
		"items":      f("value", filterItems),
		"join":       f("value d? attribute?", filterJoin),
		"last":       f("seq", filterLast),
		"length":     length,
		"list":       f("value", func(r *run, v []Value) Value { return r.newList(slices.Clone(r.iterate(v[0]))) }),
		"lower":      text(lower),
		"map":        {raw: filterMap},
		"max":        f("value case_sensitive? attribute?", func(r *run, v []Value) Value { return r.extreme(v, ">") }),
		"min":        f("value case_sensitive? attribute?", func(r *run, v []Value) Value { return r.extreme(v, "<") }),
		"reject":     {raw: func(r *run, a *callArgs) Value { return r.choose("reject", a, false, false) }},
		"rejectattr": {raw: func(r *run, a *callArgs) Value { return r.choose("rejectattr", a, true, false) }},
		"replace":    f("s old new count?", filterReplace),
		"reverse":    f("value", filterReverse),
		"round":      f("value precision? method?", filterRound),
		"safe":       f("value", func(r *run, v []Value) Value { return markup(r.str(v[0])) }),
		"select":     {raw: func(r *run, a *callArgs) Value { return r.choose("select", a, false, true) }},
		"selectattr": {raw: func(r *run, a *callArgs) Value { return r.choose("selectattr", a, true, true) }},
		"slice":      f("value slices fill_with?", filterSlice),
		"sort":       f("value reverse? case_sensitive? attribute?", filterSort),
		"string":     f("object", func(r *run, v []Value) Value { return r.soft(v[0]) }),
		"sum":        f("iterable attribute? start?", filterSum),
		"title":      text(filterTitle),
		"tojson":     f("x ensure_ascii? indent? separators? sort_keys?", toJSON),
		"trim":       f("value chars?", filterTrim),
		"truncate":   f("s length? killwords? end? leeway?", filterTruncate),
		"unique":     f("value case_sensitive? attribute?", filterUnique),
		"upper":      text(upper),
		"urlencode":  f("value", filterURLEncode),
		"wordcount": f("s", func(r *run, v []Value) Value {
			n := int64(0)
			for _, w := range strings.FieldsFunc(r.str(v[0]), func(c rune) bool { return !isName(c) }) {
				_ = w
				n++
			}
			return n
		}),
	}
}

// soft is str(v), of which Markup stays Markup.
func (r *run) soft(v Value) Value {
	if _, ok := v.(markup); ok {
		return v
	}
	return r.str(v)
}

// getter returns the function that follows a path of attributes such as "a.b.0".
func (r *run) getter(attr, otherwise Value) func(Value) Value {
	var parts []Value
	switch a := attr.(type) {
	case nil, absent:
	case string, markup:
		s, _ := textOf(a)
		for _, p := range strings.Split(s, ".") {
			if i, err := strconv.ParseInt(p, 10, 64); err == nil && isDecimal(p[0]) {
				parts = append(parts, i)
			} else {
				parts = append(parts, p)
			}
		}
	default:
		parts = []Value{a}
	}
	return func(v Value) Value {
		for _, p := range parts {
			v = r.item(v, p)
			if _, no := v.(*undefined); no && given(otherwise) != nil {
				v = otherwise
			}
		}
		return v
	}
}

// ignoreCase makes texts lower case.
func (r *run) ignoreCase(v Value) Value {
	if s, ok := textOf(v); ok {
		r.alloc(len(s))
		return lower(s)
	}
	return v
}

// key returns the function that gives what filters sort and compare by.
func (r *run) key(attr, caseSensitive Value) func(Value) Value {
	get := r.getter(attr, nil)
	if optional(caseSensitive, false, truth) {
		return get
	}
	return func(v Value) Value { return r.ignoreCase(get(v)) }
}

// sorted sorts values by keys, stably.
func (r *run) sorted(items []Value, key func(Value) Value, reverse bool) []Value {
	type pair struct{ key, v Value }
	pairs := make([]pair, len(items))
	r.alloc(64 * len(items))
	for i, v := range items {
		pairs[i] = pair{key(v), v}
	}
	less := func(a, b Value) bool { r.work(1); return r.compare("<", a, b) }
	slices.SortStableFunc(pairs, func(a, b pair) int {
		sign := 1
		if reverse {
			sign = -1
		}
		switch {
		case less(a.key, b.key):
			return -sign
		case less(b.key, a.key):
			return sign
		}
		return 0
	})
	out := make([]Value, len(pairs))
	for i, p := range pairs {
		out[i] = p.v
	}
	return out
}

func filterAbs(r *run, v []Value) Value {
	switch x := v[0].(type) {
	case float64:
		return math.Abs(x)
	case *undefined:
		r.undefined(x)
	}
	if i := r.int("abs", v[0]); i < 0 {
		return r.unary("-", i)
	} else {
		return i
	}
}

func filterAttr(r *run, v []Value) Value {
	n := r.text("attr", v[1])
	if _, ok := v[0].(*dict); ok {
		if m, ok := r.member(v[0], n); ok {
			return m
		}
		return missing(v[0], n)
	}
	return r.attribute(v[0], n)
}

func filterBatch(r *run, v []Value) Value {
	n, fill := r.int("batch", v[1]), given(v[2])
	var out []Value
	items := r.iterate(v[0])
	if n <= 0 {
		n = int64(len(items))
	}
	for len(items) > 0 {
		part := slices.Clone(items[:min(int(n), len(items))])
		items = items[len(part):]
		if fill != nil {
			r.alloc(16 * (int(n) - len(part)))
			for int64(len(part)) < n {
				part = append(part, fill)
			}
		}
		out = append(out, r.newList(part))
	}
	return &generator{out, "do_batch"}
}

func filterSlice(r *run, v []Value) Value {
	items, n, fill := r.iterate(v[0]), r.int("slice", v[1]), given(v[2])
	if n <= 0 {
		r.failf("slice into %d lists, want at least 1", n)
	}
	r.alloc(64 * int(min(n, MaxMemory)))
	per, extra, at := int64(len(items))/n, int64(len(items))%n, int64(0)
	var out []Value
	for i := range n {
		end := at + per
		if i < extra {
			end++
		}
		part := slices.Clone(items[at:end])
		at = end
		if fill != nil && i >= extra {
			part = append(part, fill)
		}
		out = append(out, r.newList(part))
	}
	return &generator{out, "do_slice"}
}

func filterCenter(r *run, v []Value) Value {
	s := r.soft(v[0])
	t, _ := textOf(s)
	return like(s, r.pad(t, optional(v[1], 80, func(v Value) int64 { return r.int("center", v) }), " ", "^"))
}

func filterDictSort(r *run, v []Value) Value {
	d, ok := v[0].(*dict)
	if !ok {
		if u, ok := v[0].(*undefined); ok {
			r.undefined(u)
		}
		r.failf("dictsort of %s, want a dict", r.describe(v[0]))
	}
	at := int64(0)
	switch by := optional(v[2], "key", func(v Value) string { return r.text("by", v) }); by {
	case "key":
	case "value":
		at = 1
	default:
		r.failf(`dictsort by %s, want "key" or "value"`, short(by))
	}
	key := r.key(at, v[1])
	return r.newList(r.sorted(r.iterate(&view{d, "items"}), key, optional(v[3], false, truth)))
}

func filterFirst(r *run, v []Value) Value {
	if g, ok := v[0].(*generator); ok {
		if len(g.items) > 0 {
			x := g.items[0]
			g.items = g.items[1:]
			return x
		}
	} else if items := r.iterate(v[0]); len(items) > 0 {
		return items[0]
	}
	return &undefined{text: "no first item, the sequence is empty"}
}

func filterLast(r *run, v []Value) Value {
	switch u := v[0].(type) {
	case *generator:
		r.failf("last of a generator, want a list")
	case *undefined: // has a length of 0 and no element
	case *loop:
		r.failf("last of %s, want a list", r.describe(u))
	}
	if items := r.iterate(v[0]); len(items) > 0 {
		return items[len(items)-1]
	}
	return &undefined{text: "no last item, the sequence is empty"}
}

// parseFloat is Python's float(text).
func parseFloat(s string) (float64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	switch strings.TrimLeft(s, "+-") {
	case "inf", "infinity", "nan":
	default:
		if strings.Contains(s, "__") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.ContainsAny(s, "xpn") {
			return 0, false
		}
		s = strings.ReplaceAll(s, "_", "")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func filterFloat(r *run, v []Value) Value {
	if s, ok := textOf(v[0]); ok {
		if f, ok := parseFloat(s); ok {
			return f
		}
	} else if u, ok := v[0].(*undefined); ok {
		r.undefined(u)
	} else if f, ok := floatOf(v[0]); ok {
		return f
	}
	return optional(v[1], Value(0.0), func(v Value) Value { return v })
}

func filterInt(r *run, v []Value) Value {
	base := optional(v[2], 10, func(v Value) int64 { return r.int("base", v) })
	whole := func(f float64) (Value, bool) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		i, _ := big.NewFloat(f).Int(nil)
		return r.integer(i), true
	}
	switch x := v[0].(type) {
	case string, markup:
		s, _ := textOf(x)
		if i, ok := r.parseInt(s, base); ok {
			return i
		}
		if f, ok := parseFloat(s); ok {
			if i, ok := whole(f); ok {
				return i
			}
		}
	case *undefined:
		r.undefined(x)
	case bigInt:
		return x
	case float64:
		if i, ok := whole(x); ok {
			return i
		}
		if math.IsInf(x, 0) {
			r.failf("the integer of an infinite number")
		}
	default:
		if i, ok := intOf(x); ok {
			return i
		}
	}
	return optional(v[1], Value(int64(0)), func(v Value) Value { return v })
}

// parseInt is Python's int(text, base).
func (r *run) parseInt(s string, base int64) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	if base != 0 && (base < 2 || base > 36) || len(s) > 4300 {
		return nil, false
	}
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	for prefix, b := range map[string]int64{"0b": 2, "0o": 8, "0x": 16} {
		if rest, ok := strings.CutPrefix(strings.ToLower(s), prefix); ok && base == b {
			s = strings.TrimPrefix(rest, "_")
		}
	}
	if s == "" || s[0] == '-' || s[0] == '+' || s[0] == '_' || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return nil, false
	}
	if base != 0 {
		s = strings.ReplaceAll(s, "_", "")
	}
	i, ok := new(big.Int).SetString(sign+s, int(base))
	if !ok {
		return nil, false
	}
	return r.integer(i), true
}

func filterFormat(r *run, a *callArgs) Value {
	s, args := a.list[0], a.list[1:]
	if len(args) > 0 && len(a.names) > 0 {
		r.failf("format: arguments with and without a name, want one kind")
	}
	if len(a.names) > 0 {
		d := newDict()
		for i, n := range a.names {
			d.set(n, a.named[i])
		}
		return r.percent(r.soft(s), d)
	}
	return r.percent(r.soft(s), r.newTuple(args...))
}

func filterGroupBy(r *run, v []Value) Value {
	get := r.getter(v[1], v[2])
	key := get
	if !optional(v[3], false, truth) {
		key = func(v Value) Value { return r.ignoreCase(get(v)) }
	}
	var out []Value
	var last Value
	var group *list
	for _, x := range r.sorted(r.iterate(v[0]), key, false) {
		k := key(x)
		if group == nil || !r.equal(k, last, 0) {
			group, last = r.newList(nil), k
			out = append(out, r.newTuple(get(x), group))
		}
		group.items = append(group.items, x)
	}
	return r.newList(out)
}

func filterIndent(r *run, v []Value) Value {
	if u, ok := v[0].(*undefined); ok {
		r.undefined(u)
	}
	s := r.text("indent", v[0])
	by := optional(v[1], "    ", func(v Value) string {
		if t, ok := textOf(v); ok {
			return t
		}
		return r.repeat(" ", r.int("indent", v))
	})
	first, blank := optional(v[2], false, truth), optional(v[3], false, truth)
	lines := splitLines(s+"\n", false)
	r.alloc(2*len(s) + len(by)*(len(lines)+1))
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i > 0 && (l != "" || blank) || i == 0 && first {
			b.WriteString(by)
		}
		b.WriteString(l)
	}
	return like(v[0], b.String())
}

func filterItems(r *run, v []Value) Value {
	switch d := v[0].(type) {
	case *undefined:
		return &generator{nil, "do_items"}
	case *dict:
		return &generator{r.iterate(&view{d, "items"}), "do_items"}
	}
	// The error of a generator comes when it is read.
	r.failf("items of %s, want a dict", r.describe(v[0]))
	return nil
}

func filterJoin(r *run, v []Value) Value {
	get := r.getter(v[2], nil)
	return r.join(r.str(optional(v[1], Value(""), func(v Value) Value { return v })), r.iterate(v[0]), func(v Value) string {
		return r.str(get(v))
	})
}

func (r *run) join(sep string, items []Value, text func(Value) string) string {
	var b strings.Builder
	for i, x := range items {
		if i > 0 {
			r.alloc(len(sep))
			b.WriteString(sep)
		}
		s := text(x)
		r.alloc(len(s))
		r.work(1)
		b.WriteString(s)
	}
	return b.String()
}

func filterMap(r *run, a *callArgs) Value {
	items, line := r.iterate(a.list[0]), r.line
	var fn func(Value) Value
	if len(a.list) == 1 {
		attr, ok := a.take("attribute")
		if !ok {
			r.failf("map without the name of a filter")
		}
		otherwise, _ := a.take("default")
		a.noNames(r, "map")
		fn = r.getter(attr, otherwise)
	} else {
		name := r.text("map", a.list[1])
		fn = func(v Value) Value {
			return r.applyFilter(line, name, v, &callArgs{slices.Clone(a.list[2:]), slices.Clone(a.names), slices.Clone(a.named)})
		}
	}
	out := make([]Value, len(items))
	r.alloc(16 * len(items))
	for i, x := range items {
		out[i] = fn(x)
	}
	return &generator{out, "sync_do_map"}
}

// choose is select, reject, selectattr and rejectattr.
func (r *run) choose(filter string, a *callArgs, byAttr, keep bool) Value {
	line := r.line
	args := a.list[1:]
	get := func(v Value) Value { return v }
	if !truth(a.list[0]) {
		return &generator{nil, filter}
	}
	if byAttr {
		if len(args) == 0 {
			r.failf("%s without the name of an attribute", filter)
		}
		get, args = r.getter(args[0], nil), args[1:]
	}
	fn := truth
	if len(args) > 0 {
		name := r.text(filter, args[0])
		fn = func(v Value) bool {
			return r.applyTest(line, name, v, &callArgs{slices.Clone(args[1:]), slices.Clone(a.names), slices.Clone(a.named)})
		}
	}
	var out []Value
	for _, x := range r.iterate(a.list[0]) {
		r.work(1)
		if fn(get(x)) == keep {
			out = append(out, x)
		}
	}
	r.alloc(16 * len(out))
	return &generator{out, filter}
}

func (r *run) extreme(v []Value, op string) Value {
	items := r.iterate(v[0])
	if len(items) == 0 {
		return &undefined{text: "no item, the sequence is empty"}
	}
	key := r.key(v[2], v[1])
	best, of := items[0], key(items[0])
	for _, x := range items[1:] {
		if k := key(x); r.compare(op, k, of) {
			best, of = x, k
		}
	}
	return best
}

func filterReplace(r *run, v []Value) Value {
	n := -1
	if c := given(v[3]); c != nil {
		n = int(r.int("replace", c))
	}
	return r.replace(r.str(v[0]), r.str(v[1]), r.str(v[2]), n)
}

// replace counts the result before it is made.
func (r *run) replace(s, old, new string, n int) string {
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	r.alloc(len(s))
	if grow := len(new) - len(old); grow > 0 {
		if found > MaxMemory/grow {
			r.limit("a text of more than %d bytes", MaxMemory)
		}
		r.alloc(found * grow)
	}
	return strings.Replace(s, old, new, n)
}

func filterReverse(r *run, v []Value) Value {
	if s, ok := textOf(v[0]); ok {
		c := []rune(s)
		r.alloc(5 * len(s))
		slices.Reverse(c)
		return like(v[0], string(c))
	}
	items := slices.Clone(r.iterate(v[0]))
	r.alloc(16 * len(items))
	slices.Reverse(items)
	if _, ok := v[0].(*generator); ok {
		return &list{items}
	}
	return &generator{items, "reversed"}
}

func filterRound(r *run, v []Value) Value {
	if u, ok := v[0].(*undefined); ok {
		r.undefined(u)
	}
	n := optional(v[1], 0, func(v Value) int64 { return r.int("precision", v) })
	f, ok := floatOf(v[0])
	if !ok {
		r.failf("round of %s, want a number", r.describe(v[0]))
	}
	switch method := optional(v[2], "common", func(v Value) string { return r.text("method", v) }); method {
	case "common":
		if i, ok := intOf(v[0]); ok {
			if n >= 0 {
				return i
			}
			if n < -18 {
				return int64(0)
			}
			p := int64(math.Pow10(int(-n)))
			down := r.integers("-", i, r.integers("%", i, p).(int64)).(int64)
			half := i - down
			if half*2 > p || half*2 == p && down/p%2 != 0 {
				down += p
			}
			return down
		}
		return roundTo(f, n)
	case "ceil", "floor":
		p := math.Pow(10, float64(n))
		x := math.Floor(f * p)
		if method == "ceil" {
			x = math.Ceil(f * p)
		}
		return x / p
	default:
		r.failf("method %s, want common, ceil or floor", short(method))
	}
	return nil
}

// roundTo is Python's round(f, n): half to even of the exact value.
func roundTo(f float64, n int64) float64 {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || n > 330:
		return f
	case n < -308:
		return math.Copysign(0, f)
	case n >= 0:
		x, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(n), 64), 64)
		return x
	}
	p := math.Pow10(int(-n))
	return math.RoundToEven(f/p) * p
}

func filterSort(r *run, v []Value) Value {
	var keys []func(Value) Value
	if s, ok := textOf(given(v[3])); ok {
		for _, a := range strings.Split(s, ",") {
			keys = append(keys, r.key(a, v[2]))
		}
	} else {
		keys = append(keys, r.key(v[3], v[2]))
	}
	key := func(v Value) Value {
		l := &list{}
		for _, k := range keys {
			l.items = append(l.items, k(v))
		}
		return l
	}
	return r.newList(r.sorted(r.iterate(v[0]), key, optional(v[1], false, truth)))
}

func filterSum(r *run, v []Value) Value {
	get := r.getter(v[1], nil)
	sum := optional(v[2], Value(int64(0)), func(v Value) Value { return v })
	for _, x := range r.iterate(v[0]) {
		r.work(1)
		sum = r.binary("+", sum, get(x))
	}
	return sum
}

// filterTitle makes the first letter of each word upper case, with Jinja's idea of words.
func filterTitle(s string) string {
	var b strings.Builder
	start := true
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune("-({[<", c) || isSpace(c):
			b.WriteString(s[i : i+n])
			start = true
		case start:
			b.WriteString(upper(s[i : i+n]))
			start = false
		default:
			end := i + n
			for end < len(s) {
				c, n := utf8.DecodeRuneInString(s[end:])
				if strings.ContainsRune("-({[<", c) || isSpace(c) {
					break
				}
				end += n
			}
			b.WriteString(lower(s[i:end]))
			i = end
			continue
		}
		i += n
	}
	return b.String()
}

func filterTrim(r *run, v []Value) Value {
	s := r.soft(v[0])
	t, _ := textOf(s)
	return like(s, strip(r, t, v[1], true, true))
}

func filterTruncate(r *run, v []Value) Value {
	length := optional(v[1], 255, func(v Value) int64 { return r.int("length", v) })
	end := optional(v[3], "...", func(v Value) string { return r.text("end", v) })
	leeway := int64(5)
	if l := given(v[4]); l != nil {
		leeway = r.int("leeway", l)
	}
	s := r.text("truncate", v[0])
	c := []rune(s)
	r.alloc(4 * len(c))
	keep := length - int64(r.count(end))
	if keep < 0 || leeway < 0 {
		r.failf("truncate to %d characters, want at least those of %s", length, short(end))
	}
	if int64(len(c)) <= length+leeway {
		return v[0]
	}
	cut := string(c[:keep])
	if !optional(v[2], false, truth) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return like(v[0], cut+end)
}

func filterUnique(r *run, v []Value) Value {
	key, seen := r.key(v[2], v[1]), map[string]bool{}
	var out []Value
	for _, x := range r.iterate(v[0]) {
		k := r.keyOf(key(x), 0)
		r.alloc(len(k) + 64)
		if !seen[k] {
			seen[k] = true
			out = append(out, x)
		}
	}
	return &generator{out, "do_unique"}
}

func filterURLEncode(r *run, v []Value) Value {
	quote := func(s, safe string) string {
		r.alloc(3 * len(s))
		var b strings.Builder
		for i := range len(s) {
			c := s[i]
			if isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("_.-~"+safe, c) >= 0 {
				b.WriteByte(c)
			} else {
				b.WriteString("%" + strings.ToUpper(strconv.FormatUint(0x100|uint64(c), 16)[1:]))
			}
		}
		return b.String()
	}
	if isText(v[0]) || !iterable(v[0]) {
		return quote(r.str(v[0]), "/")
	}
	items := r.iterate(v[0])
	if d, ok := v[0].(*dict); ok {
		items = r.iterate(&view{d, "items"})
	}
	var parts []string
	for _, p := range items {
		kv := r.iterate(p)
		if len(kv) != 2 {
			r.failf("urlencode of %d values, want pairs", len(kv))
		}
		plus := func(v Value) string { return strings.ReplaceAll(quote(r.str(v), ""), "%20", "+") }
		parts = append(parts, plus(kv[0])+"="+plus(kv[1]))
	}
	return strings.Join(parts, "&")
}
