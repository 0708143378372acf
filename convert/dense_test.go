package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/hftest"
)

// TestDense converts an embedding model with its dense module, and checks that broken modules are refused. test/interop
// compares the bytes with the reference's.
func TestDense(t *testing.T) {
	specs := hftest.Specs()
	spec := specs[slices.IndexFunc(specs, func(s *hftest.Spec) bool { return s.Name == "embeddinggemma" })]
	const good = `{"in_features": 64, "out_features": 32, "activation_function": "torch.nn.modules.linear.Identity"}`
	for name, c := range map[string]struct {
		config, tensor string
		shape          []int64
		kind           error
		text           string
	}{
		"good":      {good, "linear.weight", []int64{32, 64}, nil, ""},
		"shape":     {good, "linear.weight", []int64{64, 32}, fault.Broken, "[64 32]"},
		"name":      {good, "other.weight", []int64{32, 64}, fault.Broken, "other.weight"},
		"no config": {"", "linear.weight", []int64{32, 64}, fault.Broken, "2_Dense/config.json"},
		"activation": {strings.Replace(good, "Identity", "Tanh", 1), "linear.weight", []int64{32, 64},
			fault.Unsupported, "Tanh"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := spec.Write(t.TempDir(), spec.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "2_Dense"), 0o777); err != nil {
				t.Fatal(err)
			}
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(dir, "2_Dense", "config.json"), []byte(c.config),
					0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := safetensorstest.Write(filepath.Join(dir, "2_Dense", "model.safetensors"),
				[]safetensorstest.Tensor{
					{Name: c.tensor, DType: safetensors.F32, Shape: c.shape,
						Data: safetensorstest.F32(make([]float32, 32*64)...)},
				}, nil); err != nil {
				t.Fatal(err)
			}
			job, err := convert.Prepare(t.Context(), dir, convert.Options{Dense: true})
			if c.kind != nil {
				if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			if p := job.Plan[0]; p.Name != "dense_2.weight" || !slices.Equal(p.Source.NE(), []int64{64, 32}) {
				t.Errorf("first tensor %+v", p)
			}
			if v, _ := job.Metadata().Get("gemma-embedding.dense_2_feat_out"); v != gguf.Uint32(32) {
				t.Errorf("size %v", v)
			}
		})
	}
}
