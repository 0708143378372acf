package general

import (
	"bytes"
	"errors"
	"io/fs"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
)

// Files are the files of a model directory, by names as in package fs. The error for a missing file is fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
	Stat(name string) (fs.FileInfo, error)
}

// readFile returns the contents of a file, nil if it does not exist. The text is valid UTF-8.
func readFile(files Files, name string) ([]byte, error) {
	info, err := files.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return data, checkUTF8(name, data)
}

func checkUTF8(file string, data []byte) error {
	if off := pyjson.InvalidUTF8(data); off >= 0 {
		return fault.Errorf(fault.Broken, "%s: byte %d: not UTF-8", file, off)
	}
	return nil
}

// readObject reads a JSON object. A missing file gives an empty object.
func readObject(files Files, name string) (*document, error) {
	data, err := readFile(files, name)
	if data == nil || err != nil {
		return &document{file: name}, err
	}
	return parseObject(name, data)
}

// readGeneration reads generation_config.json. A file that is not JSON counts as absent, and so does an empty value
// that is not an object. A file beyond the limits of package pyjson is an error.
func readGeneration(files Files, warnf func(string, ...any)) (*document, error) {
	doc := &document{file: generationFile}
	data, err := readFile(files, generationFile)
	if data == nil || err != nil {
		return doc, err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		var bad *pyjson.SyntaxError
		at := atLine(generationFile, data, err)
		if errors.As(err, &bad) && bad.Limit {
			return nil, at
		}
		warnf("%v: ignored", at)
		return doc, nil
	}
	if _, ok := v.(*pyjson.Object); !ok && !pyjson.Truthy(v) {
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
	o, ok := v.(*pyjson.Object)
	if !ok {
		return nil, fault.Errorf(fault.Broken, "%s: want an object, found %s", file, describe(v))
	}
	return &document{file: file, Object: o}, nil
}

// parseJSON parses UTF-8 text as Python's json module does.
func parseJSON(file string, data []byte) (any, error) {
	v, err := pyjson.Parse(data)
	return v, atLine(file, data, err)
}

// atLine gives an error of package pyjson file and line.
func atLine(file string, data []byte, err error) error {
	var bad *pyjson.SyntaxError
	if !errors.As(err, &bad) {
		return err
	}
	return fault.Errorf(fault.Broken, "%s: line %d: %s", file, 1+bytes.Count(data[:bad.Offset], []byte("\n")), bad.Msg)
}
