package push_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/publish/push"
	"ggforge/test/hubtest"
)

// card is a model card with front matter.
const card = "---\nlicense: mit\n---\n# Model\n"

// release writes a folder like a release, and returns it and its published files.
func release(t testing.TB) (dir string, files map[string]string) {
	t.Helper()
	dir = t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	data := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return "GGUF\x03\x00\x00\x00" + string(b)
	}
	files = map[string]string{"M-Q4_K_M.gguf": data(7654), "M-Q8_0.gguf": data(12992), "M-imatrix.gguf": data(300),
		"Q2_K/M-Q2_K-00001-of-00002.gguf": data(2992), "Q2_K/M-Q2_K-00002-of-00002.gguf": data(1),
		"M-Q8_0.html": "<!doctype html>", "README.md": card, "empty.txt": "", "quality.json": "{}\n",
		"name (old) ä.gguf": data(500)}
	files["copy.gguf"] = files["M-Q4_K_M.gguf"]
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "README.md" {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(files[name])), name)
		}
	}
	files["SHA256SUMS"] = sums.String()
	for name, content := range files {
		put(t, dir, name, content)
	}
	for _, name := range []string{".ggtool-release/other", ".cache/x", ".env", "M.gguf.partial", "M.gguf.partial.rows",
		"ggforge-1.commit", "sub/.git/config", "M.gguf.upload"} {
		put(t, dir, name, "private")
	}
	return dir, files
}

func put(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// world is a hub, and what pushes to it have printed.
type world struct {
	*hubtest.Uploads
	t   testing.TB
	opt push.Options

	mu  sync.Mutex
	log []string
}

func newWorld(t testing.TB) *world {
	w := &world{Uploads: hubtest.ServeUploads(t), t: t}
	say := func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.log = append(w.log, text)
	}
	w.opt = push.Options{Endpoint: w.URL, Token: w.Token, Stall: 5 * time.Second, Pause: time.Millisecond,
		Warn: say, Note: say}
	return w
}

// push pushes a folder to org/name. No error and no line may have a secret.
func (w *world) push(dir string) (*push.Result, error) {
	return w.pushTo(w.t.Context(), dir, "hf://org/name")
}

