package interop

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/test/toktest"
	"ggforge/tokenizer"
)

//go:embed encode.py
var encodePy []byte

const goldenFile = "../../tokenizer/testdata/encode.json"

// library encodes lines with the reference's library; paths are outside the chroot.
func library(t *testing.T, lines []string, files ...string) map[string]toktest.Golden {
	t.Helper()
	dir := work + "/encode"
	must(t, os.MkdirAll(root+dir, 0o777))
	defer os.RemoveAll(root + dir)
	must(t, os.WriteFile(root+dir+"/encode.py", encodePy, 0o666))
	data, err := json.Marshal(lines)
	must(t, err)
	must(t, os.WriteFile(root+dir+"/lines.json", data, 0o666))
	args := []string{root, "python3", dir + "/encode.py", dir + "/lines.json", dir + "/out.json"}
	for _, f := range files {
		rel, err := filepath.Rel(root, f)
		must(t, err)
		args = append(args, "/"+rel)
	}
	if out, err := exec.Command("chroot", args...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	data, err = os.ReadFile(root + dir + "/out.json")
	must(t, err)
	var golden map[string]toktest.Golden
	must(t, json.Unmarshal(data, &golden))
	return golden
}

// tiny writes the small tokenizers to files.
func tiny(t *testing.T) []string {
	dir := root + work + "/tiny"
	must(t, os.MkdirAll(dir, 0o777))
	var files []string
	for _, tok := range toktest.Tokenizers() {
		files = append(files, dir+"/"+tok.Name+".json")
		must(t, os.WriteFile(files[len(files)-1], tok.JSON, 0o666))
	}
	return files
}

// TestEncodeGolden checks that the hashes in the repository are those of the
// library, or writes them anew where GOLDEN is set to write.
func TestEncodeGolden(t *testing.T) {
	start(t)
	golden := library(t, toktest.Corpus(toktest.GoldenSeed, toktest.GoldenLines), tiny(t)...)
	data, err := json.MarshalIndent(golden, "", " ")
	must(t, err)
	data = append(data, '\n')
	if os.Getenv("GOLDEN") == "write" {
		must(t, os.WriteFile(goldenFile, data, 0o666))
		return
	}
	have, err := os.ReadFile(goldenFile)
	must(t, err)
	if string(have) != string(data) {
		t.Errorf("%s is not what the library makes", goldenFile)
	}
}

// TestEncode compares ids and texts of lines that are new in each run, with the
// small tokenizers and with published ones.
func TestEncode(t *testing.T) {
	start(t)
	files := tiny(t)
	real, err := filepath.Glob(root + work + "/oracle/tokenizers/*/tokenizer.json")
	must(t, err)
	files = append(files, real...)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	lines := toktest.Corpus(seed, 20*toktest.ChunkLines)
	for name, want := range library(t, lines, files...) {
		t.Run(name, func(t *testing.T) {
			path := root + work + "/tiny/" + name + ".json"
			if folder, ok := strings.CutPrefix(name, "real-"); ok {
				path = root + work + "/oracle/tokenizers/" + folder + "/tokenizer.json"
			}
			data, err := os.ReadFile(path)
			must(t, err)
			e, err := tokenizer.NewEncoder(data)
			must(t, err)
			var got []string
			for i := 0; i < len(lines); i += toktest.ChunkLines {
				sum, err := toktest.Chunk(e, lines[i:min(i+toktest.ChunkLines, len(lines))])
				must(t, err)
				got = append(got, sum)
			}
			if !reflect.DeepEqual(got, want.Chunks) {
				t.Errorf("lines of seed %d: %s", seed, firstDifference(got, want.Chunks))
			}
		})
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("chunk %d is %s, want %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d chunks, want %d", len(got), len(want))
}

const vocabFile = "../../tokenizer/testdata/bpe.json"

// TestVocabGolden checks that the keys in the repository are those that the
// reference writes for the small checkpoints, or writes them anew where GOLDEN is
// set to write.
func TestVocabGolden(t *testing.T) {
	o := start(t)
	golden := map[string][]string{}
	for _, c := range toktest.Checkpoints() {
		dir := work + "/" + c.Name
		must(t, os.CopyFS(root+dir, c.Files))
		ref := work + "/reference.gguf"
		o.script(t, "refconvert.py", dir, ref, "--pre-force", "some-name", "--quiet", "--", "--vocab-only")
		data, err := os.ReadFile(root + ref)
		must(t, err)
		f, err := gguf.Parse(ref, data)
		must(t, err)
		golden[c.Name] = toktest.List(f.Metadata)
	}
	data, err := json.MarshalIndent(golden, "", " ")
	must(t, err)
	data = append(data, '\n')
	if os.Getenv("GOLDEN") == "write" {
		must(t, os.WriteFile(vocabFile, data, 0o666))
		return
	}
	have, err := os.ReadFile(vocabFile)
	must(t, err)
	if string(have) != string(data) {
		t.Errorf("%s is not what the reference writes", vocabFile)
	}
}
