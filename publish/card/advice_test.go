package card

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/publish/naming"
)

// TestFigures checks that figures end at the first digit of their errors.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		f    Figure
		want string
	}{
		{Figure{0.0123456, 0.00042}, "0.0123 ± 0.0004"}, {Figure{0.3, 0.02}, "0.30 ± 0.02"},
		{Figure{0.00024, 0.000001}, "0.00024"}, {Figure{0.00003, 0.00001}, "below 0.0001"},
		{Figure{-1e-11, 1e-12}, "below 0.0001"}, {Figure{0.0004, 0.0003}, "below 0.001"}, {Figure{3.2, 0.9}, "3.2 ± 0.9"},
		{Figure{31.25, 2}, "31 ± 2"},
	} {
		if got := DivergenceText(c.f); got != c.want {
			t.Errorf("%v: %q, want %q", c.f, got, c.want)
		}
	}
	for _, c := range []struct {
		m    Measured
		want string
	}{
		{Measured{PPL: &Figure{9.51234, 0.2}}, "9.5 ± 0.2"},
		{Measured{PPL: &Figure{9.51234, 0.2}, Ratio: &Figure{1.0123, 0.0031}}, "9.51 (+1.2 ± 0.3 %)"},
		{Measured{PPL: &Figure{9.51234, 0.2}, Ratio: &Figure{0.9999999, 1e-9}}, "9.512 (no change)"},
		{Measured{PPL: &Figure{9.51234, 0.2}, Ratio: &Figure{0.98, 1e-9}}, "9.512 (-2.000 %)"},
	} {
		if got := perplexity(c.m); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}

// chunks returns divergences of n chunks around a mean, in a pattern.
func chunks(n int, mean, swing, own float64) (list []float64) {
	for i := range n {
		list = append(list, mean+swing*float64(i%5-2)+own*float64(i%2*2-1))
	}
	return list
}

// TestAdvice compares files by paired divergences: neither a difference within its error nor few tokens are advice.
func TestAdvice(t *testing.T) {
	measured := func(mean, own float64) Measured {
		return Measured{Divergence: &Figure{mean, 0.001}, Chunks: chunks(40, mean, 0.004, own)}
	}
	for _, c := range []struct {
		name      string
		predicted int
		files     []Measured // the largest first
		bits      []float64
		pick      int // -1: none
		advice    []string
	}{
		{"steps", 9000, []Measured{measured(0.002, 0), measured(0.02, 0), measured(0.2, 0)}, []float64{8, 5, 3}, 1,
			[]string{"very small loss", "start here: small loss", "large loss"}},
		{"few tokens", 4000, []Measured{measured(0.002, 0)}, []float64{8}, -1, []string{""}},
		{"few bits", 9000, []Measured{measured(0.001, 0), measured(0.0205, 0)}, []float64{5, 4.4}, 0,
			[]string{"start here: very small loss", "small loss"}},
		{"none is near", 9000, []Measured{measured(0.2, 0), measured(0.4, 0)}, []float64{8, 5}, 0,
			[]string{"start here: large loss", worst}},
		// better by more than the error of the difference, which is much less than that of each mean
		{"better", 9000, []Measured{measured(0.0205, 0.0001), measured(0.02, 0)}, []float64{6, 5}, 1,
			[]string{"no reason to take it: `B` is smaller and nearer", "start here: small loss"}},
		// as near: the upper end of the difference is within a tenth
		{"as near", 9000, []Measured{measured(0.02, 0.001), measured(0.0201, 0)}, []float64{6, 5}, 1,
			[]string{"small loss; `B` is smaller and as near", "start here: small loss"}},
		// the difference is not shown: own swings
		{"not shown", 9000, []Measured{measured(0.02, 0.02), measured(0.0201, 0)}, []float64{6, 5}, 1,
			[]string{"small loss", "start here: small loss"}},
	} {
		card := &Card{HasDivergence: true, predicted: c.predicted}
		for i, m := range c.files {
			card.Files = append(card.Files, File{Path: "x", Bytes: int64(100 - i), Bits: c.bits[i], KLD: m.Divergence,
				Type: code(string(rune('A' + i))), measured: m})
		}
		card.advise()
		pick := -1
		for i := range card.Files {
			if card.Pick == &card.Files[i] {
				pick = i
			}
			if card.Files[i].Advice != c.advice[i] {
				t.Errorf("%s, file %d: %q, want %q", c.name, i, card.Files[i].Advice, c.advice[i])
			}
		}
		if pick != c.pick || (pick < 0) != (card.Unjudged != "") {
			t.Errorf("%s: picks %d, want %d; %s", c.name, pick, c.pick, card.Unjudged)
		}
	}
	if _, ok := difference(Measured{Chunks: make([]float64, 9)}, Measured{Chunks: make([]float64, 10)}); ok {
		t.Error("a difference of other chunks")
	}
}