func (w *world) pushTo(ctx context.Context, dir, to string) (*push.Result, error) {
	w.t.Helper()
	p, err := push.Prepare(dir, to, w.opt)
	var r *push.Result
	if err == nil {
		r, err = p.Run(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range append(w.log, fmt.Sprint(err)) {
		if strings.Contains(text, w.Token) || strings.Contains(text, "secret") || strings.Contains(text, "X-Amz") {
			w.t.Errorf("a secret is in %q", text)
		}
	}
	return r, err
}

// has checks that a branch has exactly these files, and the one that the hub adds.
func (w *world) has(branch string, files map[string]string) {
	w.t.Helper()
	got := w.Files("org/name", branch)
	delete(got, ".gitattributes")
	if !maps.Equal(got, files) {
		w.t.Errorf("%s has %q, want %q", branch, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(files)))
	}
}

// once checks that no part came whole more often than times.
func (w *world) once(times int) {
	w.t.Helper()
	stored, _ := w.Stored()
	for part, n := range stored {
		if n > times {
			w.t.Errorf("%.12s… %s was stored %d times", part, part[min(64, len(part)):], n)
		}
	}
}

// again checks that parts came whole again at most so often.
func (w *world) again(times int) {
	w.t.Helper()
	stored, _ := w.Stored()
	twice := 0
	for _, n := range stored {
		twice += n - 1
	}
	if twice > times {
		w.t.Errorf("%d parts were stored again, want at most %d", twice, times)
	}
}

// states returns the names of the files of a result by their state.
func states(r *push.Result) map[push.State][]string {
	m := map[push.State][]string{}
	for _, f := range r.Files {
		m[f.State] = append(m[f.State], f.Name)
	}
	return m
}

// TestPush pushes a folder, again without and with changes, and to a branch.
func TestPush(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	w.opt.Private = true
	w.PageFiles = 3
	p, err := push.Prepare(dir, "hf://org/name", w.opt)
	if err != nil {
		t.Fatal(err)
	}
	dry, err := p.Predict(t.Context())
	if err != nil || !dry.Created || len(states(dry)[push.ToSend]) != len(files) || w.Files("org/name", "main") != nil {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	r, err := w.push(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.has("main", files)
	w.once(1)
	if !r.Created || !r.Private || !r.Changed || !w.Private("org/name") || len(states(r)[push.Sent]) != len(files) ||
		w.Commits("org/name") != 2 || r.Page != w.URL+"/org/name" || r.To != "hf://org/name@main" {
		t.Errorf("%+v, %d commits", r, w.Commits("org/name"))
	}
	if want := []string{".cache/", ".env", ".ggtool-release/", "M.gguf.partial", "M.gguf.partial.rows", "M.gguf.upload",
		"ggforge-1.commit", "sub/.git/"}; !slices.Equal(r.LeftOut, want) {
		t.Errorf("left out: %q", r.LeftOut)
	}
	_, sent := w.Stored()
	if want := r.Sent; want <= 0 || sent > want {
		t.Errorf("%d bytes sent, and %d in the result", sent, want)
	}
	if list, err := filepath.Glob(filepath.Join(dir, ".ggtool-release", "push", "*")); err != nil || len(list) != 1 ||
		filepath.Base(list[0]) != "sums" {
		t.Errorf("state after the push: %q, %v", list, err)
	}

	if r, err = w.push(dir); err != nil || r.Changed || len(states(r)[push.Unchanged]) != len(files) {
		t.Errorf("again: %+v, %v", r, err)
	}
	put(t, dir, "README.md", card+"more\n")
	files["README.md"] = card + "more\n"
	if r, err = w.push(dir); err != nil || !r.Changed || !slices.Equal(states(r)[push.Sent], []string{"README.md"}) {
		t.Errorf("with another card: %+v, %v", r, err)
	}
	w.has("main", files)
	if _, now := w.Stored(); now != sent || w.Commits("org/name") != 3 {
		t.Errorf("%d bytes sent again, %d commits", now-sent, w.Commits("org/name"))
	}

	w.Add("org/name", "other.txt", "x")
	put(t, dir, "new.txt", "new")
	files["new.txt"] = "new"
	if r, err = w.pushTo(t.Context(), dir, "hf://org/name@v2/draft"); err != nil || !slices.Equal(r.Others,
		[]string{"other.txt"}) {
		t.Errorf("to a branch: %+v, %v", r, err)
	}
	all := maps.Clone(files)
	all["other.txt"] = "x"
	w.has("v2/draft", all)
	if w.Files("org/name", "main")["new.txt"] != "" {
		t.Error("main has the branch's file")
	}

	elsewhere, err := w.pushTo(t.Context(), dir, "hf://org/copy")
	if err != nil || len(states(elsewhere)[push.Stored]) == 0 {
		t.Errorf("to another repository: %+v, %v", elsewhere, err)
	}
	if _, now := w.Stored(); now != sent {
		t.Errorf("%d bytes sent again", now-sent)
	}
}

// TestRefused gives folders and destinations that are refused before anything is sent.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, w *world)
		to     string
		kind   error
		want   string
	}{
		"name":     {to: "hf://org", kind: fault.Usage, want: "want hf://ORG/NAME"},
		"two dots": {to: "hf://org/a..b", kind: fault.Usage, want: "want hf://ORG/NAME"},
		"branch":   {to: "hf://org/name@../x", kind: fault.Usage, want: "want hf://ORG/NAME"},
		"place":    {to: "ftp://x", kind: fault.Usage, want: "want hf://ORG/NAME"},
		"no token": {change: func(t *testing.T, dir string, w *world) { w.opt.Token = "" }, kind: fault.Refused,
			want: "needs a token"},
		"wrong token": {change: func(t *testing.T, dir string, w *world) { w.opt.Token = "hf_other" },
			kind: fault.Refused, want: "Invalid credentials"},
		"organization": {to: "hf://closed/name", kind: fault.Refused, want: "don't have the rights"},
		"link": {change: func(t *testing.T, dir string, w *world) {
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
		}, kind: fault.Refused, want: "link: is a link or no file"},
		"large": {change: func(t *testing.T, dir string, w *world) {
			if runtime.GOOS == "windows" {
				t.Skip("files have no holes")
			}
			put(t, dir, "big.gguf", "")
			if err := os.Truncate(filepath.Join(dir, "big.gguf"), 50_000_000_001); err != nil {
				t.Skip(err)
			}
		}, kind: fault.Refused, want: "big.gguf: has 50000000001 bytes, and the hub takes at most 50000000000"},
		"changed": {change: func(t *testing.T, dir string, w *world) { put(t, dir, "quality.json", "{ }") },
			kind: fault.Broken, want: "quality.json: SHA-256 is"},
		"missing": {change: func(t *testing.T, dir string, w *world) { os.Remove(filepath.Join(dir, "empty.txt")) },
			kind: fault.Broken, want: "empty.txt: is in SHA256SUMS, and not in the folder"},
		"card": {change: func(t *testing.T, dir string, w *world) {
			put(t, dir, "README.md", "---\nlicense: nonsense\n---\n")
		}, kind: fault.Refused, want: `must be one of`},
		"ignored": {change: func(t *testing.T, dir string, w *world) { put(t, dir, "x.ignored", "x") },
			kind: fault.Refused, want: "x.ignored: the repository's .gitignore"},
		"public": {change: func(t *testing.T, dir string, w *world) {
			w.Add("org/name", "x", "y")
			w.opt.Private = true
		}, kind: fault.Refused, want: "is public"},
		"empty": {change: func(t *testing.T, dir string, w *world) {
			if err := os.RemoveAll(dir); err != nil || os.Mkdir(dir, 0o777) != nil {
				t.Fatal(err)
			}
		}, kind: fault.Usage, want: "no file to publish"},
		"unfinished": {change: func(t *testing.T, dir string, w *world) {
			put(t, dir, ".ggtool-release/state", "x")
		}, kind: fault.Incomplete, want: "there is no manifest.json"},
		"objects with a message": {change: func(t *testing.T, dir string, w *world) { w.opt.Message = "m" },
			to: "s3://bucket/x", kind: fault.Usage, want: "no messages"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := release(t)
			w := newWorld(t)
			if c.change != nil {
				c.change(t, dir, w)
			}
			if c.to == "" {
				c.to = "hf://org/name"
			}
			_, err := w.pushTo(t.Context(), dir, c.to)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.want)
			}
			if _, sent := w.Stored(); sent != 0 || w.Count("commit") != 0 {
				t.Errorf("%d bytes and %d commits were sent", sent, w.Count("commit"))
			}
		})
	}
}

