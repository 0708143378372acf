package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/eval/memory"
	"ggforge/gguf"
	"ggforge/test/buckettest"
	"ggforge/test/clitest"
	"ggforge/test/hubtest"
)

// runnable writes the header of a small model of two layers.
func runnable(t *testing.T) string {
	t.Helper()
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(2)},
		{Key: "llama.context_length", Value: gguf.Uint32(8192)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(64)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(2)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(1)},
	}
	tensors := []gguf.Tensor{{Name: "blk.0.attn_k.weight", NE: []int64{32, 1}, Type: gguf.TypeQ8_0},
		{Name: "blk.1.attn_k.weight", NE: []int64{32, 1}, Type: gguf.TypeQ8_0}}
	data := make([]byte, gguf.Layout(tensors, 32))
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInspectLongNames checks that a file which ggml does not read is listed with a warning if it is an image model, and
// refused if it is not.
func TestInspectLongNames(t *testing.T) {
	inspect := expect(t, "inspect")
	for architecture, exit := range map[string]int{"hyvid": 0, "llama": 3} {
		m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String(architecture)}}
		x := []gguf.Tensor{{Name: "txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.weight", NE: []int64{4, 2},
			Type: gguf.TypeF32}, {Name: "img_in.proj.weight", NE: []int64{1, 2, 3, 1, 2}, Type: gguf.TypeF32},
			{Name: "scale", Type: gguf.TypeF32}, {Name: "empty", NE: []int64{0}, Type: gguf.TypeF32}}
		if exit != 0 {
			x = x[:1]
		}
		gguf.Layout(x, 32)
		data := append(gguf.AppendHeader(nil, m, x, 32), make([]byte, gguf.Layout(x, 32))...)
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		want := []string{"name of 66 bytes, want at most 63"}
		if exit == 0 {
			want = []string{`adaLN_modulation.1.weight" has a name of more than 63 bytes: programs that`,
				`"img_in.proj.weight" has more than 4 dimensions`, `"empty" has a dimension of 0`, " 1 x 2 x 3 x 1 x 2 "}
		}
		for _, w := range want {
			inspect(exit, w, path)
		}
		inspect(exit, "", "--json", path)
		inspect(exit, "", "--markdown", path)
	}
}

// TestMemory checks the output of inspect --memory. Tests of the sizes are in package memory.
func TestMemory(t *testing.T) {
	inspect := expect(t, "inspect")
	file := runnable(t)
	text := inspect(0, "llama, cache f16, batches of 512 tokens", "--memory", file)
	for _, want := range []string{"\n          4096 ", "\n          8192 ",
		"context 8192, all tokens: 8192 cells, 2 layers, keys 1.00 MiB, values 1.00 MiB\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	inspect(0, "cache q8_0 and f16, batches of 64 tokens, 4 sequences", "--memory", "--markdown", "--cache-type",
		"q8_0,f16", "--ubatch-size", "64", "--parallel", "4", file)
	var r memory.Report
	if err := json.Unmarshal([]byte(inspect(0, "", "--memory", "--json", "--context", "1k,32k", file)),
		&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Uses) != 2 || r.Uses[1].Context != 32768 || r.Uses[1].Cache != 2*2*32768*64 || r.Uses[1].Weights != 68 ||
		r.Trained != 8192 {
		t.Errorf("%+v", r)
	}
	inspect(2, "needs --memory", "--context", "4k", file)
	inspect(2, "--ctx-size", "--memory", "--context", "4k,", file)
	inspect(2, "q4_K", "--memory", "--cache-type", "q4_K", file)
	inspect(3, "llama.block_count", "--memory", write(t, t.TempDir(), "bare.gguf", 0))
}

