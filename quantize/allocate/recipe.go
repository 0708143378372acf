package allocate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/model/digest"
	"ggforge/quantize"
)

// Recipe is a file of tensor types: one rule PATTERN=TYPE per line, as for quantize.CompileTensorRule, without white
// space. The first rule that matches a tensor counts. Empty lines and lines that begin with # are ignored.
// llama-quantize reads files without comments, as FormatRecipe makes them (--tensor-type-file).
type Recipe struct {
	Path  string
	Rules []quantize.TensorTypeRule
	// Read is the file, for manifests.
	Read  digest.Input
	lines []int // of each rule
}

// maxRecipe is the largest recipe in bytes: compiled expressions take many times as much.
const maxRecipe = 1 << 20

// ReadRecipe reads a file of at most a mebibyte.
func ReadRecipe(path string) (*Recipe, error) {
	data, err := mmap.ReadFile(path, "recipe", maxRecipe)
	if err != nil {
		return nil, err
	}
	return ParseRecipe(path, data)
}

// ParseRecipe reads a recipe. Errors name path and line.
func ParseRecipe(path string, data []byte) (*Recipe, error) {
	r := &Recipe{Path: path, Read: digest.Held("recipe", path, data)}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.Trim(string(line), " \t\r\n")
		if text == "" || text[0] == '#' {
			continue
		}
		if at := strings.IndexAny(text, " \t\v\f\r\x00"); at >= 0 {
			return nil, fault.Errorf(fault.Usage,
				"%s, line %d: %q after the rule %q: want one rule PATTERN=TYPE to a line, comments on lines of their own", path, number, text[at:], text[:at])
		}
		rule, err := quantize.CompileTensorRule(text)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, number, err)
		}
		r.Rules, r.lines = append(r.Rules, rule), append(r.lines, number)
	}
	if len(r.Rules) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s: no rules, want lines PATTERN=TYPE", path)
	}
	return r, nil
}

// Check returns an error of kind fault.Refused if a rule is not the first to match any of the names, and so has no
// effect.
func (r *Recipe) Check(names []string) error {
	used, beaten := make([]bool, len(r.Rules)), make([]int, len(r.Rules)) // by the rule after this many
	for _, name := range names {
		first := -1
		for i := range r.Rules {
			switch {
			case used[i] && first >= 0:
			case !r.Rules[i].Match(name):
			case first < 0:
				first, used[i] = i, true
			default:
				beaten[i] = first + 1
			}
		}
	}
	var all []error
	for i, ok := range used {
		switch {
		case ok:
		case beaten[i] > 0:
			all = append(all, fault.Errorf(fault.Refused,
				"%s, line %d: earlier lines give types to all tensors that %q matches, as line %d does", r.Path,
				r.lines[i], r.Rules[i].Pattern, r.lines[beaten[i]-1]))
		default:
			all = append(all, fault.Errorf(fault.Refused, "%s, line %d: %q matches no tensor", r.Path, r.lines[i],
				r.Rules[i].Pattern))
		}
	}
	if len(all) > 1 {
		return fmt.Errorf("%w (and %d more lines without effect)", all[0], len(all)-1)
	}
	return errors.Join(all...)
}

// TensorType is a tensor name with its type.
type TensorType struct {
	Name string
	Type gguf.Type
}

// FormatRecipe returns the text of a recipe with one rule for each tensor, which matches its whole name. It has no
// comments, so that llama-quantize --tensor-type-file reads it, too.
func FormatRecipe(tensors []TensorType) []byte {
	var b bytes.Buffer
	for _, t := range tensors {
		fmt.Fprintf(&b, "%s=%s\n", Pattern(t.Name), strings.ToLower(t.Type.String()))
	}
	return b.Bytes()
}

// Pattern returns an expression for a tensor's whole name. Patterns are made lower-case when they are read: upper-case
// letters, and characters that would end a pattern, are replaced by one for any character.
func Pattern(name string) string {
	var b strings.Builder
	b.WriteByte('^')
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		case c == '.':
			b.WriteString(`\.`)
		default:
			b.WriteByte('.')
		}
	}
	b.WriteByte('$')
	return b.String()
}
