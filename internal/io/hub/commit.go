package hub

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

const (
	// MaxFiles is the number of files of one commit: with more the hub may take longer than its gateway waits.
	MaxFiles = 100
	// MaxContent bounds the bytes of the files of one commit that are not in LFS, and MaxRegular those of each.
	MaxContent = 100 << 20
	MaxRegular = 10 << 20
)

// Change is a commit to make.
type Change struct {
	Summary, Description string
	Parent               string // the head that the commit comes after: with another head it is refused
	PullRequest          bool   // open a pull request instead of changing the branch
	Files                []Added
}

// Added is a file of a commit.
type Added struct {
	Path   string
	Object // of a file in LFS; else of the content
	// Content returns the content of a file that is not in LFS, nil for one that is.
	Content func() ([]byte, error)
}

// Made is a commit that the hub has made, by its own account.
type Made struct {
	Commit      string // hash
	PullRequest string // address
	Branch      string // of the pull request
}

// Commit makes a commit. It is tried once, except where the hub has not begun with it because of its rate limit: after
// another error the commit may have been made: see Unsure and Stale.
func (c *Client) Commit(ctx context.Context, r Repo, branch string, change Change) (m Made, err error) {
	op := "commit to " + r.String()
	address := c.api(r, "/commit/"+url.PathEscape(branch))
	if change.PullRequest {
		address += "?create_pr=1"
	}
	size := int64(0)
	for i := -1; i < len(change.Files); i++ {
		n, err := change.lineSize(i)
		if err != nil {
			return m, err
		}
		size += n
	}
	var a answer
	err = c.retry(ctx, func() (err error) {
		a, err = c.once(ctx, request{op: op, method: http.MethodPost, address: address, kind: "application/x-ndjson",
			size: size, body: func() io.Reader { return &commitBody{change: &change, next: -1} }, wait: hubWait})
		var e *Error
		if err != nil && !(errors.As(err, &e) && e.Status == http.StatusTooManyRequests) {
			err = &final{err}
		}
		return err
	})
	if err != nil {
		return m, err
	}
	return c.parseMade(op, a.data, change.PullRequest)
}

// parseMade reads the answer to a commit.
func (c *Client) parseMade(op string, data []byte, pullRequest bool) (m Made, err error) {
	var v struct {
		Commit string `json:"commitOid"`
		Pull   string `json:"pullRequestUrl"`
	}
	if err := decode(op, data, &v); err != nil {
		return m, err
	}
	if !commitForm.MatchString(v.Commit) {
		return m, fault.Errorf(fault.Broken, "%s: the hub's answer has no commit", op)
	}
	m = Made{Commit: v.Commit}
	if !pullRequest {
		return m, nil
	}
	m.PullRequest = shown(v.Pull)
	n, err := strconv.Atoi(m.PullRequest[strings.LastIndexByte(m.PullRequest, '/')+1:])
	if err != nil || n <= 0 {
		return m, fault.Errorf(fault.Broken, "%s: the hub's answer has no number of the pull request", op)
	}
	m.Branch = pullRequests + strconv.Itoa(n)
	return m, nil
}

// shown returns an address of a server for messages, "" for an invalid one.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return fetch.Show(u)
}

// Stale reports whether an error of Commit is about a parent that is not the head.
func Stale(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusPreconditionFailed
}

// Unsure reports whether a commit may have been made despite its error: the answer was lost, or is a gateway's.
func Unsure(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status >= 500 || e.Status == http.StatusRequestTimeout
	}
	return !fault.Has(err) && !errors.Is(err, context.Canceled)
}

// commitBody is the body of a commit: lines of JSON, made one after the other as they are sent.
type commitBody struct {
	change *Change
	next   int // the next line: -1 for the header, else the number of a file
	line   bytes.Buffer
}

func (b *commitBody) Read(p []byte) (int, error) {
	for b.line.Len() == 0 {
		if b.next == len(b.change.Files) {
			return 0, io.EOF
		}
		b.line.Reset()
		if err := b.change.appendLine(&b.line, b.next, nil); err != nil {
			return 0, err
		}
		b.next++
	}
	return b.line.Read(p)
}

// lineSize returns the size of a line.
func (c *Change) lineSize(i int) (int64, error) {
	if i < 0 || c.Files[i].Content == nil {
		var b bytes.Buffer
		err := c.appendLine(&b, i, nil)
		return int64(b.Len()), err
	}
	var b bytes.Buffer
	err := c.appendLine(&b, i, []byte{})
	return int64(b.Len()) + int64(base64.StdEncoding.EncodedLen(int(c.Files[i].Size))), err
}

// appendLine appends line i; with content, that takes the place of the file's.
func (c *Change) appendLine(b *bytes.Buffer, i int, content []byte) error {
	type line struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	l := line{Key: "header", Value: struct {
		Summary     string `json:"summary"`
		Description string `json:"description"`
		Parent      string `json:"parentCommit"`
	}{c.Summary, c.Description, c.Parent}}
	if i >= 0 {
		f := c.Files[i]
		if f.Content == nil {
			l = line{"lfsFile", struct {
				Path string `json:"path"`
				Algo string `json:"algo"`
				Object
			}{f.Path, "sha256", f.Object}}
		} else {
			if content == nil {
				var err error
				if content, err = f.Content(); err != nil {
					return err
				}
				if int64(len(content)) != f.Size {
					return fmt.Errorf("%s: %d bytes, want %d", f.Path, len(content), f.Size)
				}
			}
			l = line{"file", struct {
				Path     string `json:"path"`
				Content  []byte `json:"content"` // in base64
				Encoding string `json:"encoding"`
			}{f.Path, content, "base64"}}
		}
	}
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b.Write(data)
	b.WriteByte('\n')
	return nil
}
