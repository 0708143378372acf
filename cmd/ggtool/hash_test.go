package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ggforge/model/digest"
)

// TestHash compares hashes of a file with hashes of its shards and of a copy with other metadata, and checks lists.
func TestHash(t *testing.T) {
	dir := t.TempDir() + "/"
	odd(t, dir+"m.gguf", false)
	run := expect(t, "hash")
	all := run(0, "", "--all", dir+"m.gguf")
	lines := strings.Split(strings.TrimSpace(all), "\n")
	if len(lines) != 5*3+4 || !strings.HasPrefix(lines[0], "xxh64     ") ||
		!strings.HasSuffix(lines[0], "  "+dir+"m.gguf:nan") || !strings.HasPrefix(lines[18], "uuid      ") {
		t.Errorf("%d lines: %s", len(lines), all)
	}
	if out := run(0, "", dir+"m.gguf"); strings.Count(out, "\n") != 6 || strings.Count(out, "xxh64") != 6 {
		t.Errorf("without flags: %s", out)
	}
	for _, args := range [][]string{{"split", "--max-tensors", "2", dir + "m.gguf", dir + "s"},
		{"meta", "-o", dir + "n.gguf", "--set", "x=str:y", dir + "m.gguf"}} {
		if code, _, err := call(append(args, "--progress", "none")...); code != 0 {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir + "s-00001-of-00003.gguf", dir + "n.gguf"} {
		if got := run(0, "", "--all", path); strings.ReplaceAll(got, path, dir+"m.gguf") != all {
			t.Errorf("%s: other hashes: %s", path, got)
		}
	}
	if out := run(0, "", "--sha256", "--no-layer", "--alone", dir+"s-00001-of-00003.gguf"); strings.Count(out,
		"\n") != 1 || strings.Contains(all, strings.Fields(out)[1]) {
		t.Errorf("a shard alone: %s", out)
	}
	var report struct {
		File   string
		Hashes []digest.Sum
	}
	if err := json.Unmarshal([]byte(run(0, "", "--json", "--sha1", "--no-layer", dir+"m.gguf")), &report); err != nil ||
		len(report.Hashes) != 1 || len(report.Hashes[0].Hash) != 40 {
		t.Errorf("%v: %+v", err, report)
	}

	list := dir + "list"
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	save(all)
	run(0, "19 of 19 hashes are right", "--check", list, dir+"n.gguf")
	run(0, "4 of 4 hashes are right", "--no-layer", "--check", list, dir+"n.gguf")
	data, err := os.ReadFile(dir + "m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-30] ^= 1 // change the last tensor
	if err := os.WriteFile(dir+"bad.gguf", data, 0o666); err != nil {
		t.Fatal(err)
	}
	run(6, "sha256: tensor unknown is ", "--check", list, dir+"bad.gguf")
	run(6, "12 of 19 hashes are right", "--check", list, dir+"bad.gguf")
	save(strings.Join(lines[:3], "\n"))
	run(6, "tensor blk.0.q is not in the list", "--check", list, dir+"m.gguf")
	run(2, "--no-layer leaves none to check", "--no-layer", "--check", list, dir+"m.gguf")
	save(all + "sha1 00 m.gguf:other\n")
	run(6, "sha1: tensor other is not there", "--check", list, dir+"m.gguf")
	save(lines[18] + "\n")
	run(0, "1 of 1 hashes are right", "--check", list, dir+"m.gguf")
	for _, text := range []string{"", "md5 00 x.gguf", "sha1 00"} {
		save(text)
		run(3, "list", "--check", list, dir+"m.gguf")
	}
	run(2, "the list names", "--check", list, "--sha1", dir+"m.gguf")
}
