package quantize

import (
	"fmt"
	"regexp"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/text/nearest"
)

// TensorTypeRule gives a type to all tensors whose name a pattern matches.
type TensorTypeRule struct {
	Pattern string // as written, lower case
	Type    gguf.Type
	re      *regexp.Regexp
}

// String returns the rule as CompileTensorRule takes it.
func (r TensorTypeRule) String() string { return r.Pattern + "=" + r.Type.String() }

// Match reports whether the pattern occurs in name.
func (r TensorTypeRule) Match(name string) bool { return r.re.MatchString(name) }

// CompileTensorRule reads "pattern=type". The pattern ends at the first "=" and
// is an ECMAScript regular expression without look-ahead and back-references; it
// is lower-cased as a whole first, so that \D means \d, as in the reference.
func CompileTensorRule(s string) (TensorTypeRule, error) {
	fail := func(format string, args ...any) (TensorTypeRule, error) {
		return TensorTypeRule{}, fault.Errorf(fault.Usage, "tensor rule %q: %s", s, fmt.Sprintf(format, args...))
	}
	pattern, name, ok := strings.Cut(s, "=")
	if strings.HasSuffix(pattern, "(?") {
		return fail("look-ahead is not supported")
	}
	if !ok || pattern == "" || name == "" {
		return fail("want pattern=type")
	}
	typ, ok := gguf.ParseType(name)
	if !ok {
		return fail("unknown type %q%s", name, nearest.Hint(name, gguf.TypeNames()))
	}
	pattern = lowerASCII(pattern)
	expr, err := translateECMA(pattern)
	if err != nil {
		return fail("%v", err)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return fail("%v", err)
	}
	return TensorTypeRule{pattern, typ, re}, nil
}

// maxRules is the largest size of a file of tensor rules, in bytes. Compiled expressions take many times as much
// memory.
const maxRules = 1 << 20

// ReadTensorRules reads a file of tensor rules as CompileTensorRule takes them,
// separated by white space: at most a mebibyte.
func ReadTensorRules(path string) ([]TensorTypeRule, error) {
	rules, _, err := LoadTensorRules(path)
	return rules, err
}

// LoadTensorRules is ReadTensorRules, and returns the contents of the file, too.
func LoadTensorRules(path string) (rules []TensorTypeRule, data []byte, err error) {
	if data, err = mmap.ReadFile(path, "tensor rules", maxRules); err != nil {
		return nil, nil, err
	}
	for _, s := range strings.FieldsFunc(string(data),
		func(c rune) bool { return strings.ContainsRune(" \t\n\v\f\r", c) }) {
		r, err := CompileTensorRule(s)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		rules = append(rules, r)
	}
	return rules, data, nil
}

// lowerASCII lower-cases the letters A to Z only.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// translateECMA rewrites a lower-case ECMAScript expression for package regexp,
// where the two read the same text differently:
//
//	\a \g \q …   a letter without meaning stands for itself
//	[] [^]       no character, any character
//	(?= (?! \1   not available: an error
//	(?i) …       groups other than (?: are not ECMAScript: an error
func translateECMA(s string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(s); i++ {
		rest := s[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			i++
			c := rest[1]
			switch {
			case '0' <= c && c <= '9':
				return "", fmt.Errorf("%s is not supported", rest[:2])
			case c == 'c' || c == 'u':
				return "", fmt.Errorf("%s is not supported", rest[:2])
			case 'a' <= c && c <= 'z' && !strings.ContainsRune("bdfnrstvwx", rune(c)):
				b.WriteByte(c)
			default:
				b.WriteString(rest[:2])
			}
		case inClass:
			if strings.HasPrefix(rest, "[:") {
				end := strings.Index(rest, ":]")
				if end < 0 {
					return "", fmt.Errorf("missing :] in %s", rest)
				}
				b.WriteString(rest[:end+2])
				i += end + 1
				continue
			}
			inClass = rest[0] != ']'
			b.WriteByte(rest[0])
		case strings.HasPrefix(rest, "[]"):
			b.WriteString(`[^\x00-\x{10ffff}]`)
			i++
		case strings.HasPrefix(rest, "[^]"):
			b.WriteString(`[\x00-\x{10ffff}]`)
			i += 2
		case rest[0] == '[':
			inClass = true
			b.WriteByte('[')
		case strings.HasPrefix(rest, "(?!"):
			return "", fmt.Errorf("look-ahead is not supported")
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return "", fmt.Errorf("invalid group %s", rest)
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String(), nil
}
