package general

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// The limits of a card. The library's tree takes some two hundred bytes for each
// node, however short its text: memory stays within a small multiple of these.
const (
	// maxYAML bounds the bytes of the front matter; the longest known one, with the results of hundreds of benchmarks,
	// has less than 1 MB.
	maxYAML = 4 << 20
	// maxMarks bounds the characters that may begin a node. The longest known card has 100,000.
	maxMarks = 1 << 19
	// maxMerged bounds the members that << merges into mappings.
	maxMerged = 1 << 16
)

// marks are the characters that may begin a YAML node other than the first.
const marks = "\n-:,[{?"

// parseYAML parses one YAML document as PyYAML's safe_load does. The library gives the structure only; scalars are
// resolved here. above is the number of lines of file above the text. lines has the lines on which the values of a
// mapping at the root begin.
//
// An error of the library has the line in the file; those of its parser, which
// counts from 0, name the line before.
func parseYAML(file, src string, above int) (v any, lines map[string]int, err error) {
	y := &yamlReader{file: file, done: map[*yaml.Node]any{}, open: map[*yaml.Node]bool{}, anchors: map[string]bool{}}
	if len(src) > maxYAML {
		return nil, nil, fault.Errorf(fault.Broken, "%s: front matter of %d bytes, want at most %d", file,
			len(src), maxYAML)
	}
	n := 0
	for i := range len(src) {
		if strings.IndexByte(marks, src[i]) >= 0 {
			n++
		}
	}
	if n > maxMarks {
		return nil, nil, fault.Errorf(fault.Broken,
			"%s: front matter with %d lines, entries and brackets, want at most %d", file, n, maxMarks)
	}
	if i := strings.IndexFunc(src, unprintable); i >= 0 {
		return nil, nil, y.errorf(1+above+strings.Count(src[:i], "\n"), "character %q is not allowed in YAML",
			[]rune(src[i:])[0])
	}
	src = strings.TrimPrefix(src, "\uFEFF")
	// empty lines, so that the library's line numbers are the file's
	d := yaml.NewDecoder(strings.NewReader(strings.Repeat("\n", above) + src))
	var root, more yaml.Node
	if err := d.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fault.Errorf(fault.Broken, "%s: front matter: %w", file, err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, nil, y.errorf(more.Line, "a second YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, nil, fault.Errorf(fault.Broken, "%s: front matter: %w", file, err)
	}
	v, err = y.value(root.Content[0])
	return v, y.lines, err
}

// unprintable reports whether PyYAML refuses r anywhere in a text.
func unprintable(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && r < 0xA0 && r != 0x85 ||
		r == 0xFFFE || r == 0xFFFF
}

type yamlReader struct {
	file    string
	done    map[*yaml.Node]any
	open    map[*yaml.Node]bool // being read, to detect a node that contains itself
	anchors map[string]bool
	merged  int            // members merged by <<
	lines   map[string]int // of the last read mapping, finally the root
}

// errorf returns an error at a line of the file.
func (y *yamlReader) errorf(line int, format string, args ...any) error {
	return fault.Errorf(fault.Broken, "%s: line %d: "+format, append([]any{y.file, line}, args...)...)
}

// at is errorf for a node.
func (y *yamlReader) at(n *yaml.Node, format string, args ...any) error {
	return y.errorf(n.Line, format, args...)
}

// value returns the value of a node.
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
			return nil, y.at(n, "value %s: tag %s is not supported", pyjson.Quote(n.Value), tag)
		}
		out, ok := v(n.Value)
		if !ok {
			return nil, y.at(n, "value %s is not a valid %s", pyjson.Quote(n.Value), strings.TrimPrefix(tag, "!!"))
		}
		return out, nil
	case n.Style&yaml.FlowStyle != 0 && slices.ContainsFunc(n.Content, endsInColon):
		// PyYAML reads [a:] and {a:} as a mapping with key a, the library as the string "a:"
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

// mapping reads a mapping. A key that is repeated takes its last value. The key << merges other mappings into it.
func (y *yamlReader) mapping(n *yaml.Node) (any, error) {
	own, merged := pyjson.NewObject(), pyjson.NewObject()
	lines := map[string]int{}
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
			own.Set(k, v)
			lines[k] = value.Line
		case []any, *pyjson.Object:
			return nil, y.at(key, "want a scalar as key, found %s", describe(k))
		default:
			own.Others++
		}
	}
	own.Others += merged.Others
	for _, key := range merged.Names {
		if _, ok := own.Lookup(key); !ok {
			own.Set(key, merged.Values[key])
		}
	}
	y.lines = lines
	return own, nil
}

// merge adds the members of a mapping, or of a list of mappings of which the
// first that has a key wins.
func (y *yamlReader) merge(to *pyjson.Object, n *yaml.Node) error {
	v, err := y.value(n)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range slices.Backward(list) {
		o, ok := v.(*pyjson.Object)
		if !ok {
			return y.at(n, "want mappings to merge, found %s", describe(v))
		}
		if y.merged += 1 + len(o.Names); y.merged > maxMerged {
			return y.at(n, "<< merges more than %d members", maxMerged)
		}
		for _, key := range o.Names {
			to.Set(key, o.Values[key])
		}
		to.Others += o.Others
	}
	return nil
}

// tags has the pattern of each type's unquoted text, in the order in which they are tried. Source: PyYAML's resolver.
var tags = []struct {
	tag  string
	text *regexp.Regexp
}{
	{"!!bool", regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)},
	{"!!float", regexp.MustCompile(
		`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
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
	if len(digits) > pyjson.MaxDigits { // of decimal ones more are an error in Python, too
		return nil, false
	}
	for part := range strings.SplitSeq(digits, ":") { // base 60
		if strings.HasPrefix(part, "-") || strings.HasPrefix(part, "+") {
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
	return json.Number(i.String()), true
}

func readFloat(s string) (any, bool) {
	digits, negative := cutSign(strings.ToLower(s))
	if len(digits) > pyjson.MaxDigits {
		return nil, false
	}
	parts := strings.Split(digits, ":")
	if digits == ".inf" || digits == ".nan" {
		parts[0] = digits[1:]
	}
	sum := 0.0
	// from the last one: the order of the additions decides the last bit
	for i, unit := len(parts)-1, 1.0; i >= 0; i, unit = i-1, unit*60 {
		f, err := strconv.ParseFloat(parts[i], 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, false
		}
		sum += float64(f * unit)
	}
	if negative {
		sum = -sum
	}
	return spell(s, sum), true
}

// spell returns a float as in JSON, unchanged if possible.
func spell(written string, f float64) json.Number {
	if n, err := pyjson.Parse([]byte(written)); err == nil && n == any(json.Number(written)) &&
		pyjson.IsFloat(json.Number(written)) {
		return json.Number(written)
	}
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	n := json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	if !pyjson.IsFloat(n) {
		n += ".0"
	}
	return n
}

// timestamp captures year, month, day, hour, minute, second, and the zone's
// hours and minutes.
var timestamp = regexp.MustCompile(
	`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})` +
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
