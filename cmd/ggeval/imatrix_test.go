package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/kernel/cpu"
)

func bytesOf(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestImatrix checks the matrices of a checkpoint in both formats, with different numbers of workers and of chunks at
// once, and merged; and the results as text and as JSON.
func TestImatrix(t *testing.T) {
	dir, text := checkpointOf(t, "mixtral", 1), textOf(t, source(t, 2500))
	out := t.TempDir() + "/"
	run := func(args ...string) string {
		t.Helper()
		args = append(args, "--progress", "none")
		code, text, log, err := call(append([]string{"imatrix"}, args...)...)
		if err != nil {
			t.Fatalf("%q: %d, %v\n%s", args, code, err, log)
		}
		return text
	}
	got := run(dir, "-f", text, "-o", out+"a.gguf", "-c", "64", "-t", "1", "--process-output")
	if !strings.Contains(got, "a.gguf: ") || !strings.Contains(got, "chunks of 64") ||
		!strings.Contains(got, "tokens/s") {
		t.Errorf("printed %q", got)
	}
	r := result[imatrixResult](t, run(dir, "-f", text, "-o", out+"b.gguf", "-c", "64", "-t", "3", "--process-output",
		"--save-every", "2", "--json"))
	want := bytesOf(t, out+"a.gguf")
	if !bytes.Equal(want, bytesOf(t, out+"b.gguf")) {
		t.Error("the file differs with more workers and chunks in groups")
	}
	m, err := imatrix.Open(out + "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if r.Entries != m.Len() || r.Seen != m.Chunks || r.Chunks != m.Chunks || r.ChunkSize != 64 || r.Format != "gguf" ||
		r.Bytes != int64(len(want)) ||
		r.Architecture != "llama" || r.Model != dir || len(r.Datasets) != 1 || r.Datasets[0] != "text.txt" ||
		r.Resumed != 0 {
		t.Errorf("%+v", r)
	}
	if m.Entry("output.weight") == nil || m.Entry("blk.0.ffn_gate_inp.weight") == nil ||
		len(m.Entry("blk.1.ffn_down_exps.weight").Counts) < 2 {
		t.Error("entries are missing")
	}
	unseen := 0
	for _, e := range m.Entries() {
		unseen += len(e.Unseen())
	}
	for _, u := range r.Unseen {
		unseen -= u.Count
	}
	if unseen != 0 {
		t.Errorf("%d more matrices without tokens than listed", unseen)
	}
	run(dir, "-f", text, "-o", out+"c.dat", "--format", "dat", "-c", "64", "--chunks", "3")
	old, err := imatrix.Open(out + "c.dat")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if !old.Legacy || old.Chunks != 3 || old.Entry("output.weight") != nil || old.Datasets[0] != "text.txt" {
		t.Errorf("%+v", old)
	}
	// merged: with a text, and alone
	run(dir, "-f", text, "-o", out+"d.gguf", "-c", "64", "--chunks", "1", "--in-file", out+"a.gguf")
	r = result[imatrixResult](t, run("-o", out+"e.gguf", "--in-file", out+"a.gguf", "--in-file",
		out+"d.gguf", "--json"))
	if r.Seen != 2*m.Chunks+1 || r.ChunkSize != 64 || len(r.Datasets) != 3 || r.Model != "" || r.File != "" ||
		len(r.Merged) != 2 {
		t.Errorf("merged: %+v", r)
	}
	// shares of the text, merged, are the whole
	run(dir, "-f", text, "-o", out+"first.gguf", "-c", "64", "--chunks", "2", "--sum-chunks", "1", "--process-output")
	r = result[imatrixResult](t, run(dir, "-f", text, "-o", out+"rest.gguf", "-c", "64", "--chunk", "2", "--sum-chunks",
		"1", "--process-output", "--json"))
	if r.Seen != m.Chunks-2 || r.Chunks != m.Chunks-2 {
		t.Errorf("from the third chunk on: %+v", r)
	}
	run("-o", out+"whole.gguf", "--in-file", out+"first.gguf", "--in-file", out+"rest.gguf")
	whole, err := imatrix.Open(out + "whole.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for i := range m.Entries() {
		e := &m.Entries()[i]
		a, err := m.Sums(e)
		if err != nil {
			t.Fatal(err)
		}
		b, err := whole.Sums(whole.Entry(e.Name))
		if err != nil {
			t.Fatal(err)
		}
		for k := range a {
			if math.Abs(float64(a[k]-b[k])) > 1e-5*float64(a[k]) {
				t.Fatalf("%s, column %d: %v of all, %v of shares", e.Name, k, a[k], b[k])
			}
		}
	}
	// no state files are left
	if left, err := filepath.Glob(out + "*.state*"); err != nil || left != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// TestImatrixResumed interrupts runs and resumes them: the bytes are the same, and resuming with different inputs or
// flags is refused.
func TestImatrixResumed(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	dir, text := checkpointOf(t, "llama", 1), textOf(t, source(t, 30000))
	out := filepath.Join(t.TempDir(), "m.gguf")
	args := []string{"imatrix", dir, "-f", text, "-o", out, "-c", "64", "--save-every", "1", "--progress",
		"none", "--json"}
	state := out + ".state"
	interrupt := func() {
		t.Helper()
		for range 20 {
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(state); err == nil {
						cancel()
					}
					time.Sleep(time.Millisecond)
				}
			}()
			cmd := command()
			cmd.Writer, cmd.ErrWriter = io.Discard, io.Discard
			err := tool.Run(ctx, cmd, append([]string{"ggeval"}, args...))
			cancel()
			if errors.Is(err, context.Canceled) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(out) // the run ended before it was canceled
		}
		t.Fatal("no run could be interrupted")
	}
	interrupt()
	if _, err := os.Stat(out); err == nil {
		t.Fatal("an output of an interrupted run")
	}
	if m, err := imatrix.Open(state); err != nil || m.Len() == 0 {
		t.Errorf("the state is no importance matrix: %v", err)
	} else {
		m.Close()
	}
	saved := bytesOf(t, state)
	_, printed, log, err := call(args...)
	if err != nil {
		t.Fatal(err)
	}
	r := result[imatrixResult](t, printed)
	if r.Resumed < 1 || r.Resumed >= r.Chunks || !strings.Contains(log, "chunks are done already") {
		t.Errorf("%d of %d chunks resumed: %s", r.Resumed, r.Chunks, log)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the state is still there")
	}
	plain := filepath.Join(t.TempDir(), "m.gguf")
	if _, _, _, err := call("imatrix", dir, "-f", text, "-o", plain, "-c", "64", "--progress", "none"); err != nil {
		t.Fatal(err)
	}
	want := bytesOf(t, plain)
	if !bytes.Equal(bytesOf(t, out), want) {
		t.Error("the file differs from that of an uninterrupted run")
	}
	other, more := fineTune(t, dir), textOf(t, strings.ToUpper(source(t, 30000)))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{other, "-f", text, "-c", "64"}, 5, "for another model"},
		{[]string{dir, "-f", more, "-c", "64"}, 5, "for another text"},
		{[]string{dir, "-f", text, "-c", "64", "--chunk", "1"}, 5, "for another text"},
		{[]string{dir, "-f", text, "-c", "64", "--parse-special"}, 5, "for another text"},
		{[]string{dir, "-f", text, "-c", "32"}, 5, "with another chunk size"},
		{[]string{dir, "-f", text, "-c", "64", "--in-file", plain}, 5, "with other merged files"},
		{[]string{dir, "-f", text, "-c", "64", "--process-output"}, 5, "with another choice about the output matrix"},
	} {
		if err := os.WriteFile(state, saved, 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, _, err := call(append([]string{"imatrix", "-o", out, "--force", "--progress", "none"}, c.args...)...)
		if code != c.code || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "remove it to start over") {
			t.Errorf("%q: %d, %v", c.args, code, err)
		}
	}
	if err := os.WriteFile(state, saved[:len(saved)-100], 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, _, err := call(append(args, "--force")...); code != 3 ||
		!strings.Contains(err.Error(), "m.gguf.state") {
		t.Errorf("a broken state: %d, %v", code, err)
	}
	if err := os.WriteFile(state, want, 0o666); err != nil { // an importance matrix, but no state
		t.Fatal(err)
	}
	if code, _, _, err := call(append(args, "--force")...); code != 3 || !errors.Is(err, fault.Broken) {
		t.Errorf("no state: %d, %v", code, err)
	}
	if !bytes.Equal(bytesOf(t, out), want) {
		t.Error("the output has changed")
	}
}

