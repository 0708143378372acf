package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"ggforge/fault"
)

// File is a file of a web server.
type File struct {
	Size int64

	client  *Client
	address string
	name    string // for messages
	// state is the server's name of this version of the file, "" if there is none or if the address has one version for
	// ever.
	state string

	mu     sync.Mutex
	head   []byte // its first bytes
	direct string // where the server has redirected to; "" before that is known
	kept   *kept  // on the disk, nil for nowhere
}

// String returns the file's address without its query, its size and the server's name of its version.
func (f *File) String() string { return fmt.Sprintf("%s: %d bytes, %s", f.name, f.Size, f.state) }

// headBytes is how much of a file the first request asks for: most headers of
// checkpoints are shorter.
const headBytes = 1 << 20

// Open asks for the beginning of a file and learns its size from the answer. fixed
// is true if the content of the address never changes.
func (c *Client) Open(ctx context.Context, address string, fixed bool) (*File, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, noAddress(address)
	}
	f := &File{client: c, address: address, name: Show(u)}
	var head []byte
	came := 0 // of these
	err = c.retry(ctx, func() (int, error) {
		resp, cancel, err := c.request(ctx, address, fmt.Sprintf("bytes=0-%d", headBytes-1))
		if err != nil {
			return 0, err
		}
		defer cancel()
		first, last, total, ok := contentRange(resp.Header.Get("Content-Range"))
		switch {
		case resp.StatusCode != http.StatusPartialContent:
			return 0, fault.Errorf(fault.Unsupported, "%s: the server sends files as a whole only, not by ranges",
				f.name)
		case !ok || first != 0 || last != min(headBytes, total)-1:
			return 0, fault.Errorf(fault.Broken, "%s: the server sends range %q, want bytes 0 to %d", f.name,
				resp.Header.Get("Content-Range"), headBytes-1)
		}
		head = make([]byte, last+1)
		if came, err = f.body(resp, head); err != nil && (came == 0 || !temporary(err)) {
			return 0, err
		}
		f.Size = total
		if !fixed {
			f.state = state(resp)
		}
		f.moved(resp)
		return 0, nil
	})
	if err == nil && came < len(head) { // received bytes stay, so that each connection brings the end nearer
		err = f.read(ctx, head[came:], int64(came))
	}
	if err != nil {
		return nil, err
	}
	f.head = head
	return f, nil
}

// state returns a value that differs between versions of a file: its ETag, or when it was written.
func state(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

// State returns the server's name of the version, its ETag or when it was written; "" if there is none or if the
// address has one version for ever.
func (f *File) State() string { return f.state }

// Forget gives up the beginning of the file, which Open has read: a reader that comes
// back to it asks again.
func (f *File) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.head = nil
}

// begun copies bytes of the beginning of the file, as far as they were received, to p, which is at off, and returns
// their number.
func (f *File) begun(p []byte, off int64) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= int64(len(f.head)) {
		return 0
	}
	return copy(p, f.head[off:])
}

// body reads len(p) bytes of an answer, which must have no more.
func (f *File) body(resp *http.Response, p []byte) (int, error) {
	n, err := io.ReadFull(resp.Body, p)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, fmt.Errorf("%s: the connection broke off after %d of %d bytes: %w", f.name, n, len(p), err)
	}
	var more [1]byte
	if extra, _ := resp.Body.Read(more[:]); extra > 0 {
		return n, fault.Errorf(fault.Broken, "%s: the server sends more than the %d bytes that it was asked for",
			f.name, len(p))
	}
	return n, nil
}

// moved notes where the file really is.
func (f *File) moved(resp *http.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.direct = resp.Request.URL.String()
}

// where returns the address to read from, and forgets one that the server has
// redirected to if that has failed.
func (f *File) where(failed bool) (address string, direct bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed {
		f.direct = ""
	}
	if f.direct == "" {
		return f.address, false
	}
	return f.direct, f.direct != f.address
}

// read fills p with the bytes at off.
func (f *File) read(ctx context.Context, p []byte, off int64) error {
	n := f.begun(p, off)
	p, off = p[n:], off+int64(n)
	failed := false
	return f.client.retry(ctx, func() (int, error) {
		for len(p) > 0 {
			address, direct := f.where(failed)
			n, err := f.once(ctx, address, p, off)
			p, off = p[n:], off+int64(n)
			// signed addresses are good for some time only
			var status *statusError
			failed = err != nil
			if err != nil && direct && errors.As(err, &status) && !temporary(err) {
				continue // at the address that redirects
			}
			return n, err
		}
		return 0, nil
	})
}

// once fills p by one request. n is the number of received bytes.
func (f *File) once(ctx context.Context, address string, p []byte, off int64) (n int, err error) {
	resp, cancel, err := f.client.request(ctx, address, fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))
	if err != nil {
		return 0, err
	}
	defer cancel()
	got := resp.Header.Get("Content-Range")
	first, last, total, ok := contentRange(got)
	switch {
	case resp.StatusCode != http.StatusPartialContent || !ok || first != off || last != off+int64(len(p))-1:
		return 0, fault.Errorf(fault.Broken, "%s: the server sends range %q (%s), want bytes %d to %d", f.name, got,
			resp.Status, off, off+int64(len(p))-1)
	case total != f.Size:
		return 0, fault.Errorf(fault.Broken, "%s: has changed while it was read: it had %d bytes and has %d", f.name,
			f.Size, total)
	case f.state != "" && state(resp) != f.state:
		return 0, fault.Errorf(fault.Broken,
			"%s: has changed while it was read: the server called it %s and calls it %s", f.name, f.state, state(resp))
	}
	f.moved(resp)
	return f.body(resp, p)
}
