package config

import (
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Temperature is the divisor of the scores of one kind of question.
type Temperature struct {
	Kind  string
	Value float64
}

// readTemperatures reads the temperatures of config.json in their order.
func readTemperatures(files Files, _ *View, f *Facts) error {
	const key = "temperatures"
	data, err := ReadConfig(files, ConfigFile)
	if err != nil {
		return err
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", ConfigFile, err)
	}
	root, _ := v.(*pyjson.Object)
	list, ok := root.Get(key).(*pyjson.Object)
	if !ok {
		return WrongType(key, "an object", root.Get(key))
	}
	for _, name := range list.Names {
		if err := f.addTemperature(name, list.Values[name]); err != nil {
			return err
		}
	}
	return nil
}

// readLevTemperatures reads Lev's temperatures of the label readout, named KIND:A or KIND:A:NUMBER_OF_OPTIONS.
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
			continue // belongs to the head for many options, which GGUF files lack
		}
		f, err := values.RequireFloat(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Temperature{strings.Join(slices.Delete(parts, 1, 2), "."), f})
	}
	return list, nil
}

// deciderKinds are the kinds of questions in the order of the list "temperature".
var deciderKinds = []string{"choice", "score", "noul"}

// readDeciderTemperatures reads a Decider's temperatures: per kind, and per kind and number of options.
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
