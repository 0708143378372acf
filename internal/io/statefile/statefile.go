// Package statefile reads and writes state files, from which a later run resumes.
//
// Such a file is believed by a program that the user trusts, and lies in folders that others may have filled. So
// it is read only if it is a regular file, no link, of the user's own, and whole; and it is of a version and belongs to
// something:
//
//	"ggforge state NAME VERSION\n"
//	u32  n, little-endian                u64  m, little-endian
//	n    the run it belongs to           m    the body
//	32   SHA-256 of all bytes before
//
// Nothing follows. The sizes are compared with that of the file and with the limit of its kind before anything is read.
//
// Logs that grow while a run goes on, and files that other programs read, too, have forms and
// checksums of their own (Seal makes one); they are opened by Open or Map, which check their owner.
package statefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
)

// Kind is a kind of files of state.
type Kind struct {
	Name    string // a word or two, without digits: it begins the file
	Version int    // of the body's form; a file of another one is refused
	Max     int64  // bytes of a body, at most
}

// maxOf bounds the description of the run that a file belongs to, in bytes.
const maxOf = 64 << 10

// firstWords begin every file of state.
const firstWords = "ggforge state "

// Magic returns how files of the kind begin.
func (k Kind) Magic() string { return fmt.Sprintf("%s%s %d\n", firstWords, k.Name, k.Version) }

// head returns the bytes before a body of n bytes.
func (k Kind) head(of string, n int64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(k.Magic()), uint32(len(of)))
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	return append(b, of...)
}

// Errors for files that cannot be used. ErrOther is of kind fault.Refused, ErrDamaged of kind fault.Broken.
var (
	ErrDamaged = fault.Errorf(fault.Broken, "damaged")
	ErrOther   = fault.Errorf(fault.Refused, "of another run")
)

// File is a file to write: a body that belongs to something.
type File struct {
	Size int64
	head []byte
	body io.WriterTo
	n    int64
}

// File returns the file of a body of n bytes that belongs to of.
func (k Kind) File(of string, n int64, body io.WriterTo) *File {
	head := k.head(of, n)
	return &File{Size: int64(len(head)) + n + sha256.Size, head: head, body: body, n: n}
}

// WriteTo implements io.WriterTo.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	h := sha256.New()
	both := io.MultiWriter(w, h)
	k, err := both.Write(f.head)
	n := int64(k)
	if err != nil {
		return n, err
	}
	m, err := f.body.WriteTo(both)
	n += m
	if err == nil && m != f.n {
		err = fmt.Errorf("the body has %d bytes, want %d", m, f.n)
	}
	if err != nil {
		return n, err
	}
	k, err = w.Write(h.Sum(nil))
	return n + int64(k), err
}

// Write writes a file in one step: it is on the disk, whole, when it has its name, in place of an older one. It is
// readable by the user alone. Only one process writes a file at a time.
func (k Kind) Write(path, of string, body []byte) (err error) {
	if int64(len(body)) > k.Max || len(of) > maxOf {
		return fault.Errorf(fault.Unsupported, "%s: a body of %d bytes, want at most %d", path, len(body), k.Max)
	}
	temp := path + ".new"
	f, err := disk.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|disk.NoFollow, 0o600)
	if errors.Is(err, fs.ErrExist) { // of a run that was killed in this moment
		var info fs.FileInfo
		if info, err = disk.Lstat(temp); err == nil {
			err = own(temp, info)
		}
		if err == nil {
			err = disk.Remove(temp)
		}
		if err == nil {
			f, err = disk.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|disk.NoFollow, 0o600)
		}
	}
	if err != nil {
		return err
	}
	_, err = k.File(of, int64(len(body)), bytes.NewReader(body)).WriteTo(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = disk.Rename(temp, path)
	}
	if err != nil {
		disk.Remove(temp)
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// Read returns the body of a file and the run that it belongs to. Errors have the cause fs.ErrNotExist, ErrDamaged,
// ErrOther for a file of another version, or are of kind fault.Usage for another user's file, and fault.Broken for a
// file that is not a state file.
func (k Kind) Read(path string) (of string, body []byte, err error) {
	f, err := Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	if most := int64(len(k.head("", 0))) + maxOf + k.Max + sha256.Size; info.Size() > most {
		return "", nil, fault.Errorf(ErrDamaged, "%s: has %d bytes, want at most %d; remove it to start over", path,
			info.Size(), most)
	}
	// Only after the sizes fit is there room for the body: a file without blocks on the disk may have any size.
	head := make([]byte, min(info.Size(), int64(len(k.head("", 0)))))
	if _, err := io.ReadFull(f, head); err != nil {
		return "", nil, err
	}
	if _, _, err := k.sizes(path, head, info.Size()); err != nil {
		return "", nil, err
	}
	data := make([]byte, info.Size())
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return "", nil, err
	}
	return k.Parse(path, data)
}

