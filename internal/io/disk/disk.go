// Package disk is the system's files, with a place for faults: every call that a test may want
// to fail passes through a function here. Without a Hook that costs the look at a pointer.
//
// Operations without a method here, such as locks, use the file's descriptor inside Do.
package disk

import (
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// The operations. Those of the last line have no function here: they are done inside Do.
const (
	OpOpen, OpStat, OpRemove, OpRename, OpLink, OpMkdir, OpReadDir = "open", "stat", "remove", "rename", "link",
		"mkdir", "readdir"
	OpRead, OpWrite, OpSeek, OpTruncate, OpSync, OpClose, OpFstat = "read", "write", "seek", "truncate", "sync",
		"close", "fstat"
	OpMap, OpLock, OpReserve, OpFlush, OpCopy = "map", "lock", "reserve", "flush", "copy"
)

// Call is a call to the system that is about to be made.
type Call struct {
	Op   string
	Path string
	To   string   // the second name of a rename or a link
	Off  int64    // where bytes are read or written; -1 where the last call ended
	N    int      // number of bytes to be read or written
	Flag int      // how a file is opened, as in os.OpenFile
	File *os.File // the open file, for calls that are about one
}

// Hook makes a call in place of the system, and returns the result for the caller: the number of bytes, for reads and
// writes, and an error. do has the system make the call, of reads and writes only the first n bytes; a Hook calls it
// once, or not at all and returns an error. It is called from several goroutines.
type Hook func(c Call, do func(n int) (int, error)) (int, error)

var hook atomic.Pointer[Hook]

// Install makes h the hook of the process until remove is called. It is for tests.
func Install(h Hook) (remove func()) {
	if !hook.CompareAndSwap(nil, &h) {
		panic("disk: two hooks at once")
	}
	return func() { hook.Store(nil) }
}

// Do calls do, which makes a call to the system for which there is no function here. A Hook sees no
// File of it.
func Do(op, path string, do func() error) error { return call(Call{Op: op, Path: path}, do) }

// call makes a call that is about no bytes.
func call(c Call, do func() error) error {
	if h := hook.Load(); h != nil {
		_, err := (*h)(c, func(int) (int, error) { return 0, do() })
		return err
	}
	return do()
}

// Stat is os.Stat.
func Stat(path string) (info fs.FileInfo, err error) {
	err = call(Call{Op: OpStat, Path: path}, func() (err error) { info, err = os.Stat(path); return err })
	return known(info, err)
}

// Lstat is os.Lstat.
func Lstat(path string) (info fs.FileInfo, err error) {
	err = call(Call{Op: OpStat, Path: path}, func() (err error) { info, err = os.Lstat(path); return err })
	return known(info, err)
}

// Readlink is os.Readlink.
func Readlink(path string) (to string, err error) {
	err = call(Call{Op: OpStat, Path: path}, func() (err error) { to, err = os.Readlink(path); return err })
	return to, err
}

// known returns no information with an error.
func known(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Remove is os.Remove.
func Remove(path string) error {
	return call(Call{Op: OpRemove, Path: path}, func() error { return os.Remove(path) })
}

// Rename is os.Rename.
func Rename(from, to string) error {
	return call(Call{Op: OpRename, Path: from, To: to}, func() error { return os.Rename(from, to) })
}

// Renaming calls do, which renames in another way than Rename.
func Renaming(from, to string, do func() error) error {
	return call(Call{Op: OpRename, Path: from, To: to}, do)
}

// Link is os.Link.
func Link(from, to string) error {
	return call(Call{Op: OpLink, Path: from, To: to}, func() error { return os.Link(from, to) })
}

// Mkdir is os.Mkdir.
func Mkdir(path string, mode fs.FileMode) error {
	return call(Call{Op: OpMkdir, Path: path}, func() error { return os.Mkdir(path, mode) })
}

// MkdirAll is os.MkdirAll.
func MkdirAll(path string, mode fs.FileMode) error {
	return call(Call{Op: OpMkdir, Path: path}, func() error { return os.MkdirAll(path, mode) })
}

// ReadDir is os.ReadDir.
func ReadDir(path string) (list []fs.DirEntry, err error) {
	err = call(Call{Op: OpReadDir, Path: path}, func() (err error) { list, err = os.ReadDir(path); return err })
	return list, err
}

// ReadFile is os.ReadFile.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// File is an open file.
type File struct{ file *os.File }

// OpenFile is os.OpenFile; on Windows, too, the file can be renamed and removed while it is open.
func OpenFile(path string, flag int, mode fs.FileMode) (*File, error) {
	return open(Call{Op: OpOpen, Path: path, Flag: flag},
		func() (*os.File, error) { return openFile(path, flag, mode) })
}

// Open is os.Open.
func Open(path string) (*File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*File, error) {
	return open(Call{Op: OpOpen, Path: dir, Flag: os.O_RDWR | os.O_CREATE | os.O_EXCL},
		func() (*os.File, error) { return os.CreateTemp(dir, pattern) })
}

func open(c Call, do func() (*os.File, error)) (*File, error) {
	f := &File{}
	err := call(c, func() (err error) { f.file, err = do(); return err })
	if err != nil {
		if f.file != nil { // opened, and then the Hook let it fail
			f.file.Close()
		}
		return nil, err
	}
	return f, nil
}

// Of returns a File that was opened by other means.
func Of(file *os.File) *File { return &File{file} }

// OS returns the system's file: operations on it meet no faults.
func (f *File) OS() *os.File { return f.file }

// Fd is that of os.File, for use inside Do.
func (f *File) Fd() uintptr { return f.file.Fd() }

// Name is that of os.File.
func (f *File) Name() string { return f.file.Name() }

// bytes makes a call that is about bytes.
func (f *File) bytes(h Hook, op string, p []byte, off int64, do func(p []byte) (int, error)) (int, error) {
	return h(Call{Op: op, Path: f.Name(), Off: off, N: len(p), File: f.file},
		func(n int) (int, error) { return do(p[:n]) })
}

// ReadAt is that of os.File.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if h := hook.Load(); h != nil {
		return f.bytes(*h, OpRead, p, off, func(p []byte) (int, error) { return f.file.ReadAt(p, off) })
	}
	return f.file.ReadAt(p, off)
}

