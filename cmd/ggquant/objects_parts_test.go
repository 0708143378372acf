package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ggforge/test/buckettest"
)

// TestObjectParts quantizes a checkpoint of objects in parts that send pieces of objects. Requests fail, answers are
// lost, and processes are killed at random requests: the objects are those of one process, no part that the server
// has confirmed is sent again, and no file is made.
func TestObjectParts(t *testing.T) {
	const checkpoint = "../../test/testdata/gollama"
	dir, temp := t.TempDir(), t.TempDir()
	types := []string{"F32", "F16", "Q8_0"}
	flags := []string{"--progress", "none", "--allow-requantize", "--name-template", "x-{ftype}.gguf", "--out-dir"}
	if code, _, err := call(append(append(flags, dir, checkpoint), types...)...); code != 0 {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := buckettest.Serve(t, checkpoint, "models/gollama/")
		s.Aged, s.NoSums = true, seed == 3 // no process waits for the lease of one that was killed
		if s.NoSums {
			s.Conditions = true
		}
		var mu sync.Mutex
		left, broken := 0, false // requests before the kill
		var twice int64          // bytes of parts whose answers are lost
		s.SetAnswer(func(n int, w http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				broken = true
			}
			switch {
			case broken: // the process is gone: what it sends does not arrive
				buckettest.Fail(w, 403, "AccessDenied")
				return true
			case n%61 == 5:
				buckettest.Fail(w, 503, "SlowDown")
				return true
			case n%67 == 6 && r.Method != "GET": // the answer is lost
				if r.URL.Query().Has("partNumber") {
					twice += r.ContentLength
				}
				s.Lose(w, r)
				return true
			}
			return false
		})
		run := func(kill int, args ...string) (int, error) {
			s.Idle() // what a killed process has sent, arrives
			mu.Lock()
			left, broken = kill, false
			mu.Unlock()
			code, _, err := call(append(append(append(args, flags...), "s3://out/quants", "s3://models/gollama"), types...)...)
			return code, err
		}
		kills := 0
		for k := 1; k <= 3; k++ {
			for {
				kill := 0
				if kills < 20 {
					kill = 1 + random.IntN(35)
				}
				code, err := run(kill, "--part", fmt.Sprintf("%d/3", k))
				if code == 0 {
					break
				}
				if kills++; kill == 0 {
					t.Fatalf("seed %d, part %d: exit code %d, %v", seed, k, code, err)
				}
			}
			if code, err := run(0, "--finish"); k < 3 && code != 7 {
				t.Fatalf("seed %d: --finish after part %d: exit code %d, %v", seed, k, code, err)
			}
		}
		for range 2 {
			if code, err := run(0, "--finish"); code != 0 {
				t.Fatalf("seed %d: --finish: %v", seed, err)
			}
		}
		s.SetAnswer(nil)
		var sent, size int64
		for _, name := range []string{"x-f32.gguf", "x-f16.gguf", "x-q8_0.gguf"} {
			want, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(s.Get("out/quants/"+name), want) {
				t.Errorf("seed %d: %s is not the file that one process makes: %v, objects %v", seed, name, err, s.Names())
			}
			sent, size = sent+s.Sent("out/quants/"+name), size+int64(len(want))
		}
		if sent > size+twice {
			t.Errorf("seed %d: %d bytes were sent, want %d and %d whose answers were lost", seed, sent, size, twice)
		}
		for _, name := range s.Names() {
			if strings.Contains(name, ".partial") {
				t.Errorf("seed %d: left: %s", seed, name)
			}
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("seed %d: left on the disk: %v, %v", seed, left, err)
		}
		t.Logf("seed %d: %d kills", seed, kills)
	}
}
