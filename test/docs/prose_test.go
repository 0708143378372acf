//go:build unix

package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	code  = regexp.MustCompile("`[^`]+`")
	flags = regexp.MustCompile(`(?:^|[^\w-])(--[a-z][a-z0-9_-]*)`)
	verbs = regexp.MustCompile(`\b(ggeval|ggtool) ([a-z-]+)`)
)

// others are flags of other programs in the prose.
var others = map[string]string{
	"--requeue": "sbatch", "--array": "sbatch", "--signal": "sbatch", "--dependency": "sbatch", "--chdir": "sbatch",
	"--for": "kubectl", "--timeout": "kubectl",
	"--no-lazy": "the reference's converter", "--save-frequency": "llama-imatrix", "--model-draft": "llama-imatrix",
	"--detach-sign":     "gpg",
	"--diffusion-model": "sd-cli", "--vae": "sd-cli", "--clip_l": "sd-cli", "--clip_g": "sd-cli", "--t5xxl": "sd-cli",
	"--llm": "sd-cli", "--llm_vision": "sd-cli",
}

// prose looks in documents for flags and verbs that no command has.
func prose(t *testing.T, repo string, names []string) {
	var manuals strings.Builder
	for _, command := range []string{"ggconv", "ggeval", "ggquant", "ggtool"} {
		out, err := exec.Command(filepath.Join(repo, "bin", command), "man").Output()
		if err != nil {
			t.Fatal(command, err)
		}
		manuals.WriteString(strings.NewReplacer(`\-`, "-", `\fB`, " ", `\fI`, " ", `\fR`, " ", `\fP`,
			" ").Replace(string(out)))
	}
	ours, mentioned := map[string]bool{}, map[string]bool{}
	for _, m := range flags.FindAllStringSubmatch(manuals.String(), -1) {
		ours[m[1]] = true
	}
	for _, m := range verbs.FindAllString(manuals.String(), -1) {
		ours[m] = true
	}
	if len(ours) < 150 {
		t.Fatalf("%d flags and verbs in the manuals", len(ours))
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range code.FindAllString(doc.prose(), -1) {
			var list []string
			for _, m := range flags.FindAllStringSubmatch(span, -1) {
				list = append(list, m[1])
			}
			for _, what := range append(list, verbs.FindAllString(span, -1)...) {
				mentioned[what] = true
				if !ours[what] && others[what] == "" {
					t.Errorf("%s: %s: no command has %s", filepath.Base(name), span, what)
				}
			}
		}
	}
	for flag, whose := range others {
		if !mentioned[flag] || ours[flag] {
			t.Errorf("%s of %s: no document has it, or a command of ours does", flag, whose)
		}
	}
}

// prose returns the document without its blocks.
func (d *document) prose() string {
	lines := slices.Clone(d.lines)
	for _, b := range d.blocks {
		clear(lines[b.first-1 : b.end+1])
	}
	return strings.Join(lines, "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile(`[^\w\- ]`)
	target  = regexp.MustCompile(`\bmake ([a-z0-9-]+)`)
	inTests = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
	funcs   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// TestReferences follows links in README.md and docs, and looks for the targets of make and the tests that they name.
func TestReferences(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	makefile := "\n" + read(filepath.Join(root, "Makefile"))
	var tests []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range funcs.FindAllStringSubmatch(read(path), -1) {
				tests = append(tests, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, name := range documents(t) {
		doc, err := parse(read(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, m := range link.FindAllStringSubmatch(doc.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to := name
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link: %v", name, err)
			} else if m[2] != "" && !slices.Contains(anchors(read(to)), m[2]) {
				t.Errorf("%s: %s has no heading %s", name, to, m[2])
			}
		}
		for _, span := range code.FindAllString(doc.prose(), -1) {
			for _, m := range target.FindAllStringSubmatch(span, -1) {
				if !regexp.MustCompile(`\n([a-z0-9 -]+ )?` + m[1] + `( [a-z0-9 -]+)?:`).MatchString(makefile) {
					t.Errorf("%s: %s: the Makefile has no target %s", name, span, m[1])
				}
			}
			for _, test := range inTests.FindAllString(span, -1) {
				if !slices.ContainsFunc(tests, func(name string) bool { return strings.HasPrefix(name, test) }) {
					t.Errorf("%s: %s: there is no test %s", name, span, test)
				}
			}
		}
	}
	if links < 30 || len(tests) < 500 {
		t.Errorf("%d links, %d tests", links, len(tests))
	}
}

// anchors returns the anchors of headings, with which links to them end.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		list = append(list, "#"+strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}
