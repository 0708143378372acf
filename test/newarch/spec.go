package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/internal/text/pyjson"
	"ggforge/test/hftest"
)

// specMaker makes the made-up model of a family.
type specMaker struct {
	*checkpoint
	arch    *table.Arch // of the family
	list    []*known
	layers  int // of the small model
	experts int
	small   map[string]int // sizes that follow from others
	config  string         // small
	lets    []string
	letText map[string]string
	rows    []string
	done    stringSet // patterns
	strict  bool      // rows must have the dimensions that the table has
	notes   []string
}

// namesAs sets the names of the tensors to those that the most similar made-up model has with this config.json.
func (c *checkpoint) namesAs(list []*known) error {
	for _, k := range list {
		s := *k.spec
		s.Config = string(c.config)
		_, tensors, err := s.Example(hftest.Variant{})
		if err != nil {
			continue
		}
		var names []string
		for _, t := range tensors {
			names = append(names, t.Name)
		}
		c.setNames(names)
		return nil
	}
	return fmt.Errorf("no made-up model has tensors for this config.json: give TENSORS")
}

// spec returns the source of spec_<family>.go, and what is left to do there.
func (c *checkpoint) spec(family string, t *table.Arch, list []*known, opt options) (string, []string, error) {
	m := &specMaker{checkpoint: c, arch: t, list: list, letText: map[string]string{}, done: stringSet{}}
	m.sizes()
	if err := m.shrink(); err != nil {
		return "", nil, err
	}
	m.table()
	near := c.tokenizerOf.spec
	var b strings.Builder
	b.WriteString("package hftest\n\nfunc init() {\n\tadd(Spec{\n")
	fmt.Fprintf(&b, "Name: %q,\n", family)
	if reference, err := os.ReadFile(filepath.Join(opt.root, "arch/testdata/reference-classes.txt")); err == nil &&
		!slices.Contains(strings.Fields(string(reference)), c.class) {
		b.WriteString("NoReference: \"the reference does not know the class\",\n")
	}
	fmt.Fprintf(&b, "Tokenizer: %q,\n", near.Tokenizer)
	if near.Pre != "" {
		fmt.Fprintf(&b, "Pre: %q,\n", near.Pre)
	}
	fmt.Fprintf(&b, "Config: `%s`,\n", wrapJSON(m.config))
	b.WriteString("Tensors: `\n")
	for _, line := range align(m.lets, m.rows) {
		b.WriteString("\t\t\t" + line + "\n")
	}
	b.WriteString("\t\t\t`,\n})\n}\n")
	text, err := format.Source([]byte(b.String()))
	return string(text), m.notes, err
}

func (m *specMaker) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// maxLayers bounds the layers of a made-up model, maxExperts its experts.
const maxLayers, maxExperts = 12, 4

// sizes sets the number of layers, so that every kind of layer is there, and of experts.
func (m *specMaker) sizes() {
	kinds := map[string]bool{}
	m.layers = min(2, m.checkpoint.layers)
	for bid := range m.checkpoint.layers {
		var kind strings.Builder
		for i, w := range m.wants {
			if slices.Contains(w.layers, bid) {
				fmt.Fprint(&kind, i, " ")
			}
		}
		for key, v := range keysOf(m.root) {
			if l, ok := v.([]any); ok && len(l) == m.checkpoint.layers && strings.Contains(key, "type") {
				fmt.Fprint(&kind, l[bid])
			}
		}
		if !kinds[kind.String()] {
			if kinds[kind.String()] = true; bid < maxLayers {
				m.layers = max(m.layers, bid+1)
			} else {
				m.note("layer %d is of a kind that no earlier one has: change config.json so that the made-up model has it", bid)
			}
		}
	}
	for _, w := range m.wants {
		m.experts = max(m.experts, w.experts)
	}
}

// fixed are keys of numbers that stay: those that are no sizes of tensors, and small sizes.
var fixed = regexp.MustCompile(`position|window|theta|patch|kernel|factor|length|stride|version|seed|step|interval|` +
	`period|offset|nextn|mtp|chunk|n_ctx|seq_len|bits|conv_L|pretraining|dense_replace|topk_group$`)

