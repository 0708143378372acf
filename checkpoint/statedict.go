package checkpoint

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ggforge/checkpoint/ggml"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/bucket"
)

// stateDicts are the suffixes of files with the weights of a whole model: safetensors files, and those of torch.save.
var stateDicts = []struct {
	suffix string
	pickle bool
}{
	{".safetensors", false}, {".sft", false}, {".pt", true}, {".pth", true}, {".ckpt", true}, {".bin", true},
}

// isPickle reports whether a file of weights is one of torch.save; ok is false for names of other files.
func isPickle(name string) (pickle, ok bool) {
	for _, s := range stateDicts {
		if strings.HasSuffix(strings.ToLower(name), s.suffix) {
			return s.pickle, true
		}
	}
	return false, false
}

// IsStateDict reports whether a name is that of one file with weights, by its suffix: a regular file on this machine,
// hf://ORG/NAME/FILE, s3://BUCKET/KEY or an address that begins with http:// or https://.
func IsStateDict(name string) bool {
	if !IsRemote(name) {
		pickle, ok := isPickle(name)
		st, err := os.Stat(name)
		return ok && err == nil && st.Mode().IsRegular() && !(pickle && isOther(name))
	}
	if rest, ok := strings.CutPrefix(name, hubScheme); ok {
		m := hubFile.FindStringSubmatch(rest)
		return m != nil && hasSuffix(m[3])
	}
	u, err := url.Parse(name)
	return err == nil && hasSuffix(u.Path)
}

// isOther reports whether a regular file whose name may be that of a torch.save file is one for ggml.
func isOther(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return gguf.Is(f) || ggml.Is(name)
}

func hasSuffix(name string) bool {
	_, ok := isPickle(name)
	return ok
}

// OpenStateDict opens one file of weights (see IsStateDict) as the folder that it is in, of which no other file is
// fetched. file is its name there, for Dir.StateDict. A link is followed wherever it leads: the user has named it.
func OpenStateDict(ctx context.Context, name string, opt Options) (d *Dir, file string, err error) {
	if !IsRemote(name) {
		opt.OutsideLinks = true
		d, err = Open(filepath.Dir(name), opt)
		return d, filepath.Base(name), err
	}
	r, err := connect(ctx, name, opt.Remote)
	if err != nil {
		return nil, "", err
	}
	folder := ""
	defer func() {
		if err != nil {
			r.close()
			os.RemoveAll(folder)
		}
	}()
	if r.address, file, err = parseFile(name, r.opt.Endpoint); err != nil {
		return nil, "", err
	}
	if r.address.id != "" {
		if err = r.list(); err != nil {
			return nil, "", err
		}
	}
	if folder, err = os.MkdirTemp("", "ggforge-"); err != nil {
		return nil, "", err
	}
	if d, err = Open(folder, Options{}); err != nil {
		return nil, "", err
	}
	d.Path, d.remote = name, r
	return d, file, nil
}

// parseFile parses the address of a file of weights: that of its model in the hub, or of its folder elsewhere, and its
// name there.
func parseFile(name, endpoint string) (a address, file string, err error) {
	id, revision, file, err := hubFileOf(name, endpoint)
	if err != nil {
		return a, "", err
	}
	if id != "" {
		return address{id: id, revision: revision}, file, nil
	}
	text := name
	if bucket.Is(name) {
		n, err := bucket.Parse(name)
		if err != nil {
			return a, "", err
		}
		text = n.URL()
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return a, "", fault.Errorf(fault.Usage,
			"%s: want the address of a file, https://HOST/PATH, without user, query and fragment", shown(name))
	}
	file = path.Base(u.Path)
	return address{base: u.ResolveReference(&url.URL{Path: "."})}, file, nil
}

// dictKeys are the keys under which a torch.save file has the state dict among other values, such as those of the
// training, in order of preference.
var dictKeys = []string{"model/", "module/", "state_dict/"}

