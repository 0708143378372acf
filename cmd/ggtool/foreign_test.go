package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/io/statefile"
	"ggforge/rows"
	"ggforge/writer"
)

// overwriteRecord returns a record of a change in place in the format of package writer, with the right checksum.
func overwriteRecord(size, off int64, before, after []byte) []byte {
	head := []byte("ggforge overwrite 2\n")
	for _, n := range []int64{size, off, int64(len(before))} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	sum := sha256.Sum256(bytes.Join([][]byte{head, before, after}, nil))
	return bytes.Join([][]byte{head, sum[:], before, after}, nil)
}

// TestMetaForeignRecord checks that a record of a change in place, which came with a file, changes no byte of its
// tensors, and that its size takes neither memory nor time.
func TestMetaForeignRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	tensors := []gguf.Tensor{{Name: "a", NE: []int64{512}, Type: gguf.TypeF32}}
	header := gguf.AppendHeader(nil, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyName, Value: gguf.String("name")}}, tensors, 32)
	whole := append(header, make([]byte, 2048)...)
	record := path + ".header.partial"
	run := expect(t, "meta", "--progress", "none")
	other := bytes.Clone(whole)
	other[1024] = 1 // of the tensor
	renamed := bytes.Clone(whole)
	renamed[bytes.Index(renamed, append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 'a'))+8] = 'b'
	for what, c := range map[string]struct {
		record []byte
		code   int
		text   string
	}{
		"bytes of a tensor": {overwriteRecord(int64(len(whole)), 1024, whole[1024:1536], other[1024:1536]), 5,
			"not a change of metadata alone"},
		"name of a tensor": {overwriteRecord(int64(len(whole)), 0, header, renamed[:len(header)]), 5,
			"not a change of metadata alone"},
		"another file": {overwriteRecord(int64(len(whole)), 0, other[1024:1536], other[1024:1536]), 5,
			"another file"},
		"beyond the end": {overwriteRecord(int64(len(whole)), 1<<29, whole[:512], other[:512]), 5, "another file"},
		"another version": {[]byte(strings.Replace(string(overwriteRecord(int64(len(whole)), 0, whole[:512],
			other[:512])), "overwrite 2", "overwrite 1", 1)), 5, "made by another version"},
	} {
		for name, data := range map[string][]byte{path: whole, record: c.record} {
			if err := os.WriteFile(name, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		run(c.code, c.text, "--set", "general.name=NAME", path)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%s: the file has changed, %v", what, err)
		}
		if got, err := os.ReadFile(record); err != nil || !bytes.Equal(got, c.record) {
			t.Errorf("%s: the record has changed, %v", what, err)
		}
	}
	sparse := overwriteRecord(int64(len(whole)), 0, nil, nil)
	binary.LittleEndian.PutUint64(sparse[len("ggforge overwrite 2\n")+16:], 1<<30)
	if err := os.WriteFile(record, sparse, 0o666); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if os.Truncate(record, 5<<30) == nil {
		run(5, "at most", "--set", "general.name=NAME", path)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d bytes are allocated for a record without content", n)
	}
	// a record of an interrupted change of this file is carried out
	changed := bytes.Clone(whole)
	copy(changed[bytes.LastIndex(header, []byte("name")):], "NAME")
	if err := os.WriteFile(record, overwriteRecord(int64(len(whole)), 0, header, changed[:len(header)]),
		0o666); err != nil {
		t.Fatal(err)
	}
	run(0, "", "--set", "general.name=NAME", path)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, changed) {
		t.Errorf("an interrupted change is not completed: %v", err)
	}
}

// TestCleanForeignJournal checks that ggtool clean --remove removes no file of another program because of foreign
// journals: a journal of rows that names such a temporary file, a rename journal, and a file of another program with
// the name of a calibration state.
func TestCleanForeignJournal(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	out := filepath.Join(from, "o.gguf")
	src := rows.Stored([]int64{256, 4096}, gguf.TypeF32, make([]byte, 4*256*4096), nil)
	if _, err := writer.Write(context.Background(),
		&writer.File{Path: out, Tensors: []writer.Tensor{{Name: "t", Type: gguf.TypeF16, Source: failing{src}}}},
		writer.Options{Workers: 1, Journal: &writer.Journal{Resume: true}}); !writer.Resumable(err) {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(out + ".partial.rows")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(out + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string][]byte{"o.gguf.partial": content, "x.gguf.partial": []byte("of a download"),
		"y.partial.blocks": []byte("of another program")}
	for name, data := range mine {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"o.gguf.partial.rows": journal} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	commit := statefile.Kind{Name: "of a change of names", Version: 3, Max: 1 << 20}
	if err := commit.Write(filepath.Join(dir, "ggforge-0123456789abcdef.commit"), "",
		[]byte(`{"files":[{"name":"x.gguf","size":3,"id":"12345"}]}`)); err != nil {
		t.Fatal(err)
	}
	code, text, err := call("clean", "--remove", dir)
	for name, data := range mine {
		if got, err2 := os.ReadFile(filepath.Join(dir, name)); err2 != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %v after %d, %v, %s", name, err2, code, err, text)
		}
	}
	if !strings.Contains(text, "o: no journal") && !strings.Contains(text, "o.gguf: no journal") {
		t.Errorf("printed %s, %v", text, err)
	}
	run := expect(t, "clean")
	if got := run(0, fmt.Sprintf("%s.partial\n", out), "--remove", from); !strings.Contains(got, "removed") {
		t.Errorf("files of ggforge are not removed: %s", got)
	}
	if left, err := os.ReadDir(from); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
