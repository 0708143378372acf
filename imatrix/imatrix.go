package imatrix

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/io/mmap"
)

// Keys of a quantized file about the matrix that it was made with.
const (
	KeyFile         = "quantize.imatrix.file"
	KeyDataset      = "quantize.imatrix.dataset"
	KeyEntriesCount = "quantize.imatrix.entries_count"
	KeyChunksCount  = "quantize.imatrix.chunks_count"
)

// maxString is the largest length of a string in the metadata, in bytes: the size of the value of an override in the
// reference (llama_model_kv_override), without its terminator.
const maxString = 127

// Matrix is an importance matrix. Its values stay in the mapped file until they are read, since those of a large model
// with many experts take a gigabyte. Methods that change nothing may be called from several goroutines.
//
// A nil *Matrix stands for no matrix: its methods take it as one without entries.
type Matrix struct {
	Path       string
	Legacy     bool     // the file's format
	Datasets   []string // the texts of the calibration; the first is recorded in quantized files
	Chunks     int      // of text in the calibration; 0 or less if unknown
	ChunkSize  int      // tokens in a chunk, 0 if unknown
	NextN      int      // number of MTP (NextN) layers, the last ones; 0 if none or unknown
	Duplicates []string // names of legacy entries that a later one of the same name replaced

	entries []Entry
	index   map[string]int // name -> place in entries
	mapping *mmap.File
	data    []byte // of the whole file, nil if it is mapped
}

// Entry is the importance of one tensor.
type Entry struct {
	Name string

	// Counts has the number of rows of activations for each matrix of the tensor. It is nil in a legacy file, which has
	// no counts.
	Counts []int64

	// Calls, if above 0, is the divisor of the numbers in a legacy file: in files of the reference, the number of
	// chunks.
	Calls int

	raw   []byte // stored float32 numbers
	plain []byte // sums of the activations, without squares (in_sum); nil if the file does not have them
	big   bool   // raw and plain are big-endian

	squares, plains []float32 // in place of raw and plain, in a Matrix that was not read from a file
}

// Len returns the number of values: the columns of all matrices.
func (e *Entry) Len() int { return max(len(e.raw)/4, len(e.squares)) }

// Matrices returns the number of matrices of the tensor, 1 for all entries of a legacy file.
func (e *Entry) Matrices() int { return max(1, len(e.Counts)) }

// Unseen returns the matrices without activations, in ascending order: experts that the calibration did not reach.
// Their values are all 1.
func (e *Entry) Unseen() []int {
	var unseen []int
	for j, c := range e.Counts {
		if c == 0 {
			unseen = append(unseen, j)
		}
	}
	return unseen
}

// sums decodes the stored numbers from number from on into dst.
func (e *Entry) sums(dst []float32, from int) {
	if e.raw == nil {
		copy(dst, e.squares[from:])
		return
	}
	e.decode(dst, e.raw[4*from:][:4*len(dst)])
}

