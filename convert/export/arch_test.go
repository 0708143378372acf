package export_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/convert/export"
	"ggforge/fault"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// TestArchitectures converts a made-up checkpoint of every architecture that can be exported, and exports the file:
// names and bytes of tensors must be those of the checkpoint, except for tensors that conversion leaves out. Where
// several tables share the name of an architecture, the export may be refused.
func TestArchitectures(t *testing.T) {
	tables := map[string]int{}
	for _, a := range arch.All() {
		tables[a.Name]++
	}
	exported := map[string]bool{}
	for _, s := range hftest.Specs() {
		a, err := arch.Lookup(s.Class())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := arch.LookupGGUF(a.Name); err != nil || s.Target != "" ||
			strings.Contains(s.Config, "quantization_config") {
			continue // dequantized weights differ from those stored, and draft models need their target
		}
		t.Run(s.Name, func(t *testing.T) {
			err := backToCheckpoint(t, s)
			if (tables[a.Name] > 1 || a.Variant != nil) && errors.Is(err, fault.Unsupported) {
				t.Skip(err)
			}
			must(t, err)
			exported[a.Name] = true
		})
	}
	if len(exported) < 25 {
		t.Errorf("only %d architectures: %v", len(exported), exported)
	}
}

// inside removes the prefixes of the language model in a multimodal checkpoint.
var inside = strings.NewReplacer("language_model.", "", "llm.", "", "text_model.", "")

// backToCheckpoint compares the export with the checkpoint. It returns an error if the export is refused.
func backToCheckpoint(t *testing.T, s *hftest.Spec) error {
	v := s.All()[0]
	v.DType = "F32"
	in, err := s.Write(t.TempDir(), v)
	must(t, err)
	job, err := convert.Prepare(t.Context(), in, convert.Options{Type: convert.F32, Pre: s.PreTokenizer()})
	must(t, err)
	defer job.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gguf")
	_, err = job.Write(context.Background(), path, writer.Options{})
	must(t, err)
	back, err := export.Prepare(t.Context(), path, export.Options{HF: true})
	if err != nil {
		return err
	}
	defer back.Close()
	_, err = back.Write(context.Background(), filepath.Join(dir, "out"), writer.Options{})
	must(t, err)
	want, err := safetensorstest.OpenDir(in)
	must(t, err)
	defer want.Close()
	got, err := safetensorstest.OpenDir(filepath.Join(dir, "out"))
	must(t, err)
	defer got.Close()
	n := 0
	for _, p := range job.Plan {
		if p.From == "" {
			continue // computed from the config
		}
		n++
		x, _ := want.Lookup(p.From)
		y, ok := got.Lookup(inside.Replace(p.From))
		if !ok || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Data(), y.Data()) {
			t.Errorf("%s is missing or differs", p.From)
		}
	}
	if len(got.Tensors()) != n {
		t.Errorf("%d tensors, want %d", len(got.Tensors()), n)
	}
	return nil
}
