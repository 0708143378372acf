package config

import (
	"errors"
	"io/fs"
	"testing"

	"ggforge/fault"
)

// files are side files by their names.
type files map[string][]byte

func (f files) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// FuzzFacts reads any text as the side files that facts are in.
func FuzzFacts(f *testing.F) {
	f.Add([]byte(`[{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}, {"type": "x.Dense", "path": "2_Dense"}]`),
		[]byte(`{"pooling_mode_mean_tokens": true}`), []byte(`{"in_features": 4, "out_features": -1}`))
	f.Add([]byte(`[{"type": "x.Pooling"}]`), []byte(`{"pooling_mode": "max"}`), []byte(`{}`))
	f.Add([]byte(`null`), []byte(``), []byte(`[]`))
	f.Fuzz(func(t *testing.T, modules, pooling, dense []byte) {
		config, err := Parse([]byte(`{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		side := files{modulesFile: modules, "1_Pooling/config.json": pooling, "config.json": pooling,
			"embedding_config.json": pooling, "2_Dense/config.json": dense, "3_Dense/config.json": dense}
		_, err = config.View(Options{Dense: true}).Gather(side, Facts{}, []*Source{PoolingFiles, DenseFiles})
		if err != nil && !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%v has no kind of a broken file", err)
		}
	})
}

// FuzzEncoder reads any text as the configuration of an encoder, and as the files
// next to it.
func FuzzEncoder(f *testing.F) {
	f.Add([]byte(`{"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "vision_config": {"model_type": "pixtral", "architectures": null}, "text_config": {}}`),
		[]byte(`{"image_mean": [0.5], "media_proc_cfg": {"image_std": [1e300]}}`))
	f.Add([]byte(`{"architectures": ["Qwen2_5OmniModel"], "model_type": "qwen2_5_omni", "thinker_config": {"vision_config": {"depth": 1e9}, "audio_config": [], "text_config": {"hidden_size": 3}}}`),
		[]byte(`{"media_proc_cfg": 3}`))
	f.Add([]byte(`{"architectures": ["Qwen2VLModel"], "model_type": "qwen2_vl", "hidden_size": 8, "vision_config": null}`), []byte(`[]`))
	check := func(t *testing.T, err error) {
		if err != nil && !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%v has no kind of a broken file", err)
		}
	}
	f.Fuzz(func(t *testing.T, config, processor []byte) {
		side := files{preprocessorFile: processor, processorFile: processor}
		c, err := ParseEncoder("", config, nil)
		if err == nil {
			v := c.View(Options{})
			if v, err = v.Gather(side, Facts{}, []*Source{ProcessorFiles}); err == nil {
				v.Processor().Floats("image_mean")
				v.Text().Int("hidden_size")
				v.Vision().Int("depth")
				v.UnreadOf(v.Vision())
				v.Defaulted()
			}
		}
		check(t, err)
	})
}
