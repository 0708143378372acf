package writer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
)

// A write in parts without a shared disk (Journal.Store): each file becomes an object by one multipart upload, to
// which all parts send pieces. A piece is a range of bytes of the file, of the same length for all but the last one.
// Its length, and the part that makes it, follow from the layout alone:
//
//	tensors of the file   |  a           |  b    |  c                     |
//	shares of rows        |  part 1            |  part 2                  |      as in any write in parts
//	pieces                |  0     |  1     |  2     |  3     |  4   |
//	parts of the pieces   |  1     |  1     |  1     |  2     |  2   |           that of the row of the first byte
//
// A part makes all rows of its pieces, so a row with bytes in pieces of two parts is made twice. Nothing goes
// through the disk: a piece is in memory until it is sent.
//
// Next to the first file, which is the one by which readers open the first output, are small objects:
//
//	KEY.partial/run           the facts of the run, the pieces' lengths, the IDs of the uploads
//	KEY.partial/K-of-N.G      claim G of part K: who makes it, and which pieces the store has confirmed
//	KEY.partial/K-of-N.done   the sums of all pieces of part K
//
// Each is created on the condition that there is none of that name, the only condition that the protocol needs. A
// lost answer looks like a lost race: the object is read then, and names its maker.
//
//   - run: a process that finds none begins the uploads and creates it. If another one was faster, the process
//     aborts its own uploads and takes those of the object. The maker creates it once more: a store that permits
//     that ignores conditions, and is refused.
//   - Claims: the first process of a part creates claim 1. Only the process that has created a claim writes to it, a
//     few times in the time of a lease. Another process of the same part waits until the claim has not been written
//     to for that long, by the store's clock or its own, and creates the next claim: one of several succeeds. A
//     process whose claim has a successor stops. A process that ends by itself releases its claim, and nobody waits.
//   - If a process stops late, two processes send the same piece for a while. That does no harm: the bytes of a
//     piece are a function of the layout, and the store takes one piece for the other.
//   - done: one process of a part creates it. A second one compares its own sums.
//   - A process that continues a part asks the store for the pieces that it has. A piece with the tag and the sums
//     that the claim before has confirmed is not made again. Any other piece is made again, and sent unless the
//     store's sum is its own.
//   - Finish compares the store's list of pieces with the sums of all parts, then asks for the objects, on the
//     condition that there are none (with Options.Force: that they have not changed), the first file last. It
//     removes the small objects, run last.
//   - An object has the mark of its run, a hash of the facts, among its metadata. So a part or a Finish that comes
//     late finds that the work is done.
//
// Parts could make objects of their own, of which Finish would make one by copies in the store (UploadPartCopy). A
// store that knows these copies has uploads with IDs, which any process may send to, so that this would be of use
// nowhere.

// Store is a store of objects. Paths are those of files of the write, whose objects the store knows; names are a
// path and more. Its methods retry what may succeed later, and may be called by many goroutines at once.
type Store interface {
	// Name returns the name of an object for messages.
	Name(path string) string
	// Mark returns the mark of the object of a file; there is false if there is no object.
	Mark(ctx context.Context, path string) (mark string, there bool, err error)

	// Create creates a small object, unless one of that name exists: then made is false. After a lost answer, made may
	// be false for an object that this call has made. A store that does not know conditions gives an error of kind
	// fault.Unsupported.
	Create(ctx context.Context, name string, data []byte) (made bool, err error)
	// Put creates or replaces a small object.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns a small object, and how long ago it was written by the clock of the store, below 0 if that is not
	// known. The error about one that does not exist is fs.ErrNotExist.
	Get(ctx context.Context, name string) (data []byte, age time.Duration, err error)
	// List returns the ends of all names that begin with prefix, at most most of them.
	List(ctx context.Context, prefix string, most int) ([]string, error)
	// Remove removes an object, if it exists.
	Remove(ctx context.Context, name string) error

	// Begin begins the upload of a file, and returns its ID.
	Begin(ctx context.Context, path, mark string) (id string, err error)
	// Abort ends an upload, if it exists. The store drops its pieces.
	Abort(ctx context.Context, path, id string) error
	// Pieces returns the pieces [from, to) of an upload that the store has. The error about an upload that does not
	// exist is fs.ErrNotExist.
	Pieces(ctx context.Context, path, id string, from, to int) ([]Piece, error)
	// Send sends piece n, and returns what the store has of it, which is compared with sums of data.
	Send(ctx context.Context, path, id string, n int, data []byte) (Piece, error)
	// Same reports whether a piece of Pieces has the content data, and returns it as Send does.
	Same(p Piece, data []byte) (Piece, bool)
	// Complete makes the object of a file of that size from all of its pieces, unless an object exists, or with force
	// in its place.
	Complete(ctx context.Context, path, id string, size int64, pieces []Piece, force bool) error
	// Sweep ends uploads of a file, whose object exists, that processes have left which were killed before anything
	// else named them. Those that began after this process stay, and so do all of a store that does not list them.
	Sweep(ctx context.Context, path string) error
}

