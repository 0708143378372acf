package card

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
	"ggforge/gguf"
)

// put writes a model with some keys into a folder.
func put(t *testing.T, dir, name string, rows int64, kv ...gguf.KV) {
	t.Helper()
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyFileType, Value: gguf.Uint32(7)}}
	for _, x := range kv {
		m.Set(x.Key, x.Value)
	}
	tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{32, rows}, Type: gguf.TypeQ8_0}}
	b := append(gguf.AppendHeader(nil, m, tensors, 32), make([]byte, gguf.Layout(tensors, 32))...)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func str(key, s string) gguf.KV { return gguf.KV{Key: key, Value: gguf.String(s)} }

// front returns the front matter of a card.
func front(t *testing.T, card string) (m map[string]any) {
	t.Helper()
	rest, ok := strings.CutPrefix(card, "---\n")
	text, _, ok2 := strings.Cut(rest, "\n---\n")
	if err := yaml.Unmarshal([]byte(text), &m); err != nil || !ok || !ok2 {
		t.Fatalf("front matter: %v\n%s", err, card)
	}
	return m
}

const compared = `{"base": {"model": "x/base", "ppl": 9.5, "ppl_error": 0.1}, "text": "a/b/wiki.txt", "chunk": 512, "predicted": 1000, "models": [
	{"model": "out/large.gguf", "ppl": 9.6, "ppl_error": 0.2, "kl_divergence": {"mean": 0.0004, "error": 0.0001}},
	{"model": "C:\\out\\small-00001-of-00002.gguf", "ppl": 10, "ppl_error": 0.2, "kl_divergence": {"mean": 0.02, "error": 0.001}},
	{"model": "x/base as Q4_0", "recipe": "Q4_0", "ppl": 1, "kl_divergence": {"mean": 1}}]}`

