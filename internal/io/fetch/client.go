// Package fetch reads files of web servers by ranges: with retries that resume after a broken connection, with reading
// ahead, and with a folder that stores the received bytes for the next run.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ggforge/fault"
)

// Options are the options of a client. The zero value is ready to use.
type Options struct {
	// Token is sent as a bearer token to Origin, and to no other server: not to one
	// that Origin redirects to, and not without the encryption that Origin has.
	Token  string
	Origin string // scheme and host: "https://example.org"
	// Stall is how long to wait for a server that sends nothing; default 30 seconds.
	Stall time.Duration
	// Pause is the time before the first retry, doubled for each further one; default
	// half a second.
	Pause time.Duration
	// Schemes has the transports for addresses of other schemes than http and https.
	Schemes Schemes
}

// Schemes are ways to answer requests, by the schemes of their addresses.
type Schemes map[string]http.RoundTripper

const (
	// maxFailures is how often in a row a request may fail without progress.
	maxFailures = 6
	// progress is the number of bytes that make up for all failures so far.
	progress = 64 << 10
	// maxPause is the longest pause before a retry, also where a server wants more.
	maxPause = 2 * time.Minute
	// maxRedirects is the number of redirects that may follow each other.
	maxRedirects = 10
	// maxDrain is the number of bytes of an unwanted answer that are read, so that the connection can be used again,
	// and maxDrainSeconds the time limit for it.
	maxDrain        = 64 << 10
	maxDrainSeconds = 1
	// maxSeconds is the time limit for an answer, even if it makes progress.
	maxSeconds = 1800
)

// Client reads from web servers. Its methods may be called by many goroutines at
// once.
type Client struct {
	opt  Options
	http http.Client
}

// New returns a client.
func New(opt Options) *Client {
	if opt.Stall == 0 {
		opt.Stall = 30 * time.Second
	}
	if opt.Pause == 0 {
		opt.Pause = time.Second / 2
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = inFlight
	transport.DisableCompression = true // a range is one of the bytes as they are stored
	transport.ResponseHeaderTimeout = opt.Stall
	for scheme, by := range opt.Schemes {
		transport.RegisterProtocol(scheme, by)
	}
	c := &Client{opt: opt}
	c.http = http.Client{Transport: Bounded(transport), CheckRedirect: c.redirect}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// redirect refuses redirects to unencrypted addresses, and sends the token to its own server only.
func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fault.Errorf(fault.Broken, "%s: redirected more than %d times", Show(via[0].URL), maxRedirects)
	}
	if last := via[len(via)-1].URL; last.Scheme == "https" && req.URL.Scheme != "https" || req.URL.Scheme != "https" &&
		req.URL.Scheme != "http" {
		return fault.Errorf(fault.Refused, "%s: redirects to %s, which is not encrypted: not followed", Show(last),
			Show(req.URL))
	}
	req.Header.Del("Authorization") // the library keeps it for other ports and subdomains
	req.Header.Del("Referer")
	c.authorize(req)
	return nil
}

