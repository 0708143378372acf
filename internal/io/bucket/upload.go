package bucket

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
	"ggforge/internal/io/stamp"
)

// File is a file of this machine, and the object that it is to become.
type File struct {
	Path string
	To   Name
	// State is the path of the file with the state of its upload; default Path with StateSuffix.
	State string
}

// UploadOptions configures how to upload. The zero value is ready to use.
type UploadOptions struct {
	// Force replaces objects that exist when Upload begins. An object that another upload
	// replaces or makes meanwhile is an error of kind fault.Refused.
	Force bool
	// Same leaves an object that has the content of its file as it is, also with Force.
	Same bool
	// Found, if not nil, is called for a file whose object exists with the same content when Upload begins.
	Found func(File)
	// Fresh: no earlier Upload can have made the objects, so even an object of the same content has another origin.
	Fresh bool
	// Workers is the number of parts that are sent at once; default 4. A part takes a connection's buffer of memory.
	Workers int
	// PartBytes is the size of parts, but for the last one; default 16 MiB. Larger files have
	// larger parts, so that there are at most 10,000.
	PartBytes int64
	// Progress, if not nil, is called with the number of bytes uploaded and the total. Calls come one
	// at a time.
	Progress func(done, total int64)
}

const (
	partBytes = 16 << 20 // servers want 5 MiB, but for the last part
	maxParts  = 10_000   // source: documentation of Amazon S3, "Amazon S3 multipart upload limits"
	maxObject = 48 << 40 // 48.8 TiB, likewise
	// slowest is how long a server may take to make an object of its parts.
	slowest = 10 * time.Minute
)

// StateSuffix ends the name of the file with the state of an upload. It is next to the file that is uploaded, until
// the object is there.
const StateSuffix = ".upload"

// ErrSame is the cause of an error about an object that another upload has made, if it has the content of the file.
var ErrSame = errors.New("it has the same content")

