package push

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/hub"
	"ggforge/internal/io/stamp"
	"ggforge/internal/kernel/parallel"
	"ggforge/model/digest"
	"ggforge/model/identity"
	"ggforge/publish/release"
)

// CardName is the name of the model card.
const CardName = "README.md"

const maxFiles = 10_000 // of a folder

// file is a file of the folder.
type file struct {
	digest.File
	path  string
	info  fs.FileInfo
	stamp stamp.Stamp
	blob  string // git's SHA-1, "" while it is not known
}

// folder is what is to be published.
type folder struct {
	dir      string
	files    []*file // by name
	leftOut  []string
	recorded release.Recorded
}

// list lists the files of a folder; nothing is read of them. Links, pipes and the like are errors of kind
// fault.Refused, and so are files of fewer than least or more than most bytes, 0 for any size; names are checked by
// check.
func list(dir string, least, most int64, check func(name string) error) (*folder, error) {
	info, err := disk.Stat(dir)
	if err == nil && info.IsDir() {
		dir, err = filepath.EvalSymlinks(dir) // a link to the folder may be named; none in it is followed
	} else if err == nil {
		err = fault.Errorf(fault.Usage, "%s: want a folder", dir)
	}
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir}
	if f.recorded, err = release.CheckFinished(dir); err != nil {
		return nil, err
	}
	var refused []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case release.Private(e.Name()):
			if e.IsDir() {
				f.leftOut = append(f.leftOut, name+"/")
				return fs.SkipDir
			}
			f.leftOut = append(f.leftOut, name)
			return nil
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			refused = append(refused, fmt.Sprintf("%s: is a link or no file: want a file of the folder's own", name))
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if most > 0 && info.Size() > most {
			refused = append(refused, fmt.Sprintf("%s: has %d bytes, and the hub takes at most %d: "+
				"shards of 45G fit (split of a plan, or ggtool split)", name, info.Size(), most))
		}
		if info.Size() < least {
			refused = append(refused, fmt.Sprintf("%s: is empty: objects are made of parts, and parts have at least %d "+
				"byte", name, least))
		}
		if err := check(name); err != nil {
			return err
		}
		if len(f.files) == maxFiles {
			return fault.Errorf(fault.Usage, "%s: more than %d files", dir, maxFiles)
		}
		f.files = append(f.files, &file{File: digest.File{Name: name, Bytes: info.Size()}, path: path, info: info,
			stamp: stamp.Of(path, info)})
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(refused) > 0:
		return nil, fault.Errorf(fault.Refused, "%s: cannot be published as it is:\n  %s", dir,
			strings.Join(refused, "\n  "))
	case len(f.files) == 0:
		return nil, fault.Errorf(fault.Usage, "%s: has no file to publish", dir)
	}
	slices.SortFunc(f.files, func(a, b *file) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// find returns the file of that name, nil for none.
func (f *folder) find(name string) *file {
	i, ok := slices.BinarySearchFunc(f.files, name,
		func(x *file, name string) int { return strings.Compare(x.Name, name) })
	if !ok {
		return nil
	}
	return f.files[i]
}

// open opens a file, which must be the one that was listed.
func (f *file) open() (*disk.File, error) {
	in, err := disk.OpenFile(f.path, disk.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	now, err := in.Stat()
	if err == nil {
		err = f.stamp.Check()
	}
	if err == nil && (now.Size() != f.Bytes || !now.ModTime().Equal(f.info.ModTime())) {
		err = fmt.Errorf("%s: %w", f.path, stamp.ErrChanged)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// changed is the error about a file whose content is not what was read before.
func (f *file) changed() error { return fmt.Errorf("%s: %w", f.path, stamp.ErrChanged) }

// head returns the first bytes of a file.
func (f *file) head(n int64) ([]byte, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data := make([]byte, min(n, f.Bytes))
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, f.changed()
	}
	return data, nil
}

// whole returns the content of a file, which has the sum that was taken.
func (f *file) whole() ([]byte, error) {
	data, err := f.head(f.Bytes)
	if err != nil {
		return nil, err
	}
	if digest.Held("", f.path, data).SHA256 != f.SHA256 {
		return nil, f.changed()
	}
	return data, nil
}

// sum sets the sums of all files: those that the release or an earlier push has taken and whose files have not changed,
// others by reading. done is called with bytes that were read.
func (f *folder) sum(ctx context.Context, workers int, known *sums, done func(n int64)) error {
	return parallel.For(ctx, max(1, workers), len(f.files), func(i, _ int) error {
		one := f.files[i]
		id, err := identity.OfFile(one.path)
		if err != nil {
			return err
		}
		if err := one.stamp.Check(); err != nil {
			return err
		}
		if one.SHA256 = known.get(one.Name, id); one.SHA256 == "" {
			one.SHA256 = f.recorded.Sum(one.Name, id)
		}
		if one.SHA256 == "" {
			if err := one.read(ctx, done); err != nil {
				return err
			}
		} else {
			done(one.Bytes)
		}
		known.set(one.Name, id, one.SHA256)
		return nil
	})
}

// read sets the sum of a file.
func (f *file) read(ctx context.Context, done func(n int64)) error {
	in, err := f.open()
	if err != nil {
		return err
	}
	defer in.Close()
	n, sum, err := digest.OfReader(ctx, &counter{in, done})
	if err == nil && n != f.Bytes {
		err = f.changed()
	}
	if err == nil {
		err = f.stamp.Check()
	}
	f.SHA256 = sum
	return err
}

type counter struct {
	io.Reader
	done func(n int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.done(int64(n))
	return n, err
}

// checkLists compares the files with the lists of the folder.
func (f *folder) checkLists() error {
	return release.CheckLists(f.dir, func(name string) *digest.File {
		if one := f.find(name); one != nil {
			return &one.File
		}
		return nil
	})
}

// bytes returns the size of all files.
func (f *folder) bytes() (n int64) {
	for _, one := range f.files {
		n += one.Bytes
	}
	return n
}

// prepare sets and checks the sums.
func (p *Push) prepare(ctx context.Context, known *sums) error {
	var read atomic.Int64
	total := p.folder.bytes()
	err := p.folder.sum(ctx, p.opt.Workers, known, func(n int64) {
		p.progress(Progress{Part: "read", Done: min(read.Add(n), total-1), Total: total})
	})
	if err != nil {
		return err
	}
	p.progress(Progress{Part: "read", Done: total, Total: total})
	return p.folder.checkLists()
}

// checkHubName refuses names that the hub does not take.
func checkHubName(name string) error { return hub.CheckPath(name) }
