package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// qwen2vl is the language model of Qwen 2 VL and 2.5 VL. Source: the Qwen-VL
// classes of the reference's converter.
var qwen2vl = &Arch{
	Name:         "qwen2vl",
	Classes:      []string{"Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration", "Qwen2VLModel"},
	Tokenizer:    tokenizer.ClassSPMOrGPT2,
	RopeSections: true,
	Metadata:     commonRows,
	Unused:       slices.Concat(visionKeys, windowKeys),
	Expect:       []Expect{silu},
	Rename:       bareNames,
	Tensors:      slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), mlpRows),
}

// visionKeys are ids of tokens that stand for pictures.
var visionKeys = []string{"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id", "vision_token_id"}

// qwen3vl is the language model of Qwen 3 VL, which adds what some layers of the
// part for pictures see to its own first layers.
var qwen3vl = &Arch{
	Name:         "qwen3vl",
	Classes:      []string{"Qwen3VLForConditionalGeneration"},
	Tokenizer:    tokenizer.ClassSPMOrGPT2,
	RopeSections: true,
	Metadata:     slices.Concat(qwen3.Metadata, []Row{{Key: "n_deepstack_layers", Derive: deepstackLayers}}),
	Unused:       qwen3vlUnused,
	Expect:       []Expect{silu},
	Rename:       bareNames,
	Tensors:      qwen3.Tensors,
}

// qwen3vlUnused: the runtime interleaves the sections of this architecture.
var qwen3vlUnused = slices.Concat(visionKeys, windowKeys, []string{"rope_scaling.mrope_interleaved"})

// qwen3vlmoe is qwen3vl with experts, which are stored the other way round:
// [experts, hidden, 2*width], the gate first, and [experts, width, hidden].
var qwen3vlmoe = &Arch{
	Name:         "qwen3vlmoe",
	Classes:      []string{"Qwen3VLMoeForConditionalGeneration"},
	Tokenizer:    tokenizer.ClassGPT2,
	RopeSections: true,
	Metadata:     slices.Concat(qwen3moe.Metadata, []Row{{Key: "n_deepstack_layers", Derive: deepstackLayers}}),
	Unused:       qwen3vlUnused,
	Expect:       qwen3moe.Expect,
	Rename:       bareNames,
	Tensors: slices.Concat(embedRows, normRows, attentionRows(MayBias, NoBias), qkNormRows, expertRows,
		turned(fusedExpertRows)),
}

// turned returns rows of stacks whose matrices are transposed.
func turned(list []TensorRow) []TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].Each = swapped
	}
	return list
}

// deepstackLayers counts the layers of the part for pictures whose states go into
// the language model.
func deepstackLayers(c *Config) (gguf.Value, bool, error) {
	v, ok := c.Sub("vision_config")["deepstack_visual_indexes"]
	if !ok && c.modelType != "" {
		return gguf.Uint32(3), true, nil // what transformers fills in
	}
	list, _, err := asList("vision_config.deepstack_visual_indexes", v, asInt)
	return gguf.Uint32(uint32(len(list))), err == nil, err
}
