package naming

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestParse reads the names of the specification's own test, and others.
func TestParse(t *testing.T) {
	for name, want := range map[string]Name{
		"Mixtral-8x7B-v0.1-KQ2.gguf": {BaseName: "Mixtral", SizeLabel: "8x7B", Version: "v0.1",
			Encoding: "KQ2"},
		"Grok-100B-v1.0-Q4_0-00003-of-00009.gguf": {BaseName: "Grok", SizeLabel: "100B", Version: "v1.0",
			Encoding: "Q4_0", Shard: 3, Shards: 9},
		"Hermes-2-Pro-Llama-3-8B-v1.0-F16.gguf": {BaseName: "Hermes-2-Pro-Llama-3", SizeLabel: "8B",
			Version: "v1.0", Encoding: "F16"},
		"Phi-3-mini-3.8B-ContextLength4k-instruct-v1.0.gguf": {BaseName: "Phi-3-mini",
			SizeLabel: "3.8B-ContextLength4k", FineTune: "instruct", Version: "v1.0"},
		"mtp-Qwen3-27B-v1.0-Q4_K_M.gguf": {Sidecar: Drafts, BaseName: "Qwen3", SizeLabel: "27B",
			Version: "v1.0", Encoding: "Q4_K_M"},
		"mmproj-Qwen2-VL-7B-v1.0-F16.gguf": {Sidecar: Projector, BaseName: "Qwen2-VL",
			SizeLabel: "7B", Version: "v1.0", Encoding: "F16"},
		"mmproj-7B-v1.0.gguf": {BaseName: Projector, SizeLabel: "7B", Version: "v1.0"},
		"a-7B-x-v1-v2-v3.gguf": {BaseName: "a", SizeLabel: "7B", FineTune: "x-v1-v2",
			Version: "v3"},
		"a-30B-A3B-Instruct-v2507.1-LoRA.gguf": {BaseName: "a", SizeLabel: "30B-A3B",
			FineTune: "Instruct", Version: "v2507.1", Type: LoRA},
		"a-7B-v1.0-F16-vocab-00001-of-00001.gguf": {BaseName: "a", SizeLabel: "7B", Version: "v1.0",
			Encoding: "F16", Type: Vocab, Shard: 1, Shards: 1},
	} {
		got, err := Parse(name)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, want)
		}
		if s := want.String(); s != name {
			t.Errorf("%+v: %q, want %q", want, s, name)
		}
	}
	for name, want := range map[string]string{
		"not-a-known-arrangement.gguf":         "no size label",
		"Mixtral-8x7B-KQ2.gguf":                "no version",
		"Mixtral-8x7B-v0.1-KQ2":                ".gguf",
		"Mixtral--v0.1.gguf":                   "no size label",
		"-7B-v0.1.gguf":                        "no base name",
		"Qwen2.5-7B-v1.0-Q8_0.gguf":            `'.' in "Qwen2.5"`,
		"Größe-7B-v1.0-Q8_0.gguf":              `'ö' in "Größe"`,
		"a-7B-v1.0-Q8.0.gguf":                  `encoding "Q8.0"`,
		"a-7B-v1.0-Q8_0-x.gguf":                `"Q8_0-x" after version v1.0`,
		"a-7B-v1.0-vocabulary.gguf":            "begins with vocab",
		"a-7B-v1.0-Q8_0-00004-of-00003.gguf":   "shard 00004 of 00003",
		"a-7B-v1.0-Q8_0-00000-of-00003.gguf":   "shard 00000 of 00003",
		"a-1b-2c3-7B-v1.0-Q8_0.gguf":           "", // a fine-tune may be anything
		"a-1b2-7B-v1.0-Q8_0.gguf":              "cannot be told apart",
		strings.Repeat("a", 2000) + "-7B.gguf": "too many",
	} {
		_, err := Parse(name)
		found := Check(name)
		if want == "" {
			if err != nil || found != nil {
				t.Errorf("%s: %v %q", name, err, found)
			}
			continue
		}
		if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%.50s: %v %q, want %q", name, err, found, want)
		}
	}
}

