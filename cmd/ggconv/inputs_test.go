package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/test/clitest"
)

// TestLinks converts checkpoints with links. The content of files outside, to which a link leads, must not end up in
// a published file.
func TestLinks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "id_rsa")
	must(t, os.WriteFile(secret, []byte("PRIVATE KEY"), 0o600))
	// without a template in tokenizer_config.json, the file with the template is read
	plain := func(t *testing.T) string {
		dir := copyOf(t, "model")
		path := filepath.Join(dir, "tokenizer_config.json")
		data, err := os.ReadFile(path)
		must(t, err)
		var config map[string]any
		must(t, json.Unmarshal(data, &config))
		delete(config, "chat_template")
		data, err = json.Marshal(config)
		must(t, err)
		must(t, os.WriteFile(path, data, 0o666))
		return dir
	}
	out := filepath.Join(t.TempDir(), "out.gguf")
	for name, target := range map[string]string{"absolute": secret, "relative": ""} {
		t.Run(name, func(t *testing.T) {
			dir := plain(t)
			if target == "" {
				var err error
				target, err = filepath.Rel(dir, secret)
				must(t, err)
			}
			clitest.NeedsSymlink(t, target, filepath.Join(dir, "chat_template.jinja"))
			fails(t, 5, "chat_template.jinja: is a link to ", dir)
			if code, _, err := call("--progress", "none", "--force", "--outside-links", dir, out); code != 0 {
				t.Fatal(err)
			}
			if got := metadata(t, out, "tokenizer.chat_template"); got != "PRIVATE KEY" {
				t.Errorf("with the flag the template is %q", got)
			}
		})
	}
	t.Run("folder", func(t *testing.T) {
		dir, other := plain(t), t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("x"), 0o666))
		must(t, os.WriteFile(filepath.Join(other, "a.jinja"), []byte("y"), 0o666))
		clitest.NeedsSymlink(t, other, filepath.Join(dir, "additional_chat_templates"))
		fails(t, 5, "additional_chat_templates: is a link to ", dir)
	})
	for _, name := range []string{"model.safetensors", "config.json", "README.md", "generation_config.json"} {
		t.Run(name, func(t *testing.T) {
			dir := plain(t)
			elsewhere := filepath.Join(t.TempDir(), "x")
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err != nil {
				must(t, os.WriteFile(path, []byte("{}"), 0o666))
			}
			must(t, os.Rename(path, elsewhere))
			clitest.NeedsSymlink(t, elsewhere, path)
			fails(t, 5, name+": is a link to "+elsewhere, dir)
			if code, _, err := call("--progress", "none", "--force", "--outside-links", dir, out); code != 0 {
				t.Error(err)
			}
		})
	}
	t.Run("inside", func(t *testing.T) {
		dir := plain(t)
		must(t, os.Mkdir(filepath.Join(dir, "files"), 0o777))
		for _, name := range []string{"model.safetensors", "config.json"} {
			must(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "files", name)))
		}
		clitest.NeedsSymlink(t, "files/config.json", filepath.Join(dir, "config.json"))
		clitest.NeedsSymlink(t, filepath.Join(dir, "files", "model.safetensors"),
			filepath.Join(dir, "model.safetensors"))
		if code, _, err := call("--progress", "none", "--force", dir, out); code != 0 {
			t.Error(err)
		}
	})
	t.Run("dangling", func(t *testing.T) {
		dir := plain(t)
		clitest.NeedsSymlink(t, "nowhere", filepath.Join(dir, "chat_template.jinja"))
		fails(t, 3, "chat_template.jinja: is a link to nowhere", dir)
	})
	t.Run("directory", func(t *testing.T) { // the user's own link
		link := filepath.Join(t.TempDir(), "link")
		clitest.NeedsSymlink(t, plain(t), link)
		if code, _, err := call("--progress", "none", "--force", link, out); code != 0 {
			t.Error(err)
		}
	})
}

