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
	run(3, "1 of 2 names", "--strict", "Mixtral-8x7B-v0.1.gguf", "x.gguf")
	run(0, "not by the convention: no version", "x.gguf") // read as far as it can be: few names follow the convention
	run(3, "does not end in .gguf", "x.bin")
	run(2, "--strict", "--strict", "--build", "x.gguf")
	run(2, "--build", "--encoding", "x", "x.gguf")
	run(1, "no.gguf", "--build", dir+"no.gguf")
	var report struct{ Names []named }
	if err := json.Unmarshal([]byte(run(0, "", "--json", "a-7B-v1.0-F16.gguf")), &report); err != nil ||
		len(report.Names) != 1 || report.Names[0].Parts == nil || report.Names[0].Parts.SizeLabel != "7B" {
		t.Errorf("%v: %+v", err, report)
	}

	one := write(t, dir, "x.gguf", 1)
	if out := run(0, "", "--build", one); out != "ggml-model-0.06K-v1.0.gguf\n" {
		t.Errorf("built: %q", out)
	}
	run(0, "ggml-model-0.06K-v1.0-Q8_0.gguf", "--build", "--encoding", "Q8_0", one)
	expect(t, "meta")(0, "", one, "--set", "general.file_type=u32:15", "--set", "general.name=str:A b", "--set",
		"general.size_label=str:8B")
	run(0, "A-b-8B-v1.0-Q4_K_M.gguf\n", "--build", one)
	_, first := shards(t, dir, 1)
	if out := run(0, "-00002-of-00002.gguf\n", "--build", first); strings.Count(out, "\n") != 2 {
		t.Errorf("shards: %q", out)
	}
}

// TestPublishedNames reads published names: the parts are printed, and the deviations from the convention.
func TestPublishedNames(t *testing.T) {
	for name, want := range map[string][]string{
		"Llama-3.1-8B-Instruct-Q4_K_M.gguf": {"base name   Llama-3.1", "size label  8B",
			"fine-tune   Instruct", "encoding    Q4_K_M", "no version", "base name: '.' in"},
		"Meta-Llama-3-70B-Instruct-Q8_0-00001-of-00003.gguf": {"base name   Meta-Llama-3", "size label  70B",
			"shard       1 of 3", "no version"},
		"mmproj-Qwen2.5-VL-7B-Instruct-f16.gguf": {"sidecar     mmproj", "base name   Qwen2.5-VL",
			"encoding    f16", "types are written F16"},
		"mmproj-F16.gguf": {"sidecar     mmproj", "encoding    F16",
			"base name: there is none"},
		"gemma-3-4b-it.mmproj-f16.gguf": {"sidecar     mmproj", "size label  4b",
			"mmproj comes first"},
		"Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL.gguf": {"size label  30B-A3B", "fine-tune   Instruct-2507",
			"encoding    UD-Q4_K_XL", "UD- before Q4_K_XL"},
		"mistral-7b-instruct-v0.2.Q4_K_M.gguf": {"base name   mistral", "size label  7b",
			"fine-tune   instruct", "version     v0.2", `"." before it: want a dash`},
		"tinyllama-1.1b-chat-v1.0.q4_0.gguf": {"size label  1.1b", "version     v1.0",
			"types are written Q4_0"},
		"Llama-3.1-8B.imatrix.gguf": {"type        imatrix", "no names of importance matrices",
			"size label  8B"},
		"Model-8B.i1-IQ2_XXS.gguf": {"encoding    i1-IQ2_XXS", "i1- before IQ2_XXS"},
		"Model-70B.Q6_K.gguf.part1of2": {"shard       1 of 2", "joined by cat",
			"encoding    Q6_K"},
		"Phi-3-mini-4k-instruct-q4.gguf": {"base name   Phi-3-mini-4k-instruct", "encoding    q4",
			"no size label"},
		"Mixtral-8x7B-Instruct-v0.1-Q4_K_L.gguf": {"size label  8x7B", "encoding    Q4_K_L"},
		"DeepSeek-V3-0324-BF16.gguf":             {"version     V3", "want a small v", "encoding    BF16"},
		"adapter-7B-F16-lora.gguf":               {"type        LoRA", "want -LoRA at the end"},
	} {
		out := expect(t, "name")(0, "", "folder/"+name)
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: %q is not in\n%s", name, text, out)
			}
		}
		if strict := name == "Mixtral-8x7B-Instruct-v0.1-Q4_K_L.gguf"; strings.Contains(out,
			"not by the convention") == strict {
			t.Errorf("%s: %s", name, out)
		}
	}
}