// Piece is a piece of an upload as the store has it.
type Piece struct {
	Number int    `json:"n"` // from 0
	Bytes  int64  `json:"bytes"`
	Tag    string `json:"tag"`              // its ETag
	CRC32C string `json:"crc32c,omitempty"` // in base64, of stores that keep it
	MD5    string `json:"md5,omitempty"`    // in hexadecimal, for other stores
}

const (
	// leastPiece and mostPieces are limits of S3: all pieces but the last have 5 MiB or more, and there are at most
	// 10,000. Source: documentation of Amazon S3, "Amazon S3 multipart upload limits".
	leastPiece = 5 << 20
	mostPieces = 10_000
	// usualPiece is the length of the pieces of files that permit it: as long as possible with little lost when a
	// process is killed.
	usualPiece = 16 << 20
	// sharePieces is the number of pieces that a part has where pieces would be longer otherwise.
	sharePieces = 8
	// maxClaims bounds the number of claims to one part.
	maxClaims = 100_000
	// sentAtOnce is the number of pieces that are sent at once, unless they are long: sentBytes bounds their bytes.
	sentAtOnce = 4
	sentBytes  = 128 << 20
)

// The lease of a claim, and how often its owner writes to it. Tests change them.
var (
	lease = 20 * time.Second
	beat  = 5 * time.Second
	least = int64(leastPiece)
)

// PieceBytes returns the length of the pieces of a file of size bytes that n parts make.
func PieceBytes(size int64, n int) int64 {
	p := min(size/int64(n)/sharePieces, usualPiece)
	p = max(p, (size+mostPieces-1)/mostPieces)
	unit := min(least, 1<<20)
	return max(least, (p+unit-1)/unit*unit)
}

// storedSuffix follows the path of the first file in the names of small objects.
const storedSuffix = Suffix + "/"

const (
	runObject  = "run"
	doneSuffix = ".done"
)

// claimName matches names of claims and of the sums of parts.
var claimName = regexp.MustCompile(`^([0-9]{1,6})-of-([0-9]{1,6})\.([0-9]{1,6}|done)$`)

// StoredRun is the path of the object with the facts of a run whose first file is at path, and reports whether name
// is that of a small object of a run.
func StoredRun(name string) (path, run string, ok bool) {
	i := strings.LastIndex(name, storedSuffix)
	if i <= 0 {
		return "", "", false
	}
	rest := name[i+len(storedSuffix):]
	return name[:i], name[:i] + storedSuffix + runObject, rest == runObject || claimName.MatchString(rest)
}

// StoredUploads returns the IDs of the uploads of a run, from the object that StoredRun names.
func StoredUploads(name string, data []byte) (ids []string, err error) {
	var run storedRun
	if err := parseSmall(name, data, &run); err != nil {
		return nil, err
	}
	for _, f := range run.Files {
		ids = append(ids, f.ID)
	}
	return ids, nil
}

// storedRun is the content of the object run.
type storedRun struct {
	Head  string       `json:"head"` // of a journal
	Parts int          `json:"parts"`
	Files []storedFile `json:"files"` // in the order of the write
}

type storedFile struct {
	Name  string `json:"name"` // without folders
	Bytes int64  `json:"bytes"`
	Piece int64  `json:"piece_bytes"`
	ID    string `json:"upload_id"`
}

// claim is the content of a claim, or of the sums of a part.
type claim struct {
	Owner    string       `json:"owner"` // random
	Beat     int          `json:"beat"`  // how often it was written
	Released bool         `json:"released,omitempty"`
	Uploads  []string     `json:"uploads"` // IDs
	Files    [][]madeData `json:"files"`   // the pieces that are made, of each file
}

// madeData is a piece with the counts of the rows that begin in it.
type madeData struct {
	Piece
	Counts []pieceCount `json:"counts,omitempty"`
}

type pieceCount struct {
	Tensor    int   `json:"tensor"` // of the file
	Overflows int64 `json:"overflows,omitempty"`
	Displaced int64 `json:"displaced,omitempty"`
}

// smallMagic begins small objects: a line with a version, one with the SHA-256 of what follows, JSON.
const smallMagic = "ggforge objects 1\n"

// smallObject returns v as a small object.
func smallObject(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // never: strings and numbers
	}
	sum := sha256.Sum256(text)
	return fmt.Appendf(nil, "%s%x\n%s", smallMagic, sum, text)
}

