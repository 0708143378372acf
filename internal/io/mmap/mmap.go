// Package mmap gives the bytes of a file as a slice, read-only and without
// copying where the system can map files; elsewhere the file is read. Long runs
// that are needed once are better read into a buffer with ReadAt, which costs no
// page faults.
//
// A mapping is a window on the file, not a snapshot: the size is fixed at Open,
// and if the file becomes shorter afterwards, or its disk fails, touching the
// lost bytes faults. Code that reads a mapping runs inside Guard, which turns
// such a fault into an error. Writing to the slice faults always.
package mmap

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
)

// ErrChanged is the cause of an error from Guard: bytes that were in the file
// when it was opened can no longer be read. It is of kind fault.Broken.
var ErrChanged = fault.Errorf(fault.Broken, "the file changed while being read, or its disk failed")

// File is a mapped file.
type File struct {
	path  string
	file  *disk.File // for ReadAt; nil when empty or closed, as data, and for more than maxOpen files
	data  []byte
	stamp stamp.Stamp
	ahead ahead
}

// maxOpen is the number of mapped files of the process that stay open, too: all the shards of nearly every model, and
// half of the smallest common limit of descriptors. Further ones are read through their mappings.
const maxOpen = 128

var opened atomic.Int64

// Open maps the regular file at path; links are followed. Errors are
// *fs.PathError and match no kind of package fault: they are of input and
// output.
func Open(path string) (*File, error) {
	// Asked before opening as well, because opening a pipe waits for a writer.
	info, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	f, err := disk.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return mapped(f, path)
}

// ReadFile returns the contents of the regular file at path; what names them in messages. More than most bytes are an
// error of kind fault.Usage.
func ReadFile(path, what string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > most {
		return nil, fault.Errorf(fault.Usage, "%s: more than %d bytes of %s", path, most, what)
	}
	data := make([]byte, f.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	return data, nil
}

// Map is Open for a file that is open already; path is its name. The File closes f.
func Map(f *os.File, path string) (*File, error) { return mapped(disk.Of(f), path) }

func mapped(f *disk.File, path string) (_ *File, err error) {
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	m := &File{path: path, stamp: stamp.Of(path, info)}
	size := info.Size()
	if size == 0 {
		return m, f.Close() // systems refuse to map nothing
	}
	if size < 0 || size > math.MaxInt {
		return nil, &fs.PathError{Op: "map", Path: path, Err: fmt.Errorf("%d bytes do not fit the address space", size)}
	}
	if err = disk.Do(disk.OpMap, path, func() error {
		m.data,
			err = mapFile(f.OS(), int(size))
		return err
	}); err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	if opened.Add(1) <= maxOpen {
		m.file = f
		return m, nil
	}
	opened.Add(-1)
	return m, f.Close()
}

func regular(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("is a directory, want a file")}
	default:
		return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("is not a regular file (mode %v)", mode)}
	}
}

// Bytes returns the whole file: len is its size at Open, and nil is an
// empty file. The slice is read-only and valid until Close.
func (f *File) Bytes() []byte { return f.data }

// Size returns the size of the file at Open, 0 after Close.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Path returns the path given to Open.
func (f *File) Path() string { return f.path }

// Unchanged returns an error of kind fault.Broken unless the path still leads to
// the file as it was at Open: same file, same size, same time of modification.
func (f *File) Unchanged() error { return f.stamp.Check() }

// ReadAt reads from the file, or through the mapping if the file did not stay open. It is
// as in io.ReaderAt, and the file ends at its size at Open. It needs no Guard: bytes lost
// since Open give an error with the cause ErrChanged.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: fs.ErrInvalid}
	}
	want := max(0, min(int64(len(p)), f.Size()-off))
	n := 0
	if want > 0 && f.file == nil {
		if err := Guard(f.path, func() error { n = copy(p, f.data[off:]); return nil }); err != nil {
			return 0, err
		}
	} else if want > 0 {
		var err error
		start := time.Now()
		n, err = f.file.ReadAt(p[:want], off)
		if from, to := f.ahead.read(off, off+want, f.Size(), time.Since(start)); from < to {
			fetch(f.file, from, to)
		}
		if err == io.EOF {
			err = &fs.PathError{Op: "read", Path: f.path, Err: ErrChanged}
		}
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Descriptor is an open file, such as an *os.File.
type Descriptor interface {
	Fd() uintptr
	Name() string
}

// Sequential hints that the file will be read front to back, mostly once. It
// changes speed at most.
func (f *File) Sequential() {
	if len(f.data) > 0 {
		adviseSequential(f.data)
	}
}

// Close ends the mapping; further calls do nothing. Nobody may touch a slice of
// Bytes afterwards: that is a fault at an address that may by then hold
// something else.
func (f *File) Close() error {
	data := f.data
	if data == nil {
		return nil
	}
	f.data = nil
	var err error
	if f.file != nil {
		err = f.file.Close()
		opened.Add(-1)
	}
	if e := unmap(data); e != nil {
		err = &fs.PathError{Op: "unmap", Path: f.path, Err: e}
	}
	return err
}

// Guard calls f, which reads the mapped file at path, and turns a fault on a
// mapped address into an *fs.PathError with that path and the cause ErrChanged.
// It covers the calling goroutine only: a goroutine f starts needs its own
// Guard. Any other panic, a nil dereference included, passes through. Calls
// may nest; the innermost one answers.
func Guard(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface { // only faults other than a nil dereference have an address
			runtime.Error
			Addr() uintptr
		}:
			err = &fs.PathError{Op: "read", Path: path, Err: ErrChanged}
		default:
			panic(r)
		}
	}()
	return f()
}
