//go:build unix

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// languages of blocks. In console each line after "$ " is a command, followed by its output; sh has commands only.
// The others are not run.
var languages = []string{"console", "sh", "text", "go", "json", "yaml"}

// document is a text in Markdown with its blocks of code.
type document struct {
	lines  []string
	blocks []block
}

// block is a block between two fences.
type block struct {
	language, indent string
	first, end       int       // its first line, from 0, and the fence after it
	commands         []command // of console and sh
}

// command is a command of a block; all lines of an sh block are one command.
type command struct {
	text        string
	line, after int      // where it is, and where its output begins
	output      []string // without empty lines at the end
}

// parse finds the blocks of a document. Indented code without fences is an error: it has no language that decides
// whether it is run.
func parse(text string) (*document, error) {
	d := &document{lines: strings.Split(text, "\n")}
	var open *block
	for i, line := range d.lines {
		rest := strings.TrimLeft(line, " ")
		fence := strings.HasPrefix(rest, "```")
		switch {
		case open != nil && rest == "```":
			open.end = i
			open.read(d.lines[open.first:i])
			d.blocks = append(d.blocks, *open)
			open = nil
		case open != nil && rest != "" && !strings.HasPrefix(line, open.indent):
			return nil, fmt.Errorf("line %d: less indented than the block", i+1)
		case open == nil && fence:
			open = &block{language: rest[3:], indent: line[:len(line)-len(rest)], first: i + 1}
			if !slices.Contains(languages, open.language) {
				return nil, fmt.Errorf("line %d: a block of language %q, want one of %s", i+1, open.language,
					strings.Join(languages, ", "))
			}
		case open == nil && strings.HasPrefix(line, "    ") && rest != "" &&
			(i == 0 || strings.TrimSpace(d.lines[i-1]) == ""):
			return nil, fmt.Errorf(
				"line %d: an indented block: put it between ``` and a language, which decides whether it is run", i+1)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block without an end", open.first)
	}
	return d, nil
}

// read finds the commands of a block.
func (b *block) read(lines []string) {
	plain := make([]string, len(lines))
	for i, line := range lines {
		plain[i] = strings.TrimPrefix(line, b.indent)
	}
	switch b.language {
	case "sh":
		if text := strings.TrimSpace(strings.Join(plain, "\n")); text != "" {
			b.commands = []command{{text: text, line: b.first}}
		}
	case "console":
		for i, line := range plain {
			if text, ok := strings.CutPrefix(line, "$ "); ok {
				b.commands = append(b.commands, command{text: text, line: b.first + i, after: b.first + i + 1})
			} else if n := len(b.commands); n > 0 {
				b.commands[n-1].output = append(b.commands[n-1].output, line)
			}
		}
		for i := range b.commands {
			b.commands[i].output = printed(strings.Join(b.commands[i].output, "\n"))
		}
	}
}

// printed splits the output of a command into lines, without empty ones at the end.
func printed(text string) []string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// masks match the figures that differ from run to run: times, rates and memory.
var masks = []*regexp.Regexp{
	regexp.MustCompile(`\b[0-9][0-9.]* (s|ms|min)\b`),
	regexp.MustCompile(`\b[0-9][0-9.]* ([kMG]?B|tokens)/s\b`),
	regexp.MustCompile(`\bmemory [0-9][0-9.]* [kMG]?B\b`),
}

func mask(line string) string {
	for _, m := range masks {
		line = m.ReplaceAllString(line, "*")
	}
	return line
}

var failure = regexp.MustCompile(`^gg(conv|eval|quant|tool): `)

// fails reports whether the output of a command ends with an error.
func fails(text string) bool {
	lines := printed(text)
	return len(lines) > 0 && failure.MatchString(lines[len(lines)-1]) && !strings.Contains(lines[len(lines)-1],
		": warning: ")
}

func TestParse(t *testing.T) {
	d, err := parse("a\n\n```console\n$ one\nx\n\ny\n\n$ two 2\n```\n* b\n\n  ```sh\n  c \\\n    d\n  ```\n```text\n$ no\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, b := range d.blocks {
		got += b.language + ":"
		for _, c := range b.commands {
			got += fmt.Sprintf(" %d %q %q;", c.line, c.text, c.output)
		}
		got += "\n"
	}
	if want := "console: 3 \"one\" [\"x\" \"\" \"y\"]; 8 \"two 2\" [];\nsh: 13 \"c \\\\\\n  d\" [];\ntext:\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for text, want := range map[string]string{
		"a\n\n    ggconv x\n":        "line 3: an indented block",
		"```\nx\n```\n":              `line 1: a block of language ""`,
		"```sh\nx\n":                 "line 1: a block without an end",
		"* a\n\n  ```sh\nx\n  ```\n": "line 4: less indented",
	} {
		if _, err := parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if a, b := mask("0.12 s, 110 MB/s written, peak memory 5.64 MB"),
		mask("3 s, 1.5 GB/s written, peak memory 13 kB"); a != b {
		t.Errorf("%q, %q", a, b)
	}
	if a, b := mask("x: 13.3 MB, 57 tensors"), mask("x: 13.4 MB, 57 tensors"); a == b {
		t.Errorf("%q for two sizes", a)
	}
}
