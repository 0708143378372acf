// Package arch has the model architectures: the Hugging Face classes of each, the metadata of its GGUF file with the
// source of each value, and the mapping of the checkpoint's tensors.
//
// An architecture is a table (see package table). Each family of models has one file here, and more for its vision and
// audio encoders (NAME_vision.go, NAME_audio.go), whose private names no other family uses; package parts has the rows
// that several families share. To add an architecture, write a file with its table and register it there. Logic that does
// not fit in a row becomes a named kind of row or a named transform that any architecture may use.
package arch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ggforge/arch/config"
	"ggforge/arch/diffusion"
	"ggforge/arch/graph"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/nearest"
)

//go:generate sh -c "cd .. && go run ./test/gen/archtable"

// registered has the tables in the order in which the families' files are initialized, which nothing may depend on.
var registered []*table.Arch

// register adds the tables of a family's file. A class belongs to one table.
func register(tables ...*table.Arch) struct{} {
	registered = append(registered, tables...)
	return struct{}{}
}

// registry has the tables sorted by name; of those with one name the one of the most classes comes first, which
// LookupGGUF prefers.
var registry = sync.OnceValue(func() []*table.Arch {
	return slices.SortedFunc(slices.Values(registered), func(a, b *table.Arch) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(len(b.Classes), len(a.Classes)),
			slices.Compare(a.Classes, b.Classes))
	})
})

// encodersOf makes the tables of the vision and audio encoders.
var encodersOf []func() *table.Arch

// registerEncoder is register for tables of vision and audio encoders: files of architecture clip (mmproj), which
// runtimes load next to the model's own. A class has one table of each kind.
func registerEncoder(tables ...*table.Arch) struct{} {
	for _, a := range tables {
		registerEncoderOf(func() *table.Arch { return a })
	}
	return struct{}{}
}

// registerEncoderOf is registerEncoder for tables with hundreds of rows, which are built on demand: few commands need
// them.
func registerEncoderOf(tables ...func() *table.Arch) struct{} {
	encodersOf = append(encodersOf, tables...)
	return struct{}{}
}

// encoders has the tables of encoders sorted by their first classes.
var encoders = sync.OnceValue(func() []*table.Arch {
	var all []*table.Arch
	for _, of := range encodersOf {
		all = append(all, of())
	}
	slices.SortFunc(all, func(a, b *table.Arch) int { return strings.Compare(a.Classes[0], b.Classes[0]) })
	return all
})

// Lookup returns the architecture of a Hugging Face class. An unknown class
// gives an error of kind fault.Unsupported that names the nearest
// known ones.
func Lookup(class string) (*table.Arch, error) {
	if a := find(class); a != nil {
		return a, nil
	}
	if why, ok := classHints[class]; ok {
		return nil, fault.Errorf(fault.Unsupported, "architecture %q %s", class, why)
	}
	class = nearest.Compared(class) // limits the length, whatever the file has
	return nil, fault.Errorf(fault.Unsupported, "architecture %q is not supported; the nearest that are: %s",
		class, strings.Join(nearestClasses(class, Classes()), ", "))
}

// find returns the table of a class, nil for none.
func find(class string) *table.Arch {
	for _, a := range registry() {
		if slices.Contains(a.Classes, class) || slices.Contains(a.Body.Classes, class) {
			return a
		}
	}
	return nil
}

// classHints has, for classes without a language model, a hint about the model to convert instead.
var classHints = map[string]string{
	"UltravoxModel": "has no language model of its own: convert the one that text_model_id in its config.json names",

	"CLIPModel": "is " + diffusion.CLIPHint, "CLIPTextModel": "is " + diffusion.CLIPHint,
	"CLIPTextModelWithProjection": "is " + diffusion.CLIPHint,
}

// LoadConfig reads config.json. A missing or broken file gives an error of kind
// fault.Broken.
func LoadConfig(files config.Files) (*config.Config, error) { return LoadConfigAs("", files) }

// LoadConfigAs is LoadConfig with a class that overrides the file's; "" for the file's own.
func LoadConfigAs(class string, files config.Files) (*config.Config, error) {
	d, err := ReadDecision(files)
	switch {
	case err != nil:
		return nil, err
	case d != nil:
		return d.Parse(class, &families)
	}
	data, err := config.ReadConfig(files, config.ConfigFile)
	if err != nil {
		return nil, err
	}
	return config.ParseAs(class, data, &families)
}

