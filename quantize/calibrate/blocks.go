package calibrate

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/model"
	"ggforge/quants/parts"
	"ggforge/rows"
)

// Target is a tensor and a type that it is to have.
type Target struct {
	Tensor int // of the model
	Type   gguf.Type
}

// Possible reports whether the blocks of a type can be chosen here.
func Supported(t gguf.Type) bool { return parts.Of(t) != nil }

// Loss is what became of a tensor: the error of what the layer says, mean squares summed over
// its rows, as the reference's search leaves it with the importance of the same text, and
// now. Of a tensor whose rows are looked up it is the sum of squares, and the search has no
// importance; or, if Gradients is true, what errors cost by them, and the search has the
// importance of the gradients.
type TensorError struct {
	Target
	Name   string
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Rows   int     `json:"rows"` // of inputs; 0 where rows are looked up
	// TraceRatio is tr(D)/tr(H), H = L D Lᵀ: about what feedback of errors leaves of the error that
	// rounding alone would have. 0 where there is no feedback, or rows are looked up.
	TraceRatio float64 `json:"trace_ratio,omitempty"`
	// Gradients says that gradients decided, not inputs.
	Gradients bool `json:"gradients,omitempty"`
	// Unseen is how many matrices of the tensor no token met: experts that were never chosen.
	// They are encoded as the reference does without importance, and do not count above.
	Unseen int `json:"unseen,omitempty"`
}

// Blocks are encoded tensors, in a file that has no name.
type Blocks struct {
	Errors []TensorError // by tensor and type when all are there
	// NoGradients is why the gradients that Options.Gradients asks for could not be taken, nil if
	// they were or none were asked for.
	NoGradients error

	m       *model.Model
	file    *disk.File
	size    int64
	tensors map[Target]*encodedTensor
	lazy    *lazy // or nil: all are encoded
}

// kept is a tensor that is encoded, matrix by matrix.
type encodedTensor struct {
	TensorError
	at   int64  // in the file
	seen []bool // matrices that were encoded
	traces
}

// traces are sums over the matrices of a tensor, and over their ranges of columns.
type traces struct{ d, h float64 }

func (t *traces) add(other traces) { t.d, t.h = t.d+other.d, t.h+other.h }

// newBlocks returns room for encoded tensors of a model, in a file of folder dir.
func newBlocks(m *model.Model, dir string) (*Blocks, error) {
	file, err := disk.CreateTemp(dir, ".ggforge-*.partial")
	if err != nil {
		return nil, err
	}
	disk.Remove(file.Name()) // where a file may be open without a name; else Close does
	return &Blocks{m: m, file: file, tensors: map[Target]*encodedTensor{}}, nil
}

// Close frees the space of the blocks.
func (b *Blocks) Close() error {
	err := b.file.Close()
	if b.lazy != nil {
		err = errors.Join(err, b.lazy.run.saved.Close())
	}
	if e := disk.Remove(b.file.Name()); e != nil && !os.IsNotExist(e) && err == nil {
		err = e
	}
	return err
}

// of returns the place of a target of so many matrices.
func (b *Blocks) of(t Target, matrices int) *encodedTensor {
	k := b.tensors[t]
	if k == nil {
		x := &b.m.Tensors[t.Tensor]
		k = &encodedTensor{TensorError: TensorError{Target: t, Name: x.Name}, at: b.size,
			seen: make([]bool, max(1, matrices))}
		b.tensors[t] = k
		b.size += gguf.DataBytes(t.Type, x.NE)
	}
	return k
}

// put keeps the blocks of rows from row on.
func (b *Blocks) put(k *encodedTensor, row int64, data []byte) error {
	_, err := b.file.WriteAt(data, k.at+row*k.Type.RowBytes(b.m.Tensors[k.Tensor].NE[0]))
	return err
}

// Source returns the rows of a target, nil if it was not calibrated: no input of its layer
// was seen, nor are its rows looked up. It is valid until Close.
func (b *Blocks) Source(t Target) rows.Source {
	k, ok := b.tensors[t]
	if !ok {
		return nil
	}
	ne := b.m.Tensors[t.Tensor].NE
	stored := rows.Stored(ne, t.Type, nil, io.NewSectionReader(b.file, k.at, gguf.DataBytes(t.Type, ne)))
	if b.lazy != nil {
		return lazySource{stored, b.lazy, t}
	}
	return stored
}

// Gradients reports whether gradients decide on the blocks of a tensor.
func (b *Blocks) Gradients() bool {
	return b.lazy != nil && b.lazy.gradients ||
		slices.ContainsFunc(b.Errors, func(l TensorError) bool { return l.Gradients })
}

// done makes the list of losses.
func (b *Blocks) done() {
	b.Errors = nil
	for _, k := range b.tensors {
		if k.h > 0 {
			k.TraceRatio = k.d / k.h
		}
		b.Errors = append(b.Errors, k.TensorError)
	}
	slices.SortFunc(b.Errors, func(x, y TensorError) int {
		return cmp.Or(cmp.Compare(x.Tensor, y.Tensor), cmp.Compare(x.Type, y.Type))
	})
}
