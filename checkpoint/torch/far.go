package torch

import (
	"os"
	"sync"

	"ggforge/internal/io/mmap"
)

// far is a storage of an archive that is read by ranges (ReadFrom). Its methods may be called by many goroutines at
// once.
type far struct {
	archive *archive

	mu    sync.Mutex
	entry entry
	copy  *mmap.File // of all its bytes, made on demand
}

// locate returns the offset of the storage in the file.
func (f *far) locate() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.archive.locate(&f.entry)
	return f.entry.off, err
}

// read fills p with bytes of the storage.
func (f *far) read(p []byte, off int64) error {
	at, err := f.locate()
	if err != nil {
		return err
	}
	return f.archive.read(p, at+off)
}

// bytes returns all bytes of the storage, for tensors that are not in row-major order: a few rows of a transposed
// matrix are spread over all of it. The bytes are a memory-mapped, unlinked file in the folder scratch: memory stays
// bounded, and everything is fetched once, in file order.
func (f *far) bytes(scratch string) ([]byte, error) {
	at, err := f.locate()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy == nil {
		if f.copy, err = f.archive.copyPart(at, f.entry.n, scratch); err != nil {
			return nil, err
		}
	}
	return f.copy.Bytes(), nil
}

// close gives up the copy.
func (f *far) close() error {
	if f.copy == nil {
		return nil
	}
	return f.copy.Close()
}

// copyPart returns n bytes of the archive, in a file of the folder scratch.
func (a *archive) copyPart(off, n int64, scratch string) (*mmap.File, error) {
	file, err := os.CreateTemp(scratch, "storage-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // where open files have to keep their names, it goes with the folder
	buf := make([]byte, min(n, 1<<20))
	for at := int64(0); at < n && err == nil; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), n-at)]
		if err = a.read(part, off+at); err == nil {
			_, err = file.WriteAt(part, at)
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return mmap.Map(file, file.Name())
}
