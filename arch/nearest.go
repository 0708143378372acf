package arch

import (
	"cmp"
	"slices"
	"strings"

	"ggforge/internal/text/nearest"
)

// maxNearest is how many names an error suggests.
const maxNearest = 3

// nearestClasses returns the names nearest to name, ignoring case: by the edit distance of the part before "For", then
// of the whole name.
func nearestClasses(name string, names []string) []string {
	type distance struct{ stem, whole int }
	to := func(other string) distance {
		return distance{nearest.Edits(stem(name), stem(other)),
			nearest.Edits(strings.ToLower(name), strings.ToLower(other))}
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

// stem returns the part of a class before "For…C", in lower case: llama for LlamaForCausalLM or llamaforcausallm.
func stem(class string) string {
	if s, _, ok := strings.Cut(class, "For"); ok {
		return strings.ToLower(s)
	}
	s, _, _ := strings.Cut(strings.ToLower(class), "forc") // forcausallm, forconditionalgeneration
	return s
}