// faulty is a fault of requests of a name: of some numbers, or all if there are none.
type faulty struct {
	name string
	nth  []int
	do   func(w http.ResponseWriter, r *http.Request)
}

func status(code int, headers ...string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":"see http://store/x?X-Amz-Signature=secret9"}`)
	}
}

func cut(w http.ResponseWriter, r *http.Request) {
	io.CopyN(io.Discard, r.Body, 100)
	panic(http.ErrAbortHandler)
}

func text(body string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
}

// TestFaults pushes to a hub that fails now and then, or for good.
func TestFaults(t *testing.T) {
	xml400 := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "<Error><Code>RequestTimeout</Code></Error>")
	}
	expired := func(w http.ResponseWriter, r *http.Request) { hubtest.Expired(w) }
	for name, c := range map[string]struct {
		faults []faulty
		lose   string // name of the request whose first answer is lost
		kind   error  // of the error; nil if the push succeeds
		want   string
		again  bool // parts may be sent again
	}{
		"busy": {faults: []faulty{{"part", []int{1, 4}, status(500)}, {"put", []int{1, 2}, status(503)},
			{"batch", []int{1}, status(502)}, {"tree", []int{1}, status(504)}, {"preupload", []int{1}, status(500)},
			{"complete", []int{1}, status(502)}, {"verify", []int{1}, status(503, "Retry-After", "1")},
			{"create", []int{1}, status(503)}, {"validate", []int{1}, status(500)}, {"info", []int{1}, status(502)}}},
		"cut": {faults: []faulty{{"part", []int{2, 3, 7}, cut}, {"put", []int{1, 3}, cut}, {"batch", []int{1}, cut},
			{"info", []int{1, 2}, cut}, {"tree", []int{1}, cut}, {"complete", []int{1}, cut}}},
		"limited": {faults: []faulty{{"preupload", []int{1}, status(429, "RateLimit", `"api";r=0;t=1`)},
			{"commit", []int{1}, status(429, "Retry-After", "1")}}},
		"slow store":       {faults: []faulty{{"part", []int{1, 2}, xml400}}},
		"a moment expired": {faults: []faulty{{"part", []int{3}, expired}}},
		"expired": {faults: []faulty{{"part", []int{3, 4, 5, 6, 7, 8}, expired}, {"put", []int{1, 2, 3, 4}, expired}},
			again: true},
		"always expired":  {faults: []faulty{{"put", nil, expired}}, want: "expired", again: true},
		"never":           {faults: []faulty{{"part", nil, status(500)}}, want: "the server answers 500", again: true},
		"created late":    {faults: []faulty{{"info", []int{2, 3}, status(404, "X-Error-Code", "RepoNotFound")}}},
		"lost part":       {lose: "part", again: true},
		"lost put":        {lose: "put", again: true},
		"lost completion": {lose: "complete"},
		"lost batch":      {lose: "batch"},
		"lost creation":   {lose: "create"},
		"lost commit":     {lose: "commit"},
		"gateway":         {faults: []faulty{{"commit", []int{1, 2}, status(504)}}},
		"commit refused": {faults: []faulty{{"commit", nil, status(403)}}, kind: fault.Refused,
			want: "the server answers 403"},
		"quota": {faults: []faulty{{"batch", nil, status(402)}}, kind: fault.Refused, want: "402"},
		"no tags": {faults: []faulty{{"part", []int{2}, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		}}}},
		"wrong tag": {faults: []faulty{{"part", []int{2}, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"0"`)
		}}}, again: true},
		"another server": {faults: []faulty{{"preupload", nil, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/x?secret=secret1", http.StatusTemporaryRedirect)
		}}}, kind: fault.Refused, want: "redirects to another server"},
		"no JSON": {faults: []faulty{{"preupload", nil, text("<html>secret1</html>")}}, kind: fault.Broken,
			want: "want JSON"},
		"no mode": {faults: []faulty{{"preupload", nil, text(`{"files":[]}`)}}, kind: fault.Broken,
			want: "does not answer for"},
		"no object": {faults: []faulty{{"batch", nil, text(`{"objects":[]}`)}}, kind: fault.Broken,
			want: "does not answer for object"},
		"Xet": {faults: []faulty{{"batch", nil, text(`{"transfer":"xet","objects":[]}`)}}, kind: fault.Unsupported,
			want: "Xet only"},
		"no commit": {faults: []faulty{{"commit", nil, text(`{"commitOid":"../x"}`)}}, kind: fault.Broken,
			want: "has no commit"},
		"wrong commit": {faults: []faulty{{"commit", nil,
			text(`{"commitOid":"0123456789012345678901234567890123456789"}`)}}, want: "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, files := release(t)
			w := newWorld(t)
			w.SetFault(func(name string, n int, rw http.ResponseWriter, r *http.Request) bool {
				for _, f := range c.faults {
					if f.name == name && (f.nth == nil || slices.Contains(f.nth, n)) {
						f.do(rw, r)
						return true
					}
				}
				return false
			})
			w.SetLose(func(name string, n int) bool { return name == c.lose && n == 1 })
			r, err := w.push(dir)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) ||
					c.kind == nil && errors.Is(err, fault.Broken) {
					t.Errorf("%v, want %v with %q", err, c.kind, c.want)
				}
				w.SetFault(nil)
				if r, err = w.push(dir); err != nil {
					t.Fatalf("the next push: %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			w.has("main", files)
			if w.Commits("org/name") != 2 || !r.Changed {
				t.Errorf("%d commits, %+v", w.Commits("org/name"), r)
			}
			if !c.again {
				w.once(1)
			}
		})
	}
}

// TestConflicts has somebody else commit at the same time.
func TestConflicts(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	other := ""
	w.SetFault(func(name string, n int, _ http.ResponseWriter, r *http.Request) bool {
		if name == "commit" && other != "" {
			w.Add("org/name", other, "by somebody else")
			other = ""
		}
		return false
	})
	other = "unrelated.txt"
	if _, err := w.push(dir); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(files)
	want["unrelated.txt"] = "by somebody else"
	w.has("main", want)

	put(t, dir, "README.md", card+"again")
	other = "README.md"
	before := w.Commits("org/name")
	_, err := w.push(dir)
	if !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), "somebody else has changed README.md") {
		t.Errorf("%v", err)
	}
	if n := w.Commits("org/name"); n != before+1 { // that of somebody else
		t.Errorf("%d commits, want %d", n, before+1)
	}
	if _, err := w.push(dir); err != nil {
		t.Error(err)
	}
	want["README.md"] = card + "again"
	w.has("main", want)
}

// TestPullRequest opens a pull request once.
func TestPullRequest(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	w.Add("org/name", "x.txt", "x")
	w.opt.PullRequest, w.opt.Message = true, "A title\n\nand more"
	for range 2 {
		r, err := w.push(dir)
		if err != nil || r.PullRequest != w.URL+"/org/name/discussions/1" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	w.has("main", map[string]string{"x.txt": "x"})
	files["x.txt"] = "x"
	w.has("refs/pr/1", files)
	if w.Count("commit") != 1 {
		t.Errorf("%d commits", w.Count("commit"))
	}
	put(t, dir, "y.txt", "y")
	w.SetLose(func(name string, n int) bool { return name == "commit" })
	if _, err := w.push(dir); err == nil || !strings.Contains(err.Error(), "may have been opened") {
		t.Errorf("%v", err)
	}
	w.SetLose(nil)
	w.opt.PullRequest = false
	files["y.txt"] = "y"
	if _, err := w.pushTo(t.Context(), dir, "hf://org/name@refs/pr/1"); err != nil {
		t.Error(err)
	}
	w.has("refs/pr/1", files)
}

// TestManyFiles pushes more files than one commit has.
func TestManyFiles(t *testing.T) {
	dir, files := t.TempDir(), map[string]string{"README.md": card}
	for i := range 130 {
		files[fmt.Sprintf("a/%03d.bin", i)] = fmt.Sprintf("binary %d", i)
		files[fmt.Sprintf("b/%03d.txt", i)] = fmt.Sprintf("text %d", i)
	}
	for name, content := range files {
		put(t, dir, name, content)
	}
	w := newWorld(t)
	if _, err := w.push(dir); err != nil {
		t.Fatal(err)
	}
	w.has("main", files)
	if w.Count("commit") != 3 || w.Count("batch") != 2 {
		t.Errorf("%d commits, %d batches", w.Count("commit"), w.Count("batch"))
	}
}

// TestResume ends pushes by their context, again and again: finished parts are not sent again.
func TestResume(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	w.opt.Parallel = 2
	ended := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		left := 3 // parts until the end
		var mu sync.Mutex
		w.SetFault(func(name string, n int, _ http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if name == "part" || name == "put" {
				if left--; left < 0 {
					cancel()
					time.Sleep(10 * time.Millisecond)
					panic(http.ErrAbortHandler)
				}
			}
			return false
		})
		_, err := w.pushTo(ctx, dir, "hf://org/name")
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if ended++; ended > 100 {
			t.Fatal("no end")
		}
		checkSecret(t, dir)
	}
	if ended < 5 {
		t.Errorf("ended %d times", ended)
	}
	w.has("main", files)
	w.again(2 * ended) // those on their way whose answers did not come
}

// checkSecret checks that only the user can read the state.
func checkSecret(t *testing.T, dir string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".ggtool-release", "push", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" &&
			filepath.Base(path) != "held" {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}

// TestForgotten resumes a push whose state is useless by now.
func TestForgotten(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string, w *world){
		"store": func(t *testing.T, dir string, w *world) { w.Forget() },
		"garbled": func(t *testing.T, dir string, w *world) {
			list, err := filepath.Glob(filepath.Join(dir, ".ggtool-release", "push", "*.*"))
			if err != nil || len(list) == 0 {
				t.Fatalf("%q, %v", list, err)
			}
			for _, path := range list {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				data[len(data)/2] ^= 1
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		"torn": func(t *testing.T, dir string, w *world) {
			list, err := filepath.Glob(filepath.Join(dir, ".ggtool-release", "push", "*.tags"))
			if err != nil || len(list) == 0 {
				t.Fatalf("%q, %v", list, err)
			}
			for _, path := range list {
				info, err := os.Stat(path)
				if err != nil || os.Truncate(path, info.Size()-3) != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := release(t)
			w := newWorld(t)
			w.opt.Parallel = 1
			ctx, cancel := context.WithCancel(t.Context())
			w.SetFault(func(name string, n int, _ http.ResponseWriter, r *http.Request) bool {
				if name == "part" && n > 4 {
					cancel()
					time.Sleep(10 * time.Millisecond)
					panic(http.ErrAbortHandler)
				}
				return false
			})
			if _, err := w.pushTo(ctx, dir, "hf://org/name"); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			w.SetFault(nil)
			change(t, dir, w)
			if _, err := w.push(dir); err != nil {
				t.Fatal(err)
			}
			w.has("main", files)
			w.once(2)
		})
	}
}

// TestChanges changes a file while it is sent.
func TestChanges(t *testing.T) {
	dir, _ := release(t)
	w := newWorld(t)
	var change sync.Once
	w.SetFault(func(name string, n int, _ http.ResponseWriter, r *http.Request) bool {
		if name == "part" {
			change.Do(func() { put(t, dir, "M-Q8_0.gguf", "other") })
		}
		return false
	})
	if _, err := w.push(dir); !errors.Is(err, fault.Broken) ||
		!strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("%v", err)
	}
	if w.Commits("org/name") != 1 {
		t.Error("there is a commit")
	}
}

// TestProgress checks that progress rises and comes to its end.
func TestProgress(t *testing.T) {
	dir, _ := release(t)
	w := newWorld(t)
	last, calls := map[string]push.Progress{}, 0
	w.opt.Progress = func(p push.Progress) {
		calls++
		if p.Done < 0 || p.Done > p.Total {
			t.Errorf("%+v", p)
		}
		last[p.Part] = p
	}
	if _, err := w.push(dir); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"read", "send"} {
		if p := last[part]; p.Done != p.Total || p.Total == 0 {
			t.Errorf("%s ends with %+v", part, p)
		}
	}
	if calls < 20 {
		t.Errorf("%d calls", calls)
	}
}

// TestStall pushes to servers that stand still: at the beginning, within a body, and before the answer.
func TestStall(t *testing.T) {
	dir, files := release(t)
	w := newWorld(t)
	w.opt.Stall = 300 * time.Millisecond
	stalled := map[string]bool{}
	var mu sync.Mutex
	w.SetFault(func(name string, n int, rw http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		first := !stalled[name]
		stalled[name] = true
		mu.Unlock()
		if !first || name == "commit" { // which would be looked for, see TestFaults
			return false
		}
		if name == "put" {
			io.CopyN(io.Discard, r.Body, 1)
		} else {
			io.Copy(io.Discard, r.Body)
		}
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second): // the context does not end while some of a body has not been read
		}
		panic(http.ErrAbortHandler)
	})
	if _, err := w.push(dir); err != nil {
		t.Fatal(err)
	}
	if len(stalled) < 8 {
		t.Errorf("%v stood still", stalled)
	}
	w.has("main", files)
}

// TestReadOnly pushes a folder in which no state can be kept.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("this user can write everywhere")
	}
	dir, files := release(t)
	w := newWorld(t)
	if err := os.RemoveAll(filepath.Join(dir, ".ggtool-release")); err != nil || os.Chmod(dir, 0o555) != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	if _, err := w.push(dir); err != nil {
		t.Fatal(err)
	}
	w.has("main", files)
}
