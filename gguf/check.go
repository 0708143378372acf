package gguf

import (
	"fmt"

	"ggforge/internal/io/mmap"
)

// Checked is the result of Check.
type Checked struct {
	// File has the valid part: duplicate metadata and tensors count once, and
	// tensors whose data are not in the file are left out. It is nil where the structure
	// cannot be followed to the end of the header.
	File   *File
	Errors []error // errors for which Open refuses the file
	Notes  []error // oddities that Open accepts, but the reference never writes
}

// Check reads the file at path as Open does, but continues after errors, as far as the structure can be followed, and
// notes non-zero padding and bytes outside all tensors. The caller closes File unless it is nil. The error is an I/O
// error.
func Check(path string) (*Checked, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Checked{}
	err = mmap.Guard(path, func() error {
		c.parse(path, m.Bytes())
		return nil
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	if c.File == nil {
		return c, m.Close()
	}
	c.File.mapping = m
	return c, nil
}

// parse reads a file as Parse does.
func (c *Checked) parse(path string, data []byte) {
	r := newReader(path, data)
	r.check = c
	f := &File{Path: path, Size: int64(len(data)), data: data, Alignment: DefaultAlignment}
	if err := r.file(f); err != nil {
		c.Errors = append(c.Errors, err)
		return
	}
	c.File = f
}

// padding notes bytes outside all tensors; order has the tensors by their offsets.
func (r *reader) padding(f *File, order []*Tensor) {
	note := func(at int64, format string, args ...any) {
		r.check.Notes = append(r.check.Notes, r.errorf(int(at), format, args...))
	}
	zero := func(from, to int64) bool {
		from = min(from, f.Size)
		for _, b := range r.data[from:max(from, min(to, f.Size))] {
			if b != 0 {
				return false
			}
		}
		return true
	}
	r.object = "header"
	if !zero(int64(r.pos), f.DataStart) {
		note(int64(r.pos), "padding after it is not zero")
	}
	at := f.DataStart
	for i := range len(order) + 1 {
		next := f.Size
		if i < len(order) {
			next = f.DataStart + order[i].Offset
		}
		if i > 0 && next > at {
			r.object = fmt.Sprintf("tensor %q", order[i-1].Name)
		}
		end := min(next, f.DataStart+Align(at-f.DataStart, f.Alignment))
		if !zero(at, end) {
			note(at, "padding after it is not zero")
		}
		if next > end {
			note(end, "%d bytes after it belong to no tensor", next-end)
		}
		if i < len(order) {
			at = max(at, next+order[i].Bytes())
		}
	}
}
