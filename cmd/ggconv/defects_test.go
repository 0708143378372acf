package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/gguf"
)

// raw returns a safetensors file with the header and n bytes of data.
func raw(header string, n int) string {
	return string(safetensorstest.Raw([]byte(header), make([]byte, n)))
}

// TestDefects converts checkpoints with one broken file: the message names the defect, and nothing is written.
// Further defects are in other tests: safetensors files (package safetensors), pickles and their archives
// (checkpoint/torch), sizes in config.json (TestHostileSizes), small files that cost a lot (TestBombs), links, pipes
// and devices (TestLinks, TestKinds).
func TestDefects(t *testing.T) {
	index := func(file string) map[string]string {
		return map[string]string{"model.safetensors": "",
			"model.safetensors.index.json": `{"metadata":{},"weight_map":{"model.embed_tokens.weight":"` + file + `"}}`}
	}
	weights := func(data string) map[string]string { return map[string]string{"model.safetensors": data} }
	pickled := func(name string, data []byte) map[string]string {
		return map[string]string{"model.safetensors": "", name: string(data)}
	}
	system := func() *torchfiletest.Pickle {
		return new(torchfiletest.Pickle).Op(0x80, 2).Global("posix",
			"system").Op('(').Str("touch PWNED").Op('t').Op('R').Op('.')
	}
	evil := torchfiletest.Zip(system().Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 16)})
	edit := func(mark string, at int, with ...byte) []byte {
		b := bytes.Clone(evil)
		for i := bytes.Index(b, []byte(mark)); i >= 0; {
			copy(b[i+at:], with)
			next := bytes.Index(b[i+4:], []byte(mark))
			if next < 0 {
				break
			}
			i += 4 + next
		}
		return b
	}
	local := bytes.Clone(evil) // the local header has another name than the central directory
	copy(local[30:], "Archive")
	const groups = "\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x00\x00\x18\x02"
	for _, c := range []struct {
		name   string
		files  map[string]string // replaced files; "" removes one
		code   int
		text   string
		attack string // for readers
	}{
		{"index-parent", index("../model.safetensors"), 3, `"../model.safetensors"`, "a path out of the folder"},
		{"index-absolute", index("/etc/passwd"), 3, `"/etc/passwd"`, "a path out of the folder"},
		{"index-inside-out", index("a/../../model.safetensors"), 3, `"a/../../model.safetensors"`,
			"a path out of the folder"},
		{"index-backslash", index(`..\\model.safetensors`), 3, `model.safetensors`,
			"a path out of the folder, on Windows"},
		{"index-itself", index("model.safetensors.index.json"), 3, "model.safetensors.index.json",
			"an index of itself"},
		{"index-folder", index("."), 3, `"."`, ""},
		{"index-missing", index("model-00001-of-00001.safetensors"), 3, "missing", ""},
		{"index-nested", map[string]string{"model.safetensors": "", "model.safetensors.index.json": `{"weight_map":` +
			strings.Repeat(`{"a":`, 1<<16)}, 3, "want", "nesting that overflows a stack"},

		{"header-longer-than-file", weights("\xff\xff\xff\x00\x00\x00\x00\x00{}"), 3, "is 16777215 bytes long",
			"a length that sizes an allocation"},
		{"header-length-max", weights("\xff\xff\xff\xff\xff\xff\xff\xff{}"), 3,
			"is 18446744073709551615 bytes long", ""},
		{"offsets-overlap",
			weights(raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6)), 3, "overlapping", "two tensors of the same bytes"},
		{"offsets-hole", weights(raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8)), 3, "leaving a hole",
			"a file inside a file: bytes that no tensor has"},
		{"trailing-file", weights(raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4) + "PK\x03\x04"), 3,
			"4 bytes after the last tensor", "a file of two formats"},
		{"name-twice", weights(
			raw(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, 8)), 3, "is in the header twice", "readers that see different tensors"},
		{"shape-wraps", weights(raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0)),
			3, "overflows 64 bits", "a product of 2^64"},
		{"dtype-unknown",
			weights(raw(`{"a":{"dtype":"`+strings.Repeat("F", 1<<20)+`","shape":[1],"data_offsets":[0,4]}}`, 4)), 4,
			"is not known", ""},
		{"pickle-renamed", weights(string(evil)), 3, "is this a safetensors file?",
			"CVE-2025-10155: a pickle under another ending"},
		{"archive-7z-renamed", weights("7z\xbc\xaf\x27\x1c\x00\x04" + strings.Repeat("\x00", 64)), 3, "is ",
			"an archive that scanners do not open"},

		{"pickle-system", pickled("pytorch_model.bin", evil), 5, `names "posix.system"`,
			"a pickle that runs a command"},
		{"pickle-plain", pickled("pytorch_model.bin", system().Bytes()), 3, "is this a file of PyTorch?",
			"a pickle without an archive"},
		{"pickle-pip", pickled("pytorch_model.bin",
			torchfiletest.Zip(new(torchfiletest.Pickle).Op(0x80, 2).Global("pip",
				"main").Op('(').Str("install").Op('t').Op('R').Op('.').Bytes(), nil, nil)), 5, `names "pip.main"`,
			"CVE-2025-1716: a function that lists of dangerous functions lack"},
		{"pickle-subclass", pickled("pytorch_model.bin",
			torchfiletest.Zip(new(torchfiletest.Pickle).Op(0x80, 2).Global("asyncio.unix_events",
				"_UnixSubprocessTransport._start").Op('.').Bytes(), nil, nil)), 5, "names",
			"CVE-2025-10157: a function of a submodule of a listed module"},
		{"pickle-logging", pickled("pytorch_model.bin",
			torchfiletest.Zip(new(torchfiletest.Pickle).Op(0x80, 2).Global("logging",
				"FileHandler").Op('(').Str("PWNED").Op('t').Op('R').Op('.').Bytes(), nil, nil)), 5, "names",
			"CVE-2026-56304: a class that makes a file"},
		{"pickle-nested", pickled("pytorch_model.bin",
			torchfiletest.Zip(new(torchfiletest.Pickle).Op(0x80, 2).Global("pickle", "loads").Op('.').Bytes(), nil,
				nil)), 5, "names", "a pickle in a pickle"},
		{"pickle-broken-after-call", pickled("pytorch_model.bin",
			torchfiletest.Zip(append(bytes.TrimSuffix(system().Bytes(), []byte(".")), 0xff), nil, nil)), 5,
			"posix.system", "a pickle that breaks after it has run"},
		{"zip-crc", pickled("pytorch_model.bin", edit("PK\x01\x02", 16, 1, 2, 3, 4)), 5, "posix.system",
			"CVE-2025-10156: a wrong checksum ends the scan, and not the load"},
		{"zip-flags", pickled("pytorch_model.bin", edit("PK\x01\x02", 8, 1)), 4, "encrypted",
			"CVE-2025-1945: flags that only one reader checks"},
		{"zip-names-differ", pickled("pytorch_model.bin", local), 3, "has the name",
			"CVE-2025-1944: different names in the local header and in the central directory"},
		{"zip-compressed", pickled("pytorch_model.bin", edit("PK\x01\x02", 10, 8)), 4, "compressed",
			"a zip bomb"},
		{"zip-cut", pickled("pytorch_model.bin", evil[:len(evil)-8]), 3, "no end of a directory",
			"an archive without its end"},
		{"zip-7z", pickled("pytorch_model.bin", append([]byte("7z\xbc\xaf\x27\x1c\x00\x04"), make([]byte, 64)...)), 3,
			"is this a file of PyTorch", "an archive that scanners do not open"},

		{"model-groups", map[string]string{"tokenizer.model": groups + strings.Repeat(strings.Repeat("\x0b", 90)+"\x14",
			8)}, 3, "group 1 ends as group 2", "time that doubles with each level"},
		{"config-deep", map[string]string{"config.json": strings.Repeat("[", 1<<20)}, 3, "nested deeper than 900",
			"nesting that overflows a stack"},
		{"config-list", map[string]string{"config.json": "[]"}, 3, "want", ""},
		{"tokenizer-regex-deep", map[string]string{"tokenizer.model": "",
			"tokenizer.json": tokenizerJSON(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + strings.Repeat("(",
				1<<16) + strings.Repeat(")", 1<<16) + `"},"behavior":"Isolated"}`)}, 4, "",
			"nesting that overflows a stack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyOf(t, "gollama")
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if text == "" {
					must(t, os.Remove(path))
				} else {
					must(t, os.WriteFile(path, []byte(text), 0o666))
				}
			}
			before, err := os.ReadDir(dir)
			must(t, err)
			work := t.TempDir()
			code, out, err := call("--progress", "none", "--outfile", filepath.Join(work, "out.gguf"), dir)
			if err != nil {
				out += err.Error()
			}
			if code != c.code || !strings.Contains(out, c.text) {
				t.Errorf("exit code %d, want %d and %q: %.300s", code, c.code, c.text, out)
			}
			if len(out) > 2000 {
				t.Errorf("%d bytes of messages", len(out))
			}
			after, err := os.ReadDir(dir)
			must(t, err)
			left, err := os.ReadDir(work)
			if must(t, err); len(after) != len(before) || len(left) != 0 {
				t.Errorf("files %v and %v, were %v", after, left, before)
			}
			if _, err := os.Stat("PWNED"); err == nil {
				t.Error("the command in the pickle was run")
			}
		})
	}
}

