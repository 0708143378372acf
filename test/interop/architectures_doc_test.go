package interop

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/arch/graph"
)

// docs makes TestArchitectures and TestTowers write their tables.
var docs = flag.Bool("docs", false, "write docs/architectures.md")

// tableFile is the document with both tables, seen from this package.
const tableFile = "../../docs/architectures.md"

// The document has two parts, one for each test. Reasons are footnotes: in cells that are not yet rendered they are
// the text between braces, see note.
const (
	modelsHead = `# Architectures

What ` + "`ggconv`" + ` converts, and what was checked. Made-up checkpoints of each architecture (several seeds, sizes, element
types, shardings, output types and settings that published models have) were converted by ` + "`ggconv`" + ` and by llama.cpp
0.7.0, called the reference below, and whole files compared; one of each was loaded by the reference's runtime and had to
give finite logits on text. ` + "`make architectures`" + ` repeats all that and writes this document.

An architecture is the value of ` + "`general.architecture`" + `; its classes are those of the models that become such files, in some or
in all configurations.

The graph is printed from the value that the architecture's file in ` + "`arch`" + ` declares and ` + "`ggeval`" + ` interprets: mixers; feed-forward
networks; what else differs from a decoder of pre-norm layers with RMS norms. Attention is MHA, GQA or MQA by the number of key heads. Slashes
are between alternatives, of which each layer has one; "optional" is what a file may have. A dash is an architecture without a declared graph.

`
	modelsTable = `| architecture | Hugging Face classes | graph | same file as the reference | loads and runs |
| --- | --- | --- | --- | --- |
`
	encodersTitle = "\n## Vision and audio encoders\n"
	encodersHead  = `
Multimodal projectors (architecture ` + "`clip`" + `) that ` + "`ggconv --mmproj`" + ` writes, one row for each table, compared in the same way. One
of each was loaded by the reference's runtime next to a small language model that is not its own, and had to encode an image
or a sound, or to generate speech. Where the runtime ends because of that language model or of made-up sizes, a footnote has
its error.

`
	encodersTable = `| Hugging Face classes | same file as the reference | tasks that run |
| --- | --- | --- |
`
)

// note returns a reason at the end of a cell's item; render makes it a footnote.
func note(why string) string { return "{" + why + "}" }

var (
	notes      = regexp.MustCompile(`\{([^{}]*)\}`)
	references = regexp.MustCompile(`\[\^([a-z])(\d+)\]`)
	equalFiles = regexp.MustCompile(`yes \((\d+) files\)`)
)

// render returns a table with the footnotes of its rows, whose references begin with prefix.
func render(header string, rows []string, prefix string) string {
	numbers, list := map[string]int{}, ""
	body := notes.ReplaceAllStringFunc(strings.Join(rows, ""), func(s string) string {
		why := s[1 : len(s)-1]
		if numbers[why] == 0 {
			numbers[why] = len(numbers) + 1
			list += fmt.Sprintf("[^%s%d]: %s\n", prefix, numbers[why], why)
		}
		return fmt.Sprintf("[^%s%d]", prefix, numbers[why])
	})
	if list != "" {
		list = "\n" + list
	}
	return header + body + list
}

// rowsOf returns the rows of a rendered table by their first cells, with the texts of the footnotes.
func rowsOf(part string) map[string]string {
	texts, rows := map[string]string{}, map[string]string{}
	for line := range strings.Lines(part) {
		if ref, why, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok && references.FindString(line) == ref {
			texts[ref] = why
		}
	}
	for line := range strings.Lines(part) {
		if key, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| ") {
			rows[key] = references.ReplaceAllStringFunc(line, func(ref string) string { return note(texts[ref]) })
		}
	}
	return rows
}

