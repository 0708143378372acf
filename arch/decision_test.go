package arch

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"ggforge/arch/config"
	"ggforge/fault"
)

// TestDecider reads the configurations of a decision model.
func TestDecider(t *testing.T) {
	const encoder = `{"architectures": ["ModernBertForMaskedLM"], "hidden_size": 64}`
	dir := sideFiles{"encoder/config.json": encoder,
		"rl_agent_config.json": `{"head_layers": 2, "temperature": [1, 2], "temperature_by_options": {"noul:2": 3, "choice:2": 4}}`}
	d, err := ReadDecision(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Parse("", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.View(config.Options{}).Gather(dir, config.Facts{}, []*config.Source{deciderFiles})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := v.Decision().Require("head_layers"); c.Class != deciderClass || c.Named != "" || n != 2 || err != nil {
		t.Errorf("class %s, %d layers, %v", c.Class, n, err)
	}
	if want := []config.Temperature{{Kind: "choice", Value: 1}, {Kind: "score", Value: 2},
		{Kind: "noul:2", Value: 3}, {Kind: "choice:2", Value: 4}}; !slices.Equal(v.Facts.Temperatures, want) {
		t.Errorf("temperatures %v, want %v", v.Facts.Temperatures, want)
	}
	for _, other := range []sideFiles{{"config.json": encoder}, {"encoder/config.json": encoder},
		{"rl_agent_config.json": "{}"}} {
		if d, err := ReadDecision(other); d != nil || err != nil {
			t.Errorf("%v: %v, %v, want another model", other, d, err)
		}
	}
	for _, head := range []string{`[]`, `{"temperature": 1}`, `{"temperature": ["x"]}`,
		`{"temperature_by_options": []}`, `{"temperature_by_options": {"choice": null}}`} {
		files := sideFiles{"encoder/config.json": encoder, "julia_config.json": head}
		d, err := ReadDecision(files)
		var c *config.Config
		if err == nil {
			c, err = d.Parse("", nil)
		}
		if err == nil {
			_, err = c.View(config.Options{}).Gather(files, config.Facts{}, []*config.Source{deciderFiles})
		}
		if !errors.Is(err, fault.Broken) {
			t.Errorf("%s: %v, want broken input", head, err)
		}
	}
}

// TestDecisionClasses checks the files by which decision models are recognized.
func TestDecisionClasses(t *testing.T) {
	const base, pointer = `{"hidden_size": 64}`,
		`{"decision_format": "vllm-sr-decision", "backbone": {"config": "b/config.json"}, "model_config": "decision_config.json"}`
	for want, list := range map[string][]sideFiles{
		openJevClass:   {{"config.json": base, "helper/shim.py": ""}},
		clefClass:      {{"config.json": base, "joint_head_config.json": "{}"}},
		pplxClass:      {{"config.json": base, "decision_config.json": `{"token_ids": [1]}`}},
		d3Class:        {{"config.json": base, "decision_config.json": `{"format_id": "d3-code-readout-v1"}`}},
		decision2Class: {{"config.json": pointer, "b/config.json": base, "decision_config.json": `{"token_ids": [1]}`}},
		levClass:       {{"lev_release.json": "", "calibration.json": `{"temperatures": {}}`}},
		nimbleClass:    {{"schema_config.json": `{"task": "schema_candidate_classification_v2"}`}},
		kevClass:       {{"training_config.json": `{"args": {"head_dim": 256}}`}},
		"": {{"config.json": base}, {"training_config.json": `{"args": {"lora": 1}}`},
			{"training_config.json": `{"args": ["head_dim"]}`}, {"training_config.json": `[1`},
			{"config.json": base, "decision_config.json": `{"token_ids": [1], "format_id": "other"}`},
			{"config.json": base, "decision_config.json": `{"head_dim": 1}`},
			{"config.json": `{"decision_format": "other"}`}, {"schema_config.json": `{"task": "other"}`},
			{"encoder/config.json": base}},
	} {
		for _, files := range list {
			got := ""
			d, err := ReadDecision(files)
			if d == nil && err == nil {
				d, err = ReadAdapterDecision(files)
			}
			if d != nil {
				got = d.Class
			}
			if got != want || err != nil {
				t.Errorf("%v: class %q, %v, want %q", files, got, err, want)
			}
		}
	}
	for _, files := range []sideFiles{{"helper/shim.py": ""}, {"joint_head_config.json": "{}"},
		{"config.json": pointer}, {"lev_release.json": ""}, {"training_config.json": `{"args": {"head_dim": 1}`}} {
		d, err := ReadDecision(files)
		if err == nil && d == nil {
			_, err = ReadAdapterDecision(files)
		}
		if !errors.Is(err, fault.Broken) {
			t.Errorf("%v: %v, want broken input", files, err)
		}
	}
}

// sideBytes are files by name.
type sideBytes map[string][]byte

func (f sideBytes) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// FuzzDecider reads any text as the configurations of a decision model, and as a config.json with temperatures.
func FuzzDecider(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 64}`),
		[]byte(`{"temperature": [1], "temperature_by_options": {"noul:2": 3}, "temperatures": {"choice:3-5": 1e400}}`))
	f.Add([]byte(`{"text_config": {"hidden_size": 64}}`),
		[]byte(`{"format_id": "d3-code-readout-v1", "token_ids": [1, -1, 1e9], "layers": 1e300}`))
	f.Add([]byte(`{"hidden_size": 64}`), []byte(`{"offsets": {"2": [1, -1e400], "3": []}}`))
	f.Add([]byte(`{"hidden_size": 64}`), []byte(`"backbone": {"config": "x/y.json"}, "model_config": "x/config.json"}`))
	f.Add([]byte(`{"revision": null, "base_revision": "x"}`),
		[]byte(`{"temperatures": {"choice:A:small": 1.5, "noul:B": 1e999, "x": 1}}`))
	f.Add([]byte(`{"revision": 3}`), []byte(`"revision": "main"}`))
	f.Add([]byte(`{"architectures": []}`), []byte(`{"token_ids": {}, "temperature": "1"}`))
	f.Fuzz(func(t *testing.T, text, head []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%v has no kind of a broken file", err)
			}
		}
		for _, dir := range []sideBytes{
			{"config.json": head, "julia_config.json": head, "encoder/config.json": text},
			{"config.json": text, "joint_head_config.json": head},
			{"config.json": text, "decision_config.json": head},
			{"config.json": text, "helper/shim.py": head},
			{"config.json": []byte(
				`{"decision_format": "vllm-sr-decision", "backbone": {"config": "b/config.json"}, "model_config": "d.json"}`), "b/config.json": text, "d.json": head, "score_bias.json": head},
			{"lev_release.json": nil, "calibration.json": head, "adapter_config.json": text},
			{"schema_config.json": append([]byte(`{"task": "schema_candidate_classification_v2", `), head...),
				"adapter_config.json": text, "training_config.json": text},
			{"training_config.json": append([]byte(`{"args": {"head_dim": 1}, "base_revision": `),
				append(head, '}')...), "adapter_config.json": text},
			{"config.json": append([]byte(`{"decision_format": "vllm-sr-decision", `), head...),
				"x/config.json": text},
		} {
			d, err := ReadDecision(dir)
			if d == nil && err == nil {
				if d, err = ReadAdapterDecision(dir); d != nil && err == nil {
					err = d.WithBase(sideBytes{"config.json": text})
				}
			}
			if check(err); d == nil || err != nil {
				continue
			}
			if encoder, err := d.ParseEncoder("", nil); err == nil {
				encoder.View(config.Options{}).Decision().Ints("token_ids")
			} else {
				check(err)
			}
			c, err := d.Parse("", nil)
			if check(err); err != nil {
				continue
			}
			for _, source := range []*config.Source{deciderFiles, d1Temperatures, config.FirstDenseFiles, scoreBias} {
				_, err := c.View(config.Options{}).Gather(dir, config.Facts{}, []*config.Source{source})
				check(err)
			}
		}
	})
}
