package fault

import (
	"fmt"
	"strings"
)

// MaxListed is the number of items that a message lists.
const MaxListed = 20

// List returns the items for a message, on one line: at most MaxListed, and the number
// of the others.
func List(items []string) string {
	if n := len(items) - MaxListed; n > 0 {
		return fmt.Sprintf("%s and %d more", line(strings.Join(items[:MaxListed], ", ")), n)
	}
	return line(strings.Join(items, ", "))
}

// line returns text with line ends escaped: a name from a file must not look like
// another item or message.
func line(text string) string { return strings.ReplaceAll(text, "\n", `\n`) }

// Lines is List for the end of a message, with each item on a line of its own.
func Lines(items []string) string {
	var b strings.Builder
	for _, item := range items[:min(len(items), MaxListed)] {
		b.WriteString("\n  " + line(item))
	}
	if n := len(items) - MaxListed; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}
