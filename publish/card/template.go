package card

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"

	"ggforge/fault"
)

const (
	// maxTemplate is the largest template in bytes, and maxFormat the largest format of its printf.
	maxTemplate = 256 << 10
	maxFormat   = 4 << 10
	// maxSteps is the largest number of nodes that a template may execute, counted in each iteration of loops; the
	// default template executes about fifty for each file.
	maxSteps = 2 << 20
	// maxNested is the largest depth of nested template calls.
	maxNested = 100
	// maxMade is the longest text that a function of a template may return, in bytes.
	maxMade = 16 << 10
)

// fields is a Card as templates get it: without its methods, which write files and execute templates.
type fields Card

// limits bounds the cost of executing one template: package text/template bounds neither time nor memory. The steps
// are counted by actions that parseTemplate inserts at the beginning of each template and of each loop body.
type limits struct {
	steps, nested, written int
}

// parseTemplate parses a template. Executing it uses up l, so it can be executed only once.
func parseTemplate(text string, l *limits) (*template.Template, error) {
	if len(text) > maxTemplate {
		return nil, fault.Errorf(fault.Usage, "template: %d bytes, want at most %d", len(text), maxTemplate)
	}
	funcs := template.FuncMap{
		"mark": beginMark, "unmark": endMark,
		"leastBits": func() float64 { return pickBits },
		"print":     sprint, "println": func(args ...any) (string, error) { return sprint(append(args, "\n")...) },
		"printf": sprintf,
		"html":   escaped(template.HTMLEscapeString), "js": escaped(template.JSEscapeString),
		"urlquery": escaped(func(s string) string { return template.URLQueryEscaper(s) }),
	}
	t, err := template.New("template").Funcs(funcs).Parse(text)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "%w", err)
	}
	// after parsing: the text cannot call them
	t.Funcs(template.FuncMap{"step": l.step, "enter": l.enter, "leave": l.leave})
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		n := bound(one.Root)
		one.Root.Nodes = append(append(actions("{{enter}}{{step %d}}", n), one.Root.Nodes...), actions("{{leave}}")...)
	}
	return t, nil
}

// actions returns the nodes of a template text that parses without errors.
func actions(format string, args ...any) []parse.Node {
	trees, err := parse.Parse("limits", fmt.Sprintf(format, args...), "", "",
		map[string]any{"step": 0, "enter": 0, "leave": 0})
	if err != nil {
		panic(err)
	}
	return trees["limits"].Root.Nodes
}

// bound inserts at the beginning of each loop in a list an action that counts a step for each node of the loop, and
// returns the number of nodes outside the loops.
func bound(list *parse.ListNode) (nodes int) {
	if list == nil {
		return 0
	}
	branch := func(b *parse.BranchNode) int { return 1 + len(b.Pipe.Cmds) + bound(b.ElseList) }
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			nodes += branch(&n.BranchNode)
			n.List.Nodes = append(actions("{{step %d}}", bound(n.List)), n.List.Nodes...)
		case *parse.IfNode:
			nodes += branch(&n.BranchNode) + bound(n.List)
		case *parse.WithNode:
			nodes += branch(&n.BranchNode) + bound(n.List)
		case *parse.ActionNode:
			nodes += 1 + len(n.Pipe.Cmds)
		default:
			nodes++
		}
	}
	return nodes + ownSteps
}

// ownSteps is the cost of an inserted action, in steps.
const ownSteps = 4

func (l *limits) step(n int) (string, error) {
	if l.steps += n; l.steps > maxSteps {
		return "", fmt.Errorf("the template takes more than %d steps", maxSteps)
	}
	return "", nil
}

func (l *limits) enter() (string, error) {
	if l.nested++; l.nested > maxNested {
		return "", fmt.Errorf("more than %d templates in one another", maxNested)
	}
	return "", nil
}

func (l *limits) leave() string {
	l.nested--
	return ""
}

// output takes the text of a template, up to maxCard bytes.
type output struct {
	strings.Builder
	*limits
}

func (o *output) Write(p []byte) (int, error) {
	if o.written += len(p); o.written > maxCard {
		return 0, fmt.Errorf("the card has more than %d bytes", maxCard)
	}
	return o.Builder.Write(p)
}

var errLong = fmt.Errorf("a text has more than %d bytes", maxMade)

// sprint is fmt.Sprint with at most maxMade bytes.
func sprint(args ...any) (string, error) {
	n := 0
	for _, arg := range args {
		if n += len(fmt.Sprint(arg)); n > maxMade {
			return "", errLong
		}
	}
	text := fmt.Sprint(args...)
	if len(text) > maxMade {
		return "", errLong
	}
	return text, nil
}

var (
	// directive matches a directive of a format up to its verb; wide matches a width that is too large, or that an
	// argument sets.
	directive = regexp.MustCompile(`%[-+# 0-9.*\[\]]*`)
	wide      = regexp.MustCompile(`[0-9]{4}|\*`)
)

// sprintf is fmt.Sprintf for strings and numbers; large widths, and widths from arguments, are errors.
func sprintf(format string, args ...any) (string, error) {
	if len(format) > maxFormat {
		return "", fmt.Errorf("a format of %d bytes, want at most %d", len(format), maxFormat)
	}
	for _, one := range directive.FindAllString(format, -1) {
		if wide.MatchString(one) {
			return "", fmt.Errorf("printf: %q has a width of an argument, or of more than three digits", one)
		}
	}
	for _, arg := range args {
		switch v := reflect.ValueOf(arg); v.Kind() {
		case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer, reflect.Interface,
			reflect.Func, reflect.Chan:
			return "", fmt.Errorf("printf of %T: want a text or a number", arg)
		case reflect.String:
			if v.Len() > maxMade {
				return "", errLong
			}
		}
	}
	text := fmt.Sprintf(format, args...)
	if len(text) > maxMade {
		return "", errLong
	}
	return text, nil
}

// escaped returns a function that escapes the text of sprint.
func escaped(escape func(string) string) func(args ...any) (string, error) {
	return func(args ...any) (string, error) {
		text, err := sprint(args...)
		if err != nil {
			return "", err
		}
		return escape(text), nil
	}
}

// filled returns the card's text, from its template.
func (c *Card) filled() (string, error) {
	l := new(limits)
	t, err := parseTemplate(c.template, l)
	if err != nil {
		return "", err
	}
	out := &output{limits: l}
	if err := t.Execute(out, (*fields)(c)); err != nil {
		return "", fault.Errorf(fault.Usage, "%w", err)
	}
	return out.String(), nil
}
