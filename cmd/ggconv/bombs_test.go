package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
	"ggforge/test/clitest"
)

// tokenizerJSON returns a byte-level tokenizer.json with the given members besides the vocabulary.
func tokenizerJSON(members string) string {
	var vocab strings.Builder
	for i := range 94 {
		fmt.Fprintf(&vocab, `%q:%d,`, string(rune('!'+i)), i)
	}
	return `{"model":{"type":"BPE","vocab":{` + vocab.String() + `"ab":94},"merges":["a b"]},` + members + `}`
}

// repeat joins n elements; f writes element i.
func repeat(n int, f func(b *strings.Builder, i int)) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		f(&b, i)
	}
	return b.String()
}

func addedTokens(n int, normalized bool, text func(i int) string) string {
	return `"added_tokens":[` + repeat(n, func(b *strings.Builder, i int) {
		fmt.Fprintf(b, `{"id":%d,"content":%q,"single_word":false,"lstrip":false,"rstrip":false,"normalized":%t,"special":false}`, 95+i, text(i), normalized)
	}) + `]`
}

func numbered(i int) string { return fmt.Sprintf("<t%d>", i) }

// TestBombs converts models whose files are small, or large without content, but could cost much memory or time: the
// run succeeds or ends with a clear error, and the total of allocated bytes is bounded.
func TestBombs(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	digits := strings.Repeat("9", 8<<20)
	expressions := func(n int, regex string) string {
		return `"normalizer":{"type":"Sequence","normalizers":[` + repeat(n, func(b *strings.Builder, i int) {
			fmt.Fprintf(b, `{"type":"Replace","pattern":{"Regex":%q},"content":"x"}`, regex)
		}) + `]}`
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		code  int
		text  string
		mb    uint64 // limit of allocated memory
	}{
		{"card-base-60", map[string]string{"README.md": "---\nversion: 1" + strings.Repeat(":30", 1<<18) + "\n---\n"},
			3, "is not a valid int", 128},
		{"card-base-60-float", map[string]string{"README.md": "---\nversion: 1" + strings.Repeat(":30", 1<<18) +
			".5\n---\n"}, 3, "is not a valid float", 64},
		{"card-integer", map[string]string{"README.md": "---\nversion: " + digits[:2<<20] + "\n---\n"}, 3,
			"is not a valid int", 64},
		{"card-hexadecimal", map[string]string{"README.md": "---\nversion: 0x" + digits[:2<<20] + "\n---\n"}, 3,
			"is not a valid int", 64},
		{"card-keys", map[string]string{"README.md": "---\n" +
			strings.ReplaceAll(repeat(300_000, func(b *strings.Builder, i int) { fmt.Fprintf(b, "%x: ", i) }), ",",
				"\n") + "\n---\n"}, 3, "front matter", 128},
		{"card-merges", map[string]string{"README.md": "---\na: &a {" +
			repeat(1000, func(b *strings.Builder, i int) { fmt.Fprintf(b, "%x: 1", i) }) + "}\n" +
			"b: [" + repeat(10_000, func(b *strings.Builder, i int) { b.WriteString("{<<: *a}") }) + "]\n---\n"}, 3,
			"merges more than", 256},
		{"card-without-end", map[string]string{"README.md": "---\n" + strings.Repeat("\n", 15<<20)}, 3,
			"front matter", 128},
		{"card-body", map[string]string{"README.md": "---\nlicense: mit\n---\n" + strings.Repeat("\n", 15<<20)}, 0, "",
			64},
		{"card-datasets", map[string]string{"README.md": "---\ndatasets: [" + repeat(100_000,
			func(b *strings.Builder, i int) { fmt.Fprintf(b, "a/%x", i) }) + "]\n---\n"}, 3, `key "datasets"`, 256},
		{"config-id", map[string]string{"config.json": strings.Replace(smallConfig, "{",
			`{"_name_or_path":"`+strings.Repeat("a-", 4<<20)+`",`, 1)}, 3, "an id of 8388608 bytes", 128},
		{"generation-digits", map[string]string{"generation_config.json": `{"top_k": ` + digits + `}`}, 3,
			"an integer of 8388608 digits", 64},
		{"generation-fraction", map[string]string{"generation_config.json": `{"temperature": 0.` + digits + `}`}, 0, "",
			64},
		{"config-class", map[string]string{"config.json": `{"architectures": ["Llama` + strings.Repeat("A", 8<<20) +
			`"]}`}, 4, "is not supported", 64},
		{"config-digits", map[string]string{"config.json": `{"architectures": ["LlamaForCausalLM"], "hidden_size": ` +
			digits + `}`}, 3, "an integer of 8388608 digits", 64},
		{"config-digits-text",
			map[string]string{"config.json": `{"architectures": ["LlamaForCausalLM"], "vocab_size": ` + digits[:1<<20] +
				`.5}`}, 3, `"vocab_size"`, 64},
		{"added-expression-at-end",
			map[string]string{"tokenizer.json": tokenizerJSON(
				`"normalizer":{"type":"Replace","pattern":{"Regex":"\\z"},"content":"` + strings.Repeat("x",
					60_000) + `"},` +
					addedTokens(2500, true, numbered))}, 4, "grows to", 64},
		{"added-growth", map[string]string{"tokenizer.json": tokenizerJSON(
			`"normalizer":{"type":"Replace","pattern":{"Regex":"\\z"},"content":"` + strings.Repeat("x", 4000) + `"},` +
				addedTokens(25_000, true, numbered))}, 4, "added tokens grow to", 256},
		{"added-expressions", map[string]string{"tokenizer.json": tokenizerJSON(expressions(100, "(?:a|a?)+b") + "," +
			addedTokens(250, true, func(i int) string { return strings.Repeat("a", 100) + numbered(i) }))}, 4,
			"take", 256},
		{"added-many", map[string]string{"tokenizer.json": tokenizerJSON(addedTokens(270_000, false, numbered))},
			3, "270000 added tokens", 552},
		{"added-decoder", map[string]string{"tokenizer_config.json": `{"added_tokens_decoder":{` + repeat(270_000,
			func(b *strings.Builder, i int) { fmt.Fprintf(b, `"%d":{"content":"%x"}`, i, i) }) + `}}`}, 3,
			"270000 added tokens", 552},
		{"added-special", map[string]string{"tokenizer.json": tokenizerJSON(addedTokens(1, false, numbered)),
			"tokenizer_config.json": `{"extra_special_tokens":[` + repeat(25_000,
				func(b *strings.Builder, i int) { fmt.Fprintf(b, `"s%x"`, i) }) + `]}`}, 0, "", 128},
		{"post-processor",
			map[string]string{"tokenizer.json": tokenizerJSON(
				`"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}},` +
					repeat(5000, func(b *strings.Builder,
						i int) {
						b.WriteString(`{"SpecialToken":{"id":"a","type_id":0}}`)
					}) +
					`],"pair":[],"special_tokens":{"a":{"id":"a","ids":[` +
					repeat(100_000, func(b *strings.Builder, i int) { b.WriteString("64") }) + `],"tokens":["a"]}}}`)},
			3,
			"ids around a text", 64},
		{"warnings", map[string]string{"added_tokens.json": `{` + repeat(100_000,
			func(b *strings.Builder, i int) { fmt.Fprintf(b, `"%x":%d`, i, 1_000_000+i) }) + `}`}, 0,
			"99980 more warnings", 128},
		{"templates", map[string]string{"tokenizer_config.json": `{"chat_template":[` + repeat(50_000,
			func(b *strings.Builder, i int) { fmt.Fprintf(b, `{"name":"n%x","template":"x"}`, i) }) + `]}`}, 3,
			"50000 chat templates", 128},
		{"values", map[string]string{"generation_config.json": "[" + strings.Repeat("0,", 1<<20) + "0]"}, 3,
			"want an object", 147},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.mb > 512 {
				t.Skip("too much memory for the race detector")
			}
			files := map[string]string{}
			if _, ok := c.files["tokenizer.json"]; ok {
				files["tokenizer.model"], files["tokenizer_config.json"] = "", ""
				files["config.json"] = smallConfig
			}
			for name, text := range c.files {
				files[name] = text
			}
			dir := checkpoint(t, files)
			got := clitest.Alone(t, dir, "--vocab-only", "--pre", "gpt-2", "--outfile",
				filepath.Join(t.TempDir(), "out.gguf"), "--progress", "none")
			if got.Code != c.code || !strings.Contains(got.Text, c.text) {
				t.Errorf("exit code %d, want %d and %q: %.300s", got.Code, c.code, c.text, got.Text)
			}
			if len(got.Text) > 1<<14 {
				t.Errorf("%d bytes of messages", len(got.Text))
			}
			mb := got.Allocated >> 20
			if t.Logf("%d MB", mb); mb > c.mb {
				t.Errorf("%d MB allocated, want at most %d", mb, c.mb)
			}
		})
	}
}