// authorize adds the token to a request to the server that it is for.
func (c *Client) authorize(req *http.Request) {
	if c.opt.Token != "" && req.URL.Scheme+"://"+req.URL.Host == c.opt.Origin {
		req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
}

// Show returns an address for messages: without a query, which may hold a
// signature, and without a password.
func Show(u *url.URL) string {
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return clean.String()
}

// noAddress returns an error about an invalid address, without the parts of it that may be secret.
func noAddress(address string) error {
	clean, _, _ := strings.Cut(address, "?")
	if scheme, rest, ok := strings.Cut(clean, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		clean = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
	}
	return fault.Errorf(fault.Usage, "%q is no address of a file", clean)
}

// statusError is the error of an answer with an unwanted status.
type statusError struct {
	url    string
	code   int
	status string
	after  time.Duration // the time until the next try that the server asks for; 0 for none
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: the server answers %s", e.url, e.status)
}

// Again reports whether the same request may succeed later.
func (e *statusError) Again() bool {
	return e.code == http.StatusRequestTimeout || e.code == http.StatusTooManyRequests || e.code >= 500
}

// After is the time until the next try that the server asks for.
func (e *statusError) After() time.Duration { return e.after }

// Is makes a missing file an fs.ErrNotExist and one that is not for everybody an
// fs.ErrPermission.
func (e *statusError) Is(target error) bool {
	switch e.code {
	case http.StatusNotFound, http.StatusGone:
		return target == fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == fs.ErrPermission
	}
	return false
}

// temporary reports whether the same request may succeed later: errors with a method Again decide by it, others are
// temporary except those with a kind of package fault and context.Canceled.
func temporary(err error) bool {
	var says interface{ Again() bool }
	if errors.As(err, &says) {
		return says.Again()
	}
	for _, kind := range []error{fault.Broken, fault.Refused, fault.Usage, fault.Unsupported, context.Canceled} {
		if errors.Is(err, kind) {
			return false
		}
	}
	return true
}

// retry calls once until it is done or fails for good. once returns the number of
// bytes received.
func (c *Client) retry(ctx context.Context, once func() (n int, err error)) error {
	return Retry(ctx, c.opt.Pause, once)
}

// Retry calls once until it is done or fails for good, after a pause that is doubled each
// time. once returns the number of bytes transferred: from progress bytes on, earlier failures no longer count.
func Retry(ctx context.Context, pause time.Duration, once func() (n int, err error)) error {
	return Retries{Pause: pause, Most: maxFailures}.Do(ctx, once)
}

// Retries is how often a request is repeated.
type Retries struct {
	Pause time.Duration // before the first repetition, doubled for each further one, up to maxPause
	Most  int           // failures in a row that end it
	// Waits, if not nil, is called with an error and the pause after it.
	Waits func(err error, pause time.Duration)
}

// Do is Retry with these settings. An error with a method After, such as that of a server that limits rates, is
// followed by a pause of at least that time.
func (r Retries) Do(ctx context.Context, once func() (n int, err error)) error {
	failures := 0
	for {
		n, err := once()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !temporary(err):
			return err
		}
		if n >= progress {
			failures = 0
		}
		if failures++; failures >= r.Most {
			return fmt.Errorf("%w (tried %d times)", err, r.Most)
		}
		pause := min(r.Pause<<(failures-1), maxPause)
		pause += rand.N(pause/4 + 1) // so that many readers do not come back all at once
		var says interface{ After() time.Duration }
		if errors.As(err, &says) {
			pause = max(pause, says.After())
		}
		if r.Waits != nil {
			r.Waits(err, pause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Watch returns a context that ends when alive has not been called for the time limit.
func Watch(ctx context.Context, limit time.Duration) (_ context.Context, alive, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("nothing came for %v", limit)) })
	return ctx, func() { timer.Reset(limit) }, func() { timer.Stop(); cancel(nil) }
}

// Quiet returns the cause with which Watch has ended ctx if that gave err, else err.
func Quiet(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(err, context.Canceled) &&
		!errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// request sends a GET request; ranges is the value of the header Range, "" for the
// whole file. The caller calls cancel when it has read the body, which ends with an
// error after Options.Stall without a byte.
func (c *Client) request(ctx context.Context, address, ranges string) (resp *http.Response, cancel func(), err error) {
	ctx, stop := context.WithTimeout(ctx, maxSeconds*time.Second)
	defer func() {
		if err != nil {
			stop()
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, noAddress(address)
	}
	req.Header.Set("User-Agent", "ggforge")
	req.Header.Set("Accept-Encoding", "identity")
	if ranges != "" {
		req.Header.Set("Range", ranges)
	}
	c.authorize(req)
	if resp, err = c.http.Do(req); err != nil {
		var u *url.Error // whose text has the whole address
		if errors.As(err, &u) {
			err = u.Err
		}
		if errors.Is(err, fault.Broken) || errors.Is(err, fault.Refused) { // by redirect
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%s: %w", Show(req.URL), err)
	}
	body := resp.Body
	timer := time.AfterFunc(c.opt.Stall, stop)
	resp.Body = &watched{body, timer, c.opt.Stall}
	cancel = func() {
		timer.Stop()
		late := time.AfterFunc(maxDrainSeconds*time.Second, stop)
		io.CopyN(io.Discard, body, maxDrain)
		late.Stop()
		body.Close()
		stop()
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent {
		return resp, cancel, nil
	}
	e := &statusError{url: Show(req.URL), code: resp.StatusCode, status: resp.Status}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		e.after = time.Duration(min(n, int(maxPause/time.Second))) * time.Second
	}
	cancel()
	return nil, nil, e
}

// watched is a body whose reader may wait for limit at most.
type watched struct {
	io.ReadCloser
	timer *time.Timer
	limit time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.timer.Reset(w.limit)
	switch {
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("nothing came for %v", w.limit)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the answer takes more than %d seconds", maxSeconds)
	}
	return n, err
}

// Budget is the number of bytes that several files may have together.
type Budget struct {
	left atomic.Int64
	over error
}

// NewBudget returns a budget of so many bytes; over is the error about more.
func NewBudget(bytes int64, over error) *Budget {
	b := &Budget{over: over}
	b.left.Store(bytes)
	return b
}

// spent is a reader whose bytes are taken off a budget as they come.
type spent struct {
	io.Reader
	*Budget
	n int64
}

func (s *spent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.n += int64(n)
	if s.left.Add(-int64(n)) < 0 {
		return n, s.over
	}
	return n, err
}

// Get returns a whole file, which may have limit bytes at most, and be one of those that a budget is of; nil for none.
// A file that is not there gives an error that is fs.ErrNotExist, one that is not for this reader fs.ErrPermission.
func (c *Client) Get(ctx context.Context, address string, limit int64, of *Budget) (data []byte, err error) {
	if of == nil {
		of = NewBudget(limit+1, nil)
	}
	err = c.retry(ctx, func() (int, error) {
		resp, cancel, err := c.request(ctx, address, "")
		if err != nil {
			return 0, err
		}
		defer cancel()
		show := Show(resp.Request.URL)
		if resp.StatusCode != http.StatusOK {
			return 0, fault.Errorf(fault.Broken, "%s: the server answers %s, want the whole file", show, resp.Status)
		}
		tooLarge := func(n int64) error {
			return fault.Errorf(fault.Broken, "%s: %d bytes or more, want at most %d", show, n, limit)
		}
		if resp.ContentLength > limit {
			return 0, tooLarge(resp.ContentLength)
		}
		from := &spent{Reader: io.LimitReader(resp.Body, limit+1), Budget: of}
		data, err = io.ReadAll(from)
		switch {
		case err != nil && err == of.over:
			return 0, err
		case err == nil && int64(len(data)) > limit:
			return 0, tooLarge(limit + 1)
		case err != nil:
			of.left.Add(from.n) // all of it comes again
			err = fmt.Errorf("%s: the connection broke off after %d bytes: %w", show, len(data), err)
		}
		return 0, err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// contentRange parses "bytes FIRST-LAST/TOTAL".
func contentRange(s string) (first, last, total int64, ok bool) {
	s, ok1 := strings.CutPrefix(s, "bytes ")
	span, all, ok2 := strings.Cut(s, "/")
	from, to, ok3 := strings.Cut(span, "-")
	var errs [3]error
	for i, f := range []struct {
		to   *int64
		text string
	}{{&first, from}, {&last, to}, {&total, all}} {
		*f.to, errs[i] = strconv.ParseInt(f.text, 10, 64)
	}
	ok = ok1 && ok2 && ok3 && errors.Join(errs[:]...) == nil && 0 <= first && first <= last && last < total
	return first, last, total, ok
}