// TestHubCache converts a snapshot in the cache of the Hugging Face hub, whose
// files are links to blobs and whose name is the hash of a commit.
func TestHubCache(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	repo := filepath.Join(t.TempDir(), "models--acme--Tiny-Llama-7B-chat")
	snapshot := filepath.Join(repo, "snapshots", commit)
	must(t, os.MkdirAll(snapshot, 0o777))
	must(t, os.Mkdir(filepath.Join(repo, "blobs"), 0o777))
	entries, err := os.ReadDir(gollama)
	must(t, err)
	for i, e := range entries {
		if e.Name() == "README.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(gollama, e.Name()))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(repo, "blobs", fmt.Sprint(i)), data, 0o666))
		clitest.NeedsSymlink(t, filepath.Join("..", "..", "blobs", fmt.Sprint(i)), filepath.Join(snapshot, e.Name()))
	}
	out := t.TempDir()
	if code, _, err := call("--progress", "none", "--outfile", out, snapshot); code != 0 {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.gguf"))
	must(t, err)
	if len(files) != 1 || !strings.HasPrefix(filepath.Base(files[0]), "Tiny-Llama") {
		t.Fatalf("files %q, want one named after the model", files)
	}
	if got := metadata(t, files[0], "general.name"); strings.Contains(got, commit[:8]) ||
		!strings.Contains(got, "Tiny Llama") {
		t.Errorf("general.name is %q", got)
	}
	if got := metadata(t, files[0], "general.organization"); !strings.Contains(got, "Acme") {
		t.Errorf("general.organization is %q", got)
	}
	reference := filepath.Join(out, "reference.gguf")
	if code, _, err := call("--progress", "none", "--compat", "reference", "--outfile", reference,
		snapshot); code != 0 {
		t.Fatal(err)
	}
	if got := metadata(t, reference, "general.name"); !strings.Contains(strings.ToLower(got), commit[:8]) {
		t.Errorf("--compat reference: general.name is %q, want the commit", got)
	}
	t.Chdir(snapshot)
	here := filepath.Join(out, "here.gguf")
	if code, _, err := call("--progress", "none", "--outfile", here, "."); code != 0 {
		t.Fatal(err)
	}
	if got := metadata(t, here, "general.name"); !strings.Contains(got, "Tiny Llama") {
		t.Errorf("from inside: general.name is %q", got)
	}
	link := filepath.Join(t.TempDir(), "link-7B")
	clitest.NeedsSymlink(t, snapshot, link)
	linked := filepath.Join(out, "linked.gguf")
	if code, _, err := call("--progress", "none", "--outfile", linked, link); code != 0 {
		t.Fatal(err)
	}
	if got := metadata(t, linked, "general.name"); !strings.Contains(got, "Tiny Llama") {
		t.Errorf("by a link: general.name is %q", got)
	}
	// links to the blobs of a different model are refused
	must(t, os.MkdirAll(filepath.Join(repo, "..", "models--acme--other", "blobs"), 0o777))
	foreign := filepath.Join(repo, "..", "models--acme--other", "blobs", "x")
	must(t, os.WriteFile(foreign, []byte("x"), 0o666))
	clitest.NeedsSymlink(t, "../../../models--acme--other/blobs/x", filepath.Join(snapshot, "chat_template.jinja"))
	fails(t, 5, "chat_template.jinja: is a link to ", snapshot)
}

// inputNames are files of a checkpoint that the converter reads.
var inputNames = []string{"config.json", "tokenizer_config.json", "tokenizer.json", "tokenizer.model",
	"generation_config.json", "README.md",
	"chat_template.jinja", "added_tokens.json", "model.safetensors", "model.safetensors.index.json"}

// TestKinds replaces each input file by a directory, a link to itself or a file that is far too large. TestPipes has
// named pipes and devices.
func TestKinds(t *testing.T) {
	for _, name := range inputNames {
		if strings.HasPrefix(name, "model.") {
			continue
		}
		t.Run("giant-"+name, func(t *testing.T) {
			dir := copyOf(t, "model")
			path := filepath.Join(dir, name)
			f, err := os.Create(path)
			must(t, err)
			defer f.Close()
			if err := f.Truncate(1 << 40); err != nil {
				t.Skip(err)
			}
			fails(t, 3, name+": 1099511627776 bytes, want at most ", dir)
		})
	}
	for _, name := range []string{"config.json", "model.safetensors"} {
		t.Run("directory-"+name, func(t *testing.T) {
			dir := copyOf(t, "model")
			path := filepath.Join(dir, name)
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o777))
			fails(t, 3, name+": is a directory, want a regular file", dir)
		})
	}
	t.Run("unreadable", func(t *testing.T) { // a link to itself: file permissions would not stop root
		for _, name := range []string{"config.json", "tokenizer.model"} {
			dir := copyOf(t, "model")
			os.Remove(filepath.Join(dir, name))
			clitest.NeedsSymlink(t, name, filepath.Join(dir, name))
			fails(t, 1, "open "+name+": ", dir)
		}
	})
	t.Run("metadata", func(t *testing.T) { // the file of --metadata
		dir := copyOf(t, "model")
		giant := filepath.Join(t.TempDir(), "giant")
		must(t, os.WriteFile(giant, nil, 0o666))
		if err := os.Truncate(giant, 1<<40); err != nil {
			t.Skip(err)
		}
		fails(t, 2, "giant: more than 16777216 bytes of metadata", dir, "--metadata", giant)
	})
}