// ParseConfig is LoadConfig for the file's bytes.
func ParseConfig(data []byte) (*config.Config, error) { return config.Parse(data, &families) }

// families are the rules for configurations of language models, encoderFamilies those for encoders.
var (
	families = config.Families{
		Class: func(class string) *config.Rules { return rulesOf(find(class)) },
		Type:  func(modelType string) *config.Rules { return typeRules()[modelType] },
	}
	encoderFamilies = config.Families{
		Class: func(class string) *config.Rules { return rulesOf(findEncoder(class)) },
		Type:  families.Type,
	}
)

func rulesOf(a *table.Arch) *config.Rules {
	if a == nil {
		return nil
	}
	return &a.Config
}

// typeRules has the rules by model type.
var typeRules = sync.OnceValue(func() map[string]*config.Rules {
	rules := map[string]*config.Rules{}
	for _, a := range registry() {
		for _, a := range append([]*table.Arch{a}, a.Variants...) {
			for _, t := range a.Config.Types {
				rules[t] = &a.Config
			}
		}
	}
	return rules
})

// ConfigOf is LoadConfig or, if encoder, LoadEncoder for models without a config.json that are recognized by the shapes
// of the tensors in a file; nil for all others.
func ConfigOf(file string, shapes map[string][]int64, encoder bool) (*config.Config, error) {
	for _, a := range registry() {
		if a.Config.Shapes == nil {
			continue
		}
		data, ok, err := a.Config.Shapes(file, shapes)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		parse := ParseConfig
		if encoder {
			parse = func(data []byte) (*config.Config, error) { return ParseEncoder("", data) }
		}
		c, err := parse(data)
		if err == nil {
			c.File = file
		}
		return c, err
	}
	return nil, nil
}

// For returns the table of a model: that of its class, or the variant for its config.
func For(c *config.View) (*table.Arch, error) {
	a := mistralFormat
	if c.File != config.ParamsFile {
		var err error
		if a, err = Lookup(c.Class); err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
	}
	if a.Variant == nil {
		return a, nil
	}
	other, err := a.Variant(c)
	if err == nil && other != nil {
		a = other
	}
	return a, err
}

// All returns the tables of all architectures, sorted by name.
func All() []*table.Arch { return slices.Clone(registry()) }

// Classes returns all Hugging Face class names, sorted.
func Classes() []string {
	var all []string
	for _, a := range registry() {
		all = append(append(all, a.Classes...), a.Body.Classes...)
	}
	slices.Sort(all)
	return all
}

// KeyType returns the type of a metadata key in files of an architecture: from gguf.StandardType, else from the
// architecture's table. elem is the type of the elements of an array.
func KeyType(architecture, key string) (typ, elem gguf.ValueType, ok bool) {
	if typ, elem, ok = gguf.StandardType(key); ok || architecture == "" {
		return typ, elem, ok
	}
	a, err := LookupGGUF(architecture)
	if err != nil {
		return 0, 0, false
	}
	for name, r := range a.Rows() {
		if name != key {
			continue
		}
		if typ, ok = r.ValueType(); ok {
			return typ, 0, true
		}
		// a Derive function has no declared type; the key has the same type in all architectures
		for _, other := range registry() {
			for _, same := range other.Rows() {
				if typ, ok = same.ValueType(); ok && same.Key == r.Key {
					return typ, 0, typ != gguf.ArrayType
				}
			}
		}
	}
	return 0, 0, false
}

// Names returns the values of general.architecture in files of a class: its table's, and its variants' for some
// configurations. It is empty for an unknown class.
func Names(class string) []string {
	a, err := Lookup(class)
	if err != nil {
		return nil
	}
	return names(a)
}

// EncoderNames is Names for the class of a vision or audio encoder.
func EncoderNames(class string) []string {
	a, err := LookupEncoder(class)
	if err != nil {
		return nil
	}
	return names(a)
}

func names(a *table.Arch) []string {
	list := []string{a.Name}
	for _, other := range a.Variants {
		if !slices.Contains(list, other.Name) {
			list = append(list, other.Name)
		}
	}
	return list
}

