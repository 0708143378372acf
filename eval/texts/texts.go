// Package texts reads texts for the evaluator and cuts them into chunks of tokens.
package texts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"unicode/utf8"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/tokenizer/vocab"
)

// Vocabulary returns the tokenizer of a model.
func Vocabulary(m *model.Model) (*vocab.Vocab, error) {
	v, err := vocab.New(m.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	return v, nil
}

// maxText is the longest text in bytes: offsets in it have 32 bits (package vocab). Texts that models are measured with
// have a few megabytes. The limit also stops reading a device, which has no end.
const maxText = 1 << 30

// Load returns the contents of a file, which may be a pipe.
func Load(path string) ([]byte, error) {
	data, err := readAll(path)
	if e := new(fs.PathError); errors.As(err, &e) && e.Op == "read" { // a directory
		err = fault.Errorf(fault.Usage, "%s: want a file with the text: %w", path, e.Err)
	}
	return data, err
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if n := info.Size(); n <= maxText {
		b.Grow(int(n) + bytes.MinRead)
		if _, err := b.ReadFrom(io.LimitReader(f, maxText+1)); err != nil {
			return nil, err
		}
	}
	if info.Size() > maxText || b.Len() > maxText {
		return nil, fault.Errorf(fault.Unsupported, "%s: a text of more than %d bytes", path, maxText)
	}
	return b.Bytes(), nil
}

// Read returns the text in a file, without a newline at its end, and warns of bytes that are not UTF-8. With escapes,
// escape sequences such as \n are replaced by their characters.
func Read(warn func(...string), path string, escapes bool) (string, error) {
	data, err := Load(path)
	if err != nil {
		return "", err
	}
	return Text(warn, path, data, escapes), nil
}

// Text is Read for the contents that Load has returned.
func Text(warn func(...string), path string, data []byte, escapes bool) string {
	data = bytes.TrimSuffix(data, []byte("\n"))
	if escapes {
		data = Unescape(data)
	}
	if at, n := invalid(data); n > 0 {
		warn(fmt.Sprintf(
			"%s: %d bytes are not UTF-8, the first one at offset %d: they become byte tokens or U+FFFD, as the "+
				"runtime takes them", path, n, at))
	}
	return string(data)
}

// invalid returns the offset of the first byte that is not UTF-8, and the number of such bytes.
func invalid(text []byte) (first, n int) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			if n == 0 {
				first = at
			}
			n++
		}
		at += size
	}
	return first, n
}

// Unescape replaces escape sequences by their characters, as the reference's tools do; a backslash before anything else
// stays.
func Unescape(text []byte) []byte {
	plain := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '\'': '\'', '"': '"', '\\': '\\'}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		if c, ok := plain[text[i]]; ok {
			out = append(out, c)
			continue
		}
		if text[i] == 'x' && i+2 < len(text) {
			high, low := digit(text[i+1]), digit(text[i+2])
			if high >= 0 && low >= 0 {
				out = append(out, byte(16*high+low))
				i += 2
				continue
			}
		}
		out = append(out, '\\', text[i])
	}
	return out
}

// digit returns the value of a hexadecimal digit, -1 for another character.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// Chunks returns the chunks of the text in a file as tokens of a model, and the number of tokens of the whole text. It
// warns of characters that the vocabulary lacks, and of chunks that are longer than the context that the model was
// trained with.
func Chunks(warn func(...string), m *model.Model, v *vocab.Vocab, path, text string, opt eval.Text) (r eval.Run,
	all int, err error) {
	ids, err := v.Encode(text, vocab.Options{AddSpecial: true, ParseSpecial: opt.ParseSpecial})
	if err != nil {
		return r, 0, fmt.Errorf("%s: %s: %w", m.Path, path, err)
	}
	if r, err = opt.Cut(v, ids); err != nil {
		return r, len(ids), fmt.Errorf("%s: %w", path, err)
	}
	WarnUnknown(warn, m, v, path, r.Tokens)
	WarnLong(warn, m, r.Chunk)
	return r, len(ids), nil
}

// WarnUnknown warns of tokens that stand for characters that the vocabulary lacks.
func WarnUnknown(warn func(...string), m *model.Model, v *vocab.Vocab, path string, ids []int32) {
	unk, ok := v.Unknown()
	if !ok {
		return
	}
	n := 0
	for _, id := range ids {
		if id == unk {
			n++
		}
	}
	if n > 0 {
		warn(fmt.Sprintf("%s: %d of %d tokens are the unknown token %q: the vocabulary of %s lacks their characters",
			path, n, len(ids), v.Token(unk), m.Path))
	}
}

// WarnLong warns of chunks that are longer than the context that a model was trained with.
func WarnLong(warn func(...string), m *model.Model, chunk int) {
	if n := Context(m); n > 0 && chunk > n {
		warn(fmt.Sprintf("%s: was trained with %d tokens at most, and chunks have %d", m.Path, n, chunk))
	}
}

// Context returns how many tokens a model was trained with at most; 0 if its metadata do not have that.
func Context(m *model.Model) int {
	v, _ := m.Metadata.Get(gguf.ArchKey(m.Architecture(), "context_length"))
	if n, ok := v.Int(); ok && n > 0 && n <= math.MaxInt32 {
		return int(n)
	}
	return 0
}
