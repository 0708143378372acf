package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCache checks that perplexity and compare give the same figures of a cache, in one process and from parts, that
// BASE has a cache of F16, and that a cache that the model cannot have is refused.
func TestCache(t *testing.T) {
	text := textOf(t, source(t, 6000))
	run := func(args ...string) string {
		t.Helper()
		code, out, log, err := call(append(args, "-f", text, "-c", "128", "--chunks", "4", "--progress", "none", "--json")...)
		if code != 0 {
			t.Fatal(err, log)
		}
		return out
	}
	p := result[perplexityResult](t, run("perplexity", gollama, "-ctk", "q8_0", "-ctv", "q4_0"))
	f16 := result[perplexityResult](t, run("perplexity", gollama, "--cache-type-v", "f16"))
	exact := result[perplexityResult](t, run("perplexity", gollama))
	c := result[compareResult](t, run("compare", gollama, gollama, "-ctk", "q8_0", "-ctv", "q4_0", "--cache-types",
		"f16,f32,q8_0:q4_0,q4_0"))
	if f16.F16Cache != nil || f16.Cache == nil || exact.Cache != nil || exact.F16Cache != nil || f16.PPL == exact.PPL {
		t.Errorf("cache of f16 %+v, of f32 %+v", f16, exact)
	}
	d := p.F16Cache
	if d == nil || d.PPL != f16.PPL || c.Base.PPL != f16.PPL || c.Base.Cache.String() != "f16" || len(c.Models) != 5 {
		t.Fatalf("base %+v and %+v, want a perplexity of %v", d, c.Base, f16.PPL)
	}
	for i, want := range []struct {
		cache string
		ppl   number
	}{{"q8_0:q4_0", p.PPL}, {"f16", f16.PPL}, {"", exact.PPL}, {"q8_0:q4_0", p.PPL}, {"q4_0", 0}} {
		m := &c.Models[i]
		cache := ""
		if m.Cache != nil {
			cache = m.Cache.String()
		}
		if cache != want.cache || want.ppl != 0 && m.PPL != want.ppl {
			t.Errorf("model %d: cache %q, perplexity %v, want %q, %v", i, cache, m.PPL, want.cache, want.ppl)
		}
	}
	if c.Models[0].Divergence != d.Divergence || d.Divergence.Mean <= c.Models[2].Divergence.Mean ||
		c.Models[4].Divergence.Mean <= d.Divergence.Mean || c.Models[1].Divergence.Mean != 0 {
		t.Errorf("divergences %+v, that of perplexity %+v", c.Models, d)
	}
	parts := filepath.Join(t.TempDir(), "p")
	for _, k := range []string{"1/2", "2/2"} {
		run("perplexity", gollama, "-ctk", "q8_0", "-ctv", "q4_0", "--part", k, "--part-files", parts)
	}
	joined := result[perplexityResult](t, run("perplexity", gollama, "-ctk", "q8_0", "-ctv", "q4_0", "--finish",
		"--part-files", parts))
	if joined.PPL != p.PPL || *joined.F16Cache != *d {
		t.Errorf("from parts %+v, %+v, want %+v, %+v", joined.PPL, joined.F16Cache, p.PPL, d)
	}
	if code, _, log, _ := call("perplexity", gollama, "-ctk", "q8_0", "--finish", "-f", text, "-c", "128", "--chunks", "4",
		"--part-files", parts); code == 0 {
		t.Errorf("parts with another cache are accepted: %s", log)
	}
	page := filepath.Join(t.TempDir(), "p.html")
	run("perplexity", gollama, "-ctk", "q4_0", "--no-cache-rotation", "--html", page)
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "q4_0:f16 without rotation") {
		t.Error("the page does not name the cache", err)
	}
	for _, args := range [][]string{{"-ctk", "q4_k"}, {"--no-cache-rotation"}} {
		if code, _, _, err := call(append([]string{"perplexity", gollama, "-f", text}, args...)...); code != 2 {
			t.Errorf("%v: code %d, %v", args, code, err)
		}
	}
	if code, _, _, err := call("perplexity", checkpointOf(t, "llama", 1), "-ctk", "q8_0", "-f", text, "-c", "64"); code != 5 ||
		!strings.Contains(err.Error(), "want a multiple of the 32") {
		t.Errorf("short heads: code %d, %v", code, err)
	}
}

