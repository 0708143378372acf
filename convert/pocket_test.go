package convert_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/fault"
)

// TestWithoutConfig checks that directories without a config.json are refused if their tensors do not determine the
// model.
func TestWithoutConfig(t *testing.T) {
	const embedding = "flow_lm.conditioner.embed.weight"
	whole := map[string][]int64{"flow_lm.bos_emb": {2}, embedding: {3, 64},
		"flow_lm.transformer.layers.0.norm1.weight": {64}, "flow_lm.transformer.layers.0.linear1.weight": {2, 64},
		"mimi.encoder_transformer.transformer.layers.0.norm1.weight":   {64},
		"mimi.encoder_transformer.transformer.layers.0.linear1.weight": {2, 64}}
	for name, c := range map[string]struct {
		change map[string][]int64
		kind   error
		text   string
	}{
		"another model":  {map[string][]int64{"flow_lm.bos_emb": nil}, fault.Broken, "config.json"},
		"no embedding":   {map[string][]int64{embedding: nil}, fault.Broken, embedding},
		"one dimension":  {map[string][]int64{embedding: {3}}, fault.Broken, "want 2 dimensions"},
		"narrow":         {map[string][]int64{embedding: {3, 32}}, fault.Unsupported, "multiple of 64"},
		"tensors absent": {nil, fault.Broken, "flow_lm.input_linear.weight"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var list []safetensorstest.Tensor
			for tensor, shape := range whole {
				if other, ok := c.change[tensor]; ok {
					shape = other
				}
				if shape == nil {
					continue
				}
				n := int64(1)
				for _, d := range shape {
					n *= d
				}
				list = append(list, safetensorstest.Tensor{Name: tensor, DType: safetensors.F32, Shape: shape,
					Data: safetensorstest.F32(make([]float32, n)...)})
			}
			if err := safetensorstest.Write(filepath.Join(dir, "model.safetensors"), list, nil); err != nil {
				t.Fatal(err)
			}
			job, err := convert.Prepare(t.Context(), dir, convert.Options{})
			if err == nil {
				job.Close()
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}
