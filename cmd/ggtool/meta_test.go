package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ggforge/gguf"
	"ggforge/test/clitest"
)

// TestMeta changes metadata in place, where the header has room, and by rewriting the file.
func TestMeta(t *testing.T) {
	dir := t.TempDir() + "/"
	path := dir + "m.gguf"
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{32}, Type: gguf.TypeF32},
		{Name: "b", NE: []int64{64}, Type: 3000, Stored: 100}}
	data := make([]byte, gguf.Layout(tensors, 32))
	for i := range data {
		data[i] = byte(i*31 + 1)
	}
	base := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyName, Value: gguf.String("name")},
		{Key: "llama.block_count", Value: gguf.Uint32(2)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"<s>", "</s>", "x", "x"})},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s([]float32{0, -1, 2, 3})},
		{Key: "tokenizer.chat_template", Value: gguf.String("old")},
		{Key: "tokenizer.chat_template.tool", Value: gguf.String("old")},
	}
	reset := func(be bool) []byte {
		t.Helper()
		header := gguf.AppendHeader
		if be {
			header = gguf.AppendHeaderBE
		}
		b := append(header(nil, base, tensors, 32), data...)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return b
	}
	side := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(dir+name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return dir + name
	}
	run := func(args ...string) (code int, out string) {
		t.Helper()
		code, out, err := call(append([]string{"meta", "--progress", "none"}, args...)...)
		if err != nil {
			out += err.Error()
		}
		return code, out
	}
	// read compares the tensors and returns the metadata.
	read := func(path string) (gguf.Metadata, *gguf.File) {
		t.Helper()
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range tensors {
			got := f.Tensors[i]
			if at := f.DataStart + got.Offset; got.Name != x.Name || got.Type != x.Type ||
				!bytes.Equal(raw[at:at+x.Bytes()], data[x.Offset:x.Offset+x.Bytes()]) {
				t.Errorf("tensor %s has changed", x.Name)
			}
		}
		return f.Metadata, f
	}
	short := func(m gguf.Metadata) string {
		var b strings.Builder
		for _, kv := range m {
			if kv.Key != gguf.KeyReserve {
				b.WriteString(kv.Key[strings.LastIndexByte(kv.Key, '.')+1:] + "=" + kv.Value.Short() + " ")
			}
		}
		return b.String()
	}
	template := side("t.jinja", "{{ new }}")
	config := side("tokenizer_config.json", `{"chat_template": "{{ json }}"}`)
	other := write(t, dir, "other.gguf", 1)
	for _, c := range []struct {
		args  string
		where string // how the change is made
		want  string
	}{
		{"--set general.name=nam2", "where it is", `architecture="llama" name="nam2" block_count=2 `},
		{"--set general.name=a", "where it is", ` name="a" block`},
		{"--set llama.block_count=4294967295", "where it is", "block_count=4294967295 "},
		{"--set llama.block_count=u8:7", "where it is", "block_count=7 "},
		{"--set tokenizer.ggml.scores=[1,2.5]", "where it is", `scores=[f32 x 2] 1, 2.5 `},
		{"--set tokenizer.ggml.tokens=[\"a\",\"b\"]", "where it is", `tokens=[str x 2] "a", "b" `},
		{"--set tokenizer.ggml.scores=i64:[-9223372036854775808]", "where it is",
			"scores=[i64 x 1] -9223372036854775808 "},
		{"--remove tokenizer.ggml.scores --remove general.name", "where it is",
			`architecture="llama" block_count=2 tokens=`},
		{"--remove tokenizer.ggml.scores --set general.name=a-name-that-is-longer-than-the-other", "where it is",
			`name="a-name-that-is`},
		{"--rename general.name=general.nom", "where it is", ` nom="name" block_count=2 `},
		{"--special-token eos=</s>", "written anew", `eos_token_id=1 `},
		{"--special-token bos=#3 --special-token eos=x", "written anew", `bos_token_id=3 eos_token_id=2 `},
		{"--template " + template, "where it is", `scores=[f32 x 4] 0, -1, 2, 3 chat_template="{{ new }}" `},
		{"--template " + config, "where it is", `chat_template="{{ json }}" `},
		{"--copy-from " + other + " --copy long", "written anew",
			`tool="old" long=[str x 8] "a", "b", "c", "d", "e", "f", ... `},
		{"--copy-from " + other, "written anew", `not-utf-8="\xff" `},
		{"--set x=str:" + strings.Repeat("x", 500), "written anew", ` x="xxx`},
		{"--set x=bool:true --set y=f64:1e300 --set z=u64:18446744073709551615 --set w=str:a,b", "written anew",
			`x=true y=1e+300 z=18446744073709551615 w="a,b" `},
	} {
		for _, be := range []bool{false, true} {
			before := reset(be)
			args := append(strings.Fields("--force "+c.args), path)
			if code, out := run(append(args, "--dry-run")...); code != 0 ||
				!strings.Contains(out, "would be "+strings.Replace(c.where, "where", "changed where", 1)) {
				t.Errorf("%s: exit code %d: %s", c.args, code, out)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, before) {
				t.Fatalf("%s: --dry-run changed the file", c.args)
			}
			code, out := run(args...)
			if code != 0 || !strings.Contains(out, c.where) {
				t.Fatalf("%s: exit code %d, want %s: %s", c.args, code, c.where, out)
			}
			m, f := read(path)
			if got := short(m); !strings.Contains(got, c.want) || f.BigEndian != be {
				t.Errorf("%s: %s, want %s", c.args, got, c.want)
			}
			if st, err := os.Stat(path); err != nil || c.where == "where it is" && st.Size() != int64(len(before)) {
				t.Errorf("%s: %d bytes, were %d", c.args, st.Size(), len(before))
			}
		}
	}

	before := reset(false)
	if code, out := run("--reserve", "3K", path); code != 0 || !strings.Contains(out, "written anew") {
		t.Fatal(code, out)
	}
	for _, n := range []string{"2500", "10", "2900", "0"} {
		var text string
		if n != "0" {
			text = strings.Repeat("y", len(n)*700)
		}
		if code, out := run("--set", "note=str:"+text, path); code != 0 ||
			!strings.Contains(out, "changed where it is") {
			t.Errorf("note of %d bytes: exit code %d, %s", len(text), code, out)
		}
		if m, _ := read(path); !strings.Contains(short(m), "note=") {
			t.Errorf("no note: %s", short(m))
		}
	}
	if code, out := run("-o", dir+"out.gguf", "--remove", "note", path); code != 0 {
		t.Fatal(code, out)
	}
	if got, err := os.ReadFile(dir + "out.gguf"); err != nil || !bytes.Equal(got, before) {
		t.Errorf("--remove of the added key: not the bytes from before, %v", err)
	}

	reset(false)
	if err := os.WriteFile(path+".header.partial", []byte("ggforge overwr"), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, err := call("inspect", path); code != 3 || !strings.Contains(err.Error(), "ggtool meta") {
		t.Errorf("a change that was cut short: exit code %d, %v", code, err)
	}
	if code, out := run("--dry-run", path); code != 3 {
		t.Errorf("a change that was cut short: exit code %d, %s", code, out)
	}
	if code, out := run(path); code != 0 || !strings.Contains(out, "nothing to change") {
		t.Errorf("nothing: %d, %s", code, out)
	}
	if clitest.Symlink(t, path, dir+"link.gguf") {
		for _, name := range []string{"x", strings.Repeat("x", 500)} {
			if code, out := run("--set", "general.name="+name, dir+"link.gguf"); code != 2 ||
				!strings.Contains(out, "--output") {
				t.Errorf("a link: exit code %d, %s", code, out)
			}
		}
		if st, err := os.Lstat(dir + "link.gguf"); err != nil || st.Mode().IsRegular() {
			t.Errorf("the link is gone: %v", err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--set general.name " + path, 2, "want KEY=VALUE"},
		{"--set no.such=1 " + path, 2, "its type is not known"},
		{"--set llama.block_count=x " + path, 2, "want a whole number from 0 to 4294967295"},
		{"--set llama.block_count=u8:256 " + path, 2, "from 0 to 255"},
		{"--set x=bool:yes " + path, 2, "want true or false"},
		{"--set x=f32:1e99 " + path, 2, "want a number of 32 bits"},
		{"--set x=u8:[1,300] " + path, 2, "element 1"},
		{"--set x=u8:[1 " + path, 2, "in JSON"},
		{"--set tokenizer.ggml.tokens=[1] " + path, 2, "want a text"},
		{"--set general.alignment=u32:3 " + path, 2, "power of two"},
		{"--remove no.such " + path, 2, `key "no.such": is not there`},
		{"--rename no.such=x " + path, 2, "is not there"},
		{"--rename general.name=llama.block_count " + path, 2, "already"},
		{"--rename general.name " + path, 2, "want KEY=NEW"},
		{"--special-token eos=no " + path, 2, `no token "no"`},
		{"--special-token eos=#4 " + path, 2, "below 4"},
		{"--special-token end=x " + path, 2, "want one of bos"},
		{"--special-token eos= " + path, 2, "want NAME=TEXT"},
		{"--special-token eos=x " + other, 2, "tokenizer.ggml.tokens"},
		{"--copy x " + path, 2, "goes with --copy-from"},
		{"--copy-from " + other + " --copy nothing " + path, 2, "no key begins with"},
		{"--template " + dir + "no " + path, 1, syscall.ENOENT.Error()},
		{"--template " + side("bad.json", "{}") + " " + path, 3, "not a string"},
		{"--reserve 1G " + path, 2, "--reserve"},
		{"--set general.name=x -o " + path + " " + path, 2, "output equals input"},
		{"--set general.name=x -o " + other + " " + path, 2, "exists"},
		{"--set general.name=x " + template, 3, "GGUF"},
	} {
		if code, out := run(strings.Fields(c.args)...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %s, want %d with %q", c.args, code, out, c.code, c.want)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("a refused change was written: %v", err)
	}
	if left, _ := filepath.Glob(dir + "*.partial"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestMetaStandardKeys sets keys that the file lacks: standard ones, whose types are known, and others.
func TestMetaStandardKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}
	for _, c := range []struct{ set, want, err string }{
		{"general.license=mit", `license="mit"`, ""},
		{"general.tags=[\"a\",\"b\"]", `tags=[str x 2] "a", "b"`, ""},
		{"general.base_model.0.name=Base", `name="Base"`, ""},
		{"general.sampling.temp=0.5", "temp=0.5", ""},
		{"tokenizer.ggml.add_bos_token=true", "add_bos_token=true", ""},
		{"tokenizer.ggml.eos_token_id=7", "eos_token_id=7", ""},
		{"tokenizer.chat_template={{ x }}", `chat_template="{{ x }}"`, ""},
		{"llama.rope.freq_base=10000", "freq_base=10000", ""},
		{"llama.context_length=4096", "context_length=4096", ""},
		{"tokenizer.ggml.eos_token_id=-1", "",
			`key "tokenizer.ggml.eos_token_id": "-1": want a whole number from 0 to 4294967295`},
		{"general.tags=a", "", "want an array in JSON"},
		{"general.name=u32:7", "", "type u32, want str"},
		{"my.key=7", "", `key "my.key": is neither in the file nor a standard one, so that its type is not known: want my.key=TYPE:VALUE`},
		{"qwen2.context_length=4096", "", "is neither in the file nor a standard one"},
	} {
		if err := os.WriteFile(path, gguf.AppendHeader(nil, m, nil, 32), 0o666); err != nil {
			t.Fatal(err)
		}
		code, out, err := call("meta", "--progress", "none", "--set", c.set, path)
		if c.err != "" {
			if code != 2 || err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: exit code %d, %v, want 2 with %q", c.set, code, err, c.err)
			}
			continue
		}
		f, openErr := gguf.Open(path)
		if code != 0 || openErr != nil {
			t.Errorf("%s: exit code %d, %s, %v, %v", c.set, code, out, err, openErr)
			continue
		}
		key, _, _ := strings.Cut(c.set, "=")
		v, _ := f.Metadata.Get(key)
		if got := key[strings.LastIndexByte(key, '.')+1:] + "=" + v.Short(); got != c.want {
			t.Errorf("%s: %s, want %s", c.set, got, c.want)
		}
		f.Close()
	}
}
