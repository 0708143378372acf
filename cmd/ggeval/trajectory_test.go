package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// TestTrajectory checks that a model follows itself, that a file of continuations serves instead of the base, and what is
// refused.
func TestTrajectory(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	dir := t.TempDir()
	prompts, paths := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "paths.jsonl")
	var lines []string
	text := source(t, 2000)
	for i := range 9 {
		b, err := json.Marshal(map[string]string{"prompt": text[100*i:][:100]})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	if err := os.WriteFile(prompts, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"trajectory", gollama, gollama, "-f", prompts, "--predict", "6", "--type", "Q2_K", "-o", paths, "--progress",
		"none"}
	_, out, _, err := call(append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	r := result[trajectoryResult](t, out)
	difference := r.Pairs[0].Difference.Mean - (6 - r.Models[1].Length.Mean)
	if r.N != 6 || r.Prompts != 9 || len(r.Models) != 2 || r.Models[0].Whole.Mean != 1 || r.Models[0].Length.Mean != 6 ||
		r.Models[1].Recipe != "Q2_K" || !(r.Models[1].Length.Mean < 6) || len(r.Pairs) != 1 ||
		r.Pairs[0].B != gollama+" as Q2_K" || math.Abs(float64(difference)) > 1e-9 {
		t.Errorf("%s", out)
	}
	_, printed, _, err := call("trajectory", "--paths", paths, gollama, gollama, "--type", "Q2_K", "--progress", "none")
	if err != nil || !strings.Contains(printed, "9 prompts, 6 tokens each by "+gollama) ||
		!strings.Contains(printed, "100") || !strings.Contains(printed, "[3] "+gollama+" as Q2_K") {
		t.Errorf("%v: %s", err, printed)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{args, 2, "exists already"},
		{[]string{"trajectory", "--paths", paths, checkpointOf(t, "llama", 1)}, 5, "not that of"},
		{[]string{"trajectory", "--paths", prompts, gollama}, 3, "line 1"},
		{[]string{"trajectory", "-f", paths, gollama, gollama}, 3, "line 1"},
		{[]string{"trajectory", "-f", dir, gollama, gollama}, 2, "want a file"},
		{[]string{"trajectory", "-f", prompts, "--chats", gollama, gollama}, 2, "line 1: "},
	} {
		code, _, _, err := call(append(c.args, "--progress", "none")...)
		if err == nil || code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
}
