package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// Suffix follows the final name in the temporary name of a file.
const Suffix = ".partial"

// errLocked: another process has the lock.
var errLocked = errors.New("being written by another process")

// partial is a file under its temporary name.
type partial struct {
	name  string // the temporary one
	final string
	size  int64
	kept  bool // committed, or not to be removed for another reason
	gone  bool // discarded

	mu   sync.RWMutex
	file *disk.File // nil while closed
	info fs.FileInfo
	pool *handles // that may close the file meanwhile; nil for none

	written atomic.Int64    // bytes
	more    chan<- *partial // gets the partial after every writebackBytes, unless full
	sent    int64           // the bytes before are on their way to the disk
}

// use calls f with the open file.
func (p *partial) use(f func(*disk.File) error) error {
	for {
		p.mu.RLock()
		if p.file != nil {
			defer p.mu.RUnlock()
			return f(p.file)
		}
		p.mu.RUnlock()
		if err := p.pool.reopen(p); err != nil {
			return err
		}
	}
}

// WriteAt writes as os.File does, and counts.
func (p *partial) WriteAt(b []byte, off int64) (n int, err error) {
	err = p.use(func(f *disk.File) error {
		n, err = f.WriteAt(b, off)
		return err
	})
	p.wrote(int64(n))
	return n, err
}

// wrote counts n bytes that have been written.
func (p *partial) wrote(n int64) {
	if after := p.written.Add(n); after/writebackBytes > (after-n)/writebackBytes {
		select {
		case p.more <- p:
		default: // there is enough to do
		}
	}
}

// sync makes the contents durable.
func (p *partial) sync() error { return p.use((*disk.File).Sync) }

// close closes the file, and so gives up its lock.
func (p *partial) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}

// temporaries are the temporary files of this process that may be removed at any
// time: those that no commit has started to rename, and journals of such commits.
var temporaries struct {
	sync.Mutex
	names map[string]bool // whether another run can resume from it
	dirs  []string        // that were made for them, each after the one it is in
}

// addTemporary registers a file that may be removed; continued: another run can resume from it.
func addTemporary(name string, continued bool) {
	temporaries.Lock()
	defer temporaries.Unlock()
	if temporaries.names == nil {
		temporaries.names = map[string]bool{}
	}
	temporaries.names[name] = continued
}

// dropTemporary unregisters a file, which may not be removed any more.
func dropTemporary(name string) {
	temporaries.Lock()
	defer temporaries.Unlock()
	delete(temporaries.names, name)
}

// RemovePartials removes the temporary files of all running writes of this process, and the directories that were
// created for them. The process has to exit right after it: no other write can start or end any more. It is for a
// program that does not wait until its writes have noticed that their contexts are done. With terminated it keeps the
// files from which another run can resume, and reports whether there are some.
func RemovePartials(terminated bool) (kept bool) {
	temporaries.Lock() // for good
	for name, continued := range temporaries.names {
		if continued && terminated {
			kept = true
			continue
		}
		disk.Remove(name)
	}
	for _, dir := range slices.Backward(temporaries.dirs) {
		disk.Remove(dir) // if it is empty
	}
	return kept
}

// discard removes the file unless it is to be kept.
func (p *partial) discard() {
	if p.kept || p.gone {
		p.close()
		return
	}
	p.gone = true
	dropTemporary(p.name)
	disk.Remove(p.name) // before the lock goes, so that nobody else's file is removed
	p.close()
}

// create makes the temporary file for path, of the given size and all zeros.
func create(path string, size int64) (*partial, error) {
	p := &partial{name: path + Suffix, final: path, size: size}
	err := removeAside(p.name)
	if err != nil {
		return nil, err
	}
	if p.file, err = exclusive(p.name, path); err != nil {
		return nil, err
	}
	addTemporary(p.name, false)
	if err = reserve(p.file, size); err == nil {
		if err = p.file.Truncate(size); err == nil {
			p.info, err = p.file.Stat()
		}
	}
	if err != nil {
		p.discard()
		return nil, fmt.Errorf("%s: reserving %d bytes: %w", path, size, err)
	}
	return p, nil
}

