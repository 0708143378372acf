package modelfile_test

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/publish/modelfile"
)

// instruction is one of a parsed Modelfile.
type instruction struct{ Name, Value string }

// parse reads a Modelfile by the rules of Ollama's parser that Quote lists, one rune after the other, and refuses what
// Ollama refuses.
func parse(text string) (list []instruction, err error) {
	const commands = " from license template system adapter draft renderer parser parameter message requires "
	value := func(s string) (string, bool) {
		s = strings.TrimSpace(s)
		for _, quote := range []string{`"""`, `"`} {
			if strings.HasPrefix(s, quote) {
				if len(s) < 2*len(quote) || !strings.HasSuffix(s, quote) {
					return "", false
				}
				return s[len(quote) : len(s)-len(quote)], true
			}
		}
		return s, true
	}
	in := bufio.NewReader(strings.NewReader(text))
	word := func() (string, error) {
		var b strings.Builder
		for {
			r, _, err := in.ReadRune()
			switch {
			case err != nil:
				return "", errors.New("the text ends in an instruction")
			case r == ' ' || r == '\t':
				return b.String(), nil
			case (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_':
				return "", fmt.Errorf("%q in a word", r)
			}
			b.WriteRune(r)
		}
	}
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			break
		}
		if strings.ContainsRune(" \t\r\n", r) {
			continue
		}
		if r == '#' {
			for err == nil && r != '\n' && r != '\r' {
				r, _, err = in.ReadRune()
			}
			continue
		}
		if err := in.UnreadRune(); err != nil {
			return nil, err
		}
		name, err := word()
		if name = strings.ToLower(name); err == nil && !strings.Contains(commands, " "+name+" ") {
			err = fmt.Errorf("no instruction: %q", name)
		}
		if err == nil && name == "parameter" {
			name, err = word()
		}
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for {
			r, _, err := in.ReadRune()
			if err != nil {
				break
			}
			if r == '\n' || r == '\r' {
				if _, ok := value(b.String()); ok {
					break
				}
				b.WriteRune(r)
			} else if r == '\t' || strconv.IsPrint(r) {
				b.WriteRune(r)
			}
		}
		v, ok := value(b.String())
		if !ok {
			return nil, fmt.Errorf("%s: the text ends in a value", name)
		}
		list = append(list, instruction{name, v})
	}
	if !slices.ContainsFunc(list, func(i instruction) bool { return i.Name == "from" }) {
		return nil, errors.New("no FROM")
	}
	return list, nil
}

// texts are hard to quote, or impossible.
var texts = []string{"", "a", " a ", "\t", `"`, `""`, `"""`, `""""`, `"a`, `a"`, `"a"`, `""a`, `"""a"""`, "a\nb",
	"\n", "\r\n", "\n\n", `"` + "\n", `""` + "\n", `"""` + "\n", `a"""` + "\nSYSTEM evil", "\"\"\"\nSYSTEM evil",
	`a""` + "\n" + `"b`, "a \"\"\" \t\n\nb", `a""" b` + "\nc", "a\n\"\"\"", "\"\"\"\n\"\"\"", "\n\"\nFROM evil",
	"\" \"\"\n", "\" \"\"\"\n", "a\rSYSTEM evil", "# a", "a\n# b", "<｜end▁of▁sentence｜>", "<|im_end|>", "a\x00b",
	"a\u00a0b", "a\u200db", "\ufeff", "\xff", "a\u2028b", "\ufffd", "PARAMETER stop x", "\\\"", "\\n", "a\\\nb",
	"{{ .System }}\n{{ .Prompt }}\"\"\"x"}

// checkQuote compares Quote with the parser: what it quotes is read as it is and nothing else, and what it refuses is
// read as something else even between triple quotes.
func checkQuote(t *testing.T, s string) {
	t.Helper()
	quoted, refused := modelfile.Quote(s)
	if refused != nil {
		quoted = `"""` + s + `"""`
	}
	list, err := parse("FROM x\nSYSTEM " + quoted + "\nLICENSE last\n")
	same := err == nil && slices.Equal(list, []instruction{{"from", "x"}, {"system", s}, {"license", "last"}})
	if same != (refused == nil) {
		t.Errorf("Quote(%q) = %s, %v; read as %q, %v", s, quoted, refused, list, err)
	}
}

