package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// Facts are what is known about a model besides its config.json. Which files are
// read for them is up to the model's architecture, see Source.
type Facts struct {
	Dir     string   // name of the checkpoint's directory, "" if it is unknown
	Tensors []string // names of the checkpoint's tensors; nil if they are unknown
	// Folded has the names of tensors whose columns were multiplied by Hadamard
	// matrices, without "language_model.".
	Folded map[string]bool

	// Integers are tensors of integers that are metadata in the file, by the names that
	// the architecture gives them; nil where no weights were read.
	Integers map[string][]int64

	// Pooling is how an embedding model pools the states of its tokens: "mean",
	// "cls" or "lasttoken"; "" for models that do not.
	Pooling string
	// Dense are the dense modules after an embedding model.
	Dense []DenseModule
	// Suppress are the ids of tokens that are never to be generated.
	Suppress []int64
	// Temperatures are those of a model that decides between options, by what they
	// are of, in the order of the file.
	Temperatures []Temperature
	// ScoreBias is added to the scores of levels: lists with one number for each level.
	ScoreBias [][]float64
	// Reranker says that the model was trained to answer "yes" or "no".
	Reranker bool
	// Target is the configuration of the model that a draft is for; nil for none.
	Target *View
	// OwnMask says that the draft has an embedding of its own for the mask.
	OwnMask bool
	// Tokens are the ids of "yes" and "no" for a reranker, of ImageBreak or of TileMarks,
	// as far as the tokenizer's files have them.
	Tokens map[string]int64
	// Speech is how a model that speaks decodes its codes: decoder_config of SpeechConfig.
	Speech Object
	// Processor is how pictures and sound are prepared for an encoder.
	Processor Object
	// AudioTokenizer is the configuration of a model of its own that makes codes of
	// sound, in the folder of that name.
	AudioTokenizer Object
}

// Source is a kind of files that facts are in.
type Source uint8

const (
	NoFiles          Source = iota
	PoolingFiles            // of Facts.Pooling
	DenseFiles              // of Facts.Dense, if they are to be taken along
	FirstDenseFiles         // of Facts.Dense, for models whose dense module is always taken along
	RerankerFiles           // of Facts.Reranker and Facts.Tokens
	TemperatureFiles        // of Facts.Temperatures
	DeciderFiles            // of Facts.Temperatures, for the class Decider
	ScoreBiasFiles          // of Facts.ScoreBias
	SuppressFiles           // of Facts.Suppress
	ProcessorFiles          // of Facts.Processor
	BreakToken              // of Facts.Tokens, for ImageBreak
	SpeechFiles             // of Facts.Speech
	ParamsBreak             // of Facts.Tokens, for ImageBreak of params.json
	TileTokens              // of Facts.Tokens, for TileMarks

	AudioTokenizerFiles // of Facts.AudioTokenizer
)

// readers add what the files of each source say.
var readers = [...]func(Files, *View, *Facts) error{
	PoolingFiles:     readPooling,
	DenseFiles:       readDense,
	FirstDenseFiles:  readFirstDense,
	RerankerFiles:    readReranker,
	TemperatureFiles: readTemperatures,
	DeciderFiles:     readDeciderTemperatures,
	ScoreBiasFiles:   readScoreBias,
	SuppressFiles:    readSuppress,

	ProcessorFiles: readProcessor,
	BreakToken:     readBreakToken,
	SpeechFiles:    readSpeech,
	ParamsBreak:    readParamsBreak,
	TileTokens:     readTileTokens,

	AudioTokenizerFiles: readAudioTokenizer,
}

// Gather returns the view with the facts of sources added to those that are known.
// A file that is not there is not an error.
func (v *View) Gather(files Files, known Facts, sources []Source) (*View, error) {
	for _, s := range sources {
		if err := readers[s](files, v, &known); err != nil {
			return nil, err
		}
	}
	return v.With(known), nil
}

// readFile reads a file; ok is false when there is none.
func readFile(files Files, name string) (data []byte, ok bool, err error) {
	data, err = files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// readJSON reads a JSON file into v; ok is false when there is none.
func readJSON(files Files, name string, v any) (ok bool, err error) {
	data, ok, err := readFile(files, name)
	if !ok {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return true, nil
}

// modulesFile lists the layers of a model of the sentence-transformers library.
const modulesFile = "modules.json"

type module struct{ Type, Path string }

// readPooling reads the files of the sentence-transformers library, modules.json and
// the configuration of the pooling module that it names, or embedding_config.json.
// Source: _try_set_pooling_type of the reference.
func readPooling(files Files, _ *View, f *Facts) error {
	var modules []module
	if _, err := readJSON(files, modulesFile, &modules); err != nil {
		return err
	}
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Pooling") {
			continue
		}
		name := path.Join(m.Path, ConfigFile)
		var pooling struct {
			Mean bool   `json:"pooling_mode_mean_tokens"`
			CLS  bool   `json:"pooling_mode_cls_token"`
			Last bool   `json:"pooling_mode_lasttoken"`
			Mode string `json:"pooling_mode"`
		}
		ok, err := readJSON(files, name, &pooling)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: %w (%s names it)", name, fs.ErrNotExist, modulesFile)
		}
		if err != nil {
			return err
		}
		switch {
		case pooling.Mean:
			f.Pooling = "mean"
		case pooling.CLS:
			f.Pooling = "cls"
		case pooling.Last:
			f.Pooling = "lasttoken"
		case pooling.Mode == "mean", pooling.Mode == "cls", pooling.Mode == "lasttoken":
			f.Pooling = pooling.Mode
		default:
			return fault.Errorf(fault.Unsupported, "%s: pooling %q, want mean, cls or lasttoken", name, pooling.Mode)
		}
		return nil
	}
	const embeddingFile = "embedding_config.json"
	var embedding struct{ Pooling *string }
	if ok, err := readJSON(files, embeddingFile, &embedding); err != nil || !ok || embedding.Pooling == nil {
		return err
	}
	if *embedding.Pooling != "last_token" {
		return fault.Errorf(fault.Unsupported, "%s: pooling %q, want last_token", embeddingFile, *embedding.Pooling)
	}
	f.Pooling = "lasttoken"
	return nil
}

