// Package arch knows the model architectures: which Hugging Face classes belong
// to one, which metadata its GGUF file has and where each value comes from, and
// what each tensor of the checkpoint becomes.
//
// An architecture is a table (see Arch). Supporting one more is a file with its
// table and a line in registry; what cannot be written as a row becomes a named
// kind of row or a named transform that any architecture may use.
package arch

import (
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/tokenizer"
)

// Arch describes one architecture.
type Arch struct {
	Name      string   // GGUF name, general.architecture
	Classes   []string // Hugging Face class names ("architectures" of config.json)
	Tokenizer tokenizer.Class
	Metadata  []Row       // in the order the file has them, below the architecture's name
	Expect    []Expect    // config keys that change arithmetic and have one meaning here
	Tensors   []TensorRow // what becomes of each tensor of the checkpoint
	Extra     []ExtraTensor
}

// registry lists the architectures; a class belongs to one of them.
var registry = []*Arch{
	llama,
}

// Lookup returns the architecture of a Hugging Face class. An unknown class
// gives an error of kind fault.Unsupported that lists the known ones.
func Lookup(class string) (*Arch, error) {
	for _, a := range registry {
		if slices.Contains(a.Classes, class) {
			return a, nil
		}
	}
	return nil, fault.Errorf(fault.Unsupported, "%s: architecture %q is not supported; supported are: %s",
		ConfigFile, class, strings.Join(Classes(), ", "))
}

// LookupGGUF returns the architecture that a GGUF file names. An unknown one
// gives an error of kind fault.Unsupported that lists the known ones.
func LookupGGUF(name string) (*Arch, error) {
	var known []string
	for _, a := range registry {
		if a.Name == name {
			return a, nil
		}
		known = append(known, a.Name)
	}
	slices.Sort(known)
	return nil, fault.Errorf(fault.Unsupported, "architecture %q is not supported; supported are: %s", name, strings.Join(known, ", "))
}

// Classes returns all Hugging Face class names, sorted.
func Classes() []string {
	var all []string
	for _, a := range registry {
		all = append(all, a.Classes...)
	}
	slices.Sort(all)
	return all
}

// KVs returns the metadata below the architecture's name, general.file_type
// among it, in the order of the reference.
func (a *Arch) KVs(c *Config, fileType uint32) (gguf.Metadata, error) {
	for _, e := range a.Expect {
		if err := e.check(a, c); err != nil {
			return nil, err
		}
	}
	var m gguf.Metadata
	for _, r := range a.Metadata {
		if r.Key == gguf.KeyFileType {
			m.Set(r.Key, gguf.Uint32(fileType))
			continue
		}
		v, ok, err := r.value(c)
		if err != nil {
			return nil, err
		}
		if ok {
			m.Set(gguf.ArchKey(a.Name, r.Key), v)
		}
	}
	return m, nil
}

// Expect names a config key whose value decides the arithmetic of the model,
// where the GGUF architecture knows one kind of arithmetic only.
type Expect struct {
	Key    string
	Values []string // those that mean what the architecture does; an absent key does too
}

func (e Expect) check(a *Arch, c *Config) error {
	s, ok, err := c.String(e.Key)
	if err != nil || !ok || slices.Contains(e.Values, s) {
		return err
	}
	return fault.Errorf(fault.Unsupported, "%s: key %q is %q, but models of architecture %s compute with %s only",
		ConfigFile, e.Key, s, a.Name, strings.Join(e.Values, " or "))
}
