package checkpoint

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestLimits compares the table of docs/limits.md with that of the code.
func TestLimits(t *testing.T) {
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	if !ok || len(lines) != len(limits) {
		t.Fatalf("%d rows, want %d", len(lines), len(limits))
	}
	for i, l := range limits {
		if want := "| `" + l.pattern + "` | " + strconv.FormatInt(l.bytes>>20, 10) + " |"; !strings.HasPrefix(lines[i],
			want) || l.bytes%(1<<20) != 0 {
			t.Errorf("row %q, want %q", lines[i], want)
		}
	}
}
