package pairs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// place returns the index of a feature's row.
func place(name string) int {
	return slices.IndexFunc(features, func(f *feature) bool { return f.name == name })
}

func comparePairs(p, q pair) int {
	return cmp.Or(cmp.Compare(place(p.first), place(q.first)), cmp.Compare(place(p.second), place(q.second)))
}

// write returns the text of testdata/pairs.txt.
func write(all map[pair]outcomes) []byte {
	var b bytes.Buffer
	b.WriteString("# first | second | what becomes of the second (of the first for around): go test ./test/pairs " +
		"-update writes this file\n")
	for _, p := range slices.SortedFunc(maps.Keys(all), comparePairs) {
		fmt.Fprintf(&b, "%s | %s | %v\n", p.first, p.second, all[p])
	}
	return b.Bytes()
}

// read reads testdata/pairs.txt.
func read() (map[pair]outcomes, error) {
	text, err := os.ReadFile(golden)
	if err != nil {
		return nil, err
	}
	all := map[pair]outcomes{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s: %q", golden, line)
		}
		o := outcomes{}
		for _, c := range strings.Split(cells[2], ", ") {
			if c != "" {
				relation, what, _ := strings.Cut(c, " ")
				o[relation] = what
			}
		}
		all[pair{cells[0], cells[1]}] = o
	}
	return all, nil
}

const (
	document = "../../docs/reliability.md"
	begins   = "<!-- go test ./test/pairs -update writes this table -->\n"
	ends     = "<!-- end of the table of pairs -->\n"
)

// replaceTable returns the document with the table of these pairs.
func replaceTable(text []byte, all map[pair]outcomes) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begins))
	_, after, ok2 := bytes.Cut(rest, []byte(ends))
	if !ok || !ok2 {
		return nil, errors.New("no comments around the table of pairs")
	}
	return slices.Concat(before, []byte(begins), table(all), []byte(ends), after), nil
}

func updateDocs(all map[pair]outcomes) error {
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	text, err := replaceTable(old, all)
	if err != nil || bytes.Equal(old, text) {
		return err
	}
	return os.WriteFile(document, text, 0o666)
}

// table returns a line for each second feature, and for each relation the outcomes and the first features that lead to
// them.
func table(all map[pair]outcomes) []byte {
	var b bytes.Buffer
	b.WriteString("| second feature | reads what the first one wrote | and writes there, with `--force` | writes " +
		"where the first one wrote | the same with `--force` | between the beginning of the first one and its end, " +
		"or a release and the same again |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, second := range features {
		fmt.Fprintf(&b, "| `%s` |", second.name)
		for _, relation := range relations {
			firsts := map[string][]string{}
			for _, first := range features {
				if what, ok := all[pair{first.name, second.name}][relation]; ok {
					firsts[what] = append(firsts[what], "`"+first.name+"`")
				}
			}
			// the features with the most frequent outcome are only counted
			kinds := slices.SortedFunc(maps.Keys(firsts), func(x, y string) int {
				return cmp.Or(cmp.Compare(len(firsts[y]), len(firsts[x])), cmp.Compare(x, y))
			})
			var cells []string
			for i, what := range kinds {
				if i == 0 {
					cells = append(cells, fmt.Sprintf("%s (%d)", what, len(firsts[what])))
				} else {
					cells = append(cells, fmt.Sprintf("%s after %s", what, strings.Join(firsts[what], ", ")))
				}
			}
			fmt.Fprintf(&b, " %s |", strings.Join(cells, "; "))
		}
		b.WriteString("\n")
	}
	return b.Bytes()
}
