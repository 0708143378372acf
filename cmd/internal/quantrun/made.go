package quantrun

import (
	"path/filepath"

	"ggforge/publish/manifest"
	"ggforge/writer"
)

// Made returns the outputs as a manifest has them: with the types that the user has named, also where the types of
// tensors were chosen.
func (r *Request) Made(results []*writer.Result) []manifest.Made {
	var list []manifest.Made
	for i, result := range results {
		list = append(list, manifest.Made{Output: manifest.Output{Name: filepath.Base(r.Paths[i]),
			Type: r.Recipes[i].Name}, Files: result.Files})
	}
	return list
}