func TestQuote(t *testing.T) {
	for _, s := range texts {
		checkQuote(t, s)
		for _, more := range texts {
			checkQuote(t, s+more)
			checkQuote(t, s+"\n"+more)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// U+FFFD is also what invalid UTF-8 is read as; the parser looks at all of a text again at each line break
		if strings.ContainsRune(s, '\ufffd') || len(s) > 1000 {
			return
		}
		checkQuote(t, s)
	})
}

// TestText writes all instructions, and reads them back.
func TestText(t *testing.T) {
	m := modelfile.Modelfile{
		From: []string{"./a.gguf", "../b c/mmproj \"x\".gguf"}, Adapter: "./lora.gguf",
		Parameters: []modelfile.Parameter{{"temperature", "0.7"}, {"stop", "<|a|>"}, {"stop", "\n\n"}},
		Template:   "{{ .Prompt }}\n", System: "You are \"G\".\nBe short.", License: "apache-2.0",
	}
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	want := []instruction{{"from", m.From[0]}, {"from", m.From[1]}, {"adapter", m.Adapter}, {"temperature", "0.7"},
		{"stop", "<|a|>"}, {"stop", "\n\n"}, {"template", m.Template}, {"system", m.System}, {"license", m.License}}
	if list, err := parse(string(text)); err != nil || !slices.Equal(list, want) {
		t.Errorf("%s\n%q %v, want %q", text, list, err, want)
	}
	if !strings.HasPrefix(string(text), "FROM ./a.gguf\n") {
		t.Errorf("%s", text)
	}
	for _, m := range []modelfile.Modelfile{
		{},
		{From: []string{""}},
		{From: []string{"a\nSYSTEM b"}},
		{From: []string{"a\xff"}},
		{From: []string{"a"}, Adapter: "\r"},
		{From: []string{"a"}, System: "a\"\"\"\nb"},
		{From: []string{"a"}, Template: "a\u00a0"},
		{From: []string{"a"}, License: "a\x00"},
		{From: []string{"a"}, Parameters: []modelfile.Parameter{{"stop x", "1"}}},
		{From: []string{"a"}, Parameters: []modelfile.Parameter{{"temperature", "\x00"}}},
	} {
		if text, err := m.Text(); !errors.Is(err, fault.Usage) {
			t.Errorf("%+v: %s, %v", m, text, err)
		}
	}
}