// modelsPart renders the first part of the document. Rows of architectures with checkpoints left that were not tested
// keep their last two cells of old. go generate ./arch writes the graphs anew (test/gen/archtable).
func modelsPart(results map[string]*result, left map[string]int, old string) string {
	before := rowsOf(old)
	var rows []string
	files, equal, run := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		cells := r.equal() + " | " + r.runs()
		if left[name] > 0 {
			f := strings.SplitN(strings.TrimSpace(before[name]), " | ", 4)
			if len(f) < 4 {
				continue
			}
			cells = strings.TrimSuffix(f[3], " |")
		}
		if m := equalFiles.FindStringSubmatch(cells); m != nil {
			n, _ := strconv.Atoi(m[1])
			files, equal = files+n, equal+1
		}
		if _, runs, _ := strings.Cut(cells, " | "); strings.Contains(runs, "yes") {
			run++
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", name,
			strings.Join(slices.Sorted(maps.Keys(r.classes)), ", "), cmp.Or(graph.Of(name).Summary(), "-"), cells))
	}
	return modelsHead +
		fmt.Sprintf("%d architectures; %d files of %d architectures equal the reference's; %d architectures run.\n\n",
			len(rows), files, equal, run) + render(modelsTable, rows, "m")
}

// encodersPart renders the part after encodersTitle, as modelsPart does; the keys are the classes of a table.
func encodersPart(results map[string]*result, left map[string]int, old string) string {
	before := rowsOf(old)
	var rows []string
	for _, key := range slices.Sorted(maps.Keys(results)) {
		r := results[key]
		row := fmt.Sprintf("| %s | %s | %s |\n", key, r.equal(), r.runs())
		if left[key] > 0 {
			row = before[key]
		}
		rows = append(rows, row)
	}
	return encodersHead + render(encodersTable, rows, "e")
}

// equal returns the cell with the number of files that equal the reference's, and the specs that it cannot convert.
func (r *result) equal() string {
	if r.files == 0 {
		return strings.Join(grouped("not compared", r.noReference, false), "; ")
	}
	return strings.Join(append([]string{fmt.Sprintf("yes (%d files)", r.files)},
		grouped("not compared:", r.noReference, true)...), "; ")
}

// runs returns the cell with the runtime's results for the files.
func (r *result) runs() string {
	var items []string
	for _, found := range slices.Sorted(maps.Keys(r.loads)) {
		switch found {
		case noLoader:
			found = "no" + note(found)
		case loadsOnly, runsMute:
			does, why, _ := strings.Cut(found, "; ")
			found = does + note(why)
		}
		items = append(items, found)
	}
	return strings.Join(append(items, grouped("not", r.notLoaded, true)...), "; ")
}

// grouped returns one item for each reason of why, which is by spec, with the names of its specs if named.
func grouped(what string, why map[string]string, named bool) []string {
	specs := map[string][]string{}
	for _, spec := range slices.Sorted(maps.Keys(why)) {
		specs[why[spec]] = append(specs[why[spec]], "`"+spec+"`")
	}
	var items []string
	for _, reason := range slices.Sorted(maps.Keys(specs)) {
		item := what
		if named {
			item += " " + strings.Join(specs[reason], ", ")
		}
		items = append(items, item+note(reason))
	}
	return items
}

// TestTable renders rows of which some keep their old cells, whose footnotes get new numbers.
func TestTable(t *testing.T) {
	results := map[string]*result{}
	for _, name := range []string{"a", "b", "c"} {
		results[name] = newResult()
		results[name].classes["New"] = true
		results[name].files = 2
		results[name].loads[runsText] = true
		results[name].notLoaded = map[string]string{"x": "draft", "y": "draft"}
	}
	old := modelsHead + modelsTable + "| a | Old | - | yes (1 files) | no |\n" +
		"| b | Old | old; graph | yes (9 files); not compared: `z`[^m2] | loads[^m1] |\n" +
		"| gone | Old | - | yes (1 files) | yes |\n\n" +
		"[^m1]: draft\n[^m2]: recurses\n"
	want := modelsHead +
		"2 architectures; 11 files of 2 architectures equal the reference's; 1 architectures run.\n\n" +
		modelsTable + "| a | New | - | yes (2 files) | yes; not `x`, `y`[^m1] |\n" +
		"| b | New | - | yes (9 files); not compared: `z`[^m2] | loads[^m1] |\n\n[^m1]: draft\n[^m2]: recurses\n"
	if got := modelsPart(results, map[string]int{"b": 1, "c": 1}, old); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
