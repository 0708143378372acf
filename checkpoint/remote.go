package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/fetch"
	"ggforge/model/digest"
)

// remote is a model on a server.
type remote struct {
	opt     Remote
	client  *fetch.Client
	objects *bucket.Client // nil unless the model is in S3
	set     *fetch.Set
	ctx     context.Context
	address address
	commit  string   // of the hub, "" elsewhere
	names   []string // of all files listed by the hub or S3; elsewhere of the weights found

	at map[string]string // addresses of files that are not in the folder, but next to it, see besideOf

	sides []string      // content hashes of side files in a listing
	left  *fetch.Budget // bytes that side files may still have

	mu    sync.Mutex
	files []weights
}

// OpenRemote opens a model on a server, see IsRemote. Its side files are fetched at once, into a temporary folder that
// Close removes, with the same limits as in a directory; weights are read on demand until ctx ends.
func OpenRemote(ctx context.Context, name string, opt Options) (_ *Dir, err error) {
	r, err := connect(ctx, name, opt.Remote)
	if err != nil {
		return nil, err
	}
	if r.address, err = parseAddress(name, r.opt.Endpoint); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "ggforge-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
			os.RemoveAll(folder)
		}
	}()
	switch {
	case r.address.id != "":
		if err = r.list(); err == nil {
			err = r.inPipeline()
		}
		if err == nil {
			err = r.fetchListed(folder)
		}
	case r.objects != nil:
		if err = r.listObjects(); err == nil {
			err = r.fetchListed(folder)
		}
	default:
		err = r.probe(folder)
	}
	if err != nil {
		return nil, err
	}
	d, err := Open(folder, Options{})
	if err != nil {
		return nil, err
	}
	d.Path, d.remote = name, r
	return d, nil
}

// connect returns a remote for the server of an address, without opening a model.
func connect(ctx context.Context, name string, opt Remote) (*remote, error) {
	r := &remote{opt: opt, ctx: ctx, left: fetch.NewBudget(maxSideBytes,
		fault.Errorf(fault.Unsupported, "the side files have more than %d bytes", maxSideBytes))}
	r.opt.Endpoint = strings.TrimSuffix(cmp.Or(r.opt.Endpoint, HubEndpoint), "/")
	origin, err := url.Parse(r.opt.Endpoint)
	if err != nil || origin.Host == "" || !isHTTP(r.opt.Endpoint) || origin.User != nil {
		return nil, fault.Errorf(fault.Usage, "the address of the hub is %q: want https://HOST", r.opt.Endpoint)
	}
	to := fetch.Options{Token: r.opt.Token, Origin: origin.Scheme + "://" + origin.Host, Stall: r.opt.Stall,
		Pause: r.opt.Pause}
	if bucket.Is(name) {
		if r.objects, err = bucket.New(bucket.Options{Endpoint: opt.S3Endpoint, Region: opt.S3Region, Stall: opt.Stall,
			Pause: opt.Pause}); err != nil {
			return nil, err
		}
		to.Schemes = fetch.Schemes{"s3": r.objects}
	}
	r.client = fetch.New(to)
	r.set = fetch.NewSet(ctx)
	return r, nil
}

// close ends all reading.
func (r *remote) close() {
	r.set.Close()
	for _, f := range r.files {
		f.Close()
	}
	r.client.Close()
	if r.objects != nil {
		r.objects.Close()
	}
}

// weights is a file of weights on a server.
type weights struct {
	*fetch.File
	name string // in the model
}

// opened returns the files of weights that were read.
func (r *remote) opened() (list []digest.Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.files {
		list = append(list, digest.Input{Name: f.name, Bytes: f.Size, State: cmp.Or(f.State(), r.commit)})
	}
	return list
}

// denied explains an error about access.
func (r *remote) denied(err error) error {
	switch {
	case r.objects != nil:
		return bucket.Denied(err)
	case r.address.id == "":
	case errors.Is(err, fs.ErrPermission) && r.opt.Token == "":
		return fmt.Errorf(
			"%w: the model is not for everybody, or there is none of this name; HF_TOKEN, or the file that hf "+
				"auth login writes, may hold the token of an account that can read it", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the account of the token may not read this model", err)
	}
	return err
}

// url returns the address of a file.
func (r *remote) url(name string) string {
	if at, ok := r.at[name]; ok {
		return at
	}
	if r.address.id == "" {
		return r.address.base.String() + escape(name)
	}
	return r.inHub(path.Join(r.address.component, name))
}

// inHub returns the address of a file of a model of the hub.
func (r *remote) inHub(name string) string {
	return r.opt.Endpoint + "/" + r.address.id + "/resolve/" + r.commit + "/" + escape(name)
}
