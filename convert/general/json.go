package general

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"regexp"
	"strconv"
	"unicode/utf8"

	"ggforge/internal/fault"
)

const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

// maxFile bounds the files that are read whole. Model cards and configurations
// stay below 1 MB.
const maxFile = 64 << 20

// readFile returns the contents of a file, nil if there is no regular file of
// that name. The text is valid UTF-8.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fault.Errorf(fault.Broken, "%s: larger than %d bytes", name, maxFile)
	}
	return data, checkUTF8(name, data)
}

func checkUTF8(file string, data []byte) error {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return fault.Errorf(fault.Broken, "%s: byte %d: not UTF-8", file, i)
		}
		i += n
	}
	return nil
}

// readObject reads a JSON object. A file that is not there gives an empty one.
func readObject(fsys fs.FS, name string) (*document, error) {
	data, err := readFile(fsys, name)
	if data == nil || err != nil {
		return &document{file: name}, err
	}
	return parseObject(name, data)
}

// readGeneration reads generation_config.json. A file that is not JSON counts as
// absent, and so does an empty value that is no object.
func readGeneration(fsys fs.FS, warnf func(string, ...any)) (*document, error) {
	doc := &document{file: generationFile}
	data, err := readFile(fsys, generationFile)
	if data == nil || err != nil {
		return doc, err
	}
	v, err := parseJSON(generationFile, data)
	if err != nil {
		warnf("%v: ignored", err)
		return doc, nil
	}
	if _, ok := v.(*object); !ok && !truthy(v) {
		return doc, nil
	}
	return rootObject(generationFile, v)
}

// parseObject parses a JSON object, with errors naming file.
func parseObject(file string, data []byte) (*document, error) {
	if err := checkUTF8(file, data); err != nil {
		return nil, err
	}
	v, err := parseJSON(file, data)
	if err != nil {
		return nil, err
	}
	return rootObject(file, v)
}

func rootObject(file string, v any) (*document, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, fault.Errorf(fault.Broken, "%s: want an object, found %s", file, describe(v))
	}
	return &document{file, *o}, nil
}

// jsonWord matches strings, so as to skip them, and the words for numbers that
// Python adds to JSON.
var jsonWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// wordKey marks the object {wordKey: "NaN"} by which such a word is replaced.
const wordKey = "\x00number"

// parseJSON parses UTF-8 text as Python's json module does. A name that is
// repeated takes its last value.
func parseJSON(file string, data []byte) (any, error) {
	data = jsonWord.ReplaceAllFunc(data, func(word []byte) []byte {
		if word[0] == '"' {
			return word
		}
		return []byte(`{"\u0000number":"` + string(word) + `"}`)
	})
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	end := d.InputOffset()
	if err == nil {
		var more json.RawMessage
		if err = d.Decode(&more); err == io.EOF {
			return fromJSON(v), nil
		}
		err = errors.New("something follows the JSON value")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		end = syntax.Offset
	}
	line := 1 + bytes.Count(data[:min(int(end), len(data))], []byte("\n"))
	return nil, fault.Errorf(fault.Broken, "%s: line %d: %w", file, line, err)
}

func fromJSON(v any) any {
	switch v := v.(type) {
	case json.Number:
		return parseNumber(string(v))
	case []any:
		for i := range v {
			v[i] = fromJSON(v[i])
		}
		return v
	case map[string]any:
		if word, ok := v[wordKey].(string); ok {
			return parseNumber(word)
		}
		o := newObject()
		for key, v := range v {
			o.set(key, fromJSON(v), 0)
		}
		return o
	}
	return v
}

// parseNumber returns the number s: an integer if it has neither point nor
// exponent. One that is too large becomes infinite.
func parseNumber(s string) number {
	n := number{text: s}
	if i, ok := new(big.Int).SetString(s, 10); ok {
		n.i = i
	}
	n.f, _ = strconv.ParseFloat(s, 64)
	return n
}