// StateDict opens one file of weights, with the tensors in the order of their data, or of the dict of a torch.save file.
// Of a dict with others in it, it has the tensors of the first of these members: model, module, state_dict; left are the
// names of all others.
func (d *Dir) StateDict(name string) (s Store, left []string, err error) {
	if pickle, _ := isPickle(name); !pickle {
		f, err := d.openSafetensors(name)
		if err != nil {
			return nil, nil, err
		}
		list := asLaidOut(f)
		s := newSafetensors(list, f.Close)
		s.metadata = f.Metadata
		return d.ahead(s, list), nil, nil
	}
	all, _, err := d.Nested(name)
	if err != nil {
		return nil, nil, err
	}
	key := ""
	for _, k := range dictKeys {
		if slices.ContainsFunc(all.Tensors(), func(t *precision.Tensor) bool { return strings.HasPrefix(t.Name, k) }) {
			key = k
			break
		}
	}
	member := &memberStore{Store: all}
	for _, t := range all.Tensors() {
		own, ok := strings.CutPrefix(t.Name, key)
		if !ok || strings.Contains(own, "/") {
			left = append(left, t.Name)
			continue
		}
		named := *t
		named.Name = own
		member.tensors = append(member.tensors, &named)
	}
	return member, left, nil
}

// memberStore has the tensors of one member of a torch.save file.
type memberStore struct {
	Store
	tensors []*precision.Tensor
}

func (m *memberStore) Tensors() []*precision.Tensor { return m.tensors }

// asLaidOut returns the tensors of a file in the order of their data. Where an empty one begins with another, it comes
// first.
func asLaidOut(f *safetensors.File) []*safetensors.Tensor {
	list := listOf(f)
	slices.SortStableFunc(list, func(a, b *safetensors.Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset(), b.Offset()), cmp.Compare(a.Bytes(), b.Bytes()))
	})
	return list
}

// ahead returns the store of tensors that are read ahead if they are on a server.
func (d *Dir) ahead(s Store, list []*safetensors.Tensor) Store {
	if d.remote == nil {
		return s
	}
	return newRemoteStore(s, d.remote.set, func(i int) (io.ReaderAt, int64, int64) {
		return list[i].Source(), list[i].Offset(), list[i].Bytes()
	})
}

// PipelineFolders are the folders that a pipeline has its diffusion model in.
var PipelineFolders = []string{"transformer", "unet"}

// The names of the weights in a folder of the diffusers library: NAME.safetensors or NAME-00001-of-00002.safetensors
// with NAME.safetensors.index.json; for a variant, which has another precision, NAME.VARIANT.safetensors and
// NAME.safetensors.index.VARIANT.json.
const (
	diffusersName  = "diffusion_pytorch_model"
	diffusersIndex = diffusersName + ".safetensors.index"
)

var diffusersFile = regexp.MustCompile(`^` + diffusersName + `(?:\.([A-Za-z0-9_]+))?(?:-\d+-of-\d+)?\.safetensors$`)

// Diffusers opens the weights of a folder of the diffusers library, of a variant if there is only one and no weights
// without a variant. The tensors are in the order of their data, shard by shard in the order of the shards' names.
// Without such files the error is ErrNone.
func (d *Dir) Diffusers(folder string) (Store, error) {
	var in safetensors.Folder = subfolder{d, folder}
	if d.remote != nil {
		in = remoteFolder{d, folder}
	}
	entries, err := in.ReadDir(".")
	if err != nil {
		return nil, err
	}
	files := map[string][]string{} // by variant
	var variants []string
	indexes := map[string]bool{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), diffusersIndex) {
			indexes[e.Name()] = true
		}
		if m := diffusersFile.FindStringSubmatch(e.Name()); m != nil {
			if files[m[1]] == nil {
				variants = append(variants, m[1])
			}
			files[m[1]] = append(files[m[1]], e.Name())
		}
	}
	at := filepath.Join(d.Path, filepath.FromSlash(folder))
	variant := ""
	switch {
	case files[""] != nil || len(variants) == 0:
	case len(variants) == 1:
		variant = variants[0]
	default:
		return nil, fault.Errorf(fault.Unsupported, "%s: has weights of the variants %s: name the file of one", at,
			strings.Join(variants, ", "))
	}
	n := safetensors.Naming{Prefix: diffusersName, Suffix: ".safetensors", Index: diffusersIndex + ".json"}
	if variant != "" {
		n.Index = diffusersIndex + "." + variant + ".json"
	}
	names := files[variant]
	if indexes[n.Index] {
		names = append(names, n.Index)
	}
	slices.Sort(names)
	c, err := safetensors.OpenNaming(in, at, names, n)
	if err != nil {
		return nil, err
	}
	byName := slices.Clone(c.Files)
	slices.SortFunc(byName, func(a, b *safetensors.File) int { return cmp.Compare(a.Path, b.Path) })
	var list []*safetensors.Tensor
	for _, f := range byName {
		list = append(list, asLaidOut(f)...)
	}
	return d.ahead(newSafetensors(list, c.Close), list), nil
}
