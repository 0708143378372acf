package modelfile

import (
	"path"
	"path/filepath"
	"strings"

	"ggforge/gguf"
)

// Suffix ends the name of the Modelfile of one model among several, after the model's name.
const Suffix = ".Modelfile"

// NameFor returns the name of the Modelfile of a model next to it, M.Modelfile for M.gguf and for the shards of M.
func NameFor(path string) string {
	if prefix, _, _, ok := gguf.ParseShardName(path); ok {
		return prefix + Suffix
	}
	return strings.TrimSuffix(path, ".gguf") + Suffix
}

// Relative returns the path of a file as a Modelfile in the folder dir has it: relative to dir, with slashes, "./" or
// "../" at the beginning. Without a way from dir to the file, as between volumes, it is absolute.
func Relative(dir, file string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	if err != nil {
		return filepath.ToSlash(to), nil
	}
	return dotted(filepath.ToSlash(rel)), nil
}

// dotted returns a relative path with "./" at its beginning, so that it is not taken for the name of a model or, with
// ~, for one in a home directory.
func dotted(rel string) string {
	if strings.HasPrefix(rel, "../") {
		return rel
	}
	return "./" + rel
}

// Beside returns the path of a file as a Modelfile in the same folder has it: "./" and the last part of name, a path
// with slashes or an address.
func Beside(name string) string { return "./" + path.Base(name) }
