package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/cmd/internal/page"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/publish/card"
	"ggforge/publish/release"
	"ggforge/test/clitest"
)

// TestRelease makes a release of a file by flags, and reads plans.
func TestRelease(t *testing.T) {
	dir := t.TempDir() + "/"
	run := expect(t, "release")
	if out := run(0, "", "--schema"); out != string(release.Schema()) {
		t.Errorf("schema: %s", out)
	}
	run(2, "there is no --source")
	run(2, "there is no --type", "--source", "x", "--output", "y")

	tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{256, 64}, Type: gguf.TypeF32}}
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyName, Value: gguf.String("Tiny")}}
	file := append(gguf.AppendHeader(nil, m, tensors, 32), make([]byte, gguf.Layout(tensors, 32))...)
	if err := os.WriteFile(dir+"in.gguf", file, 0o666); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--source", dir + "in.gguf", "--output", dir + "out", "--type", "Q8_0", "--type",
		"Q4_0,name=small", "--progress", "none"}
	var planned, made releaseResult
	decode := func(out string, to *releaseResult) {
		t.Helper()
		if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), to); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	decode(run(0, "", append(flags, "--dry-run", "--json", "--quiet")...), &planned)
	run(0, "to be made  Q8_0       17664 bytes  Tiny-16K-Q8_0.gguf", append(flags, "--dry-run")...)
	run(0, "Tiny-16K-F16.gguf: llama.cpp's tag F16 leads to Tiny-16K-BF16.gguf too", "--dry-run",
		"--source", dir+"in.gguf", "--output", dir+"out", "--type", "F16", "--type", "BF16", "--progress", "none")
	run(0, "Tiny-16K-small.gguf: the hub's pages and Ollama know no type", append(flags, "--dry-run")...)
	if _, err := os.Stat(dir + "out"); err == nil {
		t.Error("--dry-run has written")
	}
	decode(run(0, "", append(flags, "--json", "--quiet")...), &made)
	for i, p := range planned.Parts {
		if m := made.Parts[i]; p.Exact && p.Bytes != m.Bytes || p.Exact == (p.Type == "card") || m.Bytes == 0 {
			t.Errorf("planned %+v, made %+v", p, m)
		}
	}
	if planned.Exact || !made.Exact || len(planned.Parts) != 5 || len(made.Files) != 2 || made.Model != "Tiny-16K" ||
		made.Files[1].Name != "Tiny-16K-small.gguf" || planned.Files != nil {
		t.Errorf("planned %+v, made %+v", planned, made)
	}
	run(0, "is there    Q8_0", append(flags, "--dry-run")...)
	run(0, "out: 2 files", flags...)
	if out := expect(t, "verify")(3, "", "--header-only", "--sums",
		dir+"out/SHA256SUMS"); strings.Contains(out, "SHA-256") {
		t.Errorf("sums: %s", out) // verify finds other defects in the model
	}
	run(2, "--type \"Q4_0,x\"", append(flags, "--type", "Q4_0,x")...)
	run(2, "has the name of", append(flags, "--type", "Q8_0")...)
	run(2, "--evaluate-chunks goes with", append(flags, "--evaluate-chunks", "3")...)
	run(2, "towers are for checkpoints", append(flags, "--mmproj", "f16")...)

	// pages are those of inspect --html
	decode(run(0, "", append(flags, "--pages", "--json", "--quiet")...), &made)
	expect(t, "inspect")(0, "", "--html", dir+"page.html", dir+"out/Tiny-16K-small.gguf")
	page, err1 := os.ReadFile(dir + "out/Tiny-16K-small.html")
	want, err2 := os.ReadFile(dir + "page.html")
	if err1 != nil || err2 != nil || !bytes.Equal(page, want) || bytes.Contains(page, []byte(dir)) ||
		len(made.Files) != 5 || made.Files[3].Type != "page" || made.Files[4].Name != "index.html" {
		t.Errorf("%v %v: %+v: %s", err1, err2, made.Files, page)
	}

	// a plan, with paths relative to its folder
	if err := os.Mkdir(dir+"plans", 0o777); err != nil {
		t.Fatal(err)
	}
	plan := dir + "plans/plan.yaml"
	if err := os.WriteFile(plan,
		[]byte("source: ../in.gguf\noutput: ../other\noutputs: [Q8_0]\ncard: {template: card.tmpl}\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"plans/card.tmpl", []byte("Of {{.Title}}"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(0, "other: 1 files", plan, "--progress", "none")
	run(0, "third: 1 files", plan, "--progress", "none", "--output", dir+"third")
	// The model lacks keys, but matches the manifest.
	if out := expect(t, "verify")(3, "has no key", "--manifest", dir+"third/manifest.json"); strings.Contains(out,
		"SHA-256 is") || strings.Contains(out, "bytes, want") || strings.Contains(out, "is missing") {
		t.Errorf("verify --manifest: %s", out)
	}
	a, err1 := os.ReadFile(dir + "other/manifest.json")
	b, err2 := os.ReadFile(dir + "third/manifest.json")
	card, err3 := os.ReadFile(filepath.Join(dir, "third", "README.md"))
	if err1 != nil || err2 != nil || err3 != nil || !bytes.Equal(a, b) ||
		!strings.Contains(string(card), "\nOf Tiny\n") {
		t.Errorf("%v %v %v: %s", err1, err2, err3, card)
	}
	run(2, "--source is for releases without a plan", plan, "--source", "x")
	if err := os.WriteFile(plan, []byte("source: ../in.gguf\nlayuot: flat\noutputs: [Q8_0]\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(2, "line 2: unknown key \"layuot\", did you mean layout?", plan)
	run(1, "no.yaml", dir+"no.yaml")
}

// TestReleaseRefusedFirst asks for releases that are refused: nothing is written, not even the folder.
func TestReleaseRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	source := write(t, dir, "quantized.gguf", 1)
	out := filepath.Join(dir, "out")
	run := expect(t, "release", "--source", source, "--type", "Q4_0", "--progress", "none")
	run(5, "already quantized", "-o", out)
	run(2, "the output is a file, want a folder", "-o", source)
	run(2, "the output is a file, want a folder", "-o", source, "--force")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestReleasePages makes pages about models that are measured: pages have recipe, divergence and perplexity, and are
// made again when the measurements change.
func TestReleasePages(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("runs a model, which takes long without vector kernels")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := "../../fault/fault.go"
	flags := []string{"--source", "../../test/testdata/gollama", "--output", at("out"), "--type", "Q8_0", "--type",
		"Q4_0", "--layout", "folders", "--max-size", "4M", "--pages",
		"--evaluate", text, "--ctx-size", "64", "--progress", "none", "--evaluate-chunks"}
	run := expect(t, "release")
	seen := map[string]bool{}
	check := func(chunks string) {
		t.Helper()
		run(0, "", append(flags, chunks)...)
		quality, err := os.ReadFile(at("out/quality.json"))
		if err != nil {
			t.Fatal(err)
		}
		results, ok := card.ParseResult(quality)
		pages, err := filepath.Glob(at("out/*/*.html"))
		if !ok || err != nil || len(pages) != 2 || len(results.Files) != 2 {
			t.Fatalf("%v %q %+v", err, pages, results)
		}
		for _, name := range pages {
			html, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			first := strings.TrimSuffix(name, ".html") + "-00001-of-00002.gguf"
			names, values := clitest.Facts(string(html))
			found := results.Files[filepath.Base(first)]
			want := []string{filepath.Base(filepath.Dir(name)),
				page.Divergence(found.Divergence.Mean, found.Divergence.Error),
				page.Perplexity(found.PPL.Mean, found.PPL.Error)}
			if !slices.Equal(names[:5], []string{"size", "bits per weight", "recipe", "divergence", "perplexity"}) ||
				!slices.Equal(values[2:5], want) {
				t.Errorf("%s: %q %q, want %q", name, names, values, want)
			}
			seen[values[3]] = true
			expect(t, "inspect")(0, "", "--html", at("page.html"), "--force", "--results",
				at("out/quality.json"), first)
			if other, err := os.ReadFile(at("page.html")); err != nil || !bytes.Equal(html, other) {
				t.Errorf("%s is not what inspect --html writes: %v", name, err)
			}
		}
	}
	check("2")
	check("3")
	if len(seen) != 4 {
		t.Errorf("divergences in pages: %v", seen)
	}
	if out := run(0, "is there    page", append(flags, "3", "--dry-run")...); strings.Contains(out, "to be made") {
		t.Errorf("the same again: %s", out)
	}
}
