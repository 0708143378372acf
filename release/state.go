package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"ggforge/digest"
	"ggforge/fault"
	"ggforge/internal/disk"
	"ggforge/writer"
)

// stateDir is the folder in the output's that is for runs only, not for the public: what is done, and what
// an interrupted run has left.
const stateDir = ".ggtool-release"

// stateFormat begins each state.
const stateFormat = "ggforge release 1"

// state says what is done, so that a run does only what is missing.
type state struct {
	Format string `json:"format"`
	// Inputs are sums of files that were read, by path: as long as size and time stay the same they are
	// not read again.
	Inputs map[string]seen `json:"inputs"`
	// Made is what was made, by name in the release.
	Made map[string]made `json:"made"`
}

// seen is a file as it was when its sum was taken.
type seen struct {
	Bytes  int64  `json:"bytes"`
	Time   int64  `json:"time"` // of modification, in nanoseconds
	SHA256 string `json:"sha256"`
}

// made is something that was made: a model with all its shards, the matrix, measurements.
type made struct {
	Key   string `json:"key"` // a hash of everything that its bytes depend on
	Files []File `json:"files"`
}

// maxState bounds the state that is read.
const maxState = 64 << 20

// parseState reads a state. One of another format, or that is no JSON, is as good as none.
func parseState(data []byte) *state {
	s := new(state)
	if json.Unmarshal(data, s) != nil || s.Format != stateFormat {
		s = new(state)
	}
	s.Format = stateFormat
	if s.Inputs == nil {
		s.Inputs = map[string]seen{}
	}
	if s.Made == nil {
		s.Made = map[string]made{}
	}
	for name, m := range s.Made {
		if slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == "." || !filepath.IsLocal(filepath.FromSlash(f.Name)) }) {
			delete(s.Made, name)
		}
	}
	return s
}

// readState reads the state of a folder.
func readState(dir string) (*state, error) {
	path := filepath.Join(dir, stateDir, "state.json")
	info, err := disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return parseState(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxState {
		return nil, fault.Errorf(fault.Usage, "%s: want a file of at most %d bytes", path, maxState)
	}
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseState(data), nil
}

// save writes the state.
func (s *state) save(ctx context.Context, dir string) error {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(filepath.Join(dir, stateDir), 0o777); err != nil {
		return err
	}
	return writer.WriteBytes(ctx, filepath.Join(dir, stateDir, "state.json"), append(data, '\n'), writer.Options{Force: true})
}

// sum returns size and SHA-256 of a file; its content is read only if it is not as it was.
func (s *state) sum(ctx context.Context, path string) (seen, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return seen{}, err
	}
	info, err := disk.Stat(path)
	if err != nil {
		return seen{}, err
	}
	if !info.Mode().IsRegular() {
		return seen{}, fault.Errorf(fault.Usage, "%s: want a file", path)
	}
	if was, ok := s.Inputs[full]; ok && was.Bytes == info.Size() && was.Time == info.ModTime().UnixNano() {
		return was, nil
	}
	f, err := digest.OfFile(ctx, path)
	if err != nil {
		return seen{}, err
	}
	now := seen{f.Bytes, info.ModTime().UnixNano(), f.SHA256}
	s.Inputs[full] = now
	return now, nil
}

// done reports whether something was made with that key, and its files are still what they were.
func (s *state) done(ctx context.Context, dir, name, key string) (bool, error) {
	m, ok := s.Made[name]
	if !ok || m.Key != key {
		return false, nil
	}
	for _, f := range m.Files {
		now, err := s.sum(ctx, filepath.Join(dir, filepath.FromSlash(f.Name)))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if now.Bytes != f.Bytes || now.SHA256 != f.SHA256 {
			return false, nil
		}
	}
	return true, nil
}

// ours reports whether a run has made the file of that name, which may be replaced then.
func (s *state) ours(name string) bool {
	for _, m := range s.Made {
		if slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name }) {
			return true
		}
	}
	return false
}

// note records what was made.
func (s *state) note(ctx context.Context, dir, name, key, kind string, files []string) error {
	m := made{Key: key}
	for _, path := range files {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		now, err := s.sum(ctx, path)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, File{digest.File{Name: filepath.ToSlash(rel), Bytes: now.Bytes, SHA256: now.SHA256}, kind})
	}
	s.Made[name] = m
	return s.save(ctx, dir)
}

// keyOf returns a hash of what something depends on.
func keyOf(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		data, err := json.Marshal(p)
		if err != nil {
			panic(err) // texts and numbers
		}
		fmt.Fprintf(h, "%d %s\n", len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