// parseSmall reads a small object into v.
func parseSmall(name string, data []byte, v any) error {
	rest, ok := bytes.CutPrefix(data, []byte(smallMagic))
	sum, text, two := bytes.Cut(rest, []byte("\n"))
	if !ok || !two {
		return fault.Errorf(fault.Broken, "%s: is not of this version of ggforge: begins with %.40q, want %q", name, data,
			smallMagic)
	}
	if own := sha256.Sum256(text); hex.EncodeToString(own[:]) != string(sum) {
		return fault.Errorf(fault.Broken, "%s: its SHA-256 is %x, and it says %.64q", name, own, sum)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fault.Errorf(fault.Broken, "%s: %w", name, err)
	}
	return nil
}

// objects is a write whose files are objects.
type objects struct {
	store    Store
	opt      Options
	force    bool
	files    []*object
	lead     string
	facts    []Fact // without the number of parts
	mark     string
	run      storedRun
	ownClaim string // the end of the name of the claim that this process has created
	pool     *pool
}

// object is a file that becomes an object.
type object struct {
	layout
	piece  int64
	id     string
	result *Result
	sorted []*placed // by offset
	owners []int     // of each piece: its part
	made   []*madeData
	have   []*Piece // that the store has, and no claim has confirmed
	over   bool     // the object is there
	sink   *sink
}