// shrink makes the small config.json.
func (m *specMaker) shrink() error {
	v, err := pyjson.Parse(m.checkpoint.config)
	if err != nil {
		return err
	}
	root, ok := v.(*pyjson.Object)
	if !ok {
		return fmt.Errorf("config.json: want an object")
	}
	byValue := map[string]string{} // what sizes became
	var object func(o *pyjson.Object) string
	value := func(key string, v any) string {
		switch v := v.(type) {
		case *pyjson.Object:
			if strings.HasPrefix(key, "rope_") || key == "quantization_config" {
				return encode(v.Map())
			}
			return object(v)
		case []any:
			return m.shrinkList(v)
		case string:
			if len(v) == m.checkpoint.layers && regexp.MustCompile(`^[-A-Z*]+$`).MatchString(v) {
				return encode(v[:m.layers])
			}
			return encode(v)
		case json.Number:
			small := m.shrinkNumber(key, string(v), byValue)
			if small != string(v) {
				byValue[string(v)] = small
			}
			return small
		}
		return encode(v)
	}
	object = func(o *pyjson.Object) string {
		var members []string
		for _, key := range o.Names {
			members = append(members, encode(key)+": "+value(key, o.Values[key]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	m.relations(byValue)
	for range 2 { // sizes without a model of their own become what equal ones became
		m.config = object(root)
	}
	return nil
}

// relations sets the sizes that keep a relation: whole heads, and groups of query heads with one key head.
func (m *specMaker) relations(byValue map[string]string) {
	keys := keysOf(m.root)
	m.small = map[string]int{}
	get := func(key string) (n, small int) {
		v, ok := keys[key].(json.Number)
		if !ok {
			return 0, 0
		}
		n, _ = strconv.Atoi(string(v))
		small, _ = strconv.Atoi(m.shrinkNumber(key, string(v), byValue))
		return n, small
	}
	hidden, smallHidden := get("hidden_size")
	heads, smallHeads := get("num_attention_heads")
	if heads < 1 || smallHeads < 1 {
		return
	}
	if view, err := m.view(); err == nil && view.RopeRoot().Members()["long_factor"] != nil { // one factor for each pair
		for _, key := range []string{"head_dim", "qk_rope_head_dim"} {
			if n, _ := get(key); n > 0 {
				m.small[key] = n
			}
		}
		return
	}
	if head, _ := get("head_dim"); head > 0 && head*heads == hidden {
		m.small["head_dim"] = smallHidden / smallHeads
	}
	switch kv, small := get("num_key_value_heads"); {
	case kv == heads:
		m.small["num_key_value_heads"] = smallHeads
	case kv == 1:
		m.small["num_key_value_heads"] = 1
	case kv > 0 && small >= smallHeads:
		m.small["num_key_value_heads"] = max(1, smallHeads/2)
	}
}

func (m *specMaker) shrinkList(list []any) string {
	n := m.checkpoint.layers
	switch {
	case len(list) == n:
		list = list[:m.layers]
	case len(list) > 0 && len(list) < n && allBelow(list, n):
		var kept []any
		for _, v := range list {
			if i, err := strconv.Atoi(fmt.Sprint(v)); err == nil && i < m.layers {
				kept = append(kept, v)
			}
		}
		list = kept
	}
	if list == nil {
		list = []any{}
	}
	return encode(list)
}

// allBelow reports whether a list has rising integers below n: numbers of layers.
func allBelow(list []any, n int) bool {
	last := -1
	for _, v := range list {
		i, err := strconv.Atoi(fmt.Sprint(v))
		if err != nil || i <= last || i > n {
			return false
		}
		last = i
	}
	return len(list) > 2
}

// shrinkNumber returns the small number for a key.
func (m *specMaker) shrinkNumber(key, text string, byValue map[string]string) string {
	n, err := strconv.Atoi(text)
	if err != nil {
		return text
	}
	if small, ok := m.small[key]; ok {
		return strconv.Itoa(small)
	}
	switch {
	case slices.Contains(config.BlockCountKeys, key):
		return strconv.Itoa(m.layers)
	case strings.HasSuffix(key, "token_id") || key == "vocab_size":
		if s, ok := m.raw(key); ok {
			return s
		}
		return strconv.Itoa(n % 1000)
	case m.experts > 0 && n == m.experts && strings.Contains(key, "expert"):
		return strconv.Itoa(min(n, maxExperts))
	case strings.Contains(key, "per_tok") || strings.Contains(key, "topk") && n < m.experts ||
		strings.Contains(key, "top_k"):
		return strconv.Itoa(min(n, 2))
	case key == "n_group":
		return strconv.Itoa(min(n, 2))
	case fixed.MatchString(key) || n < 2:
		return text
	}
	for _, k := range m.list {
		v, ok := k.keys[key].(json.Number)
		if !ok {
			continue
		}
		if small, err := strconv.Atoi(string(v)); err == nil && small <= n {
			return string(v)
		}
	}
	if s, ok := byValue[text]; ok {
		return s
	}
	if n > 512 {
		m.note("%s stays %d: is it a size?", key, n)
	}
	return text
}

// raw returns the text of a key in the config.json of the most similar made-up model: a number or $NAME.
func (m *specMaker) raw(key string) (string, bool) {
	f := regexp.MustCompile(regexp.QuoteMeta(encode(key)) + `:\s*(\$?\w+)`).FindStringSubmatch(m.tokenizerOf.spec.Config)
	if f == nil {
		return "", false
	}
	return f[1], true
}

// encode returns the JSON of a value, on one line with blanks after commas and colons.
func encode(v any) string {
	switch v := v.(type) {
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, encode(x))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case *pyjson.Object:
		return encode(v.Map())
	case map[string]any:
		var list []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = append(list, encode(key)+": "+encode(v[key]))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSpace(b.String())
}

// wrapJSON breaks a JSON text into lines, for a literal in back quotes.
func wrapJSON(text string) string {
	var b strings.Builder
	line := 24
	for i, item := range strings.Split(text, ", ") {
		if i > 0 {
			if line+len(item)+2 > 112 {
				b.WriteString(",\n\t\t\t")
				line = 12
			} else {
				b.WriteString(", ")
				line += 2
			}
		}
		b.WriteString(item)
		line += len(item)
	}
	return strings.ReplaceAll(b.String(), "`", "` + \"`\" + `")
}

// expected returns the names of a pattern in the small model.
func (m *specMaker) expected(w *want) (names []string) {
	layers := []int{-1}
	if w.layers != nil {
		layers = slices.DeleteFunc(slices.Clone(w.layers), func(bid int) bool { return bid >= m.layers })
	}
	for _, bid := range layers {
		name := strings.ReplaceAll(w.pattern, "{bid}", strconv.Itoa(bid))
		if w.experts == 0 {
			names = append(names, name)
			continue
		}
		for x := range min(w.experts, maxExperts) {
			names = append(names, strings.ReplaceAll(name, "{xid}", strconv.Itoa(x)))
		}
	}
	return names
}

// example expands a table of tensors for the small model.
func (m *specMaker) example(lets []string, row string) ([]hftest.Tensor, error) {
	s := hftest.Spec{Name: "new", Config: m.config, Tokenizer: m.tokenizerOf.spec.Tokenizer,
		Tensors: strings.Join(append(slices.Clone(lets), row), "\n")}
	_, tensors, err := s.Example(hftest.Variant{})
	return tensors, err
}

// table chooses a row for every pattern, from those of other made-up models.
func (m *specMaker) table() {
	key := func(names []string, n int) string {
		keys := keysOf(m.root)
		for _, name := range append(slices.Clone(names), slices.Sorted(maps.Keys(keys))...) {
			if fmt.Sprint(keys[name]) == strconv.Itoa(n) {
				return name
			}
		}
		return strconv.Itoa(n)
	}
	m.let("bid", key(config.BlockCountKeys, m.checkpoint.layers))
	if m.experts > 0 {
		m.let("xid", key(config.ExpertKeys, m.experts))
	}
	for _, w := range m.wants {
		if m.done[w.pattern] || len(m.expected(w)) == 0 {
			continue
		}
		found := false
		for _, how := range []struct{ means, exact bool }{{true, true}, {false, true}, {false, false}} {
			m.strict = how.means
			for _, k := range m.list {
				if k.patterns[w.pattern] && m.from(k.spec, w, how.exact) {
					found = true
					break
				}
			}
			if found {
				break
			}
		}
		if !found {
			m.unknown(w)
		}
	}
}

func (m *specMaker) let(name, text string) {
	m.letText[name] = text
	m.lets = append(m.lets, name+" = "+text)
}

var identifiers = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`)

// from takes a row of a made-up model for a pattern; unless exact, with another condition.
func (m *specMaker) from(s *hftest.Spec, w *want, exact bool) bool {
	lets := map[string]string{}
	for line := range strings.Lines(s.Tensors) {
		line, _, _ = strings.Cut(line, "#")
		if name, text, ok := strings.Cut(line, "="); ok && !strings.Contains(line, "|") {
			lets[strings.TrimSpace(name)] = strings.TrimSpace(text)
		}
	}
	for line := range strings.Lines(s.Tensors) {
		line, _, _ = strings.Cut(line, "#")
		line = bare(strings.TrimSpace(line))
		if !strings.Contains(line, "|") || !nameMatches(line, w.pattern) {
			continue
		}
		variants := []string{line}
		cols := columns(line)
		if strings.Contains(cols[0], ",") { // {a,b}: the one alternative
			name := strings.TrimSpace(strings.NewReplacer("{bid}", "\x01", "{xid}", "\x02").Replace(w.pattern))
			name = strings.NewReplacer("\x01", "{bid}", "\x02", "{xid}").Replace(name)
			variants = append(variants, strings.Join(append([]string{name}, cols[1:]...), " | "))
		}
		for _, v := range variants {
			if m.take(v, lets, w) {
				return true
			}
			if exact {
				continue
			}
			cols := slices.DeleteFunc(columns(v), func(c string) bool { return strings.HasPrefix(c, "if ") })
			plain := strings.Join(cols, " | ")
			if m.take(plain, lets, w) {
				return true
			}
			for _, cond := range m.conditions(w) {
				if m.take(plain+" | if "+cond, lets, w) {
					return true
				}
			}
		}
	}
	return false
}

// nameMatches reports whether a row of a table has a name of the pattern.
func nameMatches(line, pattern string) bool {
	name := columns(line)[0]
	var expand func(s string) bool
	expand = func(s string) bool {
		at := strings.IndexByte(s, '{')
		for at >= 0 {
			inner, _, _ := strings.Cut(s[at+1:], "}")
			if strings.Contains(inner, ",") {
				for alt := range strings.SplitSeq(inner, ",") {
					if expand(s[:at] + alt + s[at+len(inner)+2:]) {
						return true
					}
				}
				return false
			}
			next := strings.IndexByte(s[at+1:], '{')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		comps := strings.Split(bare(s), ".")
		for i, c := range comps {
			if i > 0 && strings.HasPrefix(c, "{") && strings.Contains(comps[i-1], "expert") {
				comps[i] = "{xid}"
			}
		}
		p, _, _ := patternOf(strings.Join(comps, "."))
		return p == pattern
	}
	return expand(name)
}

// columns cuts a row at each | that is not part of ||.
func columns(line string) []string {
	list := strings.Split(strings.ReplaceAll(line, "||", "\x00"), "|")
	for i, s := range list {
		list[i] = strings.TrimSpace(strings.ReplaceAll(s, "\x00", "||"))
	}
	return list
}

// take adds a row if it makes the tensors of the small model that it should, and none that there is.
func (m *specMaker) take(row string, lets map[string]string, w *want) bool {
	var more []string // names that the row needs
	var need func(text string) bool
	seen := stringSet{}
	need = func(text string) bool {
		for _, name := range identifiers.FindAllString(text, -1) {
			expr, ok := lets[name]
			if !ok || seen[name] {
				continue
			}
			seen[name] = true
			if old, ok := m.letText[name]; ok {
				if old != expr && name != "bid" && name != "xid" {
					return false
				}
				continue
			}
			if !need(expr) {
				return false
			}
			more = append(more, name)
		}
		return true
	}
	if !need(row) {
		return false
	}
	all := slices.Clone(m.lets)
	for _, name := range more {
		all = append(all, name+" = "+lets[name])
	}
	tensors, err := m.example(all, row)
	if err != nil || len(tensors) == 0 {
		return false
	}
	made := map[string][]string{}
	for _, t := range tensors {
		p, _, _ := patternOf(bare(t.Name))
		made[p] = append(made[p], bare(t.Name))
	}
	if made[w.pattern] == nil {
		return false
	}
	for p, names := range made {
		other := m.want(p)
		if other == nil || m.done[p] {
			return false
		}
		want := m.expected(other)
		slices.Sort(want)
		slices.Sort(names)
		if !slices.Equal(want, names) {
			return false
		}
	}
	if !m.fits(all, row) || m.strict && !m.means(tensors) {
		return false
	}
	for _, name := range more {
		m.let(name, lets[name])
	}
	for p := range made {
		m.done[p] = true
	}
	m.rows = append(m.rows, row)
	return true
}

// means compares the dimensions of tensors of the small model with those that the table has for their names in the
// file, as far as the tensors are copied.
func (m *specMaker) means(tensors []hftest.Tensor) bool {
	cfg, err := config.Parse(withClass([]byte(m.facts()), m.class, m.unknownType), nil)
	if err != nil {
		return true
	}
	view := cfg.View(config.Options{})
	_, kvs, err := m.arch.KVs(view, 1)
	if err != nil || m.arch.Fits(kvs, nil) != nil {
		return true
	}
	var list []shape.Tensor
	for _, t := range tensors {
		p, bid, _ := patternOf(bare(t.Name))
		w := m.want(p)
		if w == nil || w.atom == nil || w.experts > 0 {
			continue
		}
		for i := range w.atom.rows {
			r := &w.atom.rows[i]
			must, may := rowPatterns(r)
			if !slices.Contains(append(must, may...), p) || r.Split != nil || r.PerSource != nil || len(r.Parts) > 0 ||
				r.Kind != nil || r.Drops() || r.Transform != nil && !permutes.has(r.Transform.Name) {
				continue
			}
			suffix := ""
			if !r.Exact {
				suffix = p[strings.LastIndexByte(p, '.'):]
			}
			ne := slices.Clone(t.Shape)
			slices.Reverse(ne)
			if name := r.Outputs(int64(bid), suffix)[0]; name != "token_embd.weight" && name != "output.weight" {
				list = append(list, shape.Tensor{Name: name, NE: ne})
			}
			break
		}
	}
	return m.arch.Fits(kvs, list) == nil
}

// permutes are transforms that keep dimensions.
var permutes = set(parts.PermuteQ.Name, parts.PermuteK.Name, parts.PlusOne.Name, parts.NegExp.Name)

// facts returns the small config.json with numbers in place of the tokenizer's facts.
func (m *specMaker) facts() string {
	return regexp.MustCompile(`\$\w+`).ReplaceAllString(m.config, "1000")
}

// fits compares the dimensions of a row with those of TENSORS, if it has them.
func (m *specMaker) fits(lets []string, row string) bool {
	if len(m.shapes) == 0 {
		return true
	}
	s := hftest.Spec{Name: "new", Config: string(m.checkpoint.config), Tokenizer: "none",
		Tensors: strings.Join(append(slices.Clone(lets), row), "\n")}
	_, tensors, err := s.Example(hftest.Variant{})
	if err != nil {
		return true // a condition of the small model
	}
	for _, t := range tensors {
		if shape, ok := m.shapes[bare(t.Name)]; ok && !slices.Equal(shape, t.Shape) {
			return false
		}
	}
	return true
}

// conditions returns conditions of the small model that hold for the layers of a pattern.
func (m *specMaker) conditions(w *want) (list []string) {
	if w.layers == nil {
		return nil
	}
	keys := keysOf(m.root)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch v := keys[key].(type) {
		case json.Number:
			if n, err := strconv.Atoi(string(v)); err != nil || n < 1 || n > m.checkpoint.layers {
				continue
			}
			for _, c := range []string{"bid >= %s", "bid < %s", "(bid+1)%%%s == 0", "(bid+1)%%%s != 0", "bid%%%s == 0",
				"bid%%%s != 0"} {
				list = append(list, fmt.Sprintf(c, key))
			}
		case []any:
			if len(v) == m.checkpoint.layers {
				kinds := stringSet{}
				for _, x := range v {
					if k := encode(x); !kinds[k] {
						kinds[k] = true
						list = append(list, fmt.Sprintf("%s[bid] == %s", key, k), fmt.Sprintf("%s[bid] != %s", key, k))
					}
				}
			} else if len(v) > 0 && allBelow(v, m.checkpoint.layers) {
				list = append(list, fmt.Sprintf("has(%s, bid)", key), fmt.Sprintf("!has(%s, bid)", key),
					fmt.Sprintf("has(%s, bid+1)", key), fmt.Sprintf("!has(%s, bid+1)", key))
			}
		}
	}
	var numbers []string
	for _, bid := range w.layers {
		if bid < m.layers {
			numbers = append(numbers, fmt.Sprintf("bid == %d", bid))
		}
	}
	return append(list, strings.Join(numbers, " || "))
}

// unknown adds a row for a pattern that no made-up model has, if TENSORS has its dimensions.
func (m *specMaker) unknown(w *want) {
	conds := []string{""}
	if w.layers != nil && !m.everyLayer(w) {
		conds = nil
		for _, c := range m.conditions(w) {
			conds = append(conds, " | if "+c)
		}
	}
	name := w.pattern
	first := strings.ReplaceAll(strings.ReplaceAll(name, "{xid}", "0"), "{bid}", fmt.Sprint(append(w.layers, 0)[0]))
	shape, ok := m.shapes[first]
	if !ok {
		if dims, ok := m.usualDims(w); ok {
			for _, c := range conds {
				if m.take(name+" | "+dims+c, nil, w) {
					m.note("%s has the dimensions %s that its name in the file means: check them", w.pattern, dims)
					return
				}
			}
		}
		m.note("no made-up model has %s: add its row", w.pattern)
		return
	}
	var dims []string
	for _, n := range shape {
		text, ok := m.dimension(n)
		if !ok {
			m.note("%s has a dimension of %d, which no product of two keys is: write it in its row", w.pattern, n)
		}
		dims = append(dims, text)
	}
	for _, c := range conds {
		if m.take(name+" | "+strings.Join(dims, ", ")+c, nil, w) {
			return
		}
	}
	m.note("add a row for %s", w.pattern)
}

// usualDims returns the dimensions of a tensor by its name in the file, in terms of config.json: those of arch/shape,
// if all are keys.
func (m *specMaker) usualDims(w *want) (string, bool) {
	if w.atom == nil || len(w.atom.rows) != 1 {
		return "", false
	}
	r := &w.atom.rows[0]
	suffix := w.pattern[strings.LastIndexByte(w.pattern, '.'):]
	if r.Exact {
		suffix = ""
	}
	rule, _, ok := shape.Rules{}.Rule(r.Outputs(0, suffix)[0])
	if !ok {
		return "", false
	}
	rule, _, _ = strings.Cut(rule, "|")
	names := strings.Split(rule, ",")
	if w.experts > 0 && len(names) == 3 {
		names = names[:2]
	}
	slices.Reverse(names)
	keys := keysOf(m.root)
	var dims []string
	for _, name := range names {
		key := ""
		for _, k := range sizeKeys[strings.TrimSpace(name)] {
			if key == "" && keys[k] != nil {
				key = k
			}
		}
		if key == "" {
			return "", false
		}
		dims = append(dims, key)
	}
	return strings.Join(dims, ", "), true
}

// sizeKeys are the keys of sizes in config.json.
var sizeKeys = map[string][]string{
	"n_embd": {"hidden_size", "n_embd", "d_model"}, "n_vocab": {"vocab_size"},
	"n_ff":     {"intermediate_size", "n_inner", "ffn_hidden_size", "moe_intermediate_size"},
	"n_ff_exp": {"moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size", "intermediate_size"},
	"n_expert": {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe_num_primary_experts"},
	"n_head":   {"num_attention_heads", "n_head"}, "n_embd_head_k": {"head_dim"},
	"n_lora_q": {"q_lora_rank"}, "n_lora_kv": {"kv_lora_rank"},
}

// dimension returns an expression for a size.
func (m *specMaker) dimension(n int64) (string, bool) {
	type size struct {
		name string
		n    int64
	}
	var sizes []size
	keys := keysOf(m.root)
	preferred := []string{"hidden_size", "intermediate_size", "moe_intermediate_size", "num_attention_heads",
		"num_key_value_heads", "head_dim"}
	for _, key := range append(preferred, slices.Sorted(maps.Keys(keys))...) {
		v, ok := keys[key].(json.Number)
		if i, err := v.Int64(); ok && err == nil && i > 0 && !fixed.MatchString(key) {
			sizes = append(sizes, size{key, i})
		}
	}
	for _, a := range sizes {
		if a.n == n {
			return a.name, true
		}
	}
	for _, a := range sizes {
		for _, b := range sizes {
			if a.n*b.n == n && a.n > 1 && b.n > 1 {
				return a.name + "*" + b.name, true
			}
		}
		for f := int64(2); f <= 6; f++ {
			if a.n*f == n {
				return fmt.Sprintf("%d*%s", f, a.name), true
			}
		}
	}
	return strconv.FormatInt(n, 10), n < 64
}

// align returns the lines of a table, the second columns below each other.
func align(lets, rows []string) []string {
	lines := slices.Clone(lets)
	width := 0
	for _, row := range rows {
		width = max(width, len(columns(row)[0]))
	}
	for _, row := range rows {
		cols := columns(row)
		lines = append(lines, fmt.Sprintf("%-*s | %s", width, cols[0], strings.Join(cols[1:], " | ")))
	}
	return lines
}
