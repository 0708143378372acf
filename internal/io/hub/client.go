// Package hub writes to a Hugging Face hub: repositories, commits, and large files over LFS. It is a client of the
// hub's API, which packages that publish call step by step:
//
//	Info ──► Create, Branch ──► Tree ──► Modes ──► Batch ──► Put ──► Finish ──► Commit ──► Tree
//
// Two servers are asked: the hub, with the token, and the store of large files, to which addresses with signatures in
// them lead. The token goes to the hub only; a redirect to another server is not followed. Errors and messages have no
// addresses with queries, which hold signatures. Answers are untrusted: their sizes and contents are checked.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// Options are the settings of a client.
type Options struct {
	Endpoint string // address of the hub without a slash at its end: https://HOST
	Token    string // "" for none, which suffices to look at what is public
	// Stall is how long to wait for a connection on which nothing moves, and for most answers; default a minute. It is
	// waited several times as long for the end of a part, and for answers that take a server more time.
	Stall time.Duration
	// Pause is the time before the first retry, doubled for each further one; default a second.
	Pause time.Duration
	// Waits, if not nil, is called with the error before a pause. Calls may come from several goroutines.
	Waits func(err error, pause time.Duration)
}

const (
	// maxAnswer bounds an answer of the hub, and maxBatch one with addresses: a file in 10,000 parts has
	// 10,000 addresses of below 2 KiB.
	maxAnswer = 32 << 20
	maxBatch  = 64 << 20
	// maxMessage bounds the text of a server that a message shows.
	maxMessage = 300
	// maxRedirects is the number of redirects, all to the same server, that may follow each other.
	maxRedirects = 5
	// maxWait is the longest pause that a server may ask for: windows of rate limits have five minutes.
	maxWait = 310 * time.Second
	// maxTries is how often a request is made that fails: with pauses of a second, doubled up to two minutes, for
	// about six minutes.
	maxTries = 10
	// How many times Options.Stall the answer to a request may take: after a part, of which the system still holds some
	// when all of it has been written; to a commit or a question about objects, though the hub's gateway gives up after a
	// minute; and until the store has made an object of its parts.
	partWait, hubWait, completeWait = 2, 3, 10
)

// Client speaks to a hub and its store. Its methods may be called by many goroutines at once.
type Client struct {
	opt       Options
	endpoint  *url.URL
	transport *http.Transport
	http      http.Client
}

// New returns a client. Nothing is sent.
func New(opt Options) (*Client, error) {
	opt.Stall, opt.Pause = cmp.Or(opt.Stall, time.Minute), cmp.Or(opt.Pause, time.Second)
	u, err := url.Parse(strings.TrimSuffix(opt.Endpoint, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fault.Errorf(fault.Usage, "the address of the hub: want https://HOST, without user and query")
	}
	if strings.ContainsFunc(opt.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fault.Errorf(fault.Usage, "the token of the hub: want letters, digits and signs, without spaces")
	}
	c := &Client{opt: opt, endpoint: u, transport: http.DefaultTransport.(*http.Transport).Clone()}
	c.transport.MaxIdleConnsPerHost = 16
	c.transport.WriteBufferSize = 256 << 10
	c.http = http.Client{Transport: fetch.Bounded(c.transport), CheckRedirect: redirect}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// redirect follows redirects within a server only.
func redirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return fault.Errorf(fault.Broken, "%s: redirected more than %d times", fetch.Show(via[0].URL), maxRedirects)
	case req.URL.Scheme != from.Scheme || req.URL.Host != from.Host:
		return fault.Errorf(fault.Refused, "%s: redirects to another server, %s: not followed", fetch.Show(from),
			fetch.Show(&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host}))
	}
	req.Header.Del("Referer")
	return nil
}

// ours reports whether an address is the hub's own.
func (c *Client) ours(u *url.URL) bool {
	return u.Scheme == c.endpoint.Scheme && u.Host == c.endpoint.Host
}

