package checkpoint

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"ggforge/checkpoint/precision"
	"ggforge/internal/io/fetch"
)

// remoteFolder is the folder of the weights on a server; its side files are local copies.
type remoteFolder struct {
	*Dir
	folder string // in the model, "." for its root
}

// ReadDir lists the files of the folder.
func (f remoteFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := f.Dir.ReadDir(path.Join(f.folder, name))
	if err != nil || name != "." {
		return list, err
	}
	for _, name := range f.remote.names {
		if f.folder != "." {
			var in bool
			if name, in = strings.CutPrefix(name, f.folder+"/"); !in {
				continue
			}
		}
		if !strings.Contains(name, "/") && !slices.ContainsFunc(list,
			func(e fs.DirEntry) bool { return e.Name() == name }) {
			list = append(list, remoteEntry(name))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, nil
}

// OpenFile opens a local file.
func (f remoteFolder) OpenFile(name string) (*os.File, error) {
	return f.Dir.OpenFile(path.Join(f.folder, name))
}

// remoteEntry is the directory entry of a remote file.
type remoteEntry string

func (e remoteEntry) Name() string { return string(e) }

func (e remoteEntry) IsDir() bool { return false }

func (e remoteEntry) Type() fs.FileMode { return 0 }

func (e remoteEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// OpenReader opens a file of weights on the server.
func (f remoteFolder) OpenReader(name string) (io.ReaderAt, int64, string, error) {
	r := f.remote
	name = path.Join(f.folder, name)
	address, fixed := r.url(name), r.address.id != ""
	file, err := r.client.Open(r.ctx, address, fixed)
	if err != nil {
		return nil, 0, "", r.denied(err)
	}
	if r.opt.Cache != "" {
		if err := file.Keep(r.opt.Cache, fixed); err != nil {
			return nil, 0, "", err
		}
	}
	r.mu.Lock()
	if n := len(r.files); n > 0 {
		r.files[n-1].Forget() // the previous file's header has been read, and may be large
	}
	r.files = append(r.files, weights{file, name})
	r.mu.Unlock()
	return remoteReader{r.set.Reader(file, 0, file.Size), file}, file.Size, address, nil
}

// remoteReader reads a file on a server.
type remoteReader struct {
	io.ReaderAt
	file *fetch.File
}

// remoteStore is the store of weights on a server.
type remoteStore struct {
	Store
	set   *fetch.Set
	spans map[*precision.Tensor]fetch.Span
}

// newRemoteStore returns the store of the files that remoteFolder has opened. span returns the bytes of a tensor of s,
// by its index: n bytes at off of a reader of OpenReader.
func newRemoteStore(s Store, set *fetch.Set, span func(i int) (from io.ReaderAt, off, n int64)) Store {
	r := &remoteStore{s, set, map[*precision.Tensor]fetch.Span{}}
	for i, t := range s.Tensors() {
		from, off, n := span(i)
		if in, ok := from.(remoteReader); ok {
			in.file.Forget()
			r.spans[t] = fetch.Span{File: in.file, Off: off, N: n}
		}
	}
	r.Expect(s.Tensors())
	return r
}

// Expect sets the order in which the tensors will be read.
func (r *remoteStore) Expect(order []*precision.Tensor) {
	spans := make([]fetch.Span, 0, len(order))
	for _, t := range order {
		if span, ok := r.spans[t]; ok { // the others belong to another store
			spans = append(spans, span)
		}
	}
	r.set.Expect(spans)
}
