package rows

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"ggforge/gguf"
	"ggforge/quants"
)

// The sources of this file are views: they show the elements of others in
// another order or shape, and hold none themselves. Shapes are NE, innermost
// dimension first; rows are counted over all outer dimensions.

// Gather returns a tensor of dimensions ne whose row i is row from(i) of s. The
// row length stays.
func Gather(s Source, ne []int64, from func(i int64) int64) (Source, error) {
	if len(ne) == 0 || ne[0] != s.NE()[0] {
		return nil, fmt.Errorf("dimensions %s of rows from %s", gguf.Shape(ne), gguf.Shape(s.NE()))
	}
	if f, ok := s.(*Factors); ok {
		return f.gather(ne, from)
	}
	return &gathered{s, ne, from}, nil
}

type gathered struct {
	Source
	ne   []int64
	from func(int64) int64
}

func (g *gathered) NE() []int64 { return g.ne }

func (g *gathered) Cost() int64 { return g.Source.Cost() + costGather }

func (g *gathered) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n := g.Type().RowBytes(g.ne[0])
	out := grow(buf, int((b-a)*n))
	var row []byte
	for i := a; i < b; {
		// rows that are together are read together
		first := g.from(i)
		run := int64(1)
		for i+run < b && g.from(i+run) == first+run {
			run++
		}
		raw, err := g.Source.Raw(&row, first, first+run)
		if err != nil {
			return nil, err
		}
		copy(out[(i-a)*n:], raw)
		i += run
	}
	return out, nil
}

// elements returns s, of a plain type, as one column of its elements: every
// element is a row. What regroups rows works on biases that way.
func elements(s Source) (Source, error) {
	return Reshape(s, []int64{1, gguf.Rows(s.NE()) * s.NE()[0]})
}

// Regroup returns s with its rows in another order: row i is row from(i) of s. The
// rows of a tensor of one dimension, a bias, are its elements; its type must be
// plain then.
func Regroup(s Source, from func(i int64) int64) (Source, error) {
	ne := s.NE()
	if len(ne) > 1 {
		return Gather(s, ne, from)
	}
	column, err := elements(s)
	if err != nil {
		return nil, err
	}
	if column, err = Gather(column, column.NE(), from); err != nil {
		return nil, err
	}
	return Reshape(column, ne)
}

// Slice returns the part [a, b) of dimension dim of s, 0 for the innermost.
func Slice(s Source, dim int, a, b int64) (Source, error) {
	ne := slices.Clone(s.NE())
	if dim >= len(ne) || a < 0 || b > ne[dim] || a >= b {
		return nil, fmt.Errorf("dimensions %s have no part [%d, %d) of dimension %d", gguf.Shape(ne), a, b, dim)
	}
	if dim == 0 && len(ne) == 1 {
		column, err := elements(s)
		if err != nil {
			return nil, err
		}
		if column, err = Gather(column, []int64{1, b - a}, func(i int64) int64 { return a + i }); err != nil {
			return nil, err
		}
		return Reshape(column, []int64{b - a})
	}
	if f, ok := s.(*Factors); ok && dim == 0 {
		return f.columns(a, b)
	}
	if dim == 0 {
		if ne[0]%s.Type().BlockLen() != 0 || a%s.Type().BlockLen() != 0 || b%s.Type().BlockLen() != 0 {
			return nil, fmt.Errorf("columns [%d, %d) of rows in %v are not whole blocks", a, b, s.Type())
		}
		ne[0] = b - a
		return &columns{s, ne, s.Type().RowBytes(s.NE()[0]), s.Type().RowBytes(a), s.Type().RowBytes(b)}, nil
	}
	inner := int64(1) // rows per step of dim
	for _, n := range ne[1:dim] {
		inner *= n
	}
	outer := inner * ne[dim]
	ne[dim] = b - a
	return Gather(s, ne, func(i int64) int64 { return i/(inner*(b-a))*outer + a*inner + i%(inner*(b-a)) })
}

// columns is a range of columns of every row.
type columns struct {
	Source
	ne            []int64
	row, from, to int64 // in bytes
}

func (c *columns) NE() []int64 { return c.ne }

