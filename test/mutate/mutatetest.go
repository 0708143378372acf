// Package mutate changes the config.json and the metadata of made-up models (test/hftest), for tests.
package mutate

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/gguf"
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
