package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestVerify looks at files that are whole and that are not, and at lists of sums.
func TestVerify(t *testing.T) {
	dir := t.TempDir() + "/"
	run := expect(t, "verify")
	whole, first := shards(t, dir, 1)
	// The model has no keys, which is said; its structure is right.
	run(3, `has no key "llama.block_count"`, whole)
	run(3, `has no key "llama.block_count"`, first)
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
	if err := json.Unmarshal([]byte(run(0, "", "--json", other)), &report); err != nil || len(report.Files) != 1 || !report.Files[0].Whole || len(report.Files[0].Findings) == 0 {
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
	run(2, "want FILE...")
	run(1, "no.gguf", dir+"no.gguf")
}