// TestRemote reads headers from a server: the output equals that for local files, and no tensor is downloaded.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	_, first := shards(t, dir, 1)
	tokens := make([]string, 300_000) // more metadata than the first read fetches
	for i := range tokens {
		tokens[i] = "token"
	}
	tensors := []gguf.Tensor{{Name: "t.weight", NE: []int64{1 << 20, 64}, Type: gguf.TypeF16}}
	size := gguf.Layout(tensors, 32)
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(tokens)}}
	head := gguf.AppendHeader(nil, m, tensors, 32)
	large := filepath.Join(dir, "sub", "large file.gguf")
	if err := os.Mkdir(filepath.Dir(large), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, head, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, int64(len(head))+size); err != nil {
		t.Fatal(err)
	}
	buckettest.Serve(t, dir, "models/")
	hub := hubtest.Serve(t, "org/model", dir)
	hub.Token = "secret"
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "secret")
	for _, c := range []struct{ folder, file string }{{"hf://org/model/", "m-00001-of-00002.gguf"},
		{"hf://org/model@main/sub/", "large file.gguf"},
		{hub.URL + "/org/model/blob/main/sub/", "large%20file.gguf"}, {hub.Host + "/", "m-00001-of-00002.gguf"},
		{"s3://models/", "m-00001-of-00002.gguf"}, {"s3://models/sub/", "large file.gguf"}} {
		local := first
		if strings.HasPrefix(c.file, "large") {
			local = large
		}
		_, want, _ := call("inspect", "--json", local)
		code, got, err := call("inspect", "--json", c.folder+c.file)
		place := func(text, folder string) string { return strings.ReplaceAll(text, folder, "HERE/") }
		if got, want = place(strings.ReplaceAll(got, "%20", " "), c.folder),
			place(want, strings.Trim(strconv.Quote(filepath.Dir(local)+string(filepath.Separator)), `"`)); code != 0 ||
			got != want {
			t.Errorf("%s: exit code %d, %v\n%s\nwant\n%s", c.folder+c.file, code, err, got[:min(len(got), 600)],
				want[:min(len(want), 600)])
		}
	}
	if sent := hub.Sent(); sent > 16<<20 {
		t.Errorf("%d bytes were sent for two headers of %d", sent, len(head))
	}
	inspect := expect(t, "inspect")
	inspect(2, "want hf://ORG/NAME/FILE or hf://", "hf://org/model")
	inspect(2, "want hf://ORG/NAME/FILE or hf://", "hf://org/../x.gguf")
	inspect(2, "s3://BUCKET/KEY.gguf", "s3://models/sub/")
	inspect(1, "s3://models/none.gguf: the server answers 404 Not Found (NoSuchKey)", "s3://models/none.gguf")
	inspect(0, "hf://org/model/m-00002-of-00002.gguf", "--alone", "hf://org/model/m-00002-of-00002.gguf")
	inspect(2, "name the first one, hf://org/model/m-00001-of-00002.gguf", "hf://org/model/m-00002-of-00002.gguf")
	if code, out, err := call("inspect", "hf://org/model/none.gguf"); code == 0 {
		t.Errorf("no error for a file that is not there: %v %s", err, out)
	}
	t.Setenv("HF_TOKEN", "")
	if _, out, err := call("inspect", "hf://org/model/m-00001-of-00002.gguf"); err == nil ||
		!strings.Contains(err.Error(), "HF_TOKEN") {
		t.Errorf("without a token: %v %s", err, out)
	}
}

