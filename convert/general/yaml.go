package general

import (
	"errors"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
)

// parseYAML parses one YAML document as PyYAML's safe_load does. The library
// only gives the structure; what a scalar means is decided here. above is the
// number of lines of file above the text.
func parseYAML(file, src string, above int) (any, error) {
	y := &yamlReader{file: file, above: above, done: map[*yaml.Node]any{}, open: map[*yaml.Node]bool{}, anchors: map[string]bool{}}
	if i := strings.IndexFunc(src, unprintable); i >= 0 {
		return nil, y.errorf(1+strings.Count(src[:i], "\n"), "character %q is not allowed in YAML", []rune(src[i:])[0])
	}
	src = strings.TrimPrefix(src, "\uFEFF")
	// the library leaves out the line in errors at the start of the text, so
	// the text is moved away from there
	d := yaml.NewDecoder(strings.NewReader(strings.Repeat("\n", padding) + src))
	var root, more yaml.Node
	if err := d.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, y.syntaxError(err, src)
	}
	if err := d.Decode(&more); err == nil {
		return nil, y.errorf(more.Line-padding, "a second YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, y.syntaxError(err, src)
	}
	return y.value(root.Content[0])
}

// unprintable reports whether PyYAML refuses r anywhere in a text.
func unprintable(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && r < 0xA0 && r != 0x85 || r == 0xFFFE || r == 0xFFFF
}

// padding is the number of empty lines in front of the text that the library sees.
const padding = 2

type yamlReader struct {
	file    string
	above   int
	done    map[*yaml.Node]any
	open    map[*yaml.Node]bool // being read: meeting one again means that it holds itself
	anchors map[string]bool
}

// errorf returns an error at a line of the text; the first is 1.
func (y *yamlReader) errorf(line int, format string, args ...any) error {
	return fault.Errorf(fault.Broken, "%s: line %d: "+format, append([]any{y.file, line + y.above}, args...)...)
}

// at is errorf for a node.
func (y *yamlReader) at(n *yaml.Node, format string, args ...any) error {
	return y.errorf(n.Line-padding, format, args...)
}

