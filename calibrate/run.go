package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/parallel"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/quants/parts"
	"ggforge/rows"
)

// Target is a tensor and a type that it is to have.
type Target struct {
	Tensor int // of the model
	Type   gguf.Type
}

// Possible reports whether the blocks of a type can be chosen here.
func Possible(t gguf.Type) bool { return parts.Of(t) != nil }

// Options says how to calibrate; the zero value of what is not required is the default.
type Options struct {
	Run eval.Run // the text; required
	// Dir is a folder for a file with the blocks, which has no name there: required.
	Dir string
	// Passes is how often all weights of a row are looked at, at most; 0 means 6.
	Passes int
	// Damping is the share of the mean of the diagonal that is added to it; 0 means 0.01.
	Damping float64
	// MaxColumns is how many columns are taken together; 0 means 8192. Wider rows are cut:
	// moments between their parts do not count.
	MaxColumns int
	// Feedback starts with feedback of errors.
	Feedback bool
	// Progress is called with the share that is done, from one goroutine; nil for nobody.
	Progress func(done float64)
}

// Loss is what became of a tensor: the error of what the layer says, mean squares summed over
// its rows, as the reference's search leaves it with the importance of the same text, and
// now.
type Loss struct {
	Target
	Name   string
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Rows   int     `json:"rows"` // of inputs
	// Unseen is how many matrices of the tensor no token met: experts that were never chosen.
	// They are encoded as the reference does without importance, and do not count above.
	Unseen int `json:"unseen,omitempty"`
}

// Blocks are encoded tensors.
type Blocks struct {
	Losses []Loss

	file *os.File
	size int64
	at   map[Target]int64
	m    *model.Model
}

// Close frees the space of the blocks.
func (b *Blocks) Close() error {
	err := b.file.Close()
	if e := os.Remove(b.file.Name()); e != nil && !os.IsNotExist(e) && err == nil {
		err = e
	}
	return err
}

// Source returns the rows of a target, nil if it was not calibrated: no input of its layer
// was seen. It is valid until Close.
func (b *Blocks) Source(t Target) rows.Source {
	at, ok := b.at[t]
	if !ok {
		return nil
	}
	ne := b.m.Tensors[t.Tensor].NE
	return rows.Stored(ne, t.Type, nil, io.NewSectionReader(b.file, at, gguf.DataBytes(t.Type, ne)))
}

// Run chooses the blocks of targets by what their layers read of a text: the model runs over
// it once, and tensors are encoded when all inputs of their layer have been seen, one layer
// or expert at a time. Memory: what eval.Model.Forward takes, and for each distinct input of
// a layer 4 bytes for each pair of columns that are taken together.
func Run(ctx context.Context, m *model.Model, targets []Target, opt Options) (*Blocks, error) {
	r, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	opt.Passes, opt.MaxColumns = cmp.Or(opt.Passes, 6), cmp.Or(opt.MaxColumns, 8192)
	opt.Damping = cmp.Or(opt.Damping, 0.01)
	file, err := os.CreateTemp(opt.Dir, ".ggforge-*.partial")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name()) // where a file may be open without a name; else Close does
	c := &run{ctx: ctx, opt: opt, blocks: &Blocks{file: file, at: map[Target]int64{}, m: m}, targets: map[string][]Target{}, inputs: map[key]*input{}, seen: map[Target][]bool{}}
	for _, t := range targets {
		x := &m.Tensors[t.Tensor]
		if !Possible(t.Type) {
			c.blocks.Close()
			return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: blocks of %v cannot be calibrated", m.Path, x.Name, t.Type)
		}
		if !slices.Contains(c.targets[x.Name], t) {
			c.targets[x.Name] = append(c.targets[x.Name], t)
		}
	}
	over := opt.Run
	over.First, over.Inputs = 0, c.see
	if opt.Progress != nil {
		over.Progress = func(p eval.Progress) { opt.Progress(p.Done) }
	}
	_, err = r.Forward(ctx, over)
	if err == nil {
		err = c.finish("", -1)
	}
	if err == nil {
		err = c.unseen()
	}
	if err != nil {
		c.blocks.Close()
		return nil, err
	}
	slices.SortStableFunc(c.blocks.Losses, func(a, b Loss) int { return cmp.Compare(a.Tensor, b.Tensor) })
	return c.blocks, nil
}

