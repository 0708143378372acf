package card

import (
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
func readFile(dir, path string) (*File, gguf.Metadata, error) {
	set, err := gguf.OpenSet(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return nil, nil, err
	}
	defer set.Close()
	m := slices.Clone(set.Metadata())
	f := &File{Path: path, Shards: len(set.Files), Bytes: set.Size()}
	for _, context := range contextsOf(m) {
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

// contexts are the context lengths, in tokens, for which a card estimates the memory.
var contexts = []int64{4 << 10, 16 << 10, 64 << 10, 128 << 10}

// contextsOf returns the contexts up to the length that a model was trained for, or that length if it is shorter.
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

// setMemory sets the memory that each file needs, or none at all if it is unknown for one of them.
func (c *Card) setMemory() {
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
