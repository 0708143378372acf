package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/publish/card"
	"ggforge/quantize"
)

// inLayer matches the name of a tensor in a layer: the prefix before blk, the layer, the rest.
var inLayer = regexp.MustCompile(`^(.*?)blk\.(\d{1,6})\.(.+)$`)

// roles lists the purposes of tensors, each with a condition on the name, in layers on its part after the layer; the
// first match counts.
var roles = []struct {
	name string
	of   func(kind string, layer bool) bool
}{
	{"token embeddings", func(k string, layer bool) bool { return !layer && strings.Contains(k, "token_embd") }},
	{"output", func(k string, layer bool) bool { return !layer && strings.HasPrefix(k, "output.") }},
	{"experts", func(k string, layer bool) bool { return layer && strings.Contains(k, "_exps.") }},
	{"norms", func(k string, _ bool) bool { return strings.Contains(k, "norm") }},
	{"attention", func(k string, layer bool) bool {
		return layer && (strings.HasPrefix(k, "attn_") || strings.HasPrefix(k, "cross_attn_") ||
			strings.HasPrefix(k, "indexer"))
	}},
	{"feed-forward", func(k string, layer bool) bool {
		return layer && (strings.HasPrefix(k, "ffn_") || strings.HasPrefix(k, "channel_mix_"))
	}},
	{"recurrence", func(k string, layer bool) bool {
		return layer && (strings.HasPrefix(k, "ssm_") || strings.HasPrefix(k, "time_mix_") ||
			strings.HasPrefix(k, "shortconv."))
	}},
	{"other", func(string, bool) bool { return true }},
}

// maxRows is the largest number of tensors outside of layers, and of layers, that a page lists.
const maxRows = 2000

// pageOf returns the page that inspect --html writes about the model in a file.
func pageOf(_ context.Context, path string, results *card.Result) ([]byte, error) {
	set, err := open(path, false)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	r := inspectRequest{File: path}
	var b bytes.Buffer
	err = mmap.Guard(path, func() error {
		p, err := r.page(set, results)
		if err != nil {
			return err
		}
		return page.Write(&b, p)
	})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), set.Unchanged()
}

