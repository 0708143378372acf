package release

import (
	"errors"
	"io/fs"
	"path/filepath"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/model/identity"
	"ggforge/writer"
)

// StateDir is the folder below the output of a release that is not to be published.
const StateDir = stateDir

// SumsName and ManifestName are the last files that a release writes.
const (
	SumsName     = sumsName
	ManifestName = manifestName
)

// Recorded has the sums of the files in a folder that a release knows. The zero value knows none.
type Recorded struct {
	dir   string // absolute
	files map[string]seen
}

// CheckFinished returns the record of a folder: an empty one where no release was made. A release that is being made
// is an error of kind fault.Usage, one that is not finished of kind fault.Incomplete.
func CheckFinished(dir string) (r Recorded, err error) {
	if err := checkStateDir(dir); err != nil {
		return r, err
	}
	if _, err := disk.Lstat(filepath.Join(dir, stateDir, stateName)); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if writer.Locked(filepath.Join(dir, stateDir, lockName)) {
		return r, fault.Errorf(fault.Usage, "%s: another process makes a release in it", dir)
	}
	for _, name := range []string{sumsName, manifestName} {
		if _, err := disk.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return r, fault.Errorf(fault.Incomplete,
				"%s: the release is not finished: there is no %s; make the release again to resume it", dir, name)
		} else if err != nil {
			return r, err
		}
	}
	if r.dir, err = filepath.Abs(dir); err != nil {
		return r, err
	}
	if s, err := readState(dir); err == nil { // a damaged one has no sums: the files are read
		r.files = s.Inputs
	}
	return r, nil
}

// Sum returns the SHA-256 of a file that has not changed since the release took it, "" if that is not known. name has
// slashes.
func (r *Recorded) Sum(name string, now identity.File) string {
	s, ok := r.files[filepath.Join(r.dir, filepath.FromSlash(name))]
	if !ok || s.Bytes != now.Bytes || s.Time != now.Modified.UnixNano() || s.ID != now.String() {
		return ""
	}
	return s.SHA256
}
