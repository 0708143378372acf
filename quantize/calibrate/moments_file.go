package calibrate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/statefile"
)

// MomentsFile is the file of Options.Moments: the second moments that Run collects over a text. A later run reads it
// instead of running the model. It is a GGUF file of its own kind:
//
//	general.type          "moments"
//	moments.version       u32, 2
//	moments.model         eval.Model.Identity
//	moments.text_sha256   of the text; moments.tokens_sha256: of its tokens as little-endian i32
//	moments.chunk_size    u64, in tokens; moments.token_count: u64, of all chunks
//	moments.max_columns   u64, Options.MaxColumns
//	moments.gradients     u64, Options.Gradients; moments.no_gradients: why there are none
//	moments.columns, moments.rows, moments.matrices, moments.readers
//	                      u64 arrays with an element for each input: how long rows are, how many
//	                      were met, how many matrices the tensors have that read it, how
//	                      many matrices read it
//	moments.tensor, moments.matrix
//	                      of each reader of all inputs, one after the other: the tensor's name,
//	                      and which of its matrices it is
//
//	input.I.P             F32, Σ x xᵀ of range P of the columns of input I: rows of the lower
//	                      triangle with the diagonal, n(n+1)/2 numbers for n columns
//	gradients             F32, a triangle as well: what errors of the embedding's rows cost
//	importance            I8, a file by imatrix.Sums.State
//
// The header has a checksum of each tensor (moments.sums, XXH3 in hexadecimal digits), which is compared when the
// tensor is read; the SHA-256 of the header, 32 bytes, follows the tensors, and nothing else.
//
// An input of n columns takes 2n(n+1) bytes, up to 8192 columns; a dense layer of width d and feed-forward width f,
// with four inputs, about 2(3d² + f²).
type MomentsFile struct {
	Text          [sha256.Size]byte // Options.Text
	Chunk, Tokens int
	Sums          *imatrix.Sums // nil without Options.Collect

	file               *gguf.File
	model, tokens      string
	columns, gradients int
	noGradients        string
	inputs             []storedInput
	costs              *gguf.Tensor // nil for none
	sums               map[string]string
}

// storedInput is one input of a MomentsFile.
type storedInput struct {
	columns, rows, matrices int
	readers                 []key
	parts                   []*gguf.Tensor
}

const (
	momentsType    = "moments"
	momentsVersion = 2

	momentsKeys = "moments."
	costsName   = "gradients"
	sumsName    = "importance"
)

func partName(input, part int) string { return fmt.Sprintf("input.%d.%d", input, part) }

// triangle returns the number of elements of a lower triangle with its diagonal.
func triangle(n int) int64 { return int64(n) * (int64(n) + 1) / 2 }

// OpenMoments opens the moments file at path. A file of another kind or a truncated one is an error of kind
// fault.Broken, another version one of kind fault.Refused. Moments are read on demand; the caller closes the file.
func OpenMoments(path string) (*MomentsFile, error) {
	if err := statefile.Check(path); err != nil {
		return nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	var s *MomentsFile
	err = mmap.Guard(path, func() (err error) {
		s, err = parseMoments(f)
		return err
	})
	if err == nil {
		err = s.sealed(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// sealed returns an error of kind fault.Broken unless the file ends with its tensors and the SHA-256 of its header.
func (s *MomentsFile) sealed(path string) error {
	end := s.file.DataStart
	for i := range s.file.Tensors {
		t := &s.file.Tensors[i]
		end = max(end, s.file.DataStart+gguf.Align(t.Offset+t.Bytes(), gguf.DefaultAlignment))
	}
	if s.file.Size != end+sha256.Size {
		return fault.Errorf(fault.Broken, "%s: has %d bytes, want %d", path, s.file.Size, end+sha256.Size)
	}
	f, err := statefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, 0, s.file.DataStart)); err != nil || n < s.file.DataStart {
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	var sum [sha256.Size]byte
	if n, err := f.ReadAt(sum[:], end); n < len(sum) {
		return err
	}
	if !bytes.Equal(h.Sum(nil), sum[:]) {
		return fault.Errorf(fault.Broken, "%s: the SHA-256 of its header is %x, and it ends with %x", path,
			h.Sum(nil), sum)
	}
	return nil
}

// Close closes the file.
func (s *MomentsFile) Close() error { return s.file.Close() }

// hexSum formats a checksum as in the header.
func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// damaged returns the error for a tensor whose checksum differs from the header's.
func (s *MomentsFile) damaged(t *gguf.Tensor, sum string) error {
	return fault.Errorf(fault.Broken, "%s: tensor %q: its XXH3 is %s, want %s", s.file.Path, t.Name, sum,
		s.sums[t.Name])
}

// triangle checks that t holds a lower triangle of n columns.
func (s *MomentsFile) triangle(t *gguf.Tensor, name string, n int) (*gguf.Tensor, error) {
	if t == nil {
		return nil, fault.Errorf(fault.Broken, "%s: has no tensor %q", s.file.Path, name)
	}
	if t.Type != gguf.TypeF32 || t.Elements() != triangle(n) {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q is %v of %d, want F32 of %d", s.file.Path, name, t.Type,
			t.Elements(), triangle(n))
	}
	return t, nil
}
