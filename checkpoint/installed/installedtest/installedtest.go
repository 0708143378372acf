// Package installedtest makes stores of Ollama for tests.
package installedtest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Ollama adds a model to the store in dir, with one file of a kind, such as model, and a licence. The name has all parts,
// HOST/NAMESPACE/MODEL/TAG. It returns the path of the file.
func Ollama(t testing.TB, dir, name, kind string, content []byte) (file string) {
	t.Helper()
	type layer struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int    `json:"size"`
	}
	var layers []layer
	for _, l := range []struct {
		kind string
		data []byte
	}{{"license", []byte("MIT")}, {kind, content}} {
		sum := fmt.Sprintf("%x", sha256.Sum256(l.data))
		file = filepath.Join(dir, "blobs", "sha256-"+sum)
		layers = append(layers, layer{"application/vnd.ollama.image." + l.kind, "sha256:" + sum, len(l.data)})
		write(t, file, l.data)
	}
	data, err := json.Marshal(map[string]any{"schemaVersion": 2, "layers": layers,
		"mediaType": "application/vnd.docker.distribution.manifest.v2+json"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "manifests", filepath.FromSlash(name)), data)
	return file
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, data, 0o666)); err != nil {
		t.Fatal(err)
	}
}
