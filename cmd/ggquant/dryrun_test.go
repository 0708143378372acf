package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// TestDryRunSize checks that --dry-run prints the size of the output, and calls it an estimate where it is one.
func TestDryRunSize(t *testing.T) {
	text := []string{"--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "4"}
	for name, c := range map[string]struct {
		args     []string
		estimate bool
	}{
		"plain":  {nil, false},
		"matrix": {text, false},
		"high":   {append(text[:len(text):len(text)], "--effort", "high"), true},
		"target": {append(text[:len(text):len(text)], "--target-bpw", "5"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (name == "high" || name == "target") && !cpu.HasVectors {
				t.Skip("takes a minute without vector kernels")
			}
			out := filepath.Join(t.TempDir(), "x.gguf")
			args := append([]string{"../../test/testdata/gollama", out, "Q4_0", "--progress", "none"}, c.args...)
			code, printed, err := call(append(args, "--dry-run", "--json")...)
			if code != 0 {
				t.Fatal(err)
			}
			if got := strings.Contains(printed, "sizes are estimates"); got != c.estimate {
				t.Errorf("called an estimate: %v, want %v", got, c.estimate)
			}
			var planned struct {
				Bytes int64 `json:"bytes"`
			}
			if err := json.Unmarshal([]byte(printed[strings.Index(printed, "{"):]), &planned); err != nil {
				t.Fatal(err)
			}
			if code, _, err := call(args...); code != 0 {
				t.Fatal(err)
			}
			st, err := os.Stat(out)
			if err != nil || st.Size() != planned.Bytes {
				t.Errorf("%d bytes, %v; --dry-run printed %d", st.Size(), err, planned.Bytes)
			}
		})
	}
}