// TestChanged changes each input while the weights are being written.
func TestChanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"touched": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Chtimes(path, st.ModTime(), st.ModTime().Add(time.Microsecond)) // NTFS has steps of 100 ns
		},
		"longer": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, st.Size()+1)
		},
		"shorter": func(path string) error { return os.Truncate(path, 100) },
		"replaced": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path+".new", data, 0o666); err != nil {
				return err
			}
			if err := os.Chtimes(path+".new", st.ModTime(), st.ModTime()); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"removed": os.Remove,
	} {
		for _, file := range []string{"model.safetensors", "config.json", "tokenizer.model"} {
			t.Run(file+"-"+name, func(t *testing.T) {
				dir := copyOf(t, "model")
				out := filepath.Join(t.TempDir(), "out.gguf")
				refused := false
				log := &clitest.Trigger{On: `"tensor"`, Do: func() {
					err := change(filepath.Join(dir, file))
					if refused = clitest.Refused(err); !refused {
						must(t, err)
					}
				}}
				cmd := command()
				cmd.Writer, cmd.ErrWriter = log, log
				err := tool.Run(context.Background(), cmd,
					[]string{"ggconv", "--progress", "json", "--outfile", out, dir})
				if log.Do != nil {
					t.Fatal("no event of a tensor")
				}
				if refused {
					must(t, err)
					return
				}
				if code := tool.Code(err); code != 3 || !strings.Contains(err.Error(), file) &&
					!strings.Contains(err.Error(), "changed") {
					t.Errorf("exit code %d, %v; want 3 and the file", code, err)
				}
				if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
					t.Errorf("leftover: %q", left)
				}
			})
		}
	}
}

// TestTensorNames refuses names that other readers would misread.
func TestTensorNames(t *testing.T) {
	for name, text := range map[string]string{"": "empty", "lm_head.weight\x00x": "NUL", "\x00": "NUL"} {
		dir := copyOf(t, "model")
		f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
		must(t, err)
		defer f.Close()
		list := []safetensorstest.Tensor{{Name: name, DType: safetensors.F32, Shape: []int64{1}, Data: make([]byte, 4)}}
		for _, x := range f.Tensors() {
			list = append(list, safetensorstest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape, Data: x.Data()})
		}
		must(t, safetensorstest.Write(filepath.Join(dir, "model.safetensors"), list, nil))
		fails(t, 3, text, dir)
	}
}

// TestLabels converts checkpoints whose config.json names a quantization method: only the precision of the stored
// weights counts.
func TestLabels(t *testing.T) {
	for _, label := range []string{"fp8", "bitnet", "gptq", "mxfp4"} {
		dir := copyOf(t, "model")
		path := filepath.Join(dir, "config.json")
		data, err := os.ReadFile(path)
		must(t, err)
		text := strings.Replace(string(data), "{", `{"quantization_config": {"quant_method": "`+label+`"},`, 1)
		must(t, os.WriteFile(path, []byte(text), 0o666))
		labelled, plain := filepath.Join(t.TempDir(), "a.gguf"), filepath.Join(t.TempDir(), "b.gguf")
		code, printed, err := call("--progress", "none", dir, labelled)
		if code != 0 {
			t.Fatalf("%s: %v", label, err)
		}
		if !strings.Contains(printed, "quantization by "+label+", but the weights are not quantized") {
			t.Errorf("%s: no warning: %s", label, printed)
		}
		if code, _, err = call("--progress", "none", copyOf(t, "model"), plain); code != 0 {
			t.Fatal(err)
		}
		a, err := os.ReadFile(labelled)
		must(t, err)
		b, err := os.ReadFile(plain)
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: the label changes the file", label)
		}
		if code, _, err := call("--progress", "none", "--force", "--compat", "reference", dir, labelled); code != 0 {
			t.Fatal(err)
		}
		f, err := gguf.Open(labelled)
		must(t, err)
		defer f.Close()
		v, _ := f.Metadata.Get("general.file_type")
		want := int64(32) // BF16
		if label == "mxfp4" {
			want = 38 // MXFP4_MOE, as the reference believes the label
		}
		if n, _ := v.Int(); n != want {
			t.Errorf("%s: --compat reference: general.file_type %d, want %d", label, n, want)
		}
	}
}

