package imatrix

import (
	"fmt"

	"ggforge/fault"
	"ggforge/gguf"
)

// Keys of a state. The counts of a GGUF file are float32, which cannot represent large ones exactly; a state has them
// as u64, too.
const (
	keyCounts    = "imatrix.state.counts"    // u64, the counts of all tensors, one after the other
	keyCollected = "imatrix.state.collected" // bool, for each tensor whether a calibration has added to it
	keyRun       = "imatrix.state.chunk_size"
	keyMerged    = "imatrix.state.merged_chunk_size"
	keyLeast     = "imatrix.state.merged_chunks"
)

// State returns a file from which ParseState restores the sums, with further metadata of the caller. Other readers
// take it for the importance matrix of the text so far.
func (s *Sums) State(md gguf.Metadata) (*File, error) {
	var counts []uint64
	var collected []bool
	for _, t := range s.Tallies() {
		for _, c := range t.Counts {
			counts = append(counts, uint64(c))
		}
		collected = append(collected, t.collected)
	}
	return s.gguf(append(gguf.Metadata{
		{Key: keyCounts, Value: gguf.Uint64s(counts)},
		{Key: keyCollected, Value: gguf.Bools(collected)},
		{Key: keyRun, Value: gguf.Uint32(uint32(s.run))},
		{Key: keyMerged, Value: gguf.Uint32(uint32(s.merged))},
		{Key: keyLeast, Value: gguf.Uint32(uint32(s.least))},
	}, md...))
}

// ParseState returns the sums in a file of State, and all metadata of the file; path is for messages.
func ParseState(path string, data []byte) (*Sums, gguf.Metadata, error) {
	f, err := gguf.Parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	m := &Matrix{Path: path}
	if err := m.parseGGUF(data); err != nil {
		return nil, nil, err
	}
	bad := func(key, format string, args ...any) (*Sums, gguf.Metadata, error) {
		return nil, nil, fault.Errorf(ErrBroken, "%s: key %s: "+format, append([]any{path, quote(key)}, args...)...)
	}
	s := &Sums{Datasets: m.Datasets, NextN: m.NextN, tallies: map[string]*Tally{}}
	for key, dst := range map[string]*int{keyRun: &s.run, keyMerged: &s.merged, keyLeast: &s.least} {
		v, _ := f.Metadata.Get(key)
		n, ok := v.Int()
		if !ok || v.Type() != gguf.Uint32Type || n > 1<<31-1 || key == keyRun && n < 1 {
			return bad(key, "is %v, want a u32 below 2^31", v)
		}
		*dst = int(n)
	}
	counts, _ := f.Metadata.Get(keyCounts)
	collected, _ := f.Metadata.Get(keyCollected)
	n := 0
	for i := range m.entries {
		n += len(m.entries[i].Counts)
	}
	if counts.Type() != gguf.ArrayType || counts.ElemType() != gguf.Uint64Type || counts.Len() != n {
		return bad(keyCounts, "is %v of %d, want an array of %d u64", counts.Type(), counts.Len(), n)
	}
	if collected.Type() != gguf.ArrayType || collected.ElemType() != gguf.BoolType ||
		collected.Len() != len(m.entries) {
		return bad(keyCollected, "is %v of %d, want an array of %d bool", collected.Type(), collected.Len(),
			len(m.entries))
	}
	i := 0
	var flags []bool
	for v := range collected.Elems() {
		b, _ := v.Bool()
		flags = append(flags, b)
	}
	var exact []int64
	for v := range counts.Elems() {
		c, ok := v.Int()
		if !ok || c < 0 || c > maxCount {
			return bad(keyCounts, "element %d is %v, want at most %d", len(exact), v, int64(maxCount))
		}
		exact = append(exact, c)
	}
	for k := range m.entries {
		e := &m.entries[k]
		t := &Tally{Name: e.Name, Columns: e.Len() / e.Matrices(), Squares: make([]float32, e.Len()),
			Counts: exact[i : i+len(e.Counts) : i+len(e.Counts)], collected: flags[k]}
		i += len(e.Counts)
		e.sums(t.Squares, 0)
		if t.Plain, err = m.plain(e); err != nil {
			return nil, nil, err
		}
		if text := t.impossible(); text != "" {
			return nil, nil, fault.Errorf(ErrBroken, "%s: tensor %s: %s", path, quote(t.Name), text)
		}
		s.tallies[e.Name] = t
	}
	return s, f.Metadata, nil
}

// impossible returns a message about the first sum that no activations can have, "" if there is none.
func (t *Tally) impossible() string {
	for i, v := range t.Squares {
		if v-v != 0 || v < 0 {
			return fmt.Sprintf("the squares of column %d add up to %v, want a finite sum of at least 0", i, v)
		}
	}
	for i, v := range t.Plain {
		if v-v != 0 {
			return fmt.Sprintf("the inputs of column %d add up to %v, want a finite sum", i, v)
		}
	}
	return ""
}
