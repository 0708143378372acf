package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ggforge/internal/io/bucket"
	"ggforge/publish/push"
)

// objectProxy is between ggtool push and a server of objects: it notes the requests, and calls then once in a push.
type objectProxy struct {
	t      *testing.T
	server *objectServer
	url    string

	mu        sync.Mutex
	changing  int             // requests that change something
	stored    map[string]bool // parts that the server has confirmed, by object and number
	cut       int             // requests with a part that the server has not confirmed
	bytes     int64           // of parts that were sent
	again     []string        // parts that were sent although the server had confirmed them
	completed []string        // objects in the order in which they appeared

	left int64               // bytes of parts until then, 0 for never
	end  bool                // call then when the first object has appeared
	then func(p *os.Process) // in a goroutine of its own
	cmd  *exec.Cmd
}

// startProxy starts a proxy that passes requests on as they are: signatures include the host.
func startProxy(t *testing.T, s *objectServer) *objectProxy {
	p := &objectProxy{t: t, server: s, stored: map[string]bool{}}
	target, err := url.Parse("http://" + s.listen)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := partOf(r)
		p.mu.Lock()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			p.changing++
		}
		if part != "" {
			if p.stored[part] {
				p.again = append(p.again, part)
			}
			p.cut++ // until it is answered
			r.Body = &countedBody{r.Body, p}
		}
		p.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	front.Config.ErrorLog = nil
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

// partOf returns the object and the number of the part that a request sends, "" for another request.
func partOf(r *http.Request) string {
	q := r.URL.Query()
	if r.Method != http.MethodPut || q.Get("partNumber") == "" {
		return ""
	}
	return r.URL.Path + " " + q.Get("partNumber")
}

// answered notes an answer of the server.
func (p *objectProxy) answered(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	r := resp.Request
	p.mu.Lock()
	defer p.mu.Unlock()
	if part := partOf(r); part != "" {
		p.stored[part] = true
		p.cut--
	}
	if r.Method == http.MethodPost && r.URL.Query().Get("uploadId") != "" {
		data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // an error may come with status 200
		if err != nil {
			return err
		}
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(data))
		if bytes.Contains(data, []byte("CompleteMultipartUploadResult")) {
			p.completed = append(p.completed, r.URL.Path)
			if p.end {
				p.end = false
				p.now()
			}
		}
	}
	return nil
}

// now calls then; p.mu is locked.
func (p *objectProxy) now() {
	if p.then != nil {
		then := p.then
		p.then = nil
		then(p.cmd.Process)
	}
}

// countedBody counts the bytes of parts.
type countedBody struct {
	io.ReadCloser
	p *objectProxy
}

func (b *countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.bytes += int64(n)
	if b.p.left > 0 {
		if b.p.left -= int64(n); b.p.left <= 0 {
			b.p.now()
		}
	}
	return n, err
}