// key is a matrix of a tensor.
type key struct {
	name   string
	matrix int
}

// run is a calibration that goes on.
type run struct {
	ctx     context.Context
	opt     Options
	blocks  *Blocks
	targets map[string][]Target
	inputs  map[key]*input // that are being seen
	layer   string
	expert  int               // -1 for none
	seen    map[Target][]bool // matrices that were encoded
}

// input is what one or more matrices read.
type input struct {
	product  int // the last one that was added
	parts    []*Inputs
	readers  []key
	matrices int
}

// see collects what meets weights.
func (c *run) see(in eval.Inputs) error {
	layer, expert := layerOf(in.Name), -1
	if in.Routed {
		expert = in.Matrix
	}
	if layer != c.layer || expert != c.expert {
		if err := c.finish(layer, expert); err != nil {
			return err
		}
	}
	t := c.targets[in.Name]
	if len(t) == 0 {
		return nil
	}
	if ne := c.blocks.m.Tensors[t[0].Tensor].NE; ne[0] != int64(in.Columns) {
		return nil // it is multiplied by its columns
	}
	k := key{in.Name, in.Matrix}
	x := c.inputs[k]
	if x == nil {
		for _, other := range c.inputs {
			if other.product == in.Product {
				x = other
			}
		}
		if x == nil {
			x = &input{}
			for from := 0; from < in.Columns; from += c.opt.MaxColumns {
				x.parts = append(x.parts, NewInputs(min(c.opt.MaxColumns, in.Columns-from), c.opt.Run.Workers))
			}
		}
		x.readers, x.matrices = append(x.readers, k), in.Matrices
		c.inputs[k] = x
	}
	if x.product == in.Product {
		return nil
	}
	x.product = in.Product
	for i, p := range x.parts {
		if err := p.AddColumns(c.ctx, in.X, in.Columns, i*c.opt.MaxColumns); err != nil {
			return err
		}
	}
	return nil
}

// layerOf returns the beginning of a tensor's name that says its layer.
func layerOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// finish encodes what reads the inputs that have been seen, and goes on to another layer or
// expert.
func (c *run) finish(layer string, expert int) error {
	var done []*input
	for _, x := range c.inputs {
		if !slices.Contains(done, x) {
			done = append(done, x)
		}
	}
	slices.SortFunc(done, func(a, b *input) int { return strings.Compare(a.readers[0].name, b.readers[0].name) })
	clear(c.inputs)
	c.layer, c.expert = layer, expert
	for _, x := range done {
		if err := c.encode(x); err != nil {
			return err
		}
	}
	return nil
}

// encode chooses the blocks of all matrices that read an input.
func (c *run) encode(x *input) error {
	var moments []*Moments
	for _, p := range x.parts {
		m, err := p.Moments(c.ctx, c.opt.Damping)
		if err != nil {
			return err
		}
		moments = append(moments, m)
	}
	for _, k := range x.readers {
		for _, t := range c.targets[k.name] {
			if err := c.tensor(k, t, x, moments); err != nil {
				return fmt.Errorf("%s: tensor %q: %w", c.blocks.m.Path, k.name, err)
			}
		}
	}
	return nil
}