// Cost counts the columns that are read and left out, too.
func (c *columns) Cost() int64 { return c.Source.Cost()*c.row/(c.to-c.from) + costGather }

func (c *columns) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	var all []byte
	raw, err := c.Source.Raw(&all, a, b)
	if err != nil {
		return nil, err
	}
	n := c.to - c.from
	out := grow(buf, int((b-a)*n))
	for i := range b - a {
		copy(out[i*n:(i+1)*n], raw[i*c.row+c.from:])
	}
	return out, nil
}

// UngroupQKV returns the rows of a joined projection in another order. s lies in
// groups, each of perGroup query heads, a key head and a value head of equal
// sizes; the result has all queries, then all keys, then all values. s is a
// matrix, or a bias whose elements are the rows.
func UngroupQKV(s Source, groups, perGroup int64) (Source, error) {
	ne := s.NE()
	n := ne[len(ne)-1]
	if len(ne) > 2 || groups <= 0 || perGroup <= 0 || perGroup > n || n/groups < perGroup+2 || n%groups != 0 ||
		n/groups%(perGroup+2) != 0 {
		return nil, fmt.Errorf("dimensions %s, want rows for %d groups of %d+2 heads", gguf.Shape(ne), groups, perGroup)
	}
	group := n / groups
	head := group / (perGroup + 2)
	q, k := groups*perGroup*head, groups*head // rows of all queries, of all keys
	return Regroup(s, func(i int64) int64 {
		switch {
		case i < q:
			return i/(perGroup*head)*group + i%(perGroup*head)
		case i < q+k:
			i -= q
			return i/head*group + perGroup*head + i%head
		default:
			i -= q + k
			return i/head*group + (perGroup+1)*head + i%head
		}
	})
}

// Reshape returns s with other dimensions of the same number of elements, in the
// same order. Rows of a blocked type must stay whole blocks.
func Reshape(s Source, ne []int64) (Source, error) {
	old := s.NE()
	if slices.Contains(ne, 0) || len(ne) == 0 || gguf.Rows(ne)*ne[0] != gguf.Rows(old)*old[0] {
		return nil, fmt.Errorf("dimensions %s cannot become %s", gguf.Shape(old), gguf.Shape(ne))
	}
	if f, ok := s.(*Factors); ok {
		return f.reshape(ne)
	}
	if ne[0]%s.Type().BlockLen() != 0 {
		return nil, fmt.Errorf("rows of %d are not whole blocks of %v", ne[0], s.Type())
	}
	if slices.Equal(ne, old) {
		return s, nil
	}
	return &reshaped{s, ne}, nil
}

type reshaped struct {
	Source
	ne []int64
}

func (r *reshaped) NE() []int64 { return r.ne }

func (r *reshaped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n, old := r.ne[0], r.Source.NE()[0]
	first, end := a*n, b*n // elements
	raw, err := r.Source.Raw(buf, first/old, (end+old-1)/old)
	if err != nil {
		return nil, err
	}
	skip := r.Type().RowBytes(first % old)
	return raw[skip : skip+r.Type().RowBytes(end-first)], nil
}

// Transpose returns s with its two innermost dimensions exchanged. The type must
// be plain.
func Transpose(s Source) (Source, error) {
	ne := slices.Clone(s.NE())
	if len(ne) < 2 || s.Type().BlockLen() != 1 {
		return nil, fmt.Errorf("dimensions %s in %v cannot be transposed", gguf.Shape(ne), s.Type())
	}
	if f, ok := s.(*Factors); ok {
		return f.transpose()
	}
	ne[0], ne[1] = ne[1], ne[0]
	return &transposed{s, ne}, nil
}

type transposed struct {
	Source
	ne []int64
}

func (t *transposed) NE() []int64 { return t.ne }

// tileSide is how many rows and columns are transposed at a time: few enough that
// a tile stays in the cache nearest to the CPU.
const tileSide = 64

func (t *transposed) Cost() int64 { return t.Source.Cost() + costTranspose }

