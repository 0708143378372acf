package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
)

// lfsKind is the media type of Git LFS.
const lfsKind = "application/vnd.git-lfs+json"

// MaxObject is the largest file that the hub takes over LFS, in bytes.
const MaxObject = 50_000_000_000

const (
	// MaxObjects is the largest number of objects of one Batch.
	MaxObjects = 100
	// maxParts is the largest number of parts of an object, as in Amazon S3.
	maxParts = 10_000
	// maxAddress bounds the length of an address, and maxTag that of the tag of a part.
	maxAddress = 8 << 10
	maxTag     = 1 << 10
)

// Object is a file by its content.
type Object struct {
	SHA256 string `json:"oid"` // hexadecimal
	Size   int64  `json:"size"`
}

// Grant is the store's permission to send an object: addresses that hold for a time, with signatures. It is as secret
// as a token.
type Grant struct {
	Object
	There    bool     `json:"there,omitempty"`    // the store has the object: nothing to send
	Put      string   `json:"put,omitempty"`      // the address of an object that is sent at once
	Part     int64    `json:"part,omitempty"`     // bytes of each part but the last one
	Parts    []string `json:"parts,omitempty"`    // the addresses of parts
	Complete string   `json:"complete,omitempty"` // the address that makes the object of its parts
	Verify   string   `json:"verify,omitempty"`   // the address that is told of the object; "" for none
}

// Span returns where part n, from 0, is in the file.
func (g *Grant) Span(n int) (off, size int64) {
	off = int64(n) * g.Part
	return off, min(g.Part, g.Size-off)
}

// Check returns an error of kind fault.Broken unless the grant is for an object of these bytes, with as many parts as
// the object has, and addresses with encryption if secure.
func (g *Grant) Check(o Object, secure bool) error {
	wrong := func(format string, args ...any) error {
		return fault.Errorf(fault.Broken, "the permission to send object %.8s…: "+format,
			append([]any{o.SHA256}, args...)...)
	}
	if g.Object != o {
		return wrong("it is for another object")
	}
	if g.There {
		return nil
	}
	addresses := []string{g.Put}
	if g.Put == "" {
		if g.Part <= 0 || len(g.Parts) > maxParts || int64(len(g.Parts)) != (g.Size-1)/g.Part+1 {
			return wrong("%d parts of %d bytes for %d bytes", len(g.Parts), g.Part, g.Size)
		}
		addresses = append(slices.Clone(g.Parts), g.Complete)
	}
	if g.Verify != "" {
		addresses = append(addresses, g.Verify)
	}
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil || len(a) > maxAddress || u.Host == "" || u.User != nil ||
			u.Scheme != "https" && (secure || u.Scheme != "http") {
			return wrong("an address in it is invalid, or without encryption")
		}
	}
	return nil
}

// Secure reports whether the hub is asked with encryption, so that the store has to be, too.
func (c *Client) Secure() bool { return c.endpoint.Scheme == "https" }

// needsXet is the end of an error about a server that takes no LFS.
const needsXet = "this server takes large files over Xet only, which this program does not have yet"

// Batch asks for permission to send objects, at most MaxObjects, each once. The answer has them in the same order.
// branch is "" for a pull request. An object that the hub refuses is an error of kind fault.Refused.
func (c *Client) Batch(ctx context.Context, r Repo, branch string, objects []Object) ([]Grant, error) {
	const op = "ask for permission to send files"
	v := map[string]any{"operation": "upload", "transfers": []string{"basic", "multipart"}, "hash_algo": "sha256",
		"objects": objects}
	if branch != "" {
		v["ref"] = map[string]string{"name": branch}
	}
	size, body := encoded(v)
	a, err := c.do(ctx, request{op: op, method: http.MethodPost, kind: lfsKind, accept: lfsKind, size: size, body: body,
		limit: maxBatch, wait: hubWait, address: c.endpoint.String() + "/" + r.String() + ".git/info/lfs/objects/batch"})
	if err != nil {
		var e *Error
		if errors.As(err, &e) && errors.Is(err, fault.Refused) && strings.Contains(strings.ToLower(e.Message), "xet") {
			err = fault.Errorf(fault.Unsupported, "%w; %s", err, needsXet)
		}
		return nil, err
	}
	return c.parseBatch(op, objects, a.data)
}

