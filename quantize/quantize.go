package quantize

import (
	"context"
	"fmt"
	"path/filepath"

	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/quantize/quants"
	"ggforge/rows"
	"ggforge/writer"
)

// ErrRefused is the kind of errors that only a rule or a missing option stands
// behind, for errors.Is.
var ErrRefused = fault.Refused

// Job is a quantization that has been planned. Nothing has been written yet.
type Job struct {
	Input     *gguf.File
	Decisions []Decision // in output order
	opt       PlanOptions
}

// Prepare opens the GGUF file at path and plans its quantization. The caller
// closes the job. With an error of kind ErrRefused the job is returned as well,
// so that its decisions can be shown, and must be closed, too.
func Prepare(path string, opt PlanOptions) (*Job, error) {
	in, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	tensors := make([]PlanTensor, len(in.Tensors))
	for i, t := range in.Tensors {
		tensors[i] = PlanTensor{t.Name, t.NE, t.Type}
	}
	decisions, err := Plan(in.Metadata, tensors, opt)
	if err == nil {
		err = encodable(decisions)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if decisions == nil {
		in.Close()
		return nil, err
	}
	return &Job{in, decisions, opt}, err
}

// encodable checks that there is a codec for every conversion.
func encodable(decisions []Decision) error {
	for _, d := range decisions {
		switch {
		case d.From == d.To:
		case !quants.Lookup(d.From).CanDequantize():
			return &UnsupportedError{d.Name, d.From, "tensors of this type are not converted yet"}
		case !quants.Lookup(d.To).CanQuantize():
			return &UnsupportedError{d.Name, d.To, "tensors are not converted to this type yet"}
		}
	}
	return nil
}

// Close closes the input.
func (j *Job) Close() error { return j.Input.Close() }

// Size returns the size in bytes of the file that Write will write.
func (j *Job) Size() int64 { return j.output("").Size() }

// BPW returns the bits per weight of the output.
func (j *Job) BPW() float64 {
	var bytes, n int64
	for _, d := range j.Decisions {
		ne := j.Input.Tensors[d.Tensor].NE
		bytes += gguf.DataBytes(d.To, ne)
		n += j.Input.Tensors[d.Tensor].Elements()
	}
	return 8 * float64(bytes) / float64(max(n, 1))
}

// Write carries out the plan. The output must not be the input.
func (j *Job) Write(ctx context.Context, path string, opt writer.Options) (*writer.Result, error) {
	if err := writer.Distinct(j.Input.Path, path); err != nil {
		return nil, err
	}
	return writer.Write(ctx, j.output(path), opt)
}

func (j *Job) output(path string) *writer.File {
	f := &writer.File{Path: path, Metadata: j.metadata(), Alignment: j.Input.Alignment}
	for _, d := range j.Decisions {
		src := rows.GGUF(j.Input, &j.Input.Tensors[d.Tensor])
		f.Tensors = append(f.Tensors, writer.Tensor{Name: d.Name, Type: d.To, Source: src})
	}
	return f
}

// metadata returns the output's pairs: those of the input, with the two keys
// that a quantization decides at the end and without what described shards.
func (j *Job) metadata() gguf.Metadata {
	m := append(gguf.Metadata(nil), j.Input.Metadata...)
	m.Move(gguf.KeyQuantizationVersion, gguf.Uint32(gguf.QuantizationVersion))
	m.Move(gguf.KeyFileType, gguf.Uint32(j.fileType()))
	for _, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors} {
		m.Delete(key)
	}
	return m
}

// guessed marks a file type that was derived from the tensors
// (LLAMA_FTYPE_GUESSED).
const guessed = 1024

// fileType returns general.file_type of the output. A copy keeps the input's;
// when it has none, the most frequent tensor type stands for it.
func (j *Job) fileType() uint32 {
	if !j.opt.Recipe.Copy {
		return j.opt.Recipe.FileType
	}
	if v, ok := j.Input.Metadata.Get(gguf.KeyFileType); ok && v.Type() == gguf.Uint32Type {
		n, _ := v.Int()
		return uint32(n)
	}
	count := map[gguf.Type]int{}
	most := gguf.TypeF32
	for _, d := range j.Decisions {
		if count[d.From]++; count[d.From] > count[most] {
			most = d.From
		}
	}
	if r, ok := recipeOf(most); ok {
		return r.FileType | guessed
	}
	return guessed // F32
}

// recipeOf returns the recipe that a file with most tensors of type t is taken
// for: the one of that name, or whose default type it is.
func recipeOf(t gguf.Type) (*Recipe, bool) {
	if r, ok := LookupRecipe(t.String()); ok {
		return r, true
	}
	for _, r := range Recipes() {
		if !r.Copy && r.Type == t {
			return r, true
		}
	}
	return nil, false
}

// DefaultOutput returns where the output goes when only the input is named:
// beside it, named after the recipe.
func DefaultOutput(input string, r *Recipe) string {
	return filepath.Join(filepath.Dir(input), "ggml-model-"+r.Name+".gguf")
}
