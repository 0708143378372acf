package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// markName is the name of the metadata of an object that hold the mark of the run which has made it.
const markName = "Ggforge-Run"

// Piece is a piece of an object, as the server has it.
type Piece struct {
	Number int // from 0
	Bytes  int64
	Tag    string // its ETag
	CRC32C string // in base64, "" if the server has none
	MD5    string // in hexadecimal, where the server has no CRC32C: "" in a list
}

// Same reports whether the piece has the content data, and returns it with the sums that Send returns.
func (p Piece) Same(data []byte) (Piece, bool) {
	if p.Bytes != int64(len(data)) {
		return p, false
	}
	crc := crcText(crc32.Checksum(data, castagnoli))
	if p.CRC32C != "" {
		return p, p.CRC32C == crc
	}
	sum := md5.Sum(data)
	p.CRC32C, p.MD5 = crc, hex.EncodeToString(sum[:])
	return p, p.Tag == p.MD5
}

// Mark returns the mark that Begin has given an object; there is false if there is no object.
func (c *Client) Mark(ctx context.Context, n Name) (mark string, there bool, err error) {
	o, err := c.look(ctx, n)
	if o == nil || err != nil {
		return "", false, err
	}
	return o.mark, true, nil
}

// Begin begins a multipart upload, whose object has a mark, and returns its ID.
func (c *Client) Begin(ctx context.Context, to Name, mark string) (id string, err error) {
	if to.Key == "" {
		return "", fault.Errorf(fault.Usage, "%s: want an object: s3://BUCKET/KEY", to)
	}
	return c.start(ctx, to, map[string]string{markName: mark}, &c.old)
}

// Pieces returns the pieces [from, to) of an upload that the server has. The error about an upload that does not
// exist is fs.ErrNotExist.
func (c *Client) Pieces(ctx context.Context, to Name, id string, from, end int) (list []Piece, err error) {
	there, err := c.partsOf(ctx, to, id)
	for n, p := range there {
		if n > from && n <= end {
			list = append(list, Piece{Number: n - 1, Bytes: p.Size, Tag: p.ETag, CRC32C: p.ChecksumCRC32C})
		}
	}
	return list, err
}

// Send sends piece n of an upload, from 0 on, with its checksums, which the server compares.
func (c *Client) Send(ctx context.Context, to Name, id string, n int, data []byte) (Piece, error) {
	sha := sha256.Sum256(data)
	p := &part{crc: crc32.Checksum(data, castagnoli), sha: sha[:]}
	err := c.put(ctx, to, id, n, int64(len(data)), p, &c.old, func() (io.Reader, error) {
		if c.old.Load() && p.md5 == nil {
			sum := md5.Sum(data)
			p.md5 = sum[:]
		}
		return bytes.NewReader(data), nil
	})
	return Piece{Number: n, Bytes: int64(len(data)), Tag: p.etag, CRC32C: crcText(p.crc), MD5: hex.EncodeToString(p.md5)},
		err
}

// Complete makes an object of size bytes from all pieces of an upload, which Send has returned, to processes on any
// machine. An object that exists is an error, unless its content is the same, or with force it is replaced if it does
// not change meanwhile.
func (c *Client) Complete(ctx context.Context, to Name, id string, size int64, pieces []Piece, force bool) error {
	u := &uploader{Client: c, opt: UploadOptions{Force: force}}
	one := &upload{File: File{Path: "of " + id, To: to}, id: id, size: size, piece: pieces[0].Bytes,
		parts: make([]part, len(pieces))}
	for n, p := range pieces {
		off, want := one.span(n)
		sum, err := base64.StdEncoding.DecodeString(p.CRC32C)
		if err != nil || len(sum) != 4 || p.Number != n || p.Bytes != want {
			return fault.Errorf(fault.Broken, "%s: piece %d at %d has number %d, %d bytes, checksum %.40q: want %d bytes", to, n,
				off, p.Number, p.Bytes, p.CRC32C, want)
		}
		one.parts[n] = part{crc: binary.BigEndian.Uint32(sum), sha: []byte{}, md5: []byte{}, etag: p.Tag}
		if p.MD5 != "" {
			u.md5.Store(true)
			if one.parts[n].md5, err = hex.DecodeString(p.MD5); err != nil {
				return fault.Errorf(fault.Broken, "%s: piece %d: MD5 %.40q", to, n, p.MD5)
			}
		}
	}
	if err := u.vacant(ctx, one); err != nil {
		return err
	}
	if one.same {
		return u.abort(ctx, one)
	}
	return u.finish(ctx, one)
}

// Create creates a small object on the condition that there is none of that name: then made is false. After a lost
// answer made may be false for an object that this call has made. A server whose answer is that it knows no
// conditions gives an error of kind fault.Unsupported.
func (c *Client) Create(ctx context.Context, n Name, data []byte) (made bool, err error) {
	opt := minio.PutObjectOptions{}
	opt.SetMatchETagExcept("*")
	err = c.write(ctx, n, data, opt)
	switch {
	case status(err) == http.StatusPreconditionFailed:
		return false, nil
	case unknown(err):
		return false, fault.Errorf(fault.Unsupported,
			"%w: it does not know the condition If-None-Match: *, on which processes agree", err)
	}
	return err == nil, err
}

