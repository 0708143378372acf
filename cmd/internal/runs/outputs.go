package runs

import (
	"path/filepath"

	"ggforge/publish/manifest"
	"ggforge/writer"
)

// UnchangedType is the type, in a manifest, of an output whose tensors keep their types.
const UnchangedType = "as it is"

// ConvertOutput returns an output at path for a manifest.
func ConvertOutput(path, as string, files []string) []manifest.Made {
	return []manifest.Made{{Output: manifest.Output{Name: filepath.Base(path), Type: as}, Files: files}}
}

// Made returns the outputs for a manifest, each with the type that the user has named, even if types of tensors were
// allocated.
func (r *QuantizeRequest) Made(results []*writer.Result) []manifest.Made {
	var list []manifest.Made
	for i, result := range results {
		list = append(list, manifest.Made{Output: manifest.Output{Name: filepath.Base(r.Paths[i]),
			Type: r.Recipes[i].Name}, Files: result.Files})
	}
	return list
}
