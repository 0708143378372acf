package checkpoint

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
)

// datasets begins the addresses of files of datasets in the hub, for Fetch.
const datasets = hubScheme + "datasets/"

// maxWhole is the largest file that Fetch reads from a server that sends no ranges.
const maxWhole = 256 << 20

// Fetch copies a file on a server to a new file at to: hf://ORG/NAME/FILE or hf://datasets/ORG/NAME/FILE, with @REVISION
// after NAME if not the main branch is meant, s3://BUCKET/KEY, or an address that begins with http:// or https://. After
// an error there is no file.
func Fetch(ctx context.Context, name, to string, opt Remote) (err error) {
	r, err := connect(ctx, name, opt)
	if err != nil {
		return err
	}
	defer r.close()
	address, err := anyAddress(name, r.opt.Endpoint)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, hubScheme) {
		r.address.id = name // errors have the hub's name
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			os.Remove(to)
		}
	}()
	f, err := r.client.Open(ctx, address, false)
	switch {
	case errors.Is(err, fault.Unsupported): // no ranges
		data, err := r.client.Get(ctx, address, maxWhole, nil)
		if err == nil {
			_, err = out.Write(data)
		}
		return r.denied(err)
	case err != nil:
		return r.denied(err)
	}
	defer f.Close()
	_, err = io.Copy(out, io.NewSectionReader(r.set.Reader(f, 0, f.Size), 0, f.Size))
	return err
}

// anyAddress is fileAddress for files of any kind, also of datasets in the hub.
func anyAddress(name, endpoint string) (address string, err error) {
	if rest, ok := strings.CutPrefix(name, datasets); ok {
		id, revision, file, err := hubFileOf(hubScheme+rest, endpoint)
		if err != nil {
			return "", fault.Errorf(fault.Usage, "%q: want hf://datasets/ORG/NAME/FILE or hf://datasets/ORG/NAME@REVISION/FILE",
				name)
		}
		return endpoint + "/datasets/" + id + "/resolve/" + url.PathEscape(revision) + "/" + escape(file), nil
	}
	if bucket.Is(name) {
		n, err := bucket.Parse(name)
		if err == nil && (n.Key == "" || strings.HasSuffix(n.Key, "/")) {
			err = fault.Errorf(fault.Usage, "%q: want an object: s3://BUCKET/KEY", name)
		}
		return n.URL(), err
	}
	return fileAddress(name, endpoint)
}

// BaseName returns the name, without folders, of a file on a server.
func BaseName(name string) (string, error) {
	u, err := url.Parse(name)
	base := ""
	switch {
	case strings.HasPrefix(name, hubScheme) || bucket.Is(name):
		base = path.Base(name)
	case err == nil:
		base = path.Base(u.Path)
	}
	if base == "." || strings.ContainsAny(base, `/\`) || !filepath.IsLocal(base) {
		return "", fault.Errorf(fault.Usage, "%s: has no name of a file at its end", show(name))
	}
	return base, nil
}
