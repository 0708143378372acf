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
	"strings"
	"testing"
	"time"
)

// TestInstall runs what the action installs a release with, against a server that has one: it is
// unpacked if its sum is the one of the list, or the one that is asked for.
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
	files := http.StripPrefix("/v1.2.3", http.FileServer(http.Dir(out)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1.2.3/SHA256SUMS" {
			io.WriteString(w, sums)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()

	install := func(version, want string) (string, error) {
		folder := filepath.Join(t.TempDir(), "in")
		cmd := exec.CommandContext(context.Background(), "bash", "../../packaging/install.sh", version, folder)
		cmd.Env = append(os.Environ(), "RUNNER_OS=Linux", "RUNNER_ARCH=ARM64", "GGFORGE_RELEASES="+server.URL, "GGFORGE_SHA256="+want)
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
		{"1.2.3", sum, ""},
		{"1.2.3", other, "want " + other},
		{"1.2.4", "", "404"},
		{"../1.2.3", "", "want a version"},
	} {
		text, err := install(c.version, c.sum)
		if (err == nil) != (c.says == "") || !strings.Contains(text, c.says) {
			t.Errorf("install.sh %s, sum %q: %v, %s", c.version, c.sum, err, text)
		}
	}
	sums = strings.Replace(sums, sum, other, 1)
	if text, err := install("1.2.3", ""); err == nil || !strings.Contains(text, sum) {
		t.Errorf("an archive that is not the list's: %v, %s", err, text)
	}
}
