// Package manifest records what a run of ggconv or ggquant has read and written: sizes and SHA-256 sums of all inputs,
// the options that decide bytes, and of each output file its sum and those of its tensors. There are no times, no
// folders and no names of machines in a manifest: two runs that write the same bytes write the same manifest.
//
//	Inputs, outputs ──► Describe ──► Write ──► file ──► Read ──► Compare with the files of another run
package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/parallel"
	"ggforge/model/digest"
	"ggforge/writer"
)

// Format is the value of Manifest.Format.
const Format = "ggforge run manifest 1"

// The commands that write manifests.
const (
	Convert  = "ggconv"
	Quantize = "ggquant"
)

// Manifest lists the files that a run has read and written.
type Manifest struct {
	Format    string   `json:"format" doc:"ggforge run manifest 1"`
	Program   string   `json:"program" doc:"the program, with its version"`
	Command   string   `json:"command" doc:"ggconv or ggquant"`
	Source    string   `json:"source" doc:"the model: the name of its file or folder, or its address on a server"`
	Arguments []string `json:"arguments" doc:"flags that decide bytes, in the order of the help; files and folders by their names, without paths"`
	Inputs    []Input  `json:"inputs" doc:"all files that were read, by role and name"`
	Outputs   []Output `json:"outputs" doc:"what was made"`
	Files     []File   `json:"files" doc:"the files of all outputs"`
}

// Input is a file that was read.
type Input struct {
	Role string `json:"role" doc:"source, or the flag that names the file or the folder that it is in"`
	digest.File
	State string `json:"state,omitempty" doc:"of files of a server: the commit, or the server's validator of the content; weights have no sha256 then"`
}

// Output is a model that was made.
type Output struct {
	Name string `json:"name" doc:"of its file; of shards, the name before they were split"`
	Type string `json:"type" doc:"recipe, or type of the weights"`
}

// File is a file that was written.
type File struct {
	digest.File
	Type    string   `json:"type" doc:"that of the output"`
	Tensors []Tensor `json:"tensors" doc:"in the order of the file"`
}

// Tensor is a tensor of a file.
type Tensor struct {
	Name   string  `json:"name" doc:"in the file"`
	Type   string  `json:"type" doc:"of its elements or blocks"`
	Shape  []int64 `json:"shape" doc:"dimensions in the order of GGUF: the length of a row first"`
	Offset int64   `json:"offset" doc:"of its data, from the beginning of the file"`
	Bytes  int64   `json:"bytes" doc:"size of its data"`
	SHA256 string  `json:"sha256" doc:"of its data"`
}

// Made is an output on this machine.
type Made struct {
	Output
	Files []string // paths
}

// Describe returns inputs with their sums, in the order of role and name, and the files of outputs with theirs. Files
// are read once each, as many at once as there are workers, except inputs whose sums are known. An input that is
// named twice for a role is listed once if it is the same file.
func Describe(ctx context.Context, inputs []digest.Input, outputs []Made, workers int) (in []Input,
	files []File, err error) {
	if inputs, err = sorted(inputs); err != nil {
		return nil, nil, err
	}
	in = make([]Input, len(inputs))
	type output struct{ path, as string }
	var paths []output
	for _, o := range outputs {
		for _, path := range o.Files {
			paths = append(paths, output{path, o.Type})
		}
	}
	files = make([]File, len(paths))
	err = parallel.For(ctx, max(1, workers), len(in)+len(files), func(i, _ int) (err error) {
		if i >= len(in) {
			i -= len(in)
			files[i], err = FileAt(ctx, paths[i].path)
			files[i].Type = paths[i].as
			return err
		}
		x := &inputs[i]
		in[i] = Input{Role: x.Role, File: digest.File{Name: x.Name, Bytes: x.Bytes, SHA256: x.SHA256}, State: x.State}
		if x.Path == "" || x.SHA256 != "" {
			return nil
		}
		in[i].File, err = digest.OfFile(ctx, x.Path)
		in[i].Name = x.Name
		return err
	})
	return in, files, err
}

