package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
)

// overwriteSuffix is what the record of Overwrite has after the file's name.
const overwriteSuffix = ".header" + Suffix

const (
	overwriteMagic = "ggforge overwrite 2\n"
	// sector is what a disk writes whole or not at all.
	sector = 512
	// maxOverwrite bounds what Overwrite replaces, in bytes.
	maxOverwrite = 1 << 30
)

// Overwrite replaces the first bytes of the GGUF file at path, its header, which are old, by as many others,
// and leaves the rest alone; of these, what lies between the first that changes and the last is written.
// A record of that is on the disk before the first byte changes, and goes when all have: after a crash
// meanwhile Recover does what is left. A file with other names
// too, or a symbolic link, is an error of kind fault.Usage, one that does not begin with old
// one of kind fault.Broken.
func Overwrite(ctx context.Context, path string, old, replacement []byte) error {
	if len(old) != len(replacement) || len(old) > maxOverwrite {
		return fmt.Errorf("%s: %d bytes instead of %d, want as many, and at most %d", path, len(replacement), len(old),
			maxOverwrite)
	}
	if _, err := Recover(path); err != nil {
		return err
	}
	f, err := owned(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c := changed(st.Size(), old, replacement)
	if c.n == 0 {
		return nil
	}
	name := path + overwriteSuffix
	r, err := exclusive(name, name)
	if err != nil {
		return err
	}
	unfinish(name, false)
	begun := false
	defer func() {
		finished(name)
		if !begun { // nothing was changed
			removeHeld(name, r)
		}
		r.Close()
	}()
	// With the record locked: nobody else changes the file now.
	there := make([]byte, len(old))
	if _, err := io.ReadFull(f, there); err != nil || !bytes.Equal(there, old) {
		return fault.Errorf(fault.Broken, "%s: has changed since it was read", path)
	}
	if err := c.writeTo(r); err != nil {
		return err
	}
	if err := errors.Join(r.Sync(), syncDir(filepath.Dir(path)), ctx.Err()); err != nil {
		return err
	}
	finished(name)
	begun = true
	return finishOverwrite(f, name, r, c)
}

// Recover ends an Overwrite of the file at path that was cut short, and reports whether there was one. A record is
// carried out only if it is the user's own file, its checksum is right, the file has at each place the byte before the
// change or the one after it, and both are GGUF headers with the same tensors at the same places, in which the change
// ends before the tensors' data: else it is an error of kind fault.Refused, and nothing is changed.
func Recover(path string) (bool, error) {
	name := path + overwriteSuffix
	r, err := leftover(name, name)
	if r == nil || err != nil {
		return false, err
	}
	defer r.Close()
	c, err := openRecord(r)
	if errors.Is(err, errTorn) { // it was cut short itself, before anything was changed
		return false, removeHeld(name, r)
	}
	if err != nil {
		return false, err
	}
	f, err := owned(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	same := st.Size() == c.size && c.off+c.n <= c.size
	if same {
		if same, err = c.mixed(f); err == nil && same {
			err = c.headers(f, path)
		}
	}
	if err == nil && !same {
		err = fault.Errorf(fault.Refused, "%s: is of a change to another file than %s; remove it", name, path)
	}
	if err != nil {
		return false, err
	}
	return true, finishOverwrite(f, name, r, c)
}

// Unrecovered returns an error of kind fault.Broken if an Overwrite of the file at path was cut
// short, which Recover has to end.
func Unrecovered(path string) error {
	if _, err := disk.Lstat(path + overwriteSuffix); err == nil {
		return fault.Errorf(fault.Broken, "%s: a change of its metadata was cut short; 'ggtool meta %[1]s' ends it",
			path)
	}
	return nil
}

// finishOverwrite changes f and removes the record of that, r.
func finishOverwrite(f *disk.File, name string, r *disk.File, c change) error {
	err := c.pieces(func(at int64, _, after []byte) error {
		_, err := f.WriteAt(after, c.off+at)
		return err
	})
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := removeHeld(name, r); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// change is what Overwrite does to a file of that size: it replaces n bytes from off on, the
// beginning of a sector.
type change struct {
	size, off, n  int64
	before, after io.ReaderAt // n bytes each
}

// mixed reports whether each byte of f is the one before or the one after. A write that is cut short by the
// system, not by the disk, may end inside a sector.
func (c *change) mixed(f *disk.File) (bool, error) {
	there, same := make([]byte, overwritePiece), true
	err := c.pieces(func(at int64, before, after []byte) error {
		there := there[:len(before)]
		if n, err := f.ReadAt(there, c.off+at); n < len(there) {
			return err
		}
		for i, v := range there {
			same = same && (v == before[i] || v == after[i])
		}
		return nil
	})
	return same, err
}

// headers returns an error unless the file is a GGUF file before and after the change, with the same tensors, and the
// change ends before their data.
func (c *change) headers(f *disk.File, path string) error {
	parse := func(r io.ReaderAt) (*gguf.File, error) {
		return gguf.ParseHeader(path, c.size, func(n int64) ([]byte, error) {
			b := make([]byte, n)
			if got, err := f.ReadAt(b, 0); int64(got) < n {
				return nil, err
			}
			if c.off < n {
				part := b[c.off:min(n, c.off+c.n)]
				if got, err := r.ReadAt(part, 0); got < len(part) {
					return nil, err
				}
			}
			return b, nil
		})
	}
	before, err := parse(c.before)
	var after *gguf.File
	if err == nil {
		after, err = parse(c.after)
	}
	same := func(a, b gguf.Tensor) bool {
		return a.Name == b.Name && a.Type == b.Type && a.Offset == b.Offset && slices.Equal(a.NE, b.NE)
	}
	if err == nil && (c.off+c.n > before.DataStart || before.DataStart != after.DataStart ||
		!slices.EqualFunc(before.Tensors, after.Tensors, same)) {
		err = fmt.Errorf("bytes %d to %d, and tensors begin at %d and %d", c.off, c.off+c.n, before.DataStart,
			after.DataStart)
	}
	if err != nil {
		return fault.Errorf(fault.Refused, "%s: is no change of metadata alone: %w; remove it",
			path+overwriteSuffix, err)
	}
	return nil
}

// overwritePiece is how many bytes are in memory of a change.
const overwritePiece = 1 << 20

// pieces calls use with the bytes before and after, piece by piece; at counts from the beginning of the change.
func (c *change) pieces(use func(at int64, before, after []byte) error) error {
	a, b := make([]byte, min(c.n, overwritePiece)), make([]byte, min(c.n, overwritePiece))
	for at := int64(0); at < c.n; at += overwritePiece {
		n := min(c.n-at, overwritePiece)
		for _, one := range []struct {
			from io.ReaderAt
			to   []byte
		}{{c.before, a[:n]}, {c.after, b[:n]}} {
			if got, err := one.from.ReadAt(one.to, at); got < len(one.to) {
				return err
			}
		}
		if err := use(at, a[:n], b[:n]); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the change that has all sectors in which two beginnings of a file differ.
func changed(size int64, old, replacement []byte) change {
	lo, hi := 0, len(old)
	for lo < hi && old[lo] == replacement[lo] {
		lo++
	}
	for hi > lo && old[hi-1] == replacement[hi-1] {
		hi--
	}
	if lo == hi {
		return change{size: size}
	}
	lo, hi = lo/sector*sector, min((hi+sector-1)/sector*sector, len(old))
	return change{size, int64(lo), int64(hi - lo), bytes.NewReader(old[lo:hi]), bytes.NewReader(replacement[lo:hi])}
}
