//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// TestReaderGone checks that a command whose output is not read to its end, as with | head -1, ends without a
// message.
func TestReaderGone(t *testing.T) {
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "long", Value: gguf.Strings(strings.Fields(strings.Repeat("word ", 200_000)))}}
	path := filepath.Join(t.TempDir(), "long.gguf")
	if err := os.WriteFile(path, gguf.AppendHeader(nil, m, nil, 32), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := process("inspect", "--get", "long", path)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	out.Close()
	if err := cmd.Wait(); said.Len() > 0 || err == nil {
		t.Errorf("said %q, %v; want nothing, and an exit code other than 0", said.String(), err)
	}
}