// Error is an error that a server has answered with.
type Error struct {
	Op      string // what was asked for: "create org/name"
	Status  int
	Code    string // X-Error-Code of the hub: RepoNotFound; or the code of the store: RequestTimeout
	Message string // of the server, without addresses, "" for none
	Request string // the hub's number for the request, "" for none
	after   time.Duration
	body    []byte
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: the server answers %d %s", e.Op, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += fmt.Sprintf(": %q", e.Message)
	}
	if e.Request != "" {
		text += fmt.Sprintf(" (request %s)", e.Request)
	}
	return text
}

// Again reports whether the same request may succeed later.
func (e *Error) Again() bool {
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests ||
		e.Status >= 500 && e.Status != http.StatusNotImplemented || e.Code == "RequestTimeout" || e.busy()
}

// busy reports whether the hub is at work on another request for the same thing.
func (e *Error) busy() bool {
	return e.Status == http.StatusConflict && strings.Contains(e.Message, "conflicting operation")
}

// After is the time until the next try that the server asks for.
func (e *Error) After() time.Duration { return e.after }

// Is makes an error about a request that the server will not do fault.Refused, one without access also
// fs.ErrPermission, and one about something that is not there also fs.ErrNotExist.
func (e *Error) Is(target error) bool {
	switch target {
	case fault.Refused:
		return !e.Again() && e.Status >= 400 && e.Status < 500
	case fs.ErrPermission:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	case fs.ErrNotExist:
		return e.Status == http.StatusNotFound || e.Status == http.StatusUnauthorized && e.Code == repoNotFound
	}
	return false
}

// codes of X-Error-Code.
const (
	repoNotFound     = "RepoNotFound"
	revisionNotFound = "RevisionNotFound"
)

// request is a request to the hub or the store.
type request struct {
	op      string // for messages
	method  string
	address string
	kind    string // Content-Type, "" for none
	accept  string
	size    int64            // of the body
	body    func() io.Reader // returns the body from its beginning, nil for none
	limit   int64            // bytes of the answer; default maxAnswer
	wait    int              // for the answer, in times of Options.Stall; default 1
	foreign bool             // the address is the store's or signed: no token
}

// answer is an answer with a status of success.
type answer struct {
	header http.Header
	data   []byte
}

// once makes a request. An error may be an *Error.
func (c *Client) once(ctx context.Context, r request) (a answer, err error) {
	ctx, alive, stop := fetch.Watch(ctx, c.opt.Stall*time.Duration(max(1, r.wait)))
	defer stop()
	var body io.Reader
	if r.body != nil {
		body = &sent{r.body(), alive}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.address, body)
	if err != nil {
		return a, fault.Errorf(fault.Broken, "%s: the address is invalid", r.op)
	}
	if r.body != nil {
		req.ContentLength = r.size
		if r.size == 0 {
			req.Body = http.NoBody
		}
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&sent{r.body(), alive}), nil }
	}
	if !r.foreign {
		if !c.ours(req.URL) {
			return a, fault.Errorf(fault.Broken, "%s: the hub names another server, %s", r.op, req.URL.Host)
		}
		if c.opt.Token != "" {
			req.Header.Set("Authorization", "Bearer "+c.opt.Token)
		}
	}
	req.Header.Set("User-Agent", "ggforge")
	for name, value := range map[string]string{"Content-Type": r.kind, "Accept": r.accept} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error // whose text has the whole address
		if errors.As(err, &u) {
			err = u.Err
		}
		return a, fmt.Errorf("%s: %w", r.op, fetch.Quiet(ctx, err))
	}
	defer resp.Body.Close()
	limit := cmp.Or(r.limit, maxAnswer)
	data, err := io.ReadAll(io.LimitReader(&sent{resp.Body, alive}, limit+1))
	if resp.StatusCode >= 300 {
		return a, c.explained(r.op, resp, data)
	}
	if err != nil {
		return a, fmt.Errorf("%s: the connection broke off after %d bytes of the answer: %w", r.op, len(data),
			fetch.Quiet(ctx, err))
	}
	if int64(len(data)) > limit {
		return a, fault.Errorf(fault.Broken, "%s: the answer has more than %d bytes", r.op, limit)
	}
	return answer{resp.Header, data}, nil
}

