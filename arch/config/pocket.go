package config

import (
	"encoding/json"
	"strings"

	"ggforge/fault"
)

// PocketTTS is a class of models without a config.json: the sizes follow from the shapes of the tensors. Like the
// reference, ggforge ignores a config.json if there is one.
const PocketTTS = "PocketTTSModel"

// IsPocketTTS reports whether the shapes of tensors, by name, are from a Pocket TTS.
func IsPocketTTS(shapes map[string][]int64) bool { return shapes["flow_lm.bos_emb"] != nil }

// BeforeVoice is the key that is true if a Pocket TTS has a learned vector before a voice.
const BeforeVoice = "insert_bos_before_voice"

// ParsePocketTTS is ParseAs, or ParseEncoder, for the shapes of the tensors in a file.
// Source: the loader of the reference's pockettts.py.
func ParsePocketTTS(file string, shapes map[string][]int64, encoder bool) (*Config, error) {
	var err error
	size := func(name string, dims, dim int) int64 {
		shape := shapes[name]
		switch {
		case err != nil:
		case shape == nil:
			err = fault.Errorf(fault.Broken, "%s: has no tensor %q, whose shape gives the size of a Pocket TTS model",
				file, name)
		case len(shape) != dims:
			err = fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want %d dimensions", file, name, shape, dims)
		default:
			return shape[dim]
		}
		return 0
	}
	layers := func(prefix string) (n int64) {
		for name := range shapes {
			rest, ok := strings.CutPrefix(name, prefix)
			number, rest, _ := strings.Cut(rest, ".")
			if ok && rest == "norm1.weight" && number != "" && strings.Trim(number, "0123456789") == "" {
				n++
			}
		}
		return n
	}
	const text, audio, embedding = "flow_lm.transformer.layers.", "mimi.encoder_transformer.transformer.layers.",
		"flow_lm.conditioner.embed.weight"
	const headDim = 64 // in all models
	width, audioWidth := size(embedding, 2, 1), size(audio+"0.norm1.weight", 1, 0)
	own := int64(1) // learned rows after the embedding of text
	_, before := shapes["flow_lm.bos_before_voice"]
	if before {
		own++
	}
	config := map[string]any{
		"architectures": []string{PocketTTS}, "model_type": "pockettts",
		"num_hidden_layers": layers(text), "hidden_size": width, "intermediate_size": size(text+"0.linear1.weight", 2,
			0), "num_attention_heads": width / headDim,
		"max_position_embeddings": 4096, // bounds the KV cache; the model has no limit
		"vocab_size":              size(embedding, 2, 0) + own, BeforeVoice: before,
		"rope_theta": 10000.0, "layer_norm_eps": 1e-5,
		audioConfig: map[string]any{
			"num_hidden_layers": layers(audio), "hidden_size": audioWidth,
			"intermediate_size": size(audio+"0.linear1.weight", 2, 0), "num_attention_heads": audioWidth / headDim,
		},
	}
	if err != nil {
		return nil, err
	}
	for _, n := range []int64{width, audioWidth} {
		if n == 0 || n%headDim != 0 {
			return nil, fault.Errorf(fault.Unsupported,
				"%s: a Pocket TTS that is %d wide, want a multiple of %d, the size of a head", file, n, headDim)
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	parse := ParseAs
	if encoder {
		parse = ParseEncoder
	}
	c, err := parse("", data, nil)
	if err == nil {
		c.File = file
	}
	return c, err
}
