package config

import (
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/tokenizer"
)

// Keys of the configurations of vision and audio encoders.
const (
	visionConfig = "vision_config"
	audioConfig  = "audio_config"
)

// ParseEncoder reads the bytes of config.json for the vision or audio encoder of a model, which
// turns pictures or sound into what its language model reads. Values are the root of
// the file; the configurations in it have the defaults of their own types. class and
// rawConfig are those of ParseAs.
func ParseEncoder(class string, data []byte, rawConfig func(class string) bool) (*Config, error) {
	return parseEncoder(class, data, rawConfig, (*Config).encoderClass)
}

func parseEncoder(class string, data []byte, rawConfig func(class string) bool,
	find func(*Config) (string, error)) (*Config, error) {
	c, raw, err := parse(class, data, rawConfig, find)
	if err != nil {
		return nil, err
	}
	c.parts = map[string]string{}
	if !raw {
		m := modelTypes()[c.modelType]
		if err := m.complete(c, c.values, ""); err != nil {
			return nil, err
		}
		if err := c.completeParts(m, c.values, ""); err != nil {
			return nil, err
		}
	}
	text, err := c.textConfigOf(c.values)
	if err != nil {
		return nil, err
	}
	c.text = maps.Clone(c.values)
	maps.Copy(c.text, text)
	return c, nil
}

// encoderClass returns the class that the file names for its encoder: the vision model's
// if that has one, "" for none. Source: get_model_architecture of the reference.
func (c *Config) encoderClass() (string, error) {
	class, err := firstClass(c.Raw)
	if err != nil {
		return "", err
	}
	vision, _ := c.Raw[visionConfig].(map[string]any)
	inner, err := firstClass(vision)
	if inner != "" {
		class = inner
	}
	return class, err
}

// completeParts gives the configurations in v, those of a model type, the defaults
// of their own types. prefix is that of the keys of v.
func (c *Config) completeParts(m *modelType, v map[string]any, prefix string) error {
	if m == nil {
		return nil
	}
	parts := maps.Clone(m.Parts)
	if inner, ok := m.Defaults["text_config"].(string); ok {
		if parts == nil {
			parts = map[string]string{}
		}
		parts["text_config"] = inner
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		part, ok := v[key].(map[string]any)
		switch _, none := m.Defaults[key]; {
		case v[key] != nil && !ok:
			return WrongType(prefix+key, "an object", v[key])
		case v[key] == nil && none && key != "text_config":
			continue // models of the type may lack the part
		}
		part = maps.Clone(part)
		if part == nil {
			part = map[string]any{}
		}
		row := parts[key]
		if s, ok := part["model_type"].(string); ok && !strings.Contains(row, "/") {
			row = s
		} else if !ok && part["model_type"] == nil {
			part["model_type"] = row
		}
		t := modelTypes()[row]
		if key == "text_config" && v[key] == nil && t != nil && flatTypes[c.modelType] {
			// the language model's keys are among the others
			for name := range v {
				_, itsOwn := t.Defaults[name]
				if _, ours := m.Defaults[name]; (itsOwn || slices.Contains(t.Follow, name)) && !ours {
					part[name] = v[name]
					delete(v, name)
				}
			}
		}
		if err := t.complete(c, part, prefix+key+"."); err != nil {
			return err
		}
		c.parts[prefix+key+"."] = row
		if err := c.completeParts(t, part, prefix+key+"."); err != nil {
			return err
		}
		v[key] = part
	}
	return nil
}

// Thinker returns the configuration of the part that understands in models that speak,
// too, and the root in all others.
func (v *View) Thinker() Object {
	if o := v.Sub("thinker_config"); o.Members() != nil {
		return o
	}
	return v.Object
}

// Vision returns the configuration of the vision encoder.
func (v *View) Vision() Object {
	if v.Config.File == ParamsFile {
		return v.Sub("vision_encoder")
	}
	return v.Thinker().Sub(visionConfig)
}

// Audio returns the configuration of the audio encoder.
func (v *View) Audio() Object { return v.Thinker().Sub(audioConfig) }

// Text returns, for an encoder, the root of the configuration with that of the language
// model laid over.
func (v *View) Text() Object { return Object{v.text, "", nil, v.Config.File} }

// Processor returns what preprocessor_config.json and processor_config.json say. The
// files are of the source ProcessorFiles.
func (v *View) Processor() Object { return v.Facts.Processor }

// Default returns the default that a key got, which may be one of a part:
// "vision_config.patch_size".
func (v *View) Default(key string) any {
	m := v.Object.values
	for {
		if value, ok := m[key]; ok {
			return value
		}
		part, rest, _ := strings.Cut(key, ".")
		inner, ok := m[part].(map[string]any)
		if !ok {
			return nil
		}
		m, key = inner, rest
	}
}

// InFile returns keys of a file other than config.json as UnreadOf has them.
func InFile(file string, keys ...string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = file + ": " + key
	}
	return list
}

