package config

import (
	"bytes"
	"path"
)

// Decision models (which decide between options) are recognized by files next to config.json or in its place:
//
//	encoder/config.json                          of a ModernBERT: there is no other config.json
//	julia_config.json or rl_agent_config.json    of the layers after it
//	tokenizer/                                   the tokenizer's files
//
//	helper/shim.py                               of OpenJev
//	joint_head_config.json                       of the head of Clef
//	decision_config.json                         of a readout of some tokens, by its format
//
//	config.json                                  of Decision 2.0: names of files, such as
//	backbone/config.json                         of the model, and
//	decision_config.json                         of its head
//	score_bias.json                              what is added to scores
//
// Some are adapters, whose config.json is that of the base model:
//
//	lev_release.json, calibration.json           of Lev
//	schema_config.json                           of Nimble
//	training_config.json, KevHead                of Kev, whose "args" have "head_dim"
//
// Source: the loaders of such directories in the reference.

// The classes of decision models.
const (
	Decider     = "ModernBertDecisionModel"
	OpenJev     = "OpenJevModel"
	Clef        = "ClefModel"
	PplxDecider = "PplxDeciderModel"
	VllmD3      = "VllmD3Model"
	Decision2   = "VllmDecision2Model"
	Lev         = "LevModel"
	Nimble      = "NimbleModel"
	Kev         = "KevModel"
)

const (
	encoderConfig  = "encoder/" + ConfigFile
	shimFile       = "helper/shim.py"
	jointConfig    = "joint_head_config.json"
	decisionConfig = "decision_config.json"
	d3Format       = "d3-code-readout-v1"
	biasFile       = "score_bias.json"
	levFile        = "lev_release.json"
	levCalibration = "calibration.json"
	schemaConfig   = "schema_config.json"
	nimbleTask     = "schema_candidate_classification_v2"
	adapterConfig  = "adapter_config.json"
	trainingConfig = "training_config.json"
)

// deciderConfigs are the files about the layers after a ModernBERT; the first counts.
var deciderConfigs = []string{"julia_config.json", "rl_agent_config.json"}

// Decision is the configuration of a decision model (one that decides between options).
type Decision struct {
	Class string // of the decision model, not of config.json

	file         string // path of the configuration, and its content
	config       []byte
	settings     map[string]any // of the head, nil for none
	settingsFile string         // the file of settings

	// Of an adapter: the revision of the base model, "" if unknown, and the temperatures.
	Revision     string
	Temperatures []Temperature
}

// decisions read the kinds of decision models; each returns nil for other models.
var decisions = []func(Files) (*Decision, error){
	readModernBert,
	nextToConfig(OpenJev, readOpenJev),
	nextToConfig(Clef, readClef),
	readDecision2,
	readReadout,
}

