// Package card writes the card of a folder with GGUF files, README.md: front matter as the
// Hugging Face hub reads it, a table of the files with their sizes, what was measured of them and
// which to take, and where they come from.
//
//	metadata of the files ─┐
//	JSON of ggeval ────────┼─► Card ──► template ──► sections with marks ──► README.md
//	Options ───────────────┘                              ▲
//	                       what is written by hand ───────┘ stays
//
// Metadata are untrusted text. A template gets each value as one line, without control characters and marks of
// direction, escaped for Markdown, tables and HTML: a value adds no markup, and no link other than to the http and
// https addresses that are meant as such.
// Names and values of the front matter are quoted by the YAML library.
package card

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/convert/general"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/size"
	"ggforge/quantize"
	"ggforge/writer"
)

// FileName is the name of a card.
const FileName = "README.md"

// Options hold the facts of a card that are not in the files. The zero value adds none.
type Options struct {
	// BaseModel is the model of the hub that the files are quantized from, ORG/NAME, instead of what
	// they say.
	BaseModel   string
	QuantizedBy string // instead of general.quantized_by
	Template    string // text of a template, see package text/template; "" for ours
	Program     string // that has made the files, with its version
	// Results are measurements besides those in the folder.
	Results []Result
	// Only, unless nil, are the files that the card is of, with slashes, below the folder: models, what belongs to
	// them, and measurements. Other models in the folder are named in Warnings.
	Only []string
}

// File is a model, or what belongs to one, in a folder. Its texts are escaped for Markdown.
type File struct {
	Path   string       // with slashes, below the folder; not escaped
	Shards int          // files; 1 for a whole one
	Bytes  int64        // of all of them
	Bits   float64      // per weight
	KLD    *Figure      // from the model that it was made of
	PPL    *Figure      // perplexity
	Link   string       // name with address
	uses   []memory.Use // at each of contextsOf, none for what is not known
	Type   string       // recipe
	Size   string       // Bytes as text
	BPW    string       // Bits as text
	Memory []string     // for each of Card.Contexts

	Divergence, Perplexity string
	Advice                 string // which to take
	What                   string // what a sidecar is
}

// Fact is a line about where files come from.
type Fact struct{ Name, Value string }

// Card is what a template gets, but for its methods. Its texts are escaped for Markdown.
type Card struct {
	Title, Description, Architecture, Size, License string
	Source                                          string // what the files were made of, with a link
	BaseModel                                       string // that of the hub, or ""; not escaped
	Files                                           []File // models, the largest first
	Sidecars                                        []File // what is loaded next to them
	Contexts                                        []string
	HasDivergence, HasPerplexity                    bool
	Measured                                        string // over which text, "" for nothing measured
	Provenance                                      []Fact
	Warnings                                        []string // what is not known; not escaped, and not for the card

	dir         string
	read        []string      // files that were read
	metadata    gguf.Metadata // of the first model
	made        gguf.Metadata // of one with an importance matrix, if there is any
	imatrix     bool
	pipeline    string
	quantizedBy string
	template    string
}

// maxFiles bounds the files of one card.
const maxFiles = 10000

// Of looks at the files in a folder and in those below it. A folder without a model is an error of kind
// fault.Usage, one with several models is one of kind fault.Refused.
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
		f, m, err := look(dir, path)
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
	c.measure(append(found, opt.Results...))
	c.remember()
	c.advise()
	c.pipeline = pipelineOf(c.metadata, encoder)
	c.describe(opt)
	return c, nil
}

// list returns the files of models in a folder and below it, of shards the first, and the files of JSON in
// the folder itself.
func list(dir string) (models, results []string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, fault.Errorf(fault.Usage, "%s: want a folder with GGUF files", dir)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		if strings.HasPrefix(e.Name(), ".") {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel = filepath.ToSlash(rel)
		switch {
		case e.IsDir():
		case strings.HasSuffix(rel, ".gguf"):
			if _, no, _, ok := gguf.ParseShardName(e.Name()); !ok || no == 0 {
				models = append(models, rel)
			}
		case strings.HasSuffix(rel, ".json") && !strings.Contains(rel, "/"):
			results = append(results, rel)
		}
		if len(models) > maxFiles {
			return fault.Errorf(fault.Refused, "%s: more than %d models", dir, maxFiles)
		}
		return nil
	})
	return models, results, err
}

// encoderRole is the description of a vision or audio encoder in the list of files.
const encoderRole = "sees or hears for the model"

// look reads the header of a model.
func look(dir, path string) (*File, gguf.Metadata, error) {
	set, err := gguf.OpenSet(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return nil, nil, err
	}
	defer set.Close()
	m := slices.Clone(set.Metadata())
	f := &File{Path: path, Shards: len(set.Files), Bytes: set.Size()}
	for _, context := range contextsOf(m) {
		// else the runtime cannot run it
		if use, err := memory.Estimate(memory.From(set), memory.Options{Context: context}); err == nil {
			f.uses = append(f.uses, use)
		}
	}
	f.Bits = gguf.BPW(func(yield func(*gguf.Tensor) bool) {
		for _, t := range set.Tensors() {
			if !yield(t) {
				return
			}
		}
	})
	f.Size, f.BPW, f.Link = size.Text(f.Bytes), fmt.Sprintf("%.2f", f.Bits), link(path, relative(path))
	if r, ok := quantize.RecipeOf(m); ok {
		f.Type = code(r.Name)
	}
	switch kind := text(m, gguf.KeyType); {
	case kind == "mmproj" || m.Architecture() == "clip":
		f.What = encoderRole
	case kind == "adapter":
		f.What = "an adapter of the model"
	case kind == "imatrix":
		f.What = "importance matrix: not loaded, for making further files"
		f.Type = ""
	case strings.HasPrefix(filepath.Base(path), "mtp-"):
		f.What = "predicts further tokens for the model"
	default:
		if text(m, gguf.KeySizeLabel) == "" {
			m.Set(gguf.KeySizeLabel, gguf.String(general.Count(set.Shapes()).SizeLabel()))
		}
	}
	return f, m, nil
}

