package sign

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/model/digest"
)

// Types of statements and predicates.
const (
	statementType = "https://in-toto.io/Statement/v1"
	// ModelPredicate is that of the signature of a folder.
	ModelPredicate = "https://model_signing/signature/v1.0"
	// ProvenancePredicate is that of a provenance statement, SLSA 1.0.
	ProvenancePredicate = "https://slsa.dev/provenance/v1"
)

const (
	maxResources = 10_000 // files of a signature
	maxIgnored   = 1000   // of its ignore_paths
)

// alwaysIgnored are files and folders that the format leaves out, at the top of the folder only.
var alwaysIgnored = []string{".git", ".gitattributes", ".github", ".gitignore"}

// Statement is an in-toto statement: a predicate about subjects.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

// Subject is a file or a folder that a statement is about.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // by the name of the hash
}

// About returns a statement about files.
func About(files []digest.File, predicateType string, predicate any) *Statement {
	s := &Statement{Type: statementType, PredicateType: predicateType, Predicate: predicate, Subject: []Subject{}}
	for _, f := range files {
		s.Subject = append(s.Subject, Subject{f.Name, map[string]string{"sha256": f.SHA256}})
	}
	return s
}

type (
	predicateJSON struct {
		Resources     []resourceJSON    `json:"resources"`
		Serialization serializationJSON `json:"serialization"`
	}
	resourceJSON struct {
		Name      string `json:"name"`
		Digest    string `json:"digest"`
		Algorithm string `json:"algorithm"`
	}
	serializationJSON struct {
		Method   string   `json:"method"`
		HashType string   `json:"hash_type"`
		Symlinks bool     `json:"allow_symlinks"`
		Ignored  []string `json:"ignore_paths"`
	}
)

// Model returns the statement about a folder of that name with these files, whose sums are set, as JSON. ignored are
// further files and folders that are not signed, by their names from the folder on. The same arguments in any order
// give the same bytes.
func Model(name string, files []digest.File, ignored []string) ([]byte, error) {
	if len(files) == 0 || len(files) > maxResources {
		return nil, fault.Errorf(fault.Usage, "%s: %d files to sign, want 1 to %d", name, len(files), maxResources)
	}
	p := predicateJSON{Serialization: serializationJSON{Method: "files", HashType: "sha256",
		Ignored: slices.Concat(alwaysIgnored, ignored)}}
	slices.Sort(p.Serialization.Ignored)
	p.Serialization.Ignored = slices.Compact(p.Serialization.Ignored)
	for _, f := range files {
		p.Resources = append(p.Resources, resourceJSON{f.Name, f.SHA256, "sha256"})
	}
	slices.SortFunc(p.Resources, func(a, b resourceJSON) int { return strings.Compare(a.Name, b.Name) })
	if n := len(p.Serialization.Ignored); n > maxIgnored {
		return nil, fault.Errorf(fault.Usage, "%s: %d files and folders to leave out, want at most %d", name, n, maxIgnored)
	}
	s := About(nil, ModelPredicate, p)
	all := sha256.New()
	for _, r := range p.Resources {
		sum, err := hex.DecodeString(r.Digest)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s: sum is %q, want SHA-256", r.Name, r.Digest)
		}
		all.Write(sum)
	}
	s.Subject = []Subject{{name, map[string]string{"sha256": hex.EncodeToString(all.Sum(nil))}}}
	return json.Marshal(s)
}

// Signed is what a verified signature says.
type Signed struct {
	Path          string // of the signature
	PredicateType string // ModelPredicate or ProvenancePredicate
	// Name is that of the folder when it was signed, for people. A provenance statement has none.
	Name string
	// Files are the files with their SHA-256 sums, sorted by name; sizes are not known, and 0. Names are clean
	// relative paths that stay in the folder, each once.
	Files []digest.File
	// Ignored are files and folders that are not signed, by their names from the folder on.
	Ignored []string
	// KeySHA256 is the SHA-256 of the public key in PEM; Certificate the subject of its certificate, "" for none.
	KeySHA256, Certificate string
}

// parseStatement reads what a payload says.
func parseStatement(data []byte) (*Signed, error) {
	o, err := parseObject(data)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "the payload %w", err)
	}
	kind, err := o.text("", "_type")
	if err != nil {
		return nil, err
	}
	if kind != statementType {
		return nil, broken("_type is %.80q, want %s", kind, statementType)
	}
	s := new(Signed)
	if s.PredicateType, err = o.text("", "predicateType"); err != nil {
		return nil, err
	}
	predicate, err := o.object("", "predicate")
	if err != nil {
		return nil, err
	}
	switch s.PredicateType {
	case ModelPredicate:
		err = s.parseModel(o, predicate)
	case ProvenancePredicate:
		err = s.parseSubjects(o)
	default:
		return nil, fault.Errorf(fault.Unsupported, "predicateType is %.80q, want %s or %s", s.PredicateType,
			ModelPredicate, ProvenancePredicate)
	}
	return s, err
}

