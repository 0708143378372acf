package push

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"ggforge/internal/io/disk"
	"ggforge/publish/release"
	"ggforge/writer"
)

// stateName matches the names of files that a push keeps about objects that are not sent completely.
var stateName = regexp.MustCompile(`^[0-9a-f]+\.(grant|tags|pull)$`)

// Leftover is the state of pushes of a folder that have not ended: permissions, which are secrets, and what the server
// has of files.
type Leftover struct {
	Path     string // folder of the state
	Files    []string
	Bytes    int64
	Modified time.Time // time of the last write to one of the files
	Busy     bool      // a process pushes the folder
}

// Left returns the state of pushes of the folder dir that have not ended, nil for none.
func Left(dir string) (*Leftover, error) {
	l := &Leftover{Path: filepath.Join(dir, release.StateDir, pushDir)}
	info, err := disk.Lstat(l.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(l.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !stateName.MatchString(e.Name()) {
			continue // another program's, or removed meanwhile
		}
		l.Files = append(l.Files, filepath.Join(l.Path, e.Name()))
		l.Bytes += info.Size()
		if info.ModTime().After(l.Modified) {
			l.Modified = info.ModTime()
		}
	}
	if l.Files == nil {
		return nil, nil
	}
	slices.Sort(l.Files)
	l.Busy = writer.Locked(filepath.Join(l.Path, heldName))
	return l, nil
}

// Remove removes the files: a later push begins the files anew that the server has not completely. It fails if a
// process pushes the folder.
func (l *Leftover) Remove() error {
	release, err := writer.LockNew(filepath.Join(l.Path, heldName))
	if err != nil {
		return err
	}
	for _, name := range l.Files {
		if e := os.Remove(name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err = errors.Join(err, release()); err == nil {
		disk.Remove(l.Path) // if it is empty
	}
	return err
}
