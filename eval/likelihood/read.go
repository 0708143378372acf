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
	bytes, continuations := 0, 0
	lines := bufio.NewReaderSize(r, 1<<16)
	for line := 1; ; line++ {
		place := fmt.Sprintf("%s: line %d", name, line)
		text, err := readLine(lines)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		if bytes += len(text); bytes > maxFile {
			return nil, fault.Errorf(fault.Unsupported, "%s: more than %d bytes of requests", place, maxFile)
		}
		if strings.TrimSpace(string(text)) != "" {
			q, err := parse(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", place, err)
			}
			if continuations += len(q.Continuations); continuations > maxContinuations {
				return nil, fault.Errorf(fault.Unsupported, "%s: more than %d continuations", place, maxContinuations)
			}
			q.Line = line
			list = append(list, q)
		}
		if end {
			break
		}
	}
	if len(list) == 0 {
		return nil, fault.Errorf(fault.Refused, "%s: no requests", name)
	}
	return list, nil
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
func parse(line []byte) (q Request, err error) {
	v, err := pyjson.Parse(line)
	if err != nil {
		return q, fault.Errorf(fault.Broken, "%w", err)
	}
	o, ok := v.(*pyjson.Object)
	if !ok {
		return q, broken("%s, want an object", pyjson.Describe(v))
	}
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
			next, err := inputOf(v)
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
	in, err := inputOf(o.Get(name))
	if err != nil {
		err = fmt.Errorf("%q: %w", name, err)
	}
	return in, err
}

// inputOf returns a text or a list of ids.
func inputOf(v any) (in Input, err error) {
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
