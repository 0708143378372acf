package release

import (
	"encoding/json"
	"regexp"
	"strings"

	"ggforge/checkpoint"
	"ggforge/model/digest"
	"ggforge/publish/sign"
)

// Names of the predicate of a provenance statement. No server answers to them: docs/publishing.md describes both.
const (
	buildType = "urn:ggforge:release:1" // how a plan becomes a release
	builderID = "urn:ggforge:ggtool"    // who runs it: ggtool on the machine of the one who signs
)

// The predicate of SLSA 1.0 (https://slsa.dev/spec/v1.0/provenance), without the times: the same manifest gives the
// same bytes.
type (
	provenance struct {
		Definition buildDefinition `json:"buildDefinition"`
		Run        runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		Type         string       `json:"buildType"`
		Parameters   any          `json:"externalParameters"`
		Dependencies []dependency `json:"resolvedDependencies"`
	}
	dependency struct {
		Name        string            `json:"name,omitempty"`
		URI         string            `json:"uri,omitempty"`
		Digest      map[string]string `json:"digest,omitempty"`
		Annotations map[string]any    `json:"annotations"`
	}
	runDetails struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version"`
	}
)

// revision is a commit at the end of an address of the hub, or of a file of it.
var revision = regexp.MustCompile(`^hf://[^@]*@([0-9a-f]{40})(/.*)?$`)

// Provenance returns the provenance statement of a release, as JSON: an in-toto statement about the files of the
// manifest, with a predicate of SLSA 1.0. It depends on the manifest alone.
func (m *Manifest) Provenance() ([]byte, error) {
	name, version, _ := strings.Cut(m.Program, " ")
	p := provenance{
		Definition: buildDefinition{Type: buildType, Parameters: m.Options, Dependencies: []dependency{}},
		Run:        runDetails{builder{builderID, map[string]string{name: version}}},
	}
	for _, in := range m.Inputs {
		d := dependency{Name: in.Name, Digest: map[string]string{"sha256": in.SHA256},
			Annotations: map[string]any{"role": in.Role, "bytes": in.Bytes}}
		if checkpoint.IsRemote(in.Name) { // the sum is one of headers, not of the files
			d.Name, d.URI, d.Digest = "", in.Name, nil
			d.Annotations["headers_sha256"] = in.SHA256
			if found := revision.FindStringSubmatch(in.Name); found != nil {
				d.Digest = map[string]string{"gitCommit": found[1]}
			}
		}
		p.Definition.Dependencies = append(p.Definition.Dependencies, d)
	}
	var files []digest.File
	for _, f := range m.Files {
		files = append(files, f.File)
	}
	data, err := json.MarshalIndent(sign.About(files, sign.ProvenancePredicate, p), "", "  ")
	return append(data, '\n'), err
}

// addProvenance adds provenance.json.
func (r *Release) addProvenance() {
	if !r.plan.Provenance {
		return
	}
	r.add(&listStep{sums: true, stepBase: stepBase{id: id{kindProvenance, provenanceName}, about: "the provenance",
		as: string(kindProvenance), path: provenanceName, fixed: true, after: append(r.listed(), r.of(kindManifest)...)},
		content: func(files []File) ([]byte, error) { return r.manifest(files).Provenance() }})
}
