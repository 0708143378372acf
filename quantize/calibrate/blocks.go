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

// Target is a tensor and the type to encode it to.
type Target struct {
	Tensor int // of the model
	Type   gguf.Type
}

// Supported reports whether this package can encode blocks of a type.
func Supported(t gguf.Type) bool { return parts.Of(t) != nil }

// TensorError is the error of an encoded tensor: Σ (v-w)ᵀ H (v-w) over its rows. Before is that of the encoder of
// package quants with importance from the same text, After that of the blocks. For embedding rows H is the identity
// and the encoder has no importance; with Gradients, H is the mean of g gᵀ and gives the importance, too.
type TensorError struct {
	Target
	Name   string
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Rows   int     `json:"rows"` // of inputs; 0 for embedding rows
	// TraceRatio is tr(D)/tr(H) with H = L D Lᵀ: about the share of the rounding error that remains after error
	// feedback. 0 without feedback and for embedding rows.
	TraceRatio float64 `json:"trace_ratio,omitempty"`
	// Gradients is true if gradients gave H, not inputs.
	Gradients bool `json:"gradients,omitempty"`
	// Unseen is the number of matrices without inputs: experts to which no token was routed. They are encoded
	// without importance and do not count above.
	Unseen int `json:"unseen,omitempty"`
}

// Blocks are encoded tensors in an unnamed temporary file.
type Blocks struct {
	Errors []TensorError // by tensor and type, when all are encoded
	// NoGradients is why the gradients of Options.Gradients could not be computed, else nil.
	NoGradients error
	// TwoSided is true if gradients at outputs told how errors of rows add up, in a matrix or more.
	TwoSided bool

	m       *model.Model
	file    *disk.File
	size    int64
	tensors map[Target]*encodedTensor
	lazy    *lazy // or nil: all are encoded
}

// encodedTensor is a tensor that is encoded matrix by matrix.
type encodedTensor struct {
	TensorError
	at   int64  // in the file
	seen []bool // matrices that were encoded
	traces
}

// traces are sums over the matrices of a tensor, and over their ranges of columns.
type traces struct{ d, h float64 }

func (t *traces) add(other traces) { t.d, t.h = t.d+other.d, t.h+other.h }

// newBlocks returns empty Blocks for a model, with their file in folder dir.
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

// of returns the entry of a target with that many matrices, new or old.
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

// put stores the blocks of rows from row on.
func (b *Blocks) put(k *encodedTensor, row int64, data []byte) error {
	_, err := b.file.WriteAt(data, k.at+row*k.Type.RowBytes(b.m.Tensors[k.Tensor].NE[0]))
	return err
}

// Source returns the rows of a target, nil if it was not encoded: its layer had no inputs and it is no embedding.
// It is valid until Close.
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

// Gradients reports whether any tensor was encoded by gradients.
func (b *Blocks) Gradients() bool {
	return b.lazy != nil && b.lazy.gradients ||
		slices.ContainsFunc(b.Errors, func(l TensorError) bool { return l.Gradients })
}

// done makes the list of errors.
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
