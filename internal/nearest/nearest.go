// Package nearest finds the names that a misspelled one may mean.
package nearest

import "strings"

// maxCompared bounds the bytes of a name that are compared; the longest classes
// of models have 40.
const maxCompared = 64

// Compared returns the part of a name that is compared.
func Compared(name string) string { return name[:min(len(name), maxCompared)] }

// Edits returns how many bytes must be inserted, removed or replaced to turn a into b.
func Edits(a, b string) int {
	a, b = Compared(a), Compared(b)
	row := make([]int, len(b)+1) // distances of the bytes of a so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0] // of the row before
		row[0]++
		for j := range len(b) {
			d := left
			if a[i] != b[j] {
				d++
			}
			left = row[j+1]
			row[j+1] = min(d, left+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Name returns the first of names that is nearest to name, without regard to case;
// "" of none.
func Name(name string, names []string) string {
	best, least := "", -1
	name = strings.ToLower(Compared(name))
	for _, other := range names {
		if n := Edits(name, strings.ToLower(other)); least < 0 || n < least {
			best, least = other, n
		}
	}
	return best
}
