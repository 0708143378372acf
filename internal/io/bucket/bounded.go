package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"ggforge/fault"
)

const (
	// maxAnswer bounds an answer that is no object: a page of a listing has at most 1000 names of 1024 bytes.
	maxAnswer = 8 << 20
	// maxPages, maxListed and maxListSeconds bound the answers to one listing, and the library's own question for the
	// region: their number, their bytes together, and how long all of it takes.
	maxPages       = 2_000
	maxListed      = 256 << 20
	maxListSeconds = 600
)

// listing has the pages and the bytes that are left for the answers to one listing.
type listing struct {
	name         string
	pages, bytes atomic.Int64
}

type (
	listingKey struct{} // of a context: its listing
	objectKey  struct{} // of one whose answer is an object, which may be of any size
)

// list calls once, repeatedly after errors, with a context that bounds the answers to one listing; name is for
// messages.
func (c *Client) list(ctx context.Context, name string, once func(ctx context.Context) error) error {
	ctx, stop := context.WithTimeout(ctx, maxListSeconds*time.Second)
	defer stop()
	l := &listing{name: name}
	l.pages.Store(maxPages)
	l.bytes.Store(maxListed)
	ctx = context.WithValue(ctx, listingKey{}, l)
	err := c.retry(ctx, func() (int, error) { return 0, once(ctx) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.Errorf(fault.Broken, "%s: the server's list takes more than %d seconds", name, maxListSeconds)
	}
	return err
}

// bounded bounds the size and the time of answers by their kind.
type bounded struct{ by http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	l, _ := ctx.Value(listingKey{}).(*listing)
	if l != nil && l.pages.Add(-1) < 0 {
		return nil, fault.Errorf(fault.Broken, "%s: the server's list does not end after %d pages", l.name, maxPages)
	}
	resp, err := b.by.RoundTrip(req)
	if err == nil && ctx.Value(objectKey{}) == nil {
		resp.Body = &page{resp.Body, l, maxAnswer}
	}
	return resp, err
}

// page is the body of an answer that is no object.
type page struct {
	io.ReadCloser
	listing *listing // nil for another answer
	left    int64
}

func (p *page) Read(b []byte) (int, error) {
	if int64(len(b)) > p.left+1 {
		b = b[:p.left+1]
	}
	n, err := p.ReadCloser.Read(b)
	if p.left -= int64(n); p.left < 0 {
		p.left = 0
		return n, fault.Errorf(fault.Broken, "the server's answer has more than %d bytes", maxAnswer)
	}
	if p.listing != nil && p.listing.bytes.Add(-int64(n)) < 0 {
		return n, fault.Errorf(fault.Broken, "%s: the server's list has more than %d bytes", p.listing.name, maxListed)
	}
	return n, err
}
