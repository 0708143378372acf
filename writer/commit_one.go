package writer

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"ggforge/internal/io/disk"
)

// commitOne gives a single file its name, which replaces an old one in one step. The old one has a second name until
// the new one's is on the disk: after an error it is back, and without an old one there is none.
func commitOne(p *partial, opt Options) (err error) {
	rename := renameNew
	if opt.Force {
		rename = disk.Rename
	}
	aside, err := asideOne(p, opt)
	if err != nil {
		return err
	}
	named := false
	defer func() {
		switch {
		case err == nil && aside != "":
			err = disk.Remove(aside)
		case err == nil:
		case aside != "":
			// where nothing was renamed both are names of one file, and stay so
			e := disk.Rename(aside, p.final)
			if gone := disk.Remove(aside); e != nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				e = errors.Join(e, gone)
			}
			err = errors.Join(err, e)
		case named:
			err = errors.Join(err, renameNew(p.final, p.name)) // where it is discarded
		}
		p.kept = err == nil
	}()
	if opt.step != nil {
		if err := opt.step("rename " + filepath.Base(p.final)); err != nil {
			return err
		}
	}
	// with the lock: RemovePartials comes before it, or finds nothing to remove
	temporaries.Lock()
	err = rename(p.name, p.final)
	if err == nil {
		delete(temporaries.names, p.name)
	}
	temporaries.Unlock()
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			return existsError(p.final)
		}
		return replaceError(p.final, err)
	}
	named = true
	return syncDir(filepath.Dir(p.final))
}

// asideOne gives the old file that p replaces a second name, and returns it; "" where there is no old file, or files
// have one name only.
func asideOne(p *partial, opt Options) (string, error) {
	if !opt.Force || !replacesOpen {
		return "", nil
	}
	aside := p.name + asideSuffix
	if err := removeAside(p.name); err != nil {
		return "", err
	}
	if st, err := disk.Lstat(p.final); err != nil || !st.Mode().IsRegular() {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	if disk.Link(p.final, aside) != nil {
		disk.Remove(aside)
		return "", nil
	}
	return aside, nil
}

// removeAside removes the second name of an old file that a killed run has left.
func removeAside(temp string) error {
	st, err := disk.Lstat(temp + asideSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return notLeftover(temp+asideSuffix, kindOf(st.Mode()))
	}
	return disk.Remove(temp + asideSuffix)
}

// removeOldAside removes the second name of the file that was at path, if a run that was killed has left one: path has
// its old file or its new one.
func removeOldAside(path string) error {
	aside := path + Suffix + asideSuffix
	if _, err := disk.Lstat(aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			err = nil
		}
		return err
	}
	if st, err := disk.Lstat(path); err != nil || !st.Mode().IsRegular() || Locked(path) || Locked(path+Suffix) {
		return nil // the only name that is left, or a run is still writing
	}
	return removeAside(path + Suffix)
}
