package checkpoint

import (
	"context"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/bucket"
	"ggforge/internal/fetch"
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
	id, revision, file := "", "", ""
	if rest, ok := strings.CutPrefix(name, hubScheme); ok {
		if m := hubFile.FindStringSubmatch(rest); m != nil {
			id, revision, file = m[1], m[2], m[3]
		}
		if id == "" {
			return "", fault.Errorf(fault.Usage, "%q: want a file of the model: hf://ORG/NAME/FILE.gguf or hf://ORG/NAME@REVISION/FILE.gguf", name)
		}
	} else {
		u, err := url.Parse(name)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return "", fault.Errorf(fault.Usage, "%s: want the address of a file, https://HOST/PATH, without user and fragment", shown(name))
		}
		page, ok := strings.CutPrefix(name, endpoint+"/")
		m := hubPage.FindStringSubmatch(page)
		if !ok || m == nil {
			return name, nil
		}
		id, revision = m[1], m[2]
		if file, err = url.PathUnescape(m[3]); err != nil {
			return "", fault.Errorf(fault.Usage, "%s: %w", shown(name), err)
		}
	}
	if revision == "" {
		revision = "main"
	}
	org, model, _ := strings.Cut(id, "/")
	if !hubName.MatchString(org) || !hubName.MatchString(model) || !hubRevision.MatchString(revision) || strings.Contains(id+revision, "..") || !fs.ValidPath(file) || file == "." {
		return "", fault.Errorf(fault.Usage, "%q: want hf://ORG/NAME/FILE.gguf or hf://ORG/NAME@REVISION/FILE.gguf", name)
	}
	return endpoint + "/" + id + "/resolve/" + url.PathEscape(revision) + "/" + escape(file), nil
}

// OpenHeader reads the header of a GGUF file on a server: hf://ORG/NAME/FILE, s3://BUCKET/KEY, or an address that
// begins with http:// or https://. With alone, or if the name says nothing of shards, only of the
// file there, else of all shards of a model. Little more than the headers is fetched. The tensors'
// data are not there.
func OpenHeader(ctx context.Context, name string, alone bool, opt Remote) (*gguf.Set, error) {
	r, err := connect(ctx, name, opt)
	if err != nil {
		return nil, err
	}
	defer r.close()
	open := func(name string) (*gguf.File, error) {
		address, err := fileAddress(name, r.opt.Endpoint)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(address, r.opt.Endpoint+"/") {
			r.address.id = name // errors are about the hub
		}
		f, err := r.client.Open(ctx, address, false)
		if err != nil {
			return nil, r.denied(err)
		}
		r.files = append(r.files, weights{f, name})
		return r.header(f, show(name))
	}
	if alone {
		f, err := open(name)
		if err != nil {
			return nil, err
		}
		return f.Set(), nil
	}
	return gguf.OpenSetBy(name, open)
}

// show returns a name without what may be secret in it.
func show(name string) string {
	if strings.HasPrefix(name, hubScheme) || bucket.Is(name) {
		return name
	}
	return shown(name)
}

// header reads the header of a file, a longer part of it at a time.
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
