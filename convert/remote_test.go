package convert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/checkpoint"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
	"ggforge/writer"
)

const gollamaDir = "../test/testdata/gollama"

// forms returns folders with the model, by the format of the weights.
func forms(t *testing.T) map[string]string {
	t.Helper()
	pickle := filepath.Join(t.TempDir(), filepath.Base(gollamaDir))
	if err := os.CopyFS(pickle, os.DirFS(gollamaDir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(pickle, "model.safetensors")
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	list := torchfiletest.Of(f)
	f.Close()
	half := len(list) / 2 // stored transposed, so that they are copied to the disk first
	list = append(torchfiletest.Transposed(list[:half]), list[half:]...)
	if err := errors.Join(os.Remove(path), torchfiletest.Write(filepath.Join(pickle, "pytorch_model.bin"),
		list)); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"safetensors": gollamaDir, "pickle": pickle}
}

// eachForm calls f with every one of forms and the file that the directory gives.
func eachForm(t *testing.T, f func(t *testing.T, dir string, want []byte)) {
	for form, dir := range forms(t) {
		t.Run(form, func(t *testing.T) {
			want, err := convertTo(t, t.Context(), dir, convert.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f(t, dir, want)
		})
	}
}

// convertTo converts the model at name and returns the file.
func convertTo(t *testing.T, ctx context.Context, name string, opt convert.Options) ([]byte, error) {
	t.Helper()
	opt.Type, opt.Override = convert.F16, filepath.Join(t.TempDir(), "names.json")
	if err := os.WriteFile(opt.Override, []byte(`{"general.name": "x", "general.organization": "y"}`),
		0o666); err != nil {
		t.Fatal(err)
	}
	job, err := convert.Prepare(ctx, name, opt)
	if err != nil {
		return nil, err
	}
	defer job.Close()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if _, err := job.Write(ctx, path, writer.Options{Workers: 4}); err != nil {
		if _, e := os.Stat(path); e == nil {
			t.Errorf("there is an output after %v", err)
		}
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, nil
}

// impatient reads from a hub without long pauses.
func impatient(hub *hubtest.Hub) convert.Options {
	return convert.Options{Remote: checkpoint.Remote{Endpoint: hub.URL, Stall: 5 * time.Second,
		Pause: time.Millisecond}}
}

// tries counts the requests for each range of each file.
type tries struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tries) of(r *http.Request) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	key := r.URL.Path + r.Header.Get("Range")
	c.n[key]++
	return c.n[key]
}

type answer = func(n int64, w http.ResponseWriter, r *http.Request) bool

// isWeights reports whether a request is for a part of the weights that is not their
// beginning.
func isWeights(r *http.Request) bool {
	return (strings.HasSuffix(r.URL.Path, ".safetensors") || strings.HasSuffix(r.URL.Path, ".bin")) &&
		!strings.HasPrefix(r.Header.Get("Range"), "bytes=0-")
}

// cutter breaks a connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		c.ResponseWriter.Write(p[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// TestRemoteTrouble checks that ordinary failures of servers and connections only cost time.
func TestRemoteTrouble(t *testing.T) { eachForm(t, remoteTrouble) }

func remoteTrouble(t *testing.T, dir string, want []byte) {
	twice := func(status int) func() answer {
		return func() answer {
			var c tries
			return func(n int64, w http.ResponseWriter, r *http.Request) bool {
				if c.of(r) > 2 {
					return false
				}
				w.WriteHeader(status)
				return true
			}
		}
	}
	for name, make := range map[string]func() answer{
		"busy":        twice(http.StatusServiceUnavailable),
		"too-many":    twice(http.StatusTooManyRequests),
		"bad-gateway": twice(http.StatusBadGateway),
		"cut": func() answer {
			var c tries
			return func(n int64, w http.ResponseWriter, r *http.Request) bool {
				if c.of(r) > 1 {
					return false
				}
				http.ServeFile(&cutter{w, 300}, r, filepath.Join(dir, r.URL.Path))
				panic(http.ErrAbortHandler)
			}
		},
		"silent": func() answer {
			var c tries
			return func(n int64, w http.ResponseWriter, r *http.Request) bool {
				if c.of(r) > 1 || !isWeights(r) {
					return false
				}
				<-r.Context().Done()
				return true
			}
		},
		"signatures-expire": func() answer { // each is good for one range of the weights
			var used sync.Map
			return func(n int64, w http.ResponseWriter, r *http.Request) bool {
				if !isWeights(r) {
					return false
				}
				if _, before := used.LoadOrStore(r.URL.Query().Get("signature"), true); !before {
					return false
				}
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := hubtest.Serve(t, "org/gollama", dir)
			hub.Answer = make()
			opt := impatient(hub)
			if name == "silent" {
				opt.Remote.Stall = 3 * time.Second
			}
			got, err := convertTo(t, t.Context(), "hf://org/gollama", opt)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Error("differs from the file of the directory")
			}
		})
	}
}

