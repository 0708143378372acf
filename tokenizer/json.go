package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"ggforge/internal/text/pyjson"
)

// isFile reports whether a file exists. An unreadable file exists, too: reading it reports the error.
func isFile(dir Files, name string) bool {
	fi, err := dir.Stat(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return !fi.IsDir()
}

// readObject reads a file that holds one JSON object.
func readObject(dir Files, name string) (*pyjson.Object, error) {
	data, err := dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(name, data)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		return nil, badf(name, "want a JSON object, got %s", pyjson.Describe(v))
	}
	return o, nil
}

// readObjectIfFile is readObject for a file that may be absent; then the object is nil.
func readObjectIfFile(dir Files, name string) (*pyjson.Object, error) {
	if !isFile(dir, name) {
		return nil, nil
	}
	return readObject(dir, name)
}

// readText reads a UTF-8 text file. Line ends CR LF and CR become LF.
func readText(dir Files, name string) (string, error) {
	data, err := dir.ReadFile(name)
	if err != nil {
		return "", err
	}
	if off := pyjson.InvalidUTF8(data); off >= 0 {
		return "", &FormatError{name, int64(off), "not UTF-8 text"}
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), nil
}

// parseJSON parses one JSON value, with errors naming file.
func parseJSON(file string, data []byte) (any, error) {
	v, err := pyjson.Parse(data)
	var bad *pyjson.SyntaxError
	if errors.As(err, &bad) {
		return nil, &FormatError{file, bad.Offset, bad.Msg}
	}
	return v, err
}

// kindName returns the name of a class or type in an error.
func kindName(v any) string {
	if s, ok := v.(string); ok {
		return pyjson.Quote(s)
	}
	return pyjson.Describe(v)
}

// pyInt and pyNumber spell an integer, as text and as a JSON number.
func pyInt(i int) string         { return strconv.Itoa(i) }
func pyNumber(i int) json.Number { return json.Number(pyInt(i)) }

// pythonBase64 decodes base64 as Python does, which skips characters outside the
// alphabet and requires the padding.
func pythonBase64(s string) ([]byte, error) {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", r) {
			return r
		}
		return -1
	}, s)
	return base64.StdEncoding.DecodeString(s)
}
