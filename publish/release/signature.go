package release

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"slices"

	"ggforge/fault"
	"ggforge/model/digest"
	"ggforge/publish/sign"
)

// loadSigner reads the key and the certificates of the signature.
func (r *Release) loadSigner() (err error) {
	s := r.plan.Sign
	if s == nil {
		return nil
	}
	if err := CheckKey(r.dir, s.Key); err != nil {
		return err
	}
	if r.signer, err = sign.ReadSigner(s.Key, s.Certificate); err != nil {
		return err
	}
	r.SigningKey = r.signer.KeySHA256
	for _, path := range []string{s.Key, s.Certificate} {
		if path != "" && !sign.IsVariable(path) {
			r.inputs.files = append(r.inputs.files, path)
		}
	}
	return nil
}

// CheckKey refuses a private key in the folder that is to be published.
func CheckKey(dir, key string) error {
	if sign.IsVariable(key) {
		return nil
	}
	_, inside, err := sign.Inside(dir, key)
	if err == nil && inside {
		err = fault.Errorf(fault.Refused, "%s: the private key is in the folder that is to be published, %s: "+
			"keep it elsewhere", key, dir)
	}
	return err
}

// signatureStep makes a signature: that of the folder, or of the provenance statement.
type signatureStep struct {
	stepBase
	// statement returns what is signed. It is called when all of after are done.
	statement func(ctx context.Context) ([]byte, error)
	// predicted returns the statement for files of these names, with any sums.
	predicted func(files []digest.File) ([]byte, error)
	now       []byte // the statement that was last asked for
}

// addSignature adds the signatures: of the provenance statement and, as the last file of all, of the folder.
func (r *Release) addSignature() {
	if r.signer == nil {
		return
	}
	if made := r.of(kindProvenance); len(made) > 0 {
		of := made[0].(*listStep)
		r.add(&signatureStep{stepBase: stepBase{id: id{kindSignature, sign.ProvenanceName},
			about: "the signature of the provenance", as: string(kindSignature), path: sign.ProvenanceName, fixed: true,
			after: made},
			statement: func(context.Context) ([]byte, error) { return of.content(r.Files()) },
			predicted: func(files []digest.File) ([]byte, error) {
				var listed []File
				for _, f := range files {
					listed = append(listed, File{File: f})
				}
				return of.content(listed)
			}})
	}
	ignored := leftOut()
	s := &signatureStep{stepBase: stepBase{id: id{kindSignature, sign.ModelName}, about: "the signature",
		as: string(kindSignature), path: sign.ModelName, fixed: true},
		predicted: func(files []digest.File) ([]byte, error) { return sign.Model(r.Model, files, ignored) }}
	s.statement = func(ctx context.Context) ([]byte, error) {
		data, _, _, err := sign.Folder(ctx, r.dir, ignored, sign.Options{Private: Private,
			Sum: func(ctx context.Context, name string) (string, error) { // one at a time, as there is one worker
				was, err := r.state.sum(ctx, filepath.Join(r.dir, filepath.FromSlash(name)))
				return was.SHA256, err
			}})
		return data, err
	}
	for _, other := range r.steps {
		if !other.base().edited {
			s.after = append(s.after, other)
		}
	}
	r.add(s)
}

// leftOut returns what the signature of the folder leaves out, the signature itself with it.
func leftOut() []string { return slices.Concat(Unsigned, []string{sign.ModelName}) }

// Replaceable also refuses a folder that cannot be signed, before anything is made.
func (s *signatureStep) Replaceable(ctx context.Context) error {
	if err := s.stepBase.Replaceable(ctx); err != nil || s.path != sign.ModelName {
		return err
	}
	return sign.Check(s.r.dir, leftOut(), sign.Options{Private: Private})
}

// Key depends on the statement that was last asked for, and on the signer.
func (s *signatureStep) Key() string {
	return keyOf("signature", string(s.now), s.r.signer.KeySHA256, s.r.signer.Certificates())
}

// Done compares the file with the state.
func (s *signatureStep) Done(ctx context.Context) (ok bool, err error) {
	if s.now, err = s.statement(ctx); err != nil {
		return false, err
	}
	return s.recorded(ctx, s.Key())
}

// Make signs.
func (s *signatureStep) Make(ctx context.Context) (err error) {
	if s.now, err = s.statement(ctx); err != nil {
		return err
	}
	data, err := s.r.signer.Sign(s.now)
	if err != nil {
		return err
	}
	if s.r.state.Made[s.id].Key != s.Key() {
		s.r.opt.Note(s.path)
	}
	return s.r.write(ctx, s, data)
}

// signatureBytes is the size of a signature besides the statement and the certificates.
const signatureBytes = 600

// Predict estimates the size. Further files of the folder are not counted.
func (s *signatureStep) Predict(context.Context, *prediction) error {
	var files []digest.File
	for _, of := range s.r.steps {
		if b := of.base(); b != &s.stepBase && !b.edited && (b.listed || s.path == sign.ModelName) {
			for _, name := range b.item().Files {
				files = append(files, digest.File{Name: name, SHA256: unknownSum})
			}
		}
	}
	data, err := s.predicted(files)
	if err != nil {
		return err
	}
	it := s.item()
	it.Bytes = signatureBytes + int64(base64.StdEncoding.EncodedLen(len(data)))
	for _, n := range s.r.signer.Sizes() {
		it.Bytes += int64(base64.StdEncoding.EncodedLen(n))
	}
	return nil
}