// TestCard writes a card of a folder, changes it by hand, and writes it again.
func TestCard(t *testing.T) {
	dir := t.TempDir()
	common := []gguf.KV{
		str("general.name", "Tiny Go"), str("general.license", "Apache-2.0"),
		str("general.source.repo_url", "https://huggingface.co/acme/tiny-go"),
		{Key: "general.tags", Value: gguf.Strings([]string{"go", "text-generation"})},
		{Key: "general.languages", Value: gguf.Strings([]string{"en", "Klingonish"})},
		str("tokenizer.chat_template", "x"),
	}
	put(t, dir, "large.gguf", 200, common...)
	split := func(no int) []gguf.KV {
		return append(slices.Clone(common), gguf.KV{Key: gguf.KeySplitNo, Value: gguf.Uint16(uint16(no))},
			gguf.KV{Key: gguf.KeySplitCount, Value: gguf.Uint16(1)})
	}
	put(t, dir, "small-00001-of-00001.gguf", 50,
		append(split(0), gguf.KV{Key: "quantize.imatrix.entries_count", Value: gguf.Uint32(7)},
			str("quantize.imatrix.file", "/tmp/im.gguf"),
			str("quantize.imatrix.dataset", "/home/x/text.txt"))...)
	put(t, dir, "encoders/mmproj-x.gguf", 10, str(gguf.KeyArchitecture, "clip"),
		gguf.KV{Key: "clip.has_vision_encoder", Value: gguf.Bool(true)})
	if err := os.WriteFile(filepath.Join(dir, "compare.json"),
		[]byte(strings.ReplaceAll(compared, "of-00002", "of-00001")), 0o666); err != nil {
		t.Fatal(err)
	}
	write := func(want bool, force bool, opt Options) string {
		t.Helper()
		c, err := Of(context.Background(), dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		if differs, err := c.Write(context.Background(), force); err != nil || differs != want {
			t.Fatalf("written: %v %v, want %v", differs, err, want)
		}
		data, err := os.ReadFile(c.Path())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	card := write(true, false, Options{QuantizedBy: "me", Program: "ggforge 1"})
	m := front(t, card)
	for key, want := range map[string]string{
		"base_model": "acme/tiny-go", "base_model_relation": "quantized", "library_name": "gguf",
		"license": "apache-2.0", "pipeline_tag": "text-generation", "quantized_by": "me",
	} {
		if m[key] != want {
			t.Errorf("%s: %v, want %s", key, m[key], want)
		}
	}
	if tags := m["tags"].([]any); !slices.Equal(tags, []any{"go", "gguf", "quantized", "imatrix", "conversational"}) ||
		len(m["language"].([]any)) != 1 {
		t.Errorf("tags %v, languages %v", tags, m["language"])
	}
	for _, want := range []string{
		"# Tiny Go GGUF", "[large.gguf](./large.gguf) | `Q8_0` |", "0.0004\u00a0±\u00a00.0001",
		"over 1000 predicted tokens; it takes 5000", "`wiki.txt`, 1000 predicted tokens", "perplexity is 9.50",
		"[encoders/mmproj-x.gguf](./encoders/mmproj-x.gguf) | sees or hears", "made with `text.txt`, 7 tensors |",
		"| Program | ggforge 1 |", "llama-server -m large.gguf --mmproj encoders/mmproj-x.gguf",
	} {
		if !strings.Contains(card, want) {
			t.Errorf("%q is not in\n%s", want, card)
		}
	}
	if strings.Contains(card, "/home/x") || strings.Contains(card, dir) {
		t.Errorf("a local path:\n%s", card)
	}
	write(false, false, Options{QuantizedBy: "me", Program: "ggforge 1"})

	// changes by hand: keys, text around and between sections, and a removed section
	byHand := strings.Replace(card, frontEnd, frontEnd+"\nlicense: mit # mine\nextra: [1, 2]", 1)
	byHand = strings.Replace(byHand, beginMark("files"), "## My notes\n\nI like *it*.\r\n"+beginMark("files"), 1)
	from, to := strings.Index(byHand, beginMark("made")), strings.Index(byHand, endMark("made"))
	byHand = byHand[:from] + "gone" + byHand[to+len(endMark("made")):]
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(byHand), 0o666); err != nil {
		t.Fatal(err)
	}
	again := write(true, false, Options{QuantizedBy: "you"})
	m = front(t, again)
	if m["license"] != "mit" || m["quantized_by"] != "you" || len(m["extra"].([]any)) != 2 ||
		strings.Count(again, "\nlicense:") != 1 {
		t.Errorf("front matter:\n%s", again)
	}
	if !strings.Contains(again, "I like *it*.\r\n") || !strings.Contains(again, "\ngone\n") ||
		strings.Contains(again, "How they were made") {
		t.Errorf("what is by hand:\n%s", again)
	}
	write(false, false, Options{QuantizedBy: "you"})

	// a card without marks
	foreign := "# Something\n"
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(foreign), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := Of(context.Background(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(context.Background(), false); !errors.Is(err, fault.Usage) || fault.Option(err) != "Force" {
		t.Errorf("foreign: %v", err)
	}
	if err := Writable(dir, Options{}, false); fault.Option(err) != "Force" {
		t.Errorf("foreign: %v", err)
	}
	write(true, true, Options{})
	for _, opt := range []Options{{BaseModel: "x"}, {Template: "{{"}} {
		if err := Writable(dir, opt, false); !errors.Is(err, fault.Usage) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	if err := Writable(dir, Options{BaseModel: "a/b"}, false); err != nil {
		t.Error(err)
	}

	// templates
	for tmpl, want := range map[string]string{
		"{{.Title}}: {{range .Files}}{{.Path}} {{end}}": beginMark("card") +
			"\nTiny Go: large.gguf small-00001-of-00001.gguf \n" + endMark("card") + "\n",
		"a\n{{mark \"x\"}}\n{{len .Files}}\n{{unmark \"x\"}}\nb": "---\na\n" + beginMark("x") + "\n2\n" +
			endMark("x") + "\nb",
	} {
		c, err := Of(context.Background(), dir, Options{Template: tmpl})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := c.Text(); err != nil || !strings.HasSuffix(text, want) {
			t.Errorf("%s: %v\n%s", tmpl, err, text)
		}
	}
	for _, tmpl := range []string{"{{", "{{.No}}", "{{mark \"x\"}}\n"} {
		c, err := Of(context.Background(), dir, Options{Template: tmpl})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := c.Text(); err == nil {
			t.Errorf("%s: %s", tmpl, text)
		}
	}
	put(t, dir, "other.gguf", 3, str("general.name", "Other"))
	if _, err := Of(context.Background(), dir, Options{}); !errors.Is(err, fault.Refused) {
		t.Errorf("two models: %v", err)
	}
	if _, err := Of(context.Background(), t.TempDir(), Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("no model: %v", err)
	}
}

// TestHostile puts markup of every kind into every key that a card shows.
func TestHostile(t *testing.T) {
	bad := []string{
		"<script>alert(1)</script>", "a\n---\nlicense: mit\n", "x\n\n<!-- /ggtool card: about -->\n# h",
		"[x](javascript:alert(1))", "![i](https://evil.example/i.png)",
		"https://evil.example/", "a|b|c", "`code` | **b** _i_", "\u202eright\x1b[31m", "${{x}} @you www.evil.example",
		"# heading", "1. list", "\xff\xfe", "{{.Title}}", "'\": [", "- a: b",
	}
	keys := []string{
		"general.name", "general.description", "general.license", "general.license.name", "general.license.link",
		"general.author", "general.source.repo_url", "general.quantized_by",
		"general.size_label", "general.architecture", "quantize.imatrix.file", "quantize.imatrix.dataset",
		"quantize.types.method", "quantize.calibration.text_sha256", "general.base_model.0.repo_url",
	}
	var expect map[string]any
	for _, s := range append([]string{"plain"}, bad...) {
		dir := t.TempDir()
		var kv []gguf.KV
		for _, key := range keys {
			kv = append(kv, str(key, s))
		}
		put(t, dir, "a & (b) #1.gguf", 4, append(kv, gguf.KV{Key: "general.tags", Value: gguf.Strings([]string{s, s})},
			gguf.KV{Key: "general.languages", Value: gguf.Strings([]string{s})})...)
		c, err := Of(context.Background(), dir, Options{Repository: "a/b", Revision: s, Effort: s,
			Inputs: []Input{{What: s, Name: s, SHA256: s}}, Results: []Result{{Text: s, Predicted: 9000,
				Files: map[string]Measured{"a & (b) #1.gguf": {Divergence: &Figure{0.01, 0.001}}}}}})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		card, err := c.Text()
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		m := front(t, card)
		if expect == nil {
			expect = m
		}
		for key := range m {
			if _, ok := expect[key]; !ok && key != "license_name" && key != "license_link" {
				t.Errorf("%q: key %q in the front matter", s, key)
			}
		}
		_, body, _ := strings.Cut(card, "\n---\n")
		marked := body // without escaped characters
		for _, e := range []string{`\\`, `\[`, `\]`, `\|`, `\*`} {
			marked = strings.ReplaceAll(marked, e, "")
		}
		for _, no := range []string{"<script", "](javascript", "](https://evil.example/i.png", "\x1b", "\u202e",
			"\n# h", " @you", " www.evil", "**b**", "\n1. list", "<no value>"} {
			if strings.Contains(marked, no) {
				t.Errorf("%q: %q is in\n%s", s, no, body)
			}
		}
		if got, want := strings.Count(body, "\n"), 82; got > want {
			t.Errorf("%q: %d lines, want at most %d", s, got, want)
		}
		if !strings.Contains(body, "](./a%20&%20%28b%29%20%231.gguf)") {
			t.Errorf("no address of the file:\n%s", body)
		}
		for row := range strings.SplitSeq(marked, "\n") {
			if strings.HasPrefix(row, "| [a") && strings.Count(row, "|") != 7 {
				t.Errorf("%q: row %q", s, row)
			}
		}
	}
}

// TestMarks reads documents whose marks do not fit each other.
func TestMarks(t *testing.T) {
	for _, text := range []string{
		beginMark("a"), endMark("a"), beginMark("a") + "\n" + beginMark("b"), beginMark("a") + "\n" + endMark("b"),
		beginMark("a") + "\n" + endMark("a") + "\n" + beginMark("a") + "\n" + endMark("a"),
		"---\n# ggtool card\n---\n", "---\n# /ggtool card\n---\n",
		"---\n# ggtool card\n# ggtool card\n# /ggtool card\n---\n",
		"---\n# ggtool card\n# /ggtool card\n# /ggtool card\n---\n",
	} {
		if d, err := parseDocument("x", text); !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), "x, line ") {
			t.Errorf("%q: %v %+v", text, err, d)
		}
	}
}

// FuzzUpdate writes a card over any text: text by hand stays, generated parts are there, and a second update changes
// nothing.
func FuzzUpdate(f *testing.F) {
	next := "---\n# ggtool card\nlicense: mit\ntags:\n  - a\n# /ggtool card\n---\n# T\n" + beginMark("x") + "\nnew\n" +
		endMark("x") + "\nend\n"
	f.Add(next)
	f.Add("---\n# ggtool card\n# /ggtool card\nlicense: x\n---\nby hand\n" + beginMark("x") + "\nold\n" +
		endMark("x") + "\r\nmore")
	f.Add("# not ours\n")
	f.Add("---\na: &a [*a]\n# ggtool card\n# /ggtool card\n---\n")
	f.Add(beginMark("y") + "\n" + endMark("y"))
	f.Add("---\n# ggtool card\n# /ggtool card\n" + beginMark("x") + "\n---\na mark in the header is no section\n")
	f.Fuzz(func(t *testing.T, old string) {
		card, err := merge("x", old, next)
		if err != nil {
			return
		}
		again, err := merge("x", card, next)
		if err != nil || again != card {
			t.Fatalf("%q: becomes %q, then %q %v", old, card, again, err)
		}
		d, err := parseDocument("x", old)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.body {
			if p.section == "x" && !strings.Contains(card, "\nnew\n") {
				t.Errorf("%q: %q", old, card)
			}
			if p.section == "" && !strings.Contains(card, strings.Join(p.lines, "\n")) {
				t.Errorf("%q: lost %q: %q", old, p.lines, card)
			}
		}
	})
}

// FuzzResult reads any JSON as a measurement.
func FuzzResult(f *testing.F) {
	f.Add([]byte(compared))
	f.Add([]byte(`{"model": "a.gguf", "ppl": 3, "text": "t", "chunk": 9}`))
	f.Add([]byte(`{"models": [{}], "base": null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := ParseResult(data)
		if ok != (len(r.Files) > 0) {
			t.Fatalf("%v: %+v", ok, r)
		}
		for name := range r.Files {
			if strings.ContainsAny(name, `/\`) {
				t.Errorf("%q has folders", name)
			}
		}
	})
}

// FuzzMarkdown checks that the results of markdown, code and address have no markup, whatever the text.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<b>", "[a](b)", "`", "a|b", "# x", "1) x", "\\", "https://x.example", "a\x00b\n\nc",
		"-", "=", "\\_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{markdown(s), code(s)} {
			if strings.ContainsAny(out, "<>\n\r\x1b") || out[:min(1, len(out))] != "`" && strings.Contains(out, "://") {
				t.Errorf("%q: %q", s, out)
			}
			for i, c := range out {
				if strings.ContainsRune("*_[]|~$", c) && (out[0] != '`' || c == '|' || c == '*') &&
					(i == 0 || out[i-1] != '\\') {
					t.Errorf("%q: %q has %q", s, out, c)
				}
			}
		}
		if to := address(s); to != "" && strings.ContainsAny(to, "()<> \"\\|`\n") {
			t.Errorf("%q: address %q", s, to)
		}
	})
}
