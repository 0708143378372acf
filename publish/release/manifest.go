package release

import (
	"encoding/json"
	"fmt"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
	"ggforge/model/digest"
)

// ManifestFormat is the value of Manifest.Format.
const ManifestFormat = "ggforge release manifest 1"

// Manifest is the content of manifest.json.
type Manifest struct {
	Format  string  `json:"format"` // ManifestFormat
	Program string  `json:"program"`
	Model   string  `json:"model"` // by the naming convention, without encoding
	Inputs  []Input `json:"inputs"`
	Options any     `json:"options"` // the plan, without paths
	Files   []File  `json:"files"`
}

// File is a file of a release.
type File struct {
	digest.File
	Type string `json:"type"` // the recipe, or imatrix, mmproj, modelfile, page, quality
}

// Input is a file that a release was made from.
type Input struct {
	Role        string `json:"role"` // source, calibration, matrix, evaluation
	digest.File        // Name is without folders, or the address of a source on a server
}

// maxManifest bounds the manifest that is read, in bytes.
const maxManifest = 64 << 20

// ReadManifest reads the manifest at path, a regular file of at most 64 MiB. Its files have names that lead to files
// below the manifest's folder, each once, sizes of at least 0 bytes and SHA-256 sums in lower case; there is at least
// one. Otherwise the error has kind fault.Broken, and for a format other than ManifestFormat kind fault.Unsupported.
func ReadManifest(path string) (*Manifest, error) {
	data, err := mmap.ReadFile(path, "manifest", maxManifest)
	if err != nil {
		return nil, err
	}
	return parseManifest(path, data)
}

// parseManifest is ReadManifest for the content of the file at path.
func parseManifest(path string, data []byte) (*Manifest, error) {
	// The format is checked first: other formats may have fields of other types.
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", path, err)
	}
	if head.Format != ManifestFormat {
		return nil, fault.Errorf(fault.Unsupported, "%s: format is %q, want %q", path, head.Format, ManifestFormat)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: %w", path, err)
	}
	if len(m.Files) == 0 {
		return nil, fault.Errorf(fault.Broken, "%s: no file in it", path)
	}
	seen := make(map[string]bool, len(m.Files))
	for i := range m.Files {
		f := &m.Files[i]
		if err := f.Check(); err != nil { // names have only one valid spelling, so that seen finds all duplicates
			return nil, fmt.Errorf("%s: files[%d]: %w", path, i, err)
		}
		if seen[f.Name] {
			return nil, fault.Errorf(fault.Broken, "%s: files[%d]: %q is there twice", path, i, f.Name)
		}
		seen[f.Name] = true
	}
	return m, nil
}
