package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// sized are specs with numbers of layers by which the runtime selects a model type, or with windows and lengths that
// are shorter than the text; the variants of the specs have other ones.
var sized = []struct {
	spec, set string
	keys      map[string]gguf.Value
	swapped   bool // the first two layers change places
}{
	{"baichuan", `{"num_hidden_layers": 32}`, nil, false},
	{"baichuan", `{"num_hidden_layers": 40}`, nil, false},
	{"exaone4", `{"num_hidden_layers": 64, "layer_types": null}`, nil, false},
	{"deepseek-v2-lite", `{"num_hidden_layers": 27}`, nil, false},
	{"kimi-vl", `{"text_config": {"num_hidden_layers": 27}}`, nil, false},
	{"mistral4", `{}`, map[string]gguf.Value{"attention.temperature_scale": gguf.Float32(0.3),
		"attention.temperature_length": gguf.Uint32(16)}, false},
	{"ministral3", `{}`, map[string]gguf.Value{"attention.temperature_scale": gguf.Float32(0.3),
		"rope.scaling.original_context_length": gguf.Uint32(16)}, false},
	{"gpt_oss", `{"unpacked": true, "quantization_config": null}`,
		map[string]gguf.Value{"attention.sliding_window": gguf.Uint32(16)}, false},
	{"gemma4", `{}`, map[string]gguf.Value{"attention.sliding_window": gguf.Uint32(16)}, false},
	{"mimo2", `{}`, map[string]gguf.Value{"attention.sliding_window": gguf.Uint32(16)}, false},
	{"afmoe", `{}`, map[string]gguf.Value{"attention.sliding_window": gguf.Uint32(16)}, false},
	{"qwen3_asr", `{}`, map[string]gguf.Value{"rope.dimension_sections": gguf.Array(gguf.Int32Type, gguf.Int32(6),
		gguf.Int32(4), gguf.Int32(4), gguf.Int32(2))}, false},
	// the runtime does not finish if the first layer has no attention
	{"plamo2", `{}`, map[string]gguf.Value{"attention.head_count": gguf.Int32s([]int32{4, 0, 0, 4}),
		"attention.head_count_kv": gguf.Int32s([]int32{2, 0, 0, 2})}, true},
}

// TestEvaluateSized is TestEvaluate for the specs of sized.
func TestEvaluateSized(t *testing.T) {
	o := start(t)
	text := work + "/text.txt"
	must(t, os.WriteFile(root+text, []byte(evalWords), 0o666))
	for i, c := range sized {
		t.Run(fmt.Sprint(i, c.spec), func(t *testing.T) {
			s, v := hftest.Lookup(c.spec), hftest.Variant{Name: "sized", Seed: 7, DType: "BF16", Set: c.set, Out: "f32"}
			_, err := s.Write(root+work+"/specs/sized", v)
			must(t, err)
			dir, file := root+work+"/specs/sized/"+s.Name, work+"/f32.gguf"
			convertBy(t, dir, root+file, "f32", s.PreTokenizer(), s.Arguments(dir, v)...)
			m, err := model.Open(root + file)
			must(t, err)
			defer m.Close()
			edited := &writer.File{Path: root + work + "/edited.gguf", Metadata: m.Metadata}
			for key, value := range c.keys {
				edited.Metadata.Set(m.Architecture()+"."+key, value)
			}
			for _, x := range m.Tensors {
				name := x.Name
				if c.swapped {
					if rest, ok := strings.CutPrefix(name, "blk.0."); ok {
						name = "blk.1." + rest
					} else if rest, ok := strings.CutPrefix(name, "blk.1."); ok {
						name = "blk.0." + rest
					}
				}
				edited.Tensors = append(edited.Tensors, writer.Tensor{Name: name, Type: x.Type, Source: x.Source})
			}
			_, err = writer.Write(context.Background(), edited, writer.Options{Force: true})
			must(t, err)
			o.evaluate(t, work+"/edited.gguf", text, 64, 6)
		})
	}
}
