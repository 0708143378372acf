package main

import (
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
)

// options are the inputs of generate.
type options struct {
	root    string // the folder of the module
	class   string
	config  []byte
	tensors []byte   // nil for none
	name    string   // general.architecture, "" for model_type
	without []string // names or classes of families that do not exist
	// vocabulary is the kind of the tokenizer: "spm", "bpe" or "" if it is unknown
	vocabulary string
}

// result is what generate made.
type result struct {
	family   string            // its name in names of files
	files    map[string]string // contents by path in the module
	nearest  *known
	table    *table.Arch // as far as the program itself can make it: without functions of the new file
	graph    *graph.Model
	rowsFrom map[string]string // families of tensor rows by pattern
	decided  []string
	open     []string // what it could not decide, or guessed
	features []string
	next     string
}

// say adds to what is to be decided or checked, tell to what is decided.
func (r *result) say(format string, args ...any) {
	r.open = append(r.open, fmt.Sprintf(format, args...))
}
func (r *result) tell(format string, args ...any) {
	r.decided = append(r.decided, fmt.Sprintf(format, args...))
}

// report returns the lines of all three lists, each with its title.
func (r *result) report() (lines []string) {
	for _, part := range []struct {
		title string
		lines []string
	}{{"Taken from other families:", r.decided}, {"To decide or to check:", r.open},
		{"Features of the model, and where their parts are:", r.features}} {
		if len(part.lines) == 0 {
			continue
		}
		lines = append(lines, "", part.title)
		for _, line := range part.lines {
			for _, f := range features { // where its parts are is there once
				if text := fmt.Sprintf(" (%s: %s)", f.is, f.where); strings.Contains(line, text) {
					line = strings.Replace(line, text, " ("+f.is+")", 1)
				}
			}
			lines = append(lines, line)
		}
	}
	return append(lines, "", r.next)
}

// generate makes the files of a new family.
func generate(opt options) (*result, error) {
	c, err := readCheckpoint(opt.class, opt.config, opt.tensors, len(opt.without) > 0)
	if err != nil {
		return nil, err
	}
	c.vocabulary = opt.vocabulary
	src, err := readSource(opt.root)
	if err != nil {
		return nil, err
	}
	list, err := c.nearest(opt.without)
	if err != nil {
		return nil, err
	}
	base := slices.IndexFunc(list, func(k *known) bool {
		return src.literalOf(k.table) != nil &&
			src.atoms(k.table) != nil
	})
	if base < 0 {
		return nil, fmt.Errorf("no family with a table to start from")
	}
	r := &result{files: map[string]string{}, nearest: list[base], rowsFrom: map[string]string{}}
	guessed := len(c.wants) == 0
	if guessed {
		if err := c.namesAs(list[base:]); err != nil {
			return nil, err
		}
	}
	f := &family{src: src, variable: variableOf(opt.class), names: map[*decl]string{}, text: map[*decl]string{}}
	for f.taken(f.variable) && !slices.Contains(opt.without, opt.class) {
		f.variable += "New"
	}
	r.family = strings.ToLower(f.variable)
	r.tell("nearest family: %s (made-up model %s, similarity %.2f); then %s", r.nearest.table.Name, r.nearest.spec.Name,
		r.nearest.score, strings.Join(names(list[base+1:], 4), ", "))
	if guessed {
		r.say("TENSORS is not given: the names are those that %s has for this config.json", r.nearest.spec.Name)
	}
	name := opt.name
	if name == "" {
		name = ggufName(c)
		r.say("general.architecture is %q after model_type: llama.cpp's name counts", name)
	}
	if err := r.make(f, c, list[base:], name, opt); err != nil {
		return nil, err
	}
	return r, nil
}

func names(list []*known, n int) (names []string) {
	for _, k := range list[:min(n, len(list))] {
		names = append(names, fmt.Sprintf("%s (%.2f)", k.table.Name, k.score))
	}
	return names
}

// variableOf returns the name of the table of a class: fooBar for FooBarForCausalLM.
func variableOf(class string) string {
	stem, _, _ := strings.Cut(class, "For")
	stem = regexp.MustCompile(`(LMHeadModel|Model)$`).ReplaceAllString(stem, "")
	stem = regexp.MustCompile(`\W`).ReplaceAllString(stem, "")
	if stem == "" {
		stem = "family"
	}
	n := 0
	for n < len(stem) && stem[n] >= 'A' && stem[n] <= 'Z' {
		n++
	}
	if n <= 1 || n == len(stem) {
		n = max(1, min(n, len(stem)))
	} else {
		n-- // the last capital begins the next word
	}
	return strings.ToLower(stem[:n]) + stem[n:]
}

