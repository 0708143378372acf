package torch

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"ggforge/checkpoint/torch/torchfiletest"
)

// FuzzParse reads any bytes. The tensors of an accepted file can be read to the last byte.
func FuzzParse(f *testing.F) {
	f.Add(torchfiletest.Encode(sample()))
	f.Add(torchfiletest.EncodeOld(sample()))
	f.Add(torchfiletest.Encode(nil))
	f.Add(torchfiletest.EncodeNested(nestedValues()))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data, dir) })
}

// FuzzPickle reads any pickle in an archive with one storage.
func FuzzPickle(f *testing.F) {
	f.Add(good().Bytes())
	f.Add(record().Bytes())
	for _, h := range hostile {
		f.Add(h.pickle.Bytes())
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, pickle []byte) {
		check(t, torchfiletest.Zip(pickle, []string{"0"}, map[string][]byte{"0": make([]byte, 16)}), dir)
	})
}

// check reads a file as a whole, and part by part, with temporary files in dir: a file that is accepted as
// a whole has the same content then, and only the older container is refused.
func check(t *testing.T, data []byte, dir string) {
	file, err := ParseNested("x", data)
	if plain, perr := Parse("x", data); perr == nil && (err != nil || len(file.Values()) > 0 ||
		len(plain.Tensors()) != len(file.Tensors())) {
		t.Fatalf("ParseNested refuses a dict of tensors: %v", err)
	}
	parts, partsErr := readParts(t, data, dir, ReadNestedFrom)
	if err != nil {
		return
	}
	if old := bytes.HasPrefix(data, []byte{0x80}); old != (partsErr != nil) ||
		partsErr != nil && !errors.Is(partsErr, ErrUnsupported) {
		t.Fatalf("read part by part: %v", partsErr)
	}
	for i := range file.Tensors() {
		s := &file.Tensors()[i]
		if s.Elements()*s.size() > 1<<20 { // a tensor that repeats its storage
			continue
		}
		all := make([]byte, s.Elements()*s.size())
		if n, err := s.ReadAt(all, 0); n != len(all) || err != nil && err != io.EOF {
			t.Fatalf("%s: %d of %d bytes, %v", s.Name, n, len(all), err)
		}
		if d := s.Data(); d != nil && !bytes.Equal(d, all) {
			t.Fatalf("%s: mapped and read bytes differ", s.Name)
		}
		if partsErr == nil && !bytes.Equal(parts[i], all) {
			t.Fatalf("%s: mapped bytes and those of its parts differ", s.Name)
		}
	}
}
