package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/test/buckettest"
)

const pieceBytes = 10_000

// newClient returns a client of s that gives up on a silent connection after 5 seconds.
func newClient(t *testing.T, s *buckettest.Server) *bucket.Client {
	t.Helper()
	c, err := bucket.New(bucket.Options{Endpoint: s.URL, Stall: 5 * time.Second, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newFile makes a file of size bytes to be uploaded as key, and returns it with its content.
func newFile(t *testing.T, key string, size int) (bucket.File, []byte) {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i>>8) ^ byte(i*7) ^ byte(len(key))
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return bucket.File{Path: path, To: bucket.Name{Bucket: "out", Key: key}}, data
}

func upload(c *bucket.Client, force bool, files ...bucket.File) error {
	return c.Upload(context.Background(), files, bucket.UploadOptions{PartBytes: pieceBytes, Force: force})
}

// kind returns the kind of a request of an upload.
func kind(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("uploads"):
		return "begin"
	case q.Has("uploadId") && r.Method == "PUT":
		return "part"
	case q.Has("uploadId") && r.Method == "GET":
		return "list"
	case q.Has("uploadId") && r.Method == "POST":
		return "complete"
	}
	return r.Method
}

// TestUpload uploads to servers without some features of S3, and to servers that fail now and then.
func TestUpload(t *testing.T) {
	for name, set := range map[string]func(s *buckettest.Server){
		"plain":   func(s *buckettest.Server) {},
		"no-sums": func(s *buckettest.Server) { s.NoSums = true },
		"busy": func(s *buckettest.Server) { // each request three times
			var tries sync.Map
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				n, _ := tries.LoadOrStore(r.Method+r.URL.String(), new(atomic.Int64))
				switch n.(*atomic.Int64).Add(1) {
				case 1:
					buckettest.Fail(w, 503, "SlowDown")
				case 2:
					buckettest.Fail(w, 500, "InternalError")
				default:
					return false
				}
				return true
			})
		},
		"breaks-off": func(s *buckettest.Server) {
			var n atomic.Int64
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "part" && n.Add(1)%2 == 1 {
					io.CopyN(io.Discard, r.Body, pieceBytes/2)
					panic(http.ErrAbortHandler)
				}
				return false
			})
		},
		"damages": func(s *buckettest.Server) { // the bytes received may differ from those sent
			var n atomic.Int64
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "part" && n.Add(1)%3 == 1 {
					body, _ := io.ReadAll(r.Body)
					body[7] ^= 1
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				return false
			})
		},
		"no-whole": func(s *buckettest.Server) {
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				refused := kind(r) == "complete" && r.Header.Get("X-Amz-Checksum-Crc32c") != ""
				if refused {
					buckettest.Fail(w, 400, "InvalidRequest")
				}
				return refused
			})
		},
		"no-conditions": func(s *buckettest.Server) {
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				refused := kind(r) == "complete" && r.Header.Get("If-None-Match") != ""
				if refused {
					buckettest.Fail(w, 501, "NotImplemented")
				}
				return refused
			})
		},
		"no-conditions-400": func(s *buckettest.Server) {
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				refused := kind(r) == "complete" && r.Header.Get("If-None-Match") != ""
				if refused {
					buckettest.Fail(w, 400, "NotImplemented")
				}
				return refused
			})
		},
		"conflict": func(s *buckettest.Server) { // another request about the same object came at the same time
			var n atomic.Int64
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				conflict := kind(r) == "complete" && n.Add(1) == 1
				if conflict {
					buckettest.Fail(w, 409, "ConditionalRequestConflict")
				}
				return conflict
			})
		},
		"silent-once": func(s *buckettest.Server) { // it makes the object, but does not answer
			done := false
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "complete" && !done {
					done = true
					s.ServeHTTP(discard{http.Header{}}, r)
					panic(http.ErrAbortHandler)
				}
				return false
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := buckettest.Serve(t, "", "")
			set(s)
			c := newClient(t, s)
			one, data := newFile(t, "a/one", 5*pieceBytes+1)
			two, more := newFile(t, "a/two", pieceBytes-1)
			// a part that comes damaged is refused for good: nothing suggests that another try would help
			if name == "damages" {
				if err := upload(c, false, one, two); err == nil || status(err) == "" || len(s.Names()) > 0 {
					t.Fatalf("%v, objects %v", err, s.Names())
				}
				s.SetAnswer(nil)
			}
			if err := upload(c, false, one, two); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(s.Get("out/a/one"), data) || !bytes.Equal(s.Get("out/a/two"), more) || s.Uploads() > 0 {
				t.Errorf("objects %v, %d uploads left", s.Names(), s.Uploads())
			}
			if left, err := os.ReadDir(filepath.Dir(one.Path)); err != nil || len(left) != 1 {
				t.Errorf("left next to the file: %v %v", left, err)
			}
		})
	}
}

// status returns the status of a server's answer.
func status(err error) string {
	_, text, _ := strings.Cut(err.Error(), "the server answers ")
	return text
}

