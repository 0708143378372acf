package safetensors

import (
	"fmt"
	"strings"
)

// defects collects the defects of a set of shards for one error.
type defects [kinds]struct {
	lines []string // the first ones
	n     int
}

// Kinds of defect, in the order of the message.
const (
	badName = iota
	missingFile
	extraFile
	brokenFile
	inTwo
	elsewhere
	notInIndex
	notInFile
	kinds
)

// maxPerKind bounds the lines of a kind: one missing shard or a stale index affects thousands of tensors.
const maxPerKind = 10

func (d *defects) add(kind int, format string, args ...any) {
	k := &d[kind]
	if k.n++; k.n <= maxPerKind {
		k.lines = append(k.lines, fmt.Sprintf(format, args...))
	}
}

func (d *defects) total() int {
	n := 0
	for i := range d {
		n += d[i].n
	}
	return n
}

// String returns the only defect, or a count and a line for each.
func (d *defects) String() string {
	var b strings.Builder
	n := d.total()
	if n > 1 {
		fmt.Fprintf(&b, "%d defects:", n)
	}
	for i := range d {
		for _, line := range d[i].lines {
			if n > 1 {
				b.WriteString("\n\t")
			}
			b.WriteString(line)
		}
		if more := d[i].n - len(d[i].lines); more > 0 {
			fmt.Fprintf(&b, "\n\tand %d more of this kind", more)
		}
	}
	return b.String()
}
