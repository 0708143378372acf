package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
	"ggforge/model/digest"
)

// Options configures how to open a directory. The zero value refuses links out of the directory.
type Options struct {
	// OutsideLinks follows links that lead out of the directory. Without it they
	// are refused: the target of an untrusted link would become part of a file
	// that is published. Links of the Hugging Face hub's cache into its blobs are
	// followed in any case.
	OutsideLinks bool
	// Remote has the settings for a model on a server.
	Remote Remote
}

// Dir is a model directory. Its methods may be called by many goroutines at once.
type Dir struct {
	Path string // as given by the caller

	remote *remote // nil for a local directory
	opt    Options
	real   string            // Path without links
	base   string            // real, or a folder around it: that of the model in the hub's cache, that of the pipeline
	blobs  string            // where links of the hub's cache lead, "" elsewhere
	beside map[string]string // files read from the folders next to a text encoder, see besideOf
	root   *os.Root          // of base
	mu     sync.Mutex
	inputs []stamp.Stamp // of all files that were opened
	called []string      // names of inputs in the directory
}

// Open opens the model directory at path. The caller closes it. A path that is
// not a directory gives an error of kind fault.Usage.
func Open(dir string, opt Options) (*Dir, error) {
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		switch {
		case err == nil:
			err = fault.Errorf(fault.Usage, "%s: not a directory", dir)
		case errors.Is(err, fs.ErrNotExist):
			err = fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: no such directory", dir)
		}
		return nil, err
	}
	d := &Dir{Path: dir, opt: opt}
	if d.real, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if d.real, err = filepath.EvalSymlinks(d.real); err != nil {
		return nil, err
	}
	d.base = d.real
	if d.beside, err = localBeside(d.real); err != nil {
		return nil, err
	}
	if len(d.beside) > 0 {
		d.base = filepath.Dir(d.real)
	}
	if c, ok := parseHub(d.real); ok {
		d.base, d.blobs = c.folder, filepath.Join(c.folder, hubBlobs)
	}
	if d.root, err = os.OpenRoot(d.base); err != nil {
		return nil, err
	}
	return d, nil
}

// Close closes the directory; local files opened in it stay open.
func (d *Dir) Close() error {
	err := d.root.Close()
	if d.remote != nil {
		d.remote.close()
		err = errors.Join(err, os.RemoveAll(d.real))
	}
	return err
}

// Inputs returns the paths of all files that were read, without links.
func (d *Dir) Inputs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return stamp.Paths(d.inputs)
}

// Opened returns all files that were read, each once, sorted by name: names in the directory, with slashes, and paths
// with links followed. Weights on a server have a size and a state (commit or ETag) instead of a path.
func (d *Dir) Opened() []digest.Input {
	var list []digest.Input
	d.mu.Lock()
	for i, s := range d.inputs {
		in := digest.Input{Name: path.Clean(d.called[i]), Path: s.Path()}
		_, in.State = d.HubID()
		list = append(list, in)
	}
	d.mu.Unlock()
	if d.remote != nil {
		list = append(list, d.remote.opened()...)
	}
	slices.SortFunc(list, func(a, b digest.Input) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b digest.Input) bool { return a.Name == b.Name })
}

// Check returns an error of kind fault.Broken if one of the files that were read
// has changed since.
func (d *Dir) Check() error {
	d.mu.Lock()
	inputs := slices.Clone(d.inputs)
	d.mu.Unlock()
	return stamp.Check(inputs)
}

// within reports whether target is dir or lies in it; both are without links.
func within(dir, target string) bool {
	rel, err := filepath.Rel(dir, target)
	return err == nil && filepath.IsLocal(rel)
}

// resolve follows the links of a name (with slashes, as in package fs) and returns the resulting path. Errors have the
// name.
func (d *Dir) resolve(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fault.Errorf(fault.Broken, "%q: want the name of a file in the model directory", name)
	}
	folder := d.real
	full := filepath.Join(folder, filepath.FromSlash(name))
	if from, ok := d.beside[name]; ok {
		folder = filepath.Join(filepath.Dir(d.real), from)
		full = filepath.Join(folder, name)
	}
	target, err := filepath.EvalSymlinks(full)
	if err != nil {
		if to, e := os.Readlink(full); e == nil && errors.Is(err, fs.ErrNotExist) {
			return "", fault.Errorf(fault.Broken, "%s: is a link to %s, which is not there", name, to)
		}
		if !errors.As(err, new(*fs.PathError)) { // such as too many links
			err = &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return "", named(err, name)
	}
	inside := within(folder, target) || d.blobs != "" && within(d.blobs, target)
	if !inside && !d.opt.OutsideLinks {
		return "", fault.Permits("OutsideLinks",
			fault.Errorf(fault.Refused, "%s: is a link to %s, outside the model directory: not followed", name, target))
	}
	return target, nil
}

