package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/installed/installedtest"
	"ggforge/gguf"
	"ggforge/test/buckettest"
)

// TestModelfile writes Modelfiles for models, encoders and adapters here, on a server and in the stores of other
// programs.
func TestModelfile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	put := func(name string, kvs ...gguf.KV) []byte {
		t.Helper()
		tensors := []gguf.Tensor{{Name: "t.weight", NE: []int64{32}, Type: gguf.TypeF32}}
		m := append(gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}, kvs...)
		data := append(gguf.AppendHeader(nil, m, tensors, 32), make([]byte, gguf.Layout(tensors, 32))...)
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), data, 0o666); err != nil {
			t.Fatal(err)
		}
		return data
	}
	kv := func(key string, v gguf.Value) gguf.KV { return gguf.KV{Key: key, Value: v} }
	data := put("a/m.gguf", kv("general.sampling.temp", gguf.Float32(0.25)), kv("general.license", gguf.String("mit")),
		kv("tokenizer.ggml.tokens", gguf.Strings([]string{"<|eot|>", "x\u200d"})),
		kv("tokenizer.ggml.eot_token_id", gguf.Uint32(0)), kv("tokenizer.ggml.eom_token_id", gguf.Uint32(1)))
	put("a/mmproj.gguf", kv(gguf.KeyType, gguf.String("mmproj")))
	put("b c/lora '1'.gguf", kv(gguf.KeyType, gguf.String("adapter")))
	put("a/imatrix.gguf", kv(gguf.KeyType, gguf.String("imatrix")))
	const rest = "PARAMETER temperature 0.25\nPARAMETER stop \"<|eot|>\"\nLICENSE \"mit\"\n"

	run := expect(t, "modelfile")
	prints := func(want string, args ...string) {
		t.Helper()
		code, out, err := call(append([]string{"modelfile"}, args...)...)
		if i := strings.Index(out, "FROM "); code != 0 || i < 0 || out[i:] != want {
			t.Errorf("%q: %d %v\n%s\nwant\n%s", args, code, err, out, want)
		}
	}
	prints("FROM ./m.gguf\n"+rest, at("a/m.gguf"))
	run(0, "tokenizer.ggml.eom_token_id: byte 1: Ollama drops the character U+200D", at("a/m.gguf"))
	prints("FROM ./m.gguf\nFROM ./mmproj.gguf\nADAPTER \"../b c/lora '1'.gguf\"\nPARAMETER num_ctx 4096\n"+
		strings.Replace(rest, "LICENSE", "SYSTEM \"\"\"Be\nshort.\"\"\"\nLICENSE", 1), "--ctx-size", "4096",
		"--system", "Be\nshort.", at("b c/lora '1'.gguf"), at("a/mmproj.gguf"), at("a/m.gguf"))
	prints("FROM llama3.2\nADAPTER \"./lora '1'.gguf\"\n", "--from", "llama3.2", at("b c/lora '1'.gguf"))

	// a template in Go, and others
	for name, text := range map[string]string{"go.tmpl": "{{ .Prompt }}\n", "jinja": "{% if x %}{% endif %}",
		"empty": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	prints("FROM ./m.gguf\n"+strings.Replace(rest, "LICENSE", "TEMPLATE \"\"\"{{ .Prompt }}\n\"\"\"\nLICENSE", 1),
		"--template", at("go.tmpl"), at("a/m.gguf"))
	run(2, "a Jinja template", "--template", at("jinja"), at("a/m.gguf"))
	run(2, "is empty", "--template", at("empty"), at("a/m.gguf"))

	// written, with paths from its folder
	out := at("b c/Modelfile")
	run(0, "Modelfile: written", "-o", out, at("a/m.gguf"))
	if text, err := os.ReadFile(out); err != nil || string(text) != "FROM ../a/m.gguf\n"+rest {
		t.Errorf("%v: %s", err, text)
	}
	run(2, "exists", "-o", out, at("a/mmproj.gguf"), at("a/m.gguf"))
	run(0, "", "-o", out, "--force", at("a/mmproj.gguf"), at("a/m.gguf"))
	if text, err := os.ReadFile(out); err != nil ||
		!strings.HasPrefix(string(text), "FROM ../a/m.gguf\nFROM ../a/mmproj.gguf\n") {
		t.Errorf("%v: %s", err, text)
	}
	run(2, "output equals input", "-o", at("a/m.gguf"), "--force", at("a/m.gguf"))
	if now, err := os.ReadFile(at("a/m.gguf")); err != nil || string(now) != string(data) {
		t.Errorf("the model has changed: %v", err)
	}
	var result modelfileResult
	_, text, _ := call("modelfile", "--json", "--quiet", at("a/m.gguf"))
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &result); err != nil ||
		result.Text != "FROM ./m.gguf\n"+rest || !slices.Equal(result.From, []string{"./m.gguf"}) ||
		len(result.Parameters) != 2 || len(result.Warnings) != 1 {
		t.Errorf("%v: %+v", err, result)
	}

	run(2, "--force goes with --output", "--force", at("a/m.gguf"))
	run(2, "--ctx-size 0", "--ctx-size", "0", at("a/m.gguf"))
	run(2, "no model among the files", at("a/mmproj.gguf"))
	run(2, "the second model", at("a/m.gguf"), at("a/m.gguf"))
	run(2, "the second encoder", at("a/mmproj.gguf"), at("a/mmproj.gguf"))
	run(2, "--from names another", "--from", "x", at("a/m.gguf"))
	run(2, "importance matrix", at("a/imatrix.gguf"))
	run(2, "a line that ends with", "--system", "a\"\"\"\nb", at("a/m.gguf"))
	run(2, "want a name of one line", "--from", "a\nSYSTEM b", at("a/mmproj.gguf"))

	// shards: Ollama joins those that are named
	expect(t, "split")(0, "", "--no-tensor-first-split", at("a/m.gguf"), at("a/s"))
	prints("FROM ./s-00001-of-00002.gguf\nFROM ./s-00002-of-00002.gguf\n"+rest, at("a/s-00001-of-00002.gguf"))

	// on a server
	s := buckettest.Serve(t, dir, "models/")
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	prints("FROM ./m.gguf\n"+rest, "s3://models/a/m.gguf")
	prints("FROM ./s-00001-of-00002.gguf\nFROM ./s-00002-of-00002.gguf\n"+rest, "s3://models/a/s-00001-of-00002.gguf")

	// in the stores of other programs
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Setenv("OLLAMA_MODELS", at("o"))
	installedtest.Ollama(t, at("o"), "registry.ollama.ai/library/tiny/7b", "model", data)
	prints("FROM tiny:7b\n"+rest, "ollama://tiny:7b")
	file := ".lmstudio/models/pub/tiny/x.gguf"
	put(file)
	prints("FROM "+filepath.ToSlash(at(file))+"\n", "lmstudio://pub/tiny")
}
