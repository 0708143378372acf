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

// overwriteSuffix follows the file's name in the name of the record of an Overwrite.
const overwriteSuffix = ".header" + Suffix

const (
	overwriteMagic = "ggforge overwrite 2\n"
	// sector is the number of bytes that a disk writes whole or not at all.
	sector = 512
	// maxOverwrite bounds the bytes that Overwrite replaces.
	maxOverwrite = 1 << 30
)

// Overwrite replaces the header of the GGUF file at path, old, by a replacement of the same length, in place; it writes
// the sectors between the first and the last byte that changes. A record of the change is on the disk before the first
// byte changes, and removed after the last: after a crash, Recover completes the change. A file with several names or a
// symbolic link is an error of kind fault.Usage, a file that does not begin with old an error of kind fault.Broken.
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
	addTemporary(name, false)
	started := false
	defer func() {
		dropTemporary(name)
		if !started { // nothing was changed
			removeLocked(name, r)
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
	dropTemporary(name)
	started = true
	return finishOverwrite(f, name, r, c)
}

// Recover completes an interrupted Overwrite of the file at path, and reports whether there was one. A record is
// applied only if it is the user's own file, its checksum is right, each byte of the file is the one before or the one
// after the change, and both are GGUF headers with the same tensors at the same offsets, with the change before the
// tensors' data. Otherwise the error is of kind fault.Refused, and nothing is changed.
func Recover(path string) (bool, error) {
	name := path + overwriteSuffix
	r, err := leftover(name, name)
	if r == nil || err != nil {
		return false, err
	}
	defer r.Close()
	c, err := openRecord(r)
	if errors.Is(err, errTorn) { // the record is incomplete: nothing was changed
		return false, removeLocked(name, r)
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
		err = fault.Errorf(fault.Refused, "%s: belongs to a change of another file than %s; remove it", name, path)
	}
	if err != nil {
		return false, err
	}
	return true, finishOverwrite(f, name, r, c)
}

// Unrecovered returns an error of kind fault.Broken if an Overwrite of the file at path was interrupted: Recover has to
// complete it.
func Unrecovered(path string) error {
	if _, err := disk.Lstat(path + overwriteSuffix); err == nil {
		return fault.Errorf(fault.Broken,
			"%s: a change of its metadata was interrupted; 'ggtool meta %[1]s' completes it",
			path)
	}
	return nil
}

// finishOverwrite applies the change to f and removes its record r.
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
	if err := removeLocked(name, r); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// change is a change of a file of size bytes: n bytes from off on, the beginning of a sector, are replaced.
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
		return fault.Errorf(fault.Refused, "%s: not a change of metadata alone: %w; remove it",
			path+overwriteSuffix, err)
	}
	return nil
}

// overwritePiece is the number of bytes of a change that are in memory at a time.
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

// changed returns the change of all sectors in which the headers old and replacement differ.
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
