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

// maxMeant is the number of names that a misspelled one may mean; with more, none is suggested.
const maxMeant = 3

// Meant returns the names that a misspelled one probably means, none if nothing is near: those
// that are the same without regard to case and to marks between words, else those that it is the beginning
// of, else those that differ in the fewest letters, which must be few in relation to its length.
func Meant(name string, names []string) []string {
	name = letters(name)
	if name == "" {
		return nil
	}
	var same, longer, near []string
	least := 1 + len(name)/4
	for _, other := range names {
		plain := letters(other)
		n := Edits(name, plain)
		if swapped(name, plain) {
			n = 1
		}
		switch {
		case plain == name:
			same = append(same, other)
		case len(name) >= 3 && strings.HasPrefix(plain, name):
			longer = append(longer, other)
		case n > least || n >= len(name):
		case n < least:
			least, near = n, []string{other}
		default:
			near = append(near, other)
		}
	}
	for _, list := range [][]string{same, longer, near} {
		if len(list) > 0 && len(list) <= maxMeant {
			return list
		}
	}
	return nil
}

// swapped reports whether a and b are the same but for two letters next to each other.
func swapped(a, b string) bool {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// letters returns the part of a name that is compared.
func letters(name string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(Compared(name)))
}

// Hint returns a question for the end of an error about a name that is not one of names, with
// a comma and a space before it; "" if nothing is near.
func Hint(name string, names []string) string {
	return Ask(Meant(name, names))
}

// Asks is part of every text of Ask.
const Asks = ", did you mean "

// Ask returns the question of Hint.
func Ask(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	text := meant[len(meant)-1]
	if rest := meant[:len(meant)-1]; len(rest) > 0 {
		text = strings.Join(rest, ", ") + " or " + text
	}
	return Asks + text + "?"
}
