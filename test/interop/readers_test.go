package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/quantize"
)

// readers is the folder where make readers has installed the readers of other projects.
var readers = os.Getenv("READERS")

// headerOf is what a reader prints for a file.
type headerOf struct {
	Version  int
	Metadata map[string]any
	Tensors  []struct {
		Name   string
		NE     []int64
		Type   uint32
		Offset int64
	}
}

// reader runs one of the readers and returns its lines.
func reader(t *testing.T, program string, argv ...string) []string {
	t.Helper()
	cmd := exec.Command(program, argv...)
	cmd.Dir = readers
	out, errs, code := outcome(t, cmd)
	if code != 0 {
		t.Fatalf("%s %q: exit code %d\n%s", program, argv, code, errs)
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

// decode reads a line of JSON, numbers as they are written.
func decode(t *testing.T, line string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v: %.200s", err, line)
	}
}

// inspected returns what ggtool inspect prints for a file.
func inspected(t *testing.T, path string) headerOf {
	t.Helper()
	var all struct {
		Version  int
		Metadata []struct {
			Key   string
			Value any
		}
		Tensors []struct {
			Name, Type string
			NE         []int64
			Offset     int64
		}
	}
	decode(t, ours(t, "ggtool", "inspect", "--json", "--full", "--alone", path), &all)
	h := headerOf{Version: all.Version, Metadata: map[string]any{}}
	for _, kv := range all.Metadata {
		h.Metadata[kv.Key] = kv.Value
	}
	h.Tensors = make([]struct {
		Name   string
		NE     []int64
		Type   uint32
		Offset int64
	}, len(all.Tensors))
	for i, tensor := range all.Tensors {
		typ, ok := gguf.ParseType(tensor.Type)
		if !ok {
			t.Fatalf("%s: type %q", tensor.Name, tensor.Type)
		}
		h.Tensors[i].Name, h.Tensors[i].NE, h.Tensors[i].Type, h.Tensors[i].Offset = tensor.Name, tensor.NE,
			uint32(typ), tensor.Offset
	}
	return h
}

// equal reports whether two values of metadata are the same. Fractions are compared as float32, the type of most of
// them: some readers print them with 17 digits.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false
		}
		p, errP := strconv.ParseFloat(string(x), 64)
		q, errQ := strconv.ParseFloat(string(y), 64)
		// Whole numbers are not rounded.
		return errP == nil && errQ == nil && (p == q || p != math.Trunc(p) && float32(p) == float32(q))
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// quantsOf writes the files of a release of the small model, every recipe and a model in shards,
// and returns their paths.
func quantsOf(t *testing.T) (whole, shards []string) {
	if readers == "" || bin == "" {
		t.Skip("needs readers of others: run make readers")
	}
	dir := t.TempDir()
	model, err := filepath.Abs("../testdata/gollama")
	must(t, err)
	text, err := filepath.Abs("../../cmd/ggeval/testdata/text.txt")
	must(t, err)
	base := filepath.Join(dir, "base.gguf")
	ours(t, "ggconv", model, base)
	ours(t, "ggeval", "imatrix", model, "-f", text, "-c", "64", "-o", filepath.Join(dir, "im.gguf"))
	args := []string{"--out-dir", dir, "--imatrix", filepath.Join(dir, "im.gguf"), base}
	for _, r := range quantize.Recipes() {
		if !r.Copy {
			args = append(args, r.Name)
		}
	}
	ours(t, "ggquant", args...)
	ours(t, "ggtool", "split", "--max-tensors", "20", base, filepath.Join(dir, "part"))
	must(t, os.Remove(filepath.Join(dir, "im.gguf")))
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	must(t, err)
	for _, f := range files {
		if strings.Contains(f, "-of-") {
			shards = append(shards, f)
		} else {
			whole = append(whole, f)
		}
	}
	if len(whole) < 30 || len(shards) != 3 {
		t.Fatalf("%d files, %d shards", len(whole), len(shards))
	}
	return whole, shards
}

