package writer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// Writable returns the error with which a write of path would start, such as an existing file: for runs that take long
// before they write.
func Writable(path string, opt Options) error {
	if err := distinct(opt.Inputs, []string{path}); err != nil {
		return err
	}
	if opt.makes(filepath.Dir(path)) {
		return nil
	}
	if j := opt.Journal; !j.shared() || j.Finish && j.inOwnFiles() { // else this is a part of that run, or its end
		if err := refuseParts(path + Suffix + runSuffix); err != nil {
			return err
		}
	}
	return checkFinal(path, opt.Force)
}

// makes reports whether a directory is missing and the write makes it.
func (o *Options) makes(dir string) bool {
	if o.MakeDir == "" || filepath.Clean(o.MakeDir) != filepath.Clean(dir) {
		return false
	}
	_, err := disk.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// checkFinal returns nil if a file may be created as path: its directory exists, and path does not or, with force, is a
// regular file or a link to a regular file or to nothing. The new file replaces the link, not its target. Anything else
// is an error of kind fault.Usage.
func checkFinal(path string, force bool) error {
	dir := filepath.Dir(path)
	switch st, err := disk.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return noDirectory(dir)
	case errors.Is(err, syscall.ENOTDIR) || err == nil && !st.IsDir():
		return fault.Errorf(fault.Usage, "%s: not a directory", dir)
	case err != nil:
		return err
	}
	st, err := disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	link := st.Mode()&fs.ModeSymlink != 0
	through := ""
	if link {
		through = "a link to "
		st, err = disk.Stat(path)
	}
	switch {
	case link && errors.Is(err, fs.ErrNotExist): // it leads to nothing
	case err != nil:
		return err
	case st.IsDir():
		return fault.Errorf(fault.Usage, "%s: is %sa directory, want a file name", path, through)
	case !st.Mode().IsRegular():
		return fault.Errorf(fault.Usage, "%s: is %s%s and cannot be replaced", path, through, kindOf(st.Mode()))
	}
	if link {
		open, err := ofOpenFile(path)
		if err != nil {
			return err
		}
		if open {
			return fault.Errorf(fault.Usage,
				"%s: is a link to a file that a process has open, and cannot be replaced; name that file", path)
		}
	}
	if !force {
		return existsError(path)
	}
	return nil
}

// ofOpenFile reports whether a link leads to one of the links by which a system names open files, as /dev/stdout does:
// these may lead to a regular file.
func ofOpenFile(path string) (bool, error) {
	for range 40 { // as many as Linux follows
		full, err := filepath.Abs(path)
		if err != nil {
			return false, err
		}
		if strings.HasPrefix(full, "/proc/") || strings.HasPrefix(full, "/dev/fd/") {
			return true, nil
		}
		st, err := disk.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode()&fs.ModeSymlink == 0 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if path, err = disk.Readlink(full); err != nil {
			return false, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(full), path)
		}
	}
	return false, nil // too many links: the system does not follow them
}

// existsError is the error for an output that exists, without Force.
func existsError(path string) error {
	return fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "%s: exists already", path))
}

// replaceError returns err, with which the file at path could not be replaced, or a clearer one if the reason is that
// another program has it open, on systems where open files cannot be replaced.
func replaceError(path string, err error) error {
	if err != nil && !replacesOpen && inUse(path) {
		return fault.Errorf(fault.Usage, "%s: cannot be replaced while another program has it open", path)
	}
	return err
}

// noDirectory is the error for a missing directory of an output.
func noDirectory(dir string) error {
	return fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: no such directory", dir)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode.IsRegular():
		return "a file"
	}
	return "no regular file"
}

// distinct returns an error of kind fault.Usage if one of the outputs, or its
// temporary name, or that of its log, names one of the inputs, directly or through
// links.
func distinct(inputs, outputs []string) error {
	var read []fs.FileInfo
	for _, path := range inputs {
		st, err := disk.Stat(path)
		if err != nil {
			return err
		}
		read = append(read, st)
	}
	for _, output := range outputs {
		for _, name := range []string{output, output + Suffix, output + Suffix + progressSuffix,
			output + Suffix + runSuffix} {
			out, err := disk.Stat(name)
			if err == nil && slices.ContainsFunc(read, func(in fs.FileInfo) bool { return os.SameFile(in, out) }) {
				return fault.Errorf(fault.Usage, "%s: output equals input: the run reads this file", name)
			}
		}
	}
	return nil
}
