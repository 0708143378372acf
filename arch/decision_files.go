package arch

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Decision models are recognized by files next to config.json:
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
//	training_config.json, head.pt                of Kev, whose "args" have "head_dim"
//
// Source: the loaders of such directories in the reference.

// The classes of decision models, which no config.json names.
const (
	openJevClass   = "OpenJevModel"
	clefClass      = "ClefModel"
	pplxClass      = "PplxDeciderModel"
	d3Class        = "VllmD3Model"
	decision2Class = "VllmDecision2Model"
	levClass       = "LevModel"
	nimbleClass    = "NimbleModel"
	kevClass       = "KevModel"
)

const (
	decisionConfig = "decision_config.json"
	levCalibration = "calibration.json"
	biasFile       = "score_bias.json"
	trainingConfig = "training_config.json"
	// kevHead has Kev's head and its settings, written by torch.save.
	kevHead = "head.pt"
)

func readOpenJev(files config.Files) (*config.Decision, error) {
	if _, ok, err := config.ReadFile(files, "helper/shim.py"); !ok {
		return nil, err
	}
	return config.DecisionNextTo(files, openJevClass, nil, "")
}

func readClef(files config.Files) (*config.Decision, error) {
	const name = "joint_head_config.json"
	settings, err := config.ReadSettings(files, name)
	if err != nil || settings == nil {
		return nil, err
	}
	return config.DecisionNextTo(files, clefClass, settings, name)
}

// readDecision2 reads models of Decision 2.0, whose config.json has the paths of the other files.
func readDecision2(files config.Files) (*config.Decision, error) {
	data, ok, err := config.ReadFile(files, config.ConfigFile)
	if !ok || !bytes.Contains(data, []byte("decision_format")) {
		return nil, err
	}
	o, err := config.ParseObject(config.ConfigFile, data)
	if err != nil || o.Value("decision_format") != "vllm-sr-decision" {
		return nil, err
	}
	model, err := o.Sub("backbone").RequireString("config")
	if err != nil {
		return nil, err
	}
	head, err := o.RequireString("model_config")
	if err != nil {
		return nil, err
	}
	d := &config.Decision{Class: decision2Class, File: path.Join(path.Dir(model), config.ConfigFile), SettingsFile: head}
	if d.Config, err = config.ReadConfig(files, d.File); err != nil {
		return nil, err
	}
	if data, err = config.ReadConfig(files, head); err != nil {
		return nil, err
	}
	settings, err := config.ParseObject(head, data)
	d.Settings = settings.Members()
	return d, err
}

// readout recognizes models whose output matrix has rows for some tokens only, by the settings of their format.
func readout(class string, is func(settings map[string]any) bool) func(config.Files) (*config.Decision, error) {
	return func(files config.Files) (*config.Decision, error) {
		// the head's configuration of Decision 2.0 may have the same name and keys
		if d, err := readDecision2(files); d != nil || err != nil {
			return nil, err
		}
		settings, err := config.ReadSettings(files, decisionConfig)
		if err != nil || settings == nil || !is(settings) {
			return nil, err
		}
		return config.DecisionNextTo(files, class, settings, decisionConfig)
	}
}

var (
	readPplx = readout(pplxClass, func(settings map[string]any) bool {
		_, named := settings["format_id"]
		return !named && settings["token_ids"] != nil
	})
	readD3 = readout(d3Class, func(settings map[string]any) bool {
		return settings["format_id"] == "d3-code-readout-v1"
	})
)

// readLev reads Lev's temperatures of the label readout, named KIND:A or KIND:A:NUMBER_OF_OPTIONS.
func readLev(files config.Files) (*config.Decision, error) {
	if _, ok, err := config.ReadFile(files, "lev_release.json"); !ok {
		return nil, err
	}
	d := &config.Decision{Class: levClass}
	values, names, err := ordered(files, levCalibration, "temperatures")
	for _, name := range names {
		parts := strings.Split(name, ":")
		if len(parts) < 2 {
			return nil, fault.Errorf(fault.Broken, "%s: key \"temperatures\": want names such as choice:A, found %q",
				levCalibration, name)
		}
		if parts[1] != "A" {
			continue // belongs to the head for many options, which GGUF files lack
		}
		f, err := values.RequireFloat(name)
		if err != nil {
			return nil, err
		}
		d.Temperatures = append(d.Temperatures, config.Temperature{Kind: strings.Join(slices.Delete(parts, 1, 2), "."),
			Value: f})
	}
	return d, err
}

func readNimble(files config.Files) (*config.Decision, error) {
	const name = "schema_config.json"
	settings, err := config.ReadSettings(files, name)
	if err != nil || settings["task"] != "schema_candidate_classification_v2" {
		return nil, err
	}
	return &config.Decision{Class: nimbleClass, Settings: settings, SettingsFile: name}, nil
}

// readKev recognizes adapters that were trained with Kev's pointer head. Other trainers, too, write a
// training_config.json: one without "head_dim" is not parsed.
func readKev(files config.Files) (*config.Decision, error) {
	data, ok, err := config.ReadFile(files, trainingConfig)
	if !ok || !bytes.Contains(data, []byte(`"head_dim"`)) {
		return nil, err
	}
	training, err := config.ParseObject(trainingConfig, data)
	args, _ := training.Value("args").(map[string]any)
	if _, ok = args["head_dim"]; !ok {
		return nil, err
	}
	return &config.Decision{Class: kevClass, HeadFile: kevHead}, err
}

// scoreBias is the source of Facts.ScoreBias, in the order of the file.
var scoreBias = &config.Source{Read: func(files config.Files, _ *config.View, f *config.Facts) error {
	offsets, names, err := ordered(files, biasFile, "offsets")
	for _, name := range names {
		list, err := offsets.RequireFloats(name)
		if err != nil {
			return err
		}
		f.ScoreBias = append(f.ScoreBias, list)
	}
	return err
}}

// ordered returns the object under a key of a JSON file, and the names of its members in their order.
func ordered(files config.Files, file, key string) (o config.Object, names []string, err error) {
	data, err := config.ReadConfig(files, file)
	if err != nil {
		return o, nil, err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return o, nil, fault.Errorf(fault.Broken, "%s: %w", file, err)
	}
	root, _ := v.(*pyjson.Object)
	members, ok := root.Get(key).(*pyjson.Object)
	if !ok {
		return o, nil, fault.Errorf(fault.Broken, "%s: key %q: want an object, found %s", file, key,
			pyjson.Describe(root.Get(key)))
	}
	parsed, err := config.ParseObject(file, data)
	return parsed.Sub(key), members.Names, err
}