// DenseModule is a layer of the sentence-transformers library that comes after an
// embedding model, in a folder of its own.
type DenseModule struct {
	Name    string // of its tensor in the file, without suffix
	Dir     string // in the checkpoint
	In, Out int64  // sizes of its input and output
}

// denseNames are the names of the dense modules by their folders, which are named
// after their places in modules.json.
var denseNames = map[string]string{"2_Dense": "dense_2", "3_Dense": "dense_3"}

// readDense reads the dense modules that modules.json names.
func readDense(files Files, v *View, f *Facts) error {
	if !v.Options.Dense {
		return nil
	}
	var modules []module
	if _, err := readJSON(files, modulesFile, &modules); err != nil {
		return err
	}
	for _, m := range modules {
		if !strings.HasSuffix(m.Type, "Dense") {
			continue
		}
		d := DenseModule{Name: denseNames[m.Path], Dir: m.Path}
		if d.Name == "" {
			return fault.Errorf(fault.Unsupported, "%s: dense module in %q, want 2_Dense or 3_Dense",
				modulesFile, m.Path)
		}
		ok, err := d.readConfig(files)
		if err == nil && !ok {
			err = errDense(d.Dir)
		}
		if err != nil {
			return err
		}
		f.Dense = append(f.Dense, d)
	}
	return nil
}

// FirstDense is the folder of the only dense module of models for late interaction.
const FirstDense = "1_Dense"

// readFirstDense reads the dense module in FirstDense. Source: the LFM2ColBert class of
// the reference's converter.
func readFirstDense(files Files, _ *View, f *Facts) error {
	d := DenseModule{Name: denseNames["2_Dense"], Dir: FirstDense}
	ok, err := d.readConfig(files)
	if ok {
		f.Dense = append(f.Dense, d)
	}
	return err
}

// readConfig reads the sizes of the module; ok is false when it has no such file.
func (d *DenseModule) readConfig(files Files) (ok bool, err error) {
	var config struct {
		In         *int64 `json:"in_features"`
		Out        *int64 `json:"out_features"`
		Activation string `json:"activation_function"`
	}
	name := path.Join(d.Dir, ConfigFile)
	if ok, err = readJSON(files, name, &config); err != nil || !ok {
		return false, err
	}
	switch {
	case config.In == nil || config.Out == nil:
		return false, errDense(d.Dir)
	case config.Activation != "" && !strings.HasSuffix(config.Activation, ".Identity"):
		return false, fault.Errorf(fault.Unsupported, "%s: activation_function %q, want none", name, config.Activation)
	}
	d.In, d.Out = *config.In, *config.Out
	return true, nil
}

func errDense(dir string) error {
	return fault.Errorf(fault.Broken, "%s: want in_features and out_features of the dense module",
		path.Join(dir, ConfigFile))
}

var rerankerNames = []string{"qwen3-reranker", "qwen3-vl-reranker"}

// readReranker finds out whether the model is a reranker. A reranker of the Qwen 3
// family is a language model that is asked whether a document answers a
// query: of its output only the rows of "yes" and "no" matter. Nothing in its
// config.json says so, but its names and its model card do. Source: the Qwen3
// class of the reference's converter.
func readReranker(files Files, v *View, f *Facts) error {
	names := []string{f.Dir, v.Class}
	for _, key := range []string{"_name_or_path", "model_type"} {
		if s, ok := v.Raw[key].(string); ok {
			names = append(names, s)
		}
	}
	for _, hint := range rerankerNames {
		for _, name := range names {
			f.Reranker = f.Reranker || strings.Contains(strings.ToLower(name), hint)
		}
	}
	if !f.Reranker {
		data, err := files.ReadFile("README.md")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		card := strings.ToLower(string(data))
		for _, hint := range rerankerNames {
			f.Reranker = f.Reranker || strings.Contains(card, "# "+hint)
		}
	}
	if !f.Reranker {
		return nil
	}
	var tok struct {
		Model struct{ Vocab map[string]int64 }
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := readJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	f.Tokens = map[string]int64{}
	for _, t := range []string{"yes", "no"} {
		for _, added := range tok.Added {
			if _, ok := f.Tokens[t]; !ok && added.Content == t {
				f.Tokens[t] = added.ID
			}
		}
		if id, ok := tok.Model.Vocab[t]; ok {
			f.Tokens[t] = id
		}
	}
	return nil
}

// Temperature is what the scores of one kind of questions are divided by.
type Temperature struct {
	Of    string
	Value float64
}

// readTemperatures reads the temperatures of config.json, whose order counts.
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

// readSuppress reads how text is to be generated.
func readSuppress(files Files, _ *View, f *Facts) error {
	var config struct {
		Suppress []int64 `json:"suppress_tokens"`
	}
	_, err := readJSON(files, "generation_config.json", &config)
	f.Suppress = config.Suppress
	return err
}
