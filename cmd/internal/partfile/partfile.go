// Package partfile keeps the results of one part of a job, computed by one process, in a file next to
// the job's output, OUT.part-K-of-N, until --finish makes the output from all parts.
//
// A file begins with a description of its job, so that parts of different jobs are not mixed, and
// ends with a checksum:
//
//	0     8   "ggparts1"
//	8     4   n, u32 little-endian: bytes of the head, at most 16 MiB
//	12    n   the head, JSON:
//	          kind      content and format of the sections
//	          k, n      the part
//	          from, to  its share of the job's items, [from, to)
//	          items     number of items of the job
//	          facts     name and value of all that the result depends on
//	          sections  size of each in bytes
//	12+n      the sections, one after the other
//	end-32 32 SHA-256 of all bytes before
package partfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/part"
	"ggforge/internal/io/statefile"
	"ggforge/writer"
)

const (
	magic   = "ggparts1"
	before  = len(magic) + 4
	maxHead = 16 << 20
)

// Fact is something that the result of a job depends on.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Job is a job that is divided into parts, one for each process.
type Job struct {
	Out   string // parts are in files next to it, or they are objects: s3://BUCKET/KEY
	Kind  string
	Items int // number of its items, which are chunks or groups of them
	Facts []Fact

	objects *objects // for parts that are objects, after the first use
}

// head is the header of a part file.
type head struct {
	Kind     string  `json:"kind"`
	K        int     `json:"k"`
	N        int     `json:"n"`
	From     int     `json:"from"`
	To       int     `json:"to"`
	Items    int     `json:"items"`
	Facts    []Fact  `json:"facts"`
	Sections []int64 `json:"sections"`
}

// Path returns the file of a part, or the name of its object.
func (j *Job) Path(p part.Part) string { return j.Out + infix + p.String() }

// file returns the file of a part on this machine.
func (j *Job) file(p part.Part) string {
	if j.objects != nil {
		return filepath.Join(j.objects.folder, path.Base(j.Path(p)))
	}
	return j.Path(p)
}

const infix = ".part-"

// head returns the header of a part.
func (j *Job) head(p part.Part) head {
	from, to := p.Range(j.Items)
	return head{j.Kind, p.K, p.N, from, to, j.Items, j.Facts, nil}
}

// Section is a section of a file.
type Section struct {
	Size int64
	From io.WriterTo
}

// Bytes returns a section with the bytes b.
func Bytes(b []byte) Section { return Section{int64(len(b)), bytes.NewReader(b)} }

// file is a part file that is being written.
type file struct {
	head     []byte
	sections []Section
}

func (f *file) size() int64 {
	n := int64(before + len(f.head) + sha256.Size)
	for _, s := range f.sections {
		n += s.Size
	}
	return n
}

// WriteTo implements io.WriterTo.
func (f *file) WriteTo(w io.Writer) (n int64, err error) {
	h := sha256.New()
	both := io.MultiWriter(w, h)
	for _, b := range [][]byte{[]byte(magic), binary.LittleEndian.AppendUint32(nil, uint32(len(f.head))), f.head} {
		k, err := both.Write(b)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	for i, s := range f.sections {
		k, err := s.From.WriteTo(both)
		if n += k; err == nil && k != s.Size {
			err = fmt.Errorf("section %d has %d bytes, want %d", i, k, s.Size)
		}
		if err != nil {
			return n, err
		}
	}
	k, err := w.Write(h.Sum(nil))
	return n + int64(k), err
}

// Write writes the file of a part and returns its size. It replaces an existing one; call Check
// before to know whether that is permitted.
func (j *Job) Write(ctx context.Context, p part.Part, sections []Section, opt writer.Options) (int64, error) {
	h := j.head(p)
	h.Sections = make([]int64, len(sections))
	for i, s := range sections {
		h.Sections[i] = s.Size
	}
	text, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	if len(text) > maxHead {
		return 0, fault.Errorf(fault.Unsupported, "%s: a head of %d bytes, want at most %d", j.Path(p),
			len(text), maxHead)
	}
	if err := j.open(); err != nil {
		return 0, err
	}
	f := &file{text, sections}
	opt.Force = true
	check := func(path string) error {
		f, err := Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.check()
	}
	if err := writer.WriteFrom(ctx, j.file(p), f.size(), f, check, opt); err != nil {
		return 0, err
	}
	return f.size(), j.send(ctx, p)
}

// Check reports whether the file of a part exists already and is undamaged. A damaged one may be replaced. A file of
// that name that is not a part file, or that belongs to another job, is an error of kind fault.Refused unless force
// is true.
func (j *Job) Check(ctx context.Context, p part.Part, force bool) (done bool, err error) {
	if err := j.open(); err != nil {
		return false, err
	}
	err = j.fetched(ctx, p)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errDamaged), force && fault.Has(err):
		return false, nil
	case fault.Has(err):
		return false, fault.Errorf(fault.Refused, "%w; --force replaces it", err)
	}
	return false, err
}