// sorted returns inputs by role and name, each once.
func sorted(inputs []digest.Input) ([]digest.Input, error) {
	list := slices.Clone(inputs)
	slices.SortStableFunc(list, func(a, b digest.Input) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path))
	})
	list = slices.Compact(list)
	for i := range list[:max(0, len(list)-1)] {
		if a, b := list[i], list[i+1]; a.Role == b.Role && a.Name == b.Name {
			return nil, fault.Errorf(fault.Usage,
				"%s and %s: both are called %s in the manifest, which names no folders: give one of them another name",
				a.Path, b.Path, a.Name)
		}
	}
	return list, nil
}

// FileAt describes the GGUF file at path, without the type of the output. No tensors are listed for a file that
// [gguf.Open] refuses, such as one whose data are missing.
func FileAt(ctx context.Context, path string) (File, error) {
	f, err := gguf.Open(path)
	var broken *gguf.FormatError
	if errors.As(err, &broken) {
		whole, err := digest.OfFile(ctx, path)
		return File{File: whole, Tensors: []Tensor{}}, err
	}
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	whole, sums, err := digest.OfModel(ctx, path, f)
	if err != nil {
		return File{}, err
	}
	out := File{File: whole, Tensors: make([]Tensor, len(sums))}
	for i, t := range sums {
		out.Tensors[i] = Tensor{Name: t.Name, Type: t.Type.String(), Shape: t.NE, Offset: t.Start, Bytes: t.Bytes(),
			SHA256: t.SHA256}
	}
	return out, nil
}

// Append appends the manifest as JSON, one line for each input and each tensor.
func (m *Manifest) Append(b []byte) ([]byte, error) {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	return append(append(b, data...), '\n'), nil
}

// Write writes the manifest to path, as package writer does: whole and on the disk, or not at all.
func (m *Manifest) Write(ctx context.Context, path string, opt writer.Options) error {
	data, err := m.Append(nil)
	if err != nil {
		return err
	}
	return writer.WriteBytes(ctx, path, data, opt)
}

const (
	maxBytes     = 256 << 20 // of a manifest to be read
	maxArguments = 10000
)