// ReadOf is Read of a file that belongs to of: for another one the error has the cause ErrOther.
func (k Kind) ReadOf(path, of string) ([]byte, error) {
	found, body, err := k.Read(path)
	if err == nil && found != of {
		err = fault.Errorf(ErrOther, "%s: belongs to %q, want %q; remove it to start over", path, found, of)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// sizes returns from the head of a file of size bytes the length of the description of its run, and that
// of its body.
func (k Kind) sizes(path string, head []byte, size int64) (of, body int64, err error) {
	magic := k.Magic()
	if len(head) < len(magic) || string(head[:len(magic)]) != magic {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		if kind, ok := strings.CutPrefix(string(line), firstWords+k.Name+" "); ok {
			return 0, 0, fault.Errorf(ErrOther, "%s: made by another version (%.20q, want %d); remove it to start over",
				path, kind, k.Version)
		}
		return 0, 0, fault.Errorf(fault.Broken,
			"%s: begins with %.40q, want %q: not what a run of this version keeps; remove it to start over",
			path, line, magic)
	}
	if len(head) < len(magic)+12 {
		return 0, 0, fault.Errorf(ErrDamaged, "%s: ends after %d bytes; remove it to start over", path, size)
	}
	of = int64(binary.LittleEndian.Uint32(head[len(magic):]))
	n := binary.LittleEndian.Uint64(head[len(magic)+4:])
	if n > uint64(k.Max) || of > maxOf || size != int64(len(magic)+12)+of+int64(n)+sha256.Size {
		return 0, 0, fault.Errorf(ErrDamaged,
			"%s: has %d bytes, but its head gives %d and %d, at most %d; remove it to start over", path, size,
			of, n, k.Max)
	}
	return of, int64(n), nil
}

// Parse is Read of the bytes of a file; path is for messages. The body lies in data.
func (k Kind) Parse(path string, data []byte) (of string, body []byte, err error) {
	n, m, err := k.sizes(path, data, int64(len(data)))
	if err != nil {
		return "", nil, err
	}
	end := len(data) - sha256.Size
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return "", nil, fault.Errorf(ErrDamaged, "%s: its SHA-256 is %x, and it ends with %x; remove it to start over",
			path, sum, data[end:])
	}
	at := int64(end) - m
	return string(data[at-n : at]), data[at:end:end], nil
}

// Open opens a regular file of the user's own for reading. A link and another kind of file are errors of kind
// fault.Broken, another user's of kind fault.Usage.
func Open(path string) (*disk.File, error) { return OpenFile(path, os.O_RDONLY) }

// OpenFile is Open with flags of os.OpenFile; it makes no file.
func OpenFile(path string, flag int) (*disk.File, error) {
	before, err := disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := own(path, before); err != nil {
		return nil, err
	}
	f, err := disk.OpenFile(path, flag|disk.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(before, now) {
		err = fault.Errorf(fault.Usage, "%s: another file has taken its name", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Map is Open of a file that is mapped.
func Map(path string) (*mmap.File, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return mmap.Map(f.OS(), path)
}

// Sealed is a file that ends with the SHA-256 of the bytes before: in a format that other programs read, too, which
// ignore bytes after its end.
type Sealed struct {
	Size int64
	from io.WriterTo
}

// Seal returns the file of the n bytes that from writes, with their sum.
func Seal(from io.WriterTo, n int64) *Sealed { return &Sealed{n + sha256.Size, from} }

// WriteTo implements io.WriterTo.
func (s *Sealed) WriteTo(w io.Writer) (int64, error) {
	h := sha256.New()
	n, err := s.from.WriteTo(io.MultiWriter(w, h))
	if err != nil {
		return n, err
	}
	k, err := w.Write(h.Sum(nil))
	return n + int64(k), err
}

// Unseal returns the bytes of a Sealed without the sum; path is for messages. Errors have the cause ErrDamaged.
func Unseal(path string, data []byte) ([]byte, error) {
	end := len(data) - sha256.Size
	if end < 0 {
		return nil, fault.Errorf(ErrDamaged, "%s: has %d bytes, want at least %d; remove it to start over", path,
			len(data), sha256.Size)
	}
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return nil, fault.Errorf(ErrDamaged,
			"%s: damaged, or made by another version: its SHA-256 is %x, and it ends with %x; remove it to start over",
			path, sum, data[end:])
	}
	return data[:end:end], nil
}

// Check returns an error of kind fault.Broken or fault.Usage unless a regular file of the user's own is at path.
func Check(path string) error {
	info, err := disk.Lstat(path)
	if err != nil {
		return err
	}
	return own(path, info)
}

func own(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular(): // nor a link to one
		return fault.Errorf(fault.Broken, "%s: is not a regular file, want one that a run has left; remove it", path)
	case !disk.Own(path, info):
		return fault.Errorf(fault.Usage,
			"%s: belongs to another user: runs resume from their own user's state files only", path)
	}
	return nil
}
