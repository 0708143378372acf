package imatrix

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// Sums is an importance matrix that is being computed: a calibration adds activations, files are merged into it, and
// Layout returns the file of the result.
type Sums struct {
	Datasets []string // those of merged files, then that of the calibration
	// NextN is the number of MTP (NextN) layers: of a calibration that has run them, else that in the first merged file
	// that has it; 0 for none.
	NextN int

	run     int // tokens of a chunk
	merged  int // tokens of a chunk in the first merged file that has it; 0 for none
	least   int // chunks of the merged files
	tallies map[string]*Tally
}

// Tally has the sums of a tensor's input activations.
type Tally struct {
	Name    string
	Columns int
	// Squares has the sums of squares of each column, those of matrix k at k*Columns.
	Squares []float32
	// Plain has the sums, in the same places. It is nil if a merged file did not have them.
	Plain []float32
	// Counts has the number of rows of activations of each matrix: one number if all matrices read the same rows.
	Counts []int64

	collected bool // by a calibration, not only merged
}

// maxCount is the largest count: integers up to it are exact in float64.
const maxCount = 1 << 53

// NewSums returns an empty matrix for chunks of that many tokens, at least 1.
func NewSums(chunk int) *Sums { return &Sums{run: chunk, tallies: map[string]*Tally{}} }

// SetChunk sets the number of tokens of a chunk of the calibration, at least 1.
func (s *Sums) SetChunk(n int) { s.run = n }

// Len returns the number of tensors.
func (s *Sums) Len() int { return len(s.tallies) }

// Tallies returns the sums of all tensors in the order of names, which is that of files.
func (s *Sums) Tallies() []*Tally {
	list := make([]*Tally, 0, len(s.tallies))
	for _, name := range slices.Sorted(maps.Keys(s.tallies)) {
		list = append(list, s.tallies[name])
	}
	return list
}

// ChunkSize returns the number of tokens of a chunk: that of the first merged GGUF file, whatever the calibration uses.
// So does the reference.
func (s *Sums) ChunkSize() int {
	if s.merged > 0 {
		return s.merged
	}
	return s.run
}

// Chunks returns the number of chunks: the largest count divided by the tokens of a chunk, rounded to nearest, of
// merged files or of the calibration, whichever is more.
func (s *Sums) Chunks() int {
	return max(s.least, chunksOf(s.most(func(t *Tally) bool { return t.collected }), s.run))
}

// chunksOf returns the number of chunks of so many rows, rounded to nearest.
func chunksOf(rows int64, chunk int) int { return int((rows + int64(chunk/2)) / int64(chunk)) }

// most returns the largest count of the tensors for which f is true.
func (s *Sums) most(f func(t *Tally) bool) int64 {
	var most int64
	for _, t := range s.tallies {
		if f(t) {
			most = max(most, slices.Max(t.Counts))
		}
	}
	return most
}

// Tally returns the sums of a tensor with so many matrices of that many columns. With routed the matrices are experts,
// so that each has a count of its own. A merged file with other sizes is an error of kind fault.Refused.
func (s *Sums) Tally(name string, columns, matrices int, routed bool) (*Tally, error) {
	n := 1
	if routed {
		n = matrices
	}
	t := s.tallies[name]
	if t == nil {
		t = &Tally{Name: name, Columns: columns, Squares: make([]float32, columns*matrices),
			Plain: make([]float32, columns*matrices), Counts: make([]int64, n)}
		s.tallies[name] = t
		return t, nil
	}
	if len(t.Squares) != columns*matrices {
		return nil, fault.Errorf(ErrRefused, "tensor %s: has %d columns in the merged files, want the %d of the model",
			quote(name), len(t.Squares), columns*matrices)
	}
	t.Columns = columns
	switch {
	case len(t.Counts) == n:
	case len(t.Counts) == 1: // an older file
		t.Counts = slices.Repeat(t.Counts, n)
	case n == 1:
		if c := t.Counts[0]; !slices.ContainsFunc(t.Counts, func(d int64) bool { return c != d }) {
			t.Counts = t.Counts[:1]
		}
	default:
		return nil, fault.Errorf(ErrRefused,
			"tensor %s: has counts for %d matrices in the merged files, want the %d of the model", quote(name),
			len(t.Counts), n)
	}
	return t, nil
}

