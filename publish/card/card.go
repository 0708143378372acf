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

	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
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
	// Results are measurements besides those in the folder.
	Results []Result
	// Only, unless nil, are the files that the card lists, with slashes, below the folder: models, their sidecars
	// and measurements. Warnings name the other models in the folder.
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
	Advice                 string // whether to take it
	What                   string // the purpose of a sidecar
}

// Fact is a line about where files come from.
type Fact struct{ Name, Value string }

// Card is the data of a template. Its texts are escaped for Markdown.
type Card struct {
	Title, Description, Architecture, Size, License string
	Source                                          string // the model before quantization, with a link
	BaseModel                                       string // its name on the hub, or ""; not escaped
	Files                                           []File // models, the largest first
	Sidecars                                        []File // loaded next to them: encoders, adapters, draft models
	Contexts                                        []string
	HasDivergence, HasPerplexity                    bool
	Measured                                        string // name of the text of the measurements, "" for none
	Provenance                                      []Fact
	Warnings                                        []string // facts that are missing; not escaped, not in the card

	dir         string
	read        []string      // files that were read
	metadata    gguf.Metadata // of the first model
	made        gguf.Metadata // of a model with an importance matrix, if there is any
	imatrix     bool
	pipeline    string
	quantizedBy string
	template    string
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
		f, m, err := readFile(dir, path)
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
	c.setMemory()
	c.advise()
	c.pipeline = pipelineOf(c.metadata, encoder)
	c.describe(opt)
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
		f.KLD, f.PPL = m.Divergence, m.PPL
		if f.KLD != nil {
			c.HasDivergence, f.Divergence = true, fmt.Sprintf("%.5f ± %.5f", f.KLD.Mean, f.KLD.Error)
		}
		if f.PPL != nil {
			c.HasPerplexity, f.Perplexity = true, fmt.Sprintf("%.4f ± %.4f", f.PPL.Mean, f.PPL.Error)
		}
	}
	if !c.HasDivergence && !c.HasPerplexity {
		return
	}
	c.Measured = "Measured over " + code(r.Text)
	if r.Predicted > 0 {
		c.Measured += fmt.Sprintf(", %d tokens predicted in chunks of %d", r.Predicted, r.Chunk)
	}
	c.Measured += "."
	if c.HasDivergence {
		c.Measured += " KL divergence is how far the probabilities are from those of the model before quantization, " +
			"in nats for a token: less is better."
	}
	if r.Base != nil {
		c.Measured += fmt.Sprintf(" That model's perplexity is %.4f ± %.4f.", r.Base.Mean, r.Base.Error)
	}
}

// describe sets the description of the model and of its origin.
func (c *Card) describe(opt Options) {
	m := c.metadata
	name := cmp.Or(plain(text(m, gguf.KeyName)), plain(text(m, gguf.KeyBasename)), filepath.Base(c.dir))
	c.Title, c.Description, c.Architecture, c.Size = markdown(name), markdown(text(m, "general.description")),
		code(m.Architecture()), markdown(text(m, gguf.KeySizeLabel))
	repo := cmp.Or(text(m, "general.source.repo_url"), text(m, "general.repo_url"))
	c.BaseModel = cmp.Or(opt.BaseModel, HubModel(repo), HubModel(text(m, "general.source.url")))
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
	fact := func(name, value string) {
		if value != "" {
			c.Provenance = append(c.Provenance, Fact{name, value})
		}
	}
	fact("Model", c.Source)
	fact("Author", markdown(cmp.Or(text(m, "general.author"), text(m, "general.organization"))))
	for _, id := range sources(m, "general.base_model") {
		if id != c.BaseModel {
			fact("Made from", link(id, hub+id))
		}
	}
	fact("Quantized by", markdown(c.quantizedBy))
	fact("Program", markdown(opt.Program))
	fact("Importance matrix", code(text(c.made, "quantize.imatrix.file")))
	fact("made over", code(baseName(text(c.made, "quantize.imatrix.dataset"))))
	for _, n := range []struct{ key, name string }{{"quantize.imatrix.entries_count", "tensors"},
		{"quantize.imatrix.chunks_count", "chunks"}} {
		if v, ok := c.made.Get(n.key); ok {
			i, _ := v.Int()
			fact(n.name+" in it", fmt.Sprint(i))
		}
	}
	fact("Blocks chosen by", markdown(text(c.made, "quantize.calibration.method")))
	fact("Types chosen by", markdown(text(c.made, "quantize.types.method")))
	fact("over a text with SHA-256", code(cmp.Or(text(c.made, "quantize.calibration.text_sha256"),
		text(c.made, "quantize.types.text_sha256"))))
}

// ours is the default template.
//
//go:embed default.md.tmpl
var ours string
