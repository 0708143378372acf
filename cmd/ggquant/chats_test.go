package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// TestChats checks that conversations give the bytes of their text with control tokens, for an importance matrix and
// for --effort high.
func TestChats(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels")
	}
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	if err := os.CopyFS(model, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("model/chat_template.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token + sep }}{% endfor %}")
	line, text := `{"messages": [{"role": "user", "content": "Close it."}, {"role": "assistant", "content": "return f.Close()"}]}`+"\n",
		"<s>Close it.</s>;return f.Close()</s>;"
	chats := write("a/text", string(bytes.Repeat([]byte(line), 12)))
	plain := write("b/text", string(bytes.Repeat([]byte(text), 12))[len("<s>"):]) // BOS is added
	for _, effort := range []string{"matrix", "high"} {
		var files [][]byte
		for i, args := range [][]string{
			{"--calibrate", chats, "--chats", "--template-arguments", `{"sep": ";"}`},
			{"--calibrate", plain, "--parse-special"},
		} {
			out := filepath.Join(dir, effort+string(rune('0'+i)))
			code, _, err := call(append(args, "--progress", "none", "--effort", effort, "-c", "32", "--chunks", "4", model, out, "Q4_K_M")...)
			if code != 0 {
				t.Fatal(err)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, data)
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("--effort %s: the file from conversations is not that from their text", effort)
		}
	}
}
