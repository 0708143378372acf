package writer

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/windows"

	"ggforge/internal/io/disk"
)

// replacesOpen reports whether a file that is open can be replaced by another one.
const replacesOpen = false

// noFollow is not needed: a file is created, which fails on a link, or has been
// checked before.
const noFollow = disk.NoFollow

// inUse reports whether the file at path is open.
func inUse(path string) bool {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return false
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err == nil {
		windows.CloseHandle(h)
	}
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// links returns the number of hard links of the file.
func links(f *disk.File) (uint64, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return uint64(info.NumberOfLinks), err
}

// fileID returns the number that identifies a file on its disk, whatever its name: a copy has another one.
func fileID(path string) (string, error) {
	f, err := disk.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return strconv.FormatUint(uint64(info.FileIndexHigh)<<32|uint64(info.FileIndexLow), 10), nil
}

// lock takes an exclusive lock on f, or fails at once: with errLocked if another
// process has one. The locked byte is past the end of any file, so that all bytes can be
// read and written.
func lock(f *disk.File) error { return lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// lockShared is lock for a shared lock.
func lockShared(f *disk.File) error { return lockFile(f, 0) }

func lockFile(f *disk.File, how uint32) error {
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := disk.Do(disk.OpLock, f.Name(), func() error {
		return windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }

// renameNew renames a file to a name that is free: it never replaces one.
func renameNew(from, to string) error {
	a, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	b, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	err = disk.Renaming(from, to, func() error { return windows.MoveFileEx(a, b, windows.MOVEFILE_WRITE_THROUGH) })
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		err = fs.ErrExist
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
