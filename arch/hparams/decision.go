package hparams

import (
	"errors"
	"io/fs"

	"ggforge/fault"
	"ggforge/internal/pyjson"
)

// A ModernBERT that decides between options is a directory without a config.json:
//
//	encoder/config.json                          of the ModernBERT
//	julia_config.json or rl_agent_config.json    of the layers after it
//	tokenizer/                                   the tokenizer's files
//
// Source: the loader of such directories in the reference's bert.py.

// Decider is the class that such a model is taken as.
const Decider = "ModernBertDecisionModel"

const encoderConfig = "encoder/" + ConfigFile

// deciderConfigs are the files about the layers after the encoder; the first counts.
var deciderConfigs = []string{"julia_config.json", "rl_agent_config.json"}

// ReadDecider reads the configurations of such a model; encoder is nil when the
// directory is of another one.
func ReadDecider(files Files) (encoder, head []byte, err error) {
	name, head, err := readDeciderHead(files)
	if err != nil || name == "" {
		return nil, nil, err
	}
	encoder, err = files.ReadFile(encoderConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	return encoder, head, err
}

func readDeciderHead(files Files) (name string, head []byte, err error) {
	for _, name := range deciderConfigs {
		head, err := files.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return name, head, err
		}
	}
	return "", nil, nil
}

// ParseDecider is ParseAs for what ReadDecider has read. The second configuration is
// the member "decision" of the first.
func ParseDecider(class string, encoder, head []byte, asItStands func(class string) bool) (*Config, error) {
	c, raw, err := parse(class, encoder, asItStands, func(c *Config) (string, error) {
		members, err := parseRoot(deciderConfigs[0]+" or "+deciderConfigs[1], head)
		c.File, c.Raw["decision"] = encoderConfig, members
		return Decider, err
	})
	if err == nil {
		err = c.layOver(raw)
	}
	if err != nil {
		return nil, err
	}
	return c, c.gatherRope()
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
