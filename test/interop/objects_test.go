package interop

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ggforge/internal/io/bucket"
	"ggforge/test/hftest"
)

// The environment that make s3 sets.
var (
	s3Server = os.Getenv("S3_SERVER") // MinIO's program
	s3Bytes  = os.Getenv("S3_BYTES")  // the size of the checkpoint
)

// objectServer is an object store that can be killed and started again.
type objectServer struct {
	t            *testing.T
	data, listen string
	cmd          *exec.Cmd
	client       *bucket.Client
}

// startObjects starts the server with some buckets, and points the environment at it.
func startObjects(t *testing.T, buckets ...string) *objectServer {
	if s3Server == "" || bin == "" {
		t.Skip("needs a server of objects: run make s3")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &objectServer{t: t, data: t.TempDir(), listen: l.Addr().String()}
	l.Close()
	for _, b := range buckets {
		must(t, os.Mkdir(filepath.Join(s.data, b), 0o777))
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": "http://" + s.listen, "AWS_ACCESS_KEY_ID": "interop",
		"AWS_SECRET_ACCESS_KEY": "interop-secret", "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	s.client, err = bucket.New(bucket.Environment())
	must(t, err)
	s.start()
	t.Cleanup(func() {
		s.kill()
		s.client.Close()
	})
	return s
}

// start starts the server and waits until it answers.
func (s *objectServer) start() {
	s.cmd = exec.Command(s3Server, "server", "--quiet", "--address", s.listen, s.data)
	s.cmd.Env = append(os.Environ(), "MINIO_ROOT_USER=interop", "MINIO_ROOT_PASSWORD=interop-secret",
		"MINIO_BROWSER=off", "MINIO_UPDATE=off")
	must(s.t, s.cmd.Start())
	for range 300 {
		if resp, err := http.Get("http://" + s.listen + "/minio/health/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatal("the server does not answer")
}

// kill kills the server as kill -9 does.
func (s *objectServer) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// sum returns the SHA-256 of an object, and how many bytes a second were received.
func (s *objectServer) sum(name string) (sum string, speed float64) {
	s.t.Helper()
	n, err := bucket.Parse(name)
	must(s.t, err)
	req, err := http.NewRequest(http.MethodGet, n.URL(), nil)
	must(s.t, err)
	begun := time.Now()
	resp, err := s.client.RoundTrip(req)
	must(s.t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", name, resp.Status)
	}
	h := sha256.New()
	bytes, err := io.Copy(h, resp.Body)
	must(s.t, err)
	return fmt.Sprintf("%x", h.Sum(nil)), float64(bytes) / time.Since(begun).Seconds()
}

// there reports whether an object exists.
func (s *objectServer) there(name string) bool {
	n, err := bucket.Parse(name)
	must(s.t, err)
	return s.client.Vacant(context.Background(), n) != nil
}

// fileSum returns the SHA-256 of a file.
func fileSum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	must(t, err)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// during runs one of our commands and calls then when its progress events with that note reach that share of the work.
// It returns the command's output and error.
func during(t *testing.T, note string, share float64, then func(p *os.Process), name string,
	argv ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, name), slices.Concat(argv, []string{"--progress", "json"})...)
	var out strings.Builder
	cmd.Stdout = &out
	lines, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	called := false
	for in := bufio.NewScanner(lines); in.Scan(); {
		var e struct {
			Event, Note string
			Work        float64
		}
		if json.Unmarshal(in.Bytes(), &e); e.Event == "progress" && e.Note == note && e.Work >= share && !called {
			called = true
			then(cmd.Process)
		}
		if e.Event != "progress" && e.Event != "tensor" {
			fmt.Fprintln(&out, in.Text())
		}
	}
	err = cmd.Wait()
	if !called {
		t.Errorf("%s %q: never came to %.2f of %q: %v\n%s", name, argv, share, note, err, &out)
	}
	if strings.Contains(out.String(), "interop-secret") {
		t.Errorf("the output has the secret key: %s", &out)
	}
	return out.String(), err
}

// TestObjects reads from and writes to a real object store. The server and our own process are killed in the middle and
// started again: the results must equal those with local files.
func TestObjects(t *testing.T) {
	s := startObjects(t, "models", "out")
	size, err := strconv.ParseInt(s3Bytes, 10, 64)
	must(t, err)
	dir, work := t.TempDir(), t.TempDir()
	spec := *hftest.Lookup("llama")
	spec.Name = "model"
	const wide = `{"torch_dtype": "bfloat16", "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": %d,
		"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64}`
	v := hftest.Variant{Seed: 1, DType: "BF16", Ring: true, Set: fmt.Sprintf(wide, 2)}
	two, err := spec.Bytes(v)
	must(t, err)
	v.Set = fmt.Sprintf(wide, 3)
	three, err := spec.Bytes(v)
	must(t, err)
	v.Set, v.Shards = fmt.Sprintf(wide, max(2, 2+(size-two)/(three-two))), 2
	model, err := spec.Write(dir, v)
	must(t, err)

	files := []bucket.File{}
	list, err := os.ReadDir(model)
	must(t, err)
	var bytes int64
	for _, e := range list {
		info, err := e.Info()
		must(t, err)
		bytes += info.Size()
		files = append(files, bucket.File{Path: filepath.Join(model, e.Name()),
			To: bucket.Name{Bucket: "models", Key: "some/model/" + e.Name()}})
	}
	begun := time.Now()
	must(t, s.client.Upload(context.Background(), files, bucket.UploadOptions{}))
	t.Logf("written: %d bytes, %.0f MB/s", bytes, float64(bytes)/1e6/time.Since(begun).Seconds())
	for _, f := range files {
		sum, speed := s.sum(f.To.String())
		if sum != fileSum(t, f.Path) {
			t.Fatalf("%s differs from %s", f.To, f.Path)
		}
		if strings.HasSuffix(f.Path, "-00001-of-00002.safetensors") {
			t.Logf("read as one stream: %.0f MB/s", speed/1e6)
		}
	}

	f16 := filepath.Join(dir, "local.gguf")
	ours(t, "ggconv", "--progress", "none", "--outtype", "f16", "--model-name", "x", model, f16)
	want := fileSum(t, f16)
	again := filepath.Join(dir, "again.gguf")
	begun = time.Now()
	ours(t, "ggconv", "--progress", "none", "--outtype", "f16", "--model-name", "x", "s3://models/some/model", again)
	t.Logf("converted while it was read: %.0f MB/s", float64(bytes)/1e6/time.Since(begun).Seconds())
	same := func(path string) {
		t.Helper()
		if got := fileSum(t, path); got != want {
			t.Errorf("sha256 %s, want %s", got, want)
		}
		must(t, os.Remove(path))
	}
	same(again)
	restart := func(*os.Process) {
		s.kill()
		time.Sleep(time.Second)
		s.start()
	}

	t.Run("server-killed-while-read", func(t *testing.T) {
		out, err := during(t, "", 0.3, restart, "ggconv", "--outtype", "f16", "--model-name", "x",
			"s3://models/some/model", again)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		same(again)
	})
	t.Run("killed-while-read", func(t *testing.T) {
		kill := func(p *os.Process) { p.Kill() }
		if _, err := during(t, "", 0.4, kill, "ggconv", "--resume", "--outtype", "f16", "--model-name", "x",
			"s3://models/some/model", again); err == nil {
			t.Fatal("it was not killed")
		}
		ours(t, "ggconv", "--resume", "--outtype", "f16", "--model-name", "x", "s3://models/some/model", again)
		same(again)
	})
	isThere := func(t *testing.T, name string) {
		t.Helper()
		if sum, _ := s.sum(name); sum != want {
			t.Errorf("%s: sha256 %s, want %s", name, sum, want)
		}
		if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
			t.Errorf("left in the work folder: %v %v", left, err)
		}
		if left, err := s.client.Incomplete(context.Background(), bucket.Name{Bucket: "out"}); err != nil ||
			len(left) > 0 {
			t.Errorf("uploads left: %v %v", left, err)
		}
	}
	convert := func(to string) []string {
		return []string{"--outtype", "f16", "--model-name", "x", "--work-dir", work, model, to}
	}
	t.Run("server-killed-while-written", func(t *testing.T) {
		out, err := during(t, "upload", 0.3, restart, "ggconv", convert("s3://out/a.gguf")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		isThere(t, "s3://out/a.gguf")
	})
	t.Run("killed-while-written", func(t *testing.T) {
		for _, share := range []float64{0.1, 0.5, 0.9} {
			kill := func(p *os.Process) { p.Kill() }
			if _, err := during(t, "upload", share, kill, "ggconv", convert("s3://out/b.gguf")...); err == nil {
				t.Fatal("it was not killed")
			}
			if s.there("s3://out/b.gguf") {
				t.Fatal("the object is there before it is complete")
			}
		}
		if out := ours(t, "ggconv", convert("s3://out/b.gguf")...); !strings.Contains(out, "made by an earlier run") {
			t.Errorf("the output was made again: %s", out)
		}
		isThere(t, "s3://out/b.gguf")
		out, err := exec.Command(filepath.Join(bin, "ggconv"), convert("s3://out/b.gguf")...).CombinedOutput()
		if code := exitCode(err); code != 2 || !strings.Contains(string(out), "exists") {
			t.Errorf("an object that is there: exit code %d: %s", code, out)
		}
	})
	t.Run("killed-while-several-are-written", func(t *testing.T) {
		ours(t, "ggquant", "--progress", "none", "--name-template", "{ftype}.gguf", "--model-name", "x", "--out-dir",
			dir, model, "Q8_0", "Q4_0")
		argv := []string{"--name-template", "{ftype}.gguf", "--model-name", "x", "--work-dir", work, "--out-dir",
			"s3://out/quants", "s3://models/some/model", "Q8_0", "Q4_0"}
		kill := func(p *os.Process) { p.Kill() }
		if _, err := during(t, "upload", 0.5, kill, "ggquant", argv...); err == nil {
			t.Fatal("it was not killed")
		}
		ours(t, "ggquant", argv...)
		want = fileSum(t, filepath.Join(dir, "q8_0.gguf"))
		isThere(t, "s3://out/quants/q8_0.gguf")
		want = fileSum(t, filepath.Join(dir, "q4_0.gguf"))
		isThere(t, "s3://out/quants/q4_0.gguf")
	})
}

// exitCode returns the exit code of a command.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}
