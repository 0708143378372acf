// Package identity decides whether two inputs are the same. Everything that resumes an earlier run, or joins the
// results of several, uses it: journals and parts of writes, parts of evaluations, calibration state, uploads and
// releases.
//
// The identity of a model (Of) is a SHA-256 of
//
//   - its header: metadata, and names, types and dimensions of all tensors, in their order;
//   - of each tensor the first row, the last one and up to 14 between them, at equal distances, as bytes of the tensor's
//     Source: the same in every container and on every machine. Each tensor has an XXH3 of them, 128 bits: what is compared
//     are inputs of one user, and a SHA-256 of as many bytes would take longer than reading them;
//   - of a model on a server, in place of rows, what the server says of its state (Model.Origin): commit, or size and
//     ETag of each file. Weights that are read from a server are read once, where they are needed.
//
// A model of many tensors has fewer rows of each, at least two, so that all together are about 256 MiB. Rows that have
// to be put together from all over a tensor, such as columns of what is stored, are left out, and the identities of the
// model's files are in their place.
//
// The identity of another file (OfFile) is its size and the SHA-256 of its content up to 64 MiB; of a longer one that
// of its first MiB, its last 64 KiB and 64 pieces of 4 KiB between them.
//
// So two models that differ in nothing but rows between those that are looked at pass for the same. Whoever changes,
// trains, merges or quantizes a model changes more. Where that is not enough, --finish --verify compares all rows of
// the model with what the parts have read (package writer).
//
// Whether an open file is still what it was when it was opened is another question, which internal/io/stamp answers.
// Published sums of whole files and tensors are made by digest.
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
	// dear is the Cost from which rows are not sampled; decoding costs less.
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
	wholeBytes = 64 << 20 // of files up to this size everything is looked at
	headBytes  = 1 << 20
	tailBytes  = 64 << 10
	pieces     = 64
	pieceBytes = 4 << 10
)

// File is the identity of a file.
type File struct {
	Bytes    int64
	SHA256   [sha256.Size]byte // of the whole content, or of the samples
	Modified time.Time         // is no part of String: copies on other machines have another
}

// ErrIrregular is the cause of an error about what is no regular file, whose content is not known before it is read.
var ErrIrregular = fault.Errorf(fault.Usage, "is not a regular file")

// OfFile returns the identity of the regular file at path.
func OfFile(path string) (id File, err error) {
	info, err := disk.Stat(path) // before it is opened: a pipe would have us wait
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

// Sampled reports whether not all of the content was looked at.
func (f File) Sampled() bool { return f.Bytes > wholeBytes }

// String returns size and sum, for people and for comparing.
func (f File) String() string {
	kind := ""
	if f.Sampled() {
		kind = "sampled "
	}
	return fmt.Sprintf("%d bytes, %sSHA-256 %x", f.Bytes, kind, f.SHA256[:16])
}
