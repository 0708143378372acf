package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rwkvDefaultVocab is the vocabulary of all published RWKV World models.
const rwkvDefaultVocab = 65536

// rwkvTemplate is llama.cpp's name of RWKV World's chat format. The reference writes the template of that name from its
// source tree; its released package lacks that file and writes the name, as ggforge does.
const rwkvTemplate = "rwkv-world"

// RWKVWorld is the vocabulary of RWKV World. Its file has one token per line, from id 1 on: id, Python literal of a text
// or of bytes, length in bytes. Source: _set_vocab_rwkv_world (conversion/base.py).
//
//	257 '\n\n' 2
//	129 b'\x80' 1
//
// Tokens are written as Python prints their bytes, without the quotes.
type RWKVWorld struct{}

func (RWKVWorld) load(f *files, v *Vocab, opt Options) error {
	if !isFile(f.dir, rwkvFile) {
		return missingf(rwkvFile, "no such file; the architecture has no other tokenizer")
	}
	text, err := readText(f.dir, rwkvFile)
	if err != nil {
		return err
	}
	n := opt.VocabSize
	switch {
	case n == 0:
		n = rwkvDefaultVocab
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens, v.Types = []string{"<s>"}, []TokenType{Control}
	lines, err := textLines(rwkvFile, text)
	if err != nil {
		return err
	}
	if 1+len(lines) > n {
		return badf(rwkvFile, "%d tokens, but config.json says vocab_size %d", 1+len(lines), n)
	}
	for i, line := range lines {
		token, msg := rwkvToken(line)
		if msg != "" {
			return badf(rwkvFile, "line %d: %s", i+1, msg)
		}
		v.Tokens = append(v.Tokens, pythonRepr(token))
		v.Types = append(v.Types, Normal)
	}
	for id := len(v.Tokens); id < n; id++ {
		v.Tokens = append(v.Tokens, "[PAD"+strconv.Itoa(id)+"]")
		v.Types = append(v.Types, Unused)
	}
	v.Model = "rwkv"
	v.writeRows()

	s, err := f.loadSpecial(v, opt, specialKinds, -1)
	if err != nil {
		return err
	}
	if s.template == nil {
		s.template = rwkvTemplate
	}
	// "\n\n" ends a turn; bos and eos in the files are wrong.
	if err := s.setID(v, "", "eot", int64(261)); err != nil {
		return err
	}
	s.replaceID("bos", 0)
	s.replaceID("eos", 0)
	return s.write(v)
}

// rwkvToken parses a line of the vocabulary file; msg is the reason if it is malformed, otherwise "".
func rwkvToken(line string) (token []byte, msg string) {
	first, last := strings.Index(line, " "), strings.LastIndex(line, " ")
	if first < 0 || first == last {
		return nil, "want id, literal and length"
	}
	token, msg = pythonLiteral(strings.TrimLeft(line[first+1:last], " \t"))
	if msg != "" {
		return nil, msg
	}
	if n, ok := pythonInt(line[last+1:]); !ok || n != strconv.Itoa(len(token)) {
		return nil, fmt.Sprintf("length %q, but the token has %d bytes", line[last+1:], len(token))
	}
	return token, ""
}

// pythonLiteral returns the bytes of a Python string or bytes literal: one pair
// of quotes, with b, u or no prefix. Text is encoded as UTF-8.
func pythonLiteral(s string) (b []byte, msg string) {
	const want = "want a Python literal of a text or of bytes"
	s = strings.TrimRight(s, " \t")
	isBytes := strings.HasPrefix(s, "b") || strings.HasPrefix(s, "B")
	if isBytes || strings.HasPrefix(s, "u") || strings.HasPrefix(s, "U") {
		s = s[1:]
	}
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' || s[len(s)-1] != s[0] {
		return nil, want
	}
	quote := s[0]
	s = s[1 : len(s)-1]
	for s != "" {
		c := s[0]
		switch {
		case c == quote:
			return nil, want
		case c != '\\':
			if isBytes && c >= utf8.RuneSelf {
				return nil, want + ": not an ASCII character between the quotes of bytes"
			}
			b, s = append(b, c), s[1:]
			continue
		case len(s) == 1:
			return nil, want
		}
		c, s = s[1], s[2:]
		simple := strings.IndexByte(`\'"abfnrtv`, c)
		digits := 0 // hexadecimal
		switch {
		case simple >= 0:
			b = append(b, "\\'\"\a\b\f\n\r\t\v"[simple])
			continue
		case '0' <= c && c <= '7': // one to three octal digits
			n := 1
			for n < 3 && n-1 < len(s) && '0' <= s[n-1] && s[n-1] <= '7' {
				n++
			}
			code, _ := strconv.ParseUint(string(c)+s[:n-1], 8, 32)
			s = s[n-1:]
			if isBytes {
				b = append(b, byte(code))
			} else {
				b = utf8.AppendRune(b, rune(code))
			}
			continue
		case c == 'x':
			digits = 2
		case c == 'u' && !isBytes:
			digits = 4
		case c == 'U' && !isBytes:
			digits = 8
		case c == 'N' && !isBytes:
			return nil, `\N{…} is not read`
		default: // Python keeps both characters
			b = append(b, '\\')
			if c >= utf8.RuneSelf && isBytes {
				return nil, want
			}
			b = append(b, c)
			continue
		}
		if len(s) < digits {
			return nil, want
		}
		code, err := strconv.ParseUint(s[:digits], 16, 32)
		s = s[digits:]
		switch {
		case err != nil:
			return nil, want
		case isBytes:
			b = append(b, byte(code))
		case !utf8.ValidRune(rune(code)):
			return nil, fmt.Sprintf("want a character, got U+%04X", code)
		default:
			b = utf8.AppendRune(b, rune(code))
		}
	}
	return b, ""
}

// pythonRepr prints bytes as Python's repr does, without b and the quotes. The
// quotes are double only around a single one.
func pythonRepr(token []byte) string {
	quote := byte('\'')
	if strings.IndexByte(string(token), '\'') >= 0 && strings.IndexByte(string(token), '"') < 0 {
		quote = '"'
	}
	var b strings.Builder
	for _, c := range token {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < 0x20 || c >= 0x7F:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