// objectActions is the answer about an object.
type objectActions struct {
	Object
	Actions map[string]struct {
		Href   string            `json:"href"`
		Header map[string]string `json:"header"`
	} `json:"actions"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// parseBatch reads the answer about some objects.
func (c *Client) parseBatch(op string, objects []Object, data []byte) ([]Grant, error) {
	var v struct {
		Transfer string          `json:"transfer"`
		Objects  []objectActions `json:"objects"`
	}
	if err := decode(op, data, &v); err != nil {
		return nil, err
	}
	if v.Transfer == "xet" {
		return nil, fault.Errorf(fault.Unsupported, "%s: %s", op, needsXet)
	}
	grants := make([]Grant, len(objects))
	for i, o := range objects {
		at := slices.IndexFunc(v.Objects, func(a objectActions) bool { return a.SHA256 == o.SHA256 })
		if at < 0 {
			return nil, fault.Errorf(fault.Broken, "%s: the hub does not answer for object %.8s…", op, o.SHA256)
		}
		found := v.Objects[at]
		if e := found.Error; e != nil {
			text := c.clean(e.Message)
			err := fault.Errorf(fault.Refused, "%s: the hub refuses object %.8s… of %d bytes: %d %q", op, o.SHA256,
				o.Size, e.Code, text)
			if strings.Contains(strings.ToLower(text), "xet") {
				err = fmt.Errorf("%w; %s", err, needsXet)
			}
			return nil, err
		}
		if found.Size == 0 {
			found.Size = o.Size // it may be left out
		}
		g := Grant{Object: found.Object, Verify: found.Actions["verify"].Href}
		up, send := found.Actions["upload"]
		switch {
		case !send:
			g.There = true
		case up.Header["chunk_size"] == "":
			g.Put = up.Href
		default:
			var err error
			if g.Part, g.Parts, err = partsOf(up.Header); err != nil {
				return nil, fmt.Errorf("%s: %w", op, err)
			}
			g.Complete = up.Href
		}
		if err := g.Check(o, c.Secure()); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		grants[i] = g
	}
	return grants, nil
}

// partsOf returns size and addresses of parts: the values of "chunk_size", and of "00001", "00002", …
func partsOf(header map[string]string) (size int64, parts []string, err error) {
	size, err = strconv.ParseInt(header["chunk_size"], 10, 64)
	if err != nil || size <= 0 {
		return 0, nil, fault.Errorf(fault.Broken, "the size of parts is %.40q, want a number", header["chunk_size"])
	}
	byNumber := map[int]string{}
	for _, key := range slices.Sorted(maps.Keys(header)) {
		if n, err := strconv.Atoi(key); err == nil {
			byNumber[n] = header[key]
		}
	}
	for n := 1; n <= len(byNumber); n++ {
		address, ok := byNumber[n]
		if !ok {
			return 0, nil, fault.Errorf(fault.Broken, "there is no address of part %d of %d", n, len(byNumber))
		}
		parts = append(parts, address)
	}
	return size, parts, nil
}

// ErrGone is the cause of an error about a permission that no longer holds: its addresses have expired, or the store
// has forgotten the parts. The object has to be sent from its beginning with another.
var ErrGone = errors.New("the permission to send it has expired")

// Put sends size bytes to an address of a Grant, again from the beginning after errors that may pass, and returns the
// tag that the store gives a part. what names the bytes in errors. body returns the bytes from their beginning; an
// error of its readers of a kind of package fault ends the call.
func (c *Client) Put(ctx context.Context, what, address string, size int64, body func() io.Reader) (tag string,
	err error) {
	expired := 0
	r := request{op: "send " + what, method: http.MethodPut, address: address, size: size, body: body, foreign: true,
		wait: partWait}
	err = c.retry(ctx, func() error {
		a, err := c.once(ctx, r)
		var e *Error
		if errors.As(err, &e) {
			switch e.Status {
			case http.StatusForbidden:
				if expired++; expired == 1 {
					return &passing{err} // a gateway's, perhaps: the address alone is not worth all parts
				}
				return fmt.Errorf("%w (%w)", &final{ErrGone}, err)
			case http.StatusNotFound, http.StatusGone:
				return fmt.Errorf("%w (%w)", &final{ErrGone}, err)
			}
		}
		if err != nil {
			return err
		}
		tag = a.header.Get("ETag")
		if len(tag) > maxTag {
			return fault.Errorf(fault.Broken, "%s: the store's tag has %d bytes", r.op, len(tag))
		}
		return nil
	})
	return tag, err
}

// PutPart is Put of a part, whose tag is needed.
func (c *Client) PutPart(ctx context.Context, what, address string, size int64, body func() io.Reader) (tag string,
	err error) {
	for range maxTries {
		if tag, err = c.Put(ctx, what, address, size, body); err != nil || tag != "" {
			return tag, err
		}
	}
	return "", fmt.Errorf("send %s: the store takes it and gives no tag for it (tried %d times)", what, maxTries)
}

// passing is an error after which the same request is made again, final one after which it is not.
type (
	passing struct{ error }
	final   struct{ error }
)

func (p *passing) Again() bool   { return true }
func (p *passing) Unwrap() error { return p.error }
func (f *final) Again() bool     { return false }
func (f *final) Unwrap() error   { return f.error }

// Finish makes an object of its parts, whose tags are in their order, and tells the hub of it. For an object that was
// sent at once tags is nil. ErrGone is the cause if the parts are not those of the object.
func (c *Client) Finish(ctx context.Context, r Repo, g *Grant, tags []string) error {
	if g.Complete != "" {
		if err := c.complete(ctx, g, tags); err != nil {
			return err
		}
	}
	if g.Verify == "" {
		return nil
	}
	u, err := url.Parse(g.Verify)
	if err != nil {
		return err // never: Check has parsed it
	}
	size, body := encoded(g.Object)
	_, err = c.do(ctx, request{op: "have the hub check an object", method: http.MethodPost, address: g.Verify,
		kind: lfsKind, accept: lfsKind, size: size, body: body, foreign: !c.ours(u)})
	return err
}

func (c *Client) complete(ctx context.Context, g *Grant, tags []string) error {
	type part struct {
		Number int    `json:"partNumber"`
		Tag    string `json:"etag"`
	}
	parts := make([]part, len(tags))
	for i, tag := range tags {
		parts[i] = part{i + 1, tag}
	}
	size, body := encoded(map[string]any{"oid": g.SHA256, "parts": parts})
	_, err := c.do(ctx, request{op: "put the parts of an object together", method: http.MethodPost, address: g.Complete,
		kind: lfsKind, accept: lfsKind, size: size, body: body, foreign: true, wait: completeWait})
	var e *Error
	if errors.As(err, &e) {
		switch e.Status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone,
			http.StatusUnprocessableEntity:
			return fmt.Errorf("%w (%w)", ErrGone, err)
		}
	}
	return err
}
