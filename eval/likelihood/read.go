package likelihood

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Limits of a file of requests.
const (
	maxLine          = 8 << 20 // bytes of a line
	maxFile          = 1 << 30 // bytes of all lines
	maxContinuations = 4 << 20 // of all lines together; a line has at least one
)

// Open is Read for a file, which may be a pipe.
func Open(path string) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := Read(path, f)
	if e := new(os.PathError); errors.As(err, &e) && e.Op == "read" { // a directory
		err = fault.Errorf(fault.Usage, "%s: want a file with requests: %w", path, e.Err)
	}
	return list, err
}

// Read returns the requests of a stream, each a JSON object in a line of its own; empty lines are passed over. name is
// for messages. An object is one of
//
//	{"context": C, "continuation": C}   the probability of the continuation after the context
//	{"prompt": C, "choices": [C, ...]}  that of each choice after the prompt
//	{"text": C}                         that of the whole text
//
// C is a text or a list of token ids; of one object all are texts or all are ids. Each may have an "id", a string or an
// integer. Errors name the line; other members are an error.
func Read(name string, r io.Reader) ([]Request, error) {
	var list []Request
	continuations := 0
	err := Objects(name, r, func(line int, o *pyjson.Object) error {
		q, err := parse(o)
		if err != nil {
			return err
		}
		if continuations += len(q.Continuations); continuations > maxContinuations {
			return fault.Errorf(fault.Unsupported, "more than %d continuations", maxContinuations)
		}
		q.Line = line
		list = append(list, q)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.Refused, "%s: no requests", name)
	}
	return list, err
}

// Objects calls f with the JSON object of each line of a stream, and the line's number, from 1; empty lines are passed
// over. Lines and the stream are limited. Errors, of f too, name the line.
func Objects(name string, r io.Reader, f func(line int, o *pyjson.Object) error) error {
	all := 0
	lines := bufio.NewReaderSize(r, 1<<16)
	for line := 1; ; line++ {
		text, err := readLine(lines)
		end := errors.Is(err, io.EOF)
		if end {
			err = nil
		}
		if all += len(text); err == nil && all > maxFile {
			err = fault.Errorf(fault.Unsupported, "more than %d bytes of requests", maxFile)
		}
		if err == nil && strings.TrimSpace(string(text)) != "" {
			var v any
			if v, err = pyjson.Parse(text); err != nil {
				err = fault.Errorf(fault.Broken, "%w", err)
			} else if o, ok := v.(*pyjson.Object); ok {
				err = f(line, o)
			} else {
				err = broken("%s, want an object", pyjson.Describe(v))
			}
		}
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", name, line, err)
		}
		if end {
			return nil
		}
	}
}

// readLine returns the next line, with io.EOF if it is the last one.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxLine {
			return nil, fault.Errorf(fault.Unsupported, "more than %d bytes", maxLine)
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func broken(format string, args ...any) error { return fault.Errorf(fault.Broken, format, args...) }

// parse returns the request of a line.
func parse(o *pyjson.Object) (q Request, err error) {
	var names []string
	for _, name := range o.Names {
		if name != "id" {
			names = append(names, name)
			continue
		}
		q.ID, _ = o.Lookup(name)
		_, text := q.ID.(string)
		if _, number := pyjson.Integer(q.ID); !text && !number {
			return q, broken("\"id\": %s, want a string or an integer", pyjson.Describe(q.ID))
		}
	}
	slices.Sort(names)
	switch strings.Join(names, " ") {
	case "context continuation":
		q.Kind = Pair
		if q.Context, err = input(o, "context"); err != nil {
			return q, err
		}
		next, err := input(o, "continuation")
		q.Continuations = []Input{next}
		return q, errors.Join(err, q.alike("continuation"))
	case "choices prompt":
		q.Kind = Choices
		if q.Context, err = input(o, "prompt"); err != nil {
			return q, err
		}
		values, _ := o.Get("choices").([]any)
		if len(values) == 0 {
			return q, broken("\"choices\": %s, want a list of texts or of lists of ids", pyjson.Describe(o.Get("choices")))
		}
		for i, v := range values {
			next, err := InputOf(v)
			if err != nil {
				return q, fmt.Errorf("choice %d: %w", i+1, err)
			}
			q.Continuations = append(q.Continuations, next)
		}
		return q, q.alike("choices")
	case "text":
		q.Kind = WholeText
		text, err := input(o, "text")
		q.Continuations = []Input{text}
		return q, err
	}
	return q, broken("members %q, want \"context\" and \"continuation\", or \"prompt\" and \"choices\", or \"text\", "+
		"and perhaps \"id\"", names)
}

// alike returns an error if of a context and its continuations some are texts and some are ids.
func (q *Request) alike(name string) error {
	for i := range q.Continuations {
		if q.Continuations[i].IsTokens != q.Context.IsTokens {
			return broken("%q: one is a text and one is a list of ids: want the same as before it", name)
		}
	}
	return nil
}

func input(o *pyjson.Object, name string) (Input, error) {
	in, err := InputOf(o.Get(name))
	if err != nil {
		err = fmt.Errorf("%q: %w", name, err)
	}
	return in, err
}

// InputOf returns the text or the list of ids that JSON describes.
func InputOf(v any) (in Input, err error) {
	switch v := v.(type) {
	case string:
		if pyjson.InvalidUTF8([]byte(v)) >= 0 {
			return in, broken("the text has half of a surrogate pair")
		}
		in.Text = v
		return in, nil
	case []any:
		in.IsTokens, in.Tokens = true, make([]int32, len(v))
		for i, x := range v {
			id, ok := pyjson.Integer(x)
			if _, number := x.(json.Number); !number || !ok || !id.IsInt64() || id.Sign() < 0 || id.Int64() > math.MaxInt32 {
				return in, broken("element %d is %s, want the id of a token", i, pyjson.Describe(x))
			}
			in.Tokens[i] = int32(id.Int64())
		}
		return in, nil
	}
	return in, broken("%s, want a text or a list of ids", pyjson.Describe(v))
}