// discard is a ResponseWriter that drops the answer.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// TestUploadExists checks that an existing object is not replaced.
func TestUploadExists(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	c := newClient(t, s)
	f, data := newFile(t, "x", 3*pieceBytes)
	other := make([]byte, len(data))
	s.Put("out/x", other)
	if err := upload(c, false, f); !errors.Is(err, fs.ErrExist) || !errors.Is(err, fault.Usage) || s.Parts() > 0 {
		t.Errorf("%v after %d parts, want an error about an object that exists, before any", err, s.Parts())
	}
	if err := upload(c, true, f); err != nil || !bytes.Equal(s.Get("out/x"), data) {
		t.Errorf("with force: %v", err)
	}
	before := s.Parts()
	if err := upload(c, false, f); err != nil || s.Parts() > before {
		t.Errorf("the same again: %v, %d parts sent", err, s.Parts()-before)
	}
	// an object that appears while the parts are sent
	f, _ = newFile(t, "y", 3*pieceBytes)
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if kind(r) == "complete" {
			s.Put("out/y", other)
		}
		return false
	})
	if err := upload(c, false, f); !errors.Is(err, fs.ErrExist) || !bytes.Equal(s.Get("out/y"), other) {
		t.Errorf("%v, want an error about an object that exists, and that object", err)
	}
}

// TestUploadResumes interrupts uploads and resumes them.
func TestUploadResumes(t *testing.T) {
	for name, c := range map[string]struct {
		noSums  bool
		between func(s *buckettest.Server, f bucket.File)
		parts   int // sent the second time
	}{
		"goes-on":         {parts: 3},
		"goes-on-no-sums": {noSums: true, parts: 4}, // one of the three was sent twice
		"other-parts":     {between: func(s *buckettest.Server, f bucket.File) { s.Spoil() }, parts: 6},
		"other-parts-no-sums": {noSums: true, parts: 6, between: func(s *buckettest.Server, f bucket.File) {
			s.Spoil()
		}},
		"forgotten": {parts: 6, between: func(s *buckettest.Server, f bucket.File) { s.Forget() }},
		"no-state": {parts: 6, between: func(s *buckettest.Server,
			f bucket.File) {
			os.Remove(f.Path + bucket.StateSuffix)
		}},
		"bad-state": {parts: 6, between: func(s *buckettest.Server, f bucket.File) {
			os.WriteFile(f.Path+bucket.StateSuffix, []byte(`{"upload_id": 3`), 0o600)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := buckettest.Serve(t, "", "")
			s.NoSums, s.Page = c.noSums, 2
			client := newClient(t, s)
			f, data := newFile(t, "x", 5*pieceBytes+1)
			ctx, cancel := context.WithCancel(context.Background())
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "part" && s.Parts() == 3 {
					cancel()
					panic(http.ErrAbortHandler)
				}
				return false
			})
			err := client.Upload(ctx, []bucket.File{f}, bucket.UploadOptions{PartBytes: pieceBytes, Workers: 1})
			if !errors.Is(err, context.Canceled) || len(s.Names()) > 0 || s.Uploads() != 1 {
				t.Fatalf("%v, objects %v, %d uploads", err, s.Names(), s.Uploads())
			}
			s.SetAnswer(nil)
			state, err := os.ReadFile(f.Path + bucket.StateSuffix)
			if err != nil || bytes.Contains(state, []byte("test-")) {
				t.Errorf("the state: %s %v", state, err)
			}
			if c.between != nil {
				c.between(s, f)
			}
			before := s.Parts()
			if err := upload(client, false, f); err != nil {
				t.Fatal(err)
			}
			if got := s.Parts() - before; got != c.parts || !bytes.Equal(s.Get("out/x"), data) {
				t.Errorf("%d parts were sent, want %d; the object is the file: %v", got, c.parts,
					bytes.Equal(s.Get("out/x"), data))
			}
		})
	}
}

// TestUploadOrder checks that the first file's object appears last.
func TestUploadOrder(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	c := newClient(t, s)
	first, _ := newFile(t, "1", pieceBytes)
	second, _ := newFile(t, "2", 2*pieceBytes)
	third, _ := newFile(t, "3", pieceBytes)
	parts := 0 // when the first object is made
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if kind(r) == "complete" && parts == 0 {
			parts = s.Parts()
		}
		failed := kind(r) == "complete" && strings.HasSuffix(r.URL.Path, "/1")
		if failed {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return failed
	})
	err := upload(c, false, first, second, third)
	if !errors.Is(err, fs.ErrPermission) || strings.Join(s.Names(), " ") != "out/2 out/3" || parts != 4 {
		t.Errorf("%v, objects %v, %d parts before the first of them", err, s.Names(), parts)
	}
	s.SetAnswer(nil)
	if err := upload(c, false, first, second, third); err != nil || len(s.Names()) != 3 || s.Parts() != 4 {
		t.Errorf("again: %v, objects %v, %d parts", err, s.Names(), s.Parts())
	}
}

