package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTrajectory compares greedy continuations, and how long models follow them, with those that PyTorch generated with
// each model (trajectory.py).
func TestTrajectory(t *testing.T) {
	shared := os.Getenv("ORACLE_SHARED")
	script, golden := filepath.Join(shared, "oracle/trajectory.py"), filepath.Join(shared, "oracle/trajectory.json")
	if _, err := os.Stat(golden); shared == "" || err != nil {
		skip(t, "no continuations by PyTorch")
	}
	var want struct {
		N      int
		Paths  [][]int32
		Models map[string]struct{ Followed []int }
	}
	data, err := os.ReadFile(golden)
	must(t, err)
	must(t, json.Unmarshal(data, &want))
	dir := t.TempDir()
	prompts, base, paths := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "f32.gguf"), filepath.Join(dir, "paths")
	if out, err := exec.Command("python3", script, "prompts", filepath.Join(shared, "models/eval.txt"), prompts, "--seed",
		"5").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ours(t, "ggconv", "--outtype", "f32", "../testdata/gollama", base, "--progress", "none")
	argv := []string{"trajectory", "-f", prompts, "-o", paths, "--json", "--progress", "none", base}
	names := []string{"q4km", "q2k"}
	for i, recipe := range []string{"Q4_K_M", "Q2_K"} {
		file := filepath.Join(dir, names[i]+".gguf")
		ours(t, "ggquant", "--progress", "none", base, file, recipe)
		argv = append(argv, file)
	}
	var got struct {
		Models []struct{ Lengths []int }
	}
	must(t, json.Unmarshal([]byte(ours(t, "ggeval", argv...)), &got))
	for i, name := range names {
		if f := want.Models[name].Followed; !slices.Equal(got.Models[i].Lengths, f) {
			t.Errorf("%s follows %v, PyTorch's %v", name, got.Models[i].Lengths, f)
		}
	}
	data, err = os.ReadFile(paths)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
	if len(lines) != len(want.Paths) {
		t.Fatalf("%d continuations, want %d", len(lines), len(want.Paths))
	}
	for i, text := range lines {
		var line struct{ Path []int32 }
		must(t, json.Unmarshal([]byte(text), &line))
		if !slices.Equal(line.Path, want.Paths[i]) {
			t.Errorf("prompt %d: %v, PyTorch's %v", i+1, line.Path, want.Paths[i])
		}
	}
	t.Logf("%d continuations of %d tokens, %d lengths equal", len(lines), want.N, len(names)*len(lines))
}