func (t *transposed) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	size := t.Type().BlockBytes()
	rowLen, height := t.ne[0], t.ne[1] // of the result: the source's are the other way round
	out := grow(buf, int((b-a)*rowLen*size))
	var row []byte
	tile := make([]byte, tileSide*tileSide*size)
	for c := a; c < b; {
		matrix := c / height
		end := min(b, c+tileSide, (matrix+1)*height) // columns [c, end) of one matrix of the source
		width := (end - c) * size
		for r := int64(0); r < rowLen; r += tileSide {
			n := min(tileSide, rowLen-r)
			for i := range n {
				from := (c - matrix*height) * size
				raw, err := part(t.Source, &row, matrix*rowLen+r+i, from, from+width)
				if err != nil {
					return nil, err
				}
				copy(tile[i*width:], raw)
			}
			for i := c; i < end; i++ {
				pick(out[((i-a)*rowLen+r)*size:], tile[(i-c)*size:], n, width, size)
			}
		}
		c = end
	}
	return out, nil
}

// pick copies n elements of a size, step bytes apart in src, to dst.
func pick(dst, src []byte, n, step, size int64) {
	switch size {
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:], binary.LittleEndian.Uint16(src[i*step:]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(src[i*step:]))
		}
	default:
		for i := range n {
			copy(dst[i*size:(i+1)*size], src[i*step:])
		}
	}
}

// Concat returns the parts one after the other along the outermost dimension.
// All must agree in the other dimensions; parts of different types become F32, as
// in a sum of tensors.
func Concat(parts []Source) (Source, error) {
	if s, ok, err := concatFactors(parts); ok || err != nil {
		return s, err
	}
	ne := slices.Clone(parts[0].NE())
	last := len(ne) - 1
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		if len(p.NE()) != len(ne) || !slices.Equal(p.NE()[:last], ne[:last]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(p.NE()))
		}
		ne[last] += p.NE()[last]
	}
	if last > 0 {
		return newJoined(parts, ne), nil
	}
	var columns []Source
	for _, p := range parts {
		c, err := elements(p)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return Reshape(newJoined(columns, []int64{1, ne[0]}), ne)
}

// ConcatRows joins the matrices of the parts one below the other: along the second
// dimension, slice by slice if there are more.
func ConcatRows(parts []Source) (Source, error) {
	ne := slices.Clone(parts[0].NE())
	if len(ne) < 2 {
		return nil, fmt.Errorf("dimensions %s, want at least two", gguf.Shape(ne))
	}
	if len(ne) == 2 {
		return Concat(parts)
	}
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	slicesOf := gguf.Rows(ne) / ne[1]
	var all []Source
	height := int64(0)
	for _, p := range parts {
		if n := p.NE(); len(n) != len(ne) || n[0] != ne[0] || !slices.Equal(n[2:], ne[2:]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(n))
		}
		height += p.NE()[1]
	}
	for i := range slicesOf {
		for _, p := range parts {
			h := p.NE()[1]
			part, err := Gather(p, []int64{ne[0], h}, func(r int64) int64 { return i*h + r })
			if err != nil {
				return nil, err
			}
			all = append(all, part)
		}
	}
	ne[1] = height
	return newJoined(all, ne), nil
}

// ConcatColumns joins the rows of the parts, which agree in all dimensions but the
// innermost. The types must be plain; parts of different types become F32.
func ConcatColumns(parts []Source) (Source, error) {
	ne := slices.Clone(parts[0].NE())
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	if parts[0].Type().BlockLen() > 1 {
		return nil, fmt.Errorf("columns of %v do not join", parts[0].Type())
	}
	for _, p := range parts[1:] {
		if len(p.NE()) != len(ne) || !slices.Equal(p.NE()[1:], ne[1:]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(p.NE()))
		}
		ne[0] += p.NE()[0]
	}
	return &widened{&joined{parts: parts, ne: ne}}, nil
}

// widened is parts next to each other.
type widened struct{ *joined }

func (w *widened) Cost() int64 { return w.joined.Cost() + costGather }

func (w *widened) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	t := w.Type()
	row := t.RowBytes(w.ne[0])
	out := grow(buf, int((b-a)*row))
	at := int64(0)
	for _, p := range w.parts {
		raw, err := p.Raw(&scratch.raw, a, b)
		if err != nil {
			return nil, err
		}
		n := t.RowBytes(p.NE()[0])
		for i := range b - a {
			copy(out[i*row+at:], raw[i*n:(i+1)*n])
		}
		at += n
	}
	return out, nil
}