// Count adds rows to the count of a matrix. Without routed only the rows of the first matrix count: the others read the
// same rows.
func (t *Tally) Count(matrix, rows int, routed bool) {
	t.collected = true
	switch {
	case routed:
		t.Counts[matrix] += int64(rows)
	case matrix == 0:
		for i := range t.Counts {
			t.Counts[i] += int64(rows)
		}
	}
}

// Add adds columns [a, b) of rows of x to those of a matrix, row after row, in float32;
// different columns may be added at the same time. It returns an error of kind
// fault.Broken for a sum that is not finite.
func (t *Tally) Add(matrix int, x []float32, rows, a, b int) error {
	squares := t.Squares[matrix*t.Columns:][a:b]
	var plain []float32
	if t.Plain != nil {
		plain = t.Plain[matrix*t.Columns:][a:b]
	}
	for r := range rows {
		row := x[r*t.Columns:][a:b]
		vecmath.AddSquares(squares, row)
		if plain != nil {
			vecmath.Add(plain, row)
		}
	}
	for i, v := range squares {
		if !(v <= math.MaxFloat32) {
			return fault.Errorf(ErrBroken, "tensor %s: the squares of the inputs of column %d add up to %v",
				quote(t.Name), a+i, v)
		}
	}
	return nil
}

// Join adds the sums of a calibration over other chunks of the same size to those of s, element by element, in float32.
// There are no plain sums if a merged file has none. Sizes that differ are an error of kind fault.Refused, a sum that
// is not finite is one of kind fault.Broken.
func (s *Sums) Join(o *Sums) error {
	if o.NextN > 0 {
		s.NextN = o.NextN
	}
	for _, more := range o.Tallies() {
		matrices := len(more.Squares) / max(1, more.Columns)
		t, err := s.Tally(more.Name, more.Columns, matrices, len(more.Counts) > 1)
		if err != nil {
			return err
		}
		if len(more.Counts) > 1 && len(more.Counts) != len(t.Counts) {
			return fault.Errorf(ErrRefused, "tensor %s: counts for %d matrices, those before are for %d", quote(t.Name),
				len(more.Counts), len(t.Counts))
		}
		t.collected = t.collected || more.collected
		for i := range t.Counts {
			t.Counts[i] += more.Counts[min(i, len(more.Counts)-1)]
			if t.Counts[i] > maxCount {
				return fault.Errorf(ErrRefused, "tensor %s: a count of %d, want at most %d", quote(t.Name), t.Counts[i],
					int64(maxCount))
			}
		}
		vecmath.Add(t.Squares, more.Squares)
		for i, v := range t.Squares {
			if !(v <= math.MaxFloat32) {
				return fault.Errorf(ErrBroken, "tensor %s: the squares of the inputs of column %d add up to %v",
					quote(t.Name), i, v)
			}
		}
		if t.Plain != nil && more.Plain != nil {
			vecmath.Add(t.Plain, more.Plain)
		} else {
			t.Plain = nil
		}
	}
	return nil
}