// tensor chooses the blocks of a matrix at a type.
func (c *run) tensor(k key, t Target, x *input, moments []*Moments) error {
	src := &c.blocks.m.Tensors[t.Tensor]
	n, all := int(src.NE[0]), gguf.Rows(src.NE)
	perRow := t.Type.RowBytes(src.NE[0])
	at, ok := c.blocks.at[t]
	if !ok {
		at = c.blocks.size
		c.blocks.at[t] = at
		c.blocks.size += perRow * all
		c.blocks.Losses = append(c.blocks.Losses, Loss{Target: t, Name: src.Name})
		c.seen[t] = make([]bool, max(1, x.matrices))
	}
	c.seen[t][k.matrix] = true
	loss := &c.blocks.Losses[slices.IndexFunc(c.blocks.Losses, func(l Loss) bool { return l.Target == t })]
	loss.Rows += x.parts[0].Rows()
	count := all / int64(max(1, x.matrices))
	first := int64(k.matrix) * count
	f := parts.Of(t.Type)
	var descenders []*Descender
	var importance []float32
	for _, m := range moments {
		descenders = append(descenders, &Descender{Format: f, Moments: m, Passes: c.opt.Passes, Workers: c.opt.Run.Workers, Feedback: c.opt.Feedback})
		importance = append(importance, m.Diagonal()...)
	}
	var buf []byte
	w, data := make([]float32, batchRows*n), make([]byte, batchRows*int(perRow))
	for a := first; a < first+count; a += batchRows {
		rowsNow := min(int64(batchRows), first+count-a)
		w, data := w[:int(rowsNow)*n], data[:rowsNow*perRow]
		if err := rows.Decode(src.Source, w, &buf, a, a+rowsNow); err != nil {
			return err
		}
		for i, v := range w {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fault.Errorf(fault.Broken, "weight %d of row %d is %v", i%n, a+int64(i/n), v)
			}
		}
		if err := c.start(t.Type, data, w, n, importance); err != nil {
			return err
		}
		from := 0
		for i, d := range descenders {
			r, err := d.columns(c.ctx, w, data, n, from)
			if err != nil {
				return err
			}
			loss.Before, loss.After = loss.Before+r.Before, loss.After+r.After
			from += moments[i].n
		}
		if _, err := c.blocks.file.WriteAt(data, at+a*perRow); err != nil {
			return err
		}
	}
	return nil
}

// unseen encodes the matrices that nothing met, of tensors with others that were.
func (c *run) unseen() error {
	for i := range c.blocks.Losses {
		l := &c.blocks.Losses[i]
		src, seen := &c.blocks.m.Tensors[l.Tensor], c.seen[l.Target]
		n, perRow := int(src.NE[0]), l.Type.RowBytes(src.NE[0])
		count := gguf.Rows(src.NE) / int64(len(seen))
		var buf []byte
		for matrix, ok := range seen {
			if ok {
				continue
			}
			l.Unseen++
			for a, end := int64(matrix)*count, int64(matrix+1)*count; a < end; a += batchRows {
				some := min(int64(batchRows), end-a)
				w, data := make([]float32, some*int64(n)), make([]byte, some*perRow)
				err := rows.Decode(src.Source, w, &buf, a, a+some)
				if err == nil {
					err = c.start(l.Type, data, w, n, nil)
				}
				if err == nil {
					_, err = c.blocks.file.WriteAt(data, c.blocks.at[l.Target]+a*perRow)
				}
				if err != nil {
					return fmt.Errorf("%s: tensor %q: %w", c.blocks.m.Path, l.Name, err)
				}
			}
		}
	}
	return nil
}

// start encodes rows as the reference does with importance.
func (c *run) start(t gguf.Type, data []byte, w []float32, n int, importance []float32) error {
	codec := quants.Lookup(t)
	perRow := int(t.RowBytes(int64(n)))
	const some = 8
	return parallel.For(c.ctx, max(1, c.opt.Run.Workers), (len(w)/n+some-1)/some, func(i, _ int) error {
		a, b := i*some, min((i+1)*some, len(w)/n)
		return codec.Quantize(data[a*perRow:b*perRow], w[a*n:b*n], n, importance)
	})
}
