package config

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Models that decide between options are known by files next to config.json, or by
// what they have in its place:
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

// The classes that such models are taken as.
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

// KevHead is the file with the head of Kev and its settings, one of torch.save.
const KevHead = "head.pt"

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

// Decision is what the files of a model that decides between options say.
type Decision struct {
	Class string // that the model is taken as

	file     string // of the configuration, and what is in it
	config   []byte
	settings map[string]any // of what comes after the model, nil for none
	from     string         // the file of settings

	// Of an adapter: the revision of the base model, "" if no file says it, and the
	// temperatures.
	Revision     string
	Temperatures []Temperature
}

// decisions find such models; each returns nil for other ones.
var decisions = []func(Files) (*Decision, error){
	readModernBert,
	besideConfig(OpenJev, readOpenJev),
	besideConfig(Clef, readClef),
	readDecision2,
	readReadout,
}

// ReadDecision reads the configurations of a model that decides between options; it
// returns nil for a directory of another one.
func ReadDecision(files Files) (*Decision, error) {
	for _, read := range decisions {
		if d, err := read(files); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// ReadAdapterDecision is ReadDecision for an adapter that makes a model of its base which
// decides between options. The configuration is that of the base, see On.
func ReadAdapterDecision(files Files) (d *Decision, err error) {
	_, lev, err := readFile(files, levFile)
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
		d = &Decision{Class: Nimble, settings: schema, from: schemaConfig}
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

// isKev reports whether an adapter was trained with a head that points at options. Any
// trainer may write a file of that name: others are not looked into.
func isKev(files Files) (bool, error) {
	data, ok, err := readFile(files, trainingConfig)
	if !ok || !bytes.Contains(data, []byte(`"head_dim"`)) {
		return false, err
	}
	training, err := parseRoot(trainingConfig, data)
	args, _ := training["args"].(map[string]any)
	_, ok = args["head_dim"]
	return ok, err
}

// Settle completes what ReadAdapterDecision has read with settings that are in no JSON
// file: values of file as package torch has them.
func (d *Decision) Settle(file string, values map[string]any) {
	d.settings, d.from = map[string]any{}, file
	for key, v := range values {
		d.settings[key] = asJSON(v)
	}
}

// asJSON is a value of torch.File.Values as one that a configuration has.
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

// readLevTemperatures reads the temperatures of Lev that are of the readout of labels: those
// called KIND:A or KIND:A:NUMBER of options.
func readLevTemperatures(files Files) (list []Temperature, err error) {
	data, err := ReadConfig(files, levCalibration)
	if err != nil {
		return nil, err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", levCalibration, err)
	}
	root, _ := v.(*pyjson.Object)
	temperatures, ok := root.Get("temperatures").(*pyjson.Object)
	if !ok {
		return nil, fault.Errorf(fault.Broken, "%s: key \"temperatures\": want an object, found %s", levCalibration,
			pyjson.Describe(root.Get("temperatures")))
	}
	values := Object{values: temperatures.Map(), prefix: "temperatures.", file: levCalibration}
	for _, name := range temperatures.Names {
		parts := strings.Split(name, ":")
		if len(parts) < 2 {
			return nil, fault.Errorf(fault.Broken, "%s: key \"temperatures\": want names such as choice:A, found %q",
				levCalibration, name)
		}
		if parts[1] != "A" {
			continue // of the head for many options, which files do not have
		}
		f, err := values.RequireFloat(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Temperature{strings.Join(slices.Delete(parts, 1, 2), "."), f})
	}
	return list, nil
}

// On completes what ReadAdapterDecision has read with the configuration of the base model.
func (d *Decision) On(base Files) (err error) {
	d.file = ConfigFile
	d.config, err = ReadConfig(base, ConfigFile)
	return err
}

// settingsIn returns the object in a file; nil when there is no such file.
func settingsIn(files Files, name string) (map[string]any, error) {
	data, ok, err := readFile(files, name)
	if !ok {
		return nil, err
	}
	return parseRoot(name, data)
}

// besideConfig completes what read finds next to config.json.
func besideConfig(class string, read func(Files) (found bool, settings map[string]any, from string,
	err error)) func(Files) (*Decision, error) {
	return func(files Files) (*Decision, error) {
		found, settings, from, err := read(files)
		if err != nil || !found {
			return nil, err
		}
		d := &Decision{Class: class, file: ConfigFile, settings: settings, from: from}
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
	if d.config, ok, err = readFile(files, encoderConfig); !ok {
		return nil, err
	}
	d.from = name
	d.settings, err = parseRoot(name, head)
	return d, err
}

func readDeciderHead(files Files) (name string, head []byte, err error) {
	for _, name := range deciderConfigs {
		head, ok, err := readFile(files, name)
		if ok || err != nil {
			return name, head, err
		}
	}
	return "", nil, nil
}

func readOpenJev(files Files) (found bool, _ map[string]any, _ string, err error) {
	_, found, err = readFile(files, shimFile)
	return found, nil, "", err
}

func readClef(files Files) (found bool, settings map[string]any, from string, err error) {
	settings, err = settingsIn(files, jointConfig)
	return settings != nil, settings, jointConfig, err
}

// readDecision2 finds the models of Decision 2.0, whose config.json says where their files
// are.
func readDecision2(files Files) (*Decision, error) {
	data, ok, err := readFile(files, ConfigFile)
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
	d := &Decision{Class: Decision2, file: path.Join(path.Dir(config), ConfigFile), from: head}
	if d.config, err = ReadConfig(files, d.file); err != nil {
		return nil, err
	}
	if data, err = ReadConfig(files, head); err != nil {
		return nil, err
	}
	d.settings, err = parseRoot(head, data)
	return d, err
}

// readScoreBias reads the lists of Facts.ScoreBias in the order of the file.
func readScoreBias(files Files, _ *View, f *Facts) error {
	data, err := ReadConfig(files, biasFile)
	if err != nil {
		return err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", biasFile, err)
	}
	root, _ := v.(*pyjson.Object)
	lists, ok := root.Get("offsets").(*pyjson.Object)
	if !ok {
		return fault.Errorf(fault.Broken, "%s: key \"offsets\": want an object, found %s", biasFile,
			pyjson.Describe(root.Get("offsets")))
	}
	offsets := Object{values: lists.Map(), prefix: "offsets.", file: biasFile}
	for _, name := range lists.Names {
		list, err := offsets.requireFloats(name)
		if err != nil {
			return err
		}
		f.ScoreBias = append(f.ScoreBias, list)
	}
	return nil
}

func (o Object) requireFloats(key string) ([]float64, error) {
	list, ok, err := o.Floats(key)
	return list, o.needed(ok, err, []string{key})
}

func (o Object) requireString(key string) (string, error) {
	s, ok, err := o.String(key)
	return s, o.needed(ok, err, []string{key})
}

// readReadout finds the models whose output is a row of each of some tokens.
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
	return besideConfig(class, func(Files) (bool, map[string]any, string, error) {
		return true, settings,
			decisionConfig, nil
	})(files)
}

// Parse is ParseAs for such a model. Its settings are the member "decision" of the
// configuration.
func (d *Decision) Parse(class string, rawConfig func(class string) bool) (*Config, error) {
	c, raw, err := parse(class, d.config, rawConfig, d.find)
	if err == nil {
		err = c.layOver(raw)
	}
	if err != nil {
		return nil, err
	}
	return c, c.gatherRope()
}

// ParseEncoder is ParseEncoder for such a model.
func (d *Decision) ParseEncoder(class string, rawConfig func(class string) bool) (*Config, error) {
	return parseEncoder(class, d.config, rawConfig, d.find)
}

func (d *Decision) find(c *Config) (string, error) {
	c.File, c.decision = d.file, d
	if d.settings != nil {
		c.Raw["decision"] = d.settings
	}
	return d.Class, nil
}

// Decision returns the settings of a model that decides between options, with the name
// of their file; one without members for other models.
func (v *View) Decision() Object {
	if v.decision == nil {
		return Object{}
	}
	return Object{values: v.decision.settings, file: v.decision.from}
}

// deciderKinds are the kinds of questions in the order of the list "temperature".
var deciderKinds = []string{"choice", "score", "noul"}

// readDeciderTemperatures reads the temperatures of such a model: of each kind, and of
// kinds with a number of options.
func readDeciderTemperatures(files Files, _ *View, f *Facts) error {
	name, head, err := readDeciderHead(files)
	if err != nil || name == "" {
		return err
	}
	v, err := pyjson.Parse(head)
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	root, _ := v.(*pyjson.Object)
	if value := root.Get("temperature"); value != nil {
		list, ok := value.([]any)
		if !ok {
			return WrongType("temperature", "a list", value)
		}
		for i := range min(len(list), len(deciderKinds)) {
			if err := f.addTemperature(deciderKinds[i], list[i]); err != nil {
				return err
			}
		}
	}
	if value := root.Get("temperature_by_options"); value != nil {
		byOptions, ok := value.(*pyjson.Object)
		if !ok {
			return WrongType("temperature_by_options", "an object", value)
		}
		for _, of := range byOptions.Names {
			if err := f.addTemperature(of, byOptions.Values[of]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Facts) addTemperature(of string, v any) error {
	value, ok, err := asFloat("temperature of "+of, v)
	if err == nil && !ok {
		err = WrongType("temperature of "+of, "a number", nil)
	}
	if err == nil {
		f.Temperatures = append(f.Temperatures, Temperature{of, value})
	}
	return err
}
