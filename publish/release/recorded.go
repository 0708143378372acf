package release

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
	"ggforge/model/digest"
	"ggforge/model/identity"
	"ggforge/publish/card"
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

// Unsigned are the files and folders of a release that its signature does not cover: the state, the cache that the
// hub's client leaves in a download, and the card, which people edit on the hub.
var Unsigned = []string{".cache", stateDir, card.FileName}

// journals are names of temporary files and journals of this module's commands.
var journals = regexp.MustCompile(
	`\.partial(\..*)?$|^ggforge-.*\.(commit|done|old)$|^ggforge-upload-|\.part-[0-9]+-of-[0-9]+$|\.upload$`)

// Private reports whether a file or folder of that name is never published: hidden ones (.git, .env, .cache,
// .ggtool-release), temporary files and journals. name is the last part of a path.
func Private(name string) bool { return strings.HasPrefix(name, ".") || journals.MatchString(name) }

const (
	maxSums   = 64 << 20 // bytes of SHA256SUMS
	maxSummed = 10_000   // files in it
)

// CheckLists compares the files of a folder with its SHA256SUMS and with the manifest of a release, where it has them.
// find returns a file by its name, nil for none. Differences are an error of kind fault.Broken.
func CheckLists(dir string, find func(name string) *digest.File) error {
	var wrong []string
	compare := func(list, name, sum string, bytes int64) {
		one := find(name)
		switch {
		case one == nil:
			wrong = append(wrong, fmt.Sprintf("%s: is in %s, and not in the folder", name, list))
		case bytes >= 0 && one.Bytes != bytes:
			wrong = append(wrong, fmt.Sprintf("%s: has %d bytes, want %d as in %s", name, one.Bytes, bytes, list))
		case one.SHA256 != sum:
			wrong = append(wrong, fmt.Sprintf("%s: SHA-256 is %s, want %s as in %s", name, one.SHA256, sum, list))
		}
	}
	if find(sumsName) != nil {
		path := filepath.Join(dir, sumsName)
		data, err := mmap.ReadFile(path, "list of sums", maxSums)
		if err != nil {
			return err
		}
		sums, names, err := digest.ParseSums(path, data, maxSummed)
		if err != nil {
			return err
		}
		for _, name := range names {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				rel = name
			}
			compare(sumsName, filepath.ToSlash(rel), sums[name], -1)
		}
	}
	if find(manifestName) != nil {
		m, err := ReadManifest(filepath.Join(dir, manifestName))
		switch {
		case errors.Is(err, fault.Unsupported): // another kind of manifest
		case err != nil:
			return err
		default:
			for _, x := range m.Files {
				compare(manifestName, x.Name, x.SHA256, x.Bytes)
			}
		}
	}
	if len(wrong) > 0 {
		return fault.Errorf(fault.Broken, "%s: is not what its lists have:\n  %s", dir, strings.Join(wrong, "\n  "))
	}
	return nil
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
	now, err := readState(dir) // a damaged one has no sums: the files are read
	if err != nil {
		now = parseState(nil)
	}
	for _, name := range slices.Concat([]string{sumsName, manifestName}, now.Last) {
		if _, err := disk.Lstat(filepath.Join(dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			return r, fault.Errorf(fault.Incomplete,
				"%s: the release is not finished: there is no %s; make the release again to resume it", dir, name)
		} else if err != nil {
			return r, err
		}
	}
	r.files = now.Inputs
	r.dir, err = filepath.Abs(dir)
	return r, err
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

// Find is Sum for the file as it is now. It reads nothing of a file whose sum the release has not taken.
func (r *Recorded) Find(name string) (string, error) {
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if _, ok := r.files[path]; !ok {
		return "", nil
	}
	now, err := identity.OfFile(path)
	return r.Sum(name, now), err
}
