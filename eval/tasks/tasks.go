// Package tasks scores language models by the tasks that llama-perplexity reads: the answer of each that a model finds the
// most probable.
package tasks

import (
	"slices"

	"ggforge/fault"
)

// Kind is a kind of tasks.
type Kind int

// Kinds of tasks and their files. Each is described at its reader.
const (
	HellaSwag Kind = iota
	Winogrande
	MultipleChoice
)

var kinds = []string{"hellaswag", "winogrande", "multiple-choice"}

func (k Kind) String() string { return kinds[k] }

// Kinds returns the names of all kinds.
func Kinds() []string { return slices.Clone(kinds) }

// ParseKind returns the kind of a name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kinds, name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fault.Errorf(fault.Usage, "tasks of kind %q, want hellaswag, winogrande or multiple-choice", name)
}

// Task is a question and its answers.
type Task struct {
	Kind    Kind
	Place   string // in the file, for messages
	Before  string // the context or question; of Winogrande the sentence before the gap
	After   string // of Winogrande: the sentence after the gap
	Answers []string
	Right   []bool // by answer; several may be right, or none
}

// Draw returns which of all tasks llama-perplexity scores if it is asked for n of them, in its order. Tasks of HellaSwag
// are always drawn at random; others only if n is more than 0 and less than all, and all in the order of the file
// otherwise. Numbers are those of std::mt19937 with seed 1.
func Draw(kind Kind, all, n int) []int {
	left := make([]int, all)
	for i := range left {
		left[i] = i
	}
	if kind != HellaSwag && (n == 0 || n >= all) {
		return left
	}
	random := newTwister(1)
	list := make([]int, 0, min(n, all))
	for range min(n, all) {
		if kind == HellaSwag {
			i := random.below(uint32(len(left)))
			list = append(list, left[i])
			left = slices.Delete(left, int(i), int(i)+1)
			continue
		}
		share := float32(float32(random.next()) * (1.0 / (1 << 32)))
		i := min(int(float32(share*float32(len(left)))), len(left)-1) // a share may be rounded to 1
		list = append(list, left[i])
		left[i] = left[len(left)-1]
		left = left[:len(left)-1]
	}
	return list
}

// twister is the generator of Matsumoto and Nishimura, mt19937.
type twister struct {
	state [624]uint32
	at    int
}

func newTwister(seed uint32) *twister {
	t := &twister{at: 624}
	t.state[0] = seed
	for i := 1; i < len(t.state); i++ {
		before := t.state[i-1]
		t.state[i] = 1812433253*(before^before>>30) + uint32(i)
	}
	return t
}

func (t *twister) next() uint32 {
	if t.at == len(t.state) {
		for i := range t.state {
			y := t.state[i]&0x80000000 | t.state[(i+1)%624]&0x7fffffff
			t.state[i] = t.state[(i+397)%624] ^ y>>1
			if y&1 == 1 {
				t.state[i] ^= 0x9908b0df
			}
		}
		t.at = 0
	}
	y := t.state[t.at]
	t.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below returns a number below n as libstdc++'s uniform_int_distribution draws it: Lemire's method.
func (t *twister) below(n uint32) uint32 {
	m := uint64(t.next()) * uint64(n)
	if uint32(m) < n {
		for least := -n % n; uint32(m) < least; {
			m = uint64(t.next()) * uint64(n)
		}
	}
	return uint32(m >> 32)
}