// TestQuantized refuses weights in a precision that cannot be decoded, and names it, with or without a label in
// config.json.
func TestQuantized(t *testing.T) {
	f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
	must(t, err)
	defer f.Close()
	const victim = "model.layers.0.mlp.up_proj"
	part := func(suffix string, dtype safetensors.DType) safetensorstest.Tensor {
		return safetensorstest.Tensor{Name: victim + suffix, DType: dtype, Shape: []int64{8},
			Data: make([]byte, dtype.Bits())}
	}
	for scheme, parts := range map[string][]safetensorstest.Tensor{
		"quantized by eetq": {part(".weight", safetensors.I8), part(".weight_scales", safetensors.F16)},
		"one GPU kernel": {part(".qweight", safetensors.I16), part(".scales", safetensors.F16),
			part(".scaled_zeros", safetensors.F16)},
		"quantized by marlin": {part(".B", safetensors.I32), part(".s", safetensors.F16),
			part(".workspace", safetensors.I32)},
		"quantized themselves": {part(".W_q", safetensors.U8), part(".zero", safetensors.F16),
			part(".scale_q", safetensors.U8), part(".meta_scale.scale", safetensors.F16)},
		"matrices are sparse": {part(".compressed", safetensors.F16), part(".bitmask", safetensors.U8),
			part(".shape", safetensors.I64)},
		"quantized by aqlm": {part(".codes", safetensors.I8), part(".codebooks", safetensors.F16),
			part(".scales", safetensors.F16)},
		"quantized by quanto": {part(".weight._data", safetensors.U8), part(".weight._scale", safetensors.F16)},
		"holds F8_E4M3":       {part(".weight", safetensors.F8_E4M3)},
		"holds U8":            {part(".weight", safetensors.U8)},
	} {
		dir := copyOf(t, "model")
		list := parts
		for _, x := range f.Tensors() {
			if x.Name != victim+".weight" {
				list = append(list, safetensorstest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape,
					Data: x.Data()})
			}
		}
		must(t, safetensorstest.Write(filepath.Join(dir, "model.safetensors"), list, nil))
		fails(t, 4, scheme, dir)
	}
}

// TestManyTensors reads headers of more tensors without elements than any model has,
// in one file and in two shards that are below the limit each: memory stays within
// a small multiple of the input.
func TestManyTensors(t *testing.T) {
	header := func(first, n int) []byte {
		b := []byte("{")
		for i := range n {
			b = fmt.Appendf(b, `"a%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`, first+i)
		}
		b[len(b)-1] = '}'
		return safetensorstest.Raw(b, nil)
	}
	for name, files := range map[string]map[string][]byte{
		"one file": {"model.safetensors": header(0, 700000)},
		"shards": {
			"model-00001-of-00002.safetensors": header(0, 300000),
			"model-00002-of-00002.safetensors": header(300000, 300000),
		},
	} {
		dir := copyOf(t, "model")
		must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
		size := 0
		for file, data := range files {
			must(t, os.WriteFile(filepath.Join(dir, file), data, 0o666))
			size += len(data)
		}
		got := clitest.Alone(t, dir, "--outfile", filepath.Join(dir, "out.gguf"), "--progress", "none")
		if want := "has more than 524288 tensors"; got.Code != 4 || !strings.Contains(got.Text, want) {
			t.Errorf("%s: exit %d, want 4 and %q: %.300s", name, got.Code, want, got.Text)
		}
		if got.Allocated > uint64(8*size) {
			t.Errorf("%s: %d MB allocated for input of %d MB", name, got.Allocated>>20, size>>20)
		}
	}
}