// decode decodes numbers of the file.
func (e *Entry) decode(dst []float32, raw []byte) {
	if e.big {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.BigEndian.Uint32(raw[4*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
}

// values computes the values from number from on into dst.
func (e *Entry) values(dst []float32, from int) {
	columns := e.Len() / e.Matrices()
	for len(dst) > 0 {
		j := from / columns
		part := dst[:min(len(dst), (j+1)*columns-from)]
		switch by, ok := e.divisor(j); {
		case ok:
			e.sums(part, from)
			for i := range part {
				part[i] /= by
			}
		default:
			for i := range part {
				part[i] = 1
			}
		}
		dst, from = dst[len(part):], from+len(part)
	}
}

// divisor returns the divisor of the numbers of matrix j, ok false if it has no activations.
func (e *Entry) divisor(j int) (by float32, ok bool) {
	if e.Counts == nil {
		return float32(max(1, e.Calls)), true
	}
	return float32(e.Counts[j]), e.Counts[j] > 0
}

// Open maps the file at path, of either format, and checks it. The caller
// closes it. A broken file gives a *FormatError or a *gguf.FormatError.
func Open(path string) (*Matrix, error) {
	f, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	return mapped(path, f)
}

// mapped returns the matrix in f. After an error f is closed.
func mapped(path string, f *mmap.File) (m *Matrix, err error) {
	err = mmap.Guard(path, func() (err error) {
		m, err = Parse(path, f.Bytes())
		return err
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	m.mapping = f
	return m, nil
}

// maxLoaded is the size of the largest file that Load reads into memory.
const maxLoaded = 256 << 20

// Load is Open for a matrix that does not change with the file: it is read into memory, and Unchanged reports
// whether the file still has it. A file of more than 256 MiB, as models with many experts have, is mapped as by Open.
func Load(path string) (*Matrix, error) {
	f, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	if f.Size() > maxLoaded {
		return mapped(path, f)
	}
	data := make([]byte, f.Size())
	_, err = f.ReadAt(data, 0)
	var m *Matrix
	if err == nil {
		m, err = Parse(path, data)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	m.mapping, m.data = f, data
	return m, nil
}

// Read returns the bytes of the file if Load has read it into memory, nil if it is mapped.
func (m *Matrix) Read() []byte {
	if m == nil {
		return nil
	}
	return m.data
}

// Parse checks a whole file given as bytes; path is for messages only. The
// Matrix keeps data.
func Parse(path string, data []byte) (*Matrix, error) {
	m := &Matrix{Path: path}
	parse := m.parseLegacy
	if bytes.HasPrefix(data, []byte("GGUF")) {
		parse = m.parseGGUF
	}
	if err := parse(data); err != nil {
		return nil, err
	}
	m.buildIndex()
	return m, nil
}

// Close releases the mapping. Afterwards values cannot be read, except from a matrix that Load has read into memory,
// for which Unchanged then always returns nil; all else stays.
func (m *Matrix) Close() error {
	if m == nil || m.mapping == nil {
		return nil
	}
	f := m.mapping
	if m.data != nil {
		m.mapping = nil
	}
	return f.Close()
}

// Unchanged returns an error of kind fault.Broken if the file on the disk has changed
// since Open.
func (m *Matrix) Unchanged() error {
	if m == nil || m.mapping == nil {
		return nil
	}
	return m.mapping.Unchanged()
}

func (m *Matrix) buildIndex() {
	m.index = make(map[string]int, len(m.entries))
	for i := range m.entries {
		m.index[m.entries[i].Name] = i
	}
}

// Len returns the number of entries.
func (m *Matrix) Len() int {
	if m == nil {
		return 0
	}
	return len(m.entries)
}

// Entries returns the entries in file order. The slice is the matrix's own, not
// to be changed, and is invalid after Include and Exclude.
func (m *Matrix) Entries() []Entry {
	if m == nil {
		return nil
	}
	return m.entries
}

// Entry returns the entry of that name, nil if there is none; it is invalid
// after Include and Exclude.
func (m *Matrix) Entry(name string) *Entry {
	if m == nil {
		return nil
	}
	if i, ok := m.index[name]; ok {
		return &m.entries[i]
	}
	return nil
}

// Include drops the entries whose name has none of the substrings in it. An empty list drops nothing. If Len is 0
// afterwards, the reference would continue as if there were no matrix.
func (m *Matrix) Include(substrings []string) {
	if len(substrings) > 0 {
		m.drop(func(name string) bool { return !containsAny(name, substrings) })
	}
}

// Exclude drops the entries whose name has one of the substrings in it.
// Giving both Include and Exclude is a usage error in the reference.
func (m *Matrix) Exclude(substrings []string) {
	m.drop(func(name string) bool { return containsAny(name, substrings) })
}

func (m *Matrix) drop(f func(name string) bool) {
	if m == nil {
		return
	}
	// a copy of the matrix may share the old slice
	m.entries = slices.DeleteFunc(slices.Clone(m.entries), func(e Entry) bool { return f(e.Name) })
	m.buildIndex()
}

func containsAny(s string, substrings []string) bool {
	return slices.ContainsFunc(substrings, func(sub string) bool { return strings.Contains(s, sub) })
}

// Metadata returns the pairs a quantized file gets, in their order: file name, dataset if known, number of entries
// (those left by Include and Exclude), and number of chunks if above 0. A matrix without entries gives none. Only the
// last part of the paths of the file and the dataset is recorded, unless paths is set: the folders are private. Strings
// are cut at 127 bytes, even inside a character, and at a zero byte.
func (m *Matrix) Metadata(paths bool) gguf.Metadata {
	if m.Len() == 0 {
		return nil
	}
	text := func(s string) gguf.Value {
		s = cString(s)
		if !paths {
			s = base(s)
		}
		return gguf.String(s[:min(len(s), maxString)])
	}
	md := gguf.Metadata{{Key: KeyFile, Value: text(m.Path)}}
	if len(m.Datasets) > 0 {
		md = append(md, gguf.KV{Key: KeyDataset, Value: text(m.Datasets[0])})
	}
	md = append(md, gguf.KV{Key: KeyEntriesCount, Value: gguf.Uint32(uint32(m.Len()))})
	if m.Chunks > 0 {
		md = append(md, gguf.KV{Key: KeyChunksCount, Value: gguf.Uint32(uint32(m.Chunks))})
	}
	return md
}

// base returns the last part of a path of any system: the matrix may have been
// made on another.
func base(path string) string {
	path = strings.TrimRight(path, `/\`)
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// cString returns s up to its first zero byte.
func cString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}
