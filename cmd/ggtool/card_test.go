package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestCard(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "card")
	run(2, "there is no model", dir)
	write(t, dir, "x.gguf", 1)
	run(2, "want ORG/NAME", "--base-model", "x", dir)
	if out := run(0, "base_model: acme/x", "--dry-run", "--base-model", "acme/x", dir); !strings.HasPrefix(out, "---\n") && !strings.Contains(out, "\n---\n") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(dir + "/README.md"); err == nil {
		t.Error("--dry-run has written")
	}
	run(0, "README.md: written, 1 models", dir)
	run(0, "README.md: is up to date", dir)
	var r cardResult
	out := run(0, "", "--json", "--quantized-by", "me", "--base-model", "a/b", dir)
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &r); err != nil || !r.Written || len(r.Files) != 1 || r.Files[0].File != "x.gguf" || r.Files[0].Bytes == 0 {
		t.Errorf("%v: %+v", err, r)
	}
	if err := os.WriteFile(dir+"/README.md", []byte("# mine\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(2, "--force", dir)
	if err := os.WriteFile(dir+"/t", []byte("{{.No}}"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(2, "No", "--force", "--template", dir+"/t", dir)
	run(0, "written", "--force", dir)
}