// named returns err with the name of the file.
func named(err error, name string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return &fs.PathError{Op: "open", Path: name, Err: pe.Err}
	}
	return err
}

// Stat returns the file info of name, links followed.
func (d *Dir) Stat(name string) (fs.FileInfo, error) {
	target, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	return disk.Stat(target)
}

// ReadDir lists the folder at name, sorted; "." is the directory itself.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	target, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	list, err := disk.ReadDir(target)
	if err != nil || name != "." || len(d.beside) == 0 {
		return list, err
	}
	for name, folder := range d.beside {
		info, err := os.Lstat(filepath.Join(filepath.Dir(d.real), folder, name))
		if err != nil {
			return nil, named(err, name)
		}
		list = append(list, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, nil
}

// OpenFile opens the regular file at name. Other files are never opened, because opening a pipe blocks and opening a
// device may have side effects.
func (d *Dir) OpenFile(name string) (_ *os.File, err error) {
	target, err := d.resolve(name)
	if err != nil {
		return nil, err
	}
	open, lstat, at := os.OpenFile, os.Lstat, target
	if rel, err := filepath.Rel(d.base, target); err == nil && filepath.IsLocal(rel) {
		open, lstat, at = d.root.OpenFile, d.root.Lstat, rel // so that a link put there meanwhile does not lead out
	}
	info, err := lstat(at)
	if err != nil {
		return nil, named(err, name)
	}
	if err := regular(name, info); err != nil {
		return nil, err
	}
	var f *os.File
	err = disk.Do(disk.OpOpen, target, func() (err error) {
		f,
			err = open(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, named(err, name)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		f.Close()
		return nil, named(err, name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inputs, d.called = append(d.inputs, stamp.Of(target, info)), append(d.called, name)
	return f, nil
}

// regular refuses everything except regular files.
func regular(name string, info fs.FileInfo) error {
	kind := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = fmt.Sprintf("no regular file (mode %v)", mode)
	}
	return fault.Errorf(fault.Broken, "%s: is %s, want a regular file", name, kind)
}

// ReadFile returns the contents of a side file, which must be a regular file not larger than the limit of its kind. The
// error for a missing file is fs.ErrNotExist.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, named(err, name)
	}
	most := limit(name)
	if info.Size() > most {
		return nil, fault.Errorf(fault.Broken, "%s: %d bytes, want at most %d", name, info.Size(), most)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(disk.Of(f), data); err != nil {
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			err = fmt.Errorf("%s: %w", name, stamp.ErrChanged)
		}
		return nil, named(err, name)
	}
	return data, nil
}

// Name returns the model's name by its location: the name of the directory, links followed, or of the folder on a
// server (of the server, for its root). For a model of the hub, read from there or from its cache, it returns name and
// organization. For a text encoder of a pipeline, whose tokenizer is next to it, the name is that of the pipeline, a
// dash, and that of the encoder's folder.
func (d *Dir) Name() (org, name string) {
	if r := d.remote; r != nil {
		if r.address.id != "" {
			org, name, _ = strings.Cut(r.address.id, "/")
			return org, component(name, r.address.component)
		}
		around, last := path.Split(strings.TrimSuffix(r.address.base.Path, "/"))
		if len(r.at) > 0 && path.Base(around) != "/" {
			return "", component(path.Base(around), last)
		}
		if last != "" && last != "." {
			return "", last
		}
		return "", r.address.base.Hostname()
	}
	h, ok := parseHub(d.real)
	switch {
	case ok && h.file == "":
		return h.org, h.model
	case len(d.beside) == 0:
		return "", filepath.Base(d.real)
	case ok && h.file == filepath.Base(d.real):
		return h.org, component(h.model, h.file)
	}
	return "", component(filepath.Base(filepath.Dir(d.real)), filepath.Base(d.real))
}

// component returns the name of a part of a pipeline; "" is the whole.
func component(pipeline, folder string) string {
	if folder == "" {
		return pipeline
	}
	return pipeline + "-" + folder
}

// HubID returns the ID of a model that is read from the hub, ORG/NAME, and the hash of
// its commit; both are "" for others.
func (d *Dir) HubID() (id, commit string) {
	if d.remote == nil {
		return "", ""
	}
	return d.remote.address.id, d.remote.commit
}

// Origin identifies the content of a model on a server: ID and commit for the hub, otherwise each file with its size
// and state (such as an ETag); nil for a local directory.
func (d *Dir) Origin() []string {
	if d.remote == nil {
		return nil
	}
	if id, commit := d.HubID(); id != "" {
		return []string{path.Join(id+"@"+commit, d.remote.address.component)}
	}
	d.remote.mu.Lock()
	defer d.remote.mu.Unlock()
	list := slices.Clone(d.remote.sides)
	for _, f := range d.remote.files {
		list = append(list, f.String())
	}
	slices.Sort(list)
	return list
}
