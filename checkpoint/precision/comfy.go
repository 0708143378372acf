package precision

import (
	"fmt"
	"slices"

	"ggforge/checkpoint/safetensors"
	"ggforge/internal/text/pyjson"
	"ggforge/rows"
)

// maxComfy bounds the text next to a weight that names its format, in bytes. Files have some 40.
const maxComfy = 4 << 10

// comfyFormats are the formats of the weights that have one scale, with the type of their codes.
// Source: comfy/quant_ops.py of ComfyUI.
var comfyFormats = map[string]safetensors.DType{
	"float8_e4m3fn": safetensors.F8_E4M3,
	"float8_e5m2":   safetensors.F8_E5M2,
}

// isComfyFloat8 reports whether the text next to a weight, {"format": "float8_e4m3fn"}, names a format of comfyFormats.
func isComfyFloat8(parts []*Tensor, _ Settings) bool {
	_, err := comfyFormat(parts[1])
	return err == nil
}

// comfyFormat returns the type of the codes by the text.
func comfyFormat(t *Tensor) (safetensors.DType, error) {
	n := t.elements()
	if len(t.Shape) != 1 || n > maxComfy {
		return 0, fmt.Errorf("tensor %q of shape %v, want a text of at most %d bytes", t.Name, t.Shape, maxComfy)
	}
	var buf []byte
	text, err := t.bytes(&buf, 0, n)
	if err != nil {
		return 0, err
	}
	v, err := pyjson.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	o, _ := v.(*pyjson.Object)
	format, _ := o.Get("format").(string)
	d, ok := comfyFormats[format]
	if !ok {
		return 0, fmt.Errorf("tensor %q: format %s", t.Name, pyjson.Describe(o.Get("format")))
	}
	return d, nil
}

// comfyFloat8 returns the rows of parts weight, comfy_quant, weight_scale.
func comfyFloat8(parts []*Tensor, _ Settings) (rows.Source, error) {
	d, err := comfyFormat(parts[1])
	if err != nil {
		return nil, err
	}
	codes, scale := parts[0], parts[2]
	if codes.DType != d {
		return nil, fmt.Errorf("holds %v, but %q names %v", codes.DType, parts[1].Name, d)
	}
	if slices.Contains(codes.Shape, 0) || scale.elements() != 1 {
		return nil, fmt.Errorf("scales %q of shape %v for %v, want one", scale.Name, scale.Shape, codes.Shape)
	}
	return scaledBy(codes, scale, nil, nil)
}

// weightScaled returns the rows of parts weight, scale_weight; others are scales of activations.
func weightScaled(parts []*Tensor, _ Settings) (rows.Source, error) {
	return scaledBy(parts[0], parts[1], nil, nil)
}
