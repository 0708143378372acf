package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestChangelog parses the repository's CHANGELOG.md.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseChangelog(string(text)); err != nil {
		t.Error(err)
	}
}

func TestParseChangelog(t *testing.T) {
	const top = "# Changelog\n\n## [Unreleased]\n"
	for text, want := range map[string]string{
		"# Changelog\n":                            "want a section",
		"## [1.0.0] - 2026-01-02\n\n* x\n":         "begins with",
		top + "\n### Novelties\n\n* x\n":           `section "Novelties"`,
		top + "\n## 1.0.0\n\n* x\n":                "want ## [1.2.3]",
		top + "\n## [1.0.0] - 2026-13-02\n\n* x":   "out of range",
		top + "\n## [1.0.0] - 2026-01-02\n":        "is empty",
		top + dated("1.0.0") + dated("1.0.1"):      "newest first",
		top + dated("1.0.0") + dated("1.0.0"):      "newest first",
		top + dated("1.10.0") + dated("1.9.1"):     "",
		top + "\n### Added\n\n* x\n### Fixed\n* y": "",
	} {
		_, err := parseChangelog(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func dated(v string) string {
	return fmt.Sprintf("\n## [%s] - 2026-01-02\n\n### Added\n\n* %s\n", v, v)
}

func TestVersion(t *testing.T) {
	date := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	const todo = "### Added\n\n* x\n"
	for _, c := range []struct {
		changelog string
		tags      string
		dirty     bool
		want      string
	}{
		{todo, "", false, "0.1.0-dev.20260304.abc"},
		{todo + dated("1.2.3"), "", false, "1.2.4-dev.20260304.abc"},
		{dated("1.2.3"), "v1.2.3", false, "1.2.3"},
		{dated("1.2.3"), "v1.2.3", true, "1.2.4-dev.20260304.abc.dirty"},
		{dated("1.2.3"), "v1.2.4", false, "tag v1.2.4: is not"},
		{dated("1.2.3"), "v1.2.3 v1.2.4", false, "want one"},
		{todo, "v1.2.3", false, "tag v1.2.3: is not"},
		{todo + dated("1.2.3"), "v1.2.3", false, "not released"},
	} {
		log, err := parseChangelog("## [Unreleased]\n\n" + c.changelog)
		if err != nil {
			t.Fatal(err)
		}
		got, err := version(log, source{"abc", date, strings.Fields(c.tags), c.dirty})
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q, tags %q: %s, want %s", c.changelog, c.tags, got, c.want)
		}
	}
}

// TestPack packs a release of two systems twice, from files with other times and modes: the bytes
// are the same, and they contain the files that were packed.
func TestPack(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var first map[string][]byte
	for i, mode := range []os.FileMode{0o600, 0o755} {
		tree, out := t.TempDir(), t.TempDir()
		date := time.Now().Add(-time.Duration(i) * 24 * time.Hour)
		put := func(path string, data []byte) {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, date, date); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range notes {
			put(filepath.Join(tree, n), []byte("text of "+n))
		}
		template, err := os.ReadFile("../../packaging/formula.rb.tmpl")
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.Join(tree, "packaging", "formula.rb.tmpl"), template)
		put(filepath.Join(out, "bin", "linux-arm64", "tool"), program)
		put(filepath.Join(out, "bin", "windows-amd64", "tool.exe"), program)
		put(filepath.Join(out, "share", "man", "tool.1"), []byte("manual"))
		r := release{tree: tree, out: out, version: "1.2.3", home: "https://example.org/x", changes: "* x\n",
			date: time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)}
		if err := r.pack(context.Background(), io.Discard); err != nil {
			t.Fatal(err)
		}
		got := map[string][]byte{}
		files, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !f.IsDir() {
				if got[f.Name()], err = os.ReadFile(filepath.Join(out, f.Name())); err != nil {
					t.Fatal(err)
				}
			}
		}
		if first == nil {
			first = got
		}
		if len(got) != len(first) {
			t.Errorf("%d files, then %d", len(first), len(got))
		}
		for name, data := range got {
			if !bytes.Equal(data, first[name]) {
				t.Errorf("%s: other bytes", name)
			}
		}
	}

	inTar, inZip := untar(t, first["ggforge_1.2.3_linux_arm64.tar.gz"]),
		unzip(t, first["ggforge_1.2.3_windows_amd64.zip"])
	for _, name := range append([]string{"man/tool.1"}, notes...) {
		want := "text of " + name
		if name == "man/tool.1" {
			want = "manual"
		} else {
			name = path.Base(name)
		}
		if got := inTar["ggforge_1.2.3_linux_arm64/"+name+" 644"]; got != want {
			t.Errorf("tar: %s: %q", name, got)
		}
		if got := inZip["ggforge_1.2.3_windows_amd64/"+name+" 644"]; got != want {
			t.Errorf("zip: %s: %q", name, got)
		}
	}
	if inTar["ggforge_1.2.3_linux_arm64/tool 755"] != string(program) ||
		inZip["ggforge_1.2.3_windows_amd64/tool.exe 755"] != string(program) {
		t.Error("the commands are not in the archives")
	}
	if n := 2 + len(notes); len(inTar) != n || len(inZip) != n {
		t.Errorf("%d and %d files, want %d", len(inTar), len(inZip), n)
	}

	var b bom
	if err := json.Unmarshal(first["ggforge_1.2.3.cdx.json"], &b); err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.Ref)
	}
	if len(refs) != 3 || refs[0] != "linux-arm64/tool" || refs[1] != "windows-amd64/tool.exe" ||
		!strings.HasPrefix(refs[2], "pkg:golang/std@1.") {
		t.Errorf("bill of materials: %q", refs)
	}
	sums := string(first["SHA256SUMS"])
	sum, _, err := sumOf(self)
	if err != nil || b.Components[0].Hashes[0].Content != sum || strings.Count(sums, "\n") != 3 ||
		!strings.Contains(sums, "  ggforge_1.2.3.cdx.json\n") {
		t.Errorf("sums: %v\n%s", err, sums)
	}
	formula := string(first["ggforge.rb"])
	line := fmt.Sprintf("url %q\n      sha256 %q",
		"https://example.org/x/releases/download/v1.2.3/ggforge_1.2.3_linux_arm64.tar.gz", sums[:64])
	for _, want := range []string{`bin.install "tool"`, `version "1.2.3"`, "on_linux do\n    on_arm do"} {
		if !strings.Contains(formula, want) {
			t.Errorf("formula without %s:\n%s", want, formula)
		}
	}
	if at := strings.Index(sums, "  ggforge_1.2.3_linux_arm64.tar.gz"); at < 64 ||
		!strings.Contains(formula, strings.Replace(line, sums[:64], sums[at-64:at], 1)) {
		t.Errorf("formula without the archive and its sum:\n%s", formula)
	}
}

// untar returns texts by "name mode".
func untar(t *testing.T, data []byte) map[string]string {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s %o", h.Name, h.Mode)] = string(text)
	}
}

func unzip(t *testing.T, data []byte) map[string]string {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s %o", f.Name, f.Mode().Perm())] = string(text)
	}
	return all
}

// TestLicences finds the licences of modules in the repository's THIRD_PARTY.md; a module without a
// row is an error.
func TestLicences(t *testing.T) {
	text, err := os.ReadFile("../../docs/THIRD_PARTY.md")
	if err != nil {
		t.Fatal(err)
	}
	licences := licencesOf(string(text))
	mods, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for line := range strings.Lines(string(mods)) {
		words := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(words) < 2 || !strings.HasPrefix(words[1], "v") {
			continue
		}
		count++
		if _, err := library(&debug.Module{Path: words[0], Version: words[1]}, licences); err != nil {
			t.Error(err)
		}
	}
	if count == 0 {
		t.Error("go.mod: no module")
	}
	if _, err := library(&debug.Module{Path: "example.org/x", Version: "v1.0.0"}, licences); err == nil {
		t.Error("a module without a licence")
	}
}