// contexts are the lengths, in tokens, that a card says the memory of.
var contexts = []int64{4 << 10, 16 << 10, 64 << 10, 128 << 10}

// contextsOf returns those that a model was trained for, or the one that it was trained for if that is less.
func contextsOf(m gguf.Metadata) []int64 {
	v, _ := m.Get(gguf.ArchKey(m.Architecture(), "context_length"))
	trained, ok := v.Int()
	if !ok || trained < 1 {
		return contexts[:1]
	}
	n := 0
	for n < len(contexts) && contexts[n] <= trained {
		n++
	}
	if n == 0 {
		return []int64{trained}
	}
	return contexts[:n]
}

// remember sets the memory that files take. It is left out if that of one of them is not known.
func (c *Card) remember() {
	list := contextsOf(c.metadata)
	for i := range c.Files {
		if len(c.Files[i].uses) != len(list) {
			return
		}
	}
	for k, context := range list {
		name := fmt.Sprintf("%dk", context>>10)
		if context%1024 != 0 {
			name = fmt.Sprint(context)
		}
		c.Contexts = append(c.Contexts, name)
		for i := range c.Files {
			f := &c.Files[i]
			f.Memory = append(f.Memory, size.Text(f.uses[k].Total()))
		}
	}
}

// measure takes the figures of results.
func (c *Card) measure(all []Result) {
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

//go:embed default.md.tmpl
var ours string

// Writable returns the error that writing a card into a folder would end with because of the card that is there
// or of the options: for runs that take long before.
func Writable(dir string, opt Options, force bool) error {
	if opt.BaseModel != "" && !HubName(opt.BaseModel) {
		return fault.Errorf(fault.Usage, "base model %q: want ORG/NAME", opt.BaseModel)
	}
	if _, err := parseTemplate(opt.Template, new(limits)); err != nil {
		return err
	}
	c := &Card{dir: dir}
	_, err := c.old(force)
	return err
}

// Text returns the card as it is without anything by hand. Texts of the template that is not ours
// and cannot be carried out are an error of kind fault.Usage.
func (c *Card) Text() (string, error) {
	body, err := c.filled()
	if err != nil {
		return "", err
	}
	front, err := c.frontMatter()
	if err != nil {
		return "", err
	}
	head := strings.Join(slices.Concat([]string{frontRule, frontBegin}, front, []string{frontEnd, frontRule}), "\n") +
		"\n"
	card := head + body
	d, err := parseDocument("template", card)
	if err == nil && len(d.body) == 1 { // without marks all of it is generated
		card = head + beginMark("card") + "\n" + strings.TrimSuffix(body, "\n") + "\n" + endMark("card") + "\n"
	}
	return card, err
}

// maxCard bounds a card that is there already.
const maxCard = 4 << 20

// Update returns the card to be written, and whether it differs from the one that is there, whose parts by
// hand it has. A README.md without marks is an error of kind fault.Usage, unless force replaces it.
func (c *Card) Update(force bool) (card string, differs bool, err error) {
	next, err := c.Text()
	if err != nil {
		return "", false, err
	}
	old, err := c.old(force)
	if err != nil {
		return "", false, err
	}
	if old == nil {
		return next, true, nil
	}
	card, err = merge(c.Path(), *old, next)
	return card, card != *old, err
}

// old returns the card that is there, nil for none, or for one that force lets replace.
func (c *Card) old(force bool) (*string, error) {
	path := c.Path()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCard {
		return nil, fault.Errorf(fault.Usage, "%s: want a file of at most %d bytes", path, maxCard)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, fault.Errorf(fault.Broken, "%s: is not UTF-8", path)
	}
	text := string(data)
	d, err := parseDocument(path, text)
	switch {
	case err != nil:
		return nil, err
	case d.ours():
		return &text, nil
	case force:
		return nil, nil
	}
	return nil, fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist),
		"%s: exists and has no marks of a generated card", path))
}

// merge returns a card with what is by hand in the one that is there.
func merge(path, old, next string) (string, error) {
	d, err := parseDocument(path, old)
	if err != nil {
		return "", err
	}
	n, err := parseDocument("template", next)
	if err != nil {
		return "", err
	}
	card, err := d.update(n)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return card, nil
}

// Path returns where the card is, or will be.
func (c *Card) Path() string { return filepath.Join(c.dir, FileName) }

// Write writes what Update returns, unless it is there already.
func (c *Card) Write(ctx context.Context, force bool) (differs bool, err error) {
	card, differs, err := c.Update(force)
	if err != nil || !differs {
		return false, err
	}
	return true, writer.WriteBytes(ctx, c.Path(), []byte(card), writer.Options{Force: true, Inputs: c.read})
}