// push runs ggtool push through the proxy, and calls then after that many bytes of parts (end: when the first object
// has appeared). It returns the exit code, -1 if it was killed, and the output, which has no secret.
func (p *objectProxy) push(after int64, end bool, then func(*os.Process), args ...string) (int, string) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "ggtool"), append([]string{"push", "--progress", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_S3="+p.url)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p.mu.Lock()
	p.left, p.end, p.then, p.cmd = after, end, then, cmd
	err := cmd.Start()
	p.mu.Unlock()
	must(p.t, err)
	cmd.Wait()
	p.mu.Lock()
	if then != nil && p.then != nil {
		p.t.Errorf("%q: never came to %d bytes:\n%s", args, after, &out)
	}
	p.then = nil
	p.mu.Unlock()
	for _, secret := range []string{"interop-secret", "Signature=", "AWS4-HMAC"} {
		if strings.Contains(out.String(), secret) {
			p.t.Errorf("%q is in the output:\n%s", secret, &out)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// TestPushObjects pushes folders to a real object store. Our process is killed while it sends parts and while objects
// appear, and the server is killed and started again: no part that the server has confirmed is sent again.
func TestPushObjects(t *testing.T) {
	s := startObjects(t, "models")
	p := startProxy(t, s)
	folder := func(seed uint64, scale int) (dir string, bytes int64) {
		dir = pushed(t, seed, scale)
		must(t, os.Remove(filepath.Join(dir, "empty.txt"))) // no object is empty
		for name := range folderSums(t, dir) {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
			must(t, err)
			bytes += info.Size()
		}
		return dir, bytes
	}
	list := func(to string) (names []string) {
		t.Helper()
		n, err := bucket.Parse(to)
		must(t, err)
		objects, err := s.client.List(context.Background(), n.Folder(), 1000)
		must(t, err)
		for _, o := range objects {
			names = append(names, o.Name)
		}
		return names
	}
	same := func(dir, to string) {
		t.Helper()
		want := folderSums(t, dir)
		for name, sum := range want {
			if got, _ := s.sum(to + "/" + name); got != sum {
				t.Errorf("%s: sha256 %s, want %s", name, got, sum)
			}
		}
		if got := list(to); len(got) != len(want) {
			t.Errorf("%s has %q, want %d objects", to, got, len(want))
		}
		left, err := s.client.Incomplete(context.Background(), bucket.Name{Bucket: "models"})
		if err != nil || len(left) > 0 {
			t.Errorf("uploads left: %v %v", left, err)
		}
	}
	kill := func(p *os.Process) { p.Kill() }
	const part = 16 << 20

	t.Run("killed", func(t *testing.T) {
		p.t = t
		const to = "s3://models/some/killed"
		dir, size := folder(1, 170)
		sends, most := int64(0), 0
		for _, k := range []struct {
			after   int64
			end     bool
			uploads int
		}{{5e6, false, 4}, {40e6, false, 2}, {40e6, false, 2}, {20e6, false, 1}, {1, false, 3}, {0, true, 4}} {
			code, out := p.push(k.after, k.end, kill, "--uploads", fmt.Sprint(k.uploads), dir, to)
			if code != -1 {
				t.Fatalf("%+v: exit code %d, want it killed:\n%s", k, code, out)
			}
			sends, most = sends+int64(k.uploads)*part, most+k.uploads
			if names := list(to); len(names) > 0 != k.end || slices.Contains(names, push.CardName) {
				t.Errorf("%+v: there are %q", k, names)
			}
			checkState(t, dir)
		}
		code, out := p.push(0, false, nil, dir, to)
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		t.Logf("%d bytes in %d parts, killed 6 times; %d bytes sent, %d parts cut", size, len(p.stored), p.bytes, p.cut)
		if len(p.again) > 0 {
			t.Errorf("sent again: %q", p.again)
		}
		if p.bytes > size+sends || p.cut > most {
			t.Errorf("%d bytes sent, want at most %d; %d parts cut, want at most %d", p.bytes, size+sends, p.cut, most)
		}
		if n := len(p.completed); n == 0 || !strings.HasSuffix(p.completed[n-1], "/"+push.CardName) {
			t.Errorf("objects appeared in the order %q, want the card last", p.completed)
		}
		same(dir, to)

		// again: nothing
		before := p.changing
		code, out = p.push(0, false, nil, "--json", "--progress", "none", dir, to)
		var r push.Result
		err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{\n")):]), &r)
		if code != 0 || p.changing != before || err != nil || r.Changed || r.Sent != 0 {
			t.Errorf("again: exit code %d, %d requests that change something, %v %+v\n%s", code, p.changing-before, err,
				r, out)
		}

		// another card
		sent := p.bytes
		must(t, os.WriteFile(filepath.Join(dir, push.CardName), []byte("other"), 0o666))
		code, out = p.push(0, false, nil, dir, to)
		if code != 2 || !strings.Contains(out, push.CardName) || p.bytes != sent {
			t.Errorf("another card: exit code %d, %d bytes sent:\n%s", code, p.bytes-sent, out)
		}
		if code, out := p.push(0, false, nil, "--force", dir, to); code != 0 || p.bytes != sent+int64(len("other")) {
			t.Errorf("with --force: exit code %d, %d bytes sent:\n%s", code, p.bytes-sent, out)
		}
		same(dir, to)
	})

	t.Run("server-killed", func(t *testing.T) {
		p.t = t
		const to = "s3://models/some/other"
		dir, size := folder(2, 170)
		p.bytes, p.cut, p.again = 0, 0, nil
		var restarted sync.WaitGroup
		restart := func(*os.Process) {
			restarted.Add(1)
			go func() {
				defer restarted.Done()
				s.kill()
				time.Sleep(time.Second)
				s.start()
			}()
		}
		code, out := p.push(60e6, false, restart, "--uploads", "2", dir, to)
		restarted.Wait()
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		t.Logf("%d bytes, %d bytes sent, %d parts cut", size, p.bytes, p.cut)
		if len(p.again) > 0 || p.bytes > size+2*part {
			t.Errorf("sent again: %q; %d bytes sent, want at most %d", p.again, p.bytes, size+2*part)
		}
		same(dir, to)
	})

	t.Run("refused", func(t *testing.T) {
		p.t = t
		dir, _ := folder(3, 1)
		t.Setenv("AWS_SECRET_ACCESS_KEY", "another-interop-secret")
		if code, out := p.push(0, false, nil, dir, "s3://models/refused"); code != 5 ||
			!strings.Contains(out, "403 Forbidden") {
			t.Errorf("another key: exit code %d:\n%s", code, out)
		}
		t.Setenv("AWS_SECRET_ACCESS_KEY", "interop-secret")
		if code, out := p.push(0, false, nil, dir, "s3://no-such-bucket/x"); code == 0 || code == -1 {
			t.Errorf("no bucket: exit code %d:\n%s", code, out)
		}
		must(t, os.WriteFile(filepath.Join(dir, "empty.txt"), nil, 0o666))
		code, out := p.push(0, false, nil, dir, "s3://models/refused")
		if code != 5 || !strings.Contains(out, "empty.txt: is empty") {
			t.Errorf("an empty file: exit code %d:\n%s", code, out)
		}
		if names := list("s3://models/refused"); len(names) > 0 {
			t.Errorf("there are %q", names)
		}
	})
}

// checkState checks that only the user can read the state of a push, and that it has no key.
func checkState(t *testing.T, dir string) {
	t.Helper()
	state := filepath.Join(dir, ".ggtool-release", "push")
	files := 0
	must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && runtime.GOOS != "windows" && info.Mode()&0o077 != 0 && info.Size() > 0 { // a lock is empty
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		if err != nil || e.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("interop-secret")) {
			t.Errorf("%s has the secret key", path)
		}
		return err
	}))
	if files == 0 {
		t.Errorf("%s: no state", state)
	}
}
