package convert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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
