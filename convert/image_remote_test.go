package convert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/test/hubtest"
	"ggforge/writer"
)

// TestImageRemote converts an image model from a hub, as a single file and as a pipeline, and from a server without a
// listing: the file is that of the local checkpoint.
func TestImageRemote(t *testing.T) {
	dir := t.TempDir()
	for _, in := range []string{"transformer", "split"} {
		must(t, os.MkdirAll(filepath.Join(dir, in), 0o777))
	}
	var list []safetensorstest.Tensor
	for _, name := range []string{"blocks.0.self_attn.norm_q.weight", "head.modulation", "text_embedding.2.weight"} {
		list = append(list, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: []int64{2, 32},
			Data: bytes.Repeat([]byte{0, 0, 128, 63}, 64)})
	}
	single := filepath.Join(dir, "split", "wan.safetensors")
	const folder = "transformer/diffusion_pytorch_model.safetensors"
	must(t, safetensorstest.Write(single, list, nil))
	must(t, safetensorstest.Write(filepath.Join(dir, filepath.FromSlash(folder)), list, nil))
	must(t, os.WriteFile(filepath.Join(dir, "model_index.json"), []byte(`{"_class_name": "WanPipeline"}`), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "transformer", "config.json"), []byte(`{"_class_name": "WanModel"}`), 0o666))
	write := func(name, endpoint string) []byte {
		job, err := convert.Prepare(t.Context(), name, convert.Options{Remote: checkpoint.Remote{Endpoint: endpoint}})
		must(t, err)
		defer job.Close()
		out := filepath.Join(t.TempDir(), "out.gguf")
		_, err = job.Write(t.Context(), out, writer.Options{})
		must(t, err)
		data, err := os.ReadFile(out)
		must(t, err)
		return data
	}
	want := write(single, "")
	hub := hubtest.Serve(t, "org/Tiny-wan", dir)
	for _, name := range []string{"hf://org/Tiny-wan/split/wan.safetensors", "hf://org/Tiny-wan@main/" + folder,
		"hf://org/Tiny-wan", hub.URL + "/org/Tiny-wan/resolve/main/split/wan.safetensors"} {
		if got := write(name, hub.URL); !bytes.Equal(got, want) {
			t.Errorf("%s: another file", name)
		}
	}
	if got := write(hub.URL+"/org/Tiny-wan/resolve/main/", "http://127.0.0.1:1"); !bytes.Equal(got, want) {
		t.Error("a server without a listing: another file")
	}
	_, err := convert.Prepare(t.Context(), "hf://org/Tiny-wan/none.safetensors",
		convert.Options{Remote: checkpoint.Remote{Endpoint: hub.URL}})
	if err == nil {
		t.Error("no error for a file that is not there")
	}
}

// TestLayoutRemote converts a model in a layout of the diffusers library from a hub, with the parts of one tensor in
// different places of the file: what is written is the file of the local folder.
func TestLayoutRemote(t *testing.T) {
	var list []safetensorstest.Tensor
	add := func(name string, value byte, shape ...int64) {
		n := int64(4)
		for _, d := range shape {
			n *= d
		}
		list = append(list, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape,
			Data: bytes.Repeat([]byte{0, value, 128, 63}, int(n)/4)})
	}
	l := &diffusion.Layouts()[slices.IndexFunc(diffusion.Layouts(), func(l diffusion.Layout) bool {
		return slices.Contains(l.Classes, "ZImageTransformer2DModel")
	})]
	for p := range 3 { // all first parts, then all second ones
		for i, r := range l.Rows {
			if p < len(r.From) {
				name := strings.Replace(strings.Replace(r.From[p], ".*", ".weight", 1), "#", "0", 1)
				add(name, byte(4*i+p), 6, 40)
			}
		}
	}
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "transformer"), 0o777))
	must(t, safetensorstest.Write(filepath.Join(dir, "transformer", "diffusion_pytorch_model.safetensors"), list, nil))
	must(t, os.WriteFile(filepath.Join(dir, "model_index.json"), []byte(`{"_class_name": "ZImagePipeline"}`), 0o666))
	must(t, os.WriteFile(filepath.Join(dir, "transformer", "config.json"),
		[]byte(`{"_class_name": "ZImageTransformer2DModel"}`), 0o666))
	hub := hubtest.Serve(t, "org/Tiny-z", dir)
	var files [][]byte
	for _, name := range []string{dir, "hf://org/Tiny-z",
		"hf://org/Tiny-z/transformer/diffusion_pytorch_model.safetensors"} {
		job, err := convert.Prepare(t.Context(), name, convert.Options{Remote: checkpoint.Remote{Endpoint: hub.URL}})
		must(t, err)
		defer job.Close()
		if job.Architecture() != "lumina2" {
			t.Errorf("%s: %s", name, job.Architecture())
		}
		out := filepath.Join(t.TempDir(), "out.gguf")
		_, err = job.Write(t.Context(), out, writer.Options{})
		must(t, err)
		data, err := os.ReadFile(out)
		must(t, err)
		files = append(files, data)
	}
	if !bytes.Equal(files[0], files[1]) || !bytes.Equal(files[0], files[2]) {
		t.Error("other files")
	}
}
