// Package interop compares the built commands with the reference's own tools,
// file by file. Its tests run where the reference is installed (make interop).
package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

//go:embed drive.py
var drivePy []byte

// The environment that the Makefile sets.
var (
	root   = os.Getenv("ORACLE_ROOT")   // a chroot with the reference's tools
	shared = os.Getenv("ORACLE_SHARED") // a folder with oracle/tokenizers/, published tokenizers; may be missing
	bin    = os.Getenv("GGFORGE_BIN")   // the folder of our built commands
)

// Where the parts of the work folder's oracle/ come from, seen from this package.
const (
	scripts        = "oracle"
	tinyTokenizers = "../../tokenizer/testdata"
)

// realSums lists the files of the published tokenizers, which are not in the
// repository: path, sha256.
//
//go:embed oracle/real.tsv
var realSums string

// work is the folder inside the chroot that everything happens in. Two runs at
// the same time need different ones; a run locks its own.
var work = cmp.Or(os.Getenv("INTEROP_WORK"), "/srv/interop")

// oracle runs the reference's scripts through drive.py.
type oracle struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// start copies the oracle's scripts into the chroot and starts the driver.
func start(t *testing.T) *oracle {
	if root == "" || bin == "" {
		t.Skip("needs the reference: run make interop")
	}
	// Two threads of the reference's tools that fail at the same time wait for each other's backtrace for ever.
	must(t, os.Setenv("GGML_NO_BACKTRACE", "1"))
	sweep(t)
	must(t, os.CopyFS(root+work+"/oracle", os.DirFS(scripts)))
	tiny, err := filepath.Glob(tinyTokenizers + "/tiny-*")
	must(t, err)
	for _, dir := range tiny {
		must(t, os.CopyFS(root+work+"/oracle/tokenizers/"+filepath.Base(dir), os.DirFS(dir)))
	}
	copyReal(t)
	must(t, os.WriteFile(root+work+"/drive.py", drivePy, 0o666))
	cmd := exec.Command("chroot", root, "python3", work+"/drive.py", work+"/oracle")
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &oracle{t, in, bufio.NewReader(out)}
}

// copyReal copies the published tokenizers that are in ORACLE_SHARED next to the small ones. Each file must have its
// sum in realSums: the tests expect the results of exactly these files.
func copyReal(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(realSums) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), "\t")
		data, err := os.ReadFile(filepath.Join(shared, "oracle", "tokenizers", name))
		if shared == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Fatalf("%s has sha256 %s, want %s", name, got, sum)
		}
		path := root + work + "/oracle/tokenizers/" + name
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, data, 0o666))
	}
}

// needsReal skips a test of mkhf.py with these arguments if they ask for a
// published tokenizer that is not at hand.
func needsReal(t *testing.T, args string) {
	t.Helper()
	_, rest, ok := strings.Cut(args, "tok=real:")
	if !ok {
		return
	}
	name, _, _ := strings.Cut(rest, " ")
	if name == "phi-2" {
		name = "gpt2" // made of it
	}
	if _, err := os.Stat(root + work + "/oracle/tokenizers/" + name); err != nil {
		t.Skipf("the tokenizer of %s is not in ORACLE_SHARED: nothing compared", name)
	}
}

// lock is the file that a run locks while it uses the work folder; nil before it does.
var lock *os.File

// sweep empties the work folder of all but what takes long to make again. It locks the folder
// until the process ends: another run that used it would take the files away.
func sweep(t *testing.T) {
	must(t, os.MkdirAll(root+work, 0o777))
	if lock == nil {
		f, err := os.OpenFile(root+work+".lock", os.O_CREATE|os.O_RDWR, 0o666)
		must(t, err)
		if err := exclusive(f); err != nil {
			t.Fatalf("another run uses %s (%v): set INTEROP_WORK to another folder, such as /srv/interop-2", work, err)
		}
		lock = f
	}
	entries, err := os.ReadDir(root + work)
	must(t, err)
	for _, e := range entries {
		if e.Name() != loadsFile && e.Name() != keptFolder {
			must(t, os.RemoveAll(filepath.Join(root+work, e.Name())))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// script runs one of the oracle's Python scripts; paths are inside the chroot.
func (o *oracle) script(t *testing.T, name string, argv ...string) {
	t.Helper()
	if err := o.try(t, name, argv...); err != nil {
		t.Fatal(err)
	}
}

// try is script for one that may fail.
func (o *oracle) try(t *testing.T, name string, argv ...string) error {
	t.Helper()
	log := work + "/log.txt"
	os.Remove(root + log)
	req, err := json.Marshal(map[string]any{"script": work + "/oracle/" + name, "argv": argv, "log": log})
	must(t, err)
	_, err = o.in.Write(append(req, '\n'))
	must(t, err)
	answer, err := o.out.ReadString('\n')
	must(t, err)
	if answer != "0\n" {
		text, _ := os.ReadFile(root + log)
		return fmt.Errorf("%s %q ended with %s%s", name, argv, answer, text)
	}
	return nil
}

// tool runs one of the reference's programs in the chroot and returns what it
// printed.
func (o *oracle) tool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command("chroot", append([]string{root}, argv...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// backend is the folder, inside the chroot, with the only kernels that the runtime gets: those
// for one kind of CPU. "" is all kernels, of which the runtime takes the fastest.
type backend string

// backends returns one backend for each kind of CPU that the runtime has kernels for, also for kinds that this CPU is
// not.
func backends(t *testing.T) (all []backend) {
	t.Helper()
	files, err := filepath.Glob(backendFolder() + "/libggml-cpu-*.so")
	must(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		folder := work + "/backends/" + strings.TrimSuffix(name, ".so")
		must(t, os.MkdirAll(root+folder, 0o777))
		os.Remove(root + folder + "/" + name)
		must(t, os.Link(file, root+folder+"/"+name))
		all = append(all, backend(folder))
	}
	return all
}

// backendFolder returns the folder of the runtime's kernels, "" for none.
func backendFolder() string {
	folders, _ := filepath.Glob(root + "/usr/lib/*/ggml/backends*")
	return strings.Join(folders, "")
}

// command returns a command in the chroot. With kernels for one kind of CPU, it finds these in place of all.
func (b backend) command(argv ...string) *exec.Cmd {
	if b == "" {
		return exec.Command("chroot", append([]string{root}, argv...)...)
	}
	const script = `mount --bind "$1" "$2" && shift 2 && exec chroot "$@"`
	return exec.Command("unshare", append([]string{"-m", "sh", "-c", script, "sh", root + string(b), backendFolder(),
		root}, argv...)...)
}

// ours runs one of our commands; paths are outside the chroot.
func ours(t *testing.T, name string, argv ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, name), argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, argv, err, out)
	}
	return string(out)
}

// same fails the test unless two files are equal to the byte, and prints the
// difference.
func same(t *testing.T, ours, reference string) {
	t.Helper()
	a, err := os.ReadFile(ours)
	must(t, err)
	b, err := os.ReadFile(reference)
	must(t, err)
	if bytes.Equal(a, b) {
		return
	}
	x, err := gguf.Parse(ours, a)
	must(t, err)
	y, err := gguf.Parse(reference, b)
	must(t, err)
	lines, err := gguf.Diff(t.Context(), x.Set(), y.Set())
	must(t, err)
	if len(lines) > 12 {
		lines = append(lines[:12], fmt.Sprintf("... and %d more", len(lines)-12))
	}
	t.Errorf("ours differs from the reference's file:\n%s", strings.Join(lines, "\n"))
}
