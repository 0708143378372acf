package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/fault"
)

func TestDir(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o777); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		if data, err := d.ReadFile("config.json"); err != nil || string(data) != "{}" {
			t.Errorf("%q, %v", data, err)
		}
	}
	if got := d.Inputs(); len(got) != 1 || filepath.Base(got[0]) != "config.json" {
		t.Errorf("inputs %q", got)
	}
	list, err := d.ReadDir(".")
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	for name, kind := range map[string]error{
		"none":             fs.ErrNotExist,
		"1_Pooling/none":   fs.ErrNotExist,
		"1_Pooling":        fault.Broken,
		"../x":             fault.Broken,
		"/etc/passwd":      fault.Broken,
		"":                 fault.Broken,
		"1_Pooling/../../": fault.Broken,
	} {
		if _, err := d.ReadFile(name); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", name, err, kind)
		}
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("{ }"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(); !errors.Is(err, fault.Broken) {
		t.Errorf("a file that has changed: %v", err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, fault.Usage) {
		t.Errorf("a file as a directory: %v", err)
	}
}

func TestLimit(t *testing.T) {
	for name, want := range map[string]int64{
		"tokenizer.json": 128 << 20, "tokenizer.model": 128 << 20, "config.json": 16 << 20,
		"1_Pooling/config.json":               16 << 20,
		"additional_chat_templates/rag.jinja": 4 << 20, "README.md": 16 << 20, "qwen.tiktoken": 64 << 20,
		"whatever": 16 << 20,
	} {
		if got := limit(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if !slices.ContainsFunc(limits, func(l struct {
		pattern string
		bytes   int64
	}) bool {
		return l.pattern == "*"
	}) {
		t.Error("no limit for files of other names")
	}
}

func TestHubPath(t *testing.T) {
	for path, want := range map[string]string{ // the model's name and the file, "" for no path of the cache
		"/home/u/.cache/huggingface/hub/models--org--Some-7B/snapshots/abc":     "Some-7B ",
		"/hub/models--org--Some-7B/snapshots/abc/1_Pooling/config.json":         "Some-7B 1_Pooling/config.json",
		"/hub/models--gpt2/snapshots/abc":                                       "gpt2 ",
		"/hub/models--org--a--b/snapshots/abc":                                  "a--b ",
		"/hub/models--org--Some-7B":                                             "",
		"/hub/models--org--Some-7B/blobs/abc":                                   "",
		"/hub/models--/snapshots/abc":                                           "",
		"/hub/models--org--/snapshots/abc":                                      "",
		"/hub/datasets--org--x/snapshots/abc":                                   "",
		"/models--x--y/snapshots/abc/models--org--Some-7B/snapshots/def/x.json": "Some-7B x.json",
	} {
		h, ok := parseHub(filepath.FromSlash(path))
		got := ""
		if ok {
			got = h.model + " " + filepath.ToSlash(h.file)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
