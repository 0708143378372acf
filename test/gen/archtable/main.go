// Archtable writes how many architectures and classes are supported into README.md, between two
// comments, and the column of graphs of docs/architectures.md, which make architectures writes. go generate ./arch runs
// it.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/eval"
)

// The comments around the counts.
const (
	begin = "<!-- go generate ./arch writes this line -->\n"
	end   = "<!-- end of the line -->\n"
)

func main() {
	err := cmp.Or(run("README.md", replace), run("docs/architectures.md", replaceGraphs))
	if err != nil {
		fmt.Fprintln(os.Stderr, "archtable:", err)
		os.Exit(1)
	}
}

// run changes a file.
func run(path string, change func(text []byte) ([]byte, error)) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := change(old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(text, old) {
		return nil
	}
	return os.WriteFile(path, text, 0o666)
}

// tableHead begins the table of architectures.
const tableHead = "| architecture | Hugging Face classes | graph | "

// replaceGraphs returns the text with the current graphs in the rows of the table of architectures.
func replaceGraphs(text []byte) ([]byte, error) {
	var out strings.Builder
	var inside, found bool
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, " | ", 4)
		switch {
		case strings.HasPrefix(line, tableHead):
			inside, found = true, true
		case !inside || strings.HasPrefix(line, "| ---"):
		case len(cells) < 4:
			inside = false
		default:
			name := strings.TrimPrefix(cells[0], "| ")
			cells[2] = cmp.Or(graph.Of(name).Summary(), "-")
			line = strings.Join(cells, " | ")
		}
		out.WriteString(line)
	}
	if !found {
		return nil, fmt.Errorf("no table that begins with %q", tableHead)
	}
	return []byte(out.String()), nil
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
