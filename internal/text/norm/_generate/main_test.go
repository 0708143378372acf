package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestSums checks the sums in norm_test.go.
func TestSums(t *testing.T) {
	tests, err := os.ReadFile("../norm_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD} {
		h := sha256.New()
		for c := rune(0); c <= utf8.MaxRune; c++ {
			if utf8.ValidRune(c) {
				h.Write([]byte(f.String(string(c)) + "\n"))
			}
		}
		if sum := fmt.Sprintf("%x", h.Sum(nil)); !bytes.Contains(tests, []byte(`"`+name+`", `+name+`, "`+sum+`"`)) {
			t.Errorf("%s: sha256 %s", name, sum)
		}
	}
}
