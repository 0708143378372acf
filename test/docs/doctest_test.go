//go:build unix

package docs

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/internal/kernel/cpu"
	"ggforge/test/hubtest"
)

// root is the repository, seen from this package.
const root = "../.."

var update = flag.Bool("update", false, "write what the commands print today into the documents")

// TestDocuments runs the commands of README.md and docs, and looks for flags and verbs in the prose.
func TestDocuments(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels, and builds the commands")
	}
	for _, name := range []string{"bash", "make", "sha256sum"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	names := documents(t)
	repo := repository(t)
	hub := hubtest.Serve(t, published, filepath.Join(root, "test", "testdata", "gollama"))
	calls := filepath.Join(t.TempDir(), "calls")
	t.Run("documents", func(t *testing.T) {
		for _, name := range names {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				doc, err := parse(string(text))
				if err != nil {
					t.Fatal(err)
				}
				if run(t, doc, folder(t, repo, calls, hub.URL)) && *update {
					if err := os.WriteFile(name, []byte(strings.Join(doc.lines, "\n")), 0o666); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	})
	t.Run("prose", func(t *testing.T) { prose(t, repo, names) })
	called, _ := os.ReadFile(calls)
	for _, p := range absent {
		if p.always && !slices.Contains(strings.Fields(string(called)), p.name) {
			t.Errorf("%s: no document calls it any more: it needs no stand-in", p.name)
		}
	}
}

// documents lists README.md and those in docs, without the licences of others.
func documents(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filepath.Base(name) == "THIRD_PARTY.md" })
	return append(names, filepath.Join(root, "README.md"))
}

// absent are programs that commands of documents call and that the test cannot call, or not everywhere: a script stands
// in for each.
var absent = []struct {
	name, why string
	always    bool // also where the program is installed
	script    string
}{
	{"make", "would build and test again: a target has to exist, and demo runs with the commands " +
		"that are built", true,
		`real=$(type -ap make | grep -vxF "$0" | head -n 1)
case $* in
demo) exec "$real" -o build demo ;;
*) exec "$real" -n "$@" >/dev/null ;;
esac`},
	{"go", "needs a module of its own: TestImporter of test/layers has one", true,
		`[ "$1" = mod ]`},
	{"sbatch", "needs Slurm, which make slurm starts: its input has to be a script", true,
		`bash -n && echo 1`},
	{"kubectl", "needs a cluster; make kubernetes compares with its schemas: its input has to be two jobs", true,
		`[ "$(grep -c '^kind: Job')" = 2 ]`},
	{"parallel", "is not in every system: -N0 runs a command for each line of its input", true,
		`shift; seq=0; while read -r _; do seq=$((seq + 1)); PARALLEL_SEQ=$seq "$@" </dev/null || exit; done`},
	{"minisign", "needs a key with a password", true,
		`case $1 in -S | -V) ;; *) exit 2 ;; esac`},
	{"ssh-keygen", "is not in every system", false,
		`[ "$1" = -Y ]`},
}

// repository makes the files that users have after make demo, with the commands as they are now.
func repository(t *testing.T) string {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "bin")+"/", "./cmd/ggconv",
		"./cmd/ggeval", "./cmd/ggquant", "./cmd/ggtool")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	for _, name := range []string{"Makefile", "docs", "test/testdata", "cmd/ggeval/testdata", "fault"} {
		copyTree(t, filepath.Join(dir, name), filepath.Join(root, name))
	}
	demo := exec.Command("make", "-o", "build", "demo")
	demo.Dir = dir
	if out, err := demo.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", demo, err, out)
	}
	return dir
}

func copyTree(t *testing.T, to, from string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(to), 0o777)
	if err == nil {
		var out []byte
		if out, err = exec.Command("cp", "-R", from, to).CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// place is where the commands of one document run.
type place struct {
	dir string
	env []string
}

const (
	// published is the model of the hub that documents name; the test's own hub has gollama under that name.
	published = "HuggingFaceTB/SmolLM2-135M-Instruct"
	// nowhere is a server that does not answer, in place of those that commands would ask.
	nowhere = "http://127.0.0.1:9"
)

// folder copies the repository, with the commands and the scripts for absent programs on the path, and nothing of the
// user's environment.
func folder(t *testing.T, repo, calls, hub string) place {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"tmp", "stubs", "home/.ssh"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copyTree(t, at("repo"), repo)
	for _, p := range absent {
		if _, err := exec.LookPath(p.name); err == nil && !p.always {
			continue
		}
		script := "#!/usr/bin/env bash\n# " + p.why + "\nset -eu\necho " + p.name + " >> '" + calls + "'\n" +
			p.script + "\n"
		if err := os.WriteFile(at("stubs/"+p.name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := at("home/.ssh/id_ed25519")
	if keygen, err := exec.LookPath("ssh-keygen"); err == nil {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	} else if err := os.WriteFile(key+".pub", []byte("ssh-ed25519 AAAA\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return place{at("repo"), []string{
		"PATH=" + at("stubs") + ":" + at("repo/bin") + ":" + os.Getenv("PATH"), "HOME=" + at("home"),
		"TMPDIR=" + at("tmp"), "LC_ALL=C",
		"HF_ENDPOINT=" + hub, "AWS_ENDPOINT_URL=" + nowhere, "AWS_EC2_METADATA_DISABLED=true",
	}}
}

// run runs the commands of a document, and puts what they print into it. It reports whether that could be done.
func run(t *testing.T, doc *document, at place) bool {
	ok := true
	fail := func(line int, format string, args ...any) {
		t.Helper()
		t.Errorf("line %d: "+format, append([]any{line + 1}, args...)...)
		ok = false
	}
	for i := len(doc.blocks) - 1; i >= 0; i-- { // before any command is run
		if b := doc.blocks[i]; len(b.commands) == 0 && (b.language == "sh" || b.language == "console") {
			fail(b.first, "no command in a block of %s", b.language)
		}
	}
	moved := 0 // how many lines the document has grown by
	for _, b := range doc.blocks {
		for _, c := range b.commands {
			got, code := at.call(t, b.language, c.text)
			if b.language == "sh" {
				if code != 0 {
					fail(c.line, "exit code %d of\n%s\n%s", code, c.text, got)
					return ok
				}
				continue
			}
			if wrong := fails(got); code != 0 != wrong {
				fail(c.line, "exit code %d of\n%s\n%s", code, c.text, got)
			}
			lines := printed(got)
			if !slices.EqualFunc(lines, c.output, func(a, b string) bool { return mask(a) == mask(b) }) && !*update {
				fail(c.line, "%s\nprints\n%s\nand the document says\n%s", c.text, strings.Join(lines, "\n"),
					strings.Join(c.output, "\n"))
			}
			for i := range lines {
				if i < len(c.output) && mask(lines[i]) == mask(c.output[i]) {
					lines[i] = c.output[i]
				}
				if lines[i] != "" {
					lines[i] = b.indent + lines[i]
				}
			}
			from := c.after + moved
			doc.lines = slices.Replace(doc.lines, from, from+len(c.output), lines...)
			moved += len(lines) - len(c.output)
		}
	}
	return ok
}

// call runs commands, and returns what they print and their exit code.
func (p place) call(t *testing.T, language, text string) (string, int) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script := text
	if language == "sh" {
		script = "set -euo pipefail\n" + text
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = p.dir, append(slices.Clone(p.env), "PWD="+p.dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