// TestInspectPage writes pages: text from metadata is escaped and adds no markup.
func TestInspectPage(t *testing.T) {
	const hostile = `</td><script>alert(1)</script>" onload='x' {{.}}` + "\u202e\x00"
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "general.name", Value: gguf.String(hostile)},
		{Key: "llama.block_count", Value: gguf.Uint32(2)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(32)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(1)},
		{Key: hostile, Value: gguf.Strings([]string{hostile})},
		{Key: "tokenizer.ggml.model", Value: gguf.String(hostile)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{hostile, "b"})},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(0)},
	}
	tensors := []gguf.Tensor{
		{Name: "blk.0.attn_q.weight", NE: []int64{32, 4}, Type: gguf.TypeQ8_0},
		{Name: "blk.1.attn_q.weight", NE: []int64{32, 4}, Type: gguf.TypeF16},
		{Name: "blk.1.attn_norm.weight", NE: []int64{32}, Type: gguf.TypeF32},
		{Name: "blk.1.<b>bold", NE: []int64{32, 2}, Type: gguf.TypeF32},
		{Name: "<i>x", NE: []int64{32}, Type: gguf.TypeF32},
	}
	data := make([]byte, gguf.Layout(tensors, 32))
	dir := t.TempDir()
	file, html := filepath.Join(dir, "model.gguf"), filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	inspect := expect(t, "inspect")
	inspect(0, "metadata: 9 pairs", "--html", html, "--context", "4k", file)
	raw, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, bad := range []string{"<script", "<b>", "<i>", "\u202e", "\x00", "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;",
		`<td class="b5" title="blk.0.attn_q.weight: Q8_0, 32 x 4, 8.50 bits per weight, 136 B">Q8_0</td>`,
		`<td class="b6"`, ">4096</th>", "&lt;i&gt;x"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	inspect(2, html, "--html", html, file)
	inspect(0, "", "--html", html, "--force", "--json", file)
	inspect(2, file, "--html", file, "--force", file)
	// a model without sizes has no estimate of memory
	inspect(0, "", "--html", html, "--force", write(t, dir, "bare.gguf", 0))
}

// TestInspectPageFigures checks the first figures of a page: size, bits per weight, recipe, and with --results
// divergence and perplexity.
func TestInspectPageFigures(t *testing.T) {
	dir := t.TempDir()
	file, html, results := filepath.Join(dir, "model.gguf"), filepath.Join(dir, "page.html"),
		filepath.Join(dir, "quality.json")
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)}, {Key: gguf.KeyFileType, Value: gguf.Uint32(15)}}
	tensors := []gguf.Tensor{{Name: "blk.0.attn_q.weight", NE: []int64{256, 4}, Type: gguf.TypeQ4_K},
		{Name: "output_norm.weight", NE: []int64{32}, Type: gguf.TypeF32}}
	size := int(gguf.Layout(tensors, 32))
	for name, data := range map[string]string{
		file:    string(gguf.AppendHeader(nil, m, tensors, 32)) + strings.Repeat("\x00", size),
		results: `{"base":{"model":"base","ppl":9},"text":"/home/me/heldout.txt","predicted":372,"models":[{"model":"out/model.gguf","ppl":10.5,"ppl_error":0.25,"kl_divergence":{"mean":0.00245,"error":0.0001}}]}`,
	} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	inspect := expect(t, "inspect")
	facts := func(args ...string) (names, values []string) {
		t.Helper()
		inspect(0, "", append([]string{"--html", html, "--force", file}, args...)...)
		data, err := os.ReadFile(html)
		if err != nil {
			t.Fatal(err)
		}
		names, values = clitest.Facts(string(data))
		for title, part := range clitest.Sections(t, string(data)) {
			if part.Scrolls && title != "Layers" {
				t.Errorf("%s scrolls", title)
			}
			if title == "Layers" && !slices.Equal(part.Legend, []string{"4 to 5"}) {
				t.Errorf("legend %q", part.Legend)
			}
		}
		return names, values
	}
	names, values := facts()
	if !slices.Equal(names[:4], []string{"size", "bits per weight", "recipe", "file"}) || values[2] != "Q4_K_M" {
		t.Errorf("%q %q", names, values)
	}
	names, values = facts("--results", results)
	if !slices.Equal(names[2:7], []string{"recipe", "divergence", "perplexity", "measured over", "file"}) ||
		!slices.Equal(values[3:7], []string{"0.00245 ± 1.00e-04", "10.5000 ± 0.2500", "heldout.txt, 372 tokens",
			"model.gguf"}) {
		t.Errorf("%q %q", names, values)
	}
	inspect(2, "--results: needs --html", "--results", results, file)
	inspect(2, "not what ggeval compare or ggeval perplexity writes as JSON", "--html", html, "--force",
		"--results", file, file)
	inspect(2, results, "--html", results, "--force", "--results", results, file)
	inspect(2, "has no figures of other.gguf", "--html", html, "--force", "--results", results,
		write(t, dir, "other.gguf", 0))
}
