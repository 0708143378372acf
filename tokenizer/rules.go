package tokenizer

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Rules make the vocabulary of a checkpoint's tokenizer files: what a family of models declares as its tokenizer. The
// kinds of vocabulary (SentencePiece, BPE, WordPiece and others) have options; Either, ByClass and similar ones choose
// between rules; what no other family has is a type of its own.
type Rules interface {
	// load fills v, which is initially empty, with the keys to write.
	load(f *files, v *Vocab, opt Options) error
}

// FileRules are rules for which a checkpoint must have certain files.
type FileRules interface {
	Rules
	// present reports whether the files are there.
	present(f *files) bool
}

// Either is First if the checkpoint has its files, otherwise Else.
type Either struct {
	First FileRules
	Else  Rules
	Then  Steps
}

func (e Either) load(f *files, v *Vocab, opt Options) error {
	rules := e.Else
	if e.First.present(f) {
		rules = e.First
	}
	if err := rules.load(f, v, opt); err != nil {
		return err
	}
	return e.Then.apply(f, v, opt)
}

// Fallback is First unless that fails although the checkpoint has the files of Else: then it is Else, with a warning.
type Fallback struct {
	First Rules
	Else  FileRules
}

func (b Fallback) load(f *files, v *Vocab, opt Options) error {
	var first Vocab
	err := b.First.load(f, &first, opt)
	if err == nil || !b.Else.present(f) {
		*v = first
		return err
	}
	v.warnf("other tokenizer taken: %v", err)
	return b.Else.load(f, v, opt)
}

// Sized is Is for a vocabulary of Size tokens, or if config.json has no size; otherwise Else.
type Sized struct {
	Size     int
	Is, Else Rules
}

func (s Sized) load(f *files, v *Vocab, opt Options) error {
	if opt.VocabSize == s.Size || opt.VocabSize == 0 {
		return s.Is.load(f, v, opt)
	}
	return s.Else.load(f, v, opt)
}

// NamedRules are rules and the name by which they are chosen.
type NamedRules struct {
	Name string
	Rules
}

// ByClass chooses by tokenizer_class of tokenizer_config.json.
type ByClass struct {
	Classes []NamedRules
	Else    Rules // for all other classes, and without the file; nil: neither is supported
	Then    Steps
}

func (b ByClass) load(f *files, v *Vocab, opt Options) error {
	class, given := f.config.Lookup("tokenizer_class")
	i := slices.IndexFunc(b.Classes, func(r NamedRules) bool { return class == r.Name })
	rules := b.Else
	switch {
	case f.config == nil && rules == nil:
		return missingf(configFile, "no such file")
	case f.config != nil && !given && rules != nil:
		return badf(configFile, "no tokenizer_class")
	case i >= 0:
		rules = b.Classes[i].Rules
	case rules == nil:
		return unsupportedf("%s: tokenizer_class %s, want %s for this architecture", configFile, kindName(class),
			namesOf(b.Classes))
	}
	if err := rules.load(f, v, opt); err != nil {
		return err
	}
	return b.Then.apply(f, v, opt)
}

// ByModel chooses by the type of tokenizer.json's model.
type ByModel []NamedRules

func (b ByModel) load(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file")
	}
	model, _ := f.json.Get("model").(*pyjson.Object)
	typ := model.Get("type")
	for _, r := range b {
		if typ == r.Name {
			return r.load(f, v, opt)
		}
	}
	return unsupportedf("%s: model type %s, want %s for this architecture", jsonFile, kindName(typ), namesOf(b))
}

func namesOf(list []NamedRules) string {
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}
	return strings.Join(names, " or ")
}

// Folder are rules for files in a folder of the checkpoint.
type Folder struct {
	Name string
	Rules
	Then Steps
}

func (d Folder) load(f *files, v *Vocab, opt Options) error {
	sub, err := openFiles(folder{f.dir, d.Name}, opt)
	if err != nil {
		return err
	}
	if err := d.Rules.load(sub, v, opt); err != nil {
		return err
	}
	return d.Then.apply(sub, v, opt)
}

// folder are the files of a folder.
type folder struct {
	Files
	name string
}

func (f folder) ReadFile(name string) ([]byte, error) {
	return f.Files.ReadFile(path.Join(f.name, name))
}
func (f folder) Stat(name string) (fs.FileInfo, error) { return f.Files.Stat(path.Join(f.name, name)) }
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return f.Files.ReadDir(path.Join(f.name, name))
}

// None is for models without text. Source: _set_vocab_none (conversion/base.py).
type None struct{}

func (None) load(_ *files, v *Vocab, _ Options) error {
	v.Model = "none"
	v.kvs.Set(keyModel, gguf.String(v.Model))
	return nil
}

// Target stands for the rules of a draft model's target; callers of Load replace it.
type Target struct{}

func (Target) load(*files, *Vocab, Options) error {
	return unsupportedf("a draft model has the tokenizer of its target model")
}