// PadRows returns a matrix with rows of zeros after its own, n in all; s itself if it
// has as many.
func PadRows(s Source, n int64) (Source, error) {
	ne := s.NE()
	if len(ne) != 2 {
		return nil, fmt.Errorf("dimensions %s, want a matrix", gguf.Shape(ne))
	}
	if ne[1] >= n {
		return s, nil
	}
	return Concat([]Source{s, &zeros{[]int64{ne[0], n - ne[1]}, s.Type()}})
}

// Scatter returns a matrix of n rows: row i is row from[i] of s, one of zeros where from
// has none.
func Scatter(s Source, n int64, from map[int64]int64) (Source, error) {
	ne := s.NE()
	if len(ne) != 2 || n < 1 {
		return nil, fmt.Errorf("dimensions %s among %d rows, want a matrix", gguf.Shape(ne), n)
	}
	for to, i := range from {
		if to < 0 || to >= n || i < 0 || i >= ne[1] {
			return nil, fmt.Errorf("row %d of %d becomes row %d of %d", i, ne[1], to, n)
		}
	}
	padded, err := PadRows(s, ne[1]+1)
	if err != nil {
		return nil, err
	}
	return Gather(padded, []int64{ne[0], n}, func(i int64) int64 {
		if at, ok := from[i]; ok {
			return at
		}
		return ne[1]
	})
}

// zeros are rows whose bytes are 0.
type zeros struct {
	ne  []int64
	typ gguf.Type
}

func (z *zeros) NE() []int64     { return z.ne }
func (z *zeros) Type() gguf.Type { return z.typ }
func (z *zeros) Cost() int64     { return costGather }

func (z *zeros) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	raw := grow(buf, int((b-a)*z.typ.RowBytes(z.ne[0])))
	clear(raw)
	return raw, nil
}

// Stack returns the parts, which agree in all dimensions, along a new outermost
// dimension.
func Stack(parts []Source) (Source, error) {
	if s, ok, err := stackFactors(parts); ok {
		return s, err
	}
	ne := parts[0].NE()
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if !slices.Equal(p.NE(), ne) {
			return nil, fmt.Errorf("dimensions %s and, number %d, %s do not stack", gguf.Shape(ne), i,
				gguf.Shape(p.NE()))
		}
	}
	return newJoined(parts, append(slices.Clone(ne), int64(len(parts)))), nil
}

// common gives all parts one type.
func common(parts []Source) ([]Source, error) {
	t := parts[0].Type()
	if !slices.ContainsFunc(parts, func(p Source) bool { return p.Type() != t }) {
		return parts, nil
	}
	var out []Source
	for _, p := range parts {
		if !quants.Lookup(p.Type()).CanDequantize() {
			return nil, fmt.Errorf("%v and %v do not join", t, p.Type())
		}
		out = append(out, Convert(p, gguf.TypeF32))
	}
	return out, nil
}

type joined struct {
	parts []Source
	first []int64 // row at which each part begins
	ne    []int64
}

func newJoined(parts []Source, ne []int64) Source {
	j := &joined{parts: parts, ne: ne}
	n := int64(0)
	for _, p := range parts {
		j.first = append(j.first, n)
		n += gguf.Rows(p.NE())
	}
	return j
}

func (j *joined) NE() []int64     { return j.ne }
func (j *joined) Type() gguf.Type { return j.parts[0].Type() }

// Cost is the mean of the parts.
func (j *joined) Cost() int64 {
	sum, n := int64(0), int64(0)
	for _, p := range j.parts {
		elements := gguf.Rows(p.NE()) * gguf.RowLen(p.NE())
		sum += elements * p.Cost()
		n += elements
	}
	return sum / max(n, 1)
}

func (j *joined) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	i, found := slices.BinarySearch(j.first, a)
	if !found {
		i--
	}
	if b <= j.first[i]+gguf.Rows(j.parts[i].NE()) {
		return j.parts[i].Raw(buf, a-j.first[i], b-j.first[i])
	}
	n := j.Type().RowBytes(j.ne[0])
	out := grow(buf, int((b-a)*n))
	var some []byte
	for row := a; row < b; i++ {
		end := min(b, j.first[i]+gguf.Rows(j.parts[i].NE()))
		raw, err := j.parts[i].Raw(&some, row-j.first[i], end-j.first[i])
		if err != nil {
			return nil, err
		}
		copy(out[(row-a)*n:], raw)
		row = end
	}
	return out, nil
}

