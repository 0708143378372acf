package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"ggforge/fault"
)

// Suffix is what a file that is being written has after its name.
const Suffix = ".partial"

// partial is a file on its way to its final name.
type partial struct {
	*os.File
	name  string // the temporary one
	final string
	size  int64
	over  bool // committed or discarded

	written atomic.Int64    // bytes
	more    chan<- *partial // told when another writebackBytes are written, unless full
	sent    int64           // the bytes before are on their way to the disk
}

// WriteAt writes as os.File does, and counts.
func (p *partial) WriteAt(b []byte, off int64) (int, error) {
	n, err := p.File.WriteAt(b, off)
	if after := p.written.Add(int64(n)); after/writebackBytes > (after-int64(n))/writebackBytes {
		select {
		case p.more <- p:
		default: // there is enough to do
		}
	}
	return n, err
}

// create makes the temporary file for path, of the given size and all zeros.
// What an interrupted run has left under that name is replaced; another run
// that is still writing it is an error.
func create(path string, size int64, force bool) (*partial, error) {
	if err := checkFinal(path, force); err != nil {
		return nil, err
	}
	name := path + Suffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	p := &partial{File: f, name: name, final: path, size: size}
	if err := p.own(); err != nil {
		f.Close()
		return nil, err
	}
	// emptied first, so that what is left of an earlier run becomes zeros
	if err = f.Truncate(0); err == nil {
		if err = reserve(f, size); err == nil {
			err = f.Truncate(size)
		}
	}
	if err != nil {
		p.discard()
		return nil, fmt.Errorf("%s: reserving %d bytes: %w", path, size, err)
	}
	return p, nil
}

// own makes sure that this process is the only one writing the file.
func (p *partial) own() error {
	if err := lock(p.File); err != nil {
		return fault.Errorf(fault.Usage, "%s: being written by another process: %w", p.name, err)
	}
	mine, err := p.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(p.name)
	if err != nil || !os.SameFile(mine, there) {
		return fault.Errorf(fault.Usage, "%s: another process has just finished it", p.name)
	}
	if !mine.Mode().IsRegular() {
		return fault.Errorf(fault.Usage, "%s: not a regular file", p.name)
	}
	return nil
}

// checkFinal refuses an output that exists, unless force is set, and one that
// is no regular file in any case.
func checkFinal(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return fault.Errorf(fault.Usage, "%s: is a directory, want a file name", path)
	case !st.Mode().IsRegular() && st.Mode()&fs.ModeSymlink == 0:
		return fault.Errorf(fault.Usage, "%s: is no regular file (%v) and cannot be replaced", path, st.Mode().Type())
	case !force:
		return fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "%s: exists already; --force replaces it", path)
	}
	return nil
}

func (p *partial) sync() error { return p.Sync() }

// commit gives the file its name.
func (p *partial) commit(force bool) error {
	if err := checkFinal(p.final, force); err != nil { // it may have appeared meanwhile
		return err
	}
	if !renamesOpen {
		if err := p.Close(); err != nil {
			return err
		}
	}
	if err := os.Rename(p.name, p.final); err != nil {
		return err
	}
	p.over = true
	p.Close() // synced already
	return syncDir(filepath.Dir(p.final))
}

// discard removes the file unless it has been committed.
func (p *partial) discard() {
	if p.over {
		return
	}
	p.over = true
	if !renamesOpen {
		p.Close()
	}
	os.Remove(p.name) // before the lock goes, so that nobody else's file is removed
	p.Close()
}

// distinct returns an error of kind fault.Usage if one of the outputs, or its
// temporary name, names one of the inputs, directly or through links.
func distinct(inputs, outputs []string) error {
	var read []fs.FileInfo
	for _, path := range inputs {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		read = append(read, st)
	}
	for _, output := range outputs {
		for _, name := range []string{output, output + Suffix} {
			out, err := os.Stat(name)
			if err == nil && slices.ContainsFunc(read, func(in fs.FileInfo) bool { return os.SameFile(in, out) }) {
				return fault.Errorf(fault.Usage, "%s: output equals input: the run reads this file", name)
			}
		}
	}
	return nil
}