// ggufName returns a name for general.architecture.
func ggufName(c *checkpoint) string {
	if s, ok := c.root["model_type"].(string); ok && s != "" {
		return strings.ToLower(s)
	}
	return strings.ToLower(variableOf(c.class))
}

// make fills in the files and the report.
func (r *result) make(f *family, c *checkpoint, list []*known, name string, opt options) error {
	src, near := f.src, list[0].table
	lit := src.literalOf(near)
	all := tables(list)
	t := &table.Arch{Name: name, Classes: []string{c.class}}

	rows, err := c.chooseRows(src, all, f.variable+"Experts")
	if err != nil {
		return err
	}
	tensors, errs := f.tensorsExpr(rows)
	for _, err := range errs {
		r.say("tensors: a row is left out: %v", err)
	}
	for _, ch := range rows {
		t.Tensors = append(t.Tensors, ch.rows...)
		for _, w := range ch.mapped {
			r.rowsFrom[w.pattern] = ch.from.Name
		}
		switch {
		case ch.guess != "":
			r.say("tensors: row %s is a guess: %s", ch.rows[0].HF, ch.guess)
		case ch.from != near:
			r.tell("tensors: %s as in %s", rowNames(ch.rows), ch.from.Name)
		}
	}
	r.usualNames(t, all)
	for _, w := range c.wants {
		if w.atom == nil {
			r.say("tensors: no row maps %s (%s)%s", w.pattern, c.where(w), hint(w.pattern, nil))
		}
	}

	// fields that are values or conditions of the similar table
	type field struct{ name, text string }
	var fields []field
	copyField := func(name string) bool {
		e := lit.field(name)
		if e == nil {
			return false
		}
		text, err := f.expr(expr{"arch", e})
		if err != nil {
			r.say("field %s of %s is left out: %v", name, near.Name, err)
			return false
		}
		fields = append(fields, field{name, text})
		return true
	}
	fields = append(fields, field{"Name", quote(name)}, field{"Classes", fmt.Sprintf("[]string{%q}", c.class)})
	if len(near.Body.Classes) > 0 && strings.HasSuffix(c.class, "ForCausalLM") {
		body := strings.TrimSuffix(c.class, "ForCausalLM") + "Model"
		fields = append(fields, field{"Body", fmt.Sprintf("table.Body{Classes: []string{%q}, Prefix: %q}", body,
			near.Body.Prefix)})
	}
	if text := r.shapes(f, lit, t, all[0]); text != "" {
		fields = append(fields, field{"Shapes", text})
	}
	if e := src.literalOf(c.tokenizer(src, list).table).field("Tokenizer"); e != nil {
		if text, err := f.expr(expr{"arch", e}); err == nil {
			fields = append(fields, field{"Tokenizer", text})
		}
	}
	src.current = lit
	copyField("Fused")
	copyField("VocabSize")
	if t.RopeSections = near.RopeSections && hasMRoPE(c); t.RopeSections {
		copyField("RopeSections")
	}
	if per := ropePerAttention(c); per {
		fields = append(fields, field{"RopePerAttention", "true"})
		t.RopePerAttention = true
	}
	if near.BlockCount != nil && len(c.mtp) > 0 {
		copyField("BlockCount")
		t.BlockCount = near.BlockCount
	}
	switch rope := ropeType(c); {
	case rope == "llama3":
		fields = append(fields, field{"Extra", "parts.Llama3Extra"})
		t.Extra = parts.Llama3Extra
	case near.Extra != nil && (rope == "longrope" || rope == "su"):
		copyField("Extra")
		t.Extra = near.Extra
	}
	if used := r.renames(c, near); used {
		copyField("Rename")
		t.Rename = near.Rename
	}
	drop := len(near.Drop) > 0 && (len(c.mtp) > 0 || c.want("lm_head.weight") != nil)
	if drop {
		copyField("Drop")
		t.Drop = near.Drop
	}
	if len(c.mtp) > 0 {
		if near.NextN != nil {
			copyField("NextN")
			t.NextN = near.NextN
		} else if !drop {
			text := "[]table.Drop{parts.BeyondNextN}"
			if !strings.Contains(c.mtp[0], "layers."+fmt.Sprint(c.layers)) {
				text = "parts.DropMTP"
			}
			fields = append(fields, field{"Drop", text})
		}
		r.say("tensors of MTP (NextN) layers: %d, such as %s%s", len(c.mtp), c.mtp[0], hint("nextn", nil))
	}
	for _, name := range []string{"HeaderFirst", "HeaderLast", "Variant", "MaskToken", "SuppressZeroRows",
		"PackedFirst"} {
		if lit.field(name) != nil {
			r.say("field %s of %s is not taken: does the new family need it?", name, near.Name)
		}
	}

	comp := &composer{checkpoint: c, fam: f, tables: all, table: t, near: list[0]}
	if err := comp.rowsOf(near); err != nil {
		return err
	}
	if err := comp.settings(near); err != nil {
		return err
	}
	m := &comp.meta
	t.Metadata, t.Expect, t.Unused = m.rows, m.expect, m.unused
	fields = append(fields, field{"Metadata", m.text()})
	if len(m.expect) > 0 {
		var texts []string
		for _, e := range m.expect {
			texts = append(texts, expectText(e))
		}
		fields = append(fields, field{"Expect", "[]table.Expect{" + fill(texts) + "}"})
	}
	if len(m.unused) > 0 {
		var texts []string
		for _, key := range m.unused {
			texts = append(texts, quote(key))
		}
		fields = append(fields, field{"Unused", "[]string{" + fill(texts) + "}"})
	}
	fields = append(fields, field{"Tensors", tensors})
	for _, note := range m.notes {
		r.say("metadata: %s", note)
	}
	for _, note := range m.taken {
		r.tell("metadata: %s", note)
	}
	keys := keysOf(c.root)
	for _, key := range m.unread {
		v := keys[key]
		if rope, ok := strings.CutPrefix(key, "rope_scaling."); ok {
			v = comp.ropeKeys()[rope]
		}
		r.say("config.json: no row reads %s = %s%s", key, short(v), hint(key, v))
	}

	model, notes, err := graphOf(c, t, list, nil)
	if err != nil {
		return err
	}
	t.Graph, r.graph, r.table = model, model, t
	for _, note := range notes {
		r.say("graph: %s", note)
	}
	fields = append(fields, field{"Graph", modelText(model)})

	r.say("tokenizer: that of %s; the files of the tokenizer decide", c.tokenizer(src, list).table.Name)
	if len(c.others) > 0 {
		r.say("tensors of a vision or audio encoder: %d, such as %s (arch/<family>_vision.go)", len(c.others), c.others[0])
	}
	r.features = c.features()

	var b strings.Builder
	fmt.Fprintf(&b, "var _ = register(%[1]s)\n\n// %[1]s is the family of %[2]s, made after %[3]s.\nvar %[1]s = "+
		"&table.Arch{\n",
		f.variable, c.class, near.Name)
	for _, fd := range fields {
		fmt.Fprintf(&b, "%s: %s,\n", fd.name, fd.text)
	}
	b.WriteString("}\n")
	if key := c.expertKey(); strings.Contains(tensors, f.variable+"Experts") {
		fmt.Fprintf(&b, "\n// %[1]sExperts returns the number of experts.\n"+
			"func %[1]sExperts(l table.Layer) (int64, error) { return l.Require(%[2]q) }\n", f.variable, key)
	}
	for _, d := range f.copied {
		b.WriteString("\n" + f.text[d] + "\n")
		r.say("%s is %s of %s with another name: move what both need to arch/parts", f.names[d], d.name,
			filepath.Base(d.file))
	}
	text, err := src.fileText("arch", b.String())
	if err != nil {
		return err
	}
	r.files["arch/"+r.family+".go"] = text
	spec, notes, err := c.spec(r.family, t, list, opt)
	if err != nil {
		return err
	}
	for _, note := range notes {
		r.say("made-up model: %s", note)
	}
	r.files["test/hftest/spec_"+r.family+".go"] = spec
	r.next = fmt.Sprintf("next: go test ./arch ./test/hftest; make golden SPEC=%[1]s, or without a reference "+
		"go test ./convert -run TestArchitectures/%[1]s -golden; go generate ./arch", r.family)
	return nil
}

