package logprobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
)

// file returns the bytes of a file; the rows have scale 16/65535 and minimum -17, and codes that rise by step.
func file(chunk, vocab, chunks int, step uint16) []byte {
	b := []byte(magic)
	for _, n := range []int{chunk, vocab, chunks} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for i := range chunk * chunks {
		b = binary.LittleEndian.AppendUint32(b, uint32(i%vocab))
	}
	code := uint16(0)
	for range (chunk - 1 - chunk/2) * chunks {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(16.0/65535))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(-17))
		for range (vocab + 1) / 2 * 2 {
			b = binary.LittleEndian.AppendUint16(b, code)
			code += step
		}
	}
	return b
}

func parse(b []byte) (*File, error) { return New("f", bytes.NewReader(b), int64(len(b))) }

func TestRows(t *testing.T) {
	for _, c := range []struct{ chunk, vocab, chunks, rows int }{{8, 5, 3, 3}, {9, 6, 1, 4}, {3, 1, 2, 1}} {
		path := filepath.Join(t.TempDir(), "base")
		if err := os.WriteFile(path, file(c.chunk, c.vocab, c.chunks, 7), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Chunk != c.chunk || f.Vocab != c.vocab || f.Chunks != c.chunks || f.Rows() != c.rows ||
			len(f.Tokens) != c.chunk*c.chunks || f.Tokens[2] != int32(2%c.vocab) {
			t.Errorf("%+v", f)
		}
		row, buf, code := make([]float32, c.vocab), []byte(nil), uint16(0)
		for chunk := range c.chunks {
			for i := range c.rows {
				if err := f.Row(row, &buf, chunk, i); err != nil {
					t.Fatal(err)
				}
				for k, v := range row {
					if want := float32(-17) + 16*float32(code+uint16(7*k))/65535; math.Abs(float64(v-want)) > 1e-5 {
						t.Errorf("chunk %d, row %d, token %d: %v, want %v", chunk, i, k, v, want)
					}
				}
				code += uint16((c.vocab + 1) / 2 * 2 * 7)
			}
		}
		if err := f.Unchanged(); err != nil {
			t.Error(err)
		}
		if err := os.Truncate(path, 60); err != nil {
			t.Fatal(err)
		}
		if err := f.Row(row, &buf, c.chunks-1, 0); err == nil {
			t.Error("a row of a file that has become shorter")
		}
		if err := f.Unchanged(); !errors.Is(err, fault.Broken) {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBroken(t *testing.T) {
	set := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"empty":      {cut(0), "llama-perplexity"},
		"text":       {func([]byte) []byte { return []byte("some text that is long enough") }, `"some tex"`},
		"head":       {cut(15), "15 bytes"},
		"chunk":      {set(8, 2), "2 tokens of a chunk"},
		"negative":   {set(8, 1<<31), "-2147483648 tokens of a chunk"},
		"vocabulary": {set(12, 1<<30), "1073741824 tokens of the vocabulary"},
		"none":       {set(16, 0), "0 chunks"},
		"huge":       {set(16, 1<<31-1), "2147483647 chunks of 8 tokens"},
		"hugest": {func(b []byte) []byte { return set(8, 1<<31-1)(set(16, 1<<31-1)(b)) },
			"2147483647 chunks of 2147483647 tokens"},
		"truncated":  {func(b []byte) []byte { return b[:len(b)-1] }, "2 of 3 chunks"},
		"longer":     {func(b []byte) []byte { return append(b, 0) }, "1 bytes after"},
		"chunk more": {func(b []byte) []byte { return append(b, make([]byte, 60)...) }, "60 bytes after"},
		"token":      {set(20+4*5, 5), "token 5 of the text is 5"},
		"token < 0":  {set(20, 1<<31), "token 0 of the text is -2147483648"},
	} {
		_, err := parse(c.change(file(8, 5, 3, 1)))
		if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	nan := math.Float32bits(float32(math.NaN()))
	for name, c := range map[string]struct{ scale, least uint32 }{
		"scale": {nan, 0}, "minimum": {0, nan}, "infinite": {0, math.Float32bits(float32(math.Inf(-1)))},
		"negative": {math.Float32bits(-1), 0}, "above 0": {math.Float32bits(1), 0},
	} {
		b := file(8, 5, 3, 1)
		at := len(b) - 20 // the last row
		f, err := parse(set(at, c.scale)(set(at+4, c.least)(b)))
		if err != nil {
			t.Fatal(err)
		}
		row, buf := make([]float32, 5), []byte(nil)
		if err := f.Row(row, &buf, 2, 1); err != nil {
			t.Error(err)
		}
		if err := f.Row(row, &buf, 2, 2); !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), "chunk 2, position 6") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("f", lost{}, 100); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory")
	}
}

// lost is a file that cannot be read.
type lost struct{}

func (lost) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

// FuzzFile checks that any bytes give an error of kind fault.Broken, or a file whose rows can be read or give such an
// error, with memory in proportion to the bytes.
func FuzzFile(f *testing.F) {
	f.Add(file(8, 5, 3, 1))
	f.Add(file(3, 1, 1, 9999))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if err != nil {
			if !errors.Is(err, fault.Broken) {
				t.Errorf("an error without a kind: %v", err)
			}
			return
		}
		if n := len(m.Tokens); n != m.Chunk*m.Chunks || 4*n > len(b) || m.Vocab*m.Rows()*m.Chunks*2 > len(b) {
			t.Fatalf("%d tokens in %d bytes", n, len(b))
		}
		row, buf := make([]float32, m.Vocab), []byte(nil)
		for c := range m.Chunks {
			for i := range m.Rows() {
				if err := m.Row(row, &buf, c, i); err != nil && !errors.Is(err, fault.Broken) {
					t.Fatal(err)
				} else if err == nil {
					for k, v := range row {
						if !(v <= 1e-3) {
							t.Fatalf("token %d: %v", k, v)
						}
					}
				}
			}
		}
	})
}
