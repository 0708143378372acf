package gguf

import (
	"bytes"
	"errors"
	"io"

	"ggforge/internal/io/mmap"
)

// File is a GGUF file whose structure has been checked.
type File struct {
	Path      string
	Version   uint32
	BigEndian bool
	Alignment int64
	Metadata  Metadata
	Tensors   []Tensor // in file order
	DataStart int64    // offset of the data section in the file
	Size      int64    // of the whole file

	data    []byte // nil with from
	mapping *mmap.File
	from    io.ReaderAt // see ReadFrom
}

// Open maps the file at path and checks its structure. The caller closes it.
// A broken file gives a *FormatError.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	var f *File
	err = mmap.Guard(path, func() (err error) {
		f, err = Parse(path, m.Bytes())
		return err
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// Close releases the mapping. Slices from Data are invalid afterwards.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Unchanged returns an error of kind fault.Broken if the file on the disk has changed
// since Open.
func (f *File) Unchanged() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Unchanged()
}

// Data returns the bytes of a tensor of this file, in the file's byte order.
// They are valid until Close and must not be written to. nil after ReadFrom.
func (f *File) Data(t *Tensor) []byte {
	if f.from != nil {
		return nil
	}
	off := f.DataStart + t.Offset
	return f.data[off : off+t.Bytes() : off+t.Bytes()]
}

// Reader returns a reader of the bytes of Data, valid as long as they are. Reading
// long runs once costs less this way, and needs no mmap.Guard.
func (f *File) Reader(t *Tensor) io.ReaderAt {
	if f.from != nil {
		return io.NewSectionReader(f.from, f.DataStart+t.Offset, t.Bytes())
	}
	if f.mapping == nil {
		return bytes.NewReader(f.Data(t))
	}
	return io.NewSectionReader(f.mapping, f.DataStart+t.Offset, t.Bytes())
}

// ReadFrom sets the reader of the tensors' data for a File of ParseHeader. r reads the whole file.
func (f *File) ReadFrom(r io.ReaderAt) { f.from = r }

// Descriptor is an open file, such as an *os.File.
type Descriptor interface {
	Fd() uintptr
	Name() string
}

// CopyTo has the system copy n bytes of a tensor's Data, from offset from on, to offset to of dst. If it cannot, the
// error is errors.ErrUnsupported, and the bytes have to be read and written.
func (f *File) CopyTo(dst Descriptor, to int64, t *Tensor, from, n int64) error {
	if f.mapping == nil || from < 0 || n < 0 || from > t.Bytes()-n {
		return errors.ErrUnsupported
	}
	return f.mapping.CopyTo(dst, to, f.DataStart+t.Offset+from, n)
}

// Tensor returns the tensor of that name, nil if there is none.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// Architecture returns general.architecture, "" if the file has none.
func (f *File) Architecture() string {
	return f.Metadata.Architecture()
}
