package convert_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/quantize"
	"ggforge/writer"
)

const testdata = "../test/testdata"

// sums reads the reference's sums, by file name.
func sums(t *testing.T) map[string]string {
	f, err := os.Open(filepath.Join(testdata, "gollama.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		sum, name, ok := strings.Cut(s.Text(), "  ")
		if !ok {
			t.Fatalf("line %q", s.Text())
		}
		all[name] = sum
	}
	return all
}

func sum(t *testing.T, path string) string {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestGollama converts the real model to every type and quantizes it by every
// recipe whose sum is known: each file must be the reference's to the byte.
func TestGollama(t *testing.T) {
	want := sums(t)
	dir := t.TempDir()
	f16 := filepath.Join(dir, "gollama-f16.gguf")
	convertTo := func(t *testing.T, name, path string, workers int) {
		typ, err := convert.ParseOutType(name)
		if err != nil {
			t.Fatal(err)
		}
		job, err := convert.Prepare(t.Context(), filepath.Join(testdata, "gollama"), convert.Options{Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		defer job.Close()
		if _, err := job.Write(context.Background(), path, writer.Options{Workers: workers}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"f16", "bf16", "f32", "q8_0", "auto"} {
		t.Run(name, func(t *testing.T) {
			file := "gollama-" + name + ".gguf"
			path := filepath.Join(dir, file)
			convertTo(t, name, path, 1+len(name)) // any number of workers
			if got := sum(t, path); got != want[file] {
				t.Errorf("sha256 %s, want %s", got, want[file])
			}
			delete(want, file)
		})
	}
	for file := range want {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "gollama-"), ".gguf")
		if testing.Short() && !slices.Contains([]string{"Q8_0", "Q4_0", "COPY"}, name) { // the others search
			continue
		}
		t.Run(name, func(t *testing.T) {
			recipe, ok := quantize.LookupRecipe(name)
			if !ok {
				t.Fatal("unknown recipe")
			}
			job, err := quantize.Prepare(t.Context(), f16,
				quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe}})
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			path := filepath.Join(dir, file)
			report, err := job.Report(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := job.Write(context.Background(), path, writer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if res.Bytes != report.Bytes {
				t.Errorf("%d bytes, predicted %d", res.Bytes, report.Bytes)
			}
			if got := sum(t, path); got != want[file] {
				t.Errorf("sha256 %s, want %s", got, want[file])
			}
		})
	}
	if len(want) < 18 {
		t.Errorf("only %d sums of recipes", len(want))
	}
}

// TestGollamaWorkers checks that the number of workers has no influence.
func TestGollamaWorkers(t *testing.T) {
	dir := t.TempDir()
	name := "Q4_K_M"
	if testing.Short() {
		name = "Q4_0" // without searches
	}
	var first string
	for _, workers := range []int{1, 8} {
		job, err := convert.Prepare(t.Context(), filepath.Join(testdata, "gollama"),
			convert.Options{Type: convert.Q8_0})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "out.gguf")
		if _, err := job.Write(context.Background(), path, writer.Options{Workers: workers, Force: true}); err != nil {
			t.Fatal(err)
		}
		job.Close()
		recipe, _ := quantize.LookupRecipe(name)
		q, err := quantize.Prepare(t.Context(), path,
			quantize.Options{PlanOptions: quantize.PlanOptions{Recipe: recipe, AllowRequantize: true}})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "q.gguf")
		if _, err := q.Write(context.Background(), out, writer.Options{Workers: workers, Force: true}); err != nil {
			t.Fatal(err)
		}
		q.Close()
		s := sum(t, path) + sum(t, out)
		if first == "" {
			first = s
		}
		if s != first {
			t.Errorf("%d workers give other files", workers)
		}
	}
}
