// Archtable writes the table of supported architectures into README.md, between
// two comments. go generate ./arch runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"ggforge/arch"
)

// The comments around the table.
const (
	begin = "<!-- go generate ./arch writes this table -->\n"
	end   = "<!-- end of the table -->\n"
)

func main() {
	if err := run("README.md"); err != nil {
		fmt.Fprintln(os.Stderr, "archtable:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replace(old)
	if err != nil || bytes.Equal(text, old) {
		return err
	}
	return os.WriteFile(path, text, 0o666)
}

// replace returns the text with the table of now.
func replace(text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, errors.New("no comments around the table")
	}
	return slices.Concat(before, []byte(begin), table(), []byte(end), after), nil
}

// table lists the GGUF names with the Hugging Face classes whose models, or some of them,
// become such files; clip is for --mmproj.
func table() []byte {
	classes := map[string][]string{}
	for _, class := range arch.Classes() {
		for _, name := range arch.Names(class) {
			classes[name] = append(classes[name], class)
		}
	}
	for _, class := range arch.EncoderClasses() {
		for _, name := range arch.EncoderNames(class) {
			classes[name] = append(classes[name], class)
		}
	}
	var b bytes.Buffer
	b.WriteString("| architecture | Hugging Face classes |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(classes[name], ", "))
	}
	return b.Bytes()
}
