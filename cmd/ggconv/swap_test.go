package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/publish/manifest"
	"ggforge/test/clitest"
)

// TestManifestOfWhatWasRead changes the file of --metadata after it was read, so that neither size nor time show it:
// the manifest has the sum of the bytes that the run used.
func TestManifestOfWhatWasRead(t *testing.T) {
	dir := t.TempDir()
	names, kept, text := filepath.Join(dir, "names.json"), filepath.Join(dir, "m.json"), `{"general.name": "One"}`
	must(t, os.WriteFile(names, []byte(text), 0o666))
	remove := clitest.Swap(t, names, `{"general.name": "Two"}`, true)
	code, out, err := call("--progress", "none", "--manifest", kept, "--metadata", names, gollama,
		filepath.Join(dir, "x.gguf"))
	remove()
	if code != 0 {
		t.Fatalf("%v: %s", err, out)
	}
	m, err := manifest.Read(kept)
	must(t, err)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if i := slices.IndexFunc(m.Inputs, func(in manifest.Input) bool { return in.Role == "metadata" }); i < 0 ||
		m.Inputs[i].SHA256 != sum {
		t.Errorf("no metadata of %s: %+v", sum, m.Inputs)
	}
}
