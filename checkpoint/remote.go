package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/fetch"
	"ggforge/internal/text/pyjson"
	"ggforge/model/digest"
)

// Remote says how to read what is on a server. The zero value reads public models of
// the Hugging Face hub.
type Remote struct {
	// Endpoint is the address of the hub, without a slash at its end; default HubEndpoint.
	Endpoint string
	// Token is what the hub asks for before it sends a model that is not for everybody.
	// No other server gets it, also not one that the hub redirects to.
	Token string
	// S3Endpoint is the address of the server of objects, s3://BUCKET/KEY, and S3Region where
	// it has its buckets; default those of Amazon, which is asked for the region. Keys are
	// taken from the environment, as other tools take them.
	S3Endpoint, S3Region string
	// Cache is a folder that keeps what has come of the weights, so that a later run
	// goes on there; "" for none.
	Cache string
	// Stall and Pause are those of a client that waits: how long a server may send
	// nothing, default 30 seconds, and how long to wait before the first retry, default
	// half a second.
	Stall, Pause time.Duration
}

// HubEndpoint is the address of the Hugging Face hub.
const HubEndpoint = "https://huggingface.co"

const (
	hubScheme = "hf://"

	maxListing    = 32 << 20  // bytes of what the hub says about a model
	maxFiles      = 100_000   // of a model
	maxSideFiles  = 1_000     // that are fetched before the weights
	maxSideBytes  = 512 << 20 // of these together
	maxIndexBytes = safetensors.MaxHeader
)

// address is a model on a server.
type address struct {
	id       string      // ORG/NAME in the hub, "" elsewhere
	revision string      // branch, tag or commit
	base     *url.URL    // of the files, nil in the hub; its path ends in a slash
	folder   bucket.Name // of objects; no bucket elsewhere
}