// TestRemoteLies checks that contradictory answers of servers are errors.
func TestRemoteLies(t *testing.T) { eachForm(t, remoteLies) }

func remoteLies(t *testing.T, dir string, _ []byte) {
	size := func(path string) int64 {
		st, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Error(err)
			return 0
		}
		return st.Size()
	}
	answerRange := func(w http.ResponseWriter, first, last, total int64, body []byte) bool {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, total))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(body)
		return true
	}
	asked := func(r *http.Request) (first, last int64) {
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
		return first, last
	}
	for name, c := range map[string]struct {
		answer answer
		kind   error
		text   string
	}{
		"other-range": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			first, last := asked(r)
			return isWeights(r) && answerRange(w, first+1, last+1, size(r.URL.Path), make([]byte, last-first+1))
		}, fault.Broken, "the server sends range"},
		"grows": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			first, last := asked(r)
			return isWeights(r) && answerRange(w, first, last, size(r.URL.Path)+1, make([]byte, last-first+1))
		}, fault.Broken, "has changed while it was read"},
		"short-for-ever": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			first, last := asked(r)
			return isWeights(r) && answerRange(w, first, last, size(r.URL.Path), make([]byte, 10))
		}, nil, "broke off"},
		"too-long": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			first, last := asked(r)
			return isWeights(r) && answerRange(w, first, last, size(r.URL.Path), make([]byte, last-first+2))
		}, fault.Broken, "more than"},
		"huge": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			begin := []byte{0, 0, 0, 5} // a long header
			if strings.HasSuffix(r.URL.Path, ".bin") {
				begin = []byte("PK\x03\x04")
			}
			return r.Header.Get("Range") != "" && answerRange(w, 0, 1<<20-1, 1<<60,
				append(begin, make([]byte, 1<<20-4)...))
		}, fault.Broken, "the server sends range"},
		"whole-file": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			http.ServeFile(w, &http.Request{Method: "GET", URL: r.URL}, filepath.Join(dir, r.URL.Path))
			return true
		}, fault.Unsupported, "not by ranges"},
		"endless-config": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/config.json" {
				return false
			}
			_, err := io.CopyN(w, endless{}, 1<<30)
			return err != nil || true
		}, fault.Broken, "want at most"},
		"loop": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, fault.Broken, "redirected more than"},
		"other-scheme": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			return true
		}, fault.Refused, "not followed"},
		"gone": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if isWeights(r) {
				w.WriteHeader(http.StatusGone)
			}
			return isWeights(r)
		}, nil, "410 Gone"},
		"html": {func(n int64, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/config.json" {
				fmt.Fprint(w, "<html>please log in</html>")
			}
			return r.URL.Path == "/config.json"
		}, fault.Broken, "config.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := hubtest.Serve(t, "org/gollama", dir)
			hub.Answer = c.answer
			_, err := convertTo(t, t.Context(), "hf://org/gollama", impatient(hub))
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("shows a signature: %v", err)
			}
		})
	}
}

// endless reads spaces without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{' '}, len(p))), nil }

