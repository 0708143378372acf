// Package logprobs reads and writes the log-probabilities that llama-perplexity saves of a base model
// (--kl-divergence-base): ln of the probability of every token, for the second half of each chunk of a text.
//
// All numbers are little-endian:
//
//	"_logits_"
//	int32   tokens of a chunk, n
//	int32   tokens of the vocabulary, v
//	int32   chunks
//	int32   token ids, n for each chunk
//	rows, n - 1 - n/2 for each chunk, for positions n/2 to n-2:
//	    float32   scale
//	    float32   minimum
//	    uint16    codes, v of them, and one more if v is odd
//
// ln of a probability is minimum + scale·code. Values more than 16 below the largest of a row have code 0, which is an
// upper bound for them.
package logprobs

import (
	"encoding/binary"
	"io"
	"math"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

const (
	magic     = "_logits_"
	headBytes = len(magic) + 3*4
	rowHead   = 8 // bytes before the codes
)

// maxVocab is the largest vocabulary, ten times that of any model.
const maxVocab = 1 << 24

// File is an open file.
type File struct {
	Path string
	Layout
	Tokens  []int32 // of all chunks, as in the text: the caller puts BOS in the first place of each
	data    io.ReaderAt
	rowsOff int64
	file    *mmap.File
}

// Open opens the file at path. A violation of the format is an error of kind fault.Broken.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := New(path, m, m.Size())
	if err != nil {
		m.Close()
		return nil, err
	}
	f.file = m
	return f, nil
}

// New reads the header and the tokens of a file of size bytes; path is for messages. It takes memory for at most size
// bytes.
func New(path string, data io.ReaderAt, size int64) (*File, error) {
	broken := func(format string, args ...any) error {
		return fault.Errorf(fault.Broken, "%s: "+format, append([]any{path}, args...)...)
	}
	head := make([]byte, headBytes)
	if n, err := data.ReadAt(head, 0); n < len(head) && err != io.EOF {
		return nil, err
	} else if string(head[:min(n, len(magic))]) != magic {
		return nil, broken("no file of log probabilities as llama-perplexity saves them: it begins with %q, want %q",
			head[:min(n, len(magic))], magic)
	} else if n < len(head) {
		return nil, broken("%d bytes, want at least %d", size, len(head))
	}
	f := &File{Path: path, data: data}
	for i, v := range []struct {
		to          *int
		what        string
		least, most int
	}{{&f.Chunk, "tokens of a chunk", 3, math.MaxInt32}, {&f.Vocab, "tokens of the vocabulary", 1, maxVocab},
		{&f.Chunks, "chunks", 1, math.MaxInt32}} {
		n := int(int32(binary.LittleEndian.Uint32(head[len(magic)+4*i:])))
		if n < v.least || n > v.most {
			return nil, broken("%d %s, want %d to %d", n, v.what, v.least, v.most)
		}
		*v.to = n
	}
	tokens := int64(f.Chunks) * int64(f.Chunk)
	if tokens > (size-int64(headBytes))/4 {
		return nil, broken("%d chunks of %d tokens, in a file of %d bytes", f.Chunks, f.Chunk, size)
	}
	f.rowsOff = int64(headBytes) + 4*tokens
	// Each factor is below 2^31 and what remains of the file below 2^63.
	chunkBytes, rest := int64(f.Rows())*int64(f.RowBytes()), size-f.rowsOff
	if whole := rest / chunkBytes; whole < int64(f.Chunks) {
		return nil, broken("it has probabilities for %d of %d chunks: has it been written to the end?", whole, f.Chunks)
	} else if whole > int64(f.Chunks) || rest%chunkBytes != 0 {
		return nil, broken("%d bytes after the last of %d chunks", rest-int64(f.Chunks)*chunkBytes, f.Chunks)
	}
	return f, f.readTokens(tokens)
}

// readTokens sets Tokens; the file is large enough for them.
func (f *File) readTokens(n int64) error {
	raw := make([]byte, 4*n)
	if _, err := f.data.ReadAt(raw, int64(headBytes)); err != nil && err != io.EOF {
		return err
	}
	f.Tokens = make([]int32, n)
	for i := range f.Tokens {
		id := int32(binary.LittleEndian.Uint32(raw[4*i:]))
		if id < 0 || int(id) >= f.Vocab {
			return fault.Errorf(fault.Broken, "%s: token %d of the text is %d, want 0 to %d", f.Path, i, id, f.Vocab-1)
		}
		f.Tokens[i] = id
	}
	return nil
}

// First returns the position in a chunk of the first row, which predicts the token after it.
func (f *File) First() int { return f.Chunk / 2 }

// Row sets dst, of Vocab values, to ln of the probabilities of row i of a chunk. buf is
// scratch. It may be called from many goroutines at once.
func (f *File) Row(dst []float32, buf *[]byte, chunk, i int) error {
	n := int64(f.RowBytes())
	if int64(cap(*buf)) < n {
		*buf = make([]byte, n)
	}
	raw := (*buf)[:n]
	if _, err := f.data.ReadAt(raw, f.rowsOff+(int64(chunk)*int64(f.Rows())+int64(i))*n); err != nil && err != io.EOF {
		return err
	}
	scale, least := math.Float32frombits(binary.LittleEndian.Uint32(raw)),
		math.Float32frombits(binary.LittleEndian.Uint32(raw[4:]))
	const slack = 1e-3 // ln of a probability is at most 0, but for rounding
	if most := float32(scale*math.MaxUint16) + least; !(scale >= 0) || !(least >= -math.MaxFloat32) ||
		!(most <= slack) {
		return fault.Errorf(fault.Broken,
			"%s: chunk %d, position %d: minimum %v and scale %v are invalid for log-probabilities", f.Path, chunk,
			f.First()+i, least, scale)
	}
	for k := range dst[:f.Vocab] {
		dst[k] = float32(scale*float32(binary.LittleEndian.Uint16(raw[rowHead+2*k:]))) + least
	}
	return nil
}

// Unchanged returns an error of kind fault.Broken if the file has changed since Open.
func (f *File) Unchanged() error {
	if f.file == nil {
		return nil
	}
	return f.file.Unchanged()
}

// Close closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
