package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// cost matches the line about time and memory in a command's output.
var cost = regexp.MustCompile(`(?m)^.* tokens/s, peak memory .*$`)

// TestParts runs each verb in parts, in any order and with different numbers of workers, and compares the finished
// output with that of one process.
func TestParts(t *testing.T) {
	text := textOf(t, source(t, 1000))
	model, other := checkpointOf(t, "llama", 1), checkpointOf(t, "llama", 2)
	mtp, mtp2 := checkpointOf(t, "glm4_moe", 1), checkpointOf(t, "glm4_moe", 2)
	dir := t.TempDir()
	common := []string{"-f", text, "-c", "16", "--chunks", "7", "--progress", "none"}
	must := func(args ...string) string {
		t.Helper()
		code, out, log, err := call(append(args, common...)...)
		if code != 0 {
			t.Fatalf("%q: %d, %v, %s", args, code, err, log)
		}
		return out
	}
	for i, c := range []struct {
		verb  []string
		whole []string // the finished output as the verb reports it
		n     int
	}{
		{[]string{"perplexity", model}, nil, 3},
		{[]string{"compare", model, other, "--recipe", "Q8_0"}, nil, 2},
		{[]string{"imatrix", model, "--process-output", "--sum-chunks", "2"}, []string{"-o"}, 3},
		{[]string{"imatrix", mtp, "--nextn", "--pre", "llama-bpe", "--sum-chunks", "2"}, []string{"-o"}, 2},
	} {
		model, other := model, other
		if c.verb[1] == mtp {
			model, other = mtp, mtp2
		}
		name := filepath.Join(dir, fmt.Sprint(i))
		one, all := append(c.verb[:len(c.verb):len(c.verb)], "--json"),
			append(c.verb[:len(c.verb):len(c.verb)], "--parts", name)
		if c.whole != nil {
			one, all = append(one, "-o", name+"-one"), append(c.verb[:len(c.verb):len(c.verb)], "-o", name)
		}
		want := must(one...)
		share := func(k int, more ...string) partResult {
			args := append(append(all[:len(all):len(all)], "--json", "--part", fmt.Sprintf("%d/%d", k, c.n), "-t",
				fmt.Sprint(k)), more...)
			return result[partResult](t, must(args...))
		}
		end := 0
		for k := c.n; k > 0; k-- { // the last first
			r := share(k)
			if info, err := os.Stat(r.Output); err != nil || info.Size() != r.Bytes || r.Before || r.Chunks != 7 ||
				r.Part != fmt.Sprintf("%d-of-%d", k, c.n) || k < c.n && r.To != end {
				t.Errorf("%q, part %d: %+v, %v", c.verb, k, r, err)
			}
			end = r.From
		}
		lost := fmt.Sprintf("%s.part-2-of-%d", name, c.n)
		before := bytesOf(t, lost)
		if r := share(2); !r.Before || r.Bytes != int64(len(before)) {
			t.Errorf("%q: a part that is there: %+v", c.verb, r)
		}
		refused := func(code int, want string) {
			t.Helper()
			got, _, _, err := call(append(append(all[:len(all):len(all)], "--finish"), common...)...)
			if got != code || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), lost) {
				t.Errorf("%q: %d, %v, want %d with %q", c.verb, got, err, code, want)
			}
		}
		os.Remove(lost)
		refused(7, "2/"+fmt.Sprint(c.n)+" (")
		wrong := bytes.Clone(before)
		wrong[len(wrong)-100] ^= 4
		os.WriteFile(lost, wrong, 0o666)
		refused(3, "its SHA-256 is")
		swapped := append([]string{c.verb[0], other}, all[2:]...)
		for i, arg := range swapped[1:] {
			if arg == other && i > 0 {
				swapped[i+1] = model
			}
		}
		if code, _, _, err := call(append(append(swapped, "--part", fmt.Sprintf("2/%d", c.n), "--force"),
			common...)...); code != 0 {
			t.Fatal(err)
		}
		refused(5, "belongs to another job")
		if code, _, _, err := call(append(append(all[:len(all):len(all)], "--part", fmt.Sprintf("2/%d", c.n)),
			common...)...); code != 5 || !strings.Contains(err.Error(), "--force replaces it") {
			t.Errorf("%q: over a part of another job: %d, %v", c.verb, code, err)
		}
		if r := share(2, "--force"); r.Before || !bytes.Equal(bytesOf(t, lost), before) {
			t.Errorf("%q: the part differs when it is run again", c.verb)
		}
		got := must(append(all, "--json", "--finish")...)
		if c.whole != nil {
			if !bytes.Equal(bytesOf(t, name), bytesOf(t, name+"-one")) {
				t.Errorf("%q: the file differs from that of one process", c.verb)
			}
			if r := result[imatrixResult](t, got); r.Parts != c.n {
				t.Errorf("%q: %d parts", c.verb, r.Parts)
			}
			continue
		}
		if a, b := figures(t, got), figures(t, want); a != b {
			t.Errorf("%q: %s, one process: %s", c.verb, a, b)
		}
		one = one[:len(one)-1] // as text, too
		if a, b := cost.ReplaceAllString(must(append(all, "--finish")...), ""),
			cost.ReplaceAllString(must(one...), ""); a != b {
			t.Errorf("%q: %s\none process: %s", c.verb, a, b)
		}
	}
}

