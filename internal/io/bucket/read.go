package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// RoundTrip answers a GET request for an object's address (Name.URL), whole or a range of it, so that
// package fetch reads objects as it reads other files of servers.
func (c *Client) RoundTrip(req *http.Request) (*http.Response, error) {
	n := Name{req.URL.Host, strings.TrimPrefix(req.URL.Path, "/")}
	opt := minio.GetObjectOptions{}
	if ranges := req.Header.Get("Range"); ranges != "" {
		opt.Set("Range", ranges)
	}
	ctx, alive, stop := fetch.Watch(context.WithValue(req.Context(), objectKey{}, true), c.opt.Stall)
	body, info, header, err := c.core.GetObject(ctx, n.Bucket, n.Key, opt)
	resp := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: header,
		ContentLength: info.Size}
	if err != nil {
		err = explained(fetch.Quiet(ctx, err), n.String())
		stop()
		var a *answer
		if !errors.As(err, &a) || a.status == 0 {
			return nil, err
		}
		resp.StatusCode, resp.Status, resp.Header, resp.Body = a.status, a.text(), http.Header{}, http.NoBody
		return resp, nil
	}
	resp.StatusCode = http.StatusOK
	if header.Get("Content-Range") != "" {
		resp.StatusCode = http.StatusPartialContent
	}
	resp.Status = http.StatusText(resp.StatusCode)
	resp.Body = &answerBody{body, ctx, alive, stop}
	return resp, nil
}

// answerBody is a body whose server has to send something now and then.
type answerBody struct {
	io.ReadCloser
	ctx         context.Context
	alive, stop func()
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.alive()
	return n, fetch.Quiet(b.ctx, err)
}

func (b *answerBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

// Folder returns the name under which the objects of a folder are: with a slash at its end.
func (n Name) Folder() Name {
	if n.Key != "" && !strings.HasSuffix(n.Key, "/") {
		n.Key += "/"
	}
	return n
}

// Object is an object of a folder.
type Object struct {
	Name  string // without the folder's
	Bytes int64
	Tag   string // of its content

	Modified time.Time // by the server's clock
}

// List returns the objects in a folder, and in the folders in it: at most most of them.
func (c *Client) List(ctx context.Context, folder Name, most int) (list []Object, err error) {
	return c.ListPrefix(ctx, folder, "", most)
}

// ListPrefix is List for the objects whose names in the folder begin with prefix.
func (c *Client) ListPrefix(ctx context.Context, folder Name, prefix string, most int) (list []Object, err error) {
	folder = folder.Folder()
	err = c.list(ctx, folder.String(), func(ctx context.Context) error {
		list = nil
		ctx, alive, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		seen, listed := map[string]bool{}, 0
		for o := range c.core.ListObjectsIter(ctx, folder.Bucket,
			minio.ListObjectsOptions{Prefix: folder.Key + prefix, Recursive: true}) {
			alive()
			if o.Err != nil {
				return explained(fetch.Quiet(ctx, o.Err), folder.String())
			}
			name, ok := strings.CutPrefix(o.Key, folder.Key)
			switch {
			case !ok:
				return fault.Errorf(fault.Broken, "%s: the server lists %q, which is not in this folder", folder, o.Key)
			case seen[name]:
				return fault.Errorf(fault.Broken, "%s: the server lists %q twice", folder, o.Key)
			case listed == most:
				return fault.Errorf(fault.Unsupported, "%s: more than %d objects", folder, most)
			case name == "" || strings.HasSuffix(name, "/"): // a placeholder that some tools make for a folder
				listed++
				continue
			case !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)):
				return fault.Errorf(fault.Unsupported, "%s: the key %q is no name of a file", folder, o.Key)
			}
			listed++
			seen[name] = true
			list = append(list, Object{name, o.Size, o.ETag, o.LastModified})
		}
		return nil
	})
	return list, err
}

// object has the properties that a server returns for an object.
type object struct {
	size   int64
	etag   string
	crc32c string // in base64, perhaps with a hyphen and the number of parts; "" if the server has none
	mark   string // of the run that has made it: see Begin
}

// String describes an object; nil is a missing one.
func (o *object) String() string {
	if o == nil {
		return "nothing"
	}
	return fmt.Sprintf("%d bytes, tag %.40q", o.size, o.etag)
}

// is reports whether two objects, or none, are the same one, as far as the server says.
func (o *object) is(other *object) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.size == other.size && o.etag == other.etag
}

// look asks for an object; nil is one that is not there.
func (c *Client) look(ctx context.Context, n Name) (*object, error) {
	o, err := c.stat(ctx, n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// stat asks for an object. One that is not there gives an error that is fs.ErrNotExist.
func (c *Client) stat(ctx context.Context, n Name) (o object, err error) {
	err = c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		info, err := c.core.StatObject(ctx, n.Bucket, n.Key, minio.StatObjectOptions{Checksum: true})
		o = object{info.Size, info.ETag, info.ChecksumCRC32C, info.UserMetadata[markName]}
		return 0, explained(fetch.Quiet(ctx, err), n.String())
	})
	return o, err
}
