package pairs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/publish/verify"
	"ggforge/rows"
)

// lineage is the list of changes to a model.
type lineage struct {
	tensors []string          // changes of tensors: names of features, after @ the matrix that one used
	edits   map[string]string // keys that were set, with their values
	big     bool              // for big-endian machines
	shards  bool              // in shards
	joined  bool              // joined from shards, whose keys it still has
	room    bool              // has room for further changes of the header
}

// key names the changes of tensors.
func (l lineage) key() string { return strings.Join(l.tensors, " > ") }

// with returns the lineage after one more feature that changes tensors, in one little-endian file. Padding comes
// first: features that change rows one by one give the same before and after it.
func (l lineage) with(feature string) lineage {
	tensors := append(slices.Clone(l.tensors), feature)
	if feature == padded {
		tensors = append([]string{padded}, l.tensors...)
	}
	return lineage{tensors: tensors, edits: l.edits}
}

// straight makes models the straight way (see the package comment), each once.
type straight struct {
	base          string // the folder that everything begins with
	models, looks once[string]
	alone         once[outcomes] // outcomes of a feature where the first one has changed nothing
}

// once makes the value of each name once.
type once[V any] struct{ all sync.Map }

func (o *once[V]) get(name string, make func() (V, error)) (V, error) {
	f, _ := o.all.LoadOrStore(name, sync.OnceValues(make))
	return f.(func() (V, error))()
}

// folder returns a new folder with the files that every pair begins with, in which the model has these tensors.
func (s *straight) folder(t *testing.T, tensors []string) (string, error) {
	dir, err := os.MkdirTemp(filepath.Dir(s.base), "straight-")
	if err != nil {
		return "", err
	}
	if err := copyTree(dir, s.base); err != nil || len(tensors) == 0 {
		return dir, err
	}
	path, err := s.model(t, tensors)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "model.gguf"), b, 0o666)
}

// model returns the path of a model with these tensors.
func (s *straight) model(t *testing.T, tensors []string) (string, error) {
	if len(tensors) == 0 {
		return filepath.Join(s.base, "model.gguf"), nil
	}
	return s.models.get(lineage{tensors: tensors}.key(), func() (string, error) {
		last := len(tensors) - 1
		dir, err := s.folder(t, tensors[:last])
		if err != nil {
			return "", err
		}
		name, matrix, _ := strings.Cut(tensors[last], "@")
		name, which, _ := strings.Cut(name, " as ")
		f := lookup(name)
		sub := start
		if sub.of = (lineage{tensors: tensors[:last]}); matrix != "" {
			if err := s.putMatrix(t, dir, matrix); err != nil {
				return "", err
			}
		}
		for {
			if err := f.do(dir, sub, f.out, nil); err != nil {
				return "", err
			}
			after, err := f.after(dir, sub, f.out)
			if err != nil {
				return "", err
			}
			if after.model != sub.model || f.inPlace {
				if which != "" {
					for _, m := range after.models {
						if strings.HasSuffix(m.of.tensors[len(m.of.tensors)-1], " as "+which) {
							return filepath.Join(dir, m.path), nil
						}
					}
					return "", fmt.Errorf("%s makes no %s", name, which)
				}
				return filepath.Join(dir, after.model), nil
			}
			if after.checkpoint == sub.checkpoint {
				return "", fmt.Errorf("%s makes no model", name)
			}
			sub, f = after, lookup("ggconv") // an export becomes a model by conversion
		}
	})
}

// putMatrix puts the importance matrix of a name into a folder.
func (s *straight) putMatrix(t *testing.T, dir, name string) error {
	path, err := s.matrix(t, name)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, start.matrix), b, 0o666)
}

// matrixName names the matrix that a feature makes of a model, or of another matrix.
func matrixName(feature string, of string) string { return feature + " of (" + of + ")" }

// matrix returns the path of a matrix.
func (s *straight) matrix(t *testing.T, name string) (string, error) {
	if name == start.of.matrixOf("ggeval imatrix") {
		return filepath.Join(s.base, start.matrix), nil
	}
	return s.models.get(name, func() (string, error) {
		feature, of, ok := strings.Cut(strings.TrimSuffix(name, ")"), " of (")
		if !ok {
			return "", fmt.Errorf("no matrix %q", name)
		}
		f := lookup(feature)
		var tensors []string
		if f.reads&readsModel != 0 && of != "" {
			tensors = strings.Split(of, " > ")
		}
		dir, err := s.folder(t, tensors)
		if err == nil && f.reads&readsMatrix != 0 {
			err = s.putMatrix(t, dir, of)
		}
		if err == nil {
			err = f.do(dir, start, f.out, nil)
		}
		return filepath.Join(dir, f.out), err
	})
}

// matrixOf names the matrix that a feature makes of a model.
func (l lineage) matrixOf(feature string) string { return matrixName(feature, l.key()) }