// TestStringArrays converts a large vocabulary: allocated memory stays within a small multiple of the file size.
func TestStringArrays(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	const n = 250_000
	text := func(i int) string { return fmt.Sprintf("%s%06d", strings.Repeat("a", i%8), i) }
	json := `{"model":{"type":"BPE","vocab":{"a":0,` +
		repeat(n, func(b *strings.Builder, i int) { fmt.Fprintf(b, "%q:%d", text(i), i+1) }) +
		`},"merges":[` + repeat(0, nil) + `]}}`
	dir := checkpoint(t, map[string]string{"tokenizer.json": json, "tokenizer.model": "", "tokenizer_config.json": "",
		"config.json": `{"architectures":["LlamaForCausalLM"],"vocab_size":260000,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":8,"max_position_embeddings":8,"rms_norm_eps":1e-5}`})
	got := clitest.Alone(t, dir, "--vocab-only", "--pre", "gpt-2", "--outfile", filepath.Join(t.TempDir(), "out.gguf"),
		"--progress", "none")
	if got.Code != 0 {
		t.Fatal(got.Text)
	}
	times := float64(got.Allocated) / float64(len(json))
	if t.Logf("%d bytes, %.1f times as many allocated", len(json), times); times > 40 {
		t.Errorf("want at most 40 times")
	}
}
