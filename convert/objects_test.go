package convert_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggforge/checkpoint"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/buckettest"
)

// objects makes a server with the model as s3://models/some/gollama, and the options to read it.
func objects(t *testing.T, dir string) (*buckettest.Server, convert.Options) {
	s := buckettest.Serve(t, dir, "models/some/gollama/")
	s.Page = 3
	return s, convert.Options{Remote: checkpoint.Remote{S3Endpoint: s.URL, Stall: 5 * time.Second,
		Pause: time.Millisecond}}
}

// TestObjects converts a model whose files are objects, from servers that fail now and then.
func TestObjects(t *testing.T) {
	eachForm(t, func(t *testing.T, dir string, want []byte) {
		for name, make := range map[string]func() answer{
			"plain": func() answer { return nil },
			"busy": func() answer {
				var c tries
				return func(n int64, w http.ResponseWriter, r *http.Request) bool {
					switch c.of(r) {
					case 1:
						buckettest.Fail(w, 503, "SlowDown")
					case 2:
						buckettest.Fail(w, 500, "InternalError")
					default:
						return false
					}
					return true
				}
			},
			"breaks-off": func() answer {
				var c tries
				return func(n int64, w http.ResponseWriter, r *http.Request) bool {
					if c.of(r) > 1 || r.Header.Get("Range") == "" {
						return false
					}
					w.Header().Set("Content-Length", "100000")
					w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/1000000000")
					w.WriteHeader(http.StatusPartialContent)
					panic(http.ErrAbortHandler)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				s, opt := objects(t, dir)
				if a := make(); a != nil {
					s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool { return a(int64(n), w, r) })
				}
				got, err := convertTo(t, t.Context(), "s3://models/some/gollama", opt)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Error("differs from the file of the directory")
				}
			})
		}
	})
}

// TestObjectsKept reads an object's parts from the folder that kept them.
func TestObjectsKept(t *testing.T) {
	s, opt := objects(t, gollamaDir)
	opt.Remote.Cache = filepath.Join(t.TempDir(), "cache")
	want, err := convertTo(t, t.Context(), "s3://models/some/gollama", opt)
	if err != nil {
		t.Fatal(err)
	}
	weights := 0
	s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool {
		if isWeights(r) {
			weights++
		}
		return false
	})
	got, err := convertTo(t, t.Context(), "s3://models/some/gollama/", opt)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the second time: %v", err)
	}
	if weights > 0 {
		t.Errorf("%d requests for weights that were kept", weights)
	}
}

// TestObjectsAnonymous reads public objects without keys.
func TestObjectsAnonymous(t *testing.T) {
	s, opt := objects(t, gollamaDir)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := convertTo(t, t.Context(), "s3://models/some/gollama", opt); !errors.Is(err, fs.ErrPermission) ||
		!strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("%v, want an error about access and where keys come from", err)
	}
	s.Anonymous = true
	if _, err := convertTo(t, t.Context(), "s3://models/some/gollama", opt); err != nil {
		t.Error(err)
	}
}

// TestObjectsWrong checks answers of servers that cannot be used.
func TestObjectsWrong(t *testing.T) {
	listing := func(text string) answer {
		return func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("list-type") {
				return false
			}
			w.Write([]byte("<ListBucketResult>" + text))
			return true
		}
	}
	const file = "<Contents><Key>some/gollama/config.json</Key><ETag>x</ETag></Contents>"
	for name, c := range map[string]struct {
		at     string // default s3://models/some/gollama
		answer answer
		kind   error
		text   string
	}{
		"changes": {"", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if isWeights(r) {
				w.Header().Set("ETag", `"other"`)
				w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
				w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"/13251080")
				w.WriteHeader(http.StatusPartialContent)
			}
			return isWeights(r)
		}, fault.Broken, "has changed while it was read"},
		"listing-cut": {"", listing(file), nil, "EOF"},
		"listing-endless": {"",
			listing("<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>" + file +
				"</ListBucketResult>"), fault.Broken, "twice"},
		"listing-stops": {"", listing("<IsTruncated>true</IsTruncated>" + file + "</ListBucketResult>"), nil,
			"continuation token"},
		"listing-other": {"", listing("<Contents><Key>other/config.json</Key></Contents></ListBucketResult>"),
			fault.Broken, "not in this folder"},
		"listing-out": {"", listing("<Contents><Key>some/gollama/../x</Key></Contents></ListBucketResult>"),
			fault.Unsupported, "no name of a file"},
		"no-bucket": {"", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			buckettest.Fail(w, 404, "NoSuchBucket")
			return true
		}, fs.ErrNotExist, "404 Not Found (NoSuchBucket)"},
		"noise": {"", func(n int64, w http.ResponseWriter, r *http.Request) bool {
			buckettest.Fail(w, 400, "\x1b[31mred")
			return true
		}, nil, "400 Bad Request"},
		"empty":     {"s3://models/some/other", nil, fs.ErrNotExist, "no objects there"},
		"name":      {"s3://", nil, fault.Usage, "want s3://BUCKET/KEY"},
		"name-dots": {"s3://models/../other", nil, fault.Usage, "want s3://BUCKET/KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			s, opt := objects(t, gollamaDir)
			if c.answer != nil {
				s.SetAnswer(func(n int, w http.ResponseWriter,
					r *http.Request) bool {
					return c.answer(int64(n), w, r)
				})
			}
			if c.at == "" {
				c.at = "s3://models/some/gollama"
			}
			_, err := convertTo(t, t.Context(), c.at, opt)
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) ||
				strings.ContainsAny(err.Error(), "\x1b") {
				t.Errorf("%v, want one of kind %v with %q", err, c.kind, c.text)
			}
		})
	}
}