// TestCommands checks that each command leads to the file that it is for.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"M-BF16.gguf", "M-F16.gguf", "M-Q4_K_M.gguf", "it's.gguf"} {
		put(t, dir, name, int64(400-100*i), str(gguf.KeyName, "M"))
	}
	card := func(opt Options) *Card {
		t.Helper()
		c, err := Of(context.Background(), dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	text := func(c *Card) string {
		t.Helper()
		text, err := c.Text()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	c := card(Options{Repository: "o/M-GGUF"})
	for _, want := range []string{"\nllama-server -hf o/M-GGUF:Q4_K_M\n", "\nollama run hf.co/o/M-GGUF:Q4_K_M\n",
		"\nlms get https://huggingface.co/o/M-GGUF@Q4_K_M\n", "\nhf download o/M-GGUF --local-dir M-GGUF\n",
		"\nhf download o/M-GGUF --include \"*Q4_K_M*\" --local-dir M-GGUF\n"} {
		if !strings.Contains(text(c), want) {
			t.Errorf("no %q in\n%s", want, text(c))
		}
	}
	paths := []string{"M-BF16.gguf", "M-F16.gguf", "M-Q4_K_M.gguf", "it's.gguf"}
	for i := range c.Files {
		f := &c.Files[i]
		if tag := f.LlamaCPPTag; tag != "" && naming.LlamaCPPFile(paths, tag) != f.Path {
			t.Errorf("%s: %s leads to %s", f.Path, tag, naming.LlamaCPPFile(paths, tag))
		}
	}
	c.First = &c.Files[1]
	if want := "\nllama-server -hf o/M-GGUF -hff M-F16.gguf\n"; !strings.Contains(text(c), want) {
		t.Errorf("F16 next to BF16: no %q in\n%s", want, text(c))
	}
	if got, want := text(card(Options{})), "\nllama-server -m M-Q4_K_M.gguf\n"; !strings.Contains(got, want) ||
		strings.Contains(got, "hf download") {
		t.Errorf("without a repository: no %q in\n%s", want, got)
	}
	got := text(card(Options{Only: []string{"it's.gguf", "SHA256SUMS", "model.sig"}, SignatureKey: strings.Repeat("0a", 32)}))
	for _, want := range []string{"\nllama-server -m 'it'\\''s.gguf'\n", "```sh\nsha256sum -c SHA256SUMS\nggtool verify --public-key KEY.pem .",
		"whose SHA-256 is `0a0a0a"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := fence("sh", "a ```` b"); got != "`````sh\na ```` b\n`````" {
		t.Errorf("fence: %s", got)
	}
}

// TestMarksInLines writes a card again in which an editor has filled the lines, so that marks are next to other text.
func TestMarksInLines(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.gguf", 4, str(gguf.KeyName, "A"))
	c, err := Of(context.Background(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	card, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.Replace(card, "\n"+beginMark("files")+"\n", "\nmine "+beginMark("files")+" ", 1)
	filled = strings.Replace(filled, "\n"+endMark("files")+"\n", " "+endMark("files")+" and mine; `"+beginMark("about")+"`\n", 1)
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(filled), 0o666); err != nil {
		t.Fatal(err)
	}
	again, _, err := c.Update(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nmine\n" + beginMark("files") + "\n## Files\n",
		"\n" + endMark("files") + "\nand mine; `" + beginMark("about") + "`\n"} {
		if !strings.Contains(again, want) {
			t.Errorf("no %q in\n%s", want, again)
		}
	}
}

// TestCachedModel finds names and commits in the cache of the hub's clients.
func TestCachedModel(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	for path, want := range map[string]string{
		"/x/hub/models--acme--Tiny-Go/snapshots/" + commit:                   "acme/Tiny-Go",
		"/x/hub/models--acme--Tiny-Go/snapshots/" + commit + "/sub/a.gguf":   "acme/Tiny-Go",
		"/x/hub/datasets--acme--Tiny-Go/snapshots/" + commit:                 "",
		"/x/hub/models--acme--Tiny-Go/snapshots/main":                        "",
		"/x/hub/models--acme--Tiny-Go/refs":                                  "",
		"/x/hub/models--ac me--Tiny-Go/snapshots/" + commit + "/config.json": "",
	} {
		if name, got := CachedModel(path); name != want || (got == commit) != (want != "") {
			t.Errorf("%s: %q %q, want %q", path, name, got, want)
		}
	}
}

// TestPrompt shows what a chat template makes of a conversation; nothing in it gets out of its block.
func TestPrompt(t *testing.T) {
	turns := "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
	for template, want := range map[string]string{
		turns:                     "```\n<|system|>{system_prompt}<|user|>{prompt}<|assistant|>\n```",
		turns + "\u202e````\t|":   "`````\n<|system|>{system_prompt}<|user|>{prompt}<|assistant|>\\u202e````    |\n`````",
		"{{ messages":             "",
		turns + endMark("prompt"): "",
	} {
		dir := t.TempDir()
		put(t, dir, "a.gguf", 4, str("tokenizer.chat_template", template))
		c, err := Of(context.Background(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Prompt != want {
			t.Errorf("%q: %q, want %q", template, c.Prompt, want)
		}
		text, err := c.Text()
		if err != nil || strings.Contains(text, "## Prompt format") != (want != "") {
			t.Errorf("%q: %v\n%s", template, err, text)
		}
	}
}