// WriteAt is that of os.File.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if h := hook.Load(); h != nil {
		return f.bytes(*h, OpWrite, p, off, func(p []byte) (int, error) { return f.file.WriteAt(p, off) })
	}
	return f.file.WriteAt(p, off)
}

// Read is that of os.File.
func (f *File) Read(p []byte) (int, error) {
	if h := hook.Load(); h != nil {
		return f.bytes(*h, OpRead, p, -1, f.file.Read)
	}
	return f.file.Read(p)
}

// Write is that of os.File.
func (f *File) Write(p []byte) (int, error) {
	if h := hook.Load(); h != nil {
		return f.bytes(*h, OpWrite, p, -1, f.file.Write)
	}
	return f.file.Write(p)
}

// Seek is that of os.File.
func (f *File) Seek(off int64, whence int) (at int64, err error) {
	err = call(Call{Op: OpSeek, Path: f.Name(), File: f.file},
		func() (err error) { at, err = f.file.Seek(off, whence); return err })
	return at, err
}

// Truncate is that of os.File.
func (f *File) Truncate(size int64) error {
	return call(Call{Op: OpTruncate, Path: f.Name(), Off: size, File: f.file},
		func() error { return f.file.Truncate(size) })
}

// Sync is that of os.File.
func (f *File) Sync() error { return call(Call{Op: OpSync, Path: f.Name(), File: f.file}, f.file.Sync) }

// Stat is that of os.File.
func (f *File) Stat() (info fs.FileInfo, err error) {
	err = call(Call{Op: OpFstat, Path: f.Name(), File: f.file},
		func() (err error) { info, err = f.file.Stat(); return err })
	return known(info, err)
}

// Close is that of os.File. The file is closed afterwards also where a Hook lets it fail, as the
// system's are.
func (f *File) Close() error {
	err := call(Call{Op: OpClose, Path: f.Name(), File: f.file}, f.file.Close)
	if hook.Load() != nil {
		f.file.Close()
	}
	return err
}
