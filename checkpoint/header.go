package checkpoint

import (
	"context"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/fetch"
	"ggforge/model/digest"
)

// hubFile is a file of a model in the hub: ORG/NAME, perhaps @REVISION, and the file's path.
var hubFile = regexp.MustCompile(`^([^/@]+/[^/@]+)(?:@([^/]+))?/(.+)$`)

// hubPage is the address of a file of a model in the hub, and of the page about it.
var hubPage = regexp.MustCompile(`^([^/]+/[^/]+)/(?:resolve|blob)/([^/]+)/([^?#]+)(?:\?download=true)?$`)

// fileAddress returns the address of a GGUF file: hf://ORG/NAME/FILE, hf://ORG/NAME@REVISION/FILE,
// s3://BUCKET/KEY, or one that begins with http:// or https://, of a file anywhere or of a file's page in the hub.
func fileAddress(name, endpoint string) (address string, err error) {
	if bucket.Is(name) {
		n, err := bucket.Parse(name)
		if err == nil && (n.Key == "" || strings.HasSuffix(n.Key, "/")) {
			err = fault.Errorf(fault.Usage, "%q: want an object: s3://BUCKET/KEY.gguf", name)
		}
		return n.URL(), err
	}
	id, revision, file, err := hubFileOf(name, endpoint)
	if err != nil {
		return "", err
	}
	if id == "" {
		u, err := url.Parse(name)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return "", fault.Errorf(fault.Usage,
				"%s: want the address of a file, https://HOST/PATH, without user and fragment", shown(name))
		}
		return name, nil
	}
	return endpoint + "/" + id + "/resolve/" + url.PathEscape(revision) + "/" + escape(file), nil
}

// hubFileOf parses the address of a file of a model in the hub: hf://ORG/NAME/FILE, hf://ORG/NAME@REVISION/FILE, or that
// of its page. id is "" for addresses elsewhere.
func hubFileOf(name, endpoint string) (id, revision, file string, err error) {
	const want = "%q: want hf://ORG/NAME/FILE or hf://ORG/NAME@REVISION/FILE"
	if rest, ok := strings.CutPrefix(name, hubScheme); ok {
		m := hubFile.FindStringSubmatch(rest)
		if m == nil {
			return "", "", "", fault.Errorf(fault.Usage, want, name)
		}
		id, revision, file = m[1], m[2], m[3]
	} else {
		page, ok := strings.CutPrefix(name, endpoint+"/")
		m := hubPage.FindStringSubmatch(page)
		if !ok || m == nil {
			return "", "", "", nil
		}
		id, revision = m[1], m[2]
		if file, err = url.PathUnescape(m[3]); err != nil {
			return "", "", "", fault.Errorf(fault.Usage, "%s: %w", shown(name), err)
		}
	}
	if revision == "" {
		revision = "main"
	}
	org, model, _ := strings.Cut(id, "/")
	if !hubName.MatchString(org) || !hubName.MatchString(model) || !hubRevision.MatchString(revision) ||
		strings.Contains(id+revision, "..") || !fs.ValidPath(file) || file == "." {
		return "", "", "", fault.Errorf(fault.Usage, want, name)
	}
	return id, revision, file, nil
}

// IsFile reports whether a name is that of a GGUF file on a server: hf://ORG/NAME/FILE.gguf, s3://BUCKET/KEY.gguf,
// or an address that begins with http:// or https:// and whose path ends in .gguf.
func IsFile(name string) bool {
	if rest, ok := strings.CutPrefix(name, hubScheme); ok {
		return hubFile.MatchString(rest) && strings.HasSuffix(rest, ".gguf")
	}
	if bucket.Is(name) {
		return strings.HasSuffix(name, ".gguf")
	}
	if !isHTTP(name) {
		return false
	}
	u, err := url.Parse(name)
	return err == nil && strings.HasSuffix(u.Path, ".gguf")
}

// OpenHeader reads the header of a GGUF file on a server: hf://ORG/NAME/FILE, s3://BUCKET/KEY, or an address that
// begins with http:// or https://. If the name is a shard's and alone is false, it reads the headers of all shards. It
// fetches little more than the headers; the result has no tensor data.
func OpenHeader(ctx context.Context, name string, alone bool, opt Remote) (*gguf.Set, error) {
	r, err := connect(ctx, name, opt)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if alone {
		f, err := r.openHeader(name)
		if err != nil {
			return nil, err
		}
		return f.Set(), nil
	}
	return gguf.OpenSetBy(name, r.openHeader)
}

// File is a GGUF file on a server, or the shards of a model. Tensors are read by range requests on demand, a little
// ahead in the order of the file.
type File struct {
	Set    *gguf.Set
	remote *remote
}

// OpenFile opens a GGUF file by its address, see IsFile; for the first shard of a model, all shards. It can be read
// until ctx ends; the caller closes it.
func OpenFile(ctx context.Context, name string, opt Remote) (_ *File, err error) {
	r, err := connect(ctx, name, opt)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	set, err := gguf.OpenSetBy(name, r.openHeader)
	if err != nil {
		return nil, err
	}
	var spans []fetch.Span
	for i, f := range set.Files {
		from := r.files[i].File
		if r.opt.Cache != "" {
			if err := from.Keep(r.opt.Cache, false); err != nil {
				return nil, err
			}
		}
		f.ReadFrom(r.set.Reader(from, 0, from.Size))
		for k := range f.Tensors {
			t := &f.Tensors[k]
			spans = append(spans, fetch.Span{File: from, Off: f.DataStart + t.Offset, N: t.Bytes()})
		}
	}
	r.set.Expect(spans)
	return &File{set, r}, nil
}

// Close ends all reading.
func (f *File) Close() error {
	f.remote.close()
	return nil
}

// Inputs returns the files that were read.
func (f *File) Inputs() []digest.Input { return f.remote.opened() }

// Origin identifies the content: each file with its size and state (such as an ETag).
func (f *File) Origin() (list []string) {
	for _, w := range f.remote.files {
		list = append(list, w.String())
	}
	return list
}

// openHeader opens a file and reads its header.
func (r *remote) openHeader(name string) (*gguf.File, error) {
	address, err := fileAddress(name, r.opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address, r.opt.Endpoint+"/") {
		r.address.id = name // errors have the hub's name
	}
	f, err := r.client.Open(r.ctx, address, false)
	if err != nil {
		return nil, r.denied(err)
	}
	r.files = append(r.files, weights{f, path.Base(show(name))})
	return r.header(f, show(name))
}

// show returns a name without parts that may be secret.
func show(name string) string {
	if strings.HasPrefix(name, hubScheme) || bucket.Is(name) {
		return name
	}
	return shown(name)
}

// header reads the header of a file, in growing parts.
func (r *remote) header(f *fetch.File, name string) (*gguf.File, error) {
	defer f.Forget()
	var data []byte
	return gguf.ParseHeader(name, f.Size, func(n int64) ([]byte, error) {
		have := int64(len(data))
		data = append(data, make([]byte, n-have)...)
		if n > have {
			if _, err := r.set.Reader(f, have, n-have).ReadAt(data[have:], 0); err != nil {
				return nil, err
			}
		}
		return data, nil
	})
}