// look returns the result of a feature's look for a model of these tensors, with a matrix and a checkpoint made
// the straight way.
func (s *straight) look(t *testing.T, f *feature, sub subject) (string, error) {
	key := f.name
	var tensors []string
	if f.reads&readsModel != 0 {
		tensors = sub.of.tensors
		key += ": " + sub.of.key()
	}
	if f.reads&readsMatrix != 0 {
		key += " with " + sub.matrixName
	}
	if f.reads&readsCheckpoint != 0 {
		key += " from " + strings.Join(sub.weights, " > ")
	}
	return s.looks.get(key, func() (string, error) {
		dir, err := s.folder(t, tensors)
		if err == nil && f.reads&readsMatrix != 0 {
			err = s.putMatrix(t, dir, sub.matrixName)
		}
		if err != nil {
			return "", err
		}
		from := start
		from.of.tensors = tensors
		out, err := f.doText(dir, from, f.out, nil)
		if err != nil {
			return "", err
		}
		return f.look(dir, f.out, out)
	})
}

// same compares a model with the one of its lineage that was made the straight way.
func (s *straight) same(t *testing.T, path string, l lineage) error {
	want, err := s.model(t, l.tensors)
	if err != nil {
		return err
	}
	findings, err := verify.Model(context.Background(), path, verify.Options{})
	if err != nil {
		return err
	}
	for _, f := range findings {
		if !f.Note {
			return fmt.Errorf("%s: %+v", path, f)
		}
	}
	a, err := model.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := model.Open(want)
	if err != nil {
		return err
	}
	defer b.Close()
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	big := f.BigEndian
	f.Close()
	if big != l.big || a.Shards > 1 != l.shards {
		return fmt.Errorf("%s: big-endian %v, %d shards", path, big, a.Shards)
	}
	if err := sameMetadata(a.Metadata, b.Metadata, l); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return sameTensors(a, b, slices.Contains(l.tensors, padded))
}

// sameMetadata compares keys. A file of shards has keys of its own, and so has one that was joined from them; the
// room for changes differs from file to file; a matrix may have another name.
func sameMetadata(a, b gguf.Metadata, l lineage) error {
	values := func(m gguf.Metadata) map[string]string {
		all := map[string]string{}
		for _, kv := range m {
			var text bytes.Buffer
			if err := gguf.WriteValue(&text, kv.Value, true); err != nil {
				all[kv.Key] = err.Error()
			} else {
				all[kv.Key] = text.String()
			}
		}
		return all
	}
	got, want := values(a), values(b)
	for key, value := range l.edits {
		want[key] = fmt.Sprintf("%q\n", value)
	}
	for _, all := range []map[string]string{got, want} {
		for key := range all {
			if strings.HasPrefix(key, "split.") && (l.shards || l.joined) || key == "ggforge.reserve" && l.room ||
				key == "quantize.imatrix.file" {
				delete(all, key)
			}
		}
	}
	for key, value := range want {
		if got[key] != value {
			return fmt.Errorf("key %s is %.100q, want %.100q", key, got[key], value)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("unexpected key %s", key)
		}
	}
	return nil
}

// sameTensors compares names, types, dimensions and bytes. Rows that a vocabulary was padded with are zeros, of which a
// block may be written in more than one way: where there are such rows, numbers are compared.
func sameTensors(a, b *model.Model, padded bool) error {
	if len(a.Tensors) != len(b.Tensors) {
		return fmt.Errorf("%s: %d tensors, want %d", a.Path, len(a.Tensors), len(b.Tensors))
	}
	for _, x := range a.Tensors {
		i := slices.IndexFunc(b.Tensors, func(y model.Tensor) bool { return y.Name == x.Name })
		if i < 0 {
			return fmt.Errorf("%s: unexpected tensor %s", a.Path, x.Name)
		}
		y := b.Tensors[i]
		if x.Type != y.Type || !slices.Equal(x.NE, y.NE) {
			return fmt.Errorf("%s: %s is %v %v, want %v %v", a.Path, x.Name, x.Type, x.NE, y.Type, y.NE)
		}
		same, err := sameRows(x.Source, y.Source)
		if err == nil && !same && padded {
			same, err = sameRows(rows.Convert(x.Source, gguf.TypeF32), rows.Convert(y.Source, gguf.TypeF32))
		}
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s: %s has other bytes", a.Path, x.Name)
		}
	}
	return nil
}

func sameRows(x, y rows.Source) (bool, error) {
	var p, q []byte
	n := gguf.Rows(x.NE())
	for from := int64(0); from < n; from += 256 {
		to := min(from+256, n)
		a, err := x.Raw(&p, from, to)
		if err != nil {
			return false, err
		}
		b, err := y.Raw(&q, from, to)
		if err != nil || !bytes.Equal(a, b) {
			return false, err
		}
	}
	return true, nil
}
