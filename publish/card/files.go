package card

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "ggforge/arch" // graphs for package memory
	"ggforge/convert/general"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/size"
	"ggforge/publish/modelfile"
	"ggforge/publish/sign"
	"ggforge/quantize"
)

// list returns the models in a folder and its subfolders, for a model in shards its first shard, and the JSON files in
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

// readFile reads the header of a model.
func readFile(dir, path string, contexts []int64) (*File, gguf.Metadata, error) {
	set, err := gguf.OpenSet(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return nil, nil, err
	}
	defer set.Close()
	m := slices.Clone(set.Metadata())
	f := &File{Path: path, Shards: len(set.Files), Bytes: set.Size()}
	for _, context := range contextsOf(m, contexts) {
		// an error means that llama.cpp cannot run it
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
	f.Size, f.BPW, f.Link = unbroken(size.Text(f.Bytes)), fmt.Sprintf("%.2f", f.Bits), link(path, relative(path))
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

// DefaultContexts are the context lengths, in tokens, for which a card has the memory unless it is asked for others.
var DefaultContexts = []int64{8 << 10}

// contextsOf returns the wanted contexts up to the length that a model was trained for, or that length if all are
// longer.
func contextsOf(m gguf.Metadata, wanted []int64) (list []int64) {
	if len(wanted) == 0 {
		wanted = DefaultContexts
	}
	v, _ := m.Get(gguf.ArchKey(m.Architecture(), "context_length"))
	trained, ok := v.Int()
	if !ok || trained < 1 {
		return wanted
	}
	for _, n := range wanted {
		if n = min(n, trained); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// setMemory sets the memory that each file needs, or none at all if it is unknown for one of them.
func (c *Card) setMemory(wanted []int64) {
	list := contextsOf(c.metadata, wanted)
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
			f.Memory = append(f.Memory, unbroken(size.Text(f.uses[k].Total())))
		}
	}
}

// companions are files next to models that a card names, with what they are.
var companions = []Fact{
	{"index.html", "divergence against size, with links to a page about each file"},
	{"quality.json", "all measurements"},
	{"Modelfile", "for `ollama create`"},
	{"SHA256SUMS", "sums of the files"},
	{"manifest.json", "inputs, options, sizes and sums: what it takes to make the files again"},
	{"provenance.json", "how the files were made, as a statement of in-toto (SLSA provenance)"},
	{sign.ProvenanceName, "the same, signed"},
	{sign.ModelName, "signature of all files but this one (OpenSSF Model Signing)"},
}

// others returns the companions in a folder, or among only unless that is nil. models are paths of GGUF files.
func others(dir string, only, models []string) (list []Fact, err error) {
	if found, err := hasModelfile(dir, only, models); err != nil {
		return nil, err
	} else if found {
		list = append(list, Fact{"`*" + modelfile.Suffix + "`", "one for each model, for `ollama create NAME -f FILE`"})
	}
	for _, f := range companions {
		there := slices.Contains(only, f.Name)
		if only == nil {
			info, err := os.Lstat(filepath.Join(dir, f.Name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			there = err == nil && info.Mode().IsRegular()
		}
		if there {
			list = append(list, Fact{link(f.Name, relative(f.Name)), f.Value})
		}
	}
	return list, nil
}

// hasModelfile reports whether a folder, or only unless that is nil, has the Modelfile of one of the models.
func hasModelfile(dir string, only, models []string) (bool, error) {
	for _, path := range models {
		name := modelfile.NameFor(path)
		if only != nil {
			if slices.Contains(only, name) {
				return true, nil
			}
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err == nil && info.Mode().IsRegular() {
			return true, nil
		}
	}
	return false, nil
}

// has reports whether one of the companions is there.
func (c *Card) has(name string) bool {
	return slices.ContainsFunc(c.Others, func(f Fact) bool { return f.Name == link(name, relative(name)) })
}
