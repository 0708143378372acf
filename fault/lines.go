package fault

import (
	"fmt"
	"strings"
)

// maxLines is how many lines a message lists.
const maxLines = 20

// Lines returns the items for the end of a message, each on a line of its own: at
// most twenty, and how many more there are.
func Lines(items []string) string {
	var b strings.Builder
	for _, item := range items[:min(len(items), maxLines)] {
		b.WriteString("\n  " + item)
	}
	if n := len(items) - maxLines; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}
