package writer

import (
	"errors"
	"os"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// Held is a file that is locked while its metadata are changed: in place, or by a file that replaces it.
type Held struct {
	path         string
	file, record *disk.File // record: nil but after Settle
}

// Hold locks the file at path, which has to be a regular file with no other name: what is there may be changed, and
// nothing else changes with it. Anything else, and a file that another process holds, is an error of kind fault.Usage.
// What is to be changed is read after it: before, another process may have changed it.
func Hold(path string) (*Held, error) {
	for range 100 {
		f, err := owned(path)
		if err != nil {
			return nil, err
		}
		if err := lock(f); errors.Is(err, errLocked) { // where there are no locks, nothing stands in the way
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
		}
		// first the record, then the name: it goes after the file was replaced
		_, err = disk.Lstat(path + overwriteSuffix)
		settled := err == nil
		switch still, err := refers(path, f); {
		case err != nil:
			f.Close()
			return nil, err
		case still && settled:
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
		case still:
			return &Held{path: path, file: f}, nil
		}
		f.Close() // replaced meanwhile
	}
	return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
}

// Settle closes the file where files that are open cannot be replaced. It comes right before the file is. An empty
// record, which is locked, then keeps others from the file until Close; left by a run that was killed, it says that
// nothing was changed.
func (h *Held) Settle() (err error) {
	if replacesOpen {
		return nil
	}
	name := h.path + overwriteSuffix
	if h.record, err = exclusive(name, name); err != nil {
		return err
	}
	unfinish(name, false)
	return h.file.Close()
}

// Close gives up the lock.
func (h *Held) Close() error {
	defer h.file.Close()
	if h.record == nil {
		return nil
	}
	name := h.path + overwriteSuffix
	finished(name)
	return removeHeld(name, h.record)
}

// owned opens a regular file with this one name for reading and writing.
func owned(path string) (*disk.File, error) {
	st, err := disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fault.Errorf(fault.Usage, "%s: is %s, want a file to change it where it is", path,
			kindOf(st.Mode()))
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
