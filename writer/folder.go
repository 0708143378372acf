package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/statefile"
	"ggforge/internal/kernel/parallel"
	"ggforge/model/digest"
)

// The functions of this file are for programs that make a folder of files by several writes, and record the finished
// ones in a file of their own.

// MakeDir makes a directory and its parents, unless they exist, and syncs their names to the disk.
func MakeDir(path string) error {
	var dirs createdDirs
	err := dirs.mkdirAll(filepath.Clean(path))
	dirs.removeIf(err != nil)
	return err
}

// FinishCommits completes, or rolls back, the commits of killed runs in the directories of paths, if they rename one of
// paths: a Write to one of them does the same.
func FinishCommits(paths []string) error { return recoverCommits(paths, nil) }

// Remove removes those of the files that exist, and syncs their directories to the disk.
func Remove(paths ...string) error {
	gone := map[string]bool{}
	for _, path := range paths {
		err := disk.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		gone[filepath.Dir(path)] = gone[filepath.Dir(path)] || err == nil
	}
	for dir, changed := range gone {
		if changed {
			if err := syncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lock locks the regular file at path, which is made if it is not there, until unlock or the end of the process. If
// another process has the lock the error is of kind fault.Usage. Where the file system has no locks, there is none.
func Lock(path string) (unlock func() error, err error) {
	f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o666)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fault.Errorf(fault.Usage, "%s: is %s, want a file", path, kindOf(st.Mode()))
	}
	if err == nil && errors.Is(lock(f), errLocked) {
		err = fault.Errorf(fault.Usage, "%s: another process has locked it", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f.Close, nil
}

// LockNew makes the file at path only to lock it; release removes it. The file of a killed process is replaced. If
// another process has locked the file, the error is of kind fault.Usage.
func LockNew(path string) (release func() error, err error) {
	f, err := exclusive(path, path)
	if err != nil {
		return nil, err
	}
	return func() error { return removeLocked(path, f) }, nil
}

// Locked reports whether a process has locked the file at path.
func Locked(path string) bool {
	f, err := statefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(lock(f), errLocked)
}

// sums returns the files of outputs under their final names, with the sizes and sums of the temporary files.
func sums(ctx context.Context, outputs []*output, workers int) ([]digest.File, error) {
	var parts []*partial
	for _, o := range outputs {
		parts = append(parts, o.parts...)
	}
	files := make([]digest.File, len(parts))
	err := parallel.For(ctx, workers, len(parts), func(i, _ int) error {
		p := parts[i]
		return p.use(func(f *disk.File) error {
			n, sum, err := digest.OfReader(ctx, io.NewSectionReader(f, 0, p.size))
			if err == nil && n != p.size {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			files[i] = digest.File{Name: p.final, Bytes: n, SHA256: sum}
			return nil
		})
	})
	return files, err
}
