package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ggforge/fault"
)

const (
	// maxErrorBytes and maxErrorSeconds bound the body that is read of an error or a redirect.
	maxErrorBytes   = 1 << 20
	maxErrorSeconds = 2
)

// Bounded returns a transport that limits the answers of a server other than files: an error page ends after some bytes
// and some time, and a redirect to an invalid address is an error without that address, which may contain a signature.
func Bounded(by *http.Transport) http.RoundTripper { return &bounded{by} }

type bounded struct{ by *http.Transport }

func (b *bounded) CloseIdleConnections() { b.by.CloseIdleConnections() }

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := b.by.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, clean(err)
	}
	body := &boundedBody{ReadCloser: resp.Body, from: resp.Body, end: cancel}
	if resp.StatusCode >= 300 {
		body.from = io.LimitReader(resp.Body, maxErrorBytes)
		body.timer = time.AfterFunc(maxErrorSeconds*time.Second, func() {
			body.late.Store(true)
			cancel()
		})
	}
	resp.Body = body
	if to := resp.Header.Get("Location"); to != "" {
		if _, err := req.URL.Parse(to); err != nil {
			body.Close()
			return nil, fault.Errorf(fault.Broken, "%s: redirects to an invalid address", Show(req.URL))
		}
	}
	return resp, nil
}

// clean returns an error of the library without quoted text, which a server has sent and which may contain a signature.
func clean(err error) error {
	var cert *tls.CertificateVerificationError // which quotes names of certificates
	text, _, quotes := strings.Cut(err.Error(), `"`)
	var malformed textproto.ProtocolError
	switch {
	case !quotes || errors.As(err, &cert):
		return err
	case errors.As(err, &malformed):
		return fault.Errorf(fault.Broken, "the server's answer has a malformed header")
	}
	return &cleaned{strings.TrimRight(text, ": "), err}
}

// cleaned is an error with a text of its own.
type cleaned struct {
	text string
	error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.error }

type boundedBody struct {
	io.ReadCloser
	from  io.Reader
	timer *time.Timer // nil for a body that may take its time
	late  atomic.Bool // the timer has ended it
	once  sync.Once
	end   func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && b.late.Load() {
		err = io.EOF // the bytes received by then are the answer
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.once.Do(func() {
		if b.timer != nil {
			b.timer.Stop()
		}
		b.end()
	})
	return b.ReadCloser.Close()
}
