package checkpoint

import (
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzListing reads answers of a hub: whatever it lists, files stay in the folder.
func FuzzListing(f *testing.F) {
	f.Add([]byte(`{"sha": "0123abc", "siblings": [{"rfilename": "config.json"}, {"rfilename": "1_Pooling/config.json"}]}`))
	f.Add([]byte(`{"sha": "../x", "siblings": []}`))
	f.Add([]byte(`{"sha": "a", "siblings": [{"rfilename": "../x"}]}`))
	f.Add([]byte(`{"sha": "a", "siblings": [{}, null, 7]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r remote
		if err := r.parseListing(data); err != nil {
			return
		}
		if strings.ContainsAny(r.commit, "/\\ ?#") || r.commit == "" {
			t.Errorf("commit %q", r.commit)
		}
		for _, name := range r.names {
			if to := filepath.Join("/folder", filepath.FromSlash(name)); !strings.HasPrefix(to,
				filepath.FromSlash("/folder/")) {
				t.Errorf("%q leads to %s", name, to)
			}
		}
	})
}

// FuzzAddress reads names of remote models: none leads to another server than the
// one it names.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"hf://org/name", "hf://org/name@refs/pr/1", "https://example.org/a/b",
		"https://huggingface.co/org/name/tree/main", "hf://../..", "https://huggingface.co@evil.org/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		a, err := parseAddress(name, HubEndpoint)
		if err != nil {
			return
		}
		if a.base == nil && (strings.Count(a.id, "/") != 1 || strings.Contains(a.id+a.revision, "..") ||
			strings.ContainsAny(a.id+a.revision, "?#%\\ @")) {
			t.Errorf("%q is model %q at %q", name, a.id, a.revision)
		}
		if a.base != nil && (a.base.Host == "" || a.base.User != nil || a.base.RawQuery != "") {
			t.Errorf("%q is at %v", name, a.base)
		}
	})
}

// FuzzFileAddress reads names of files of remote models: none leads to another server than
// the one it names, nor to another model.
func FuzzFileAddress(f *testing.F) {
	for _, s := range []string{"hf://org/name/file.gguf", "hf://org/name@rev/a/b.gguf", "hf://org/name/../x",
		"hf://datasets/org/name@rev/a/b.txt", "hf://datasets/org/name", "hf://datasets/../../x/y", "s3://bucket/a/b.txt",
		"https://huggingface.co/org/name/blob/main/x.gguf", "https://example.org/x.gguf?a=b",
		"https://huggingface.co@evil.org/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		base, err := BaseName(name)
		if err == nil && (base != filepath.Base(base) || !filepath.IsLocal(base) || base == ".") {
			t.Errorf("%q has the name %q", name, base)
		}
		address, err := anyAddress(name, HubEndpoint)
		if err != nil || address == name || strings.HasPrefix(name, "s3://") {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme+"://"+u.Host != HubEndpoint || u.User != nil || u.RawQuery != "" ||
			u.Fragment != "" || !strings.Contains(u.Path, "/resolve/") || path.Clean(u.Path) != u.Path {
			t.Errorf("%q is at %q", name, address)
		}
	})
}

// FuzzParseFile reads names of files of weights of remote models: none leads to another server than the one it names, nor
// out of its model in the hub.
func FuzzParseFile(f *testing.F) {
	for _, s := range []string{"hf://org/name/file.safetensors", "hf://org/name@rev/a/b.ckpt", "hf://org/name/../x.pt",
		"https://huggingface.co/org/name/blob/main/x.bin", "https://example.org/a/x.safetensors?a=b", "s3://bucket/a/x.pt",
		"https://huggingface.co@evil.org/x.pt", "https://example.org/x.sft"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !IsRemote(name) {
			return
		}
		a, file, err := parseFile(name, HubEndpoint)
		if err != nil {
			return
		}
		if a.id != "" {
			if !fs.ValidPath(file) || strings.Contains(a.id+a.revision, "..") {
				t.Errorf("%q is %q of %q", name, file, a.id)
			}
			return
		}
		u, err := url.Parse(name)
		if !strings.HasPrefix(name, "s3://") && (err != nil || u.Host != a.base.Host) || a.base.User != nil ||
			strings.Contains(file, "/") && file != "/" {
			t.Errorf("%q is %q at %v", name, file, a.base)
		}
	})
}
