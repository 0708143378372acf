package sign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
	"ggforge/internal/kernel/parallel"
	"ggforge/model/digest"
)

// Options are settings for reading a folder.
type Options struct {
	// Workers is the number of files that are read at once; default 1.
	Workers int
	// Sum returns the SHA-256 of a file by its name from the folder on, "" if it is not known: then the file is read.
	// Nil knows none.
	Sum func(ctx context.Context, name string) (string, error)
	// Private reports whether a file or folder with that last part of its name is left out of a signature, wherever it
	// is; nil for none.
	Private func(base string) bool
	// Progress is called with the bytes that are done, from any goroutine; nil for no calls.
	Progress func(done, total int64)
}

// entry is a file of a folder, or what is there in place of one.
type entry struct {
	digest.File
	path  string
	stamp stamp.Stamp
	bad   string // why it is no file; "" for a file
}

// folder returns the folder at dir, without links in its path.
func folder(dir string) (string, error) {
	info, err := disk.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fault.Errorf(fault.Usage, "%s: want a folder", dir)
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// under reports whether name is one of paths or below one of them.
func under(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		rest, ok := strings.CutPrefix(name, p)
		return ok && (rest == "" || rest[0] == '/')
	})
}

// list returns the files of a folder, except those that skip names, in the order of their names.
func list(dir string, skip func(name string, isFolder bool) bool) (all []*entry, err error) {
	err = filepath.WalkDir(dir, func(full string, e fs.DirEntry, err error) error {
		if err != nil || full == dir {
			return err
		}
		rel, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		skipped := skip(name, e.IsDir())
		switch {
		case skipped && e.IsDir():
			return fs.SkipDir
		case skipped || e.IsDir():
			return nil
		case len(all) == maxResources:
			return fault.Errorf(fault.Usage, "%s: more than %d files", dir, maxResources)
		}
		one := &entry{File: digest.File{Name: name}, path: full}
		all = append(all, one)
		if !e.Type().IsRegular() {
			one.bad = "is a link, or no file"
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		one.Bytes, one.stamp = info.Size(), stamp.Of(full, info)
		return nil
	})
	slices.SortFunc(all, func(a, b *entry) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// read sets the sum of a file.
func (e *entry) read(ctx context.Context) error {
	in, err := disk.OpenFile(e.path, disk.NoFollow, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	n, sum, err := digest.OfReader(ctx, in)
	if err == nil && n != e.Bytes {
		err = fmt.Errorf("%s: %w", e.path, stamp.ErrChanged)
	}
	if err == nil {
		err = e.stamp.Check()
	}
	e.SHA256 = sum
	return err
}

// sum sets the sums of files.
func (o *Options) sum(ctx context.Context, files []*entry) error {
	var total int64
	for _, f := range files {
		total += f.Bytes
	}
	var done atomic.Int64
	return parallel.For(ctx, max(1, o.Workers), len(files), func(i, _ int) (err error) {
		f := files[i]
		if o.Sum != nil {
			if f.SHA256, err = o.Sum(ctx, f.Name); err != nil {
				return err
			}
			if err := f.stamp.Check(); err != nil {
				return err
			}
		}
		if f.SHA256 == "" {
			if err := f.read(ctx); err != nil {
				return err
			}
		}
		if n := done.Add(f.Bytes); o.Progress != nil {
			o.Progress(n, total)
		}
		return nil
	})
}

// Check returns the error that Files would return about what is in a folder, without reading a file. A folder that is
// empty or not there is no error.
func Check(dir string, ignored []string, opt Options) error {
	_, _, err := toSign(dir, ignored, opt)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Files returns the files of a folder that a signature of it covers, with their sums, sorted by name: all but those
// that the format leaves out, those in ignored, and those that opt.Private names; left has the hidden ones of these.
// Links, pipes and names that the format does not permit are an error of kind fault.Refused.
func Files(ctx context.Context, dir string, ignored []string, opt Options) (files []digest.File, left []string,
	err error) {
	all, left, err := toSign(dir, ignored, opt)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, fault.Errorf(fault.Usage, "%s: has no file to sign", dir)
	}
	if err := opt.sum(ctx, all); err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		files = append(files, f.File)
	}
	return files, left, nil
}

// toSign returns the files of Files, without sums.
func toSign(dir string, ignored []string, opt Options) (all []*entry, left []string, err error) {
	if dir, err = folder(dir); err != nil {
		return nil, nil, err
	}
	out := slices.Concat(alwaysIgnored, ignored)
	all, err = list(dir, func(name string, _ bool) bool {
		switch {
		case under(name, out):
			return true
		case opt.Private == nil || !opt.Private(path.Base(name)):
			return false
		}
		out = append(out, name)
		if path.Base(name)[0] == '.' { // temporary files will be gone
			left = append(left, name)
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	var refused []string
	for _, f := range all {
		if f.bad != "" {
			refused = append(refused, fmt.Sprintf("%s: %s: want a file of the folder's own", f.Name, f.bad))
			continue
		}
		check := digest.File{Name: f.Name, SHA256: strings.Repeat("0", 64)}
		if err := check.Check(); err != nil || !utf8.ValidString(f.Name) {
			refused = append(refused, fmt.Sprintf("%q: want a name of UTF-8, without control characters", f.Name))
		}
	}
	if len(refused) > 0 {
		return nil, nil, fault.Errorf(fault.Refused, "%s: cannot be signed as it is:\n  %s", dir,
			strings.Join(refused, "\n  "))
	}
	return all, left, nil
}

// Folder returns the statement to sign about a folder, as JSON, with its files (see Files) and all that is left out.
// ignored are the names of files and folders that it leaves out besides those that the format does.
func Folder(ctx context.Context, dir string, ignored []string, opt Options) (statement []byte, files []digest.File,
	out []string, err error) {
	name, err := folderName(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	files, left, err := Files(ctx, dir, ignored, opt)
	if err != nil {
		return nil, nil, nil, err
	}
	out = slices.Concat(ignored, left)
	statement, err = Model(name, files, out)
	return statement, files, out, err
}

// folderName returns the name of a folder for its statement.
func folderName(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := filepath.Base(full)
	if name == string(filepath.Separator) || !utf8.ValidString(name) {
		name = "model"
	}
	return name, nil
}

// Inside returns the name of a file from a folder on, with slashes, and whether it is in the folder, links followed.
// Neither has to exist.
func Inside(dir, path string) (name string, ok bool, err error) {
	if dir, err = resolved(dir); err != nil {
		return "", false, err
	}
	if path, err = resolved(path); err != nil {
		return "", false, err
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false, nil
	}
	return filepath.ToSlash(rel), true, nil
}

// resolved returns the absolute path of a file, with links followed as far as it exists.
func resolved(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at, rest := full, ""
	for {
		found, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(found, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			return "", err
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}

// Finding is a difference between a folder and its signature.
type Finding struct {
	File string `json:"file"` // by its name from the folder on
	Text string `json:"text"` // without the name
}

// Compare compares a folder with what is signed: files that are missing, have another content, are links, or are not
// signed. The findings are sorted by file. only, unless it is nil, are the names of the files that are compared. A
// provenance statement does not have all files of a folder; those that it does not have are no findings.
func (s *Signed) Compare(ctx context.Context, dir string, only []string, opt Options) (found []Finding, err error) {
	dir, err = folder(dir)
	if err != nil {
		return nil, err
	}
	out := slices.Concat(alwaysIgnored, s.Ignored)
	if own, inside, err := Inside(dir, s.Path); err != nil {
		return nil, err
	} else if inside {
		out = append(out, own)
	}
	// signed files count even below a folder that is ignored
	sums, above, wanted := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	for _, f := range s.Files {
		if only != nil && !wanted[f.Name] {
			continue
		}
		sums[f.Name] = f.SHA256
		for i, c := range f.Name {
			if c == '/' {
				above[f.Name[:i]] = true
			}
		}
	}
	whole := s.PredicateType == ModelPredicate && only == nil
	all, err := list(dir, func(name string, isFolder bool) bool {
		if isFolder {
			return !above[name] && (!whole || under(name, out))
		}
		return sums[name] == "" && !above[name] && (!whole || under(name, out))
	})
	if err != nil {
		return nil, err
	}
	add := func(name, format string, args ...any) {
		found = append(found, Finding{name, fmt.Sprintf(format, args...)})
	}
	there := map[string]bool{}
	var files []*entry
	for _, f := range all {
		there[f.Name] = true
		switch {
		case f.bad != "":
			add(f.Name, "%s", f.bad)
		case sums[f.Name] == "":
			add(f.Name, "is not signed")
		default:
			files = append(files, f)
		}
	}
	for _, f := range s.Files {
		if sums[f.Name] != "" && !there[f.Name] {
			add(f.Name, "is missing")
		}
	}
	if err := opt.sum(ctx, files); err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.SHA256 != sums[f.Name] {
			add(f.Name, "is not as it was signed: SHA-256 is %s, want %s", f.SHA256, sums[f.Name])
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
	return found, nil
}
