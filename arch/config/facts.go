package config

import (
	"encoding/json"
	"errors"
	"io/fs"

	"ggforge/fault"
)

// Facts are properties of a model from files other than config.json. The architecture decides which files are read,
// see Source.
type Facts struct {
	Dir     string   // name of the checkpoint's directory, "" if it is unknown
	Tensors []string // names of the checkpoint's tensors; nil if they are unknown
	// Folded has the names of tensors whose columns were multiplied by Hadamard
	// matrices, without "language_model.".
	Folded map[string]bool

	// Integers are tensors of integers that are metadata in the file, by the names that
	// the architecture gives them; nil where no weights were read.
	Integers map[string][]int64

	// Pooling is the pooling type of an embedding model: "mean", "cls" or "lasttoken"; "" for other models.
	Pooling string
	// Dense are the dense modules after an embedding model.
	Dense []DenseModule
	// Suppress are the ids of suppressed tokens.
	Suppress []int64
	// Temperatures are a decision model's temperatures, in the order of the file.
	Temperatures []Temperature
	// ScoreBias has the biases of a decision model's scores: for each number of levels, a list with one bias per level.
	ScoreBias [][]float64
	// Reranker: the model was trained to answer "yes" or "no".
	Reranker bool
	// Target is the configuration of a draft model's target; nil for none.
	Target *View
	// OwnMask: the draft has an embedding of its own for the mask token.
	OwnMask bool
	// Tokens are the ids of tokens whose rows of the embedding the table needs; without tokens that the tokenizer's
	// files lack.
	Tokens map[string]int64
	// Speech is the configuration of a speech tokenizer's decoder, in a folder of its own.
	Speech Object
	// Processor has the preprocessing settings of images and audio.
	Processor Object
	// AudioTokenizer is the configuration of an audio tokenizer (audio to codes), in a folder of its own.
	AudioTokenizer Object
}

// Temperature is the divisor of the scores of one kind of question.
type Temperature struct {
	Kind  string
	Value float64
}

// AddTemperature adds a temperature from a file.
func (f *Facts) AddTemperature(of string, v any) error {
	value, ok, err := asFloat("temperature of "+of, v)
	if err == nil && !ok {
		err = WrongType("temperature of "+of, "a number", nil)
	}
	if err == nil {
		f.Temperatures = append(f.Temperatures, Temperature{of, value})
	}
	return err
}

// Source is a set of files with facts. Families have sources of their own.
type Source struct {
	// Read adds the facts. A missing file is no error.
	Read func(Files, *View, *Facts) error
}

var (
	PoolingFiles    = &Source{readPooling}    // of Facts.Pooling
	DenseFiles      = &Source{readDense}      // of Facts.Dense, if they are to be taken along
	FirstDenseFiles = &Source{readFirstDense} // of Facts.Dense, for models that always have a dense module
	SuppressFiles   = &Source{readSuppress}   // of Facts.Suppress
	ProcessorFiles  = &Source{readProcessor}  // of Facts.Processor
)

// Gather returns the view with the facts of sources added. A missing file is not an error.
func (v *View) Gather(files Files, known Facts, sources []*Source) (*View, error) {
	for _, s := range sources {
		if err := s.Read(files, v, &known); err != nil {
			return nil, err
		}
	}
	return v.With(known), nil
}

// ReadFile reads a file; ok is false when there is none.
func ReadFile(files Files, name string) (data []byte, ok bool, err error) {
	data, err = files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// ReadJSON reads a JSON file into v; ok is false when there is none.
func ReadJSON(files Files, name string, v any) (ok bool, err error) {
	data, ok, err := ReadFile(files, name)
	if !ok {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return true, nil
}

// readSuppress reads generation_config.json.
func readSuppress(files Files, _ *View, f *Facts) error {
	var config struct {
		Suppress []int64 `json:"suppress_tokens"`
	}
	_, err := ReadJSON(files, "generation_config.json", &config)
	f.Suppress = config.Suppress
	return err
}