// TestTemplates converts a model whose templates run code where a program renders them (CVE-2024-34359), loop without
// an end, or write to the terminal: the converter copies templates unchanged and never renders them.
func TestTemplates(t *testing.T) {
	for name, template := range map[string]string{
		"code":     `{% for c in ().__class__.__base__.__subclasses__() %}{{ c.__init__.__globals__['os'].popen('touch PWNED').read() }}{% endfor %}`,
		"import":   `{{ self.__init__.__globals__.__builtins__.__import__('os').system('touch PWNED') }}`,
		"endless":  `{% for a in range(1000000000) %}{% for b in range(1000000000) %}x{% endfor %}{% endfor %}`,
		"include":  `{% include '/etc/passwd' %}{% extends '../secret' %}`,
		"broken":   `{% if %}{{ {% }}`,
		"terminal": "{{ messages }}\x1b]0;title\x07\x1b[2J\u202e",
	} {
		dir := copyOf(t, "gollama")
		must(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o666))
		out := filepath.Join(t.TempDir(), "out.gguf")
		code, text, err := call("--progress", "none", "--outfile", out, dir)
		if code != 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("%s: control characters in %q", name, text)
		}
		f, err := gguf.Open(out)
		must(t, err)
		if v, _ := f.Metadata.Get("tokenizer.chat_template"); v != gguf.String(template) {
			t.Errorf("%s: the file has %s", name, v.Short())
		}
		must(t, f.Close())
		if _, err := os.Stat("PWNED"); err == nil {
			t.Errorf("%s: was run", name)
		}
	}
}
