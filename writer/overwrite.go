package writer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ggforge/fault"
	"ggforge/internal/disk"
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

// Overwrite replaces the first bytes of the file at path, which are old, by as many others,
// and leaves the rest alone; of these, what lies between the first that changes and the last is written.
// A record of that is on the disk before the first byte changes, and goes when all have: after a crash
// meanwhile Recover does what is left. A file with other names
// too, or a symbolic link, is an error of kind fault.Usage, one that does not begin with old
// one of kind fault.Broken.
func Overwrite(ctx context.Context, path string, old, replacement []byte) error {
	if len(old) != len(replacement) || len(old) > maxOverwrite {
		return fmt.Errorf("%s: %d bytes instead of %d, want as many, and at most %d", path, len(replacement), len(old), maxOverwrite)
	}
	if _, err := Recover(path); err != nil {
		return err
	}
	f, err := owned(path)
	if err != nil {
		return err
	}
	defer f.Close()
	there := make([]byte, len(old))
	if _, err := io.ReadFull(f, there); err != nil || !bytes.Equal(there, old) {
		return fault.Errorf(fault.Broken, "%s: has changed since it was read", path)
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c := changed(st.Size(), old, replacement)
	if len(c.old) == 0 {
		return nil
	}
	name := path + overwriteSuffix
	r, err := exclusive(name, name)
	if err != nil {
		return err
	}
	unfinish(name, func() { r.Close() })
	begun := false
	defer func() {
		unfinish(name, nil)
		if !begun { // nothing was changed
			removeHeld(name, r)
		}
		r.Close()
	}()
	if _, err := r.Write(c.record()); err != nil {
		return err
	}
	if err := errors.Join(r.Sync(), syncDir(filepath.Dir(path)), ctx.Err()); err != nil {
		return err
	}
	unfinish(name, nil)
	begun = true
	return finishOverwrite(f, name, r, c)
}

// Recover ends an Overwrite of the file at path that was cut short, and reports whether there
// was one.
func Recover(path string) (bool, error) {
	name := path + overwriteSuffix
	r, err := leftover(name, name)
	if r == nil || err != nil {
		return false, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, 2*maxOverwrite+1024))
	if err != nil {
		return false, err
	}
	c, ok := parseRecord(data)
	if !ok { // it was cut short itself, before anything was changed
		return false, removeHeld(name, r)
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
	there := make([]byte, len(c.old))
	if _, err := f.ReadAt(there, c.off); err != nil || st.Size() != c.size || !mixed(there, c.old, c.replacement) {
		return false, fault.Errorf(fault.Refused, "%s: is of a change to another file than %s; remove it", name, path)
	}
	return true, finishOverwrite(f, name, r, c)
}

// Unrecovered returns an error of kind fault.Broken if an Overwrite of the file at path was cut
// short, which Recover has to end.
func Unrecovered(path string) error {
	if _, err := disk.Lstat(path + overwriteSuffix); err == nil {
		return fault.Errorf(fault.Broken, "%s: a change of its metadata was cut short; 'ggtool meta %[1]s' ends it", path)
	}
	return nil
}

// Owned returns an error of kind fault.Usage unless a regular file is at path that has no other
// name: what is there may be changed, and nothing else changes with it.
func Owned(path string) error {
	f, err := owned(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// owned opens a regular file with this one name for reading and writing.
func owned(path string) (*disk.File, error) {
	st, err := disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fault.Errorf(fault.Usage, "%s: is %s, want a file to change it where it is", path, kindOf(st.Mode()))
	}
	f, err := disk.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil, err
	}
	n, err := links(f)
	if err == nil && n > 1 {
		err = fault.Errorf(fault.Usage, "%s: has %d names; changed where it is, all of them would show it", path, n)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// finishOverwrite changes f and removes the record of that, r.
func finishOverwrite(f *disk.File, name string, r *disk.File, c change) error {
	if _, err := f.WriteAt(c.replacement, c.off); err != nil {
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

// mixed reports whether each byte of there is that of a or that of b. A write that is cut short by the
// system, not by the disk, may end inside a sector.
func mixed(there, a, b []byte) bool {
	for i, v := range there {
		if v != a[i] && v != b[i] {
			return false
		}
	}
	return true
}

// change is what Overwrite does to a file of that size: it replaces the bytes from off on, the
// beginning of a sector.
type change struct {
	size, off        int64
	old, replacement []byte // of one length
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
	return change{size, int64(lo), old[lo:hi], replacement[lo:hi]}
}

// record returns
//
//	magic, size of the file u64, off u64, n u64, SHA-256 of all other bytes, n bytes before, n bytes after
func (c change) record() []byte {
	head := []byte(overwriteMagic)
	for _, n := range []int64{c.size, c.off, int64(len(c.old))} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	sum := sha256.Sum256(bytes.Join([][]byte{head, c.old, c.replacement}, nil))
	return bytes.Join([][]byte{head, sum[:], c.old, c.replacement}, nil)
}

func parseRecord(b []byte) (c change, ok bool) {
	const head = len(overwriteMagic) + 24
	if len(b) < head+sha256.Size {
		return c, false
	}
	c.size = int64(binary.LittleEndian.Uint64(b[head-24:]))
	c.off = int64(binary.LittleEndian.Uint64(b[head-16:]))
	n := binary.LittleEndian.Uint64(b[head-8:])
	rest := b[head+sha256.Size:]
	if n > maxOverwrite || uint64(len(rest)) != 2*n || c.off < 0 || c.off > maxOverwrite || c.off%sector != 0 {
		return c, false
	}
	c.old, c.replacement = rest[:n], rest[n:]
	return c, bytes.Equal(c.record(), b)
}