var (
	hubName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	hubRevision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`)
)

// IsRemote reports whether a name is that of a model on a server: hf://ORG/NAME,
// hf://ORG/NAME@REVISION, s3://BUCKET/FOLDER, or an address that begins with http:// or https://.
func IsRemote(name string) bool {
	return strings.HasPrefix(name, hubScheme) || isHTTP(name) || bucket.Is(name)
}

func isHTTP(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// HubAddress returns the address of the model in the hub with that ID, ORG/NAME or
// ORG/NAME@REVISION.
func HubAddress(id string) string { return hubScheme + strings.TrimPrefix(id, hubScheme) }

// parseAddress parses what IsRemote accepts. The page of a model in the hub is the
// model; any other address is a folder with its files.
func parseAddress(name, endpoint string) (a address, err error) {
	if bucket.Is(name) {
		folder, err := bucket.Parse(name)
		if err != nil {
			return a, err
		}
		folder = folder.Folder()
		base, err := url.Parse(folder.URL())
		return address{base: base, folder: folder}, err
	}
	id, hub := strings.CutPrefix(name, hubScheme)
	if !hub {
		u, err := url.Parse(name)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return a, fault.Errorf(fault.Usage,
				"%s: want the address of a folder, https://HOST/PATH, without user, query and fragment", shown(name))
		}
		rest, ok := strings.CutPrefix(strings.TrimSuffix(name, "/"), endpoint+"/")
		parts := strings.Split(rest, "/")
		switch {
		case ok && len(parts) == 2:
			id, hub = rest, true
		case ok && len(parts) > 3 && parts[2] == "tree":
			id, hub = strings.Join(parts[:2], "/")+"@"+strings.Join(parts[3:], "/"), true
		default:
			if !strings.HasSuffix(u.Path, "/") {
				u.Path += "/"
			}
			return address{base: u}, nil
		}
	}
	id, a.revision, _ = strings.Cut(id, "@")
	a.id, a.revision = id, cmp.Or(a.revision, "main")
	org, model, two := strings.Cut(id, "/")
	ok := two && hubName.MatchString(org) && hubName.MatchString(model) && hubRevision.MatchString(a.revision)
	if !ok || strings.Contains(id+a.revision, "..") {
		return a, fault.Errorf(fault.Usage, "%q: want hf://ORG/NAME or hf://ORG/NAME@REVISION", name)
	}
	return a, nil
}

// shown returns an address for a message: up to what may be secret.
func shown(name string) string {
	if u, err := url.Parse(name); err == nil {
		return fetch.Show(u)
	}
	return "the address"
}

// remote is a model on a server.
type remote struct {
	opt     Remote
	client  *fetch.Client
	objects *bucket.Client // nil if the model is no objects
	set     *fetch.Set
	ctx     context.Context
	address address
	commit  string   // of the hub, "" elsewhere
	names   []string // of all files in the hub or folder of objects; of the weights that were found elsewhere

	sides []string      // what a listing says of the content of side files
	left  *fetch.Budget // bytes that side files may still have

	mu    sync.Mutex
	files []weights
}

// OpenRemote opens a model on a server, see IsRemote. Its side files are fetched at
// once, into a temporary folder that Close removes, under the limits of those of a
// directory; weights are read when they are asked for, and as long as ctx lasts.
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

// connect returns what reads from the servers that name is of, without a model.
func connect(ctx context.Context, name string, opt Remote) (*remote, error) {
	r := &remote{opt: opt, ctx: ctx, left: fetch.NewBudget(maxSideBytes,
		fault.Errorf(fault.Unsupported, "the side files have more than %d bytes", int64(maxSideBytes)))}
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
			"%w: the model is not for everybody, or there is none of this name; HF_TOKEN may hold the token of an "+
				"account that can read it", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the account of the token may not read this model", err)
	}
	return err
}

// escape returns a path for an address.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// url returns the address of a file.
func (r *remote) url(name string) string {
	if r.address.id == "" {
		return r.address.base.String() + escape(name)
	}
	return r.opt.Endpoint + "/" + r.address.id + "/resolve/" + r.commit + "/" + escape(name)
}

// list asks the hub which commit a revision is, and which files it has. Source: the
// hub's documentation of its API, /api/models/{repo_id}/revision/{revision}.
func (r *remote) list() error {
	data, err := r.client.Get(r.ctx,
		r.opt.Endpoint+"/api/models/"+r.address.id+"/revision/"+url.PathEscape(r.address.revision), maxListing, nil)
	if err != nil {
		return r.denied(err)
	}
	return r.parseListing(data)
}

// parseListing reads the hub's answer.
func (r *remote) parseListing(data []byte) error {
	broken := func(format string, args ...any) error {
		return fault.Errorf(fault.Broken, "the hub's answer about %s: %s", r.address.id, fmt.Sprintf(format, args...))
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return broken("%v", err)
	}
	o, _ := v.(*pyjson.Object)
	if r.commit, _ = o.Get("sha").(string); !hubRevision.MatchString(r.commit) || strings.Contains(r.commit, "/") {
		return broken("sha is %s, want the hash of a commit", pyjson.Describe(o.Get("sha")))
	}
	siblings, ok := o.Get("siblings").([]any)
	if !ok || len(siblings) > maxFiles {
		return broken("siblings is %s, want a list of at most %d files", pyjson.Describe(o.Get("siblings")), maxFiles)
	}
	for _, s := range siblings {
		file, _ := s.(*pyjson.Object)
		name, ok := file.Get("rfilename").(string)
		if !ok || name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
			return broken("rfilename is %s, want the name of a file", pyjson.Describe(file.Get("rfilename")))
		}
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return nil
}

// listObjects asks for the names of the objects in the folder.
func (r *remote) listObjects() error {
	list, err := r.objects.List(r.ctx, r.address.folder, maxFiles)
	if err == nil && len(list) == 0 {
		err = fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist), "%s: no objects there", r.address.folder)
	}
	for _, o := range list {
		r.names = append(r.names, o.Name)
		if isSide(o.Name) {
			r.sides = append(r.sides, fmt.Sprintf("%s: %d bytes, %s", o.Name, o.Bytes, o.Tag))
		}
	}
	return err
}

// maskFile is what drafts of DFlash may have for an embedding of their own for the mask.
const maskFile = "mask_embedding.pt"

// sidePatterns are the files that say something about the weights. In folders only
// the configurations of further modules and chat templates do.
var sidePatterns = []string{"LICENSE*", "*.json", "*.md", "*.txt", "*.model", "*.tiktoken", "*.jinja", "*/config.json",
	"helper/shim.py", maskFile, "*/" + safetensors.IndexName, "additional_chat_templates/*.jinja"}

// isSide reports whether a file is fetched before the weights.
func isSide(name string) bool {
	return slices.ContainsFunc(sidePatterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// fetchListed fetches the side files that the hub has listed.
func (r *remote) fetchListed(folder string) error {
	var names []string
	for _, name := range r.names {
		if isSide(name) {
			names = append(names, name)
		}
	}
	if len(names) > maxSideFiles {
		return fault.Errorf(fault.Unsupported, "%s: %d side files, want at most %d",
			cmp.Or(r.address.id, r.address.folder.String()), len(names), maxSideFiles)
	}
	return r.fetchAll(folder, names, false)
}

// sideFiles are those that are asked for where nobody lists them.
var sideFiles = []string{
	"config.json", "params.json", "generation_config.json", "README.md", "modules.json", "hf_quant_config.json",
	"hadamard_packing.json",
	"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "vocab.txt",
	"spiece.model", "sentencepiece.bpe.model", "rwkv_vocab_v20230424.txt", "tekken.json", "qwen.tiktoken",
	"hy.tiktoken", "tiktoken.model",
	"chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json",
	"embedding_config.json", "decision_config.json", "joint_head_config.json", "helper/shim.py", maskFile,
	"speech_tokenizer/config.json", safetensors.IndexName, pickleIndex,
}

// probe asks a server that lists nothing for the files that a model may have.
func (r *remote) probe(folder string) error {
	if err := r.fetchAll(folder, sideFiles, true); err != nil {
		return err
	}
	if data, err := disk.ReadFile(filepath.Join(folder, "modules.json")); err == nil {
		var more []string
		v, _ := pyjson.Parse(data) // what is wrong with it, its reader says
		modules, _ := v.([]any)
		for _, m := range modules[:min(len(modules), maxSideFiles)] {
			if o, ok := m.(*pyjson.Object); ok {
				if dir, _ := o.Get("path").(string); dir != "" && fs.ValidPath(dir) &&
					filepath.IsLocal(filepath.FromSlash(dir)) {
					more = append(more, dir+"/config.json")
				}
			}
		}
		if err := r.fetchAll(folder, more, true); err != nil {
			return err
		}
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	if has(safetensors.IndexName) {
		return nil // which names the weights
	}
	if err := r.probeWeights(singleSafetensors, "consolidated.safetensors"); err != nil ||
		slices.Contains(r.names, singleSafetensors) {
		return err
	}
	for _, n := range pickleNames {
		if n.Index != "" && has(n.Index) {
			return nil
		}
		if err := r.probeWeights(n.Prefix + n.Suffix); err != nil {
			return err
		}
	}
	return nil
}

// singleSafetensors is the name of the weights that come in one file.
const singleSafetensors = "model.safetensors"

// probeWeights notes which of the files the server has.
func (r *remote) probeWeights(names ...string) error {
	for _, name := range names {
		f, err := r.client.Open(r.ctx, r.url(name), false)
		switch {
		case err == nil:
			f.Close()
			r.names = append(r.names, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// fetchAll writes files into a folder. optional says that they need not be there.
func (r *remote) fetchAll(folder string, names []string, optional bool) error {
	group, ctx := errgroup.WithContext(r.ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error {
			most := limit(name)
			if base := path.Base(name); base == safetensors.IndexName || base == pickleIndex {
				most = maxIndexBytes
			}
			data, err := r.client.Get(ctx, r.url(name), most, r.left)
			if optional && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return r.denied(err)
			}
			to := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o600)
		})
	}
	return group.Wait()
}

// remoteFolder is the folder of the weights: side files are local, weights are not.
type remoteFolder struct {
	*Dir
	folder string // of the model, "." for its root
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

// OpenFile opens a file that is here.
func (f remoteFolder) OpenFile(name string) (*os.File, error) {
	return f.Dir.OpenFile(path.Join(f.folder, name))
}

// remoteEntry is the name of a file that is not here.
type remoteEntry string

func (e remoteEntry) Name() string               { return string(e) }
func (e remoteEntry) IsDir() bool                { return false }
func (e remoteEntry) Type() fs.FileMode          { return 0 }
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
		r.files[n-1].Forget() // the header of that one has been read: its beginning is as large
	}
	r.files = append(r.files, weights{file, name})
	r.mu.Unlock()
	return remoteReader{r.set.Reader(file, 0, file.Size), file}, file.Size, address, nil
}

// remoteReader is what reads a file on a server.
type remoteReader struct {
	io.ReaderAt
	file *fetch.File
}

// remoteStore is weights in files on a server.
type remoteStore struct {
	Store
	set   *fetch.Set
	spans map[*precision.Tensor]fetch.Span
}

// newRemoteStore returns the store of files that remoteFolder has opened. span says
// what will be read for a tensor of s, by its number: n bytes at off of what OpenReader
// returned.
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

// Expect says in which order the tensors will be read.
func (r *remoteStore) Expect(order []*precision.Tensor) {
	spans := make([]fetch.Span, 0, len(order))
	for _, t := range order {
		if span, ok := r.spans[t]; ok { // others are of another store
			spans = append(spans, span)
		}
	}
	r.set.Expect(spans)
}
