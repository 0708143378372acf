package config

import (
	"encoding/json"
	"strconv"
)

// Decision is the configuration of a decision model (one that decides between options), which is recognized by files
// next to config.json or in its place, see Rules. Some are adapters, whose config.json is that of the base model.
type Decision struct {
	Class string // of the decision model, not of config.json

	File         string // path of the model's configuration, and its content
	Config       []byte
	Settings     map[string]any // of the head, nil for none
	SettingsFile string         // the file of Settings

	// Of an adapter: the file of torch.save that has its head and Settings, "" for none; the revision of the base model,
	// "" if unknown; and the temperatures.
	HeadFile     string
	Revision     string
	Temperatures []Temperature
}

// DecisionNextTo returns a decision model with the configuration of config.json, and settings from another file.
func DecisionNextTo(files Files, class string, settings map[string]any, from string) (*Decision, error) {
	d := &Decision{Class: class, File: ConfigFile, Settings: settings, SettingsFile: from}
	var err error
	d.Config, err = ReadConfig(files, ConfigFile)
	return d, err
}

// ReadRevision sets the revision of an adapter's base model: from the files of its trainers, the first that has one.
func (d *Decision) ReadRevision(files Files) error {
	for _, place := range []struct{ file, key string }{{"adapter_config.json", "revision"},
		{"training_config.json", "base_revision"}, {"schema_config.json", "revision"}} {
		values, err := ReadSettings(files, place.file)
		if err != nil {
			return err
		}
		if d.Revision, _, err = (Object{values: values, file: place.file}).String(place.key); err != nil ||
			d.Revision != "" {
			return err
		}
	}
	return nil
}

// WithBase sets the configuration, which is the base model's, after an adapter was recognized.
func (d *Decision) WithBase(base Files) (err error) {
	d.File = ConfigFile
	d.Config, err = ReadConfig(base, ConfigFile)
	return err
}

// ReadSettings returns the JSON object in a file; nil if the file does not exist.
func ReadSettings(files Files, name string) (map[string]any, error) {
	data, ok, err := ReadFile(files, name)
	if !ok {
		return nil, err
	}
	return parseRoot(name, data)
}

// SetSettings sets the settings to the values of HeadFile, as returned by package torch.
func (d *Decision) SetSettings(values map[string]any) {
	d.Settings, d.SettingsFile = map[string]any{}, d.HeadFile
	for key, v := range values {
		d.Settings[key] = asJSON(v)
	}
}

// asJSON returns a value of torch.File.Values as encoding/json would decode it.
func asJSON(v any) any {
	switch v := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = asJSON(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, x := range v {
			m[key] = asJSON(x)
		}
		return m
	}
	return v
}

// Parse is ParseAs for a decision model. Its settings become the member "decision" of the configuration.
func (d *Decision) Parse(class string, f *Families) (*Config, error) {
	c, raw, err := parse(class, d.Config, f, d.find)
	if err == nil {
		err = c.mergeTextConfig(raw)
	}
	if err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// ParseEncoder is the package's ParseEncoder for a decision model.
func (d *Decision) ParseEncoder(class string, f *Families) (*Config, error) {
	return parseEncoder(class, d.Config, f, d.find)
}

func (d *Decision) find(c *Config) (string, error) {
	c.File, c.decision = d.File, d
	if d.Settings != nil {
		c.Raw["decision"] = d.Settings
	}
	return d.Class, nil
}

// Decision returns the settings of a decision model, with the name of their file; an empty object for other models.
func (v *View) Decision() Object {
	if v.decision == nil {
		return Object{}
	}
	return Object{values: v.decision.Settings, file: v.decision.SettingsFile}
}

// Decides reports whether the model is a decision model of its own class.
func (v *View) Decides() bool { return v.decision != nil && v.decision.Class == v.Class }
