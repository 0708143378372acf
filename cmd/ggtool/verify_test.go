package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggforge/model/digest"
	"ggforge/publish/release"
)

// TestVerify checks intact and broken files, and lists of sums.
func TestVerify(t *testing.T) {
	dir := t.TempDir() + "/"
	run := expect(t, "verify")
	whole, first := shards(t, dir, 1)
	// The model lacks keys, which is reported; its structure is right.
	run(3, `has no key "llama.block_count"`, whole)
	run(3, `has no key "llama.block_count"`, first)
	// A later shard has no metadata of the model.
	later := strings.Replace(first, "00001-of", "00002-of", 1)
	run(0, later+": whole", later)
	odd(t, dir+"odd.gguf", false)
	run(3, `tensor "nan": F32 block 0`, dir+"odd.gguf")
	if out := run(3, "note: ", "--header-only", dir+"odd.gguf"); strings.Contains(out, "F32 block") {
		t.Errorf("--header-only: %s", out)
	}
	other := dir + "new.gguf"
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	data = []byte(strings.Replace(string(data), "llama", "shama", 1))
	if err := os.WriteFile(other, data, 0o666); err != nil {
		t.Fatal(err)
	}
	run(0, other+": whole", other)
	run(3, "1 of 2 files are broken", other, whole)
	var report struct{ Files []verified }
	if err := json.Unmarshal([]byte(run(0, "", "--json", other)), &report); err != nil || len(report.Files) != 1 ||
		!report.Files[0].Whole || len(report.Files[0].Findings) == 0 {
		t.Errorf("%v: %+v", err, report)
	}

	sums := dir + "SHA256SUMS"
	list := func(text string) {
		t.Helper()
		if err := os.WriteFile(sums, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"README.md", []byte("card"), 0o666); err != nil {
		t.Fatal(err)
	}
	right := fmt.Sprintf("%x  new.gguf\n%x *README.md\n", sha256.Sum256(data), sha256.Sum256([]byte("card")))
	list(right)
	run(0, "README.md: whole", "--sums", sums)
	run(0, other+": whole", "--sums", sums, other)
	run(3, "is not in the list of sums", "--sums", sums, whole)
	list(strings.Replace(right, "README.md", "missing.md", 1))
	run(3, "missing.md: is missing", "--sums", sums)
	list(strings.Repeat("0", 64) + "  README.md\n")
	run(3, "README.md: SHA-256 is ", "--sums", sums)
	for _, text := range []string{"", "00  x\n", strings.Repeat("0", 64) + "\n"} {
		list(text)
		run(3, "SHA256SUMS", "--sums", sums)
	}
	list(strings.Repeat("0", 64) + "  no.gguf\n")
	run(3, "no.gguf: is missing", "--sums", sums)
	run(2, "want FILE...")
	run(1, "no.gguf", dir+"no.gguf")

	testManifest(t, dir, data)
}

// testManifest compares new.gguf, which has the content data, and README.md with manifests.
func testManifest(t *testing.T, dir string, data []byte) {
	run := expect(t, "verify")
	model, manifest := dir+"new.gguf", dir+"manifest.json"
	m := release.Manifest{Format: release.ManifestFormat, Files: []release.File{
		{File: digest.File{Name: "new.gguf", Bytes: int64(len(data)), SHA256: fmt.Sprintf("%x", sha256.Sum256(data))},
			Type: "F32"},
		{File: digest.File{Name: "cards/README.md", Bytes: 4,
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("card")))}},
	}}
	save := func() {
		t.Helper()
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(manifest, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	card := filepath.Join(dir, "cards", "README.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(card, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"cards", 0o777); err != nil {
		t.Fatal(err)
	}
	save()
	run(3, card+": is missing", "--manifest", manifest)
	write("card")
	if out := run(0, card+": whole", "--manifest", manifest); !strings.Contains(out, "new.gguf: whole") {
		t.Errorf("the model: %s", out)
	}
	run(0, model+": whole", "--manifest", manifest, model)
	t.Chdir(dir)
	run(0, "new.gguf: whole", "--manifest", manifest, "new.gguf")
	run(0, model+": whole", "--manifest", "manifest.json", model)
	run(0, filepath.Join("cards", "README.md")+": whole", "--manifest", "manifest.json")
	run(3, "SHA256SUMS: is not in the manifest", "--manifest", manifest, dir+"SHA256SUMS")
	write("cart")
	if out := run(3, card+": SHA-256 is ", "--manifest", manifest); !strings.Contains(out, "1 of 2 files are broken") {
		t.Errorf("another sum: %s", out)
	}
	write("cards")
	run(3, card+": has 5 bytes, want 4", "--manifest", manifest)
	var report struct{ Files []verified }
	if err := json.Unmarshal([]byte(strings.SplitAfter(run(3, "has 5 bytes", "--json", "--manifest", manifest),
		"\n}\n")[0]), &report); err != nil || len(report.Files) != 2 || !report.Files[0].Whole ||
		report.Files[1].Whole {
		t.Errorf("%v: %+v", err, report)
	}
	// The structure of models is checked, whatever the manifest has.
	broken := data[:len(data)/2]
	if err := os.WriteFile(model, broken, 0o666); err != nil {
		t.Fatal(err)
	}
	m.Files[0].Bytes, m.Files[0].SHA256 = int64(len(broken)), fmt.Sprintf("%x", sha256.Sum256(broken))
	m.Files[1].Name = "cards"
	save()
	if out := run(3, "cards: is not a file", "--manifest", manifest); strings.Contains(out, "new.gguf: whole") ||
		strings.Contains(out, "SHA-256 is") || !strings.Contains(out, "2 of 2 files are broken") {
		t.Errorf("a broken model: %s", out)
	}
	m.Files[1].Name = "README.md/README.md"
	save()
	run(3, "is missing", "--manifest", manifest)
	m.Files[1].Name = "../README.md"
	save()
	run(3, "want one below the manifest's folder", "--manifest", manifest)
	m.Format = "other"
	save()
	run(4, `format is "other"`, "--manifest", manifest)
	run(1, "no.json", "--manifest", dir+"no.json")
	run(2, "want one of them", "--manifest", manifest, "--sums", dir+"SHA256SUMS")
}

// TestVerifySumsLists has lists that name one file many times, two sums for a file, or too many files.
func TestVerifySumsLists(t *testing.T) {
	dir := t.TempDir()
	data := make([]byte, 1<<20)
	if err := os.WriteFile(filepath.Join(dir, "a"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(dir, "SHA256SUMS")
	list := func(n int, line func(i int) string) {
		t.Helper()
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		if err := os.WriteFile(sums, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	right := fmt.Sprintf("%x", sha256.Sum256(data))
	names := []string{"a", "./a", "b/../a", "*"}
	list(20_000, func(i int) string {
		if name := names[i%len(names)]; name != "*" {
			return right + "  " + name + "\n"
		}
		return strings.ToUpper(right) + " *a\n"
	})
	start := time.Now()
	if out := expect(t, "verify")(0, "a: whole", "--sums", sums); strings.Count(out, "whole") != 1 {
		t.Errorf("%d lines", strings.Count(out, "whole"))
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("takes %v: the file is read more than once", d)
	}
	list(2, func(i int) string { return []string{right, strings.Repeat("0", 64)}[i] + "  a\n" })
	expect(t, "verify")(3, `line 2: "a" has another sum`, "--sums", sums)
	list(maxFiles, func(i int) string { return fmt.Sprintf("%s  a%d\n", right, i) })
	expect(t, "verify")(3, "10000 of 10000 files are broken", "--sums", sums)
	list(maxFiles+1, func(i int) string { return fmt.Sprintf("%s  a%d\n", right, i) })
	expect(t, "verify")(2, "more than 10000 files", "--sums", sums)
}
