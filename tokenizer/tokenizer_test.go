package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestUnsupported checks that each kind of tokenizer that is not read is
// refused by name.
func TestUnsupported(t *testing.T) {
	for _, tt := range []struct{ name, file, text, want string }{
		{"model", "tokenizer.json", `{"model":{"type":"Fancy"}}`,
			`tokenizer.json: tokenizer.model: model type "Fancy"`},
		{"decoder", "tokenizer.json", `{"model":{"type":"BPE","vocab":{},"merges":[]},"decoder":{"type":"Fancy"}}`,
			`tokenizer.decoder: decoder "Fancy"`},
		{"version", "tokenizer.json", `{"version":"2.0","model":{"type":"BPE","vocab":{},"merges":[]}}`,
			`version "2.0"`},
		{"vocab.txt", "vocab.txt", "", "WordPiece"},
		{"tekken", "tekken.json", `{"config":{"default_vocab_size":1,"default_num_special_tokens":1,"version":"v11"}}`,
			"tekken.json"},
		{"tiktoken", "qwen.tiktoken", "", "tiktoken"},
		{"rwkv", "rwkv_vocab_v20230424.txt", "", "RWKV"},
		{"spiece", "spiece.model", "", "spiece.model"},
		{"class", "tokenizer_config.json", `{"tokenizer_class":"HybridDNATokenizer"}`, "HybridDNATokenizer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{tt.file: {Data: []byte(tt.text)}}, Options{Rules: Llama{}})
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want ErrUnsupported with %q, got %v", tt.want, err)
			}
		})
	}
	if _, err := Load(fstest.MapFS{}, Options{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no class: want ErrUnsupported, got %v", err)
	}
	var format *FormatError
	if _, err := Load(fstest.MapFS{}, Options{Rules: Llama{}}); !errors.As(err, &format) {
		t.Errorf("no files: want a FormatError, got %v", err)
	}
}

// tinyWith returns the tiny-spm directory with some files replaced or added.
func tinyWith(t *testing.T, files map[string]string) fstest.MapFS {
	t.Helper()
	dir := make(fstest.MapFS)
	for _, name := range []string{spmFile, jsonFile, configFile} {
		data, err := os.ReadFile("testdata/tiny-spm/" + name)
		if err != nil {
			t.Fatal(err)
		}
		dir[name] = &fstest.MapFile{Data: data}
	}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

// TestRefusedHere checks directories that this package refuses and the reference converts, or fails on in its own way.
func TestRefusedHere(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		vocab            int
	}{
		{"negative added token", addedTokensFile, `{"a": -1}`, 0},
		{"negative decoder token", configFile, `{"added_tokens_decoder": {"-1": {"content": "a"}}}`, 0},
		{"vocabulary size negative", addedTokensFile, `{}`, -1},
		{"vocabulary size beyond the bound", addedTokensFile, `{}`, maxVocab + 1},
		{"deep", configFile, strings.Repeat("[", 1e6), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var format *FormatError
			_, err := Load(tinyWith(t, map[string]string{tt.file: tt.text}),
				Options{Rules: Llama{}, VocabSize: tt.vocab})
			if !errors.As(err, &format) {
				t.Errorf("want a FormatError, got %v", err)
			}
		})
	}
}

// TestTemplateOrder checks the two orders that this package fixes itself.
func TestTemplateOrder(t *testing.T) {
	named := `{"chat_template": [{"name":"z","template":"1"},{"name":"default","template":"2"},{"name":"a","template":"3"},{"name":"z","template":"4"}]}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"list", map[string]string{configFile: named},
			`tokenizer.chat_template.z "4"|tokenizer.chat_template.a "3"|tokenizer.chat_templates ["z", "a"]|tokenizer.chat_template "2"`},
		{"folder", map[string]string{configFile: `{"x":0}`, chatJinjaFile: "D", chatTemplatesDir + "/b.jinja": "B",
			chatTemplatesDir + "/a.jinja": "A"},
			`tokenizer.chat_template.a "A"|tokenizer.chat_template.b "B"|tokenizer.chat_templates ["a", "b"]|tokenizer.chat_template "D"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Load(tinyWith(t, tt.files), Options{Rules: Llama{}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, kv := range v.KVs() {
				if strings.HasPrefix(kv.Key, keyChatTemplate) {
					got = append(got, fmt.Sprint(kv.Key, " ", kv.Value))
				}
			}
			if s := strings.Join(got, "|"); s != tt.want {
				t.Errorf("want %s\ngot  %s", tt.want, s)
			}
		})
	}
}

// TestWarnings checks the warnings about dropped values.
func TestWarnings(t *testing.T) {
	dir := tinyWith(t, map[string]string{
		addedTokensFile: `{"past": 1000, "<zero>": 0}`,
		configFile:      `{"chat_template": {}, "add_bos_token": false, "added_tokens_decoder": {"5000": {"content": "far"}, "2": {"content": "<end>", "special": true}}}`,
		modelFile:       `{"eos_token_id": [2, 7]}`,
	})
	v, err := Load(dir, Options{Rules: Llama{}, VocabSize: 900})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"tokenizer.model: tokens from 900 on ignored: the vocabulary has 900",
		`added_tokens.json: token "past" ignored: id 1000, but the vocabulary has 900`,
		`added_tokens.json: token 0 replaced: "<unk>" by "<zero>"`,
		`tokenizer_config.json: token "far" ignored: id 5000, but the vocabulary has 900`,
		`tokenizer_config.json: token 2 replaced: "</s>" by "<end>"`,
		"tokenizer_config.json: chat_template ignored: want a string or a list, got an object",
		"tokenizer_config.json: add_bos_token false ignored: the post-processor of tokenizer.json says true",
		"config.json: eos_token_id is a list, [2, 7], and none of its tokens is written: the file has no end token",
	}
	if !slices.Equal(v.Warnings, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(v.Warnings, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadError checks that an error of the file system comes through.
func TestReadError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/"+spmFile, nil, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	if _, err := Load(os.DirFS(dir).(Files), Options{Rules: Llama{}}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("want fs.ErrPermission, got %v", err)
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := os.DirFS("testdata/gollama")
	fi, err := fs.Stat(dir, spmFile)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(fi.Size())
	for b.Loop() {
		if _, err := Load(dir.(Files), Options{Rules: Llama{}}); err != nil {
			b.Fatal(err)
		}
	}
}