// TestCacheChats checks that the divergence that perplexity prints of conversations is that of compare, and that both
// have figures of categories with the cache.
func TestCacheChats(t *testing.T) {
	model, chats := talkative(t, talk), conversations(t, 9)
	run := func(args ...string) string {
		t.Helper()
		code, out, _, err := call(append(args, "-f", chats, "--chats", "--progress", "none", "--json")...)
		if code != 0 {
			t.Fatalf("%q: %v", args, err)
		}
		return out
	}
	p := result[perplexityResult](t, run("perplexity", model, "-ctk", "q8_0", "-ctv", "q4_0"))
	f16 := result[perplexityResult](t, run("perplexity", model, "-ctk", "f16"))
	c := result[compareResult](t, run("compare", model, "--cache-types", "q8_0:q4_0"))
	d, m := p.F16Cache, &c.Models[0]
	if d == nil || len(p.Categories) != 2 || len(m.Categories) != 2 {
		t.Fatalf("%+v, %+v", p, c)
	}
	if d.PPL != f16.PPL || c.Base.PPL != f16.PPL || m.PPL != p.PPL || p.PPL == f16.PPL || d.Divergence != m.Divergence ||
		!(d.Divergence.Mean > 0) {
		t.Errorf("perplexities %v and %v, divergence %+v; of compare %v and %v, %+v; with F16 %v", p.PPL, d.PPL, d.Divergence,
			m.PPL, c.Base.PPL, m.Divergence, f16.PPL)
	}
	for i, k := range p.Categories {
		if k.PPL != m.Categories[i].PPL || k.PPL == f16.Categories[i].PPL || k.Predicted != f16.Categories[i].Predicted {
			t.Errorf("%+v, of compare %+v, with F16 %+v", k, m.Categories[i], f16.Categories[i])
		}
	}
}

// TestCacheScore compares the means of score with those of task, for a question whose answers differ from their first
// token on, and checks that the result names the cache.
func TestCacheScore(t *testing.T) {
	ask := textOf(t, "func main() {\n0\nreturn nil\nif x == nil {\nfmt.Println(x)\nx := 3\n")
	requests := textOf(t, `{"prompt": "func main() {", "choices": [" return nil", " if x == nil {", " fmt.Println(x)", " x := 3"]}`)
	means := map[string][]number{}
	for _, types := range [][]string{nil, {"-ctk", "q4_0", "-ctv", "q8_0"}, {"-ctk", "f16"}} {
		run := func(args ...string) string {
			t.Helper()
			code, out, _, err := call(append(append(args, types...), gollama, "--progress", "none", "--json")...)
			if code != 0 {
				t.Fatalf("%q: %v", args, err)
			}
			return out
		}
		want := result[taskResult](t, run("task", "hellaswag", "-f", ask)).Models[0]
		s := result[scoreResult](t, run("score", "-f", requests))
		var got []number
		for _, c := range s.Answers[0].Choices {
			got = append(got, c.Mean)
		}
		cache := s.Models[0].Cache
		if len(want.Means) != 1 || !slices.Equal(got, want.Means[0]) || (cache == nil) != (types == nil) ||
			cache != nil && *cache != *want.Cache {
			t.Errorf("%v: means %v, cache %+v; of task %v, %+v", types, got, cache, want.Means, want.Cache)
		}
		means[fmt.Sprint(got)] = got
	}
	if len(means) != 3 {
		t.Errorf("caches change nothing: %v", means)
	}
	if code, _, _, err := call("score", checkpointOf(t, "llama", 1), "-ctk", "q8_0", "-f", requests); code != 5 {
		t.Errorf("short heads: code %d, %v", code, err)
	}
}
