package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	dir := t.TempDir() + "/"
	run := expect(t, "name")
	out := run(0, "  size label  8x7B\n", "folder/Mixtral-8x7B-v0.1-KQ2-00001-of-00002.gguf")
	for _, want := range []string{"base name   Mixtral", "version     v0.1", "encoding    KQ2", "shard       1 of 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	run(3, "1 of 2 names", "Mixtral-8x7B-v0.1.gguf", "x.gguf")
	run(3, "not by the convention: no version", "x.gguf")
	run(2, "--build", "--encoding", "x", "x.gguf")
	run(1, "no.gguf", "--build", dir+"no.gguf")
	var report struct{ Names []named }
	if err := json.Unmarshal([]byte(run(0, "", "--json", "a-7B-v1.0-F16.gguf")), &report); err != nil || len(report.Names) != 1 || report.Names[0].Parts == nil || report.Names[0].Parts.SizeLabel != "7B" {
		t.Errorf("%v: %+v", err, report)
	}

	one := write(t, dir, "x.gguf", 1)
	if out := run(0, "", "--build", one); out != "ggml-model-0.06K-v1.0.gguf\n" {
		t.Errorf("built: %q", out)
	}
	run(0, "ggml-model-0.06K-v1.0-Q8_0.gguf", "--build", "--encoding", "Q8_0", one)
	expect(t, "meta")(0, "", one, "--set", "general.file_type=u32:15", "--set", "general.name=str:A b", "--set", "general.size_label=str:8B")
	run(0, "A-b-8B-v1.0-Q4_K_M.gguf\n", "--build", one)
	_, first := shards(t, dir, 1)
	if out := run(0, "-00002-of-00002.gguf\n", "--build", first); strings.Count(out, "\n") != 2 {
		t.Errorf("shards: %q", out)
	}
}
