package imatrix

import (
	"encoding/binary"
	"fmt"

	"ggforge/fault"
	"ggforge/gguf"
)

// legacyReader reads the bytes of a legacy file in order. Its methods check before they read.
type legacyReader struct {
	path   string
	data   []byte
	pos    int
	object string // what is being read, for messages
}

func (r *legacyReader) errorf(at int, format string, args ...any) error {
	return &FormatError{Path: r.path, Offset: int64(at), Object: r.object, Msg: fmt.Sprintf(format, args...)}
}

func (r *legacyReader) rest() int { return len(r.data) - r.pos }

func (r *legacyReader) i32(what string) (int, error) {
	if r.rest() < 4 {
		return 0, r.errorf(r.pos, "%s needs 4 bytes, the file ends after %d", what, r.rest())
	}
	v := int32(binary.LittleEndian.Uint32(r.data[r.pos:]))
	r.pos += 4
	return int(v), nil
}

// items reads a number of items of itemBytes each, at least least, and checks
// that the file has room for them.
func (r *legacyReader) items(what string, least, itemBytes int) (int, error) {
	at := r.pos
	n, err := r.i32(what)
	if err != nil {
		return 0, err
	}
	if n < least {
		return 0, r.errorf(at, "%s is %d, want at least %d: is this an importance matrix?", what, n, least)
	}
	if room := r.rest() / itemBytes; n > room {
		return 0, r.errorf(at, "%s is %d, but the rest of the file has room for %d at most", what, n, room)
	}
	return n, nil
}

// cstr reads a length and a string of that length, cut at its first zero byte.
func (r *legacyReader) cstr(what string) (string, error) {
	n, err := r.items("length of the "+what, 0, 1)
	if err != nil {
		return "", err
	}
	s := cString(string(r.data[r.pos : r.pos+n]))
	r.pos += n
	return s, nil
}

func (m *Matrix) parseLegacy(data []byte) error {
	m.Legacy = true
	r := &legacyReader{path: m.Path, data: data, object: "header"}
	const minEntry = 4 + 4 + 4 + 4 // with an empty name and one value
	n, err := r.items("number of entries", 1, minEntry)
	if err != nil {
		return err
	}
	if n > gguf.MaxTensors { // as in a GGUF file
		return fault.Errorf(ErrUnsupported, "%s: %d entries, want at most %d", m.Path, n, gguf.MaxTensors)
	}
	at := make(map[string]int) // name -> place in m.entries
	for i := range n {
		r.object = fmt.Sprintf("entry %d", i)
		e, err := r.entry()
		if err != nil {
			return err
		}
		if k, ok := at[e.Name]; ok {
			m.Duplicates = append(m.Duplicates, e.Name)
			m.entries[k] = e
			continue
		}
		at[e.Name] = len(m.entries)
		m.entries = append(m.entries, e)
	}

	r.object = "trailer"
	if r.rest() == 0 {
		return nil
	}
	if m.Chunks, err = r.i32("number of chunks"); err != nil || r.rest() == 0 {
		return err
	}
	dataset, err := r.cstr("dataset name")
	if dataset != "" {
		m.Datasets = []string{dataset}
	}
	return err
}

func (r *legacyReader) entry() (e Entry, err error) {
	if e.Name, err = r.cstr("name"); err != nil {
		return e, err
	}
	r.object += " " + quote(e.Name)
	if e.Calls, err = r.i32("number of calls"); err != nil {
		return e, err
	}
	n, err := r.items("number of values", 1, 4)
	if err != nil {
		return e, err
	}
	e.raw = r.data[r.pos : r.pos+4*n : r.pos+4*n]
	r.pos += 4 * n
	return e, nil
}
