// Package identity decides whether two inputs are the same. Everything that resumes an earlier run, or joins the
// results of several, uses it: journals and parts of writes, parts of evaluations, calibration state, uploads and
// releases.
//
// The identity of a model (Of) is a SHA-256 of
//
//   - its header: metadata, and names, types and dimensions of all tensors, in their order;
//   - of each tensor the XXH3 (128 bits) of the first row, the last one and up to 14 between them, at equal distances,
//     as bytes of the tensor's Source: the same in every container and on every machine. XXH3 suffices to compare the
//     inputs of one user, and a SHA-256 of as many bytes would take longer than reading them;
//   - of a model on a server, in place of rows, its state on the server (Model.Origin): commit, or size and ETag of each
//     file. Weights on a server are read only once, for the run itself.
//
// In a model of many tensors fewer rows of each count, at least two, so that all together have about 256 MiB. Rows
// whose elements are spread over the whole tensor, such as stored columns, are left out; the identities of the model's
// files take their place.
//
// The identity of any other file (OfFile) is its size and a SHA-256: of the whole content up to 64 MiB; of a longer
// file of its first MiB, its last 64 KiB and 64 pieces of 4 KiB between them.
//
// So two models that differ only in rows that are not sampled have the same identity. Editing, training, merging or
// quantizing a model changes more than such rows. If that is not enough, --finish --verify compares all rows of the
// model with the rows that the parts have read (package writer).
//
// Package internal/io/stamp finds out whether an open file has changed since it was opened; package digest makes the
// published sums of whole files and tensors.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/parallel"
	"ggforge/model"
	"ggforge/rows"
)

const (
	mostRows  = 16        // of a tensor
	rowsBytes = 256 << 20 // of all tensors, about
	// Rows with a Cost of dear or more are not sampled; decoding alone costs less.
	dear = 500
)

// Of returns the identity of a model, in hexadecimal digits.
func Of(ctx context.Context, m *model.Model) (string, error) {
	infos := make([]gguf.Tensor, len(m.Tensors))
	for i, t := range m.Tensors {
		infos[i] = gguf.Tensor{Name: t.Name, NE: t.NE, Type: t.Type}
	}
	h := sha256.New()
	h.Write(gguf.AppendHeader(nil, m.Metadata, infos, 1))
	if len(m.Origin) > 0 {
		fmt.Fprintf(h, "%q\n", m.Origin)
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	sums := make([][16]byte, len(m.Tensors))
	buffers := make([][]byte, runtime.GOMAXPROCS(0))
	err := parallel.For(ctx, len(buffers), len(m.Tensors), func(i, worker int) (err error) {
		t := &m.Tensors[i]
		if t.Source.Cost() < dear {
			// mapped input that shrinks meanwhile must not kill the process
			err = mmap.Guard(m.Path, func() error {
				sums[i], err = sample(t.Source, &buffers[worker], rowsBytes/int64(len(sums)))
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", m.Path, t.Name, err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, s := range sums {
		h.Write(s[:])
	}
	if slices.ContainsFunc(m.Tensors, func(t model.Tensor) bool { return t.Source.Cost() >= dear }) {
		for _, path := range m.Files {
			f, err := OfFile(path)
			if errors.Is(err, ErrIrregular) {
				continue
			}
			if err != nil {
				return "", err
			}
			fmt.Fprintln(h, f)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sample returns a sum of rows of a tensor, of about most bytes.
func sample(s rows.Source, buf *[]byte, most int64) (sum [16]byte, err error) {
	n := gguf.Rows(s.NE())
	if n == 0 {
		return sum, nil
	}
	count := min(n, max(2, min(mostRows, most/max(1, s.Type().RowBytes(gguf.RowLen(s.NE()))))))
	h := xxh3.New()
	for i := range count {
		row := int64(0)
		if i > 0 {
			row = (n - 1) / (count - 1) * i // no product of it overflows
		}
		if i == count-1 {
			row = n - 1
		}
		raw, err := s.Raw(buf, row, row+1)
		if err != nil {
			return sum, err
		}
		h.Write(raw)
	}
	return h.Sum128().Bytes(), nil
}

const (
	wholeBytes = 64 << 20 // files up to this size are hashed as a whole
	headBytes  = 1 << 20
	tailBytes  = 64 << 10
	pieces     = 64
	pieceBytes = 4 << 10
)

// File is the identity of a file.
type File struct {
	Bytes    int64
	SHA256   [sha256.Size]byte // of the whole content, or of the samples
	Modified time.Time         // not in String, since it differs between copies
}

// ErrIrregular is the cause of an error about a path that is not a regular file. The content of a pipe, for one, is
// unknown until it is read.
var ErrIrregular = fault.Errorf(fault.Usage, "is not a regular file")

// OfFile returns the identity of the regular file at path.
func OfFile(path string) (id File, err error) {
	info, err := disk.Stat(path) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return id, err
	}
	if !info.Mode().IsRegular() {
		return id, fmt.Errorf("%s: %w", path, ErrIrregular)
	}
	f, err := disk.Open(path)
	if err != nil {
		return id, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return id, err
	}
	id = File{Bytes: info.Size(), Modified: info.ModTime()}
	h := sha256.New()
	read := func(off, n int64) error {
		got, err := io.Copy(h, io.NewSectionReader(f, off, n))
		if err == nil && got < n {
			err = fmt.Errorf("%s: ends at byte %d, and had %d before: %w", path, off+got, id.Bytes, fs.ErrInvalid)
		}
		return err
	}
	if id.Bytes <= wholeBytes {
		err = read(0, id.Bytes)
	} else {
		err = read(0, headBytes)
		step := (id.Bytes - headBytes - tailBytes) / pieces
		for i := int64(0); i < pieces && err == nil; i++ {
			err = read(headBytes+i*step+(step-pieceBytes)/2, pieceBytes)
		}
		if err == nil {
			err = read(id.Bytes-tailBytes, tailBytes)
		}
	}
	if err != nil {
		return id, err
	}
	h.Sum(id.SHA256[:0])
	return id, nil
}

// Sampled reports whether only samples of the content were hashed.
func (f File) Sampled() bool { return f.Bytes > wholeBytes }

// String returns size and sum, to show and to compare.
func (f File) String() string {
	kind := ""
	if f.Sampled() {
		kind = "sampled "
	}
	return fmt.Sprintf("%d bytes, %sSHA-256 %x", f.Bytes, kind, f.SHA256[:16])
}
