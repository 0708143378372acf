package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/model/digest"
	"ggforge/publish/sign"
)

// verifiedSigned is a signature that was verified.
type verifiedSigned struct {
	File      string `json:"file"`
	Predicate string `json:"predicate"` // its type
	KeySHA256 string `json:"key_sha256"`
	// Certificate is the subject of the key's certificate; "" for a signature without one.
	Certificate string `json:"certificate,omitempty"`
	Files       int    `json:"files"` // the number of files that it signs
	// Unsigned are the files and folders that it leaves out and that are there.
	Unsigned []string `json:"unsigned,omitempty"`
}

// line describes the signature.
func (s *verifiedSigned) line() string {
	by := "SHA-256 of the public key: " + s.KeySHA256
	if s.Certificate != "" {
		by = fmt.Sprintf("certificate of %s, %s", s.Certificate, by)
	}
	text := fmt.Sprintf("%s: signature of %d files; %s", s.File, s.Files, by)
	if len(s.Unsigned) > 0 {
		text += "; not signed: " + strings.Join(s.Unsigned, ", ")
	}
	return text
}

// compareSigned verifies the signature of a folder, and that of its provenance, and compares the folder with them. It
// sets the files of the request to those of the folder, unless it has some of them.
func compareSigned(ctx context.Context, r *verifyRequest) (*wanted, []verifiedSigned, error) {
	trust, err := readTrust(r)
	if err != nil {
		return nil, nil, err
	}
	dir, only, err := signedFolder(r)
	if err != nil {
		return nil, nil, err
	}
	want := &wanted{dir: dir, found: map[string]string{}}
	paths := []string{r.Signature}
	if r.Signature == "" {
		paths[0] = filepath.Join(dir, sign.ModelName)
		extra := filepath.Join(dir, sign.ProvenanceName)
		if _, err := disk.Lstat(extra); err == nil {
			paths = append(paths, extra)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	var list []verifiedSigned
	for _, path := range paths {
		b, err := sign.Read(path)
		if err != nil {
			return nil, nil, err
		}
		s, err := b.Verify(trust)
		if err != nil {
			return nil, nil, err
		}
		found, err := s.Compare(ctx, dir, only, sign.Options{Workers: r.Look.Workers})
		if err != nil {
			return nil, nil, err
		}
		for _, f := range found {
			full := filepath.Join(dir, filepath.FromSlash(f.File))
			if text := want.found[full]; text != "" {
				f.Text = text + "; " + f.Text
			}
			want.found[full] = f.Text
			want.names = append(want.names, full)
		}
		for _, f := range s.Files {
			want.names = append(want.names, filepath.Join(dir, filepath.FromSlash(f.Name)))
		}
		for _, name := range only {
			if !slices.ContainsFunc(s.Files, func(f digest.File) bool { return f.Name == name }) {
				want.found[filepath.Join(dir, filepath.FromSlash(name))] = "is not signed"
			}
		}
		one := verifiedSigned{File: path, Predicate: s.PredicateType, KeySHA256: s.KeySHA256, Certificate: s.Certificate,
			Files: len(s.Files)}
		for _, name := range s.Ignored {
			full := filepath.Join(dir, filepath.FromSlash(name))
			if _, err := disk.Lstat(full); err == nil && full != filepath.Clean(path) {
				one.Unsigned = append(one.Unsigned, name)
			}
		}
		list = append(list, one)
	}
	slices.Sort(want.names)
	want.names = slices.Compact(want.names)
	for _, path := range r.Files { // by the names of the command line
		full := filepath.Join(dir, filepath.FromSlash(only[slices.Index(r.Files, path)]))
		want.found[path] = want.found[full]
	}
	return want, list, nil
}

// readTrust reads the public key or the roots.
func readTrust(r *verifyRequest) (*sign.Trust, error) {
	if r.PublicKey != "" {
		return sign.TrustKey(r.PublicKey)
	}
	return sign.TrustRoots(r.Certificates)
}

// signedFolder returns the folder that is to be compared, and the names of the files in it that the request has; nil
// for all. For a folder it takes the files out of the request.
func signedFolder(r *verifyRequest) (dir string, only []string, err error) {
	if len(r.Files) == 1 {
		info, err := disk.Stat(r.Files[0])
		if err != nil {
			return "", nil, err
		}
		if info.IsDir() {
			dir, r.Files = r.Files[0], nil
			return dir, nil, nil
		}
	}
	if r.Signature == "" {
		return "", nil, fault.Errorf(fault.Usage, "%s: want a folder with %s, or --signature", r.Files[0], sign.ModelName)
	}
	dir = filepath.Dir(r.Signature)
	for _, path := range r.Files {
		name, inside, err := sign.Inside(dir, path)
		if err != nil {
			return "", nil, err
		}
		if !inside {
			return "", nil, fault.Errorf(fault.Usage, "%s: is not in the folder of the signature, %s", path, dir)
		}
		only = append(only, name)
	}
	return dir, only, nil
}
