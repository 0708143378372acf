package quantize

import (
	"context"
	"slices"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/rows"
)

// Model is what is quantized: the metadata and tensors of a GGUF file, of its
// shards, or of the file that a checkpoint would be converted to.
type Model struct {
	Path     string   // as the user named it
	Files    []string // what the output must not replace
	Bytes    int64    // size as GGUF
	Metadata gguf.Metadata
	Tensors  []ModelTensor
	Shards   int

	close func() error
}

// ModelTensor is one tensor of a Model.
type ModelTensor struct {
	Name   string
	Source rows.Source
	Shard  int
}

// Close closes the files behind the model.
func (m *Model) Close() error { return m.close() }

// BPW returns the bits per weight over all tensors.
func (m *Model) BPW() float64 {
	var bytes, n int64
	for _, t := range m.Tensors {
		ne := t.Source.NE()
		bytes += gguf.DataBytes(t.Source.Type(), ne)
		n += gguf.Rows(ne) * gguf.RowLen(ne)
	}
	return 8 * float64(bytes) / float64(max(n, 1))
}

func (m *Model) planTensors() []PlanTensor {
	list := make([]PlanTensor, len(m.Tensors))
	for i, t := range m.Tensors {
		list[i] = PlanTensor{t.Name, t.Source.NE(), t.Source.Type()}
	}
	return list
}

// OpenGGUF opens the GGUF file at path, or the shards of which it is the first.
// The caller closes the model.
func OpenGGUF(path string) (*Model, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Bytes: set.Size(), Metadata: set.Metadata(), Shards: len(set.Files), close: set.Close}
	for _, f := range set.Files {
		m.Files = append(m.Files, f.Path)
	}
	for _, t := range set.Tensors() {
		m.Tensors = append(m.Tensors, ModelTensor{t.Name, rows.GGUF(set.Files[t.Shard], t.Tensor), t.Shard})
	}
	return m, nil
}

// OpenCheckpoint plans the conversion of the Hugging Face checkpoint in dir and
// returns the model that the converted file would hold: quantizing it gives the
// same bytes as quantizing that file. The conversion's warnings come with it. The
// caller closes the model.
func OpenCheckpoint(ctx context.Context, dir string, opt convert.Options) (*Model, []string, error) {
	job, err := convert.Prepare(ctx, dir, opt)
	if err != nil {
		return nil, nil, err
	}
	m := &Model{Path: dir, Files: job.Files(), Bytes: job.Size(), Metadata: job.Metadata(), Shards: 1, close: job.Close}
	for _, t := range job.Plan {
		m.Tensors = append(m.Tensors, ModelTensor{t.Name, rows.Convert(t.Source, t.Type), 0})
	}
	return m, slices.Clone(job.Warnings), nil
}