// add adds a file.
func (s *Signed) add(place, name, sum string) error {
	f := digest.File{Name: name, SHA256: sum}
	if strings.ToLower(sum) != sum {
		return broken("%s: digest is %.70q, want lower case", place, sum)
	}
	if err := f.Check(); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	s.Files = append(s.Files, f)
	return nil
}

// sorted sorts the files, and refuses a name that is there twice.
func (s *Signed) sorted() error {
	slices.SortFunc(s.Files, func(a, b digest.File) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.Files {
		if i > 0 && s.Files[i].Name == s.Files[i-1].Name {
			return broken("%q is there twice", s.Files[i].Name)
		}
	}
	return nil
}

// sha256Of returns the only sum of a subject.
func sha256Of(place string, subject object) (string, error) {
	sums, err := subject.object(place, "digest")
	if err != nil {
		return "", err
	}
	if len(sums) != 1 || !sums.has("sha256") {
		return "", broken("%sdigest has not only sha256", place)
	}
	return sums.text(place+"digest.", "sha256")
}

// parseSubjects reads the subjects of a statement as files.
func (s *Signed) parseSubjects(o object) error {
	list, err := o.objects("", "subject", maxResources)
	if err != nil {
		return err
	}
	for i, one := range list {
		place := fmt.Sprintf("subject[%d].", i)
		name, err := one.text(place, "name")
		if err != nil {
			return err
		}
		sum, err := sha256Of(place, one)
		if err != nil {
			return err
		}
		if err := s.add(place, name, sum); err != nil {
			return err
		}
	}
	return s.sorted()
}

// parseModel reads the predicate about a folder.
func (s *Signed) parseModel(o, predicate object) error {
	subjects, err := o.objects("", "subject", 1)
	if err != nil {
		return err
	}
	if s.Name, err = subjects[0].text("subject[0].", "name"); err != nil {
		return err
	}
	want, err := sha256Of("subject[0].", subjects[0])
	if err != nil {
		return err
	}
	if s.Name == "" {
		return broken("subject[0].name is empty")
	}
	if err := s.parseSerialization(predicate); err != nil {
		return err
	}
	list, err := predicate.objects("predicate.", "resources", maxResources)
	if err != nil {
		return err
	}
	all := sha256.New()
	for i, r := range list {
		place := fmt.Sprintf("resources[%d]", i)
		var texts [3]string
		for k, name := range []string{"name", "digest", "algorithm"} {
			if texts[k], err = r.text(place+".", name); err != nil {
				return err
			}
		}
		if texts[2] != "sha256" {
			return fault.Errorf(fault.Unsupported, "%s: algorithm is %.60q, want sha256", place, texts[2])
		}
		if err := s.add(place, texts[0], texts[1]); err != nil {
			return err
		}
		sum, err := hex.DecodeString(texts[1])
		if err != nil {
			return broken("%s: %w", place, err)
		}
		all.Write(sum)
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != want {
		return broken("the subject's sha256 is %.70q, and that of the resources %s", want, got)
	}
	return s.sorted()
}

// parseSerialization reads how the files were listed and hashed.
func (s *Signed) parseSerialization(predicate object) error {
	how, err := predicate.object("predicate.", "serialization")
	if err != nil {
		return err
	}
	const place = "serialization."
	for name, want := range map[string]string{"method": "files", "hash_type": "sha256"} {
		got, err := how.text(place, name)
		if err != nil {
			return err
		}
		if got != want {
			return fault.Errorf(fault.Unsupported, "%s%s is %.60q, want %s", place, name, got, want)
		}
	}
	if how.has("shard_size") {
		return broken("%sshard_size: want none with files", place)
	}
	links, ok := how["allow_symlinks"].(bool)
	if !ok {
		return broken("%sallow_symlinks is %s, want true or false", place, shown(how["allow_symlinks"]))
	}
	if links {
		return fault.Errorf(fault.Unsupported, "was made with links followed, which is not done here")
	}
	if !how.has("ignore_paths") { // the reference before its version 1.1
		return nil
	}
	list, ok := how["ignore_paths"].([]any)
	if !ok || len(list) > maxIgnored {
		return broken("%signore_paths is %s, want a list of at most %d", place, shown(how["ignore_paths"]), maxIgnored)
	}
	for i, v := range list {
		name, ok := v.(string)
		name = strings.TrimSuffix(name, "/")
		if !ok || name == "" || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "*?[") ||
			path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../") {
			return broken("%signore_paths[%d] is %s, want a path in the folder", place, i, shown(v))
		}
		s.Ignored = append(s.Ignored, name)
	}
	return nil
}
