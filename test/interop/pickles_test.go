package interop

import (
	"os"
	"strings"
	"testing"
)

// pickles are checkpoints in files of torch.save: arguments of mkhf.py, options of
// mksrc.py's kind "pickle", output types, and the name of the pre-tokenizer for byte-level BPE.
var pickles = []struct{ name, args, opts, types, pre string }{
	{"one-file", "llama", "", "f16 q8_0 auto", ""},
	{"bf16", "llama --seed 2", "dtype=bf16", "auto f32 q8_0", ""},
	{"f32-shards", "mistral --seed 3", "dtype=f32 shards=3", "f16 q8_0", ""},
	{"index-of-one", "llama", "half_index=1 ordered=0", "bf16", ""},
	{"reverse", "llama", "order=reverse", "f16 auto", ""},
	{"any-order", "llama --seed 4", "order=random shards=2", "f16 bf16 q8_0", ""},
	{"shared", "llama", "shared=1", "f16 f32", ""},
	{"strided", "llama --seed 5", "strided=1 dtype=bf16", "auto f16 q8_0", ""},
	{"strided-parameters", "qwen2 --seed 6", "strided=1 param=1 shared=1", "f16 q8_0", "qwen2"},
	{"experts", "mixtral", "order=random", "f16", ""},
	{"gpt2", "gpt2", "strided=1", "f16 f32", "gpt-2"},
}

// TestPickles converts files of torch.save with both converters: the order of the
// tensors is that of the pickled dict, and any stride is legal.
func TestPickles(t *testing.T) {
	o := start(t)
	for _, p := range pickles {
		t.Run(p.name, func(t *testing.T) {
			hf := o.source(t, p.name, p.args, "pickle", p.opts)
			for _, typ := range strings.Fields(p.types) {
				t.Run(typ, func(t *testing.T) {
					ref, mine := work+"/reference.gguf", work+"/ours.gguf"
					os.Remove(root + ref)
					pre := []string{}
					if p.pre != "" {
						pre = []string{"--pre", p.pre}
					}
					o.script(t, "refconvert.py", append(pre, hf, ref, "--outtype", typ, "--quiet")...)
					ours(t, "ggconv", append(pre, "--force", "--progress", "none", "--outtype", typ, "--outfile",
						root+mine, root+hf)...)
					same(t, root+mine, root+ref)
				})
			}
		})
	}
}

// TestOldPickles converts files of torch.save in the old container without zip, which the reference cannot read. The
// output must equal that of the same weights in the newer container.
func TestOldPickles(t *testing.T) {
	o := start(t)
	for _, opts := range []string{"", "strided=1 shared=1", "shards=2 order=random", "dtype=bf16 param=1"} {
		t.Run(opts, func(t *testing.T) {
			hf := o.source(t, "old", "llama", "pickle", opts+" legacy=1")
			mine, newer := work+"/ours.gguf", work+"/newer.gguf"
			ours(t, "ggconv", "--force", "--progress", "none", "--outfile", root+mine, root+hf)
			hf = o.source(t, "old", "llama", "pickle", opts)
			ours(t, "ggconv", "--force", "--progress", "none", "--outfile", root+newer, root+hf)
			same(t, root+mine, root+newer)
		})
	}
}

// source makes a checkpoint with mkhf.py, has mksrc.py convert it to a kind of source, and returns the path of that in
// the chroot.
func (o *oracle) source(t *testing.T, name, args, kind, opts string) string {
	t.Helper()
	plain, hf := work+"/plain/"+name, work+"/sources/"+name
	for _, dir := range []string{plain, hf} {
		must(t, os.RemoveAll(root+dir))
	}
	arch, rest, _ := strings.Cut(args, " ")
	o.script(t, "mkhf.py", append([]string{arch, plain}, strings.Fields(rest)...)...)
	argv := []string{kind, plain, hf}
	if opts = strings.TrimSpace(opts); opts != "" {
		argv = append(append(argv, "--opt"), strings.Fields(opts)...)
	}
	o.script(t, "mksrc.py", argv...)
	return hf
}
