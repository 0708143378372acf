package main

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/imatrix/imatrixtest"
	"ggforge/test/buckettest"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
)

// TestObjects quantizes a checkpoint of objects to objects, two types at once.
func TestObjects(t *testing.T) {
	const checkpoint = "../../test/testdata/gollama"
	dir, work := t.TempDir(), t.TempDir()
	s := buckettest.Serve(t, checkpoint, "models/gollama/")
	types := []string{"Q8_0", "Q4_0"}
	if code, _, err := call(append([]string{"--progress", "none", "--name-template", "x-{ftype}.gguf", "--out-dir", dir,
		checkpoint}, types...)...); code != 0 {
		t.Fatal(err)
	}
	if code, out, err := call(append([]string{"--progress", "none", "--name-template", "x-{ftype}.gguf", "--work-dir",
		work, "--out-dir", "s3://out/quants", "s3://models/gollama"}, types...)...); code != 0 {
		t.Fatalf("%s %v", out, err)
	}
	for _, name := range []string{"x-q8_0.gguf", "x-q4_0.gguf"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(s.Get("out/quants/"+name), want) {
			t.Errorf("%s is not the file that the directory gives: %v, objects %v", name, err, s.Names())
		}
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left in the work folder: %v %v", left, err)
	}
	if code, _, _ := call("s3://models/gollama", "s3://out/quants/", "Q8_0"); code != 2 {
		t.Errorf("a folder as output: exit code %d", code)
	}
}