// TestRemoteListings checks that names of files that a hub must not list are errors.
func TestRemoteListings(t *testing.T) {
	for _, name := range []string{"../x.json", "/etc/x.json", "a/../../x.json", "", ".", "a//b.json"} {
		t.Run(name, func(t *testing.T) {
			hub := hubtest.Serve(t, "org/gollama", gollamaDir)
			hub.Listed = func(names []string) []string { return append(names, name) }
			_, err := convertTo(t, t.Context(), "hf://org/gollama", impatient(hub))
			if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), "rfilename") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRemoteCache checks that a run resumes an interrupted one, and that it detects changed content.
func TestRemoteCache(t *testing.T) { eachForm(t, remoteCache) }

func remoteCache(t *testing.T, dir string, want []byte) {
	hub := hubtest.Serve(t, "org/gollama", dir)
	opt := impatient(hub)
	opt.Remote.Cache = filepath.Join(t.TempDir(), "cache")
	var left, back atomic.Int64 // requests for weights that are answered; 1 once all are
	left.Store(3)
	hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if !isWeights(r) || back.Load() > 0 || left.Add(-1) >= 0 {
			return false
		}
		w.WriteHeader(http.StatusGone)
		return true
	}
	if _, err := convertTo(t, t.Context(), "hf://org/gollama", opt); err == nil {
		t.Fatal("a run without a server that answers")
	}
	back.Store(1)
	run := func(what string, want []byte) (sent int64) {
		before := hub.Sent()
		got, err := convertTo(t, t.Context(), "hf://org/gollama", opt)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: differs from the file of the directory", what)
		}
		return hub.Sent() - before
	}
	second, third := run("after a cut", want), run("with all of it", want)
	if third >= second {
		t.Errorf("with all in the cache %d bytes were sent, with a part of it %d", third, second)
	}
	data, err := filepath.Glob(filepath.Join(opt.Remote.Cache, "*.data"))
	if err != nil || len(data) == 0 {
		t.Fatal(data, err)
	}
	for _, path := range data {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("something else"), 3<<20); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if again := run("with a changed cache", want); again <= third {
		t.Errorf("with a changed cache %d bytes were sent, with a sound one %d", again, third)
	}
}

// TestRemoteCancel checks that a run which is told to stop does not wait for a server.
func TestRemoteCancel(t *testing.T) { eachForm(t, remoteCancel) }

func remoteCancel(t *testing.T, dir string, _ []byte) {
	for _, first := range []int32{1, 3} { // of the requests for weights
		hub := hubtest.Serve(t, "org/gollama", dir)
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int32
		hub.Answer = func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if isWeights(r) && n.Add(1) >= first {
				cancel()
				<-r.Context().Done()
			}
			return false
		}
		opt := impatient(hub)
		opt.Remote.Stall = time.Hour
		if _, err := convertTo(t, ctx, "hf://org/gollama", opt); !errors.Is(err, context.Canceled) {
			t.Errorf("at request %d: got %v", first, err)
		}
	}
}

// TestRemotePickleLies checks that answers of the right size with wrong bytes are errors: the end of an archive and the
// heads of its entries show them.
func TestRemotePickleLies(t *testing.T) {
	dir := forms(t)["pickle"]
	st, err := os.Stat(filepath.Join(dir, "pytorch_model.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tail bool
		text string
	}{
		"end":  {true, "has no end of a directory"},
		"data": {false, "where the directory says"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := hubtest.Serve(t, "org/gollama", dir)
			hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
				var first, last int64
				fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last)
				if !isWeights(r) || (last == st.Size()-1) != c.tail {
					return false
				}
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, st.Size()))
				w.WriteHeader(http.StatusPartialContent)
				w.Write(make([]byte, last-first+1))
				return true
			}
			if _, err := convertTo(t, t.Context(), "hf://org/gollama", impatient(hub)); !errors.Is(err, fault.Broken) ||
				!strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "pytorch_model.bin") {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}

// TestRemoteKev checks that an adapter on a server, whose head is a PyTorch file that also has other values, gives the
// same file as from a directory.
func TestRemoteKev(t *testing.T) {
	s := hftest.Lookup("kev")
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	hub := hubtest.Serve(t, "org/"+filepath.Base(dir), dir)
	opt := impatient(hub)
	opt.Pre, opt.Base = s.PreTokenizer(), s.BaseDir(dir)
	want, err := convertTo(t, t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	got, err := convertTo(t, t.Context(), "hf://org/"+filepath.Base(dir), opt)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("differs from the file of the directory")
	}
}
