package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestInstall runs the script with which the action installs a release, against a server that has
// one: it is unpacked if its SHA-256 is that of the list, or the requested one.
func TestInstall(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "tar", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	out := t.TempDir()
	list := []entry{{"ggforge_1.2.3_linux_arm64/tool", "release_test.go", 0o755}}
	f, err := os.Create(filepath.Join(out, "ggforge_1.2.3_linux_arm64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeTar(f, list, time.Unix(0, 0)), f.Close()); err != nil {
		t.Fatal(err)
	}
	sum, _, err := sumOf(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("0", 64)
	sums := other + "  ggforge_1.2.3_linux_amd64.tar.gz\n" + sum + "  ggforge_1.2.3_linux_arm64.tar.gz\n"
	last := "v1.2.3"
	files := http.StripPrefix("/v1.2.3", http.FileServer(http.Dir(out)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1.2.3/SHA256SUMS":
			io.WriteString(w, sums)
			return
		case "/latest": // as the project's page does
			if last != "" {
				http.Redirect(w, r, "/tag/"+last, http.StatusFound)
			}
			return
		case "/tag/" + last:
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()

	install := func(version, want string) (string, error) {
		folder := filepath.Join(t.TempDir(), "in")
		cmd := exec.CommandContext(context.Background(), "bash", "../../packaging/install.sh", version, folder)
		cmd.Env = append(os.Environ(), "RUNNER_OS=Linux", "RUNNER_ARCH=ARM64", "GGFORGE_RELEASES="+server.URL,
			"GGFORGE_SHA256="+want)
		text, err := cmd.CombinedOutput()
		_, there := os.Stat(filepath.Join(folder, "tool"))
		if (err == nil) != (there == nil) {
			t.Errorf("install.sh %s %s: %v, its files: %v", version, want, err, there)
		}
		return string(text), err
	}
	for _, c := range []struct{ version, sum, says string }{
		{"1.2.3", "", ""},
		{"v1.2.3", "", ""},
		{"latest", "", ""},
		{"1.2.3", sum, ""},
		{"1.2.3", other, "want " + other},
		{"1.2.4", "", "404"},
		{"../../internal/1.2.3", "", "want a version"},
	} {
		text, err := install(c.version, c.sum)
		if (err == nil) != (c.says == "") || !strings.Contains(text, c.says) {
			t.Errorf("install.sh %s, sum %q: %v, %s", c.version, c.sum, err, text)
		}
	}
	last = ""
	if text, err := install("latest", ""); err == nil || !strings.Contains(text, "has no release yet") {
		t.Errorf("nothing is published: %v, %s", err, text)
	}
	sums = strings.Replace(sums, sum, other, 1)
	if text, err := install("1.2.3", ""); err == nil || !strings.Contains(text, sum) {
		t.Errorf("an archive that is not the list's: %v, %s", err, text)
	}
}

// TestActionVersion checks that the action names no fixed version, which may have no release.
func TestActionVersion(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, inputs, ok := strings.Cut(string(text), "\n  version:\n")
	inputs, _, _ = strings.Cut(inputs, "\n  sha256:")
	if !ok || !strings.Contains(inputs, "default: ''") ||
		!strings.Contains(string(text), "inputs.version || github.action_ref") {
		t.Errorf("action.yml: its version is\n%s", inputs)
	}
}

// TestPackageDocs checks that packages for Debian have the documents that the commands' help names.
func TestPackageDocs(t *testing.T) {
	config, err := os.ReadFile("../../packaging/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(docs) < 10 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for src, dst := range map[string]string{"docs/*.md": "docs/", "docs/*.json": "docs/",
		"docs/examples/*": "docs/examples/"} {
		if !strings.Contains(string(config), "- src: "+src+"\n    dst: /usr/share/doc/ggforge/"+dst+"\n") {
			t.Errorf("packaging/nfpm.yaml has no %s:\n%s", src, config)
		}
	}
	for _, pattern := range []string{"../../cmd/*/*.go", "../../cmd/internal/*/*.go", "../../internal/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range document.FindAllString(string(text), -1) {
				if _, err := os.Stat(filepath.Join("..", "..", m)); err != nil && !strings.HasSuffix(path, "_test.go") {
					t.Errorf("%s names %s, which does not exist", path, m)
				}
			}
		}
	}
}

var document = regexp.MustCompile(`\bdocs/[a-z-]+\.(?:md|json)\b`)
