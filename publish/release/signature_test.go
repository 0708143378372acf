package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/model/digest"
	"ggforge/publish/sign"
	"ggforge/publish/sign/signtest"
)

// signedBy verifies a signature of the folder and compares the folder with it.
func (b *bench) signedBy(public, name string) *sign.Signed {
	b.t.Helper()
	trust, err := sign.TrustKey(public)
	if err != nil {
		b.t.Fatal(err)
	}
	bundle, err := sign.Read(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := bundle.Verify(trust)
	if err != nil {
		b.t.Fatal(err)
	}
	if found, err := s.Compare(context.Background(), b.dir, nil, sign.Options{}); err != nil || len(found) > 0 {
		b.t.Errorf("%s: %v, %v", name, found, err)
	}
	return s
}

// TestSignature makes signed releases, again after changes of all kinds, and after a killed run.
func TestSignature(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	key, public := signtest.Keys(t)
	other, otherPublic := signtest.Keys(t)
	const outputs = "outputs: [Q8_0]\n"
	at := func(name string) string { return filepath.Join(b.dir, name) }
	content := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	plan := b.plan(outputs + "provenance: true\nsign: {key: " + key + "}\n")
	last := []string{"SHA256SUMS", "manifest.json", "provenance.json", "provenance.sigstore.json", "model.sig"}

	// killed after each of the last files but one: the release is not finished
	for i, name := range last {
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := b.run(ctx, plan, Options{}, func(s string) {
			if s == name {
				cancel()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := CheckFinished(b.dir); !errors.Is(err, fault.Incomplete) ||
			!strings.Contains(err.Error(), "there is no "+last[i]) && i > 1 {
			t.Errorf("killed before %s: %v", name, err)
		}
	}
	r := b.must(plan, "model.sig")
	if recorded, err := CheckFinished(b.dir); err != nil {
		t.Errorf("finished: %v", err)
	} else if sum, err := recorded.Find(r.Files()[0].Name); err != nil || sum != r.Files()[0].SHA256 {
		t.Errorf("%q, %v", sum, err)
	}
	s := b.signedBy(public, "model.sig")
	if s.KeySHA256 != r.SigningKey || len(s.Files) != 5 || s.Name != "out" ||
		!slices.ContainsFunc(s.Files, func(f digest.File) bool { return f.Name == "provenance.sigstore.json" }) {
		t.Errorf("%+v", s)
	}
	if p := b.signedBy(public, "provenance.sigstore.json"); len(p.Files) != 1 || p.Files[0].SHA256 != r.Files()[0].SHA256 {
		t.Errorf("%+v", p)
	}
	if sums := string(content("SHA256SUMS")); strings.Contains(sums, "model.sig") || strings.Contains(sums, "provenance") {
		t.Error(sums)
	}
	if m := string(content("manifest.json")); strings.Contains(m, "key.pem") {
		t.Error(m)
	}

	// again: nothing, also after an edit of the card
	before := content("model.sig")
	b.must(plan)
	if err := os.WriteFile(at("README.md"), append(content("README.md"), "by hand\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	b.must(plan)
	b.signedBy(public, "model.sig")

	// the signature is gone, or changed: the same is made
	if err := os.Remove(at("model.sig")); err != nil {
		t.Fatal(err)
	}
	b.must(plan)
	if !bytes.Equal(content("model.sig"), before) {
		t.Error("another signature of the same files")
	}
	if err := os.WriteFile(at("provenance.json"), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.must(plan)
	if !bytes.Equal(content("model.sig"), before) {
		t.Error("another signature of the same files")
	}

	// a file that the release has not made is signed, too
	if err := os.WriteFile(at("LICENSE"), []byte("free"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.must(plan, "model.sig")
	if s := b.signedBy(public, "model.sig"); len(s.Files) != 6 {
		t.Errorf("%+v", s)
	}

	// another key: only the signatures are made again
	manifest := content("manifest.json")
	plan = b.plan(outputs + "provenance: true\nsign: {key: " + other + "}\n")
	b.must(plan, "README.md", "provenance.sigstore.json", "model.sig") // the card has the key's sum
	b.signedBy(otherPublic, "model.sig")
	b.signedBy(otherPublic, "provenance.sigstore.json")

	// another version of the program: all
	opt := Options{}
	if r, err := Prepare(context.Background(), plan, opt); err != nil || r.Items[len(r.Items)-1].Done {
		t.Errorf("%v", err)
	} else {
		r.Close()
	}

	// without signatures, then without provenance: files of the old plan go
	plan = b.plan(outputs + "provenance: true\n")
	b.must(plan, "removed: model.sig, which the plan no longer has",
		"removed: provenance.sigstore.json, which the plan no longer has", "README.md")
	b.must(b.plan(outputs), "removed: provenance.json, which the plan no longer has", "README.md")
	if _, err := CheckFinished(b.dir); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(content("manifest.json"), manifest) {
		t.Error("the manifest depends on the signature")
	}

	// signed afterwards by somebody else: not replaced
	if err := os.WriteFile(at("model.sig"), before, 0o666); err != nil {
		t.Fatal(err)
	}
	plan = b.plan(outputs + "sign: {key: " + key + "}\n")
	if _, err := b.run(context.Background(), plan, Options{}, nil); !errors.Is(err, fault.Usage) ||
		!strings.Contains(err.Error(), "no file of this release") {
		t.Errorf("a signature that no release has made: %v", err)
	}
	if _, err := b.run(context.Background(), plan, Options{Force: true}, nil); err != nil {
		t.Error(err)
	}
	b.signedBy(public, "model.sig")

	// a key in the folder, and a link in it
	plan.Sign.Key = at("key.pem")
	if _, err := b.run(context.Background(), plan, Options{}, nil); !errors.Is(err, fault.Refused) {
		t.Errorf("a key in the folder: %v", err)
	}
	plan.Sign.Key = key
	if err := os.Symlink(key, at("link")); err == nil {
		if _, err := b.run(context.Background(), plan, Options{}, nil); !errors.Is(err, fault.Refused) {
			t.Errorf("a link in the folder: %v", err)
		}
	}
}

// TestSignatureSize predicts the sizes of signatures.
func TestSignatureSize(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "out")}
	key, _ := signtest.Keys(t)
	plan := b.plan("outputs: [Q8_0]\nprovenance: true\nsign: {key: " + key + "}\n")
	r, err := Prepare(context.Background(), plan, Options{Program: "test 1", Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Predict(context.Background()); err != nil {
		t.Fatal(err)
	}
	predicted := map[string]Item{}
	for _, it := range r.Items {
		predicted[it.Name] = it
	}
	b.must(plan, "models: 1 of 1 are to be made", "README.md", "SHA256SUMS", "manifest.json", "provenance.json",
		"provenance.sigstore.json", "model.sig")
	for _, name := range []string{"provenance.json", "provenance.sigstore.json", "model.sig"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		p := predicted[name]
		if d := info.Size() - p.Bytes; p.Exact != (name == "provenance.json") || p.Exact && d != 0 || d*d > 300*300 {
			t.Errorf("%s: %d bytes, predicted %d, exact %v", name, info.Size(), p.Bytes, p.Exact)
		}
	}
}

// TestProvenance checks the statement about a manifest.
func TestProvenance(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	commit := strings.Repeat("0f", 20)
	m := &Manifest{Program: "ggforge 1.2", Model: "M", Options: map[string]any{"outputs": []string{"Q8_0"}},
		Files: []File{{File: digest.File{Name: "a/m.gguf", Bytes: 3, SHA256: sum}, Type: "Q8_0"}},
		Inputs: []Input{
			{"source", digest.File{Name: "hf://org/name@" + commit, Bytes: 5, SHA256: sum}},
			{"source", digest.File{Name: "hf://org/name@" + commit + "/x.gguf", Bytes: 5, SHA256: sum}},
			{"source", digest.File{Name: "hf://org/name@main", Bytes: 5, SHA256: sum}},
			{"calibration", digest.File{Name: "text.txt", Bytes: 7, SHA256: sum}},
		}}
	data, err := m.Provenance()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Type      string `json:"_type"`
		Subject   []sign.Subject
		Kind      string     `json:"predicateType"`
		Predicate provenance `json:"predicate"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	p := s.Predicate
	if s.Type != "https://in-toto.io/Statement/v1" || s.Kind != sign.ProvenancePredicate || len(s.Subject) != 1 ||
		s.Subject[0].Name != "a/m.gguf" || s.Subject[0].Digest["sha256"] != sum ||
		p.Run.Builder.Version["ggforge"] != "1.2" || p.Definition.Type != buildType {
		t.Errorf("%s", data)
	}
	for i, want := range []struct{ name, uri, kind, digest string }{
		{"", m.Inputs[0].Name, "gitCommit", commit}, {"", m.Inputs[1].Name, "gitCommit", commit},
		{"", m.Inputs[2].Name, "", ""}, {"text.txt", "", "sha256", sum},
	} {
		got := p.Definition.Dependencies[i]
		if got.Name != want.name || got.URI != want.uri || got.Digest[want.kind] != want.digest ||
			got.Annotations["role"] != m.Inputs[i].Role {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for _, word := range []string{"started", "finished", "time"} {
		if strings.Contains(strings.ToLower(string(data)), word) {
			t.Errorf("%s in %s", word, data)
		}
	}
}
