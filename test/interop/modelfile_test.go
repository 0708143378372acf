package interop

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/publish/modelfile"
)

// command is an instruction as Ollama's parser reads it; FROM is called model.
type command struct{ Name, Args string }

// parsedModelfile is what Ollama's parser reads in a Modelfile.
type parsedModelfile struct {
	Commands []command
	Error    string
}

// parseModelfiles has Ollama's parser read Modelfiles.
func parseModelfiles(t *testing.T, texts []string) (list []parsedModelfile) {
	t.Helper()
	var in bytes.Buffer
	for _, text := range texts {
		must(t, json.NewEncoder(&in).Encode(text))
	}
	cmd := exec.Command("./modelfile")
	cmd.Dir, cmd.Stdin = readers, &in
	out, errs, code := outcome(t, cmd)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var one parsedModelfile
		must(t, d.Decode(&one))
		list = append(list, one)
	}
	if len(list) != len(texts) {
		t.Fatalf("%d Modelfiles read, want %d", len(list), len(texts))
	}
	return list
}

// hostileTexts returns texts of pieces that mean something in a Modelfile.
func hostileTexts(n int) (list []string) {
	pieces := []string{`"`, `"""`, "\n", "\r", " ", "\t", "a", "SYSTEM evil", "FROM evil", "PARAMETER stop x", "#", `\`,
		"\u00a0", "\u200d", "｜", "▁", "\x00", "\f", "{{ .System }}", "é", "😀", "LICENSE \"\"\""}
	rnd := rand.New(rand.NewPCG(7, 8))
	for range n {
		var b strings.Builder
		for range rnd.IntN(8) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		list = append(list, b.String())
	}
	return list
}

// TestReadersModelfile has Ollama's own parser read Modelfiles with hostile texts: what is quoted is read as it is, and
// what is refused would be read as something else. No metadata add an instruction.
func TestReadersModelfile(t *testing.T) {
	if readers == "" || bin == "" {
		t.Skip("needs the readers of other projects: run make readers")
	}
	texts := hostileTexts(20_000)
	var files []string
	var refused []error
	for _, s := range texts {
		quoted, err := modelfile.Quote(s)
		if refused = append(refused, err); err != nil {
			quoted = `"""` + s + `"""`
		}
		files = append(files, "FROM x\nSYSTEM "+quoted+"\nLICENSE last\n")
	}
	counts := map[bool]int{}
	for i, got := range parseModelfiles(t, files) {
		counts[refused[i] != nil]++
		same := slices.Equal(got.Commands, []command{{"model", "x"}, {"system", texts[i]}, {"license", "last"}})
		if same != (refused[i] == nil) {
			t.Errorf("%q, refused: %v; read as %q %s", texts[i], refused[i], got.Commands, got.Error)
		}
	}
	t.Logf("%d texts are read as they are, %d are refused", counts[false], counts[true])
	if counts[false] < 5000 || counts[true] < 1000 {
		t.Errorf("want more of each")
	}

	// metadata
	files = nil
	var want [][]command
	for i := 0; i+4 <= len(texts); i += 4 {
		m := modelfile.Modelfile{From: []string{"./x.gguf"}}
		m.Read(gguf.Metadata{
			{Key: "general.sampling.temp", Value: gguf.Float32(float32(i) / 7)},
			{Key: "general.license", Value: gguf.String(texts[i])},
			{Key: "general.license.link", Value: gguf.String(texts[i+1])},
			{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(texts[i+2 : i+4])},
			{Key: "tokenizer.ggml.eot_token_id", Value: gguf.Uint32(0)},
			{Key: "tokenizer.ggml.eom_token_id", Value: gguf.Uint32(1)},
		})
		text, err := m.Text()
		must(t, err)
		all := []command{{"model", "./x.gguf"}}
		for _, p := range m.Parameters {
			all = append(all, command{p.Name, p.Value})
		}
		if m.License != "" {
			all = append(all, command{"license", m.License})
		}
		files, want = append(files, string(text)), append(want, all)
	}
	for i, got := range parseModelfiles(t, files) {
		if !slices.Equal(got.Commands, want[i]) {
			t.Errorf("%s\nread as %q %s, want %q", files[i], got.Commands, got.Error, want[i])
		}
	}

	// the command
	dir := t.TempDir()
	path := filepath.Join(dir, `a "b".gguf`)
	tensors := []gguf.Tensor{{Name: "t.weight", NE: []int64{32}, Type: gguf.TypeF32}}
	header := gguf.AppendHeader(nil, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "general.license", Value: gguf.String("mit\nSYSTEM evil")}}, tensors, 32)
	must(t, os.WriteFile(path, append(header, make([]byte, gguf.Layout(tensors, 32))...), 0o666))
	template := filepath.Join(dir, "template")
	must(t, os.WriteFile(template, []byte("{{ .Prompt }}\n"), 0o666))
	out := filepath.Join(dir, "Modelfile")
	ours(t, "ggtool", "modelfile", "-o", out, "--ctx-size", "4096", "--system", "\"a\"\nb\"", "--template", template, path)
	text, err := os.ReadFile(out)
	must(t, err)
	got := parseModelfiles(t, []string{string(text)})[0]
	if !slices.Equal(got.Commands, []command{{"model", `./a "b".gguf`}, {"num_ctx", "4096"},
		{"template", "{{ .Prompt }}\n"}, {"system", "\"a\"\nb\""}, {"license", "mit\nSYSTEM evil"}}) {
		t.Errorf("%s\nread as %q %s", text, got.Commands, got.Error)
	}
}