// Map returns s with f applied to its elements, a few rows at a time: f changes
// them in place. The result is F16 if s is, each element rounded to it, and F32
// otherwise: that is how the reference, which computes in PyTorch after widening
// what is neither, gets them.
func Map(s Source, f func([]float32)) Source {
	return &mapped{s, mappedType(s), func(x []float32, _ int64) { f(x) }}
}

// mappedType is the type of what is computed from s.
func mappedType(s Source) gguf.Type {
	if s.Type() == gguf.TypeF16 {
		return gguf.TypeF16
	}
	return gguf.TypeF32
}

type mapped struct {
	Source
	typ gguf.Type
	f   func(x []float32, first int64) // x begins with element first of all
}

func (m *mapped) Type() gguf.Type { return m.typ }

func (m *mapped) Cost() int64 { return m.Source.Cost() + costDecode + quants.Lookup(m.typ).Cost(false) }

func (m *mapped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	rowLen := gguf.RowLen(m.NE())
	n := int((b - a) * rowLen)
	scratch.f32 = slices.Grow(scratch.f32[:0], n)[:n]
	if err := Decode(m.Source, scratch.f32, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	m.f(scratch.f32, a*rowLen)
	out := grow(buf, int(m.typ.RowBytes(int64(n))))
	return out, quants.Lookup(m.typ).Quantize(out, scratch.f32, int(rowLen), nil)
}

// Compute returns a tensor of float32 that is nowhere: fill computes the rows from the
// given one on. It is called by many goroutines at once.
func Compute(ne []int64, fill func(dst []float32, row int64)) Source { return &computed{ne, fill} }

type computed struct {
	ne   []int64
	fill func([]float32, int64)
}

func (c *computed) NE() []int64     { return c.ne }
func (c *computed) Type() gguf.Type { return gguf.TypeF32 }
func (c *computed) Cost() int64     { return costCompute }

func (c *computed) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	n := int((b - a) * gguf.RowLen(c.ne))
	scratch.f32 = slices.Grow(scratch.f32[:0], n)[:n]
	c.fill(scratch.f32, a)
	out := grow(buf, 4*n)
	return out, quants.Lookup(gguf.TypeF32).Quantize(out, scratch.f32, int(gguf.RowLen(c.ne)), nil)
}

// Add returns a function for Map that adds c.
func Add(c float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] += c
		}
	}
}

// Scale returns a function for Map that multiplies by c.
func Scale(c float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] *= c
		}
	}
}

// Prepared returns a source of the given dimensions and type that is made when it
// is first read, by one of those who read it; the others wait. Its cost is taken to
// be that of computing an element twice: once to prepare, once to read.
func Prepared(ne []int64, t gguf.Type, prepare func() (Source, error)) Source {
	return &prepared{ne, t, sync.OnceValues(prepare)}
}

type prepared struct {
	ne  []int64
	typ gguf.Type
	get func() (Source, error)
}

func (p *prepared) NE() []int64     { return p.ne }
func (p *prepared) Type() gguf.Type { return p.typ }

func (p *prepared) Cost() int64 { return 2 * (costDecode + quants.Lookup(p.typ).Cost(false)) }

func (p *prepared) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	s, err := p.get()
	if err != nil {
		return nil, err
	}
	return s.Raw(buf, a, b)
}

// Each calls f with all elements of s in order, a few rows at a time; f may not
// keep them.
func Each(s Source, f func([]float32)) error {
	var buf []byte
	n := gguf.Rows(s.NE())
	step := max(1, equalStep/s.NE()[0])
	values := make([]float32, min(n, step)*s.NE()[0])
	for i := int64(0); i < n; i += step {
		part := values[:(min(n, i+step)-i)*s.NE()[0]]
		if err := Decode(s, part, &buf, i, min(n, i+step)); err != nil {
			return err
		}
		f(part)
	}
	return nil
}
