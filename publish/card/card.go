// Package card writes the card of a folder with GGUF files, README.md: front matter as the Hugging Face hub reads it,
// a table of the files with sizes, measurements and advice, and the origin of the model.
//
//	metadata of the files ─┐
//	JSON of ggeval ────────┼─► Card ──► template ──► sections with marks ──► README.md
//	Options ───────────────┘                              ▲
//	                       what is written by hand ───────┘ stays
//
// Metadata are untrusted text. A template gets each value as one line, without control and format characters, escaped
// for Markdown, tables and HTML: a value adds no markup, and becomes a link only if it is the http or https address in
// a key for addresses. Names and values of the front matter are quoted by the YAML library.
package card

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/size"
)

// FileName is the name of a card.
const FileName = "README.md"

// Options holds the facts of a card that are not in the files. The zero value adds none.
type Options struct {
	// BaseModel is the model on the hub that the files are quantized from, ORG/NAME, instead of the one in their
	// metadata.
	BaseModel   string
	QuantizedBy string // instead of general.quantized_by
	Template    string // text of a template, see package text/template; "" for default.md.tmpl
	Program     string // the program that made the files, with its version
	// Repository is where the files will be on the hub, ORG/NAME; "" if that is not known: then the card has no commands
	// that name it.
	Repository string
	// Contexts are the context lengths, in tokens, for which the card has the memory; DefaultContexts for none.
	Contexts []int64
	// Revision is the commit or branch of BaseModel, Effort that of the calibration: matrix, high or best.
	Revision, Effort string
	// Inputs are the texts that the files were made and measured with.
	Inputs []Input
	// SignatureKey is the SHA-256 of the public key in PEM that verifies model.sig.
	SignatureKey string
	// Results are measurements besides those in the folder.
	Results []Result
	// Only, unless nil, are the files that the card lists, with slashes, below the folder: models, their sidecars,
	// measurements, and others, which need not be there yet. Warnings name the other models in the folder.
	Only []string
}

// File is a model or a sidecar in a folder. Its texts are escaped for Markdown.
type File struct {
	Path   string       // with slashes, below the folder; not escaped
	Shards int          // number of files; 1 without shards
	Bytes  int64        // of all of them
	Bits   float64      // per weight
	KLD    *Figure      // divergence from the model before quantization
	PPL    *Figure      // perplexity
	Link   string       // name with address
	uses   []memory.Use // at each of contextsOf; none if unknown
	Type   string       // recipe
	Size   string       // Bytes as text
	BPW    string       // Bits as text
	Memory []string     // for each of Card.Contexts

	Divergence, Perplexity string
	Advice                 string // whether to take it, "" if that was not measured
	What                   string // the purpose of a sidecar
	measured               Measured

	// What commands need, for a block of code. Word is the path, quoted for a shell, Literal as a string of Python or
	// JSON, and Include a pattern that matches
	// the file, with all its shards, and no other one. LlamaCPPTag leads llama.cpp to the file in its repository, HubTag
	// the hub's pages and Ollama; "" if none does. LlamaCPPDefault is set if llama.cpp takes it without a tag.
	Word, Literal, Include, LlamaCPPTag, HubTag string
	LlamaCPPDefault                             bool
}

// Fact is a line about how files were made.
type Fact struct{ Name, Value string }

// Input is a file that files of the card were made or measured with.
type Input struct {
	What   string // such as "Calibration text"
	Name   string // without folders
	Bytes  int64
	SHA256 string
}

// Card is the data of a template. Its texts are escaped for Markdown.
type Card struct {
	Title, Description, Architecture, Size, License string
	Source                                          string // the model before quantization, with a link
	BaseModel                                       string // its name on the hub, or ""; not escaped
	Files                                           []File // models, the largest first
	Sidecars                                        []File // loaded next to them: encoders, adapters, draft models
	Contexts                                        []string
	HasDivergence, HasPerplexity                    bool
	Measured                                        string // what was measured, "" for nothing
	Author                                          string
	Repository                                      string // ORG/NAME of these files, or ""; not escaped
	Trained                                         string // the context length that the model was trained for, or ""
	Pick                                            *File  // the file to begin with, nil if no measurement shows one
	Picked                                          string // a sentence about Pick
	Unjudged                                        string // why there is no Pick
	First                                           *File  // Pick, or what llama.cpp takes if it is not told
	Serve                                           string // how llama-server runs them: text, embeddings, reranking or "" for not at all
	Encoder                                         string // the vision or audio encoder's path, quoted for a shell
	Folder                                          string // the name in Repository
	Sums, Manifest, Signed                          bool   // there are SHA256SUMS, manifest.json, model.sig
	SignatureKey                                    string // SHA-256 of the public key, or ""
	Image                                           *Image // what an image or video model needs; nil for others
	Prompt                                          string // a conversation as the chat template has it, in a fence; or ""
	Others                                          []Fact // further files, as links, and what they are
	Made                                            []Fact
	Warnings                                        []string // facts that are missing; not escaped, not in the card

	dir         string
	read        []string      // files that were read
	metadata    gguf.Metadata // of the first model
	made        gguf.Metadata // of a model with an importance matrix, if there is any
	imatrix     bool
	pipeline    string
	quantizedBy string
	template    string
	predicted   int // tokens of the measurements
	results     Result
}