// LookupGGUF returns the table for a general.architecture, for the conversion back to a checkpoint. An unknown one
// gives an error of kind fault.Unsupported that lists the known ones.
func LookupGGUF(name string) (*table.Arch, error) {
	var known []string
	for _, a := range registry() {
		if !a.Invertible() {
			continue
		}
		if a.Name == name {
			return a, nil
		}
		known = append(known, a.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return nil, fault.Errorf(fault.Unsupported, "architecture %q is not supported here; supported are: %s", name,
		strings.Join(known, ", "))
}

// Tables returns the tables of a general.architecture, those of variants included; none for an unknown one.
func Tables(name string) (list []*table.Arch) {
	for _, a := range registry() {
		for _, t := range append([]*table.Arch{a}, a.Variants...) {
			if t.Name == name && !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}

// ForFile returns a table by the metadata of a file, to check them and its tensors; nil for an unknown architecture. The
// tables of a name have the same Shapes, but for those of decision models, which have no graph.
func ForFile(m gguf.Metadata) *table.Arch {
	name := m.Architecture()
	_, decides := m.Get(gguf.ArchKey(name, "decision.type"))
	list := Tables(name)
	for _, a := range list {
		if a.Graph == nil == decides {
			return a
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// Graph returns what a file with that general.architecture computes; nil: nobody has declared it yet. Unlike LookupGGUF
// it also finds the tables of variants, and those that cannot be inverted.
func Graph(name string) *graph.Model {
	for _, a := range Tables(name) {
		if a.Graph != nil {
			return a.Graph
		}
	}
	return nil
}

// LookupEncoder is Lookup for the class of a vision or audio encoder.
func LookupEncoder(class string) (*table.Arch, error) {
	if a := findEncoder(class); a != nil {
		return a, nil
	}
	class = nearest.Compared(class)
	return nil, fault.Errorf(fault.Unsupported,
		"no vision or audio encoder is supported for class %q; the closest supported classes: %s",
		class, strings.Join(nearestClasses(class, EncoderClasses()), ", "))
}

// findEncoder returns the table of a class with a vision or audio encoder, nil for none.
func findEncoder(class string) *table.Arch {
	for _, a := range encoders() {
		if slices.Contains(a.Classes, class) {
			return a
		}
	}
	return nil
}

// ReadDecision reads the configurations of a decision model; it returns nil for other models.
func ReadDecision(files config.Files) (*config.Decision, error) {
	for _, a := range registry() {
		if a.Config.Decision == nil {
			continue
		}
		if d, err := a.Config.Decision(files); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// ReadAdapterDecision is ReadDecision for an adapter that turns its base model into a decision model. Call WithBase
// next, for the base model's configuration.
func ReadAdapterDecision(files config.Files) (*config.Decision, error) {
	for _, a := range registry() {
		if a.Config.Adapter == nil {
			continue
		}
		if d, err := a.Config.Adapter(files); d != nil || err != nil {
			if err == nil {
				err = d.ReadRevision(files)
			}
			return d, err
		}
	}
	return nil, nil
}

// LoadDecision is LoadConfigAs, or LoadEncoder, for an adapter that turns its base model into a decision model.
func LoadDecision(class string, d *config.Decision, encoder bool) (*config.Config, error) {
	if encoder {
		return d.ParseEncoder(class, &encoderFamilies)
	}
	return d.Parse(class, &families)
}

// LoadEncoder is LoadConfigAs for a model's vision or audio encoder.
func LoadEncoder(class string, files config.Files) (*config.Config, error) {
	d, err := ReadDecision(files)
	switch {
	case err != nil:
		return nil, err
	case d != nil:
		return d.ParseEncoder(class, &encoderFamilies)
	}
	data, err := config.ReadConfig(files, config.ConfigFile)
	if err != nil {
		return nil, err
	}
	return ParseEncoder(class, data)
}

// ParseEncoder is LoadEncoder for the file's bytes.
func ParseEncoder(class string, data []byte) (*config.Config, error) {
	return config.ParseEncoder(class, data, &encoderFamilies)
}

// EncoderFor returns the table of a model's vision or audio encoder.
func EncoderFor(c *config.View) (*table.Arch, error) {
	a := mistralFormatVision
	if c.File != config.ParamsFile {
		var err error
		if a, err = LookupEncoder(c.Class); err != nil {
			return nil, err
		}
	}
	if a.Variant != nil {
		if other, err := a.Variant(c); err != nil || other != nil {
			return other, err
		}
	}
	return a, nil
}

// EncoderClasses returns the classes of models with a vision or audio encoder, sorted.
func EncoderClasses() []string {
	var all []string
	for _, a := range encoders() {
		all = append(all, a.Classes...)
	}
	slices.Sort(all)
	return all
}