// usualNames notes the tensors that most other families give another name in the file.
func (r *result) usualNames(t *table.Arch, all []*table.Arch) {
	for i := range t.Tensors {
		row := &t.Tensors[i]
		if row.Drops() || row.Split != nil || len(row.Parts) > 0 {
			continue
		}
		count, most := map[string]int{}, ""
		for _, a := range all {
			for j := range a.Tensors {
				if o := &a.Tensors[j]; o.HF == row.HF && !o.Drops() && o.Split == nil {
					if count[o.GGUF]++; count[o.GGUF] > count[most] {
						most = o.GGUF
					}
					break
				}
			}
		}
		if count[most] > 2*count[row.GGUF] {
			r.say("tensors: %s is %s; in %d other tables it is %s, in %d as here: llama.cpp's loader decides", row.HF,
				row.GGUF,
				count[most], most, count[row.GGUF])
		}
	}
}

// where describes the layers of a pattern.
func (c *checkpoint) where(w *want) string {
	switch {
	case w.layers == nil:
		return "outside of layers"
	case c.everyLayer(w):
		return "in every layer"
	}
	return fmt.Sprintf("in %d of %d layers, the first is %d", len(w.layers), c.layers, w.layers[0])
}

func rowNames(rows []table.TensorRow) string {
	names := []string{rows[0].HF}
	if len(rows) > 1 {
		names = append(names, "…", rows[len(rows)-1].HF)
	}
	return strings.Join(names, " ")
}