// Image is what programs need besides the file of an image or video model. Its texts are not untrusted.
type Image struct {
	diffusion.Use
	Diffusers bool // the original is known, so that code for diffusers can name it
}

// maxFiles bounds the files of one card.
const maxFiles = 10000

// Of returns the card of the files in a folder and its subfolders. A folder without a model is an error of kind
// fault.Usage, a folder with several models one of kind fault.Refused.
func Of(ctx context.Context, dir string, opt Options) (*Card, error) {
	c := &Card{dir: dir, template: cmp.Or(opt.Template, ours)}
	models, results, err := list(dir)
	if err != nil {
		return nil, err
	}
	if opt.Only != nil {
		other := func(name string) bool { return !slices.Contains(opt.Only, name) }
		results = slices.DeleteFunc(results, other)
		models = slices.DeleteFunc(models, func(name string) bool {
			if other(name) {
				c.Warnings = append(c.Warnings, name+": is in the folder, but not in the card, which lists other files")
			}
			return other(name)
		})
	}
	var encoder gguf.Metadata
	for _, path := range models {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, m, err := readFile(dir, path, opt.Contexts)
		if err != nil {
			return nil, err
		}
		c.read = append(c.read, filepath.Join(dir, filepath.FromSlash(path)))
		if f.What != "" {
			if f.What == encoderRole {
				encoder = m
			}
			c.Sidecars = append(c.Sidecars, *f)
			continue
		}
		if c.metadata != nil && (text(m, gguf.KeyName) != text(c.metadata, gguf.KeyName) ||
			m.Architecture() != c.metadata.Architecture()) {
			return nil, fault.Errorf(fault.Refused, "%s and %s are different models, %q and %q: a card is for one",
				c.Files[0].Path, path, text(c.metadata, gguf.KeyName), text(m, gguf.KeyName))
		}
		if c.metadata == nil {
			c.metadata = m
		}
		if _, ok := m.Get("quantize.imatrix.entries_count"); ok || c.made == nil {
			c.imatrix, c.made = c.imatrix || ok, m
		}
		c.Files = append(c.Files, *f)
	}
	if len(c.Files) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s: there is no model in it, a file that ends in .gguf", dir)
	}
	slices.SortStableFunc(c.Files, func(a, b File) int { return cmp.Compare(b.Bytes, a.Bytes) })
	found, err := readResults(dir, results)
	if err != nil {
		return nil, err
	}
	c.setFigures(append(found, opt.Results...))
	c.setMemory(opt.Contexts)
	c.advise()
	c.pipeline = pipelineOf(c.metadata, encoder)
	c.describe(opt)
	c.setImage()
	var paths []string
	for _, f := range c.Files {
		paths = append(paths, f.Path)
	}
	if c.Others, err = others(dir, opt.Only, paths); err != nil {
		return nil, err
	}
	if err := c.setPrompt(ctx); err != nil {
		return nil, err
	}
	c.Repository = opt.Repository
	c.setCommands(opt)
	return c, nil
}

// setFigures sets divergence and perplexity of the files from results.
func (c *Card) setFigures(all []Result) {
	name := func(f *File) string { return baseName(f.Path) }
	var names []string
	for i := range c.Files {
		names = append(names, name(&c.Files[i]))
	}
	r := best(all, names)
	for i := range c.Files {
		f := &c.Files[i]
		m := r.Files[name(f)]
		f.measured, f.KLD, f.PPL = m, m.Divergence, m.PPL
		if f.KLD != nil {
			c.HasDivergence, f.Divergence = true, unbroken(DivergenceText(*f.KLD))
		}
		if f.PPL != nil {
			ppl, change, _ := strings.Cut(perplexity(m), " (")
			if change != "" {
				change = " (" + unbroken(change)
			}
			c.HasPerplexity, f.Perplexity = true, unbroken(ppl)+change
		}
	}
	c.results, c.predicted = r, r.Predicted
	if !c.HasDivergence && !c.HasPerplexity {
		return
	}
	c.Measured = "Measured over " + code(r.Text)
	if r.Predicted > 0 {
		c.Measured += fmt.Sprintf(", %d predicted tokens in chunks of %d", r.Predicted, r.Chunk)
	}
	c.Measured += "."
	if c.HasDivergence {
		c.Measured += " KL divergence is how far the probabilities of the next token are from those of the original, in nats " +
			"per token: 0 is no difference, and nearer is less."
	}
	if r.Base != nil {
		c.Measured += fmt.Sprintf(" That model's perplexity is %.2f", r.Base.Mean)
		if c.HasPerplexity {
			c.Measured += "; changes from it are in parentheses"
		}
		c.Measured += "."
	}
	c.Measured += " After ± is one standard error; without it, that is less than the last digit."
}

