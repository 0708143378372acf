package digest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
)

// File is a file with its size and its sum.
type File struct {
	Name   string `json:"name" doc:"with slashes, below the folder that is meant"`
	Bytes  int64  `json:"bytes" doc:"size"`
	SHA256 string `json:"sha256,omitempty" doc:"64 hexadecimal digits in lower case"`
}

// Check returns an error of kind fault.Broken unless the name is a clean relative path that stays in its
// folder, the size is at least 0, and the sum has 64 hexadecimal digits. It turns these into lower case.
func (f *File) Check() error {
	if !fs.ValidPath(f.Name) || f.Name == "." || !filepath.IsLocal(filepath.FromSlash(f.Name)) ||
		strings.ContainsFunc(f.Name, unicode.IsControl) {
		return fault.Errorf(fault.Broken, "name is %q, want one below the manifest's folder", f.Name)
	}
	if f.Bytes < 0 {
		return fault.Errorf(fault.Broken, "%q: bytes is %d, want at least 0", f.Name, f.Bytes)
	}
	f.SHA256 = strings.ToLower(f.SHA256)
	if !isSHA256(f.SHA256) {
		return fault.Errorf(fault.Broken, "%q: sha256 is %q, want %d hexadecimal digits", f.Name, f.SHA256,
			2*sha256.Size)
	}
	return nil
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size
}

// Input is a file that a run reads.
type Input struct {
	// Role is "source" for the model, else the name of the flag for the file or its folder.
	Role string
	Name string // in that folder, with slashes
	Path string // local path; "" for a file on a server
	// Bytes is the size of a file without a Path. State is the server's ETag or modification time, or the commit; ""
	// for local files.
	Bytes int64
	State string
	// SHA256 and Bytes are sum and number of the bytes that the run has read into memory; if SHA256 is "", the file is
	// hashed.
	SHA256 string
}

// Held returns the input for a file at path whose content was read into memory.
func Held(role, path string, data []byte) Input {
	sum := sha256.Sum256(data)
	return Input{Role: role, Name: filepath.Base(path), Path: path, Bytes: int64(len(data)),
		SHA256: hex.EncodeToString(sum[:])}
}

// Paths returns the paths of inputs.
func Paths(list []Input) (paths []string) {
	for _, in := range list {
		paths = append(paths, in.Path)
	}
	return paths
}

// OfFile returns name, size and sum of the regular file at path; the name is the last part of the path. A file that
// changes meanwhile is an error of kind fault.Broken.
func OfFile(ctx context.Context, path string) (File, error) {
	found, _, err := OfModel(ctx, path, nil)
	return found, err
}

// OfReader returns the number of bytes of r, and their SHA-256 sum.
func OfReader(ctx context.Context, r io.Reader) (n int64, sum string, err error) {
	whole := sha256.New()
	n, err = feedAll(ctx, r, whole, nil)
	return n, hex.EncodeToString(whole.Sum(nil)), err
}

// Tensor is the sum of a tensor's bytes as a file has them.
type Tensor struct {
	*gguf.Tensor
	Start  int64 // of the data in the file
	SHA256 string
}

// pieces is the number of pieces of a file in memory at once.
const pieces = 4

// piece is a part of a file that two goroutines hash: the sum of the whole file, and those of its tensors.
type piece struct {
	off  int64
	data []byte
	left sync.WaitGroup
}

// free has pieces for the next file: most files of a checkpoint are much smaller than a piece.
var free = sync.Pool{New: func() any { return &piece{data: make([]byte, buffer)} }}

// OfModel is OfFile, and also returns the sums of the tensors of f, the GGUF file at path, or nil for no sums. The
// file is read once; one goroutine hashes the file, another the tensors.
func OfModel(ctx context.Context, path string, f *gguf.File) (File, []Tensor, error) {
	in, info, err := regular(path)
	if err != nil {
		return File{}, nil, err
	}
	defer in.Close()
	was := stamp.Of(path, info)
	var tensors []Tensor
	if f != nil {
		for i := range f.Tensors {
			t := &f.Tensors[i]
			tensors = append(tensors, Tensor{Tensor: t, Start: f.DataStart + t.Offset})
		}
	}
	whole := sha256.New()
	n, err := feedAll(ctx, in, whole, tensors)
	if err != nil {
		return File{}, nil, err
	}
	if n != info.Size() {
		return File{}, nil, fmt.Errorf("%s: %w: %d bytes, want %d", path, stamp.ErrChanged, n, info.Size())
	}
	if err := was.Check(); err != nil {
		return File{}, nil, err
	}
	return File{Name: filepath.Base(path), Bytes: n, SHA256: hex.EncodeToString(whole.Sum(nil))}, tensors, nil
}

// regular opens a regular file: opening a pipe would wait.
func regular(path string) (*disk.File, fs.FileInfo, error) {
	info, err := disk.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Errorf(fault.Usage, "%s: want a file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	in, err := disk.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err = in.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fault.Errorf(fault.Usage, "%s: want a file", path)
	}
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, info, nil
}

// feedAll hashes all bytes of r, sets the sums of tensors, and returns the number of bytes.
func feedAll(ctx context.Context, r io.Reader, whole hash.Hash, tensors []Tensor) (n int64, err error) {
	toWhole, toTensors := make(chan *piece, pieces), make(chan *piece, pieces)
	var done sync.WaitGroup
	done.Go(func() {
		for p := range toWhole {
			whole.Write(p.data) // a hash never fails
			p.left.Done()
		}
	})
	done.Go(func() {
		s := newSums(tensors)
		for p := range toTensors {
			s.write(p.data, p.off)
			p.left.Done()
		}
	})
	var used []*piece
	for err = ctx.Err(); err == nil; err = cmp.Or(err, ctx.Err()) {
		var p *piece
		if len(used) < pieces {
			p = free.Get().(*piece)
		} else { // wait for the oldest
			p, used = used[0], used[1:]
			p.left.Wait()
		}
		var got int
		got, err = io.ReadFull(r, p.data[:buffer])
		p.data, p.off = p.data[:got], n
		n += int64(got)
		p.left.Add(2)
		used = append(used, p)
		toWhole <- p
		toTensors <- p
	}
	close(toWhole)
	close(toTensors)
	done.Wait()
	for _, p := range used {
		free.Put(p)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// sums computes the sums of tensors while the bytes of a file pass in order. Tensors do not overlap.
type sums struct {
	tensors []Tensor
	order   []int // tensors that are not finished, by position in the file
	hash    hash.Hash
}

func newSums(tensors []Tensor) *sums {
	s := &sums{tensors: tensors, hash: sha256.New()}
	for i := range tensors {
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		switch x, y := tensors[a].Start, tensors[b].Start; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	s.settle(0)
	return s
}

// write hashes the bytes at off, the end of the bytes before.
func (s *sums) write(data []byte, off int64) {
	end := off + int64(len(data))
	for len(s.order) > 0 {
		t := &s.tensors[s.order[0]]
		from, to := max(t.Start, off), min(t.Start+t.Bytes(), end)
		if from >= to {
			return
		}
		s.hash.Write(data[from-off : to-off])
		s.settle(to)
		if to == end {
			return
		}
	}
}

// settle sets the sums of the tensors that end at or before end.
func (s *sums) settle(end int64) {
	for len(s.order) > 0 {
		t := &s.tensors[s.order[0]]
		if t.Start+t.Bytes() > end && t.Bytes() > 0 {
			return
		}
		t.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
		s.hash.Reset()
		s.order = s.order[1:]
	}
}