// TestOutputRefusedFirst has outputs that cannot be written: no chunk is run, and no file is left.
func TestOutputRefusedFirst(t *testing.T) {
	text, model := textOf(t, source(t, 1000)), checkpointOf(t, "llama", 1)
	for _, there := range []struct{ suffix, want string }{{"", "exists already"},
		{".partial.run", "an unfinished run in parts exists"}} {
		for _, flags := range [][]string{{"--save-every", "1"}, {"--part", "1/2"}} {
			dir := t.TempDir()
			out := filepath.Join(dir, "im.gguf")
			if err := os.WriteFile(out+there.suffix, []byte("of another run"), 0o666); err != nil {
				t.Fatal(err)
			}
			code, _, _, err := call(append([]string{"imatrix", model, "-f", text, "-c", "16", "--sum-chunks", "1",
				"--progress", "none", "-o", out}, flags...)...)
			if left, _ := filepath.Glob(dir + "/*"); code != 2 || !strings.Contains(err.Error(), there.want) ||
				len(left) != 1 {
				t.Errorf("%v: %d, %v, left %v", flags, code, err, left)
			}
		}
	}
}

// figures returns a command's output without time and memory.
func figures(t *testing.T, printed string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(printed), &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seconds", "tokens_per_second", "peak_memory_bytes"} {
		if _, ok := all[name]; !ok {
			t.Errorf("no %s", name)
		}
		delete(all, name)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPartsMerged checks parts with merged files, with more parts than chunks, with part numbers from a scheduler,
// and with a state file.
func TestPartsMerged(t *testing.T) {
	text, model := textOf(t, source(t, 1000)), checkpointOf(t, "llama", 1)
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if code, _, _, err := call(append([]string{"imatrix", model, "-f", text, "-c", "32", "--chunks", "5",
			"--progress", "none", "--sum-chunks", "1"}, args...)...); code != 0 {
			t.Fatalf("%q: %v", args, err)
		}
	}
	first, one, all := filepath.Join(dir, "first"), filepath.Join(dir, "one"), filepath.Join(dir, "all")
	run("-o", first, "--chunks", "1")
	merged := []string{"--in-file", first, "--in-file", first}
	run(append(merged, "-o", one)...)
	for i := range 8 { // more than there are groups
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		run(append(merged, "-o", all, "--part", "auto/8")...)
	}
	run(append(merged, "-o", all, "--finish")...)
	if !bytes.Equal(bytesOf(t, one), bytesOf(t, all)) {
		t.Error("the file differs from that of one process")
	}
	again := filepath.Join(dir, "again")
	run(append(merged, "-o", again, "--save-every", "2")...)
	if !bytes.Equal(bytesOf(t, one), bytesOf(t, again)) {
		t.Error("the file differs with --save-every")
	}
}

// TestPartsSaved compares parts with probabilities that llama-perplexity has saved.
func TestPartsSaved(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no figure")
	}
	dir := checkpointOf(t, "llama", 1)
	args := []string{"compare", "--kl-divergence-base", saved(t, dir, source(t, 1000), 32, 5), dir,
		checkpointOf(t, "llama", 2), "--json", "--progress", "none"}
	run := func(more ...string) string {
		t.Helper()
		code, out, _, err := call(append(args[:len(args):len(args)], more...)...)
		if code != 0 {
			t.Fatalf("%q: %v", more, err)
		}
		return out
	}
	name := filepath.Join(t.TempDir(), "p")
	run("--parts", name, "--part", "2/2")
	run("--parts", name, "--part", "1/2")
	if a, b := figures(t, run("--parts", name, "--finish")), figures(t, run()); a != b {
		t.Errorf("%s, one process: %s", a, b)
	}
}

// fineTune returns a copy of a checkpoint in which only the last weight differs: metadata, names, sizes and the first
// row of every tensor are the same.
func fineTune(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(to, "*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	data := bytesOf(t, files[0])
	data[len(data)-2] ^= 1
	if err := os.WriteFile(files[0], data, 0o666); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestPartsOfFineTunes checks that --finish refuses a part made from another model, although headers and first
// rows are the same.
func TestPartsOfFineTunes(t *testing.T) {
	a := checkpointOf(t, "llama", 1)
	b := fineTune(t, a)
	text := textOf(t, source(t, 1000))
	common := []string{"-f", text, "-c", "16", "--chunks", "4", "--progress", "none"}
	for i, verb := range [][]string{{"perplexity"}, {"imatrix", "--sum-chunks", "2"}} {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		to := []string{"--parts", name}
		if verb[0] == "imatrix" {
			to = []string{"-o", name}
		}
		run := func(model string, more ...string) (int, error) {
			code, _, _, err := call(slices.Concat(verb, []string{model}, to, common, more)...)
			return code, err
		}
		for k, model := range []string{a, b} {
			if code, err := run(model, "--part", fmt.Sprintf("%d/2", k+1)); code != 0 {
				t.Fatal(err)
			}
		}
		if code, err := run(a, "--finish"); code != 5 ||
			!strings.Contains(err.Error(), name+".part-2-of-2: belongs to another job: its model, as its identity,") {
			t.Errorf("%q: %d, %v", verb, code, err)
		}
	}
}