// describe sets the description of the model and of its origin.
func (c *Card) describe(opt Options) {
	m := c.metadata
	repo := cmp.Or(text(m, "general.source.repo_url"), text(m, "general.repo_url"))
	c.BaseModel = cmp.Or(opt.BaseModel, HubModel(repo), HubModel(text(m, "general.source.url")))
	_, original, _ := strings.Cut(c.BaseModel, "/")
	name := cmp.Or(plain(text(m, gguf.KeyName)), plain(text(m, gguf.KeyBasename)), original, filepath.Base(c.dir))
	c.Title, c.Description, c.Architecture, c.Size = markdown(name), markdown(text(m, "general.description")),
		code(m.Architecture()), markdown(text(m, gguf.KeySizeLabel))
	if v, ok := m.Get(gguf.ArchKey(m.Architecture(), "context_length")); ok {
		if n, ok := v.Int(); ok && n > 0 {
			c.Trained = fmt.Sprint(n)
		}
	}
	c.quantizedBy = cmp.Or(opt.QuantizedBy, text(m, "general.quantized_by"))
	switch {
	case c.BaseModel != "":
		c.Source = link(c.BaseModel, hub+c.BaseModel)
	case address(repo) != "":
		c.Source = link(name, address(repo))
	default:
		c.Source = markdown(name)
		c.Warnings = append(c.Warnings,
			"which model of the hub the files are quantized from is not known: base_model is not in the card")
	}
	if id, called, to := license(m); id != "" {
		c.License = link(cmp.Or(called, id), to)
	} else {
		c.Warnings = append(c.Warnings, "there is no license in the metadata (general.license)")
	}
	c.Author = markdown(cmp.Or(text(m, "general.author"), text(m, "general.organization")))
	fact := func(name, value string) {
		if value != "" {
			c.Made = append(c.Made, Fact{name, value})
		}
	}
	for _, id := range sources(m, "general.base_model") {
		if id != c.BaseModel {
			fact("The original was made from", link(id, hub+id))
		}
	}
	fact("Revision of the original", code(opt.Revision))
	fact("Quantized by", markdown(c.quantizedBy))
	fact("Program", markdown(opt.Program))
	c.describeMatrix(fact)
	fact("Blocks chosen by", markdown(text(c.made, "quantize.calibration.method")))
	fact("Types chosen by", markdown(text(c.made, "quantize.types.method")))
	fact("Chosen over a text with SHA-256", code(cmp.Or(text(c.made, "quantize.calibration.text_sha256"),
		text(c.made, "quantize.types.text_sha256"))))
	fact("Effort of the calibration", markdown(opt.Effort))
	for _, in := range opt.Inputs {
		fact(markdown(in.What), fmt.Sprintf("%s, %s, SHA-256 %s", code(in.Name), size.Text(in.Bytes), code(in.SHA256)))
	}
}

// setImage sets what an image or video model needs, and its task unless the metadata have one.
func (c *Card) setImage() {
	arch := c.metadata.Architecture()
	if diffusion.ByName(arch) == nil {
		return
	}
	names := []string{c.BaseModel, text(c.metadata, gguf.KeyName)}
	for _, f := range c.Files {
		names = append(names, baseName(f.Path))
	}
	c.Image = &Image{diffusion.UseOf(arch, strings.Join(names, " ")), false}
	c.Image.Diffusers = c.Image.Class != "" && hubName.MatchString(c.BaseModel)
	if c.pipeline == textGeneration {
		c.pipeline = c.Image.Tag
	}
}

// describeMatrix adds a fact about the importance matrix.
func (c *Card) describeMatrix(fact func(name, value string)) {
	name, over := text(c.made, "quantize.imatrix.file"), baseName(text(c.made, "quantize.imatrix.dataset"))
	if name == "" {
		return
	}
	about := code(baseName(name))
	if over != "" {
		about += ", made with " + code(over)
	}
	number := func(key, what string) {
		if v, ok := c.made.Get(key); ok {
			if n, ok := v.Int(); ok {
				about += fmt.Sprintf(", %d %s", n, what)
			}
		}
	}
	number("quantize.imatrix.chunks_count", "chunks")
	number("quantize.imatrix.entries_count", "tensors")
	fact("Importance matrix", about)
}

// ours is the default template.
//
//go:embed default.md.tmpl
var ours string
