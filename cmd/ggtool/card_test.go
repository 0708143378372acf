package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCard(t *testing.T) {
	dir := t.TempDir()
	run := expect(t, "card")
	run(2, "there is no model", dir)
	write(t, dir, "x.gguf", 1)
	run(2, "want ORG/NAME", "--base-model", "x", dir)
	if out := run(0, "base_model: acme/x", "--dry-run", "--base-model", "acme/x", dir); !strings.HasPrefix(out,
		"---\n") && !strings.Contains(out, "\n---\n") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(dir + "/README.md"); err == nil {
		t.Error("--dry-run has written")
	}
	run(0, "README.md: written, 1 models", dir)
	run(0, "README.md: is up to date", dir)
	var r cardResult
	out := run(0, "", "--json", "--quantized-by", "me", "--base-model", "a/b", dir)
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &r); err != nil || !r.Written ||
		len(r.Files) != 1 || r.Files[0].File != "x.gguf" || r.Files[0].Bytes == 0 {
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

// TestCardTemplatesEnd checks that templates which would never end, or take all memory, are refused.
func TestCardTemplatesEnd(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x.gguf", 1)
	path := filepath.Join(t.TempDir(), "t")
	doubled := "{{$x := \"aaaaaaaaaaaaaaaa\"}}"
	for range 40 {
		doubled += "{{$x = print $x $x}}"
	}
	for name, c := range map[string]struct{ text, want string }{
		"a template in itself": {`{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`,
			"templates in one another"},
		"two in each other":              {`{{define "a"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{template "a"}}`, "templates in one another"},
		"the template itself":            {`{{template "template" .}}`, "templates in one another"},
		"a template twice":               {`{{define "a"}}{{if .}}{{template "a" (slice . 1)}}{{template "a" (slice . 1)}}{{end}}{{end}}{{template "a" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`, "more than 2097152 steps"},
		"a width":                        {`{{printf "%1000000000d" 1}}`, "more than three digits"},
		"a precision":                    {`{{printf "%.100000000f" 1.0}}`, "more than three digits"},
		"a width of an argument":         {`{{printf "%*d" 1000000000 1}}`, "has a width"},
		"a width of a numbered argument": {`{{printf "%[2]*[1]d" 1 1000000000}}`, "has a width"},
		"widths": {`{{printf "` + strings.Repeat("%999[1]d", 400) + `" 1}}`,
			"a text has more than"},
		"a long format": {`{{printf "` + strings.Repeat("x", 5000) + `"}}`, "want at most 4096"},
		"an empty loop": {`{{range 1000000000000}}{{end}}`, "more than 2097152 steps"},
		"a loop":        {`{{range 1000000000000}}x{{end}}`, "steps"},
		"loops in loops": {strings.Repeat("{{range 10000}}", 10) + strings.Repeat("{{end}}", 10),
			"more than 2097152 steps"},
		"a loop that goes on": {`{{range 1000000000000}}{{continue}}{{end}}`, "more than 2097152 steps"},
		"a long loop of output": {`{{range 100000}}` + strings.Repeat("x", 1000) + `{{end}}`,
			"the card has more than 4194304 bytes"},
		"a text that doubles": {doubled, "a text has more than 16384 bytes"},
		"a text that doubles, escaped": {strings.ReplaceAll(doubled, "print", "html"),
			"a text has more than 16384 bytes"},
		"a large template": {strings.Repeat("x", 1<<20+1), "want at most 262144"},
		"its own text":     {`{{.Text}}`, "can't evaluate field Text"},
		"its own limits":   {`{{step -1000}}`, `function "step" not defined`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if out := expect(t, "card")(2, c.want, "--dry-run", "--template", path, dir); len(out) > 8<<10 {
				t.Errorf("%d bytes are printed", len(out))
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("takes %v", d)
			}
		})
	}
	text := `{{define "f"}}{{.Path}} {{printf "%-8s|%6.2f" .Type .BPW}}{{end}}{{range .Files}}{{template "f" .}}{{end}} {{print .Title 1 2}} {{html "<a>"}} {{println "x"}}`
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, ".BPW", ".Bits")), 0o666); err != nil {
		t.Fatal(err)
	}
	expect(t, "card")(0, "x.gguf ", "--dry-run", "--template", path, dir)
}
