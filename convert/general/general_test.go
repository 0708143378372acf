package general

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"ggforge/fault"
)

func load(files map[string]string, opt Options) (*Metadata, error) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Load(fsys, "model", opt)
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{cardFile, "---\nname: a\nversion: 1.0\n---\n",
			`README.md: line 3: key "version": want a string, found the number 1.0 (put it in quotes)`},
		{cardFile, "---\r\nname: a\r\nauthor: 2024-01-02\r\n",
			`README.md: line 3: key "author": want a string, found the date 2024-01-02 (put it in quotes)`},
		{cardFile, "---\nlicense: [mit, 1]\n",
			`README.md: line 2: key "license": want a string in the list, found the number 1`},
		{cardFile, "---\nlicense: 2\n",
			`README.md: line 2: key "license": want a string or a list of strings, found the number 2 (put it in quotes)`},
		{cardFile, "---\nbase_model:\n- name: a\n- version: 2\n",
			`README.md: line 3: key "base_model": want a string as version, found the number 2`},
		{cardFile, "---\ntags: [a, 1]\n",
			`README.md: line 2: key "tags": want elements of one type in the list, found a string and the number 1`},
		{cardFile, "---\ntags: [[a], []]\n",
			`README.md: line 2: key "tags": want elements in the inner list, found none`},
		{cardFile, "---\nlanguage: [{a: b}]\n",
			`README.md: line 2: key "language": want strings in the list, found an object`},
		{cardFile, "---\nname: a\nx: [a\ny: b\n",
			`README.md: front matter: yaml: line 2: did not find expected ',' or ']'`},
		{cardFile, "---\nname: a\nx: y: b\n",
			`README.md: front matter: yaml: line 3: mapping values are not allowed in this context`},
		{cardFile, "---\nname: a\nx: *y\n", `README.md: front matter: yaml: unknown anchor 'y' referenced`},
		{cardFile, "---\nname: a\nx: =\n", `README.md: line 3: value "=": tag !!value is not supported`},
		{cardFile, "---\nname: a\nx: 2024-13-01\n", `README.md: line 3: value "2024-13-01" is not a valid timestamp`},
		{cardFile, "---\nname: a\nx: \x07\n", `README.md: line 3: character '\a' is not allowed in YAML`},
		{cardFile, "---\nname: a\nx: &y [*y]\n", `README.md: line 3: the value of &y holds itself`},
		{cardFile, "---\nname: a\n--- b\n", `README.md: line 3: a second YAML document`},
		{cardFile, "---\nname: a\xff\n", `README.md: byte 11: not UTF-8`},
		{configFile, "{\n\"a\": 1,\n\"b\" 2}", `config.json: line 3: `},
		{configFile, `{"_name_or_path": 1}`, `config.json: key "_name_or_path": want a string, found the number 1`},
		{configFile, "[]", `config.json: want an object, found a list`},
		{generationFile, `{"top_k": 1.5}`,
			`generation_config.json: key "top_k": want an integer of 32 bits, found the number 1.5`},
		{generationFile, `{"temperature": "hot"}`,
			`generation_config.json: key "temperature": want a number that float32 can hold, found a string`},
		{"over.json", "{} {}", `over.json: line 1: JSON: something follows the JSON value`},
		{"over.json", `{"general.base_models": ["a/b"]}`,
			`over.json: key "general.base_models": want a list of objects, found a string`},
	} {
		opt := Options{OverrideFile: "over.json"}
		if c.file == opt.OverrideFile {
			opt.Override = []byte(c.text)
		}
		_, err := load(map[string]string{c.file: c.text}, opt)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, fault.Broken) {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{generationFile, "{\n\"top_k\": 5,\n}", "generation_config.json: line 3: "},
		{cardFile, "---\n- a\n---\n", "README.md: front matter: want a mapping, found a list: ignored"},
		{cardFile, "---\nbase_model: [5]\n",
			`README.md: line 2: key "base_model": want an id or an object, found the number 5: entry left empty`},
		{cardFile, "---\ndatasets: {a: b}\n",
			`README.md: line 2: key "datasets": want a string or a list, found an object: ignored`},
	} {
		m, err := load(map[string]string{c.file: c.text}, Options{})
		if err != nil || len(m.Warnings) != 1 || !strings.HasPrefix(m.Warnings[0], c.want) {
			t.Errorf("%q: got %q, %v, want %s", c.text, m.Warnings, err, c.want)
		}
	}
}

func TestDirName(t *testing.T) {
	for path, want := range map[string]string{
		"a/b": "b", "b": "b", "./b/": "b", "/a/b/.": "b", "b//": "b", ".": "", "": "", "/": "", "./": "", "..": "..",
		"a/..": "..", "a/.b": ".b",
	} {
		if got := DirName(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestNotUTF8Dir(t *testing.T) {
	if _, err := Load(fstest.MapFS{}, "a\xff", Options{}); !errors.Is(err, fault.Broken) {
		t.Errorf("got %v, want an error", err)
	}
}

// TestAliases: a short text of nested aliases must not become a long array.
func TestAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\na0: &a0 [x, x, x, x, x, x, x, x]\n")
	for i := '1'; i <= '9'; i++ {
		prev := "*a" + string(i-1)
		b.WriteString("a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat(prev+", ", 7) + prev + "]\n")
	}
	b.WriteString("tags: *a9\n")
	_, err := load(map[string]string{cardFile: b.String()}, Options{})
	if err == nil || !strings.Contains(err.Error(), "more than 65536 elements") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("---\nname: a\ntags: [b, no]\nbase_model: c/d-7b\n---\n", `{"top_k": 5}`, `{"general.tags": ["a"]}`,
		"model-7b-v1")
	f.Add("---\nx: &x {a: 1}\n<<: *x\nversion: 1:30\n", `{"temperature": NaN}`, `{"general.name": null}`, "../x-8x7b1")
	f.Fuzz(func(t *testing.T, card, generation, over, dir string) {
		fsys := fstest.MapFS{cardFile: {Data: []byte(card)}, generationFile: {Data: []byte(generation)}}
		m, err := Load(fsys, dir, Options{Override: []byte(over)})
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, kv := range m.KVs(Counts{Total: 7e9, Shared: 7e9}) {
			if seen[kv.Key] {
				t.Errorf("key %q written twice", kv.Key)
			}
			seen[kv.Key] = true
		}
		m.FileName(Counts{}, "F16")
	})
}
