package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/hftest"
)

// TestBeside refuses models whose audio codec, in a separate folder, is broken or differs from the runtime's.
func TestBeside(t *testing.T) {
	spec := hftest.Lookup("mm_qwen3_tts")
	const config, weights = "speech_tokenizer/config.json", "speech_tokenizer/model.safetensors"
	replace := func(name, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(string(data), old) {
				t.Fatal(err, "no", old)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(data), old, new)),
				0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		kind  error
		text  string
	}{
		"config missing": {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, config)) },
			fault.Broken, config},
		"no decoder": {replace(config, "decoder_config", "other_config"), fault.Broken, "decoder_config"},
		"layers": {replace(config, `"num_hidden_layers": 8`, `"num_hidden_layers": 7`), fault.Unsupported,
			"decoder_config.num_hidden_layers"},
		"weights missing": {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, weights)) },
			fault.Broken, weights},
		"no tensors": {func(t *testing.T, dir string) {
			if err := safetensorstest.Write(filepath.Join(dir, weights), []safetensorstest.Tensor{
				{Name: "encoder.a", DType: safetensors.F32, Shape: []int64{1}, Data: safetensorstest.F32(1)},
			}, nil); err != nil {
				t.Fatal(err)
			}
		}, fault.Broken, "speech_tokenizer.decoder."},
		"a tensor more": {replace(weights, "encoder.encoder.layers.0.conv.bias", "decodex.encoder.layers.0.conv.bias"),
			fault.Unsupported, "decodex."},
		"no speaker encoder": {replace("config.json", `"speaker_encoder_config"`, `"speaker_encoder_confix"`),
			fault.Unsupported, "speaker_encoder_config"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := spec.Write(t.TempDir(), spec.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			job, err := convert.Prepare(t.Context(), dir, convert.Options{MMProj: true})
			if err == nil {
				job.Close()
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}
