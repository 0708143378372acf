package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/rows"
)

// marksKey is the metadata of safetensors files with the formats of weights, {"layers": {LAYER: {"format": ...}}}, for
// files without tensors LAYER.comfy_quant. Source: convert_old_quants in comfy/utils.py of ComfyUI.
const marksKey = "_quantization_metadata"

// addMarks returns stored with a tensor LAYER.comfy_quant for each weight that the metadata have a format of.
func addMarks(stored []*precision.Tensor, metadata map[string]string) ([]*precision.Tensor, error) {
	text, ok := metadata[marksKey]
	if !ok || len(stored) == 0 {
		return stored, nil
	}
	var marks struct {
		Layers map[string]json.RawMessage `json:"layers"`
	}
	file := stored[0].File
	if err := json.Unmarshal([]byte(text), &marks); err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: metadata %s: %w", file, marksKey, err)
	}
	has := make(map[string]bool, len(stored))
	names := make([]string, len(stored))
	for i, t := range stored {
		has[t.Name], names[i] = true, t.Name
	}
	prefix := diffusion.Prefix(names)
	stored = slices.Clone(stored)
	for _, key := range slices.Sorted(maps.Keys(marks.Layers)) {
		layer, mark := key, marks.Layers[key]
		if !has[layer+".weight"] {
			layer = prefix + layer // some tools leave it out
		}
		if name := layer + ".comfy_quant"; has[layer+".weight"] && !has[name] {
			has[name] = true
			stored = append(stored, &precision.Tensor{Name: name, DType: safetensors.U8, Shape: []int64{int64(len(mark))},
				File: file, Mapped: mark})
		}
	}
	return stored, nil
}

// mostPadding is the number of rows to a multiple of which weights are padded.
const mostPadding = 32

// withoutPadding returns the rows of a weight of ComfyUI's formats without those that pad them to whole blocks, by the
// number of elements of the layer's bias.
func (j *Job) withoutPadding(w *precision.Weight, src rows.Source) (rows.Source, error) {
	ne := src.NE()
	if w.Scheme() != "comfy_quant" || len(ne) != 2 {
		return src, nil
	}
	bias := w.Name[:len(w.Name)-len("weight")] + "bias"
	for i := range j.model.weights {
		other := &j.model.weights[i]
		if shape := other.First().Shape; other.Name == bias && len(shape) == 1 && shape[0] > 0 && shape[0] < ne[1] &&
			ne[1]-shape[0] < mostPadding {
			part, err := rows.Slice(src, 1, 0, shape[0])
			if err != nil {
				return nil, fmt.Errorf("%s: tensor %q: %w", w.First().File, w.Name, err)
			}
			return part, nil
		}
	}
	return src, nil
}
