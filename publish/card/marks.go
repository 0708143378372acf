package card

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
)

// A written card has marks around generated parts:
//
//	---
//	# ggtool card
//	license: mit
//	# /ggtool card
//	inference: false            by hand
//	---
//	<!-- ggtool card: about -->
//	...
//	<!-- /ggtool card: about -->
//
//	Text by hand.
const (
	frontRule  = "---"
	frontBegin = "# ggtool card"
	frontEnd   = "# /ggtool card"
)

var sectionMark = regexp.MustCompile(`^<!-- (/?)ggtool card: ([a-z0-9-]{1,40}) -->$`)

// markInLine matches a mark that is not code; its submatch is the mark.
var markInLine = regexp.MustCompile("(?:^|[^`])(<!-- /?ggtool card: [a-z0-9-]{1,40} -->)")

// ownLines returns the lines of a text, with marks on lines of their own: editors that fill paragraphs put them next to
// other text.
func ownLines(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for {
			at := markInLine.FindStringSubmatchIndex(line)
			if at == nil || mark(line) == line[at[2]:at[3]] {
				lines = append(lines, line)
				break
			}
			if before := line[:at[2]]; mark(before) != "" {
				lines = append(lines, strings.TrimRight(before, " "))
			}
			lines = append(lines, line[at[2]:at[3]])
			if line = strings.TrimLeft(line[at[3]:], " "); mark(line) == "" {
				break
			}
		}
	}
	return lines
}

func beginMark(name string) string { return "<!-- ggtool card: " + name + " -->" }
func endMark(name string) string   { return "<!-- /ggtool card: " + name + " -->" }

// part is a piece of a document: lines by hand, or the content of a section.
type part struct {
	section string // "" for lines by hand
	lines   []string
}

// document is a card in its parts.
type document struct {
	front   []string // of the front matter, without rules; nil for none
	marked  bool     // front has marks
	from, n int      // lines of front between them
	body    []part
}

// mark returns a line without surrounding spaces, for comparison with marks.
func mark(line string) string { return strings.TrimSpace(line) }

// parseDocument reads a card. Marks that do not fit each other are an error of kind fault.Broken.
func parseDocument(path, text string) (*document, error) {
	broken := func(line int, format string, args ...any) error {
		return fault.Errorf(fault.Broken, "%s, line %d: %s", path, line+1, fmt.Sprintf(format, args...))
	}
	lines := ownLines(text)
	d, at := &document{}, 0
	if mark(lines[0]) == frontRule {
		end := 1
		for end < len(lines) && mark(lines[end]) != frontRule {
			end++
		}
		if end < len(lines) {
			d.front, at = append([]string{}, lines[1:end]...), end+1
		}
	}
	d.from = -1
	for i, line := range d.front {
		switch {
		case mark(line) == frontBegin && d.from < 0:
			d.from = i + 1
		case mark(line) == frontBegin, mark(line) == frontEnd && (d.from < 0 || d.marked):
			return nil, broken(i+1, "%s does not go with another mark", mark(line))
		case mark(line) == frontEnd:
			d.n, d.marked = i-d.from, true
		}
	}
	if d.from >= 0 && !d.marked {
		return nil, broken(d.from, "no %q follows %q", frontEnd, frontBegin)
	}
	seen := map[string]bool{}
	open, current := -1, part{}
	for ; at < len(lines); at++ {
		m := sectionMark.FindStringSubmatch(mark(lines[at]))
		switch {
		case m == nil:
			current.lines = append(current.lines, lines[at])
			continue
		case m[1] == "" && open >= 0, m[1] != "" && m[2] != current.section, m[1] == "" && seen[m[2]]:
			return nil, broken(at, "%s does not go with the marks before it", mark(lines[at]))
		}
		d.body = append(d.body, current)
		current, open = part{}, -1
		if m[1] == "" {
			current.section, open = m[2], at
			seen[m[2]] = true
		}
	}
	if open >= 0 {
		return nil, broken(open, "no %q follows", endMark(current.section))
	}
	d.body = append(d.body, current)
	return d, nil
}

// ours reports whether a document has marks.
func (d *document) ours() bool { return d.marked || len(d.body) > 1 }

// update returns the card with the generated parts of another one. Sections whose marks somebody has removed do not
// come back; sections that are no longer generated become empty.
func (d *document) update(next *document) (string, error) {
	sections := map[string][]string{}
	for _, p := range next.body {
		if p.section != "" {
			sections[p.section] = p.lines
		}
	}
	front := d.front
	if d.marked {
		byHand := append(append([]string{}, d.front[:d.from-1]...), d.front[d.from+d.n+1:]...)
		keys, err := topKeys(strings.Join(byHand, "\n"))
		if err != nil {
			return "", err
		}
		generated := without(next.front[next.from:next.from+next.n], keys)
		front = append(append(append([]string{}, d.front[:d.from]...), generated...), d.front[d.from+d.n:]...)
	}
	var out []string
	if front != nil {
		out = append(append(append(out, frontRule), front...), frontRule)
	}
	for _, p := range d.body {
		lines := p.lines
		if p.section == "" {
			out = append(out, lines...)
			continue
		}
		out = append(append(append(out, beginMark(p.section)), sections[p.section]...), endMark(p.section))
	}
	return strings.Join(out, "\n"), nil
}

// topKeys returns the keys of a mapping of YAML.
func topKeys(text string) (map[string]bool, error) {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return nil, fault.Errorf(fault.Broken, "front matter outside of the generated lines: %w", err)
	}
	keys := map[string]bool{}
	if len(node.Content) == 0 {
		return keys, nil
	}
	m := node.Content[0]
	if m.Kind != yaml.MappingNode {
		return nil, fault.Errorf(fault.Broken, "front matter outside of the generated lines: want keys with values")
	}
	for i := 0; i < len(m.Content); i += 2 {
		keys[m.Content[i].Value] = true
	}
	return keys, nil
}

// without returns generated lines of a mapping, without some keys.
func without(lines []string, keys map[string]bool) (left []string) {
	drop := false
	for _, line := range lines {
		if line != "" && line[0] != ' ' && line[0] != '-' && line[0] != '#' {
			key, _, _ := strings.Cut(line, ":")
			drop = keys[key]
		}
		if !drop {
			left = append(left, line)
		}
	}
	return left
}
