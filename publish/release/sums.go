package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"ggforge/model/digest"
)

// listStep makes a file that lists those of the release: SHA256SUMS, manifest.json or provenance.json.
type listStep struct {
	stepBase
	content func(files []File) ([]byte, error)
	sums    bool // the content has names and sums, whose length is known, but no sizes
}

// addSums adds SHA256SUMS, as sha256sum writes it.
func (r *Release) addSums() {
	r.add(&listStep{sums: true, stepBase: stepBase{id: id{kindSums, sumsName}, about: "the sums",
		as: string(kindSums), path: sumsName, fixed: true, after: r.listed()},
		content: func(files []File) ([]byte, error) {
			var sums bytes.Buffer
			for _, f := range files {
				fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
			}
			return sums.Bytes(), nil
		}})
}

// manifest returns the manifest of files.
func (r *Release) manifest(files []File) *Manifest {
	return &Manifest{ManifestFormat, r.opt.Program, r.Model, r.inputs.list, settings(r.plan), files}
}

// addManifest adds manifest.json.
func (r *Release) addManifest() {
	r.add(&listStep{stepBase: stepBase{id: id{kindManifest, manifestName}, about: "the manifest",
		as: string(kindManifest), path: manifestName, fixed: true, after: append(r.listed(), r.of(kindSums)...)},
		content: func(files []File) ([]byte, error) {
			data, err := json.MarshalIndent(r.manifest(files), "", "  ")
			return append(data, '\n'), err
		}})
}

// Key depends on the content.
func (s *listStep) Key() string {
	data, err := s.content(s.r.Files())
	if err != nil {
		panic(err) // never: strings and numbers
	}
	return keyOf(string(s.Kind), string(data))
}

// Done compares the file with the state.
func (s *listStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make writes the file.
func (s *listStep) Make(ctx context.Context) error {
	data, err := s.content(s.r.Files())
	if err != nil {
		return err
	}
	if s.r.state.Made[s.id].Key != s.Key() { // with the same key the file is unchanged, but removeLast has removed it
		s.r.opt.Note(s.path)
	}
	return s.r.write(ctx, s, data)
}

// unknownSum stands for a sum that is not known yet, and has its length.
var unknownSum = strings.Repeat("0", 2*sha256.Size)

// Predict sets the size. It is exact if the names of the listed files are exact and, for the manifest, their sizes.
func (s *listStep) Predict(context.Context, *prediction) error {
	var files []File
	exact, named := true, true
	for _, of := range s.r.listed() {
		it := of.base().item()
		exact, named = exact && it.Exact, named && !(of.base().shards && !it.Exact)
		for k, name := range it.Files {
			bytes := it.Bytes
			if it.sizes != nil {
				bytes = it.sizes[k]
			}
			files = append(files, File{digest.File{Name: name, Bytes: bytes, SHA256: unknownSum}, it.Type})
		}
	}
	data, err := s.content(files)
	if err != nil {
		return err
	}
	it := s.item()
	it.Bytes, it.Exact = int64(len(data)), named && (exact || s.sums)
	return nil
}