// Merge adds the sums of a file, as llama-imatrix does for --in-file: sums of the same tensor are added, in float32. A
// file of the legacy format has means for some number of chunks; they are taken for chunks of ChunkSize tokens. The
// warnings name settings in which the files differ. Sizes that differ are an error of kind fault.Refused.
func (s *Sums) Merge(m *Matrix) (warnings []string, err error) {
	switch {
	case m.NextN <= 0:
	case s.NextN == 0:
		s.NextN = m.NextN
	case s.NextN != m.NextN:
		warnings = append(warnings,
			fmt.Sprintf("%s: has %d MTP (NextN) layers, files before it %d: that number stays", m.Path,
				m.NextN, s.NextN))
	}
	switch {
	case m.Legacy || m.ChunkSize <= 0:
	case s.merged == 0:
		s.merged = m.ChunkSize
	case s.merged != m.ChunkSize:
		warnings = append(warnings,
			fmt.Sprintf("%s: has chunks of %d tokens, files before it of %d: that number stays", m.Path,
				m.ChunkSize, s.merged))
	}
	for i := range m.Entries() {
		if err := s.add(m, &m.Entries()[i]); err != nil {
			return warnings, err
		}
	}
	s.Datasets = append(s.Datasets, m.Datasets...)
	rows := s.most(func(*Tally) bool { return true })
	// A written file has counts as float32 numbers, and can be merged again.
	if chunks := chunksOf(int64(float32(rows)), s.ChunkSize()); chunks > math.MaxInt32 {
		return warnings, fault.Errorf(ErrRefused, "%s: makes %d chunks, want at most %d", m.Path, chunks, math.MaxInt32)
	}
	s.least = chunksOf(rows, s.ChunkSize())
	return warnings, nil
}

// add merges an entry.
func (s *Sums) add(m *Matrix, e *Entry) error {
	refuse := func(format string, args ...any) error {
		return fault.Errorf(ErrRefused, "%s: entry %s: "+format, append([]any{m.Path, quote(e.Name)}, args...)...)
	}
	counts, by := e.Counts, float32(1)
	if m.Legacy {
		if e.Calls < 1 {
			return refuse("is of %d chunks, want at least 1 to merge it", e.Calls)
		}
		by = float32(s.ChunkSize())
		counts = []int64{int64(e.Calls) * int64(s.ChunkSize())}
	}
	t := s.tallies[e.Name]
	first := t == nil
	if first {
		t = &Tally{Name: e.Name, Columns: e.Len() / len(counts), Squares: make([]float32, e.Len()),
			Counts: make([]int64, len(counts))}
	}
	switch {
	case len(t.Squares) != e.Len():
		return refuse("has %d values, files before it have %d", e.Len(), len(t.Squares))
	case len(t.Counts) == len(counts):
	case len(t.Counts) == 1:
		t.Counts = slices.Repeat(t.Counts, len(counts))
	case m.Legacy:
		counts = slices.Repeat(counts, len(t.Counts))
	default:
		return refuse("has %d counts, files before it have %d", len(counts), len(t.Counts))
	}
	for j, c := range counts {
		if t.Counts[j] += c; t.Counts[j] < 0 || t.Counts[j] > maxCount {
			return refuse("makes a count of %d, want at most %d", uint64(t.Counts[j]), int64(maxCount))
		}
	}
	sums, err := m.Sums(e)
	if err != nil {
		return err
	}
	for j, v := range sums {
		t.Squares[j] += float32(v * by)
	}
	plain, err := m.plain(e)
	switch {
	case err != nil:
		return err
	case plain == nil || !first && t.Plain == nil:
		t.Plain = nil
	case first:
		t.Plain = plain
	default:
		vecmath.Add(t.Plain, plain)
	}
	if text := t.impossible(); text != "" { // no later run could resume from it
		return refuse("%s", text)
	}
	s.tallies[e.Name] = t
	return nil
}

// Matrix returns the matrix that a reader of the written GGUF file would get, without the file; path is for messages
// and metadata. It shares the sums, to which nothing must be added any more.
func (s *Sums) Matrix(path string) *Matrix {
	m := &Matrix{Path: path, Datasets: s.Datasets, Chunks: s.Chunks(), ChunkSize: s.ChunkSize(), NextN: s.NextN}
	for _, t := range s.Tallies() {
		e := Entry{Name: t.Name, squares: t.Squares, plains: t.Plain}
		for _, c := range t.Counts {
			e.Counts = append(e.Counts, int64(float32(c)))
		}
		m.entries = append(m.entries, e)
	}
	m.buildIndex()
	return m
}
