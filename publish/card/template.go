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
	// maxSteps is how many nodes of a template may be carried out, again and again; our own takes some fifty for a
	// file.
	maxSteps = 2 << 20
	// maxNested is how many templates may be carried out in one another.
	maxNested = 100
	// maxMade is the longest text that a function of a template may make, in bytes.
	maxMade = 16 << 10
)

// fields is a Card as templates get it: without its methods, which write files and carry out templates.
type fields Card

// limits bounds what carrying out one template may cost: the library bounds neither time nor memory. What costs time is
// asked for by actions that parsed puts at the beginning of each body of a loop and of each template.
type limits struct {
	steps, nested, written int
}

// parseTemplate parses a template. Executing it uses up the limits, which are good for one time.
func parseTemplate(text string, l *limits) (*template.Template, error) {
	if len(text) > maxTemplate {
		return nil, fault.Errorf(fault.Usage, "template: %d bytes, want at most %d", len(text), maxTemplate)
	}
	funcs := template.FuncMap{
		"mark": beginMark, "unmark": endMark,
		"print": made, "println": func(args ...any) (string, error) { return made(append(args, "\n")...) },
		"printf": madef,
		"html":   escaped(template.HTMLEscapeString), "js": escaped(template.JSEscapeString),
		"urlquery": escaped(func(s string) string { return template.URLQueryEscaper(s) }),
	}
	t, err := template.New("template").Funcs(funcs).Parse(text)
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "%w", err)
	}
	t.Funcs(template.FuncMap{"step": l.step, "enter": l.enter, "leave": l.leave}) // which the text cannot name
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		n := bound(one.Root)
		one.Root.Nodes = append(append(actions("{{enter}}{{step %d}}", n), one.Root.Nodes...), actions("{{leave}}")...)
	}
	return t, nil
}

// actions returns the nodes of a text that has no errors.
func actions(format string, args ...any) []parse.Node {
	trees, err := parse.Parse("limits", fmt.Sprintf(format, args...), "", "",
		map[string]any{"step": 0, "enter": 0, "leave": 0})
	if err != nil {
		panic(err)
	}
	return trees["limits"].Root.Nodes
}

// bound puts an action at the beginning of each loop in a list that takes as many steps as the loop has nodes, and
// returns how many nodes there are besides these.
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

// ownSteps is what the action costs that counts the others, in nodes.
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

// output is what a template writes to.
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

var errMade = fmt.Errorf("a text has more than %d bytes", maxMade)

// made is fmt.Sprint, of a text that is not too long.
func made(args ...any) (string, error) {
	n := 0
	for _, arg := range args {
		if n += len(fmt.Sprint(arg)); n > maxMade {
			return "", errMade
		}
	}
	text := fmt.Sprint(args...)
	if len(text) > maxMade {
		return "", errMade
	}
	return text, nil
}

// instruction is one of a format, up to its verb.
var (
	instruction = regexp.MustCompile(`%[-+# 0-9.*\[\]]*`)
	wide        = regexp.MustCompile(`[0-9]{4}|\*`)
)

// madef is fmt.Sprintf of texts and numbers, without widths that are long or given by arguments.
func madef(format string, args ...any) (string, error) {
	if len(format) > maxFormat {
		return "", fmt.Errorf("a format of %d bytes, want at most %d", len(format), maxFormat)
	}
	for _, one := range instruction.FindAllString(format, -1) {
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
				return "", errMade
			}
		}
	}
	text := fmt.Sprintf(format, args...)
	if len(text) > maxMade {
		return "", errMade
	}
	return text, nil
}

// escaped returns a function that escapes what made makes.
func escaped(escape func(string) string) func(args ...any) (string, error) {
	return func(args ...any) (string, error) {
		text, err := made(args...)
		if err != nil {
			return "", err
		}
		return escape(text), nil
	}
}

// filled returns what a template makes of the card.
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