// TestUploadRefuses checks files that cannot be uploaded, and wrong answers of servers.
func TestUploadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool
		text   string
	}{
		"stores-other": {func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool {
			if kind(r) == "part" {
				w.Header().Set("ETag", `"x"`)
				w.Header().Set("X-Amz-Checksum-Crc32c", "AAAAAA==")
			}
			return kind(r) == "part"
		}, "the server has stored something else"},
		"object-other": {func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool {
			if kind(r) == "HEAD" && s.Get("out/x") != nil {
				s.Put("out/x", []byte("other"))
			}
			return false
		}, "is not the file"},
		"changes": {func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool {
			if kind(r) == "part" {
				os.Chtimes(f.Path, time.Time{}, time.Unix(1, 0))
			}
			return false
		}, "changed while it was read"},
		"list-endless": {func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool {
			if kind(r) == "list" {
				w.Write([]byte("<ListPartsResult><IsTruncated>true</IsTruncated></ListPartsResult>"))
			}
			return kind(r) == "list"
		}, "does not end"},
		"error-in-success": {func(s *buckettest.Server, w http.ResponseWriter, r *http.Request, f bucket.File) bool {
			if kind(r) == "complete" {
				w.Write([]byte("<Error><Code>InternalError</Code><Message>We\x07 failed</Message></Error>"))
			}
			return kind(r) == "complete"
		}, "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			s := buckettest.Serve(t, "", "")
			client := newClient(t, s)
			f, _ := newFile(t, "x", 3*pieceBytes)
			if name == "list-endless" { // there has to be an upload
				s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if kind(r) == "part" {
						buckettest.Fail(w, 403, "AccessDenied")
					}
					return kind(r) == "part"
				})
				if err := upload(client, false, f); !errors.Is(err, fs.ErrPermission) {
					t.Fatal(err)
				}
			}
			s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool { return c.answer(s, w, r, f) })
			if err := upload(client, false, f); err == nil || !strings.Contains(err.Error(), c.text) ||
				strings.Contains(err.Error(), "\x07") {
				t.Errorf("%v, want an error with %q", err, c.text)
			}
		})
	}
}

// TestIncomplete lists incomplete uploads and aborts them: those of a folder, or of one object.
func TestIncomplete(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	s.Page = 2
	c := newClient(t, s)
	noParts := func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if kind(r) == "part" {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return kind(r) == "part"
	}
	s.SetAnswer(noParts)
	begin := func(key string) {
		f, _ := newFile(t, key, 10)
		if err := upload(c, false, f); err == nil {
			t.Fatal("uploaded")
		}
	}
	for _, key := range []string{"a/1", "a/2", "a/b/3", "c/4", "c/40"} {
		begin(key)
	}
	list, err := c.Incomplete(t.Context(), bucket.Name{Bucket: "out", Key: "a"})
	if err != nil || len(list) != 3 || list[2].Name.String() != "s3://out/a/b/3" || list[0].Begun.IsZero() {
		t.Fatalf("%v %v", list, err)
	}
	for _, u := range list {
		if err := c.Abort(t.Context(), u); err != nil {
			t.Error(err)
		}
	}
	if s.Uploads() != 2 {
		t.Errorf("%d uploads left, want 2, those of another folder", s.Uploads())
	}
	four := bucket.Name{Bucket: "out", Key: "c/4"}
	if err := c.Sweep(t.Context(), four); err != nil || s.Uploads() != 2 {
		t.Errorf("%v, %d uploads left, want 2: they began after the client", err, s.Uploads())
	}
	if err := newClient(t, s).Sweep(t.Context(), four); err != nil || s.Uploads() != 1 {
		t.Errorf("%v, %d uploads left, want 1, that of another object", err, s.Uploads())
	}
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		buckettest.Fail(w, 403, "AccessDenied")
		return true
	})
	if err := c.Sweep(t.Context(), four); err != nil {
		t.Errorf("uploads that we may not list: %v", err)
	}
	s.Forget()
	s.SetAnswer(noParts)
	for range 3 {
		begin("c/4")
	}
	aborts := 0
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		refused := false
		if r.Method == "DELETE" {
			refused = aborts == 0
			aborts++
		}
		if refused {
			buckettest.Fail(w, 404, "NoSuchUpload") // another process has aborted it
		}
		return refused
	})
	if err := newClient(t, s).Sweep(t.Context(), four); err != nil || aborts != 3 || s.Uploads() != 1 {
		t.Errorf("%v, %d of 3 uploads tried, %d left, want the one that is refused", err, aborts, s.Uploads())
	}
}

// TestEnvironment checks the variables of the environment, and that New refuses bad endpoints.
func TestEnvironment(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "http://one")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://two")
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "here")
	if got := bucket.Environment(); got.Endpoint != "http://two" || got.Region != "here" {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"two", "ftp://two", "http://user:secret@two", "http://two/path", "http://two?x"} {
		if _, err := bucket.New(bucket.Options{Endpoint: bad}); !errors.Is(err, fault.Usage) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
