package convertrun

import (
	"path/filepath"

	"ggforge/publish/manifest"
)

// OldType is the type of an output in a manifest whose tensors stay as they are.
const OldType = "as it is"

// Made returns an output at path as a manifest has it.
func Made(path, as string, files []string) []manifest.Made {
	return []manifest.Made{{Output: manifest.Output{Name: filepath.Base(path), Type: as}, Files: files}}
}