// Size returns the size of the file of a part that Check has found.
func (j *Job) Size(p part.Part) (int64, error) {
	info, err := os.Stat(j.file(p))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// File is the file of a part.
type File struct {
	head  head
	first int // byte of the first section
	file  *mmap.File
}

// errDamaged is the cause of errors about damaged part files.
var errDamaged = fault.Errorf(fault.Broken, "damaged")

// damaged returns an error about a damaged part file.
func damaged(path, format string, args ...any) error {
	return fault.Errorf(errDamaged, "%s: "+format, append([]any{path}, args...)...)
}

// Open opens the file of a part. An error of kind fault.Broken names the defect. The
// checksum is not verified.
func Open(path string) (*File, error) {
	m, err := statefile.Map(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: m}
	err = mmap.Guard(path, func() (err error) {
		f.head, f.first, err = parse(path, m.Bytes())
		return err
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	return f, nil
}

// parse reads the head of a file, and returns where sections begin.
func parse(path string, data []byte) (h head, first int, err error) {
	size := int64(len(data))
	n, err := headBytes(path, data[:min(before, len(data))], size)
	if err != nil {
		return h, 0, err
	}
	first = before + int(n)
	h, err = parseHead(path, data[before:first], n, size)
	return h, first, err
}

// headBytes returns the length of the head of a file of size bytes, from its first bytes.
func headBytes(path string, first []byte, size int64) (n int64, err error) {
	if len(first) < len(magic) || string(first[:len(magic)]) != magic {
		return 0, fault.Errorf(fault.Broken, "%s: is no part of a job: want %q first", path, magic)
	}
	if len(first) >= before {
		n = int64(binary.LittleEndian.Uint32(first[len(magic):]))
	}
	if size < int64(before)+n+sha256.Size || n > maxHead {
		return 0, damaged(path, "has %d bytes and a head of %d: want a head of at most %d, within the file", size, n,
			maxHead)
	}
	return n, nil
}

// parseHead parses the head of a file of size bytes, which has n bytes.
func parseHead(path string, text []byte, n, size int64) (h head, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil || d.InputOffset() != n {
		return h, damaged(path, "its head ends at byte %d of %d: %v", d.InputOffset(), n, err)
	}
	if h.K < 1 || h.K > h.N || h.N > part.Most || h.From < 0 || h.From > h.To || h.To > h.Items {
		return h, damaged(path, "is part %d of %d, with items %d to %d of %d", h.K, h.N, h.From, h.To, h.Items)
	}
	rest := size - int64(before) - n - sha256.Size
	for i, bytes := range h.Sections {
		if bytes < 0 || bytes > rest {
			return h, damaged(path, "section %d has %d bytes, and %d are left", i, bytes, rest)
		}
		rest -= bytes
	}
	if rest > 0 {
		return h, damaged(path, "%d bytes are in no section", rest)
	}
	return h, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Share returns the range of the job's items in the file.
func (f *File) Share() (from, to int) { return f.head.From, f.head.To }

// Of returns the output that a part file belongs to, by its name, and whether its content begins like one.
func Of(path string) (output string, ours bool) {
	name := filepath.Base(path)
	i := strings.LastIndex(name, infix)
	if i <= 0 {
		return "", false
	}
	if _, ok := parsePart(name[i+len(infix):]); !ok {
		return "", false
	}
	f, err := Open(path)
	if err == nil {
		f.Close()
	}
	return name[:i], err == nil || errors.Is(err, errDamaged)
}

// check reads the whole file and compares it with its checksum.
func (f *File) check() error {
	return mmap.Guard(f.file.Path(), func() error {
		f.file.Sequential()
		data := f.file.Bytes()
		end := len(data) - sha256.Size
		if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
			return damaged(f.file.Path(), "its SHA-256 is %x, and it ends with %x", sum, data[end:])
		}
		return nil
	})
}

// Sections calls use with the sections, which are valid until it returns.
func (f *File) Sections(use func(sections [][]byte) error) error {
	return mmap.Guard(f.file.Path(), func() error {
		list, at := make([][]byte, len(f.head.Sections)), f.first
		for i, size := range f.head.Sections {
			list[i] = f.file.Bytes()[at:][:size:size]
			at += int(size)
		}
		if err := use(list); err != nil {
			return fmt.Errorf("%s: %w", f.file.Path(), err)
		}
		return nil
	})
}

// fits returns an error of kind fault.Refused unless a file with that head is the part p of the job.
func (j *Job) fits(path string, h *head, p part.Part) error {
	refuse := func(format string, args ...any) error {
		return fault.Errorf(fault.Refused, "%s: "+format, append([]any{path}, args...)...)
	}
	want := j.head(p)
	if h.Kind != want.Kind {
		return refuse("belongs to another job: %q, want %q", h.Kind, want.Kind)
	}
	for i := range max(len(want.Facts), len(h.Facts)) {
		switch {
		case i >= len(h.Facts):
			return refuse("has no %s, want %q", want.Facts[i].Name, want.Facts[i].Value)
		case i >= len(want.Facts) || h.Facts[i].Name != want.Facts[i].Name:
			return refuse("belongs to another job: its %s is %q", h.Facts[i].Name, h.Facts[i].Value)
		case h.Facts[i].Value != want.Facts[i].Value:
			return refuse("belongs to another job: its %s is %q, want %q", want.Facts[i].Name, h.Facts[i].Value,
				want.Facts[i].Value)
		}
	}
	if h.K != want.K || h.N != want.N || h.From != want.From || h.To != want.To ||
		h.Items != want.Items {
		return refuse("is part %d of %d, with items %d to %d of %d: want part %d of %d, with %d to %d of %d",
			h.K, h.N, h.From, h.To, h.Items, want.K, want.N, want.From, want.To, want.Items)
	}
	return nil
}

// Gather calls use with the sections of all parts of a job, in the order of its items, and returns how many parts
// there are. It checks all parts first: one error names all parts that are missing, damaged or belong to other jobs.
// It has kind fault.Refused if some belong to other jobs, otherwise kind fault.Incomplete if some are missing.
func (j *Job) Gather(ctx context.Context, use func(sections [][]byte) error) (parts int, err error) {
	if err := j.open(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	n, err := j.parts(ctx)
	if err != nil {
		return 0, err
	}
	var wrong []string
	kind := fault.Broken
	for k := 1; k <= n; k++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p := part.Part{K: k, N: n}
		err := j.fetched(ctx, p)
		if err == nil {
			continue
		}
		if !fault.Has(err) {
			return 0, err
		}
		switch {
		case errors.Is(err, fault.Refused):
			kind = fault.Refused
		case errors.Is(err, fault.Incomplete) && kind == fault.Broken:
			kind = fault.Incomplete
		}
		wrong = append(wrong, fmt.Sprintf("%d/%d (%v)", k, n, err))
	}
	if wrong != nil {
		return 0, fault.Errorf(kind, "%s: %d of %d parts have to be run again: %s", j.Out, len(wrong), n,
			fault.List(wrong))
	}
	for k := 1; k <= n; k++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		f, err := Open(j.file(part.Part{K: k, N: n}))
		if err != nil {
			return 0, err
		}
		err = j.fits(f.file.Path(), &f.head, part.Part{K: k, N: n})
		if err == nil {
			err = f.Sections(use)
		}
		if err == nil {
			err = f.file.Unchanged()
		}
		if err = errors.Join(err, f.Close()); err == nil {
			err = j.sweep(ctx, part.Part{K: k, N: n})
		}
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// fetched is whole for a part that may be an object, which is fetched.
func (j *Job) fetched(ctx context.Context, p part.Part) error {
	if err := j.fetch(ctx, p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return j.whole(p)
}

// whole returns an error unless the file of a part exists, belongs to this job, and is undamaged.
func (j *Job) whole(p part.Part) error {
	f, err := Open(j.file(p))
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.With(fault.Incomplete, fs.ErrNotExist), "%s is missing", j.Path(p))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := j.fits(f.file.Path(), &f.head, p); err != nil {
		return err
	}
	return f.check()
}

// parsePart parses the end of a part file's name.
func parsePart(name string) (p part.Part, ok bool) {
	_, err := fmt.Sscanf(name, "%d-of-%d", &p.K, &p.N)
	return p, err == nil && p.String() == name && p.K >= 1 && p.K <= p.N && p.N <= part.Most
}

// parts returns the number of parts, from the names of their files.
func (j *Job) parts(ctx context.Context) (int, error) {
	base, names, err := j.names(ctx)
	if err != nil {
		return 0, err
	}
	found := map[int]string{}
	for _, full := range names {
		name, ok := strings.CutPrefix(full, base+infix)
		if p, is := parsePart(name); ok && is {
			found[p.N] = full
		}
	}
	least := math.MaxInt
	for n := range found {
		least = min(least, n)
	}
	switch len(found) {
	case 0:
		return 0, fault.Errorf(fault.Incomplete,
			"%s: there are no parts of it: want the files %s%s1-of-N and so on, which --part makes", j.Out, base, infix)
	case 1:
		return least, nil
	}
	names = nil
	for _, name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return 0, fault.Errorf(fault.Refused,
		"%s: there are parts for different N: %s; remove those of the wrong N", j.Out, fault.List(names))
}