// short returns a value of config.json in a few characters.
func short(v any) string {
	s := fmt.Sprint(v)
	if len(s) > 60 {
		s = s[:57] + "…"
	}
	return s
}

func ropeType(c *checkpoint) string {
	view, err := c.view()
	if err != nil {
		return ""
	}
	s, _, _ := view.RopeScaling()
	return s
}

// ropePerAttention reports whether config.json has RoPE settings for each kind of attention.
func ropePerAttention(c *checkpoint) bool {
	view, err := c.view()
	if err != nil {
		return false
	}
	m := view.RopeRoot().Members()
	return m["full_attention"] != nil || m["sliding_attention"] != nil
}

// hasMRoPE reports whether config.json has sections of M-RoPE.
func hasMRoPE(c *checkpoint) bool {
	view, err := c.view()
	return err == nil && view.RopeRoot().Members()["mrope_section"] != nil
}

// renames reports whether a table's Rename changes a name.
func (r *result) renames(c *checkpoint, a *table.Arch) bool {
	for _, rn := range a.Rename {
		prefix, _, _ := strings.Cut(rn.Prefix, "{bid}")
		if slices.ContainsFunc(c.names, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
			return true
		}
	}
	return false
}

// shapes returns the source of Shapes, "" for none, and sets its value: relations between settings, and for a family
// without a graph the dimensions of its tensors.
func (r *result) shapes(f *family, lit *literal, t, near *table.Arch) string {
	t.Shapes = near.Shapes
	if near.Graph != nil {
		t.Shapes = shape.Rules{Relations: near.Shapes.Relations}
	}
	switch e := lit.field("Shapes"); {
	case len(t.Shapes.Relations) == 0 && len(t.Shapes.Tensors) == 0 && len(t.Shapes.Dims) == 0:
		return ""
	case near.Graph == nil && e != nil:
		if text, err := f.expr(expr{"arch", e}); err == nil {
			return text
		}
	}
	return fmt.Sprintf("shape.Rules{Relations: %#v}", t.Shapes.Relations)
}

// fileText returns a Go file with its imports, formatted.
func (s *source) fileText(pkg, body string) (string, error) {
	head := "package " + pkg + "\n\n"
	f, err := parser.ParseFile(token.NewFileSet(), "new.go", head+body, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, body)
	}
	paths := map[string]string{}
	for _, known := range s.files {
		for _, i := range known.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			paths[path[strings.LastIndex(path, "/")+1:]] = path
		}
	}
	used := stringSet{}
	for _, id := range f.Unresolved {
		if path := paths[id.Name]; path != "" {
			used[path] = true
		}
	}
	var std, own []string
	for _, path := range slices.Sorted(maps.Keys(used)) {
		if strings.HasPrefix(path, "ggforge/") {
			own = append(own, path)
		} else {
			std = append(std, path)
		}
	}
	text := head + "import (\n"
	for _, path := range std {
		text += fmt.Sprintf("%q\n", path)
	}
	if len(std) > 0 && len(own) > 0 {
		text += "\n"
	}
	for _, path := range own {
		text += fmt.Sprintf("%q\n", path)
	}
	text += ")\n\n" + body
	for {
		out, err := format.Source([]byte(text))
		if err != nil {
			return "", err
		}
		var broken bool
		if text, broken = breakLines(string(out)); !broken {
			return text, nil
		}
	}
}

// lineLength is the greatest length of lines, with tabs of 4 columns.
const lineLength = 118

// breakLines breaks lines that are too long, after a comma or in a comment. It reports false if it could break none.
func breakLines(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	some := false
	for i, line := range lines {
		tabs := len(line) - len(strings.TrimLeft(line, "\t"))
		length := lineLength - 3*tabs
		if len(line) <= length {
			continue
		}
		if strings.HasPrefix(line, "// ") {
			if at := strings.LastIndexByte(line[:length], ' '); at > 3 {
				lines[i], some = line[:at]+"\n// "+line[at+1:], true
			}
			continue
		}
		if at := lastComma(line, length); at > tabs && strings.Trim(line[:at], "\t{}()") != "" {
			lines[i], some = line[:at+1]+"\n"+strings.TrimLeft(line[at+1:], " "), true
		}
	}
	return strings.Join(lines, "\n"), some
}

// lastComma returns the place of the last comma before a column that is in no string, -1 for none.
func lastComma(line string, before int) int {
	last, quoted := -1, false
	for i := 0; i < min(before, len(line)-1); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted && line[i+1] == ' ':
			last = i
		}
	}
	return last
}