// page returns a page about the model, with its measurements unless results is nil.
func (r *inspectRequest) page(set *gguf.Set, results *card.Result) (*page.Page, error) {
	var bytes, elements int64
	tensors := 0
	byRole, byType, typed := make([]int64, len(roles)), map[gguf.Type]int64{}, map[gguf.Type]int{}
	type place struct {
		before string
		layer  int
	}
	cells := map[place]map[string]page.Cell{}
	var kinds []string // in the order of the file
	var outside [][]string
	for _, t := range set.Tensors() {
		tensors++
		bytes += t.Bytes()
		elements += t.Elements()
		byType[t.Type] += t.Bytes()
		typed[t.Type]++
		m := inLayer.FindStringSubmatch(t.Name)
		kind := t.Name
		if m != nil {
			kind = m[3]
		}
		for i, role := range roles {
			if role.of(kind, m != nil) {
				byRole[i] += t.Bytes()
				break
			}
		}
		bpw := gguf.BPW(func(yield func(*gguf.Tensor) bool) { yield(t) })
		if m == nil {
			outside = append(outside, []string{t.Name, t.Type.String(), gguf.Shape(t.NE), fmt.Sprintf("%.2f", bpw),
				tool.Bytes(t.Bytes())})
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		at := place{m[1], n}
		if cells[at] == nil {
			cells[at] = map[string]page.Cell{}
		}
		if len(t.NE) < 2 { // vectors share one cell of the layer
			kind = smallTensors
			c := cells[at][kind]
			count, _, _ := strings.Cut(c.Text, " ")
			n, _ := strconv.Atoi(count)
			cells[at][kind] = page.Cell{Text: strconv.Itoa(n + 1), Bits: bpw,
				Title: strings.TrimPrefix(c.Title+", "+m[3], ", ")}
		} else {
			kind = strings.TrimSuffix(kind, ".weight")
			title := fmt.Sprintf("%s: %v, %s, %.2f bits per weight, %s", t.Name, t.Type, gguf.Shape(t.NE), bpw,
				tool.Bytes(t.Bytes()))
			cells[at][kind] = page.Cell{Text: t.Type.String(), Bits: bpw, Title: title}
		}
		if !slices.Contains(kinds, kind) && len(kinds) < maxRows {
			kinds = append(kinds, kind)
		}
	}
	if i := slices.Index(kinds, smallTensors); i >= 0 {
		kinds = append(slices.Delete(kinds, i, i+1), smallTensors)
	}

	bpw := 0.0
	if elements > 0 {
		bpw = float64(bytes) * 8 / float64(elements)
	}
	m := set.Metadata()
	p := &page.Page{Title: title(m, r.File), About: []page.Fact{{Name: "size", Value: tool.Bytes(set.Size())},
		{Name: "bits per weight", Value: fmt.Sprintf("%.4f", bpw)}}}
	about := func(name, value string) { p.About = append(p.About, page.Fact{Name: name, Value: value}) }
	if recipe, ok := quantize.RecipeOf(m); ok {
		about("recipe", recipe.Name)
	}
	if results != nil {
		found, ok := results.Files[page.Names(set.Files[0].Path)[0]]
		if !ok {
			return nil, fault.Errorf(fault.Usage, "%s: has no figures of %s", r.Results, r.name())
		}
		if d := found.Divergence; d != nil {
			about("divergence", page.Divergence(d.Mean, d.Error))
		}
		if ppl := found.PPL; ppl != nil {
			about("perplexity", page.Perplexity(ppl.Mean, ppl.Error))
		}
		about("measured over", fmt.Sprintf("%s, %d tokens", results.Text, results.Predicted))
	}
	about("file", r.name())
	if n := len(set.Files); n > 1 {
		about("shards", strconv.Itoa(n))
	}
	about("architecture", m.Architecture())
	about("tensors", strconv.Itoa(tensors))
	about("weights", strconv.FormatInt(elements, 10))
	about("program", "ggtool "+tool.Version)

	share := func(n int64) string {
		return fmt.Sprintf("%s, %.1f %%", tool.Bytes(n), 100*float64(n)/float64(max(1, bytes)))
	}
	size := &page.Bars{Title: "Size by role"}
	for i, n := range byRole {
		if n > 0 {
			size.Bars = append(size.Bars, page.Bar{Name: roles[i].name, Text: share(n), Amount: float64(n)})
		}
	}
	types := &page.Bars{Title: "Size by type"}
	for t, n := range byType {
		types.Bars = append(types.Bars, page.Bar{Name: fmt.Sprintf("%v (%d tensors)", t, typed[t]), Text: share(n),
			Amount: float64(n)})
	}
	for _, b := range []*page.Bars{size, types} {
		slices.SortFunc(b.Bars, func(a, b page.Bar) int {
			return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Name, b.Name))
		})
	}
	p.Parts = append(p.Parts, size, types)

	needs, err := r.memoryPart(set)
	if err != nil {
		return nil, err
	}
	p.Parts = append(p.Parts, needs)

	if len(cells) > 0 {
		places := make([]place, 0, len(cells))
		for at := range cells {
			places = append(places, at)
		}
		slices.SortFunc(places, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.layer, b.layer))
		})
		grid := &page.Grid{Title: "Layers",
			Note: "Tensors of layers by their types; colours are bits per weight. The last column counts vectors.",
			Head: append([]string{"layer"}, kinds...)}
		if len(places) > maxRows {
			grid.Note += fmt.Sprintf(" These are the first %d of %d layers.", maxRows, len(places))
			places = places[:maxRows]
		}
		for _, at := range places {
			row := page.GridRow{Name: at.before + strconv.Itoa(at.layer)}
			for _, kind := range kinds {
				row.Cells = append(row.Cells, cells[at][kind])
			}
			grid.Rows = append(grid.Rows, row)
		}
		p.Parts = append(p.Parts, grid)
	}
	if len(outside) > 0 {
		list := &page.Table{Title: "Tensors outside of layers",
			Head: []string{"tensor", "type", "dimensions", "bits per weight", "size"}, Rows: outside}
		if len(outside) > maxRows {
			list.Note = fmt.Sprintf("These are the first %d of %d.", maxRows, len(outside))
			list.Rows = outside[:maxRows]
		}
		p.Parts = append(p.Parts, list)
	}
	p.Parts = append(p.Parts, tokenizerPart(m))
	list := &page.Table{Title: "Metadata", Note: "Long arrays and texts are cut short.",
		Head: []string{"key", "type", "value"}, Words: true}
	for _, kv := range m {
		list.Rows = append(list.Rows, []string{kv.Key, kv.Value.Type().String(), kv.Value.Short()})
	}
	p.Parts = append(p.Parts, list)
	return p, nil
}

