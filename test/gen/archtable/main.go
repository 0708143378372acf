// Archtable writes how many architectures and classes are supported into README.md, between two
// comments. docs/architectures.md lists them. go generate ./arch runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"ggforge/arch"
	"ggforge/eval"
)

// The comments around the counts.
const (
	begin = "<!-- go generate ./arch writes this line -->\n"
	end   = "<!-- end of the line -->\n"
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

// replace returns the text with the current counts.
func replace(text []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, errors.New("no comments around the counts of architectures")
	}
	return slices.Concat(before, []byte(begin), counts(), []byte(end), after), nil
}

// counts returns the line with the numbers of GGUF architectures that conversions write, of Hugging Face
// classes that become one of them or a multimodal projector, and of architectures that ggeval runs.
func counts() []byte {
	names, classes := map[string]bool{}, map[string]bool{}
	for _, class := range arch.Classes() {
		classes[class] = true
		for _, name := range arch.Names(class) {
			names[name] = true
		}
	}
	for _, class := range arch.EncoderClasses() {
		classes[class] = true
	}
	return fmt.Appendf(nil,
		"[%d architectures](docs/architectures.md) and %d Hugging Face classes, vision and audio encoders among "+
			"them; `ggeval` runs [%d](docs/evaluation.md) of the architectures.\n",
		len(names), len(classes), len(eval.Supported()))
}
