package arch

import (
	"cmp"
	"slices"
	"strings"
)

// maxNearest is how many names an error suggests.
const maxNearest = 3

// nearest returns those of names that are nearest to name: by the edit distance of
// what comes before "For", then by that of the whole, without regard to case.
func nearest(name string, names []string) []string {
	type distance struct{ stem, whole int }
	to := func(other string) distance {
		return distance{edits(stem(name), stem(other)), edits(strings.ToLower(name), strings.ToLower(other))}
	}
	compare := func(a, b distance) int { return cmp.Or(cmp.Compare(a.stem, b.stem), cmp.Compare(a.whole, b.whole)) }
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return compare(to(a), to(b)) })
	n := 0
	for n < min(len(sorted), maxNearest) && to(sorted[n]) == to(sorted[0]) {
		n++
	}
	return sorted[:n]
}

// stem is the part of a class that names the model: Llama of LlamaForCausalLM.
func stem(class string) string {
	s, _, _ := strings.Cut(class, "For")
	return strings.ToLower(s)
}

// maxCompared bounds the bytes of a name that are compared; the longest classes
// have 40.
const maxCompared = 64

// edits returns how many bytes must be inserted, removed or replaced to turn a into b.
func edits(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
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
