package release

import (
	"fmt"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/checkpoint/installed"
	"ggforge/internal/io/mmap"
	"ggforge/publish/sign"
)

// Plan describes a release: its source and its files. Its fields are the keys of a file in YAML or JSON;
// doc is their description in the schema.
type Plan struct {
	Source      string       `plan:"source" need:"true" doc:"a checkpoint directory, a GGUF file or the first of its shards, the single file of an image or video model, hf://ORG/NAME[@REVISION] or s3://BUCKET/FOLDER, or one of these and /FILE; ollama://NAME:TAG or lmstudio://PUBLISHER/MODEL"`
	Output      string       `plan:"output" doc:"the folder to write; it is created if missing"`
	Outputs     []Output     `plan:"outputs" need:"true" doc:"the models to write: types of ggquant, such as Q4_K_M, or objects"`
	Layout      string       `plan:"layout" enum:"flat,folders" doc:"flat: all files in one folder; folders: one for each type"`
	Template    string       `plan:"name_template" doc:"template of file names: {name} is the model's name, size, fine-tune and version, {ftype} and {FTYPE} the type (default: {name}-{FTYPE})"`
	Split       Size         `plan:"split" doc:"write shards with at most this many bytes of tensors, such as 2G"`
	Via         string       `plan:"via" enum:"auto,f32,f16,bf16" doc:"convert a checkpoint to this type before quantizing"`
	Calibration *Calibration `plan:"calibration" doc:"the importance matrix: made with a text, or read"`
	Encoders    []string     `plan:"towers" enum:"f32,f16,bf16,q8_0" doc:"write the vision or audio encoder (mmproj) in these types"`
	Evaluation  *Evaluation  `plan:"evaluation" doc:"measure perplexity and KL divergence of each model from the source"`
	Card        *Card        `plan:"card" doc:"the model card"`
	Pages       bool         `plan:"pages" doc:"write an HTML page about each model, next to it"`
	Modelfile   bool         `plan:"modelfile" doc:"write a Modelfile for Ollama about each model, next to it: NAME.Modelfile for NAME.gguf"`
	ModelName   string       `plan:"model_name" doc:"the name of a checkpoint's model"`
	Provenance  bool         `plan:"provenance" doc:"write provenance.json, a SLSA provenance statement; with sign also its signed form, provenance.sigstore.json"`
	Sign        *Signing     `plan:"sign" doc:"sign the folder in the format of OpenSSF Model Signing: model.sig"`

	path string // path of the plan's file, "" for none
}

// Output is a model to write.
type Output struct {
	Type  string  `plan:"type" need:"true" doc:"a type of ggquant, such as Q4_K_M"`
	Name  string  `plan:"name" doc:"the encoding in the file's name, if it is not the type: letters, digits and underscores"`
	BPW   float64 `plan:"bpw" doc:"choose the types of tensors for the least predicted loss at this many bits per weight; of image and video models, for the least error of weights"`
	Size  Size    `plan:"size" doc:"choose the types of tensors for the least predicted loss in files of this many bytes; of image and video models, for the least error of weights"`
	Like  string  `plan:"like" doc:"choose the types of tensors for the least predicted loss at the size of this type; of image and video models, for the least error of weights"`
	KLD   float64 `plan:"kld" doc:"choose the smallest types with at most this KL divergence, in nats per token"`
	Types string  `plan:"types" doc:"the types to choose from, separated by commas"`

	line int
}

// Calibration is the source of the importance matrix: a text, or a file with a matrix.
type Calibration struct {
	Text          string `plan:"text" doc:"a text; the matrix made with it becomes a file of the release"`
	Matrix        string `plan:"matrix" doc:"an importance matrix, of either format"`
	Effort        string `plan:"effort" enum:"matrix,high,best" doc:"high and best choose blocks with the text, too"`
	Chunk         int    `plan:"chunk" doc:"tokens of a chunk of the text (512)"`
	Chunks        int    `plan:"chunks" doc:"use this many chunks, with effort high and best spread over the text (0: all)"`
	ProcessOutput bool   `plan:"process_output" doc:"collect importance for the output matrix, too"`
}

// Evaluation is the measurement of the models.
type Evaluation struct {
	Text   string `plan:"text" need:"true" doc:"a text other than that of the calibration, which would flatter"`
	Chunk  int    `plan:"chunk" doc:"tokens of a chunk of the text (512)"`
	Chunks int    `plan:"chunks" doc:"use this many chunks (0: all)"`
}

// Card holds the settings of the model card.
type Card struct {
	Off         bool   `plan:"off" doc:"write no card"`
	BaseModel   string `plan:"base_model" doc:"the model of the hub that the files are quantized from, ORG/NAME"`
	QuantizedBy string `plan:"quantized_by" doc:"the name of the publisher"`
	Repository  string `plan:"repository" doc:"where the files will be on the hub, ORG/NAME, for the commands in the card; otherwise that of the push"`
	Contexts    []int  `plan:"contexts" doc:"context lengths in tokens for which the card has the memory (8192)"`
	Template    string `plan:"template" doc:"a template in Go's text/template"`
}

// Signing holds the key of the signature.
type Signing struct {
	Key         string `plan:"key" need:"true" doc:"the private key, EC on P-256, P-384 or P-521, in PEM: a file, or env://NAME for an environment variable"`
	Certificate string `plan:"certificate" doc:"a file with the certificate of the key and those of its issuers, in PEM"`
}

// Size is a number of bytes.
type Size int64

// maxPlan is the largest plan in bytes, maxOutputs the largest number of models in it.
const (
	maxPlan    = 1 << 20
	maxOutputs = 200
)

// Read reads a plan. Paths in it are relative to its folder.
func Read(path string) (*Plan, error) {
	data, err := mmap.ReadFile(path, "plan", maxPlan)
	if err != nil {
		return nil, err
	}
	p, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	local := func(s *string) {
		if *s != "" && !checkpoint.IsRemote(*s) && !installed.Is(*s) && !sign.IsVariable(*s) && !filepath.IsAbs(*s) {
			*s = filepath.Join(dir, filepath.FromSlash(*s))
		}
	}
	local(&p.Source)
	local(&p.Output)
	if c := p.Calibration; c != nil {
		local(&c.Text)
		local(&c.Matrix)
	}
	if p.Evaluation != nil {
		local(&p.Evaluation.Text)
	}
	if p.Card != nil {
		local(&p.Card.Template)
	}
	if p.Sign != nil {
		local(&p.Sign.Key)
		local(&p.Sign.Certificate)
	}
	return p, nil
}

// choosesTypes reports whether types are allocated instead of taken from the recipe.
func (o *Output) choosesTypes() bool { return o.BPW > 0 || o.Size > 0 || o.Like != "" || o.KLD > 0 }

// place names an output of the plan in errors.
func (p *Plan) place(o *Output) string {
	if p.path == "" || o.line == 0 {
		return "output " + o.Type
	}
	return fmt.Sprintf("%s, line %d: output %s", p.path, o.line, o.Type)
}

func (p *Plan) about(what string) string {
	if p.path == "" {
		return what
	}
	return p.path + ": " + what
}
