package texts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/fault"
)

// TestUnescape checks escape sequences.
func TestUnescape(t *testing.T) {
	for text, want := range map[string]string{
		`a\nb\r\t\"\'\\n`:     "a\nb\r\t\"'\\n",
		`\x41\x0a\xZZ\x4\q\`:  "A\n\\xZZ\\x4\\q\\",
		`\x4` + "1" + `\xfF!`: "A\xff!",
		"":                    "",
	} {
		if got := string(Unescape([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	if at, n := invalid([]byte("a\u00e4\xff\xfe\U0001F600\xe4")); at != 3 || n != 3 {
		t.Errorf("%d bytes from %d on", n, at)
	}
	if _, n := invalid([]byte("\ufffd")); n != 0 {
		t.Error("U+FFFD counts as invalid")
	}
}

func TestTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("text\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if s, err := Read(nil, path, false); s != "text" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if err := os.Truncate(path, maxText+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(nil, path, false); !errors.Is(err, fault.Unsupported) {
		t.Errorf("%d bytes: %v", maxText+1, err)
	}
}
