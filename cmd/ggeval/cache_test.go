package main

import (
	"os"
	"path/filepath"
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
