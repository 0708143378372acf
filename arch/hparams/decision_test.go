package hparams

import (
	"errors"
	"slices"
	"testing"

	"ggforge/fault"
)

// TestDecider reads the configurations of a model that decides between options.
func TestDecider(t *testing.T) {
	const encoder = `{"architectures": ["ModernBertForMaskedLM"], "hidden_size": 64}`
	dir := sideFiles{"encoder/config.json": encoder, "rl_agent_config.json": `{"head_layers": 2, "temperature": [1, 2], "temperature_by_options": {"noul:2": 3, "choice:2": 4}}`}
	d, err := ReadDecision(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.View(Options{}).Gather(dir, Facts{}, []Source{DeciderFiles})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := v.Decision().Require("head_layers"); c.Class != Decider || c.Named != "" || n != 2 || err != nil {
		t.Errorf("class %s, %d layers, %v", c.Class, n, err)
	}
	if want := []Temperature{{"choice", 1}, {"score", 2}, {"noul:2", 3}, {"choice:2", 4}}; !slices.Equal(v.Facts.Temperatures, want) {
		t.Errorf("temperatures %v, want %v", v.Facts.Temperatures, want)
	}
	for _, other := range []sideFiles{{"config.json": encoder}, {"encoder/config.json": encoder}, {"rl_agent_config.json": "{}"}} {
		if d, err := ReadDecision(other); d != nil || err != nil {
			t.Errorf("%v: %v, %v, want another model", other, d, err)
		}
	}
	for _, head := range []string{`[]`, `{"temperature": 1}`, `{"temperature": ["x"]}`, `{"temperature_by_options": []}`, `{"temperature_by_options": {"choice": null}}`} {
		files := sideFiles{"encoder/config.json": encoder, "julia_config.json": head}
		d, err := ReadDecision(files)
		var c *Config
		if err == nil {
			c, err = d.Parse("", nil)
		}
		if err == nil {
			_, err = c.View(Options{}).Gather(files, Facts{}, []Source{DeciderFiles})
		}
		if !errors.Is(err, fault.Broken) {
			t.Errorf("%s: %v, want broken input", head, err)
		}
	}
}

// FuzzDecider reads any text as the configurations of such models, and as one with
// temperatures in config.json.
func FuzzDecider(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 64}`), []byte(`{"temperature": [1], "temperature_by_options": {"noul:2": 3}, "temperatures": {"choice:3-5": 1e400}}`))
	f.Add([]byte(`{"text_config": {"hidden_size": 64}}`), []byte(`{"format_id": "d3-code-readout-v1", "token_ids": [1, -1, 1e9], "layers": 1e300}`))
	f.Add([]byte(`{"hidden_size": 64}`), []byte(`{"offsets": {"2": [1, -1e400], "3": []}}`))
	f.Add([]byte(`{"hidden_size": 64}`), []byte(`"backbone": {"config": "x/y.json"}, "model_config": "x/config.json"}`))
	f.Add([]byte(`{"architectures": []}`), []byte(`{"token_ids": {}, "temperature": "1"}`))
	f.Fuzz(func(t *testing.T, config, head []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%v has no kind of a broken file", err)
			}
		}
		for _, dir := range []files{
			{"config.json": head, "julia_config.json": head, "encoder/config.json": config},
			{"config.json": config, "joint_head_config.json": head},
			{"config.json": config, "decision_config.json": head},
			{"config.json": config, "helper/shim.py": head},
			{"config.json": []byte(`{"decision_format": "vllm-sr-decision", "backbone": {"config": "b/config.json"}, "model_config": "d.json"}`), "b/config.json": config, "d.json": head, "score_bias.json": head},
			{"config.json": append([]byte(`{"decision_format": "vllm-sr-decision", `), head...), "x/config.json": config},
		} {
			d, err := ReadDecision(dir)
			if check(err); d == nil {
				continue
			}
			if tower, err := d.ParseTower("", nil); err == nil {
				tower.View(Options{}).Decision().Ints("token_ids")
			} else {
				check(err)
			}
			c, err := d.Parse("", nil)
			if check(err); err != nil {
				continue
			}
			for _, source := range []Source{DeciderFiles, TemperatureFiles, FirstDenseFiles, ScoreBiasFiles} {
				_, err := c.View(Options{}).Gather(dir, Facts{}, []Source{source})
				check(err)
			}
		}
	})
}
