package torch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

// noCopies fails the test if there is a file in the folder for copies. On Windows, where open files keep their names,
// copies may be there.
func noCopies(t *testing.T, scratch string) {
	t.Helper()
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("in the folder for copies: %v %v", left, err)
	}
}

// readParts reads a file and all its tensors; those of more than 1 MiB, which repeat
// small storages, are nil.
func readParts(t *testing.T, data []byte, dir string,
	open func(string, io.ReaderAt, int64, string) (*File, error)) (tensors [][]byte, err error) {
	f, err := open("x", bytes.NewReader(data), int64(len(data)), dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i := range f.Tensors() {
		s := &f.Tensors()[i]
		if s.Data() != nil {
			t.Errorf("%s: has mapped bytes", s.Name)
		}
		if s.Elements()*s.size() > 1<<20 {
			tensors = append(tensors, nil)
			continue
		}
		all := make([]byte, s.Elements()*s.size())
		if n, err := s.ReadAt(all, 0); n != len(all) || err != nil && err != io.EOF {
			return nil, err
		}
		tensors = append(tensors, all)
	}
	return tensors, nil
}

// counted counts what is read, and fails from byte failAt on if that is not 0.
type counted struct {
	data   []byte
	failAt int64

	mu    sync.Mutex
	calls int
	bytes int
}

var errCut = errors.New("cut off")

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.bytes += len(p)
	if c.failAt > 0 && off+int64(len(p)) > c.failAt {
		return 0, errCut
	}
	return bytes.NewReader(c.data).ReadAt(p, off)
}

// TestReadParts counts the bytes that are read of a file with many tensors: few to open it, then each storage once,
// whatever the order of its elements. Spans are in the order of the file and do not overlap.
func TestReadParts(t *testing.T) {
	const tensors, side = 300, 40
	var list []torchfiletest.Tensor
	for i := range tensors {
		list = append(list, torchfiletest.Tensor{Name: string(rune('a'+i%26)) + string(rune('a'+i/26)),
			DType: safetensors.I16, Shape: []int64{side, side}, Data: u16s(side * side)})
		if i%2 == 1 {
			list[i].Strides = []int64{1, side}
		}
	}
	data := torchfiletest.Encode(list)
	in := &counted{data: data}
	scratch := t.TempDir()
	f, err := ReadFrom("x", in, int64(len(data)), scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// the mark, the end with the directory, heads and names of two entries, and their content
	if in.calls > 8 || in.bytes > len(data)/4 {
		t.Errorf("%d reads of %d bytes before any tensor, of a file of %d", in.calls, in.bytes, len(data))
	}
	end := int64(0)
	for i := range f.Tensors() {
		s := &f.Tensors()[i]
		off, n := s.Span()
		if off < end || n < side*side*2 || off+n > int64(len(data)) {
			t.Fatalf("%s: %d bytes at %d, the one before ends at %d", s.Name, n, off, end)
		}
		end = off + n
		in.calls, in.bytes = 0, 0
		row := make([]byte, 2*side)
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				row := make([]byte, 2*side)
				if _, err := s.ReadAt(row, 0); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for r := range int64(side) {
			if _, err := s.ReadAt(row, r*2*side); err != nil {
				t.Fatal(err)
			}
		}
		if most := side*side*2 + 4*side + 100; in.bytes > most {
			t.Errorf("%s: %d bytes in %d reads, want at most %d", s.Name, in.bytes, in.calls, most)
		}
	}
	noCopies(t, scratch)
}

// TestReadFails checks that a tensor returns the errors of the reader, that a later
// read tries again, and that a missing folder is an error.
func TestReadFails(t *testing.T) {
	list := []torchfiletest.Tensor{
		{Name: "plain", DType: safetensors.I16, Shape: []int64{40, 40}, Data: u16s(1600)},
		{Name: "strided", DType: safetensors.I16, Shape: []int64{40, 40}, Strides: []int64{1, 40}, Data: u16s(1600)},
	}
	data := torchfiletest.Encode(list)
	in := &counted{data: data}
	scratch := t.TempDir()
	f, err := ReadFrom("x", in, int64(len(data)), scratch)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	row := make([]byte, 80)
	for i := range f.Tensors() {
		s := &f.Tensors()[i]
		for _, at := range []int64{1, 100} { // the head, the data
			off, _ := s.Span()
			in.failAt = off + at
			if _, err := s.ReadAt(row, 0); !errors.Is(err, errCut) {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		in.failAt = 0
		if _, err := s.ReadAt(row, 0); err != nil {
			t.Errorf("%s, again: %v", s.Name, err)
		}
	}
	noCopies(t, scratch)
	for failAt := range int64(len(data)) {
		if _, err := ReadFrom("x", &counted{data: data, failAt: failAt + 1}, int64(len(data)), scratch); !errors.Is(err,
			errCut) && failAt+1 < int64(len(data)) {
			t.Fatalf("cut at byte %d: %v", failAt+1, err)
		}
	}
	f, err = ReadFrom("x", bytes.NewReader(data), int64(len(data)), scratch+"/none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tensors()[1].ReadAt(row, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	short := bytes.NewReader(data[:len(data)-1])
	if _, err := ReadFrom("x", short, int64(len(data)), scratch); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that ends early: %v", err)
	}
}

// TestReadRefuses checks that the older container is refused, which only local files may have, and that entries that
// are longer than the directory allows are broken.
func TestReadRefuses(t *testing.T) {
	old := torchfiletest.EncodeOld(sample())
	if _, err := readParts(t, old, t.TempDir(), ReadFrom); !errors.Is(err, ErrUnsupported) ||
		!strings.Contains(err.Error(), "before 1.6") {
		t.Errorf("the older container: %v", err)
	}
	// an entry whose head makes it longer than the directory allows, and one that
	// reaches into the next one
	whole := torchfiletest.Zip(good().Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 16)})
	at := bytes.Index(whole, []byte("archive/data/0")) - entryHead
	for _, extra := range []byte{40, 0xff} { // there are 16 bytes and a descriptor after the head
		data := slices.Clone(whole)
		data[at+28], data[at+29] = extra, extra&0x80
		if _, err := Parse("x", data); !errors.Is(err, ErrBroken) {
			t.Errorf("%d bytes more: parsed, %v", extra, err)
		}
		if _, err := readParts(t, data, t.TempDir(), ReadFrom); !errors.Is(err, ErrBroken) ||
			!strings.Contains(err.Error(), `entry "archive/data/0"`) {
			t.Errorf("%d bytes more: read, %v", extra, err)
		}
	}
}
