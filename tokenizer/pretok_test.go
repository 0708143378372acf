package tokenizer

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/toktest"
)

// tinyJSON returns the members of one of the small tokenizers.
func tinyJSON(t *testing.T, name string) map[string]any {
	t.Helper()
	for _, tok := range toktest.Tokenizers() {
		if tok.Name == name {
			var m map[string]any
			if err := json.Unmarshal(tok.JSON, &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("no tokenizer %q", name)
	return nil
}

func added(id int, text string) map[string]any {
	return map[string]any{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
		"normalized": true, "special": false}
}

// directory returns a checkpoint directory with a tokenizer.json.
func directory(t *testing.T, tok map[string]any, config string) fstest.MapFS {
	t.Helper()
	data, err := json.Marshal(tok)
	if err != nil {
		t.Fatal(err)
	}
	dir := fstest.MapFS{jsonFile: file(data)}
	if config != "" {
		dir[configFile] = file([]byte(config))
	}
	return dir
}

// known adds the fingerprint of a tokenizer to the table under a name, for one test.
func known(t *testing.T, tok map[string]any, pre string) {
	t.Helper()
	data, err := json.Marshal(tok)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(data)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := fingerprint(e.tok)
	if err != nil {
		t.Fatal(err)
	}
	old := fingerprints
	fingerprints = append(fingerprints[:len(old):len(old)], struct{ sha256, pre, model string }{sum, pre, "test"})
	t.Cleanup(func() { fingerprints = old })
}

// TestPreTokenizer checks the ways in which the name of a pre-tokenizer is found.
func TestPreTokenizer(t *testing.T) {
	with := func(tok map[string]any, tokens ...any) map[string]any {
		tok = maps.Clone(tok)
		have, _ := tok["added_tokens"].([]any)
		tok["added_tokens"] = append(have[:len(have):len(have)], tokens...)
		return tok
	}
	gpt2, falcon := tinyJSON(t, "gpt2"), tinyJSON(t, "falcon")
	for _, tt := range []struct {
		name    string
		base    map[string]any // its fingerprint is known as "base"
		tok     map[string]any
		config  string
		pre     string
		warning string
		errText string
	}{
		{"known", gpt2, gpt2, "", "base", "", ""},
		{"class with the same pre-tokenizer", gpt2, gpt2, `{"tokenizer_class":"GPT2Tokenizer"}`, "base", "", ""},
		{"class with another pre-tokenizer", falcon, falcon, `{"tokenizer_class":"GPTNeoXTokenizer"}`, "base",
			"as it is", ""},
		{"class for another kind of model", gpt2, gpt2, `{"tokenizer_class":"LlamaTokenizerFast"}`, "base",
			"does not fit the byte-level tokenizer", ""},
		{"tokens outside the check text", gpt2, with(gpt2, added(1001, "<tool>")), "", "base", "", ""},
		{"tokens in the check text", gpt2, with(gpt2, added(1001, "<tool>"), added(1002, "told"), added(1003, "3333")),
			"", "base", `without the added tokens ["told" "3333"]`, ""},
		{"only the later token goes", with(gpt2, added(1001, "told")),
			with(gpt2, added(1001, "told"), added(1002, "3333")), "", "base", `without the added tokens ["3333"]`, ""},
		{"unknown", gpt2, falcon, "", "", "", `nearest is "falcon"`},
		{"unknown, same shape", falcon, gpt2, "", "", "", `are those of "gpt-2", vocabulary or merges are not`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known(t, tt.base, "base")
			v, err := Load(directory(t, tt.tok, tt.config), Options{Rules: BPE{}})
			if tt.pre == "" {
				if !errors.Is(err, ErrUnsupported) || fault.Option(err) != "Pre" {
					t.Fatalf("want an ErrUnsupported that Pre permits, got %v", err)
				}
				if tt.name == "unknown" {
					tt.errText = "nearest is" // which one depends on the table
				}
				if !strings.Contains(err.Error(), tt.errText) && !strings.Contains(err.Error(), "are those of") {
					t.Errorf("want %q in %v", tt.errText, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(v.Warnings, "\n")
			if v.Pre != tt.pre || !strings.Contains(warnings, tt.warning) ||
				tt.warning == "" && strings.Contains(warnings, "check text") {
				t.Errorf("%q with warnings %q, want %q with %q", v.Pre, warnings, tt.pre, tt.warning)
			}
		})
	}
}

// TestLaterFingerprint checks the rule for a hash that is in the table twice.
func TestLaterFingerprint(t *testing.T) {
	if got := preOf("b6dc8df998e1cfbdc4eac8243701a65afe638679230920b50d6f17d81c098166"); got != "olmo" {
		t.Errorf("the hash of MPT and OLMo is %q, want olmo", got)
	}
	if got := preOf("00"); got != "" {
		t.Errorf("unknown hash is %q", got)
	}
}

// TestGivenPre checks that Options.Pre overrides the fingerprint.
func TestGivenPre(t *testing.T) {
	v, err := Load(directory(t, tinyJSON(t, "gpt2"), ""), Options{Rules: BPE{}, Pre: "mine"})
	if err != nil || v.Pre != "mine" {
		t.Fatalf("%v, %v", v, err)
	}
	if kv, _ := v.KVs().Get(keyPre); kv.String() != `"mine"` {
		t.Errorf("%s is %v", keyPre, kv)
	}
}

func TestEmbedJSON(t *testing.T) {
	dir := directory(t, tinyJSON(t, "gpt2"), "")
	v, err := Load(dir, Options{Rules: BPE{}, Pre: "x", EmbedJSON: true})
	if err != nil {
		t.Fatal(err)
	}
	kvs := v.KVs()
	if last := kvs[len(kvs)-1]; last.Key != keyHFJSON || last.Value.Type() != gguf.StringType {
		t.Errorf("last key is %s", last.Key)
	}
	if s, _ := kvs[len(kvs)-1].Value.Str(); s != string(dir[jsonFile].Data) {
		t.Error("the text is not that of the file")
	}
	_, err = Load(tinyWith(t, map[string]string{jsonFile: ""}), Options{Rules: Llama{}, EmbedJSON: true})
	if err == nil {
		t.Error("an empty tokenizer.json was embedded")
	}
	spm := tinyWith(t, nil)
	delete(spm, jsonFile)
	if _, err := Load(spm, Options{Rules: Llama{}, EmbedJSON: true}); !errors.Is(err, fault.Usage) {
		t.Errorf("no tokenizer.json: want a usage error, got %v", err)
	}
}

func TestFallback(t *testing.T) {
	spm := tinyWith(t, nil)
	rules := Fallback{First: BPE{}, Else: SentencePiece{Then: Steps{Set{keyAddBOS, gguf.Bool(false)}, Set{keyPadID, gguf.Uint32(3)}}}}
	v, err := Load(spm, Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	pad, _ := v.KVs().Get("tokenizer.ggml.padding_token_id")
	bos, _ := v.KVs().Get(keyAddBOS)
	if v.Model != "llama" || pad.String() != "3" || bos.String() != "false" {
		t.Errorf("model %q, pad %v, add_bos %v", v.Model, pad, bos)
	}
}

// BenchmarkLoadBPE reads a vocabulary of 128000 tokens with as many merges.
func BenchmarkLoadBPE(b *testing.B) {
	dir := fstest.MapFS{jsonFile: file(toktest.Large(128000)),
		configFile: file([]byte(`{"tokenizer_class":"GPT2Tokenizer"}`))}
	b.SetBytes(int64(len(dir[jsonFile].Data)))
	for b.Loop() {
		if _, err := Load(dir, Options{Rules: BPE{}, Pre: "x"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode encodes lines of all kinds.
func BenchmarkEncode(b *testing.B) {
	lines := toktest.Corpus(3, 2000)
	for _, tok := range toktest.Tokenizers() {
		if tok.Name != "gpt2" && tok.Name != "llama3" && tok.Name != "llama" && tok.Name != "bert" {
			continue
		}
		b.Run(tok.Name, func(b *testing.B) {
			e, err := NewEncoder(tok.JSON)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(strings.Join(lines, ""))))
			for b.Loop() {
				for _, line := range lines {
					if _, err := e.Encode(line, true); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
