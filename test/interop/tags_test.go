package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/publish/naming"
)

// TestTags checks that llama.cpp's -hf ORG/NAME:TAG downloads the files that naming expects, from repositories with
// names that readers misread, for every tag that a name suggests.
func TestTags(t *testing.T) {
	if root == "" {
		t.Skip("needs ORACLE_ROOT: run make interop")
	}
	h := startMockHub(t)
	sweep(t)
	data, err := os.ReadFile("../../publish/naming/testdata/tags.json")
	must(t, err)
	var cases []struct {
		Name  string
		Paths []string
		Want  []naming.Tag
	}
	must(t, json.Unmarshal(data, &cases))
	word := regexp.MustCompile(`\w+`)
	for i, c := range cases {
		repo := fmt.Sprintf("org/tags%d", i)
		files := map[string]string{}
		tags := []string{"", "none", "F16", "Q4_K_M", "Q8_0", "-F16"}
		for _, p := range c.Paths {
			files[p] = "GGUF " + p // what does not load: all that counts is what was downloaded
			tags = append(tags, word.FindAllString(p, -1)...)
		}
		for _, tag := range c.Want {
			tags = append(tags, tag.LlamaCPP, tag.Hub, strings.ToLower(tag.LlamaCPP))
		}
		h.ask("add/"+repo, files, nil)
		slices.Sort(tags)
		for _, tag := range slices.Compact(tags) {
			got := h.downloads(t, repo, tag)
			var want []string
			if first := naming.LlamaCPPFile(c.Paths, tag); first != "" {
				stem, _, split := strings.Cut(first, "-00001-of-")
				for _, p := range c.Paths {
					if p == first || split && strings.HasPrefix(p, stem+"-0") {
						want = append(want, p)
					}
				}
			}
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%s: tag %q: llama.cpp has downloaded %q, want %q", c.Name, tag, got, want)
			}
		}
	}
}

// downloads returns what llama.cpp downloads for a tag.
func (h *mockHub) downloads(t *testing.T, repo, tag string) (names []string) {
	t.Helper()
	cache := work + "/tags"
	must(t, os.RemoveAll(root+cache))
	if tag != "" {
		repo += ":" + tag
	}
	out, err := exec.Command("chroot", root, "timeout", "20", "env", "HF_ENDPOINT="+h.url, "HF_TOKEN="+h.token,
		"HF_HUB_CACHE="+cache, "HOME="+work, "llama-completion", "-hf", repo, "-p", "x", "-n", "1", "-no-cnv").
		CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 { // what it is given does not load
		t.Fatalf("%s: %v\n%s", repo, err, out)
	}
	snapshots, err := filepath.Glob(root + cache + "/models--*/snapshots/*")
	must(t, err)
	for _, dir := range snapshots {
		must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if name != "preset.ini" {
				names = append(names, filepath.ToSlash(name))
			}
			return err
		}))
	}
	slices.Sort(names)
	return names
}
