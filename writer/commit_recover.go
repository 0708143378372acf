package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
)

// recoverCommits completes the commits of killed runs that list one of the paths. A commit whose files are lost is
// rolled back.
func recoverCommits(paths []string, step func(string) error) error {
	ours := map[string]bool{}
	for _, path := range paths {
		ours[filepath.Clean(path)] = true
		if err := removeOldAside(path); err != nil {
			return err
		}
	}
	for _, dir := range dirs(paths) {
		if st, err := disk.Stat(dir); err != nil || !st.IsDir() {
			continue // creating the files reports the error
		}
		list, err := disk.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			continue // files can be created anyway
		}
		if err != nil {
			return err
		}
		for _, e := range list {
			if commitName.MatchString(e.Name()) && e.Type().IsRegular() {
				c := commitAt(dir, e.Name())
				c.step = step
				if err := c.recover(func(f *commitFile) bool { return ours[filepath.Clean(c.final(f))] }); err != nil {
					return fmt.Errorf("%s: recovery of an interrupted change of names: %w", c.path(), err)
				}
			}
		}
	}
	return nil
}

// recover completes a commit if touches is true for one of its files. The journal of another user is refused: in a
// directory such as /tmp it could have us rename or remove files of our own.
func (c *commit) recover(touches func(*commitFile) bool) error {
	st, err := disk.Lstat(c.path())
	foreign := err == nil && !disk.Own(c.path(), st)
	var f *disk.File
	if err == nil {
		how := os.O_RDWR
		if foreign {
			how = os.O_RDONLY
		}
		f, err = disk.OpenFile(c.path(), how|noFollow, 0)
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || foreign {
			err = nil // another run has just finished it, or it is unreadable
		}
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) {
		return err
	}
	if n, err := links(f); err != nil || n != 1 {
		return err
	}
	if foreign {
		if _, err := c.read(f); err != nil || !slices.ContainsFunc(c.Files,
			func(f commitFile) bool { return touches(&f) }) {
			return nil
		}
		return fault.Errorf(fault.Usage, "the journal belongs to another user, whose next run recovers it")
	}
	lockErr := lock(f)
	torn, err := c.read(f)
	if err != nil {
		return err
	}
	still, err := refers(c.path(), f)
	if err != nil {
		return err
	}
	if torn && lockErr == nil && still {
		return c.discard(f)
	}
	if !slices.ContainsFunc(c.Files, func(f commitFile) bool { return touches(&f) }) {
		return nil
	}
	if errors.Is(lockErr, errLocked) {
		return fault.Errorf(fault.Usage, "%w", errLocked)
	}
	if !still {
		return nil
	}
	c.file = f
	if c.done {
		return c.sweep()
	}
	lost := false
	for i := range c.Files {
		s, err := c.look(i)
		if err != nil {
			return err
		}
		f := &c.Files[i]
		meant := func(path, want string) error {
			if id, err := fileID(path); err != nil {
				return err
			} else if id != want { // such as a journal that came with a checkpoint
				return fault.Errorf(fault.Usage,
					"%s is not the file that the journal was written for; remove the journal", path)
			}
			return nil
		}
		if s.aside {
			if err := meant(c.aside(i), f.Replaces); err != nil {
				return err
			}
		}
		switch {
		case s.temp:
			err = meant(c.temp(f), f.ID)
		case s.placed(f):
			err = meant(c.final(f), f.ID)
		default:
			lost = true
		}
		if err != nil {
			return err
		}
	}
	if !lost {
		err := c.forward()
		if err == nil {
			err = c.finish()
		}
		if err == nil {
			return c.sweep()
		}
	}
	if err := c.back(); err != nil {
		return err
	}
	for i := range c.Files {
		f := &c.Files[i]
		if id, err := fileID(c.temp(f)); err != nil || id != f.ID { // gone, or not the file that the journal means
			continue
		}
		if err := removeLeftover(c.temp(f), c.final(f)); err != nil {
			return err
		}
	}
	return nil
}

// left returns the kind of leftover of the journal, LeftUnknown for a file that is not a journal, and the reason why
// recover leaves it alone, "" if it does not.
func (c *commit) left() (kind LeftoverKind, stays string) {
	st, err := disk.Lstat(c.path())
	if err != nil {
		return LeftCommit, "" // recover reports the error
	}
	if !disk.Own(c.path(), st) {
		return LeftCommit, "belongs to another user"
	}
	f, err := disk.OpenFile(c.path(), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return LeftCommit, ""
	}
	defer f.Close()
	if torn, err := c.read(f); err == nil && !torn && len(c.Files) == 0 {
		return LeftUnknown, ""
	}
	if n, err := links(f); err == nil && n != 1 {
		stays = fmt.Sprintf("has %d names", n)
	}
	return LeftCommit, stays
}

// discard removes a torn journal: nothing was renamed, since that comes after the journal is on the disk. A journal
// with files that were moved aside was damaged later, and is an error.
func (c *commit) discard(f *disk.File) error {
	entries, err := disk.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "ggforge-"+c.token+"-") {
			return fault.Errorf(fault.Broken,
				"is damaged, and %s was moved aside to be replaced: rename it back, and remove the journal",
				filepath.Join(c.dir, e.Name()))
		}
	}
	return removeLocked(c.path(), f)
}

// read reads the journal. It is torn if the run was killed while writing it, or the power failed before it was on the
// disk, which may have zeros in place of any write. A file of another format gives no files; a journal of an earlier
// version, or with files outside its directory, is an error.
func (c *commit) read(f *disk.File) (torn bool, err error) {
	data, err := io.ReadAll(io.LimitReader(f, 2*maxCommit))
	if err != nil {
		return false, err
	}
	_, text, err := commitKind.Parse(c.path(), data)
	magic := commitKind.Magic()
	switch {
	case err == nil:
		if err := json.Unmarshal(text, c); err != nil {
			return false, fault.Errorf(fault.Broken, "not a journal: %w", err)
		}
	case strings.HasPrefix(magic, string(data)), strings.HasPrefix(string(data), magic),
		strings.Trim(string(data[:min(len(data), len(magic))]), "\x00") == "":
		return true, nil
	case errors.Is(err, statefile.ErrOther), strings.HasPrefix(string(data), formerCommit):
		return false, fault.Errorf(fault.Refused,
			"made by another version of ggforge, which can recover it; remove the journal to leave the files as they are")
	}
	for _, f := range c.Files {
		if f.Name == "" || f.Name == "." || f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) {
			c.Files = nil
			return false, fault.Errorf(fault.Broken, "lists a file outside its directory: %q", f.Name)
		}
	}
	return false, nil
}
