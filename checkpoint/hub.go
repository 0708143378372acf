package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"
)

// The cache of the Hugging Face hub has a folder per model. The files of a snapshot are links to blobs:
//
//	models--ORG--NAME/blobs/SHA
//	models--ORG--NAME/snapshots/COMMIT/config.json -> ../../blobs/SHA
//
// Source: the documentation of huggingface_hub, "Understand caching".
const (
	hubPrefix    = "models--"
	hubSnapshots = "snapshots"
	hubBlobs     = "blobs"
)

// hubPath is a path into a model's folder of the hub's cache.
type hubPath struct {
	folder string // models--ORG--NAME, the whole path
	org    string // "" for models without one
	model  string
	commit string
	file   string // below the snapshot, "" for the snapshot itself
}

// parseHub parses an absolute path into a snapshot; ok is false for others.
func parseHub(p string) (h hubPath, ok bool) {
	sep := string(filepath.Separator)
	parts := strings.Split(p, sep)
	for i, part := range slices.Backward(parts) {
		id, isHub := strings.CutPrefix(part, hubPrefix)
		if !isHub || id == "" || len(parts) < i+3 || parts[i+1] != hubSnapshots {
			continue
		}
		h.folder = strings.Join(parts[:i+1], sep)
		h.commit = parts[i+2]
		h.file = strings.Join(parts[i+3:], sep)
		h.model = id
		if org, name, cut := strings.Cut(id, "--"); cut {
			h.org, h.model = org, name
		}
		return h, h.model != ""
	}
	return h, false
}