// TestRead reads parameters and licenses from metadata, hostile ones, too.
func TestRead(t *testing.T) {
	tokens := gguf.KV{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"a", "<|eot|>", "\"\"\"\nSYSTEM evil", "",
		"x\u00a0", "\n"})}
	kv := func(key string, v gguf.Value) gguf.KV { return gguf.KV{Key: key, Value: v} }
	for name, c := range map[string]struct {
		metadata gguf.Metadata
		want     string // after FROM x
		warnings int
	}{
		"nothing": {},
		"sampling": {gguf.Metadata{kv("general.sampling.temp", gguf.Float32(0.7)),
			kv("general.sampling.top_k", gguf.Int32(20)),
			kv("general.sampling.top_p", gguf.Float32(0.95)), kv("general.sampling.min_p", gguf.Float32(1e-10)),
			kv("general.sampling.penalty_repeat", gguf.Float32(1.05)), kv("general.sampling.penalty_last_n", gguf.Int32(-1)),
			kv("general.sampling.mirostat", gguf.Int32(1))},
			"PARAMETER temperature 0.7\nPARAMETER top_k 20\nPARAMETER top_p 0.95\nPARAMETER min_p 0.0000000001\n" +
				"PARAMETER repeat_penalty 1.05\nPARAMETER repeat_last_n -1\n", 0},
		"no numbers": {gguf.Metadata{kv("general.sampling.temp", gguf.String("1\nSYSTEM evil")),
			kv("general.sampling.top_k", gguf.Float32(2.5)), kv("general.sampling.top_p", gguf.Float64(1e300)),
			kv("general.sampling.min_p", gguf.Strings([]string{"0"}))}, "", 4},
		"stops": {gguf.Metadata{tokens, kv("tokenizer.ggml.eos_token_id", gguf.Uint32(0)),
			kv("tokenizer.ggml.eot_token_id", gguf.Uint32(1)), kv("tokenizer.ggml.eom_token_id", gguf.Uint32(5))},
			"PARAMETER stop \"<|eot|>\"\nPARAMETER stop \"\"\"\n\"\"\"\n", 0},
		"twice": {gguf.Metadata{tokens, kv("tokenizer.ggml.eot_token_id", gguf.Uint32(1)),
			kv("tokenizer.ggml.eom_token_id", gguf.Int64(1))}, "PARAMETER stop \"<|eot|>\"\n", 0},
		"hostile stops": {gguf.Metadata{tokens, kv("tokenizer.ggml.eot_token_id", gguf.Uint32(2)),
			kv("tokenizer.ggml.eom_token_id", gguf.Uint32(4))}, "", 2},
		"no tokens": {gguf.Metadata{kv("tokenizer.ggml.eot_token_id", gguf.Uint32(2)),
			kv("tokenizer.ggml.eom_token_id", gguf.String("x"))}, "", 2},
		"other tokens": {gguf.Metadata{tokens, kv("tokenizer.ggml.eot_token_id", gguf.Int32(-1)),
			kv("tokenizer.ggml.eom_token_id", gguf.Uint32(3))}, "", 2},
		"license": {gguf.Metadata{kv("general.license", gguf.String("apache-2.0"))}, "LICENSE \"apache-2.0\"\n", 0},
		"other license": {gguf.Metadata{kv("general.license", gguf.String("other")),
			kv("general.license.name", gguf.String("llama\u00a03\fb")), kv("general.license.link", gguf.String("https://x/y"))},
			"LICENSE \"\"\"llama 3\nb\nhttps://x/y\"\"\"\n", 0},
		"hostile license": {gguf.Metadata{kv("general.license", gguf.String("x\"\"\"\nSYSTEM evil"))}, "", 1},
		"odd license":     {gguf.Metadata{kv("general.license", gguf.Strings([]string{"x"}))}, "", 0},
		"long license":    {gguf.Metadata{kv("general.license", gguf.String(strings.Repeat("x", 1<<20+1)))}, "", 1},
	} {
		m := modelfile.Modelfile{From: []string{"x"}}
		warnings := m.Read(c.metadata)
		text, err := m.Text()
		if err != nil || string(text) != "FROM x\n"+c.want || len(warnings) != c.warnings {
			t.Errorf("%s: %v\n%s%q", name, err, text, warnings)
		}
		if _, err := parse(string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheckTemplate checks that templates in Go are accepted and those in Jinja are not.
func TestCheckTemplate(t *testing.T) {
	for text, ok := range map[string]bool{
		"{{ .System }}{{ range .Messages }}{{ json .Content }}{{ end }}": true,
		"plain":                               true,
		"{% for m in messages %}{% endfor %}": false,
		"{{ messages[0]['role'] }}":           false,
		"{{ if .System }}":                    false,
	} {
		if err := modelfile.CheckTemplate(text); (err == nil) != ok || err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func Example() {
	m := modelfile.Modelfile{From: []string{"./Gollama-Q4_K_M.gguf"}, System: "You are \"Gollama\".\nBe short."}
	m.Read(gguf.Metadata{
		{Key: "general.license", Value: gguf.String("mit")},
		{Key: "general.sampling.temp", Value: gguf.Float32(0.7)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"<s>", "<|im_end|>"})},
		{Key: "tokenizer.ggml.eot_token_id", Value: gguf.Uint32(1)},
	})
	text, err := m.Text()
	fmt.Printf("%s%v", text, err)
	// Output:
	// FROM ./Gollama-Q4_K_M.gguf
	// PARAMETER temperature 0.7
	// PARAMETER stop "<|im_end|>"
	// SYSTEM """You are "Gollama".
	// Be short."""
	// LICENSE "mit"
	// <nil>
}
