// Package mutate has made-up models for tests: those of test/hftest, converted, and with changed config.json and metadata.
package mutate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// Variant returns the variant of a spec of that name.
func Variant(s *hftest.Spec, name string) (hftest.Variant, error) {
	for _, v := range s.All() {
		if v.Name == name {
			return v, nil
		}
	}
	return hftest.Variant{}, fmt.Errorf("mutate: spec %s has no variant %q", s.Name, name)
}

// Options are those that a conversion of a spec's checkpoint in dir needs.
func Options(s *hftest.Spec, dir string, as convert.OutType) convert.Options {
	opt := convert.Options{Type: as, Pre: s.PreTokenizer(), Base: s.BaseDir(dir), MMProj: s.Encoder}
	if s.Target != "" {
		opt.Target = filepath.Join(dir, s.Target)
	}
	return opt
}

// EachModel calls f with the model of every spec and of its variants with another configuration, by the name
// SPEC/VARIANT: with all metadata, and with weights of zero. It leaves out adapters and drafts and, in builds without
// vector kernels, seven of eight specs.
func EachModel(t *testing.T, f func(name string, m *model.Model)) {
	t.Helper()
	dir := t.TempDir()
	for i, s := range hftest.Specs() {
		if s.Base != nil || s.Target != "" || !cpu.HasVectors && i%8 != 0 {
			continue
		}
		for j, v := range s.All() {
			if j > 0 && v.Set == "" { // the configuration of the first one
				continue
			}
			v.Blank = true
			src, err := s.Write(dir, v)
			if err != nil {
				t.Fatal(err)
			}
			name := s.Name + "/" + v.Name
			if m, _, err := convert.Open(t.Context(), src, Options(s, src, convert.F32)); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				f(name, m)
				m.Close()
			}
			if err := os.RemoveAll(src); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Convert writes the model of a spec's variant into dir, as F32, and returns the file.
func Convert(ctx context.Context, dir string, s *hftest.Spec, v hftest.Variant) (string, error) {
	src, err := s.Write(dir, v)
	if err != nil {
		return "", err
	}
	job, err := convert.Prepare(ctx, src, Options(s, src, convert.F32))
	if err != nil {
		return "", err
	}
	defer job.Close()
	file := filepath.Join(dir, s.Name+".gguf")
	_, err = job.Write(ctx, file, writer.Options{})
	return file, err
}

// Edit writes a copy of a file with other metadata.
func Edit(ctx context.Context, file, to string, change func(m *gguf.Metadata)) error {
	f, err := gguf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	m := append(gguf.Metadata(nil), f.Metadata...)
	change(&m)
	out, err := edit.WithMetadata(f, to, m, 0)
	if err != nil {
		return err
	}
	_, err = writer.WriteAll(ctx, []*writer.File{out}, writer.Options{})
	return err
}

// File converts a variant of a spec, in a folder of the test, and returns the path of the file. change, if not nil,
// edits the metadata.
func File(t testing.TB, spec, variant string, change func(m *gguf.Metadata)) string {
	t.Helper()
	s := hftest.Lookup(spec)
	dir := t.TempDir()
	v, err := Variant(s, variant)
	var file string
	if err == nil {
		file, err = Convert(t.Context(), dir, s, v)
	}
	if err == nil && change != nil {
		from := file
		file = filepath.Join(dir, "changed.gguf")
		err = Edit(t.Context(), from, file, change)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