// Put creates or replaces a small object.
func (c *Client) Put(ctx context.Context, n Name, data []byte) error {
	return c.write(ctx, n, data, minio.PutObjectOptions{})
}

// write writes a small object. By the answer it learns which checksums the server knows, before any piece is sent.
func (c *Client) write(ctx context.Context, n Name, data []byte, opt minio.PutObjectOptions) error {
	sum := md5.Sum(data)
	sha := sha256.Sum256(data)
	opt.ContentType, opt.DisableContentSha256 = "application/octet-stream", true
	return c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		old := c.old.Load()
		if opt.UserMetadata = nil; !old {
			opt.UserMetadata = map[string]string{"X-Amz-Checksum-Crc32c": crcText(crc32.Checksum(data, castagnoli))}
		}
		made, err := c.core.PutObject(ctx, n.Bucket, n.Key, bytes.NewReader(data), int64(len(data)),
			base64.StdEncoding.EncodeToString(sum[:]), hex.EncodeToString(sha[:]), opt)
		err = explained(fetch.Quiet(ctx, err), n.String())
		switch {
		case err == nil && made.ChecksumCRC32C == "":
			c.old.Store(true)
		case !old && status(err) == http.StatusBadRequest: // perhaps because of the checksum
			c.old.Store(true)
			err = errOlder
		}
		return 0, err
	})
}

// Get returns an object of at most most bytes, and its age by the server's clock, below 0 if that is not known. One
// that is not there gives an error that is fs.ErrNotExist.
func (c *Client) Get(ctx context.Context, n Name, most int64) (data []byte, age time.Duration, err error) {
	err = c.retry(ctx, func() (int, error) {
		ctx, alive, stop := fetch.Watch(context.WithValue(ctx, objectKey{}, true), c.opt.Stall)
		defer stop()
		body, info, header, err := c.core.GetObject(ctx, n.Bucket, n.Key, minio.GetObjectOptions{})
		if err != nil {
			return 0, explained(fetch.Quiet(ctx, err), n.String())
		}
		defer body.Close()
		data, err = io.ReadAll(io.LimitReader(&sentBody{body, alive}, most+1))
		switch {
		case err != nil:
			return len(data), fetch.Quiet(ctx, err)
		case int64(len(data)) > most:
			return 0, fault.Errorf(fault.Broken, "%s: has more than %d bytes", n, most)
		case info.Size >= 0 && info.Size != int64(len(data)):
			return 0, fmt.Errorf("%s: %w: %d bytes, want %d", n, io.ErrUnexpectedEOF, len(data), info.Size)
		}
		age = -1
		if now, err := http.ParseTime(header.Get("Date")); err == nil && !info.LastModified.IsZero() {
			age = now.Sub(info.LastModified)
		}
		return len(data), nil
	})
	return data, age, err
}

// Download writes an object to a file, which it creates or replaces. One that is not there gives an error that is
// fs.ErrNotExist, and no file. accept, if not nil, reads the beginning of an object of size bytes; after its error, which
// Download returns, nothing more is read.
func (c *Client) Download(ctx context.Context, n Name, path string,
	accept func(begin io.Reader, size int64) error) error {
	if _, err := c.stat(ctx, n); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = c.retry(ctx, func() (int, error) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		ctx, alive, stop := fetch.Watch(context.WithValue(ctx, objectKey{}, true), c.opt.Stall)
		defer stop()
		body, info, _, err := c.core.GetObject(ctx, n.Bucket, n.Key, minio.GetObjectOptions{})
		if err != nil {
			return 0, explained(fetch.Quiet(ctx, err), n.String())
		}
		defer body.Close()
		from := &sentBody{body, alive}
		if accept != nil {
			if err := accept(io.TeeReader(from, file), info.Size); err != nil {
				return 0, fetch.Quiet(ctx, err)
			}
		}
		_, err = io.Copy(file, io.LimitReader(from, info.Size))
		size, _ := file.Seek(0, io.SeekCurrent)
		if err == nil && size != info.Size {
			err = fmt.Errorf("%s: %w: %d bytes, want %d", n, io.ErrUnexpectedEOF, size, info.Size)
		}
		if err != nil {
			return 0, fetch.Quiet(ctx, err)
		}
		return 0, file.Truncate(size)
	})
	return errors.Join(err, file.Close())
}

// Remove removes an object, if it exists.
func (c *Client) Remove(ctx context.Context, n Name) error {
	err := c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		err := c.core.RemoveObject(ctx, n.Bucket, n.Key, minio.RemoveObjectOptions{})
		return 0, explained(fetch.Quiet(ctx, err), n.String())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
