// Package bucket reads and writes objects of servers that speak the protocol of S3:
// Client serves package fetch for addresses s3://BUCKET/KEY, lists, and uploads files.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// Options are the server, and the time to wait for it. Keys come from the usual places of S3 tools: the environment,
// the file of credentials (the profile of AWS_PROFILE), the role of the container or machine. Without any, requests are
// not signed, which suffices for public objects.
type Options struct {
	// Endpoint is the server's address, without a path: default DefaultEndpoint. Only http://
	// goes without encryption.
	Endpoint string
	// Region is where buckets are; default: the server is asked.
	Region string
	// Stall is how long to wait for a server that does nothing; default a minute.
	Stall time.Duration
	// Pause is the time before the first retry, doubled for each further one; default
	// half a second.
	Pause time.Duration
}

// DefaultEndpoint is the server if no setting names another one.
const DefaultEndpoint = "https://s3.amazonaws.com"

// Environment returns Options from the variables of other tools: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and
// AWS_REGION or AWS_DEFAULT_REGION.
func Environment() Options {
	return Options{
		Endpoint: cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")),
		Region:   cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
	}
}

// The library pauses after its last try, too, which is the only one here.
func init() { minio.DefaultRetryUnit = 0 }

// Client speaks to a server. Its methods may be called by many goroutines at once.
type Client struct {
	opt       Options
	core      *minio.Core
	transport *http.Transport
	old       atomic.Bool // the server knows no checksums of pieces but MD5
	made      time.Time
}

// New returns a client. Nothing is sent.
func New(opt Options) (*Client, error) {
	opt.Endpoint = cmp.Or(strings.TrimSuffix(opt.Endpoint, "/"), DefaultEndpoint)
	u, err := url.Parse(opt.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Path != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Errorf(fault.Usage,
			"the address of the server of objects (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL): want https://HOST or "+
				"http://HOST, without user and path")
	}
	if opt.Region == "" && opt.Endpoint != DefaultEndpoint {
		opt.Region = "us-east-1" // the answer of servers without regions
	}
	opt.Stall, opt.Pause = cmp.Or(opt.Stall, time.Minute), cmp.Or(opt.Pause, time.Second/2)
	c := &Client{opt: opt, transport: http.DefaultTransport.(*http.Transport).Clone(), made: time.Now()}
	c.transport.MaxIdleConnsPerHost = 16
	c.transport.DisableCompression = true // ranges count stored bytes
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		dial := net.Dialer{Timeout: time.Second} // on machines without roles there is no server that answers
		roles := http.DefaultTransport.(*http.Transport).Clone()
		roles.DialContext = dial.DialContext
		providers = append(providers, &credentials.IAM{Client: &http.Client{Transport: roles,
			Timeout: 10 * time.Second}})
	}
	c.core, err = minio.NewCore(u.Host, &minio.Options{
		Creds:      credentials.NewChainCredentials(providers),
		Secure:     u.Scheme == "https",
		Transport:  bounded{fetch.Bounded(c.transport)},
		Region:     opt.Region,
		MaxRetries: 1, // the loop of package fetch does that
	})
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "the server of objects: %w", err)
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// answer is an error that a server has answered with.
type answer struct {
	name    string // of the object, or the bucket
	status  int    // 0 for an answer that began as a success
	code    string // of S3: NoSuchKey
	message string // where there is no status
}

// words matches error codes of S3. Messages do not show other text of a server.
var words = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

func (e *answer) text() string {
	if e.status == 0 {
		return strings.TrimPrefix(fmt.Sprintf("%s %.200q", e.code, e.message), " ")
	}
	text := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	if e.code == "PermanentRedirect" || e.code == "AuthorizationHeaderMalformed" {
		text += "; set AWS_REGION to the bucket's region"
	}
	return text
}

func (e *answer) Error() string { return fmt.Sprintf("%s: the server answers %s", e.name, e.text()) }

// Is makes a missing object or bucket an fs.ErrNotExist, and one without access an fs.ErrPermission.
func (e *answer) Is(target error) bool {
	switch e.status {
	case http.StatusNotFound:
		return target == fs.ErrNotExist
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == fs.ErrPermission
	}
	return false
}

// Again reports whether the same request may succeed later.
func (e *answer) Again() bool {
	return e.status == http.StatusRequestTimeout || e.status == http.StatusTooManyRequests ||
		e.status >= 500 && e.status != http.StatusNotImplemented ||
		e.code == "RequestTimeout" || e.code == "SlowDown" || e.code == "ConditionalRequestConflict" || e.status == 0
}

// explained returns an error of the library as one of ours about the object or bucket of that name.
func explained(err error, name string) error {
	if err == nil {
		return nil
	}
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return fmt.Errorf("%s: %w", name, err)
	}
	a := &answer{name: name, status: r.StatusCode}
	if words.MatchString(r.Code) {
		a.code = r.Code
	}
	if a.status < 300 {
		a.status, a.message = 0, r.Message
	}
	return a
}

// IsDenied reports whether err is the answer of a server that refuses access.
func IsDenied(err error) bool {
	var a *answer
	return errors.As(err, &a) && a.Is(fs.ErrPermission)
}

// Denied adds the usual places of keys to an error about access.
func Denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf(
			"%w; keys are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the file of credentials "+
				"(AWS_PROFILE) or the machine's role", err)
	}
	return err
}

// retry calls once until it succeeds or fails for good. once returns the number of bytes transferred.
func (c *Client) retry(ctx context.Context, once func() (int, error)) error {
	return Denied(fetch.Retry(ctx, c.opt.Pause, once))
}
