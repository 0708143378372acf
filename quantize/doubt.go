package quantize

import (
	"fmt"
	"os"

	"ggforge/fault"
	"ggforge/gguf"
)

// Doubt is a sign that an output is a mistake, such as swapped input and output.
type Doubt struct {
	Text     string
	Replaces string // the file that the output would replace, "" for none
}

// Err returns the doubt as an error of kind ErrRefused.
func (d *Doubt) Err() error {
	return fault.Permits("AllowRequantize", fault.Errorf(fault.Refused,
		"%s would be replaced: %s (type COPY copies a file as it is)", d.Replaces, d.Text))
}

// Doubts compares the input with the outputs and the files that these would replace. A doubt is a GGUF input whose
// tensors already have the types of the recipe, or an existing file at an output's path with more bytes and more bits
// per weight than the input. There is none for recipes that copy, and with AllowRequantize. Files that cannot be read
// as GGUF are not compared. paths are those of the outputs; nil compares with no files.
func (b *Batch) Doubts(paths []string) ([]Doubt, error) {
	var all []Doubt
	for i, j := range b.Jobs {
		if j.opt.Recipe.Copy || j.opt.AllowRequantize {
			continue
		}
		var there *gguf.Set
		var file string
		if paths != nil {
			files, err := j.Files(paths[i])
			if err != nil {
				return nil, err
			}
			if _, err := os.Lstat(files[0].Path); err == nil {
				file = files[0].Path
				there, _ = gguf.OpenSet(file)
			}
		}
		if !j.Input.Converted && j.changesNothing() {
			all = append(all, Doubt{fmt.Sprintf("%s: nothing to quantize: its %d tensors have the types of %s already",
				j.Input.Path, len(j.Decisions), j.opt.Recipe.Name), file})
		}
		if there == nil {
			continue
		}
		if bpw := bitsOf(there); there.Size() > j.Input.Bytes && bpw > j.Input.BPW() {
			all = append(all,
				Doubt{fmt.Sprintf(
					"%s has %d bytes and %.4f bits per weight, which is less than the %d bytes and %.4f bits of %s: "+
						"are input and output swapped?",
					j.Input.Path, j.Input.Bytes, j.Input.BPW(), there.Size(), bpw, file), file})
		}
		if err := there.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// bitsOf returns the bits per weight of a file.
func bitsOf(s *gguf.Set) float64 {
	return gguf.BPW(func(yield func(*gguf.Tensor) bool) {
		for _, t := range s.Tensors() {
			if !yield(t) {
				return
			}
		}
	})
}

// changesNothing reports whether all tensors keep their type.
func (j *Job) changesNothing() bool {
	for i := range j.Decisions {
		if d := &j.Decisions[i]; d.To != d.From {
			return false
		}
	}
	return true
}