// smallTensors is the heading of the column of tensors with one dimension.
const smallTensors = "vectors"

// name returns the name of the file without its folder.
func (r *inspectRequest) name() string { return filepath.Base(path.Base(r.File)) }

// title returns the model's name in the metadata, or that of its file.
func title(m gguf.Metadata, file string) string {
	v, _ := m.Get("general.name")
	if name, ok := v.Str(); ok && name != "" {
		return name
	}
	return filepath.Base(path.Base(file))
}

// memoryPart returns the estimate of memory, or the reason why there is none, as for anything but a text model.
func (r *inspectRequest) memoryPart(set *gguf.Set) (page.Part, error) {
	report, err := memory.Of(memory.From(set), r.Run, r.Contexts...)
	switch {
	case errors.Is(err, fault.Unsupported), errors.Is(err, fault.Broken):
		return &page.Table{Title: "Memory to run it", Note: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	head, rows := report.Table()
	return &page.Table{Title: "Memory to run it",
		Note: report.About() + ", by llama.cpp without accelerators. Compute buffers are estimates.", Head: head,
		Rows: rows}, nil
}

// tokenizerPart describes the vocabulary.
func tokenizerPart(m gguf.Metadata) *page.Table {
	t := &page.Table{Title: "Tokenizer", Head: []string{"", ""}, Words: true}
	add := func(what, value string) { t.Rows = append(t.Rows, []string{what, value}) }
	text := func(key string) string {
		v, _ := m.Get(key)
		s, _ := v.Str()
		return s
	}
	for _, row := range []struct{ what, key string }{{"model", "tokenizer.ggml.model"},
		{"pre-tokenizer", "tokenizer.ggml.pre"}} {
		if s := text(row.key); s != "" {
			add(row.what, s)
		}
	}
	var tokens []string
	if v, ok := m.Get("tokenizer.ggml.tokens"); ok && v.Type() == gguf.ArrayType {
		for e := range v.Elems() {
			s, _ := e.Str()
			tokens = append(tokens, s)
		}
		add("tokens", strconv.Itoa(len(tokens)))
	}
	if v, ok := m.Get("tokenizer.ggml.merges"); ok && v.Type() == gguf.ArrayType {
		add("merges", strconv.Itoa(v.Len()))
	}
	if v, ok := m.Get("tokenizer.ggml.token_type"); ok && v.Type() == gguf.ArrayType {
		counts := map[int64]int{}
		for e := range v.Elems() {
			n, _ := e.Int()
			counts[n]++
		}
		var list []string
		for n, name := range []string{1: "normal", 2: "unknown", 3: "control", 4: "user-defined",
			5: "unused", 6: "byte"} {
			if c := counts[int64(n)]; c > 0 && name != "" {
				list = append(list, fmt.Sprintf("%d %s", c, name))
			}
		}
		add("types", strings.Join(list, ", "))
	}
	for _, kv := range m {
		name, ok := strings.CutPrefix(kv.Key, "tokenizer.ggml.")
		if name, ok = cutSuffix(name, ok, "_token_id"); !ok {
			continue
		}
		if n, ok := kv.Value.Int(); ok && n >= 0 && n < int64(len(tokens)) {
			add(name, fmt.Sprintf("%d %q", n, tokens[n]))
		} else {
			add(name, kv.Value.Short())
		}
	}
	if s := text("tokenizer.chat_template"); s != "" {
		add("chat template", fmt.Sprintf("%d bytes", len(s)))
	}
	if len(t.Rows) == 0 {
		t.Note = "The file has none."
	}
	return t
}

// cutSuffix is strings.CutSuffix; it returns false if ok is false.
func cutSuffix(s string, ok bool, suffix string) (string, bool) {
	if !ok {
		return s, false
	}
	return strings.CutSuffix(s, suffix)
}
