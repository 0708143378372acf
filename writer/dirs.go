package writer

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// createdDirs are directories that a write has created, each after its parent.
type createdDirs []string

// mkdir makes a directory.
func (m *createdDirs) mkdir(path string) error {
	temporaries.Lock()
	err := disk.Mkdir(path, 0o777)
	if err == nil {
		*m = append(*m, path)
		temporaries.dirs = append(temporaries.dirs, path)
	}
	temporaries.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return noDirectory(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// mkdirAll makes a directory and its parents, unless they exist.
func (m *createdDirs) mkdirAll(path string) error {
	st, err := disk.Stat(path)
	switch {
	case err == nil && !st.IsDir():
		return fault.Errorf(fault.Usage, "%s: not a directory", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := m.mkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	err = m.mkdir(path)
	if errors.Is(err, fs.ErrExist) {
		if st, e := disk.Stat(path); e == nil && st.IsDir() {
			err = nil // another process was faster
		}
	}
	return err
}

// removeIf ends a write: if it has failed, empty ones of the directories are removed.
func (m createdDirs) removeIf(failed bool) {
	temporaries.Lock()
	defer temporaries.Unlock()
	for _, path := range slices.Backward(m) {
		if failed {
			disk.Remove(path)
		}
		temporaries.dirs = slices.DeleteFunc(temporaries.dirs, func(dir string) bool { return dir == path })
	}
}