// TestReadersHeaders compares our files as readers of other projects read them with ggtool inspect:
// keys and values, names, types, dimensions and offsets of tensors.
func TestReadersHeaders(t *testing.T) {
	whole, shards := quantsOf(t)
	for _, r := range []struct {
		name  string
		argv  []string
		files []string
	}{
		{"@huggingface/gguf", []string{"node", "headers.mjs", "hub"}, append(whole, shards...)},
		{"node-llama-cpp", []string{"node", "headers.mjs", "llama"}, append(whole, shards...)},
		{"gguf-parser-go", []string{"./parse"}, whole}, // takes shards as one, without the keys about them
	} {
		files := r.files
		lines := reader(t, r.argv[0], append(r.argv[1:], files...)...)
		if len(lines) != len(files) {
			t.Fatalf("%s: %d lines for %d files", r.name, len(lines), len(files))
		}
		values := 0
		for i, path := range files {
			var theirs headerOf
			decode(t, lines[i], &theirs)
			want := inspected(t, path)
			name := filepath.Base(path)
			if theirs.Version != want.Version || len(theirs.Metadata) != len(want.Metadata) {
				t.Errorf("%s, %s: version %d with %d keys, want %d with %d", r.name, name, theirs.Version,
					len(theirs.Metadata), want.Version, len(want.Metadata))
			}
			for key, v := range want.Metadata {
				if !equal(v, theirs.Metadata[key]) {
					t.Errorf("%s, %s: %s = %.100s, want %.100s", r.name, name, key, fmt.Sprint(theirs.Metadata[key]),
						fmt.Sprint(v))
				}
				values++
			}
			if a, b := fmt.Sprint(theirs.Tensors), fmt.Sprint(want.Tensors); a != b {
				t.Errorf("%s, %s: tensors %.300s, want %.300s", r.name, name, a, b)
			}
		}
		t.Logf("%s: %d files, %d values compared with ggtool inspect", r.name, len(files), values)
	}
	var one, joined headerOf
	lines := reader(t, "./parse", shards[0], filepath.Join(filepath.Dir(shards[0]), "base.gguf"))
	decode(t, lines[0], &joined)
	decode(t, lines[1], &one)
	for i := range one.Tensors { // they count from the beginning of their shards
		one.Tensors[i].Offset = 0
	}
	for i := range joined.Tensors {
		joined.Tensors[i].Offset = 0
	}
	if a, b := fmt.Sprint(joined.Tensors), fmt.Sprint(one.Tensors); a != b {
		t.Errorf("gguf-parser-go, shards: tensors %.300s, want %.300s", a, b)
	}
	var set struct{ Shards, Parameters int }
	decode(t, reader(t, "node", "headers.mjs", "shards", shards[0])[0], &set)
	if set.Shards != 3 || set.Parameters != 6622464 {
		t.Errorf("@huggingface/gguf: %d shards with %d parameters", set.Shards, set.Parameters)
	}
}

var estimate = regexp.MustCompile(`PPL = ([0-9.]+)`)

// TestReadersRun runs our files with node-llama-cpp, which has another version of llama.cpp than the reference: the
// perplexity of a text equals ggeval's, but for the rounding of the layers' outputs. Types that its llama.cpp does not
// know are left out.
func TestReadersRun(t *testing.T) {
	whole, shards := quantsOf(t)
	data, err := os.ReadFile("../../cmd/ggeval/testdata/text.txt")
	must(t, err)
	text := filepath.Join(t.TempDir(), "text.txt")
	must(t, os.WriteFile(text, data[:bytes.LastIndexByte(data[:2000], '\n')], 0o666))
	const tokens = 64
	ran, worst := 0, 0.0
	for _, path := range append(whole, shards[0]) {
		cmd := exec.Command("node", "run.mjs", text, strconv.Itoa(tokens), path)
		cmd.Dir = readers
		out, errs, code := outcome(t, cmd)
		if code != 0 {
			t.Logf("%s: not run: %s", filepath.Base(path), firstLine(errs))
			continue
		}
		var got struct {
			Release string
			PPL     float64
		}
		must(t, json.Unmarshal([]byte(out), &got))
		m := estimate.FindStringSubmatch(ours(t, "ggeval", "perplexity", path, "-f", text, "-c", strconv.Itoa(tokens),
			"--chunks", "1"))
		if m == nil {
			t.Fatalf("%s: ggeval prints no perplexity", path)
		}
		want, err := strconv.ParseFloat(m[1], 64)
		must(t, err)
		off := math.Abs(got.PPL/want - 1)
		t.Logf("%s: llama.cpp %s of node-llama-cpp %.4f, ggeval %.4f", filepath.Base(path), got.Release, got.PPL, want)
		if ran++; off > 0.03 || math.IsNaN(off) {
			t.Errorf("%s: perplexity %.4f, want about %.4f", filepath.Base(path), got.PPL, want)
		}
		worst = max(worst, off)
	}
	t.Logf("%d models run, at most %.2f %% from ggeval's perplexity", ran, 100*worst)
	if ran < 25 {
		t.Errorf("%d models run of %d", ran, len(whole)+1)
	}
}

// firstLine returns the first line that names an error, or the whole text.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "rror") || strings.Contains(line, "unknown") || strings.Contains(line, "invalid") {
			return strings.TrimSpace(line)
		}
	}
	return text
}
