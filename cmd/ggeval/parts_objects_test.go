package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ggforge/test/buckettest"
	"ggforge/test/hubtest"
)

// TestObjectParts keeps the parts of an importance matrix and of figures as objects: the results are those of one
// process, and no file of a part stays on this machine.
func TestObjectParts(t *testing.T) {
	text, model := textOf(t, source(t, 1000)), checkpointOf(t, "llama", 1)
	s := buckettest.Serve(t, "", "")
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, log, err := call(append(args, "-f", text, "-c", "16", "--chunks", "6", "--progress", "none")...)
		if code != want {
			t.Fatalf("%q: exit code %d, want %d: %v, %s", args, code, want, err, log)
		}
		return out
	}
	one, all := filepath.Join(dir, "one"), filepath.Join(dir, "all")
	matrix := []string{"imatrix", model, "--sum-chunks", "2"}
	run(0, append(matrix, "-o", one)...)
	matrix = append(matrix, "-o", all, "--part-files", "s3://out/run/")
	run(7, append(matrix, "--finish")...)
	for _, k := range []string{"2/3", "1/3"} {
		run(0, append(matrix, "--part", k)...)
	}
	run(7, append(matrix, "--finish")...)
	run(0, append(matrix, "--part", "3/3")...)
	if out := run(0, append(matrix, "--part", "3/3", "--json")...); !strings.Contains(out, `"done_before": true`) ||
		!strings.Contains(out, "s3://out/run/imatrix.part-3-of-3") {
		t.Errorf("a part that is there: %s", out)
	}
	run(0, append(matrix, "--finish")...)
	if !bytes.Equal(bytesOf(t, one), bytesOf(t, all)) {
		t.Error("the matrix of parts is not that of one process")
	}
	figures := []string{"perplexity", model}
	want := run(0, figures...)
	for k := range 2 {
		run(0, append(figures, "--part-files", "s3://out/p", "--part", fmt.Sprintf("%d/2", k+1))...)
	}
	if got := run(0, append(figures, "--part-files", "s3://out/p", "--finish")...); cost.ReplaceAllString(got, "") !=
		cost.ReplaceAllString(want, "") {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Put("out/p.part-1-of-2", s.Get("out/p.part-1-of-2")[:99])
	run(3, append(figures, "--part-files", "s3://out/p", "--finish")...)
	run(5, append(figures, "--part-files", "s3://out/run/imatrix", "--part", "1/3")...)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// TestObjectsOnly makes a matrix and a page with nothing on a disk: texts, model, parts and results are objects or files
// of the hub. Processes are killed at random requests and run again, requests fail, and answers are lost. A run that is
// submitted again finds what is there.
func TestObjectsOnly(t *testing.T) {
	model, text := checkpointOf(t, "llama", 1), textOf(t, source(t, 1000))
	dir, temp := t.TempDir(), t.TempDir()
	const chunks = "6"
	flags := []string{"-c", "16", "--chunks", chunks, "--progress", "none"}
	one := filepath.Join(dir, "im.gguf")
	if code, _, log, err := call(append([]string{"imatrix", model, "-f", text, "-o", one, "--sum-chunks", "2"},
		flags...)...); code != 0 {
		t.Fatal(err, log)
	}
	want := bytesOf(t, one)
	texts := filepath.Join(dir, "texts")
	if err := os.Mkdir(texts, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(texts, "text.txt"), bytesOf(t, text), 0o666); err != nil {
		t.Fatal(err)
	}
	hub := hubtest.Serve(t, "datasets/org/texts", texts)
	t.Setenv("TMPDIR", temp)
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := buckettest.Serve(t, model, "models/m/")
		t.Setenv("HF_ENDPOINT", hub.URL)
		s.NoSums, s.Conditions = seed == 2, true
		var mu sync.Mutex
		left, broken := 0, false
		s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				broken = true
			}
			switch {
			case broken:
				buckettest.Fail(w, 403, "AccessDenied")
				return true
			case n%41 == 5:
				buckettest.Fail(w, 503, "SlowDown")
				return true
			case n%43 == 6 && r.Method != "GET":
				s.Lose(w, r)
				return true
			}
			return false
		})
		kills := 0
		run := func(kill int, args ...string) (code int, out string, err error) {
			mu.Lock()
			left, broken = kill, false
			mu.Unlock()
			args = append(append([]string{args[0], "s3://models/m", "-f", "hf://datasets/org/texts/text.txt"}, args[1:]...), flags...)
			code, out, _, err = call(args...)
			return code, out, err
		}
		until := func(args ...string) string {
			for {
				kill := 0
				if kills < 6 {
					kill = 1 + random.IntN(25)
				}
				code, out, err := run(kill, args...)
				if code == 0 {
					return out
				}
				if kills++; kill == 0 {
					t.Fatalf("seed %d, %q: exit code %d, %v", seed, args, code, err)
				}
			}
		}
		matrix := []string{"imatrix", "--sum-chunks", "2", "-o", "s3://out/im.gguf", "--json"}
		for k := range 3 {
			until(append(matrix, "--part", fmt.Sprintf("%d/3", k+1))...)
		}
		out := until(append(matrix, "--finish")...)
		var r struct{ Output, Text string }
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Output != "s3://out/im.gguf" ||
			r.Text != "hf://datasets/org/texts/text.txt" {
			t.Errorf("seed %d: result %s, %v", seed, out, err)
		}
		if !bytes.Equal(s.Get("out/im.gguf"), want) {
			t.Errorf("seed %d: the matrix is not that of one process; objects %v", seed, s.Names())
		}
		for _, again := range [][]string{{"--part", "2/3"}, {"--finish"}} {
			if code, _, err := run(0, append(matrix, again...)...); code != 0 {
				t.Errorf("seed %d: submitted again: %q: exit code %d, %v", seed, again, code, err)
			}
		}
		if n := s.Uploads(); n > 0 {
			t.Errorf("seed %d: killed processes have left %d uploads", seed, n)
		}
		s.Put("out/im.gguf", []byte("of somebody else"))
		if code, _, err := run(0, append(matrix, "--finish")...); code != 2 || string(s.Get("out/im.gguf")) !=
			"of somebody else" {
			t.Errorf("seed %d: another object is there: exit code %d, %v", seed, code, err)
		}
		other := []string{"imatrix", "--sum-chunks", "3", "-o", "s3://out/im.gguf", "--part-files", "s3://out/o/"}
		if code, _, err := run(0, append(other, "--part", "1/2")...); code != 2 {
			t.Errorf("seed %d: a part of an output that exists: exit code %d, %v", seed, code, err)
		}
		if code, _, err := run(0, append(matrix, "--finish", "--force")...); code != 0 ||
			!bytes.Equal(s.Get("out/im.gguf"), want) {
			t.Errorf("seed %d: --force: exit code %d, %v", seed, code, err)
		}
		figures := []string{"perplexity", "--html", "s3://out/page.html", "--part-files", "s3://out/p/"}
		for k := range 2 {
			until("perplexity", "--part-files", "s3://out/p/", "--part", fmt.Sprintf("%d/2", k+1))
		}
		if code, _, err := run(0, append(figures, "--finish")...); code != 0 ||
			!bytes.Contains(s.Get("out/page.html"), []byte("<title>")) {
			t.Errorf("seed %d: --html: exit code %d, %v", seed, code, err)
		}
		if code, _, _ := run(0, append(figures, "--finish")...); code != 2 {
			t.Errorf("seed %d: --html of an object that exists: exit code %d", seed, code)
		}
		if kills < 6 {
			t.Errorf("seed %d: %d kills", seed, kills)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
	for _, args := range [][]string{{"-o", "hf://org/name/im.gguf"}, {"-o", "s3://out/a/"}, {"-o", "s3://out"},
		{"-o", "s3://out/im.gguf", "--save-every", "2"}} {
		if code, _, _, err := call(append(append([]string{"imatrix", model, "-f", text}, args...), flags...)...); code != 2 {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
}

// TestHostileObjects has objects in the place of a part that are not that part: each is named, and no more of it is read
// than its head, however long it is.
func TestHostileObjects(t *testing.T) {
	text, model := textOf(t, source(t, 1000)), checkpointOf(t, "llama", 1)
	t.Setenv("TMPDIR", t.TempDir())
	s := buckettest.Serve(t, "", "")
	run := func(args ...string) (int, error) {
		code, _, _, err := call(append([]string{"perplexity", model, "-f", text, "-c", "16", "--progress", "none",
			"--part-files", "s3://out/p"}, args...)...)
		return code, err
	}
	for _, k := range []string{"1/2", "2/2"} {
		if code, err := run("--chunks", "6", "--part", k); code != 0 {
			t.Fatal(err)
		}
	}
	const name, huge = "out/p.part-2-of-2", int64(1) << 45
	good := bytes.Clone(s.Get(name))
	n := int(binary.LittleEndian.Uint32(good[8:]))
	head := good[:12+n]
	// replaced is the part with another text in its head, of any length, and a right checksum.
	replaced := func(old, new string) []byte {
		h := bytes.Replace(head[12:], []byte(old), []byte(new), 1)
		b := binary.LittleEndian.AppendUint32([]byte("ggparts1"), uint32(len(h)))
		b = append(append(b, h...), good[12+n:len(good)-32]...)
		sum := sha256.Sum256(b)
		return append(b, sum[:]...)
	}
	wrong := bytes.Clone(good)
	wrong[len(wrong)-40] ^= 1
	long := binary.LittleEndian.AppendUint32([]byte("ggparts1"), 1<<32-1)
	for _, c := range []struct {
		name   string
		data   []byte
		size   int64 // that the server claims, zeros after data; 0 for that of data
		finish int   // exit code
		again  int   // of a second run of the part
		want   string
	}{
		{"wrong sum", wrong, 0, 3, 0, "its SHA-256 is"},
		{"cut", good[:len(good)-5], 0, 3, 0, "are left"},
		{"empty", []byte(" "), 0, 3, 5, "is no part of a job"},
		{"too long", good, huge, 3, 0, "bytes are in no section"},
		{"not ours, long", []byte("a film"), huge, 3, 5, "is no part of a job"},
		{"a long head", long, huge, 3, 0, "a head of 4294967295"},
		{"a long section", replaced(`"sections":[`, fmt.Sprintf(`"sections":[%d,`, huge)), huge, 3, 0, "are left"},
		{"another run, long", replaced(`"first predicted position","value":"`, `"first predicted position","value":"9`),
			huge, 3, 0, "bytes are in no section"},
		{"another run", replaced(`"first predicted position","value":"`, `"first predicted position","value":"9`), 0, 5, 5,
			"belongs to another job"},
		{"another part", s.Get("out/p.part-1-of-2"), 0, 5, 5, "is part 1 of 2"},
	} {
		s.Put(name, c.data)
		var written atomic.Int64
		s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if c.size == 0 || r.URL.Path != "/"+name || r.Method != "GET" && r.Method != "HEAD" {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(c.size))
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			if r.Method == "HEAD" {
				return true
			}
			b := bytes.Clone(c.data)
			for range 1 << 10 { // a MiB each
				k, err := w.Write(b)
				if written.Add(int64(k)); err != nil {
					break
				}
				b = make([]byte, 1<<20)
			}
			return true
		})
		code, err := run("--chunks", "6", "--finish")
		if code != c.finish || err == nil || !strings.Contains(err.Error(), "2/2 (") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, want %d: %v", c.name, code, c.finish, err)
		}
		if n := written.Load(); n > 64<<20 {
			t.Errorf("%s: %d bytes were sent", c.name, n)
		}
		s.SetAnswer(nil)
		if c.size != 0 {
			continue
		}
		if code, err := run("--chunks", "6", "--part", "2/2"); code != c.again {
			t.Errorf("%s: run again: exit code %d, want %d: %v", c.name, code, c.again, err)
		}
		if code, err := run("--chunks", "6", "--part", "2/2", "--force"); code != 0 || !bytes.Equal(s.Get(name), good) {
			t.Errorf("%s: --force: exit code %d: %v", c.name, code, err)
		}
	}
}