// Read reads the manifest at path, a regular file of at most 256 MiB. Names of inputs are relative paths, names of
// outputs and their files have no folders; sums are SHA-256 in lower case. An error about the content has kind
// fault.Broken, one about another format than Format has kind fault.Unsupported.
func Read(path string) (*Manifest, error) {
	data, err := mmap.ReadFile(path, "manifest", maxBytes)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is Read for the content of the file at path.
func Parse(path string, data []byte) (*Manifest, error) {
	// The format is checked first: other formats may have fields of other types.
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", path, err)
	}
	if head.Format != Format {
		return nil, fault.Errorf(fault.Unsupported, "%s: format is %q, want %q", path, head.Format, Format)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", path, err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// check returns an error of kind fault.Broken if something is wrong.
func (m *Manifest) check() error {
	if m.Command != Convert && m.Command != Quantize {
		return fault.Errorf(fault.Broken, "command is %q, want %s or %s", m.Command, Convert, Quantize)
	}
	if m.Source == "" || strings.ContainsFunc(m.Source, unicode.IsControl) {
		return fault.Errorf(fault.Broken, "source is %q, want the name of a model", m.Source)
	}
	if len(m.Arguments) > maxArguments {
		return fault.Errorf(fault.Broken, "%d arguments, want at most %d", len(m.Arguments), maxArguments)
	}
	type key struct{ role, name string }
	inputs := map[key]bool{}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		f := in.File
		if in.State != "" && f.SHA256 == "" {
			f.SHA256 = strings.Repeat("0", 64) // unknown for a file on a server
		}
		if err := f.Check(); err != nil {
			return fmt.Errorf("inputs[%d]: %w", i, err)
		}
		in.SHA256 = strings.ToLower(in.SHA256)
		if k := (key{in.Role, in.Name}); inputs[k] {
			return fault.Errorf(fault.Broken, "inputs[%d]: %q of role %q is there twice", i, in.Name, in.Role)
		} else {
			inputs[k] = true
		}
	}
	if len(m.Outputs) == 0 || len(m.Files) == 0 {
		return fault.Errorf(fault.Broken, "%d outputs and %d files, want at least one of each", len(m.Outputs),
			len(m.Files))
	}
	for i, o := range m.Outputs {
		if !plain(o.Name) || o.Type == "" {
			return fault.Errorf(fault.Broken, "outputs[%d]: %q of type %q, want the name of a file and a type", i,
				o.Name, o.Type)
		}
	}
	names := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.Check(); err != nil {
			return fmt.Errorf("files[%d]: %w", i, err)
		}
		if !plain(f.Name) || names[f.Name] {
			return fault.Errorf(fault.Broken, "files[%d]: %q, want a name without folders that is there once", i,
				f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

// plain reports whether a name is a file name without folders.
func plain(name string) bool {
	return name != "" && name != "." && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`) &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Difference is a difference between a file and its manifest.
type Difference struct {
	File   string `json:"file"`
	Tensor string `json:"tensor,omitempty"` // the first that differs; none for a difference of metadata or layout
	Text   string `json:"text"`
}

// Diff returns the first difference of got, the file of another run, from f, the file in the manifest; nil if they are
// the same. Tensors are compared in the order of the manifest.
func (f *File) Diff(got *File) *Difference {
	differs := func(tensor, format string, args ...any) *Difference {
		return &Difference{f.Name, tensor, fmt.Sprintf(format, args...)}
	}
	for i := range f.Tensors {
		want := &f.Tensors[i]
		if i >= len(got.Tensors) {
			return differs(want.Name, "is missing")
		}
		switch t := &got.Tensors[i]; {
		case t.Name != want.Name:
			return differs(want.Name, "%s is in its place", t.Name)
		case t.Type != want.Type || !slices.Equal(t.Shape, want.Shape):
			return differs(want.Name, "is %s of %v, want %s of %v", t.Type, t.Shape, want.Type, want.Shape)
		case t.SHA256 != want.SHA256:
			return differs(want.Name, "SHA-256 is %s, want %s", t.SHA256, want.SHA256)
		}
	}
	switch {
	case len(got.Tensors) > len(f.Tensors):
		return differs(got.Tensors[len(f.Tensors)].Name, "is not in the manifest")
	case got.Bytes != f.Bytes:
		return differs("", "all tensors are the same, metadata or layout differ: %d bytes, want %d", got.Bytes, f.Bytes)
	case got.SHA256 != f.SHA256:
		return differs("", "all tensors are the same, metadata or layout differ: SHA-256 is %s, want %s",
			got.SHA256, f.SHA256)
	}
	return nil
}

// Changed compares inputs with those of the manifest, and returns a line for each that differs, is missing or is not in
// the manifest.
func (m *Manifest) Changed(inputs []Input) (lines []string) {
	find := func(list []Input, in *Input) *Input {
		for i := range list {
			if list[i].Role == in.Role && list[i].Name == in.Name {
				return &list[i]
			}
		}
		return nil
	}
	for i := range m.Inputs {
		want := &m.Inputs[i]
		got := find(inputs, want)
		switch {
		case got == nil:
			lines = append(lines, fmt.Sprintf("%s (%s): is not read", want.Name, want.Role))
		case got.Bytes != want.Bytes:
			lines = append(lines, fmt.Sprintf("%s (%s): has %d bytes, want %d", want.Name, want.Role,
				got.Bytes, want.Bytes))
		case got.SHA256 != "" && want.SHA256 != "" && got.SHA256 != want.SHA256:
			lines = append(lines, fmt.Sprintf("%s (%s): SHA-256 is %s, want %s", want.Name, want.Role, got.SHA256,
				want.SHA256))
		case (got.SHA256 == "" || want.SHA256 == "") && got.State != "" && want.State != "" && got.State != want.State:
			lines = append(lines, fmt.Sprintf("%s (%s): the server calls it %s, and called it %s", want.Name, want.Role,
				got.State, want.State))
		}
	}
	for i := range inputs {
		if find(m.Inputs, &inputs[i]) == nil {
			lines = append(lines, fmt.Sprintf("%s (%s): was not read for the manifest", inputs[i].Name, inputs[i].Role))
		}
	}
	return lines
}
