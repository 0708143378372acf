package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// TestSensitivity checks the table as text, as JSON and as a file.
func TestSensitivity(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no figure")
	}
	text, file := textOf(t, source(t, 3000)), filepath.Join(t.TempDir(), "table.json")
	args := []string{"sensitivity", gollama, "-f", text, "-c", "16", "--chunks", "1", "--types", "Q2_K,Q8_0",
		"--progress", "none"}
	code, out, log, err := call(append(args, "-o", file)...)
	if err != nil {
		t.Fatal(code, err, log)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 3+2*10+2 || !strings.HasPrefix(lines[2], "group") ||
		!strings.Contains(out, "1 chunks of 16, 7 tokens predicted") ||
		!strings.Contains(out, "\nall          Q2_K      2.6250") {
		t.Errorf("%d lines: %s", len(lines), out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	saved := result[sensitivityResult](t, string(data))
	_, out, _, err = call(append(args, "--json", "-t", "1")...)
	if err != nil {
		t.Fatal(err)
	}
	printed := result[sensitivityResult](t, out)
	if !reflect.DeepEqual(saved.Rows, printed.Rows) || len(saved.Rows) != 20 || saved.Chunks != 1 ||
		saved.Model != gollama || saved.Group != "role" {
		t.Errorf("%+v, printed %+v", saved, printed)
	}
	for i, r := range saved.Rows {
		if !strings.HasPrefix(strings.Fields(lines[3+i])[0], r.Group) || !(r.Divergence > 0 && r.DivergenceError > 0) ||
			r.PerByte == nil || len(r.Tensors) == 0 || r.Top > 1 {
			t.Errorf("row %d: %+v, %q", i, r, lines[3+i])
		}
	}
	if code, _, _, err := call(append(args, "-o", file)...); code != 2 || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a table that exists: exit code %d, %v", code, err)
	}
	if code, _, _, err := call(append(args, "-o", file, "--force")...); code != 0 {
		t.Errorf("with --force: exit code %d, %v", code, err)
	}
	args[9] = "IQ1_S"
	if code, _, _, err := call(args...); code != 5 || !strings.Contains(err.Error(), "needs an importance matrix") {
		t.Errorf("without an importance matrix: exit code %d, %v", code, err)
	}
	if code, _, _, err := call(append(args, "--imatrix", text)...); code != 3 {
		t.Errorf("no importance matrix: exit code %d, %v", code, err)
	}
}