// writeObjects is write for Journal.Store.
func writeObjects(ctx context.Context, sets []set, opt Options) ([]*Result, error) {
	j := *opt.Journal
	opt.Journal = &j
	o := &objects{store: j.Store, opt: opt, force: opt.Force}
	if opt.Verify {
		return nil, fault.Errorf(fault.Usage,
			"objects that parts make are not read back: the store compares every piece with its SHA-256")
	}
	results, tensors := make([]*Result, len(sets)), []*placed{}
	all, order := set{}, []*object{}
	for i, s := range sets {
		results[i] = &Result{}
		for at, l := range s.files {
			if l.body != nil || l.size == 0 {
				return nil, fault.Errorf(fault.Unsupported, "%s: is not a file of tensors", l.path)
			}
			one := &object{layout: l, result: results[i]}
			results[i].Files = append(results[i].Files, l.path)
			results[i].Bytes += l.size
			for k, t := range l.tensors {
				t.result, t.fileNo, t.tensorNo = results[i], len(o.files), k
			}
			tensors = append(tensors, l.tensors...)
			o.files = append(o.files, one)
			if i == 0 && at == s.leader {
				o.lead = l.path
			}
		}
		all.files = append(all.files, s.files...)
		order = append(order, o.files[len(o.files)-len(s.files)+s.leader])
	}
	var err error
	if o.facts, err = j.facts(opt.Inputs); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(all.head(o.facts))
	o.mark = hex.EncodeToString(sum[:])
	o.pool = &pool{opt: opt, jobs: jobsOf(tensors)}
	for _, f := range o.files {
		o.pool.files = append(o.pool.files, o.store.Name(f.path))
	}
	for _, job := range o.pool.jobs {
		job.findSame()
	}
	head := func() string { return string(all.head(withParts(o.facts, j.Parts))) }
	if j.Finish {
		err = o.finish(ctx, head, order)
	} else {
		err = o.part(ctx, head())
	}
	if err != nil && !j.Finish && o.run.Head != "" {
		err = MarkResumable(err)
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// name returns the name of a small object.
func (o *objects) name(rest string) string { return o.lead + storedSuffix + rest }

// says returns the name of a small object for messages.
func (o *objects) says(rest string) string { return o.store.Name(o.name(rest)) }

// get reads a small object into v; found is false if it does not exist.
func (o *objects) get(ctx context.Context, rest string, v any) (data []byte, age time.Duration, found bool, err error) {
	data, age, err = o.store.Get(ctx, o.name(rest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	return data, age, true, parseSmall(o.says(rest), data, v)
}

// ready looks for the objects of the files: over is set for those of this run, and done if all of them are. Any other
// object is an error unless it may be replaced.
func (o *objects) ready(ctx context.Context) (done bool, err error) {
	done = true
	for _, f := range o.files {
		mark, there, err := o.store.Mark(ctx, f.path)
		if err != nil {
			return false, err
		}
		f.over = there && mark == o.mark
		if there && !f.over && !o.force {
			return false, fault.Permits("Force",
				fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "%s: exists, and belongs to another run", o.store.Name(f.path)))
		}
		done = done && f.over
	}
	return done, nil
}

// readRun reads the object run, if it exists, and sets the lengths of pieces and the IDs of uploads.
func (o *objects) readRun(ctx context.Context, head func() string) (found bool, err error) {
	_, _, found, err = o.get(ctx, runObject, &o.run)
	if !found || err != nil {
		return found, err
	}
	facts := []Fact{{partsFact, strconv.Itoa(o.run.Parts)}}
	if err := o.opt.Journal.countParts(o.says(runObject), facts); err != nil {
		return true, err
	}
	if err := sameRun(o.says(runObject), []byte(o.run.Head), []byte(head())); err != nil {
		return true, err
	}
	if len(o.run.Files) != len(o.files) {
		return true, fault.Errorf(fault.Broken, "%s: has %d files, want %d", o.says(runObject), len(o.run.Files),
			len(o.files))
	}
	for i, f := range o.files {
		has := o.run.Files[i]
		want := PieceBytes(f.size, o.run.Parts)
		if has.ID == "" || has.Bytes != f.size || has.Piece != want {
			return true, fault.Errorf(fault.Broken, "%s: %q has %d bytes in pieces of %d, upload %.40q: want %d, %d and an ID",
				o.says(runObject), has.Name, has.Bytes, has.Piece, has.ID, f.size, want)
		}
		f.id = has.ID
	}
	o.divide()
	return true, nil
}

// divide cuts the files into pieces, and finds the part of each.
func (o *objects) divide() {
	n := o.run.Parts
	ends := o.pool.ends(n)
	jobNo := map[*placed]int{}
	for i, j := range o.pool.jobs {
		for _, t := range j.outputs {
			jobNo[t] = i
		}
	}
	for _, f := range o.files {
		f.piece = PieceBytes(f.size, n)
		f.sorted = slices.SortedFunc(slices.Values(f.tensors), func(x, y *placed) int { return cmp.Compare(x.off, y.off) })
		f.made = make([]*madeData, (f.size+f.piece-1)/f.piece)
		f.have = make([]*Piece, len(f.made))
		f.owners = make([]int, len(f.made))
		at := 0 // of sorted: the tensor of the first byte, or the one after it
		for p := range f.owners {
			first := int64(p) * f.piece
			for at < len(f.sorted) && first >= f.sorted[at].off+f.sorted[at].bytes() {
				at++
			}
			switch {
			case at == len(f.sorted):
				f.owners[p] = n
				if len(f.sorted) == 0 {
					f.owners[p] = 1
				}
				continue
			case p == 0 || first < f.sorted[0].off: // of the header
				f.owners[p] = 1
				continue
			}
			t := f.sorted[at]
			row := max(0, first-t.off) / t.rowBytes()
			i := jobNo[t]
			f.owners[p] = firstPart(n, func(k int) bool { return row < ends(k, i) })
		}
	}
}

// firstPart returns the first of n parts, from 1 on, for which is is true, the last one if there is none; is is true
// for all after the first one.
func firstPart(n int, is func(k int) bool) int {
	lo, hi := 1, n
	for lo < hi {
		if mid := (lo + hi) / 2; is(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// rowBytes returns the length of a row in the file.
func (t *placed) rowBytes() int64 { return t.Type.RowBytes(gguf.RowLen(t.Source.NE())) }

// bytes returns the length of the tensor in the file.
func (t *placed) bytes() int64 { return gguf.DataBytes(t.Type, t.Source.NE()) }

// ids returns the IDs of all uploads.
func (o *objects) ids() (list []string) {
	for _, f := range o.files {
		list = append(list, f.id)
	}
	return list
}

// fits reports whether a claim is one of these uploads, with pieces that the layout has.
func (o *objects) fits(c *claim, part int) bool {
	if !slices.Equal(c.Uploads, o.ids()) || len(c.Files) != len(o.files) {
		return false
	}
	for i, list := range c.Files {
		f := o.files[i]
		for _, m := range list {
			if m.Number < 0 || m.Number >= len(f.owners) || f.owners[m.Number] != part || m.Bytes != f.length(m.Number) {
				return false
			}
			for _, n := range m.Counts {
				if n.Tensor < 0 || n.Tensor >= len(f.tensors) || n.Overflows < 0 || n.Displaced < 0 {
					return false
				}
			}
		}
	}
	return true
}

// length returns the length of piece n.
func (f *object) length(n int) int64 { return min(f.piece, f.size-int64(n)*f.piece) }

// is reports whether the store's piece is the one that a part has recorded.
func (p Piece) is(other Piece) bool {
	return p.Number == other.Number && p.Bytes == other.Bytes && p.Tag == other.Tag &&
		(p.CRC32C == "" || other.CRC32C == "" || p.CRC32C == other.CRC32C)
}

// count adds the counts of pieces to the results.
func (o *objects) count() {
	for _, f := range o.files {
		for _, m := range f.made {
			if m == nil {
				continue
			}
			for _, n := range m.Counts {
				f.tensors[n.Tensor].count(tally{n.Overflows, n.Displaced})
			}
		}
		for _, t := range f.tensors {
			f.result.Overflows = appendCount(f.result.Overflows, t, &t.overflows)
			f.result.Displaced = appendCount(f.result.Displaced, t, &t.displaced)
		}
	}
}

// newOwner returns a name for a process that no other one has.
func newOwner() string { return rand.Text() }
