package writer

import (
	"errors"
	"os"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// LockedFile is a file that is locked while its metadata are changed: in place, or by a file that replaces it.
type LockedFile struct {
	path         string
	file, record *disk.File // record: nil but after PrepareReplace
}

// LockForChange locks the regular file at path, which must have no other name (hard link). Any other file, and one that
// another process has locked, is an error of kind fault.Usage. Read the file after LockForChange: before, another
// process may have changed it.
func LockForChange(path string) (*LockedFile, error) {
	for range 100 {
		f, err := owned(path)
		if err != nil {
			return nil, err
		}
		if err := lock(f); errors.Is(err, errLocked) { // where there are no locks, nothing stands in the way
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
		}
		// first the record, then the name: the record is removed after the file was replaced
		_, err = disk.Lstat(path + overwriteSuffix)
		recorded := err == nil
		switch still, err := refers(path, f); {
		case err != nil:
			f.Close()
			return nil, err
		case still && recorded:
			f.Close()
			return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
		case still:
			return &LockedFile{path: path, file: f}, nil
		}
		f.Close() // replaced meanwhile
	}
	return nil, fault.Errorf(fault.Usage, "%s: %w", path, errLocked)
}

// PrepareReplace prepares the replacement of the file, right before it: on systems where open files cannot be replaced
// it closes the file, and an empty locked record keeps other processes from it until Close. If this process is killed,
// the empty record means that nothing was changed.
func (h *LockedFile) PrepareReplace() (err error) {
	if replacesOpen {
		return nil
	}
	name := h.path + overwriteSuffix
	if h.record, err = exclusive(name, name); err != nil {
		return err
	}
	addTemporary(name, false)
	return h.file.Close()
}

// Close gives up the lock.
func (h *LockedFile) Close() error {
	defer h.file.Close()
	if h.record == nil {
		return nil
	}
	name := h.path + overwriteSuffix
	dropTemporary(name)
	return removeLocked(name, h.record)
}

// owned opens a regular file with one name for reading and writing.
func owned(path string) (*disk.File, error) {
	st, err := disk.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fault.Errorf(fault.Usage, "%s: is %s, want a regular file to change in place", path,
			kindOf(st.Mode()))
	}
	f, err := disk.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil, err
	}
	n, err := links(f)
	if err == nil && n > 1 {
		err = fault.Errorf(fault.Usage, "%s: has %d names (hard links), which a change in place would all affect", path,
			n)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