// exclusive makes the file of that name and locks it. Nothing is opened that is
// there already: temporary files of an interrupted run are removed before, anything
// else is an error of kind fault.Usage. An untrusted checkpoint may hold links
// of that name to any file of the user. final is the name of the finished file.
func exclusive(name, final string) (*disk.File, error) {
	for range 100 {
		f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, 0o666)
		if errors.Is(err, fs.ErrExist) {
			if err := removeLeftover(name, final); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, noDirectory(filepath.Dir(name))
		}
		if err != nil {
			return nil, err
		}
		// Until it is locked, another process may take it for a leftover.
		if err := lock(f); errors.Is(err, errLocked) {
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", name, errLocked)
		}
		switch still, err := refers(name, f); {
		case err != nil:
			removeLocked(name, f)
			return nil, err
		case !still:
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", name, errLocked)
		}
		return f, nil
	}
	return nil, fault.Errorf(fault.Usage, "%s: %w", name, errLocked)
}

// removeLeftover removes a file that an interrupted run has left.
func removeLeftover(name, final string) error {
	f, err := leftover(name, final)
	if f == nil || err != nil {
		return err
	}
	return removeLocked(name, f)
}

// removeLocked removes the file name while f, which is that file, still has the lock: no other process's file is
// removed.
func removeLocked(name string, f *disk.File) error {
	err := disk.Remove(name)
	f.Close()
	return err
}

// leftover opens and locks a file that an interrupted run has left: a regular file
// with this one name, that no process has locked. Anything else is an error of
// kind fault.Usage; nil means that the file does not exist, or no longer.
func leftover(name, final string) (_ *disk.File, err error) {
	st, err := disk.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, notLeftover(name, kindOf(st.Mode()))
	}
	if !disk.Own(name, st) {
		return nil, notLeftover(name, "a file of another user")
	}
	f, err := disk.OpenFile(name, os.O_RDWR|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) {
		return nil, err
	}
	n, err := links(f)
	if err != nil {
		return nil, err
	}
	// final: a commit by links was cut short
	if there, err := disk.Lstat(final); n > 1 && (err != nil || !os.SameFile(st, there) || name == final) {
		return nil, notLeftover(name, fmt.Sprintf("a file with %d names", n))
	}
	switch err := lock(f); {
	case errors.Is(err, errLocked):
		return nil, fault.Errorf(fault.Usage, "%s: %w", name, errLocked)
	case err != nil:
		return nil, fault.Errorf(fault.Usage,
			"%s: left by an interrupted run, or being written by another process; remove it if there is none", name)
	}
	if still, err := refers(name, f); !still {
		return nil, err
	}
	keep = true
	return f, nil
}

// notLeftover returns the error for a temporary name that belongs to something other than a leftover file.
func notLeftover(name, what string) error {
	return fault.Errorf(fault.Usage,
		"%s: is %s, want no file or one that an interrupted run has left; remove it", name, what)
}

// refers reports whether name still is a name of f.
func refers(name string, f *disk.File) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := disk.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// maxOpen is the number of partials of a write that stay open besides the leaders of their sets: all shards of nearly
// every model, and a quarter of the smallest common limit of descriptors. A partial that is not open is not locked.
const maxOpen = 64

// handles keeps no more than maxOpen partials of a write open.
type handles struct {
	mu   sync.Mutex
	open []*partial // the one opened last comes last
}

// add counts p, which is open, and closes another one if it is one too many.
func (h *handles) add(p *partial) error {
	p.pool = h
	h.mu.Lock()
	h.open = append(h.open, p)
	var oldest *partial
	if len(h.open) > maxOpen {
		oldest, h.open = h.open[0], h.open[1:]
	}
	h.mu.Unlock()
	if oldest == nil {
		return nil
	}
	return oldest.close()
}

// reopen opens a partial that has been closed.
func (h *handles) reopen(p *partial) error {
	p.mu.Lock()
	if p.file != nil {
		p.mu.Unlock()
		return nil
	}
	f, err := disk.OpenFile(p.name, os.O_RDWR|noFollow, 0)
	if err == nil {
		if st, statErr := f.Stat(); statErr != nil || !os.SameFile(st, p.info) {
			f.Close()
			err = &fs.PathError{Op: "open", Path: p.name, Err: errors.New("another file has taken its place")}
		}
	}
	if err == nil {
		p.file = f
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return h.add(p)
}

// dirs returns the directories of paths, each once, in order.
func dirs(paths []string) (list []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		if dir := filepath.Dir(path); !seen[dir] {
			seen[dir] = true
			list = append(list, dir)
		}
	}
	return list
}