func TestOf(t *testing.T) {
	text := func(kv ...string) (m gguf.Metadata) {
		for i := 0; i < len(kv); i += 2 {
			m.Set("general."+kv[i], gguf.String(kv[i+1]))
		}
		return m
	}
	shapes := map[string][]int64{"a.weight": {1000, 500}, "b.bias": {1000}}
	for want, m := range map[string]gguf.Metadata{
		"ggml-model-501K-v1.0-Q8_0.gguf": nil,
		"My-Model-501K-v1.0-Q8_0.gguf":   text("name", " My Model "),
		"a-b-7B-chat-v1.0-Q8_0.gguf": text("name", "n", "basename", "a/b", "size_label", "7B",
			"finetune", "chat", "version", "V1.0"),
		"Qwen2-5-0.5B-Instruct-v1.0-Q8_0.gguf": text("basename", "Qwen2.5", "size_label", "0.5B",
			"finetune", "Instruct"),
		"Gro-e-501K-v2-Q8_0.gguf": text("basename", "Größe", "size_label", "large",
			"version", "2"),
		"x-4-bit-7-B-3B-v1.0-Q8_0.gguf": text("basename", "x-4bit-7B", "size_label", "3B"),
		"x-3B-fine-tuned-beta-v1.0-Q8_0.gguf": text("basename", "x", "size_label", "3B", "finetune",
			"fine tuned", "version", "beta"),
		"x-3B-v1.0-Q8_0-LoRA.gguf": text("basename", "x", "size_label", "3B", "type", "adapter"),
		"mmproj-x-3B-v1.0-Q8_0.gguf": text("basename", "mmproj-x", "size_label", "3B",
			"type", "mmproj"),
		"etc-passwd-501K-v1.0-Q8_0.gguf":                 text("basename", "../../etc/passwd"),
		strings.Repeat("a", 72) + "-501K-v1.0-Q8_0.gguf": text("basename", strings.Repeat("a", 5000)),
	} {
		if got := Of(m, maps.All(shapes), "Q8_0").String(); got != want {
			t.Errorf("%v: %q, want %q", m, got, want)
		}
	}
}

// FuzzParse checks that String returns an accepted name, and that others are refused with a reason.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"Phi-3-mini-3.8B-ContextLength4k-instruct-v1.0.gguf", "mmproj-a-7B-v1.0-F16-LoRA-00001-of-00003.gguf",
		"a-7B-v1.0-vocab.gguf", "a--v1.gguf", "-", "", "\xff-7B-v1.0.gguf",
		"a 1-7B-v1.0.gguf", "a-8x7.5B-A3.1B-v1-00001-of-00000.gguf",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, err := Parse(name)
		found := Check(name)
		if read, said, ok := Read(name); (err == nil) != (ok && said == nil) || err == nil && read != n ||
			ok && err != nil && said == nil {
			t.Errorf("%q: read as %+v, %q, %v", name, read, said, ok)
		}
		if (err == nil) != (found == nil) {
			t.Fatalf("%q: %v, %q", name, err, found)
		}
		if err != nil {
			if n != (Name{}) || len(err.Error()) > 1<<14 {
				t.Errorf("%q: %+v, %d bytes of text", name, n, len(err.Error()))
			}
			return
		}
		if got := n.String(); got != name {
			t.Errorf("%q: %q", name, got)
		}
		if n.BaseName == "" || n.SizeLabel == "" || n.Version == "" {
			t.Errorf("%q: %+v", name, n)
		}
	})
}

// FuzzOf checks that names of any metadata follow the convention, and are names of one file on
// every system.
func FuzzOf(f *testing.F) {
	f.Add("Gollama", "6.6M", "chat", "v1.0", "Q4_K_M", "model")
	f.Add("../x\x00\xff", "8x7B-A3B", "-", "v", "LoRA", "adapter")
	f.Add("mmproj-", "large", "7B-v1", "1.0.0.0.0.0.0.0", "", "mmproj")
	f.Add("1a-2b-3c", "", "\u0301", "..", "vocab_1", "")
	f.Fuzz(func(t *testing.T, base, size, tune, version, as, kind string) {
		var m gguf.Metadata
		for key, s := range map[string]string{gguf.KeyBasename: base, gguf.KeySizeLabel: size, gguf.KeyFinetune: tune,
			gguf.KeyVersion: version, gguf.KeyType: kind} {
			m.Set(key, gguf.String(s))
		}
		n := Of(m, maps.All(map[string][]int64{"a.weight": {32, 1000}}), as)
		name := n.String()
		if found := Check(name); found != nil {
			t.Errorf("%q: %q", name, found)
		}
		n.Shard, n.Shards = 99999, 99999
		if name := n.String(); gguf.SafeName(strings.TrimSuffix(name, ".gguf"), "") != strings.TrimSuffix(name,
			".gguf") && len(name) < 200 || len(name) > 240 {
			t.Errorf("%q is %q", name, gguf.SafeName(name, ""))
		}
	})
}