// TestImatrixNextN checks the matrix of a model with an MTP layer: that layer's entries and the number of such layers,
// which a merge keeps; what is done without such layers; and that a state file without them is refused.
func TestImatrixNextN(t *testing.T) {
	dir, text := checkpointOf(t, "glm4_moe", 1), textOf(t, source(t, 1500))
	out := t.TempDir() + "/"
	common := []string{"-f", text, "-c", "32", "--progress", "none", "--json"}
	run := func(args ...string) (r imatrixResult, log string) {
		t.Helper()
		code, printed, log, err := call(append(append([]string{"imatrix"}, args...), common...)...)
		if err != nil {
			t.Fatalf("%q: %d, %v\n%s", args, code, err, log)
		}
		return result[imatrixResult](t, printed), log
	}
	plain, _ := run(dir, "-o", out+"plain.gguf", "--pre", "llama-bpe")
	r, _ := run(dir, "-o", out+"nextn.gguf", "--nextn", "--pre", "llama-bpe")
	m, err := imatrix.Open(out + "nextn.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := m.Entry("blk.2.nextn.eh_proj.weight")
	if e == nil || e.Len() != 2*64 || len(e.Counts) != 1 || e.Counts[0] != int64(31*r.Chunks) || r.NextN != 1 ||
		m.NextN != 1 || plain.NextN != 0 || m.Entry("blk.2.ffn_down_exps.weight") == nil || r.Seen != plain.Seen {
		t.Errorf("%+v, %d MTP layers, without %+v: %+v", e, m.NextN, plain, r)
	}
	old, err := imatrix.Open(out + "plain.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for _, x := range old.Entries() {
		a, err := old.Sums(&x)
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Sums(m.Entry(x.Name))
		if err != nil || !slices.Equal(a, b) {
			t.Errorf("%s: other sums with MTP layers, %v", x.Name, err)
		}
	}
	_, printed, _, err := call("imatrix", "-o", out+"merged.gguf", "--in-file", out+"plain.gguf", "--in-file",
		out+"nextn.gguf", "--json")
	if err != nil {
		t.Fatal(err)
	}
	if both := result[imatrixResult](t, printed); both.NextN != 1 || both.Entries != r.Entries {
		t.Errorf("merged: %+v", both)
	}
	if _, log := run(checkpointOf(t, "llama", 1), "-o", out+"none.gguf", "--nextn"); !strings.Contains(log,
		"has no MTP (NextN) layers") {
		t.Errorf("a model without such layers: %s", log)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "--mtp", "--pre", "llama-bpe"}, "a draft model of MTP (NextN) layers alone"},
		{[]string{checkpointOf(t, "qwen4_exp", 1), "--pre", "llama-bpe"}, "several residual streams"},
	} {
		if code, _, _, err := call(slices.Concat([]string{"imatrix", "-o", out + "refused.gguf", "--nextn"}, c.args,
			common)...); code != 4 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %d, %v", c.args, code, err)
		}
	}
}

// TestImatrixRefused checks what is refused before the model is run.
func TestImatrixRefused(t *testing.T) {
	text := textOf(t, source(t, 3000))
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"m -f t", 2, "name it with -o FILE"},
		{"m -o o", 2, "name it with -f FILE"},
		{"-f t -o o", 2, "no MODEL"},
		{"-o o", 2, "nothing to do"},
		{"-o o --in-file -", 2, "standard input"},
		{"-o o --in-file x -c 0", 2, "chunks of 0 tokens"},
		{"m -f t -o o --format xml", 2, `--format: format "xml"`},
		{"-o o --in-file nowhere", 1, "nowhere"},
		{"-o o --in-file " + text, 3, text},
		{gollama + " -f " + text + " -o " + text, 2, text},
		{gollama + " -f " + text + " -o " + text + " --force", 2, text},
		{gollama + " -f " + text + " -o " + out + " -c 64 --chunk 100", 5, "want more than the 100"},
		{gollama + " -f " + text + " -o " + out + " -c 100000", 5, "want at least 100000"},
	} {
		if code, _, _, err := call(append([]string{"imatrix", "--progress", "none"},
			strings.Fields(c.args)...)...); code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an output after errors")
	}
}