// TestRemoteFiles quantizes GGUF files of servers: one file, and the shards of a model, which are read by ranges.
func TestRemoteFiles(t *testing.T) {
	folder := t.TempDir()
	in, shards := filepath.Join(folder, "in.gguf"), filepath.Join(folder, "s")
	for _, args := range [][]string{{"../../test/testdata/gollama", in, "F16"},
		{"--split-max-tensors", "9", in, shards, "F16"}, {in, filepath.Join(folder, "want"), "Q4_0"}} {
		if code, _, err := call(append([]string{"--progress", "none"}, args...)...); code != 0 {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join(folder, "want"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := filepath.Glob(shards + "-00001-of-*")
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	buckettest.Serve(t, folder, "models/")
	hub := hubtest.Serve(t, "org/name", folder)
	t.Setenv("HF_ENDPOINT", hub.URL)
	cache := t.TempDir()
	for i, args := range [][]string{
		{"s3://models/in.gguf"},
		{"s3://models/" + filepath.Base(first[0])},
		{"hf://org/name/in.gguf"},
		{"--cache", cache, "hf://org/name/" + filepath.Base(first[0])},
		{"--cache", cache, "--remote", "org/name/" + filepath.Base(first[0])},
		{hub.Host + "/in.gguf"},
	} {
		out := filepath.Join(t.TempDir(), "o")
		if code, text, err := call(append(append([]string{"--progress", "none"}, args...), out, "Q4_0")...); code != 0 {
			t.Errorf("%q: %s %v", args, text, err)
			continue
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: the output for %q differs from that for the local file: %v", i, args, err)
		}
	}
	for _, args := range [][]string{{"--pre", "x", "s3://models/in.gguf", "o", "Q4_0"},
		{"--cache", cache, in, "o", "Q4_0"}} {
		if code, _, err := call(args...); code != 2 {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
	if code, _, err := call("s3://models/want.gguf", filepath.Join(cache, "o"), "Q4_0"); code != 1 {
		t.Errorf("an object that is not there: exit code %d, %v", code, err)
	}
}

// TestFetchedFiles gives the files of flags by their addresses: outputs and manifests are those of the files themselves,
// in parts, too, and no copy is left.
func TestFetchedFiles(t *testing.T) {
	folder, dir, temp := t.TempDir(), t.TempDir(), t.TempDir()
	const model = "../../test/testdata/gollama"
	matrix, rules := filepath.Join(folder, "im.gguf"), filepath.Join(folder, "rules")
	sums := make([]float32, 256)
	for i := range sums {
		sums[i] = float32(1 + i%7)
	}
	if err := imatrixtest.Write(matrix, imatrixtest.GGUF([]imatrixtest.Entry{{Name: "blk.0.attn_q.weight",
		Counts: []float32{1}, Sums: sums}}, []string{"text.txt"}, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, []byte("attn_v=q8_0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) {
		t.Helper()
		if code, text, err := call(append([]string{"--progress", "none"}, args...)...); code != want {
			t.Fatalf("%q: exit code %d, want %d: %s %v", args, code, want, text, err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := filepath.Join(dir, "one.gguf")
	run(0, "--imatrix", matrix, "--tensor-type-file", rules, "--manifest", one+".json", model, one, "Q4_K_M")
	want := read(one)
	s := buckettest.Serve(t, folder, "files/")
	hub := hubtest.Serve(t, "datasets/org/files", folder)
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("TMPDIR", temp)
	for _, from := range []string{"s3://files/", "hf://datasets/org/files/", hub.Host + "/"} {
		os.Remove(one)
		os.Remove(one + ".json")
		run(0, "--imatrix", from+"im.gguf", "--tensor-type-file", from+"rules", "--manifest", one+".json", model, one, "Q4_K_M")
		if !bytes.Equal(read(one), want) {
			t.Errorf("%s: another output", from)
		}
		if text := string(read(one + ".json")); !strings.Contains(text, `"im.gguf"`) || strings.Contains(text, temp) {
			t.Errorf("%s: manifest %s", from, text)
		}
	}
	flags := []string{"--imatrix", "s3://files/im.gguf", "--tensor-type-file", "s3://files/rules", model, "s3://out/k.gguf", "Q4_K_M"}
	for _, part := range []string{"1/2", "2/2"} {
		run(0, append([]string{"--part", part}, flags...)...)
	}
	run(0, append([]string{"--finish"}, flags...)...)
	if !bytes.Equal(s.Get("out/k.gguf"), want) {
		t.Error("parts: another output")
	}
	run(2, "--compat", "llama.cpp", "--imatrix", "s3://files/im.gguf", model, filepath.Join(dir, "two"), "Q4_K_M")
	for _, c := range []struct {
		name string
		code int
	}{{"s3://files/none", 1}, {"hf://datasets/org/files/none", 1}, {"hf://datasets/org", 2}, {"s3://files/", 2},
		{"hf://datasets/../x/y", 2}} {
		run(c.code, "--imatrix", c.name, model, filepath.Join(dir, "two"), "Q4_K_M")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// together returns an answer that holds the first n requests of a kind until all n have arrived.
func together(n int, is func(r *http.Request) bool) buckettest.Answer {
	var came atomic.Int64
	all := make(chan struct{})
	return func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if !is(r) {
			return false
		}
		if k := came.Add(1); k == int64(n) {
			close(all)
		} else if k > int64(n) {
			return false
		}
		select {
		case <-all:
		case <-time.After(20 * time.Second):
		}
		return false
	}
}

func begins(r *http.Request) bool { return r.Method == "POST" && r.URL.Query().Has("uploads") }
func ends(r *http.Request) bool   { return r.Method == "POST" && r.URL.Query().Has("uploadId") }

// TestUploadsAtOnce has three runs write one object at the same time: one succeeds, the others report the existing
// object, and the next run resumes the remaining uploads.
func TestUploadsAtOnce(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	wants := map[string][]byte{}
	types := []string{"Q8_0", "Q5_0", "Q4_0"}
	for _, typ := range types {
		path := filepath.Join(t.TempDir(), "x")
		if code, text, err := call("--progress", "none", in, path, typ); code != 0 {
			t.Fatal(text, err)
		}
		var err error
		if wants[typ], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	same := []string{"Q8_0", "Q8_0", "Q8_0"}
	for _, c := range []struct {
		name   string
		answer func(s *buckettest.Server) buckettest.Answer
		types  []string
		shared bool     // all in one work folder
		flags  []string // of all runs
		there  string   // content of the object before the runs, "" for none
		code   int      // exit code of the losing runs
		texts  []string // their message has one of these
		left   bool     // their outputs stay in the work folder, for the same command with --force
	}{
		{name: "one work folder", types: same, shared: true, code: 2,
			texts: []string{"s3://out/x.gguf: another run makes or uploads it", "s3://out/x.gguf: exists: "}},
		{name: "same content", types: same, code: 2, texts: []string{"s3://out/x.gguf: exists: "},
			answer: func(*buckettest.Server) buckettest.Answer {
				return together(3, ends)
			}},
		{name: "other content", types: types, code: 2, texts: []string{"s3://out/x.gguf: exists: "}, left: true,
			answer: func(*buckettest.Server) buckettest.Answer {
				return together(3, ends)
			}},
		{name: "replaced", types: types, flags: []string{"--force"}, there: "old", code: 5,
			texts: []string{"s3://out/x.gguf: another upload has changed it since this one began: found "}, left: true,
			answer: func(*buckettest.Server) buckettest.Answer {
				return together(3, ends)
			}},
		{name: "force, nothing there", types: types, flags: []string{"--force"}, code: 5,
			texts: []string{", want nothing"}, left: true, answer: func(*buckettest.Server) buckettest.Answer {
				return together(3, ends)
			}},
		{name: "no conditions", types: types, code: 2, texts: []string{"s3://out/x.gguf: exists: "}, left: true,
			answer: func(s *buckettest.Server) buckettest.Answer {
				all := together(3, begins)
				var mu sync.Mutex
				first := ""
				return func(n int, w http.ResponseWriter, r *http.Request) bool {
					all(n, w, r)
					if r.Method == "PUT" { // of the others after the first one has become the object
						id := r.URL.Query().Get("uploadId")
						mu.Lock()
						first = cmp.Or(first, id)
						wait := id != first
						mu.Unlock()
						for end := time.Now().Add(20 * time.Second); wait && s.Get("out/x.gguf") == nil &&
							time.Now().Before(end); {
							time.Sleep(time.Millisecond)
						}
					}
					refused := ends(r) && r.Header.Get("If-None-Match") != ""
					if refused {
						buckettest.Fail(w, 501, "NotImplemented")
					}
					return refused
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buckettest.Serve(t, "", "")
			if c.there != "" {
				s.Put("out/x.gguf", []byte(c.there))
			}
			if c.answer != nil {
				s.SetAnswer(c.answer(s))
			}
			works, args, codes, texts := make([]string, 3), make([][]string, 3), make([]int, 3), make([]string, 3)
			var runs sync.WaitGroup
			for i, typ := range c.types {
				works[i] = t.TempDir()
				if c.shared {
					works[i] = works[0]
				}
				args[i] = append(append([]string{"--progress", "none", "--work-dir", works[i]}, c.flags...), in,
					"s3://out/x.gguf", typ)
				runs.Go(func() {
					code, text, err := call(args[i]...)
					codes[i], texts[i] = code, fmt.Sprint(text, err)
				})
			}
			runs.Wait()
			s.SetAnswer(nil)
			winner := slices.Index(codes, 0)
			if winner < 0 {
				t.Fatalf("no run has succeeded: %v %q", codes, texts)
			}
			if !bytes.Equal(s.Get("out/x.gguf"), wants[c.types[winner]]) || len(s.Names()) != 1 || s.Uploads() > 0 {
				t.Errorf("%s has succeeded, and the object differs from its output; objects %v, %d uploads left",
					c.types[winner],
					s.Names(), s.Uploads())
			}
			for i, typ := range c.types {
				left, err := os.ReadDir(works[i])
				if err != nil || len(left) > 0 != (c.left && i != winner) {
					t.Errorf("%d: left in the work folder: %v %v", i, left, err)
				}
				if i == winner {
					continue
				}
				if codes[i] != c.code || !slices.ContainsFunc(c.texts,
					func(text string) bool { return strings.Contains(texts[i], text) }) {
					t.Errorf("%d: exit code %d, want %d: %s", i, codes[i], c.code, texts[i])
				}
				if !c.left {
					continue
				}
				if code, text, err := call(append([]string{"--force"}, args[i]...)...); code != 0 ||
					!strings.Contains(text, "made by an earlier run") ||
					!bytes.Equal(s.Get("out/x.gguf"), wants[typ]) || s.Uploads() > 0 {
					t.Errorf("%d: again with --force: exit code %d: %s %v", i, code, text, err)
				}
				if left, err := os.ReadDir(works[i]); err != nil || len(left) > 0 {
					t.Errorf("%d: left in the work folder in the end: %v %v", i, left, err)
				}
			}
		})
	}
}

// TestShardUploadsAtOnce has three runs replace the shards of a model at the same time: afterwards all shards come
// from the same run.
func TestShardUploadsAtOnce(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	s := buckettest.Serve(t, "", "")
	names := []string{"x-00001-of-00003.gguf", "x-00002-of-00003.gguf", "x-00003-of-00003.gguf"}
	for _, name := range names {
		s.Put("out/"+name, []byte("old"))
	}
	s.SetAnswer(together(3, ends))
	types, codes, texts := []string{"Q8_0", "Q5_0", "Q4_0"}, make([]int, 3), make([]string, 3)
	flags := func(typ string) []string {
		return []string{"--progress", "none", "--force", "--split-max-tensors", "2", in, "s3://out/x", typ}
	}
	var runs sync.WaitGroup
	for i, typ := range types {
		work := t.TempDir()
		runs.Go(func() {
			code, text, err := call(append([]string{"--work-dir", work}, flags(typ)...)...)
			codes[i], texts[i] = code, fmt.Sprint(text, err)
		})
	}
	runs.Wait()
	sorted := slices.Sorted(slices.Values(codes))
	if !slices.Equal(sorted, []int{0, 5, 5}) || s.Uploads() > 0 || len(s.Names()) != 3 {
		t.Fatalf("exit codes %v, %q; objects %v, %d uploads left", codes, texts, s.Names(), s.Uploads())
	}
	dir := t.TempDir()
	want := flags(types[slices.Index(codes, 0)])
	want[len(want)-2] = filepath.Join(dir, "x")
	if code, text, err := call(want...); code != 0 {
		t.Fatal(text, err)
	}
	for _, name := range names {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(s.Get("out/"+name), data) {
			t.Errorf("%s is not of the run that has succeeded: %v", name, err)
		}
	}
}

// TestObjectSideFiles uploads outputs and writes local files about them. Such a file appears when the upload is
// complete, replaces nothing without --force, and does not stop the same command from resuming an interrupted upload.
func TestObjectSideFiles(t *testing.T) {
	const object = "s3://out/x.gguf"
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	refuse := func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return r.Method == "PUT"
	}
	checkpoint, err := hftest.Lookup("llama").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	calibrated := []string{"--calibrate", "../ggeval/testdata/text.txt", "-c", "16", "--chunks", "1", "--effort",
		"high", "--hessian"}
	for _, c := range []struct {
		name  string
		flags []string // the last one takes the name of the file
		args  []string
		early bool // the file is written even if the upload fails
	}{
		{"recipe", []string{"--save-recipe"}, []string{in, object, "Q4_K_M"}, false},
		{"hessian", calibrated, []string{checkpoint, object, "Q4_0"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, work := t.TempDir(), t.TempDir()
			file, want := filepath.Join(dir, "file"), filepath.Join(dir, "want")
			run := func(file string, more ...string) (int, string) {
				code, text, err := call(slices.Concat([]string{"--progress", "none"}, c.flags, []string{file}, more)...)
				return code, fmt.Sprint(text, err)
			}
			local := slices.Clone(c.args)
			local[1] = filepath.Join(dir, "x.gguf")
			if code, text := run(want, local...); code != 0 {
				t.Fatal(text)
			}
			s := buckettest.Serve(t, "", "")
			s.SetAnswer(refuse)
			args := append([]string{"--work-dir", work}, c.args...)
			if code, text := run(file, args...); code != 1 ||
				!strings.Contains(text, "run the same command again to upload it") {
				t.Fatalf("exit code %d: %s", code, text)
			}
			if _, err := os.Stat(file); err == nil != c.early {
				t.Errorf("the upload has failed, and the file is there: %v", err == nil)
			}
			s.SetAnswer(nil)
			if code, text := run(file, args...); code != 0 || !strings.Contains(text, "made by an earlier run") {
				t.Errorf("again: exit code %d: %s", code, text)
			}
			model, err := os.ReadFile(local[1])
			if err != nil || !bytes.Equal(s.Get("out/x.gguf"), model) {
				t.Errorf("the object is not the file that a run without objects gives: %v", err)
			}
			a, err := os.ReadFile(file)
			b, err2 := os.ReadFile(want)
			if err != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("the file is not the one that a run without objects gives: %v %v", err, err2)
			}
			if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
				t.Errorf("left in the work folder: %v %v", left, err)
			}
		})
	}
	file, work := filepath.Join(t.TempDir(), "file"), t.TempDir()
	s := buckettest.Serve(t, "", "")
	for _, args := range [][]string{{"--dry-run"}, {}} {
		if err := os.WriteFile(file, []byte("of the user"), 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--progress", "none", "--work-dir", work, "--save-recipe", file, in, object, "Q4_K_M")
		if code, text, err := call(args...); code != 2 || !strings.Contains(fmt.Sprint(text, err), "exists") {
			t.Errorf("%q: exit code %d: %s %v", args, code, text, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "of the user" {
			t.Errorf("%q: replaced by %q, %v", args, got, err)
		}
		if code, text, err := call(append([]string{"--force"}, args...)...); code != 0 {
			t.Errorf("%q with --force: %s %v", args, text, err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) == "of the user" {
			t.Errorf("%q with --force: not replaced, %v", args, err)
		}
	}
	// outputs in object storage get no manifest
	parts := s.Parts()
	for _, out := range [][]string{{in, "s3://out/y.gguf", "Q8_0"}, {"--out-dir", "s3://out/", in, "Q8_0"}} {
		args := append([]string{"--progress", "none", "--work-dir", work, "--manifest", file + ".json"}, out...)
		if code, _, err := call(args...); code != 2 ||
			!strings.Contains(fmt.Sprint(err), "--manifest is for outputs that are files") {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
	if _, err := os.Stat(file + ".json"); err == nil || s.Parts() > parts || len(s.Names()) != 1 {
		t.Errorf("a manifest: %v, objects %v", err, s.Names())
	}
}
