package fault

import (
	"fmt"
	"strings"
)

// MaxListed is how many items a message lists.
const MaxListed = 20

// List returns the items for a message, on one line: at most MaxListed, and how many
// more there are.
func List(items []string) string {
	if n := len(items) - MaxListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:MaxListed], ", "), n)
	}
	return strings.Join(items, ", ")
}

// Lines is List for the end of a message, with each item on a line of its own.
func Lines(items []string) string {
	var b strings.Builder
	for _, item := range items[:min(len(items), MaxListed)] {
		b.WriteString("\n  " + item)
	}
	if n := len(items) - MaxListed; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}