// ReadDecision reads the configurations of a decision model; it returns nil for other models.
func ReadDecision(files Files) (*Decision, error) {
	for _, read := range decisions {
		if d, err := read(files); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// ReadAdapterDecision is ReadDecision for an adapter that turns its base model into a decision model. Call WithBase
// next, for the base model's configuration.
func ReadAdapterDecision(files Files) (d *Decision, err error) {
	_, lev, err := ReadFile(files, levFile)
	if err != nil {
		return nil, err
	}
	schema, err := settingsIn(files, schemaConfig)
	if err != nil {
		return nil, err
	}
	kev, err := isKev(files)
	if err != nil {
		return nil, err
	}
	switch {
	case lev:
		d = &Decision{Class: Lev}
		d.Temperatures, err = readLevTemperatures(files)
	case kev:
		d = &Decision{Class: Kev}
	case schema["task"] == nimbleTask:
		d = &Decision{Class: Nimble, settings: schema, settingsFile: schemaConfig}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, place := range []struct{ file, key string }{{adapterConfig, "revision"}, {trainingConfig, "base_revision"},
		{schemaConfig, "revision"}} {
		values, err := settingsIn(files, place.file)
		if err != nil {
			return nil, err
		}
		if d.Revision, _, err = (Object{values: values, file: place.file}).String(place.key); err != nil ||
			d.Revision != "" {
			return d, err
		}
	}
	return d, nil
}

// WithBase sets the configuration, which is the base model's, after ReadAdapterDecision.
func (d *Decision) WithBase(base Files) (err error) {
	d.file = ConfigFile
	d.config, err = ReadConfig(base, ConfigFile)
	return err
}

// settingsIn returns the JSON object in a file; nil if the file does not exist.
func settingsIn(files Files, name string) (map[string]any, error) {
	data, ok, err := ReadFile(files, name)
	if !ok {
		return nil, err
	}
	return parseRoot(name, data)
}

// nextToConfig returns a reader of decision models whose files next to config.json read recognizes.
func nextToConfig(class string, read func(Files) (found bool, settings map[string]any, from string,
	err error)) func(Files) (*Decision, error) {
	return func(files Files) (*Decision, error) {
		found, settings, from, err := read(files)
		if err != nil || !found {
			return nil, err
		}
		d := &Decision{Class: class, file: ConfigFile, settings: settings, settingsFile: from}
		d.config, err = ReadConfig(files, ConfigFile)
		return d, err
	}
}

func readModernBert(files Files) (*Decision, error) {
	d := &Decision{Class: Decider, file: encoderConfig}
	name, head, err := readDeciderHead(files)
	if err != nil || name == "" {
		return nil, err
	}
	var ok bool
	if d.config, ok, err = ReadFile(files, encoderConfig); !ok {
		return nil, err
	}
	d.settingsFile = name
	d.settings, err = parseRoot(name, head)
	return d, err
}

func readDeciderHead(files Files) (name string, head []byte, err error) {
	for _, name := range deciderConfigs {
		head, ok, err := ReadFile(files, name)
		if ok || err != nil {
			return name, head, err
		}
	}
	return "", nil, nil
}

func readOpenJev(files Files) (found bool, _ map[string]any, _ string, err error) {
	_, found, err = ReadFile(files, shimFile)
	return found, nil, "", err
}

func readClef(files Files) (found bool, settings map[string]any, from string, err error) {
	settings, err = settingsIn(files, jointConfig)
	return settings != nil, settings, jointConfig, err
}

// readDecision2 reads models of Decision 2.0, whose config.json has the paths of the other files.
func readDecision2(files Files) (*Decision, error) {
	data, ok, err := ReadFile(files, ConfigFile)
	if !ok || !bytes.Contains(data, []byte("decision_format")) {
		return nil, err
	}
	o, err := ParseObject(ConfigFile, data)
	if err != nil || o.Value("decision_format") != "vllm-sr-decision" {
		return nil, err
	}
	config, err := o.Sub("backbone").requireString("config")
	if err != nil {
		return nil, err
	}
	head, err := o.requireString("model_config")
	if err != nil {
		return nil, err
	}
	d := &Decision{Class: Decision2, file: path.Join(path.Dir(config), ConfigFile), settingsFile: head}
	if d.config, err = ReadConfig(files, d.file); err != nil {
		return nil, err
	}
	if data, err = ReadConfig(files, head); err != nil {
		return nil, err
	}
	d.settings, err = parseRoot(head, data)
	return d, err
}

func (o Object) requireFloats(key string) ([]float64, error) {
	list, ok, err := o.Floats(key)
	return list, o.requireErr(ok, err, []string{key})
}

func (o Object) requireString(key string) (string, error) {
	s, ok, err := o.String(key)
	return s, o.requireErr(ok, err, []string{key})
}

// readReadout reads models whose output matrix has rows for some tokens only.
func readReadout(files Files) (*Decision, error) {
	settings, err := settingsIn(files, decisionConfig)
	if err != nil || settings == nil {
		return nil, err
	}
	class := ""
	switch format, named := settings["format_id"]; {
	case named && format == d3Format:
		class = VllmD3
	case !named && settings["token_ids"] != nil:
		class = PplxDecider
	default:
		return nil, nil
	}
	return nextToConfig(class, func(Files) (bool, map[string]any, string, error) {
		return true, settings,
			decisionConfig, nil
	})(files)
}

// Parse is ParseAs for a decision model. Its settings become the member "decision" of the configuration.
func (d *Decision) Parse(class string, f *Families) (*Config, error) {
	c, raw, err := parse(class, d.config, f, d.find)
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
	return parseEncoder(class, d.config, f, d.find)
}

func (d *Decision) find(c *Config) (string, error) {
	c.File, c.decision = d.file, d
	if d.settings != nil {
		c.Raw["decision"] = d.settings
	}
	return d.Class, nil
}

// Decision returns the settings of a decision model, with the name of their file; an empty object for other models.
func (v *View) Decision() Object {
	if v.decision == nil {
		return Object{}
	}
	return Object{values: v.decision.settings, file: v.decision.settingsFile}
}
