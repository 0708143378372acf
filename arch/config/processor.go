package config

import (
	"io/fs"
	"maps"

	"ggforge/fault"
)

// The files with the preprocessing of images and audio. Where both have a key, the second one's value counts.
const (
	preprocessorFile = "preprocessor_config.json"
	processorFile    = "processor_config.json"
)

// readProcessor reads them. media_proc_cfg of the first and image_processor of the second are merged into the root.
// Without either file the object is empty, and a row that requires a value fails with an error that names the missing
// files, see Object.requireErr.
func readProcessor(files Files, _ *View, f *Facts) error {
	var all map[string]any
	for _, file := range []struct{ name, inner string }{{preprocessorFile, "media_proc_cfg"},
		{processorFile, "image_processor"}} {
		data, ok, err := readFile(files, file.name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		m, err := parseRoot(file.name, data)
		if err != nil {
			return err
		}
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, m)
		if inner, ok := m[file.inner].(map[string]any); ok {
			maps.Copy(all, inner)
		}
	}
	f.Processor = Object{values: all, read: map[string]bool{}, file: preprocessorFile}
	return nil
}

// AudioTokenizer is the folder of the audio tokenizer, a separate model.
const AudioTokenizer = "audio_tokenizer"

// readAudioTokenizer reads its configuration; without the file there is no audio tokenizer.
func readAudioTokenizer(files Files, _ *View, f *Facts) error {
	const name = AudioTokenizer + "/" + ConfigFile
	data, ok, err := readFile(files, name)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: %w: it describes what makes codes of sound", name, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	m, err := parseRoot(name, data)
	if err != nil {
		return err
	}
	f.AudioTokenizer = Object{values: m, read: map[string]bool{}, file: name}
	return nil
}

// SpeechConfig is the configuration of the speech tokenizer, which encodes audio to codes and decodes codes.
const SpeechConfig = "speech_tokenizer/config.json"

// readSpeech reads it. Reads of its keys are recorded with the model's.
func readSpeech(files Files, v *View, f *Facts) error {
	data, err := ReadConfig(files, SpeechConfig)
	if err != nil {
		return err
	}
	root, err := parseRoot(SpeechConfig, data)
	if err != nil {
		return err
	}
	f.Speech = Object{root, "", v.read, SpeechConfig}.Sub("decoder_config")
	if f.Speech.values == nil {
		return fault.Errorf(fault.Broken, "%s: key \"decoder_config\": want an object, found %s", SpeechConfig,
			excerpt(root["decoder_config"]))
	}
	return nil
}