// Upload creates objects from files by multipart uploads, each part with its checksum. Objects appear when all parts
// of all files are complete, that of the first file last. An object that exists already, or that another upload
// creates meanwhile, is an error that is fs.ErrExist, unless its content is the same; incomplete uploads are removed
// from the server then. Parts that an interrupted upload has sent are compared and not sent again: its state is next
// to the file. Only one process at a time may upload a file.
func (c *Client) Upload(ctx context.Context, files []File, opt UploadOptions) (err error) {
	u := &uploader{Client: c, opt: opt}
	var list []*upload
	defer func() {
		for _, one := range list {
			one.file.Close()
		}
	}()
	for _, f := range files {
		one, err := u.open(f)
		if err != nil {
			return err
		}
		list = append(list, one)
		u.total += one.size
	}
	defer func() {
		if u.lost {
			err = errors.Join(err, u.drop(ctx, list))
		}
	}()
	for _, one := range list { // nothing is sent if one of them cannot become an object
		if err := u.vacant(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range list {
		if err := u.begin(ctx, one); err != nil {
			return err
		}
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(opt.Workers, 4))
	for _, one := range list {
		for n := range one.parts {
			if inner.Err() != nil {
				break
			}
			group.Go(func() error { return u.part(inner, one, n) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range list {
		if err := one.stamp.Check(); err != nil {
			return err
		}
	}
	for i := range list {
		if err := u.finish(ctx, list[(i+1)%len(list)]); err != nil { // the first one last
			return err
		}
	}
	for _, one := range list {
		if err := removeState(one); err != nil {
			return err
		}
	}
	return nil
}

// uploader is one call of Upload.
type uploader struct {
	*Client
	opt   UploadOptions
	total int64
	md5   atomic.Bool // the server knows no other checksums of parts
	lost  bool        // another upload was first

	mu   sync.Mutex
	done int64
}

// upload is the upload of one file.
type upload struct {
	File
	file  *os.File
	stamp stamp.Stamp
	size  int64
	piece int64 // bytes of each part but the last one

	id    string
	there map[int]minio.ObjectPart // parts on the server when the run began, by number from 1
	parts []part
	same  bool    // the object is there already
	seen  *object // the object when the run began, nil for none
	blind bool    // we lack the right to look at the object, and replace it
	tag   string  // ETag of the complete object
}

// part is a part of a file, by number from 0.
type part struct {
	crc  uint32
	md5  []byte // if the server knows no other checksums
	sha  []byte
	etag string // when the server has it
}

// open opens a file.
func (u *uploader) open(f File) (*upload, error) {
	if f.To.Key == "" {
		return nil, fault.Errorf(fault.Usage, "%s: want an object: s3://BUCKET/KEY", f.To)
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fault.Errorf(fault.Usage, "%s: not a regular file", f.Path)
	case info.Size() == 0 || info.Size() > maxObject:
		err = fault.Errorf(fault.Unsupported, "%s: %d bytes, want between 1 and %d", f.Path, info.Size(),
			int64(maxObject))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	one := &upload{File: f, file: file, stamp: stamp.Of(f.Path, info), size: info.Size(),
		piece: pieceOf(info.Size(), u.opt.PartBytes)}
	one.parts = make([]part, (one.size+one.piece-1)/one.piece)
	return one, nil
}

// pieceOf returns the size of parts of a file.
func pieceOf(size, want int64) int64 {
	return max(cmp.Or(want, partBytes), (size+maxParts-1)/maxParts)
}

// exists returns the error about an existing object.
func exists(n Name, found *object, same bool) error {
	kind, more := fault.With(fault.Usage, fs.ErrExist), ""
	if same {
		kind, more = fault.With(kind, ErrSame), "; "+ErrSame.Error()
	}
	return fault.Permits("Force", fault.Errorf(kind, "%s: exists: %v%s", n, found, more))
}

// Vacant returns an error that is fs.ErrExist if there is an object of that name.
func (c *Client) Vacant(ctx context.Context, n Name) error {
	switch o, err := c.look(ctx, n); {
	case err != nil:
		return err
	case o != nil:
		return exists(n, o, false)
	}
	return nil
}

// vacant returns an error if there is another object of that name.
func (u *uploader) vacant(ctx context.Context, one *upload) (err error) {
	one.seen, err = u.look(ctx, one.To)
	if u.opt.Force && errors.Is(err, fs.ErrPermission) {
		one.blind = true
		return nil
	}
	if err != nil || one.seen == nil || u.opt.Force && !u.opt.Same {
		return err
	}
	same, err := u.isSame(ctx, one, *one.seen)
	one.same = same && !u.opt.Fresh
	if err == nil && one.same && u.opt.Found != nil {
		u.opt.Found(one.File)
	}
	if err == nil && !one.same && !u.opt.Force {
		u.lost = true
		err = exists(one.To, one.seen, same)
	}
	return err
}

// taken is called when the server has not created the object of an upload because there is one: another upload's,
// which is an error, or that of an earlier request whose answer did not come.
func (u *uploader) taken(ctx context.Context, one *upload) error {
	now, err := u.look(ctx, one.To) // before the parts: an upload is over once its object exists
	if err != nil {
		return err
	}
	over := false
	if err := u.listParts(ctx, one); err != nil {
		if over = errors.Is(err, fs.ErrNotExist); !over || now == nil {
			return err
		}
	}
	same := false
	if now != nil {
		if same, err = u.isSame(ctx, one, *now); err != nil {
			return err
		}
	}
	switch {
	case same && over:
		return nil
	case same && !u.opt.Fresh:
		return u.abort(ctx, one)
	case now == nil && one.seen == nil:
		return errGone
	}
	u.lost = true
	if !u.opt.Force {
		return exists(one.To, now, same)
	}
	return fault.Errorf(fault.Refused, "%s: another upload has changed it since this one began: found %v, want %v",
		one.To, now, one.seen)
}

// errGone is the reason to repeat a request that the server has refused because of an object that no longer exists.
var errGone = errors.New("an object was there, and is not now")

// abort ends the upload of a file, if there is one.
func (u *uploader) abort(ctx context.Context, one *upload) error {
	if one.id == "" {
		s, _ := readState(one, u.Client.opt.Endpoint)
		one.id = s.Upload
	}
	if one.id == "" {
		return nil
	}
	if err := u.Abort(ctx, Incomplete{Name: one.To, ID: one.id}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// drop ends all uploads that are not complete, and forgets them.
func (u *uploader) drop(ctx context.Context, list []*upload) error {
	var errs []error
	for _, one := range list {
		err := u.abort(ctx, one)
		if err == nil {
			err = removeState(one)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// begin finds the upload of an earlier run and its parts on the server, or begins a new one.
func (u *uploader) begin(ctx context.Context, one *upload) error {
	if one.same {
		return nil
	}
	if s, ok := readState(one, u.Client.opt.Endpoint); ok {
		one.id = s.Upload
		err := u.listParts(ctx, one)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// it was aborted, or it has become the object: see finish
		if o, err := u.stat(ctx, one.To); err == nil && o.size == one.size {
			if one.same, err = u.isSame(ctx, one, o); err != nil || one.same {
				return err
			}
		}
	}
	id, err := u.start(ctx, one.To, nil, &u.md5)
	if err != nil {
		return err
	}
	one.id = id
	return writeState(one, u.Client.opt.Endpoint)
}

// start begins an upload to an object with that metadata; old is set for a server that knows no checksums but MD5.
func (c *Client) start(ctx context.Context, to Name, metadata map[string]string, old *atomic.Bool) (id string,
	err error) {
	err = c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		opt := minio.PutObjectOptions{UserMetadata: maps.Clone(metadata)}
		if !old.Load() {
			if opt.UserMetadata == nil {
				opt.UserMetadata = map[string]string{}
			}
			opt.UserMetadata["X-Amz-Checksum-Algorithm"] = "CRC32C"
			opt.UserMetadata["X-Amz-Checksum-Type"] = "FULL_OBJECT"
		}
		var err error
		id, err = c.core.NewMultipartUpload(ctx, to.Bucket, to.Key, opt)
		err = explained(fetch.Quiet(ctx, err), to.String())
		if !old.Load() && (status(err) == http.StatusBadRequest || status(err) == http.StatusNotImplemented) {
			old.Store(true) // an older server
			id, err = c.core.NewMultipartUpload(ctx, to.Bucket, to.Key, minio.PutObjectOptions{UserMetadata: metadata})
			err = explained(fetch.Quiet(ctx, err), to.String())
		}
		return 0, err
	})
	return id, err
}

// status returns the status that a server has answered with, 0 if err is no such error.
func status(err error) int {
	var a *answer
	if errors.As(err, &a) {
		return a.status
	}
	return 0
}

// unknown reports whether a server has answered that it does not know the request.
func unknown(err error) bool {
	var a *answer
	return errors.As(err, &a) && (a.status == http.StatusNotImplemented || a.code == "NotImplemented")
}

// listParts sets there to the parts of an upload that the server has.
func (u *uploader) listParts(ctx context.Context, one *upload) error {
	there, err := u.partsOf(ctx, one.To, one.id)
	if err != nil {
		return err
	}
	one.there = there
	for _, p := range there {
		if p.ChecksumCRC32C == "" {
			u.md5.Store(true)
		}
	}
	return nil
}

// partsOf returns the parts of an upload that the server has: all, since MinIO passes over a marker that is no part.
func (c *Client) partsOf(ctx context.Context, to Name, id string) (there map[int]minio.ObjectPart, err error) {
	err = c.list(ctx, to.String(), func(ctx context.Context) error {
		there = map[int]minio.ObjectPart{}
		for marker := 0; ; {
			ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
			list, err := c.core.ListObjectParts(ctx, to.Bucket, to.Key, id, marker, 1000)
			err = explained(fetch.Quiet(ctx, err), to.String())
			stop()
			if err != nil {
				return err
			}
			for _, p := range list.ObjectParts {
				p.ETag = strings.Trim(p.ETag, `"`)
				there[p.PartNumber] = p
			}
			if !list.IsTruncated {
				return nil
			}
			if list.NextPartNumberMarker <= marker || len(there) > maxParts {
				return fault.Errorf(fault.Broken, "%s: the server's list of parts does not end", to)
			}
			marker = list.NextPartNumberMarker
		}
	})
	return there, err
}

// span returns where a part is in the file.
func (one *upload) span(n int) (off, size int64) {
	off = int64(n) * one.piece
	return off, min(one.piece, one.size-off)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum reads a part for its checksums, those that are not known yet.
func (u *uploader) sum(ctx context.Context, one *upload, n int) error {
	p := &one.parts[n]
	need := u.md5.Load()
	if p.sha != nil && (!need || p.md5 != nil) {
		return nil
	}
	off, size := one.span(n)
	crc, sha, old := crc32.New(castagnoli), sha256.New(), md5.New()
	to := []io.Writer{crc, sha}
	if need {
		to = append(to, old)
	}
	buf := make([]byte, 256<<10)
	in := struct{ io.Reader }{&contextReader{ctx, io.NewSectionReader(one.file, off, size)}}
	if k, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(to...)}, in, buf); err != nil || k != size {
		if err == nil {
			err = fmt.Errorf("%s: %w: it ends after %d bytes, want %d", one.Path, stamp.ErrChanged, off+k, one.size)
		}
		return err
	}
	p.crc, p.sha = crc.Sum32(), sha.Sum(nil)
	if need {
		p.md5 = old.Sum(nil)
	}
	return nil
}

// contextReader is a reader that ends with a context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// crcText returns a checksum as it is in headers.
func crcText(sum uint32) string {
	return base64.StdEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// part sends a part unless it is on the server.
func (u *uploader) part(ctx context.Context, one *upload, n int) error {
	if !one.same {
		if err := u.send(ctx, one, n); err != nil {
			return err
		}
	}
	_, size := one.span(n)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done += size
	if u.opt.Progress != nil {
		u.opt.Progress(u.done, u.total)
	}
	return nil
}

// send sends a part, unless the server has it.
func (u *uploader) send(ctx context.Context, one *upload, n int) error {
	p := &one.parts[n]
	off, size := one.span(n)
	if have, ok := one.there[n+1]; ok && have.Size == size {
		if err := u.sum(ctx, one, n); err != nil {
			return err
		}
		if have.ChecksumCRC32C == crcText(p.crc) || have.ChecksumCRC32C == "" &&
			have.ETag == hex.EncodeToString(p.md5) {
			p.etag = have.ETag
			return nil
		}
	}
	return u.put(ctx, one.To, one.id, n, size, p, &u.md5, func() (io.Reader, error) {
		return io.NewSectionReader(one.file, off, size), u.sum(ctx, one, n)
	})
}

// put sends part n of an upload, from 0 on. body returns its bytes when their sums are in p, with MD5 if old is set:
// for a server that knows no other checksums, which sets it.
func (c *Client) put(ctx context.Context, to Name, id string, n int, size int64, p *part, old *atomic.Bool,
	body func() (io.Reader, error)) error {
	return c.retry(ctx, func() (int, error) {
		in, err := body()
		if err != nil {
			return 0, err
		}
		md5 := old.Load() && p.md5 != nil
		ctx, alive, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		opt := minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(p.sha), DisableContentSha256: true}
		if md5 {
			opt.Md5Base64 = base64.StdEncoding.EncodeToString(p.md5)
		} else {
			opt.CustomHeader = http.Header{"X-Amz-Checksum-Crc32c": {crcText(p.crc)}}
		}
		got, err := c.core.PutObjectPart(ctx, to.Bucket, to.Key, id, n+1, &sentBody{in, alive}, size, opt)
		if err = explained(fetch.Quiet(ctx, err), to.String()); err != nil {
			return 0, fmt.Errorf("part %d: %w", n+1, err)
		}
		switch {
		case got.ChecksumCRC32C == crcText(p.crc), md5 && got.ETag == hex.EncodeToString(p.md5):
			p.etag = got.ETag
			return int(size), nil
		case !md5 && got.ChecksumCRC32C == "":
			old.Store(true) // the server does not know the checksum: once more with MD5, which all know
			return 0, errAgain
		}
		return 0, fmt.Errorf("part %d: %s: the server has stored something else: it says checksum %.40q, tag %.40q",
			n+1, to, got.ChecksumCRC32C, got.ETag)
	})
}

// errAgain is the reason to send a part again at once.
var errAgain = errors.New("the server knows no checksums but MD5, and its tags are none")

// sentBody is the part of a file that is sent.
type sentBody struct {
	io.Reader
	alive func()
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.alive()
	return b.Reader.Read(p)
}

// crcs returns the checksums of all parts as the library wants them.
func (one *upload) crcs() []minio.ObjectPart {
	list := make([]minio.ObjectPart, len(one.parts))
	for n := range one.parts {
		_, size := one.span(n)
		list[n] = minio.ObjectPart{PartNumber: n + 1, Size: size, ETag: one.parts[n].etag,
			ChecksumCRC32C: crcText(one.parts[n].crc)}
	}
	return list
}

// isSame reports whether an object is the file, by the checksums that the server has of it.
func (u *uploader) isSame(ctx context.Context, one *upload, o object) (bool, error) {
	if o.size != one.size {
		return false, nil
	}
	if o.crc32c == "" {
		u.md5.Store(true)
	}
	for n := range one.parts {
		if err := u.sum(ctx, one, n); err != nil {
			return false, err
		}
	}
	return one.fits(o)
}

// fits is isSame when the sums are known.
func (one *upload) fits(o object) (bool, error) {
	if o.crc32c != "" {
		whole, err := minio.ChecksumCRC32C.FullObjectChecksum(one.crcs())
		if err != nil {
			return false, err
		}
		parts, err := minio.ChecksumCRC32C.CompositeChecksum(one.crcs())
		if err != nil {
			return false, err
		}
		return o.crc32c == whole.Encoded() || o.crc32c == fmt.Sprintf("%s-%d", parts.Encoded(), len(one.parts)) ||
			o.crc32c == parts.Encoded(), nil
	}
	var sum hash.Hash = md5.New()
	for n := range one.parts {
		if one.parts[n].md5 == nil {
			return false, nil
		}
		sum.Write(one.parts[n].md5)
	}
	return o.etag == fmt.Sprintf("%x-%d", sum.Sum(nil), len(one.parts)), nil
}

// finish creates the object from its parts, and checks that its content is that of the file.
func (u *uploader) finish(ctx context.Context, one *upload) error {
	if one.same {
		return nil
	}
	if err := u.complete(ctx, one); err != nil {
		return err
	}
	o, err := u.stat(ctx, one.To)
	if err != nil {
		return err
	}
	same := o.size == one.size
	if same && (o.crc32c != "" || u.md5.Load()) { // otherwise the server has checked the content and stores no checksum
		same, err = u.isSame(ctx, one, o)
	}
	if err == nil && !same && one.tag != "" && o.etag != one.tag {
		return fault.Errorf(fault.Refused,
			"%s: is not the file %s any more: another upload has replaced it: found %v, want %d bytes, tag %.40q",
			one.To, one.Path, &o, one.size, one.tag)
	}
	if err == nil && !same {
		err = fault.Errorf(fault.Broken, "%s: is not the file %s: %d bytes (want %d), checksum %.40q, tag %.40q",
			one.To, one.Path, o.size, one.size, o.crc32c, o.etag)
	}
	return err
}

// complete asks the server to create the object from its parts, on the condition that the object has not changed
// since the upload began. A server without conditions creates it in any case: so the object is looked at right
// before.
func (u *uploader) complete(ctx context.Context, one *upload) error {
	parts := make([]minio.CompletePart, len(one.parts))
	for n, p := range one.crcs() {
		parts[n] = minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag}
		if !u.md5.Load() {
			parts[n].ChecksumCRC32C = p.ChecksumCRC32C
		}
	}
	condition, whole := !one.blind, !u.md5.Load()
	return u.retry(ctx, func() (int, error) {
		if !one.blind {
			now, err := u.look(ctx, one.To)
			if err != nil {
				return 0, err
			}
			if !now.is(one.seen) {
				return 0, u.taken(ctx, one)
			}
		}
		opt := minio.PutObjectOptions{}
		switch {
		case !condition:
		case one.seen == nil:
			opt.SetMatchETagExcept("*")
		case one.seen.etag != "":
			opt.SetMatchETag(one.seen.etag)
		}
		if whole {
			sum, err := minio.ChecksumCRC32C.FullObjectChecksum(one.crcs())
			if err != nil {
				return 0, err
			}
			opt.UserMetadata = map[string]string{"X-Amz-Checksum-Crc32c": sum.Encoded(),
				"X-Amz-Checksum-Type": "FULL_OBJECT"}
		}
		ctx, _, stop := fetch.Watch(ctx, slowest)
		defer stop()
		made, err := u.core.CompleteMultipartUpload(ctx, one.To.Bucket, one.To.Key, one.id, parts, opt)
		err = explained(fetch.Quiet(ctx, err), one.To.String())
		switch s := status(err); {
		case err == nil:
			one.tag = made.ETag
		case s == http.StatusPreconditionFailed, s == http.StatusNotFound:
			// of the object that has to be there, or of the upload
			return 0, u.taken(ctx, one)
		case condition && unknown(err):
			condition = false
			err = errOlder
		case whole && s == http.StatusBadRequest:
			whole = false
			err = errOlder
		}
		return 0, err
	})
}

// errOlder is the reason to repeat, in another form, a request that a server has not understood.
var errOlder = errors.New("the server does not know what it is asked for")