// UnreadOf lists the keys of a part that nothing asked for and that might mean
// something, sorted: see Unread.
func (v *View) UnreadOf(o Object) []string {
	var keys []string
	defaults := map[string]any{}
	if t := modelTypes()[v.parts[o.prefix]]; t != nil {
		defaults = t.Defaults
	}
	for key, value := range o.values {
		name := o.prefix + key
		if o.read[name] || v.defaulted[name] || inertKeys[key] || IsNo(value) {
			continue
		}
		if d, ok := defaults[key]; ok && reflect.DeepEqual(d, value) {
			continue
		}
		if o.file != "" && o.file != v.Config.File {
			name = InFile(o.file, name)[0]
		}
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// The files that say how pictures and sound are prepared. Where both have a key, the
// second one's value counts.
const (
	preprocessorFile = "preprocessor_config.json"
	processorFile    = "processor_config.json"
)

// readProcessor reads them. What the first has under media_proc_cfg and the second
// under image_processor is laid over its root. Without either the object has no values,
// and what needs one says that the files are missing, see Object.needed.
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

// AudioTokenizer is the folder of a model that makes codes of sound.
const AudioTokenizer = "audio_tokenizer"

// readAudioTokenizer reads its configuration, without which there is no such model.
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

// ImageBreak is the token at the end of a row of patches in Mistral's models.
const ImageBreak = "[IMG_BREAK]"

// readBreakToken finds the id of ImageBreak. Source: LlavaVisionModel of the reference.
func readBreakToken(files Files, _ *View, f *Facts) error {
	var config struct {
		Added map[string]struct{ Content any } `json:"added_tokens_decoder"`
	}
	if _, err := readJSON(files, "tokenizer_config.json", &config); err != nil {
		return err
	}
	for id, t := range config.Added {
		if t.Content != ImageBreak {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil || n < 0 {
			return fault.Errorf(fault.Broken, "tokenizer_config.json: token %q: id %q, want a number", ImageBreak, id)
		}
		f.Tokens = map[string]int64{ImageBreak: n}
		return nil
	}
	return readAddedBreak(files, f)
}

// readAddedBreak finds ImageBreak among the added tokens of tokenizer.json.
func readAddedBreak(files Files, f *Facts) error {
	var tok struct {
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := readJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	for _, t := range tok.Added {
		if t.Content == ImageBreak && f.Tokens == nil {
			f.Tokens = map[string]int64{ImageBreak: t.ID}
		}
	}
	return nil
}

// readParamsBreak finds the id of ImageBreak for params.json, which has it or a number
// below zero. Source: LlavaVisionModel of the reference.
func readParamsBreak(files Files, v *View, f *Facts) error {
	const key = "image_break_token_id"
	n, err := v.Vision().Require(key)
	if err == nil && n == 0 {
		err = WrongType("vision_encoder."+key, "the id of a token", n)
	}
	if err != nil || n > 0 {
		f.Tokens = map[string]int64{ImageBreak: n}
		return v.Vision().inFile(err)
	}
	var tekken struct {
		Special []struct {
			Rank int64
			Text string `json:"token_str"`
		} `json:"special_tokens"`
	}
	if _, err := readJSON(files, "tekken.json", &tekken); err != nil {
		return err
	}
	f.Tokens = nil
	for _, t := range tekken.Special {
		if t.Text == ImageBreak {
			f.Tokens = map[string]int64{ImageBreak: t.Rank}
			return nil
		}
	}
	return readAddedBreak(files, f)
}

// TileMarks are what MiniCPM-V 4.7 has between the parts of a picture, in the order of
// the rows that a file has of them. Source: MiniCPMV4_7VisionModel of the reference.
var TileMarks = []string{"</image>", "<slice>", "</slice>", "\n"}

// readTileTokens encodes them: each has to be one token.
func readTileTokens(files Files, _ *View, f *Facts) error {
	const name = "tokenizer.json"
	data, ok, err := readFile(files, name)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: %w (it has the tokens between the parts of a picture)", name,
			fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	encoder, err := tokenizer.NewEncoder(data)
	if err != nil {
		return err
	}
	tokens := map[string]int64{}
	for _, mark := range TileMarks {
		ids, err := encoder.Encode(mark, false)
		if err == nil && len(ids) != 1 {
			err = fault.Errorf(fault.Broken, "%s: %q is %d tokens, want one", name, mark, len(ids))
		}
		if err != nil {
			return err
		}
		tokens[mark] = int64(ids[0])
	}
	f.Tokens = tokens
	return nil
}

// SpeechConfig is the configuration of what makes codes of sound, and sound of codes.
const SpeechConfig = "speech_tokenizer/config.json"

// readSpeech reads it. Keys that were asked for are recorded with those of the model.
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
			shown(root["decoder_config"]))
	}
	return nil
}
