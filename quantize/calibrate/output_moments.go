package calibrate

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"slices"

	"ggforge/eval"
	"ggforge/internal/io/disk"
	"ggforge/internal/kernel/vecmath"
)

// outputMoments has the sums of g gᵀ over tokens, g the gradient at a matrix's outputs, for the matrices of layers. The
// sums of the layer or expert that the backward pass is in are in memory, all others in an unnamed temporary file.
type outputMoments struct {
	workers int
	most    int                    // rows of a range, see Options.MaxRows
	wanted  func(name string) bool // nil for all
	file    *disk.File
	size    int64
	stored  map[key]*storedOutput
	open    []*openOutput
	layer   string
	expert  int // -1 for none
}

// storedOutput is where the lower triangles of a matrix's sums are, one for each range of rows.
type storedOutput struct {
	at      int64
	n, rows int // of the matrix, of gradients
}

// openOutput has the sums of gradients that are not in the file yet.
type openOutput struct {
	key
	n     int
	parts []*MomentSums
}

// newOutputMoments returns empty sums, with their file in folder opt.Dir.
func newOutputMoments(opt *Options, wanted func(name string) bool) (*outputMoments, error) {
	file, err := disk.CreateTemp(opt.Dir, ".ggforge-*.partial")
	if err != nil {
		return nil, err
	}
	disk.Remove(file.Name()) // where a file may be open without a name; else close does
	return &outputMoments{workers: max(1, opt.Run.Workers), most: opt.MaxRows, wanted: wanted, file: file,
		stored: map[key]*storedOutput{}, expert: -1}, nil
}

func (o *outputMoments) close() error {
	if o == nil {
		return nil
	}
	err := o.file.Close()
	if e := disk.Remove(o.file.Name()); e != nil && !os.IsNotExist(e) && err == nil {
		err = e
	}
	return err
}

// add adds the gradients of a matrix of a layer; others are ignored.
func (o *outputMoments) add(ctx context.Context, in eval.LinearGradient) error {
	layer, expert := layerOf(in.Name), -1
	if layer == "" || in.Rows == 0 || o.wanted != nil && !o.wanted(in.Name) {
		return nil
	}
	if in.Routed {
		expert = in.Matrix
	}
	if layer != o.layer || expert != o.expert {
		if err := o.flush(ctx); err != nil {
			return err
		}
		o.layer, o.expert = layer, expert
	}
	k, n := key{in.Name, in.Matrix}, len(in.G)/in.Rows
	i := slices.IndexFunc(o.open, func(x *openOutput) bool { return x.key == k })
	if i < 0 {
		i, o.open = len(o.open), append(o.open, &openOutput{k, n, ranges(n, o.most, o.workers)})
	}
	for r, p := range o.open[i].parts {
		if err := p.AddColumns(ctx, in.G, n, r*o.most); err != nil {
			return err
		}
	}
	return nil
}

// flush adds the sums in memory to those in the file.
func (o *outputMoments) flush(ctx context.Context) error {
	for _, x := range o.open {
		s := o.stored[x.key]
		old := s != nil
		if !old {
			s = &storedOutput{at: o.size, n: x.n}
			o.stored[x.key] = s
			for _, p := range x.parts {
				o.size += 4 * triangle(p.n)
			}
		}
		s.rows += x.parts[0].rows
		at := s.at
		for _, p := range x.parts {
			if p.pendingRows > 0 {
				if err := p.flush(ctx); err != nil {
					return err
				}
			}
			if old {
				add := func(r int, row []float32) { vecmath.Add(p.h[r*p.n:][:r+1], row) }
				if err := o.read(p.n, at, add); err != nil {
					return err
				}
			}
			if err := o.write(p.h, p.n, at); err != nil {
				return err
			}
			at += 4 * triangle(p.n)
		}
	}
	o.open = nil
	return nil
}

// write stores the lower triangle of h, [n, n].
func (o *outputMoments) write(h []float32, n int, at int64) error {
	w := bufio.NewWriterSize(io.NewOffsetWriter(o.file, at), 1<<20)
	var buf []byte
	for r := range n {
		buf = buf[:0]
		for _, v := range h[r*n:][:r+1] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return w.Flush()
}

// read calls f with the rows of a lower triangle of n.
func (o *outputMoments) read(n int, at int64, f func(r int, row []float32)) error {
	in := bufio.NewReaderSize(io.NewSectionReader(o.file, at, 4*triangle(n)), 1<<20)
	buf, row := make([]byte, 4*n), make([]float32, n)
	for r := range n {
		if _, err := io.ReadFull(in, buf[:4*(r+1)]); err != nil {
			return end(err)
		}
		for c := range row[:r+1] {
			row[c] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*c:]))
		}
		f(r, row[:r+1])
	}
	return nil
}

// of returns the place of the sums for a matrix with that many rows, nil if it has none.
func (o *outputMoments) of(k key, rows int64) *storedOutput {
	if o == nil {
		return nil
	}
	if s := o.stored[k]; s != nil && int64(s.n) == rows {
		return s
	}
	return nil // or it is used transposed
}

// outputDamping is Options.Damping for moments of outputs: with fewer gradients than ten for each row, the number of
// rows by that of gradients, as a mean of so few is mostly chance.
const outputDamping = 0.1

// moments returns the damped moments of a range of rows.
func (o *outputMoments) moments(ctx context.Context, s *storedOutput, part int) (*Moments, error) {
	at := s.at
	for range part {
		at += 4 * triangle(o.most)
	}
	sums := &MomentSums{n: min(o.most, s.n-part*o.most), scratches: make([]scratch, o.workers)}
	sums.h = make([]float32, sums.n*sums.n)
	if err := o.read(sums.n, at, func(r int, row []float32) { copy(sums.h[r*sums.n:], row) }); err != nil {
		return nil, err
	}
	m, err := sums.mean(ctx, s.rows)
	if err == nil {
		m.damp(max(outputDamping, float64(sums.n)/float64(s.rows)))
	}
	return m, err
}