var (
	libraryError  = regexp.MustCompile(`^yaml: line (\d+): (?s:(.*))$`)
	unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`) // has no line
	// errors of the library's parser count lines from 0, those of its scanner from 1
	parserError = regexp.MustCompile(`^(did not find expected (key|node content|'-' indicator|',' or .*|<.*>)|found (duplicate %|undefined tag|incompatible))`)
)

func (y *yamlReader) syntaxError(err error, src string) error {
	m := libraryError.FindStringSubmatch(err.Error())
	if m == nil {
		if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil {
			before, _, _ := strings.Cut(src, "*"+m[1])
			return y.errorf(1+strings.Count(before, "\n"), "YAML: nothing has the anchor &%s", m[1])
		}
		return fault.Errorf(fault.Broken, "%s: front matter: %w", y.file, err)
	}
	line, _ := strconv.Atoi(m[1])
	if parserError.MatchString(m[2]) {
		line++
	}
	return y.errorf(line-padding, "YAML: %s", m[2])
}

// value returns what a node stands for.
func (y *yamlReader) value(n *yaml.Node) (any, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if v, ok := y.done[n]; ok {
		return v, nil
	}
	if y.open[n] {
		return nil, y.at(n, "the value of &%s holds itself", n.Anchor)
	}
	if n.Anchor != "" {
		if y.anchors[n.Anchor] {
			return nil, y.at(n, "a second anchor &%s", n.Anchor)
		}
		y.anchors[n.Anchor] = true
	}
	y.open[n] = true
	v, err := y.read(n)
	delete(y.open, n)
	y.done[n] = v
	return v, err
}

func (y *yamlReader) read(n *yaml.Node) (any, error) {
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.Tag
	}
	switch {
	case n.Kind == yaml.ScalarNode:
		if tag == "" {
			tag = "!!str"
			if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
				tag = resolveTag(n.Value)
			}
		}
		v, ok := scalars[tag]
		if !ok {
			return nil, y.at(n, "value %q: tag %s is not supported", n.Value, tag)
		}
		out, ok := v(n.Value)
		if !ok {
			return nil, y.at(n, "value %q is no %s", n.Value, strings.TrimPrefix(tag, "!!"))
		}
		return out, nil
	case n.Style&yaml.FlowStyle != 0 && slices.ContainsFunc(n.Content, endsInColon):
		// to PyYAML [a:] and {a:} hold a mapping of a, to the library "a:"
		return nil, y.at(n, "want a blank after the colon that ends an entry in brackets")
	case n.Kind == yaml.SequenceNode && (tag == "" || tag == "!!seq"):
		list := []any{}
		for _, e := range n.Content {
			v, err := y.value(e)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case n.Kind == yaml.MappingNode && (tag == "" || tag == "!!map"):
		return y.mapping(n)
	}
	return nil, y.at(n, "tag %s is not supported", tag)
}

// endsInColon reports whether n is a scalar without quotes that ends in a colon.
func endsInColon(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&^yaml.TaggedStyle == 0 && strings.HasSuffix(n.Value, ":")
}

// mapping reads a mapping. A key that is repeated takes its last value. The key
// << lays other mappings under it.
func (y *yamlReader) mapping(n *yaml.Node) (any, error) {
	own, merged := newObject(), newObject()
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		plain := key.Kind == yaml.ScalarNode && key.Style == 0
		if plain && resolveTag(key.Value) == "!!merge" {
			if err := y.merge(merged, value); err != nil {
				return nil, err
			}
			continue
		}
		var k any = key.Value // = is a string as a key
		if !plain || key.Value != "=" {
			var err error
			if k, err = y.value(key); err != nil {
				return nil, err
			}
		}
		v, err := y.value(value)
		if err != nil {
			return nil, err
		}
		switch k := k.(type) {
		case string:
			own.set(k, v, value.Line-padding+y.above)
		case []any, *object:
			return nil, y.at(key, "want a scalar as key, found %s", describe(k))
		default:
			own.others++
		}
	}
	own.others += merged.others
	for key, v := range merged.values {
		if _, ok := own.values[key]; !ok {
			own.set(key, v, merged.lines[key])
		}
	}
	return own, nil
}

// merge adds the members of a mapping, or of a list of mappings of which the
// first that has a key wins.
func (y *yamlReader) merge(to *object, n *yaml.Node) error {
	v, err := y.value(n)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range slices.Backward(list) {
		o, ok := v.(*object)
		if !ok {
			return y.at(n, "want mappings to merge, found %s", describe(v))
		}
		for key, v := range o.values {
			to.set(key, v, o.lines[key])
		}
		to.others += o.others
	}
	return nil
}

// tags gives the text that stands for each type when it is not quoted, in the
// order in which they are tried. Source: PyYAML's resolver.
var tags = []struct {
	tag  string
	text *regexp.Regexp
}{
	{"!!bool", regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)},
	{"!!float", regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)},
	{"!!int", regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|` +
		`[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)},
	{"!!merge", regexp.MustCompile(`^<<$`)},
	{"!!null", regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)},
	{"!!timestamp", regexp.MustCompile(`^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)` +
		`[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)$`)},
	{"!!value", regexp.MustCompile(`^=$`)},
}

// resolveTag returns the tag of a scalar that has neither tag nor quotes.
func resolveTag(s string) string {
	for _, t := range tags {
		if t.text.MatchString(s) {
			return t.tag
		}
	}
	return "!!str"
}

// scalars reads the text of a scalar by its tag. ok is false when it is none.
var scalars = map[string]func(string) (v any, ok bool){
	"!!str":       func(s string) (any, bool) { return s, true },
	"!!null":      func(string) (any, bool) { return nil, true },
	"!!bool":      readBool,
	"!!int":       readInt,
	"!!float":     readFloat,
	"!!timestamp": readDate,
}

func readBool(s string) (any, bool) {
	switch strings.ToLower(s) {
	case "yes", "true", "on":
		return true, true
	case "no", "false", "off":
		return false, true
	}
	return nil, false
}

// maxDigits is the longest decimal number that Python reads.
const maxDigits = 4300

// cutSign splits off a sign and drops the underscores.
func cutSign(s string) (digits string, negative bool) {
	s = strings.ReplaceAll(s, "_", "")
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[1:], s[0] == '-'
	}
	return s, false
}

func readInt(s string) (any, bool) {
	digits, negative := cutSign(s)
	i := new(big.Int)
	base := 10
	switch {
	case strings.HasPrefix(digits, "0b"):
		digits, base = digits[2:], 2
	case strings.HasPrefix(digits, "0x"):
		digits, base = digits[2:], 16
	case strings.HasPrefix(digits, "0") && digits != "0":
		base = 8
	}
	for part := range strings.SplitSeq(digits, ":") { // in base 60
		if base == 10 && len(part) > maxDigits || strings.HasPrefix(part, "-") || strings.HasPrefix(part, "+") {
			return nil, false
		}
		d, ok := new(big.Int).SetString(part, base)
		if !ok {
			return nil, false
		}
		i.Add(i.Mul(i, big.NewInt(60)), d)
	}
	if negative {
		i.Neg(i)
	}
	f, _ := new(big.Float).SetInt(i).Float64()
	return number{s, i, f}, true
}

func readFloat(s string) (any, bool) {
	digits, negative := cutSign(strings.ToLower(s))
	n := number{text: s}
	parts := strings.Split(digits, ":")
	if digits == ".inf" || digits == ".nan" {
		parts[0] = digits[1:]
	}
	for i, unit := len(parts)-1, 1.0; i >= 0; i, unit = i-1, unit*60 { // the last first: the order of the sum decides its last bit
		f, err := strconv.ParseFloat(parts[i], 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, false
		}
		n.f += float64(f * unit)
	}
	if negative {
		n.f = -n.f
	}
	return n, true
}

// timestamp captures year, month, day, hour, minute, second, and the zone's
// hours and minutes.
var timestamp = regexp.MustCompile(`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})` +
	`(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+]([0-9]{1,2})(?::([0-9]{2}))?))?)?$`)

// readDate checks a date as Python's datetime does.
func readDate(s string) (any, bool) {
	m := timestamp.FindStringSubmatch(s)
	if m == nil {
		return nil, false
	}
	var f [9]int
	for i, digits := range m[1:] {
		f[i+1], _ = strconv.Atoi(digits)
	}
	t := time.Date(f[1], time.Month(f[2]), f[3], 0, 0, 0, 0, time.UTC)
	valid := f[1] > 0 && t.Month() == time.Month(f[2]) && t.Day() == f[3] &&
		f[4] < 24 && f[5] < 60 && f[6] < 60 && 60*f[7]+f[8] < 24*60
	return date(s), valid
}
