package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/rows"
	"ggforge/test/buckettest"
	"ggforge/writer"
)

// twins writes two models with the same name, header and size, too large to be hashed completely. change turns the
// tensor bytes of the first into those of the second.
func twins(t *testing.T, change func(data []byte)) (a, b string) {
	t.Helper()
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no byte")
	}
	ne := []int64{4096, 8704} // 68 MiB
	data := make([]byte, 2*ne[0]*ne[1])
	for i := 0; i < len(data); i += 2 {
		data[i], data[i+1] = byte(i/2*7), 0x2c+byte(i>>14)%4 // small numbers
	}
	write := func() string {
		path := filepath.Join(t.TempDir(), "m.gguf")
		src := rows.Stored(ne, gguf.TypeF16, data, nil)
		if _, err := writer.Write(t.Context(), &writer.File{
			Path:     path,
			Metadata: gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}},
			Tensors:  []writer.Tensor{{Name: "blk.0.ffn_up.weight", Type: gguf.TypeF16, Source: src}},
		}, writer.Options{}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a = write()
	change(data)
	return a, write()
}

// expecting returns a function that runs ggquant and compares exit code and output.
func expecting(t *testing.T) func(code int, text string, args ...string) {
	return func(code int, text string, args ...string) {
		t.Helper()
		got, out, err := call(append([]string{"--progress", "none"}, args...)...)
		if err != nil {
			out += err.Error()
		}
		if got != code || !strings.Contains(out, text) {
			t.Fatalf("%q: exit code %d, %s; want %d, %q", args, got, out, code, text)
		}
	}
}

// TestPartsOfFineTunes checks that a part made from a different model is refused, although header, size and first MiB
// of both files are the same; and that a run interrupted with one model is not resumed with the other.
func TestPartsOfFineTunes(t *testing.T) {
	a, b := twins(t, func(data []byte) {
		for i := 1 << 20; i < len(data); i += 2 {
			data[i]++
		}
	})
	run := expecting(t)
	for _, files := range [][]string{nil, {"--part-files", t.TempDir()}} {
		out := filepath.Join(t.TempDir(), "o.gguf")
		run(0, "part 1 of 2 is done", append([]string{"--part", "1/2", a, out, "Q8_0"}, files...)...)
		if files != nil { // parts in separate files are compared only when they are put together
			run(0, "part 2 of 2 is done", append([]string{"--part", "2/2", b, out, "Q8_0"}, files...)...)
			run(5, "input m.gguf was 71303", append([]string{"--finish", a, out, "Q8_0"}, files...)...)
			continue
		}
		run(5, "input m.gguf was 71303", "--part", "2/2", b, out, "Q8_0")
		run(5, "model, by header and rows,", "--finish", b, out, "Q8_0")
	}
}

// TestVerifyFindsOtherModel checks that --finish --verify refuses parts made from two models that differ in one byte,
// outside of the rows that identify a model; and that --finish succeeds after the wrong part was made again.
func TestVerifyFindsOtherModel(t *testing.T) {
	a, b := twins(t, func(data []byte) { data[52<<20|12345] ^= 1 })
	run := expecting(t)
	for _, apart := range []bool{false, true} {
		dir := t.TempDir()
		out, want := filepath.Join(dir, "o.gguf"), filepath.Join(dir, "want.gguf")
		run(0, "", a, want, "Q8_0")
		var files []string
		wrong := out + ".partial.2-of-2.rows"
		if apart {
			parts := t.TempDir()
			files, wrong = []string{"--part-files", parts}, filepath.Join(parts, "o.gguf.part-2-of-2")
		}
		args := func(list ...string) []string { return append(list, files...) }
		run(0, "part 1 of 2 is done", args("--part", "1/2", a, out, "Q8_0")...)
		run(0, "part 2 of 2 is done", args("--part", "2/2", b, out, "Q8_0")...)
		run(5, wrong+": rows", args("--finish", "--verify", a, out, "Q8_0")...)
		if _, err := os.Stat(out); err == nil {
			t.Fatal("there is an output of two models")
		}
		if err := os.Remove(wrong); err != nil {
			t.Fatal(err)
		}
		run(0, "part 2 of 2 is done", args("--part", "2/2", a, out, "Q8_0")...)
		run(0, "", args("--finish", "--verify", a, out, "Q8_0")...)
		one, err := os.ReadFile(want)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := os.ReadFile(out); err != nil || !bytes.Equal(one, two) {
			t.Errorf("the output differs from that of one run, %v", err)
		}
	}
}

// TestUploadOfFineTune checks that an output whose upload was interrupted is made again when a different model has
// replaced the input, with the same name, size, time of modification and first 16 MiB.
func TestUploadOfFineTune(t *testing.T) {
	a, b := twins(t, func(data []byte) {
		for i := 17 << 20; i < len(data); i += 2 {
			data[i]++
		}
	})
	run := expecting(t)
	want := filepath.Join(t.TempDir(), "want.gguf")
	run(0, "", b, want, "Q4_0")
	s := buckettest.Serve(t, "", "")
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			buckettest.Fail(w, http.StatusForbidden, "AccessDenied")
		}
		return r.Method == http.MethodPut
	})
	args := []string{"--work-dir", t.TempDir(), a, "s3://out/o.gguf", "Q4_0"}
	run(1, "run the same command again to upload it", args...)
	s.SetAnswer(nil)
	info, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b, a); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(a, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	run(0, "", args...)
	if one, err := os.ReadFile(want); err != nil || !bytes.Equal(one, s.Get("out/o.gguf")) {
		t.Errorf("the object was made from another model, %v", err)
	}
}