// sent is a body of which something has to move now and then.
type sent struct {
	io.Reader
	alive func()
}

func (s *sent) Read(p []byte) (int, error) {
	s.alive()
	return s.Reader.Read(p)
}

// do makes a request, repeatedly after errors that may pass.
func (c *Client) do(ctx context.Context, r request) (a answer, err error) {
	err = c.retry(ctx, func() (err error) {
		a, err = c.once(ctx, r)
		return err
	})
	return a, err
}

// retry calls once until it is done or fails for good.
func (c *Client) retry(ctx context.Context, once func() error) error {
	return fetch.Retries{Pause: c.opt.Pause, Most: maxTries, Waits: c.opt.Waits}.Do(ctx,
		func() (int, error) { return 0, once() })
}

// explained returns the error of an answer.
func (c *Client) explained(op string, resp *http.Response, body []byte) *Error {
	e := &Error{Op: op, Status: resp.StatusCode, body: body}
	if code := resp.Header.Get("X-Error-Code"); word.MatchString(code) {
		e.Code = code
	}
	if id := resp.Header.Get("X-Request-Id"); word.MatchString(id) {
		e.Request = id
	}
	e.Message = c.clean(cmp.Or(resp.Header.Get("X-Error-Message"), messageOf(body)))
	if m := storeCode.FindSubmatch(body); m != nil && e.Code == "" {
		e.Code = string(m[1])
	}
	e.after = waitOf(resp.Header)
	return e
}

var (
	word      = regexp.MustCompile(`^[A-Za-z0-9=;:._-]{1,100}$`)
	storeCode = regexp.MustCompile(`<Code>([A-Za-z0-9.]{1,64})</Code>`)
	storeText = regexp.MustCompile(`<Message>([^<]{1,1000})</Message>`)
	queries   = regexp.MustCompile(`[?&][^\s"'<>]*`)
	// signed is a parameter of a signed address on its own, as in what a store says of a signature that does not fit.
	signed = regexp.MustCompile(`(?i)((?:X-Amz-[a-z-]+|Signature|Credential)\s*=)[^\s"'<>]*`)
	window = regexp.MustCompile(`;\s*t=([0-9]{1,6})\b`)
)

// messageOf returns the message in the body of an error: JSON of the hub or LFS, XML of the store.
func messageOf(body []byte) string {
	var v struct {
		Error   any    `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &v) == nil {
		if text, ok := v.Error.(string); ok && text != "" {
			return text
		}
		return v.Message
	}
	if m := storeText.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// clean returns a server's text for a message: short, and without the token, queries of addresses and signatures.
func (c *Client) clean(text string) string {
	if c.opt.Token != "" {
		text = strings.ReplaceAll(text, c.opt.Token, "TOKEN")
	}
	text = strings.TrimSpace(signed.ReplaceAllString(queries.ReplaceAllString(text, ""), "$1…"))
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// waitOf returns the time that a server asks to wait, 0 for none: Retry-After, or t of RateLimit
// (`"api";r=0;t=55`) where nothing remains.
func waitOf(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil {
		if m := window.FindStringSubmatch(h.Get("RateLimit")); m != nil {
			n, _ = strconv.Atoi(m[1])
		}
	}
	return time.Duration(max(0, min(n, int(maxWait/time.Second)))) * time.Second
}

// decode reads the JSON of an answer.
func decode(op string, data []byte, to any) error {
	if err := json.Unmarshal(data, to); err != nil {
		return fault.Errorf(fault.Broken, "%s: the answer is not what was asked for: want JSON of the hub", op)
	}
	return nil
}

// encoded returns a JSON body.
func encoded(v any) (size int64, body func() io.Reader) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // never: strings and numbers
	}
	return int64(len(data)), func() io.Reader { return strings.NewReader(string(data)) }
}
