package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// TestRecipeFile checks that types from a file give the same bytes as options, that a saved
// recipe gives the file again that it was saved of, and what is refused.
func TestRecipeFile(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	recipe := write("recipe.txt", "# a comment\n\nblk\\.0\\.ffn=iq4_xs\n  ^output\\.weight$=Q5_K\r\nweight=q3_k\n")
	must(t, in, path("want.gguf"), "Q4_K_M", "--tensor-type", `blk\.0\.ffn=iq4_xs`, "--tensor-type", `^output\.weight$=Q5_K`, "--tensor-type", "weight=q3_k")
	must(t, in, path("one.gguf"), "Q4_K_M", "--recipe", recipe, "--save-recipe", path("saved.txt"))
	same(t, path("want.gguf"), path("one.gguf"))
	must(t, in, path("two.gguf"), "Q4_K_M", "--recipe", path("saved.txt"))
	same(t, path("want.gguf"), path("two.gguf"))
	saved, err := os.ReadFile(path("saved.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(string(saved)) {
		if line[0] != '#' {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	if want := `^output\.weight$=q5_k ^token_embd\.weight$=q3_k ^blk\.0\.attn_v\.weight$=q3_k ^blk\.0\.ffn_down\.weight$=iq4_xs`; strings.Join(rules, " ") != want {
		t.Errorf("saved %v", rules)
	}
	must(t, in, path("three.gguf"), "Q4_K_M", "--tensor-type-file", write("rules.txt", strings.Join(rules, "\n")))
	same(t, path("want.gguf"), path("three.gguf"))
	// options come first
	must(t, in, path("four.gguf"), "Q4_K_M", "--recipe", recipe, "--tensor-type", "attn_v=q8_0")
	if got := typeOf(t, path("four.gguf"), "blk.0.attn_v.weight"); got != gguf.TypeQ8_0 {
		t.Errorf("attn_v is %v", got)
	}
	// a recipe of a run that writes no model
	must(t, in, "Q4_K_M", "--dry-run", "--save-recipe", path("dry.txt"))
	if dry, err := os.ReadFile(path("dry.txt")); err != nil || !strings.Contains(string(dry), "^output\\.weight$=q6_k\n") {
		t.Errorf("%v\n%s", err, dry)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--recipe " + write("a", "attn=q4_k\nxyz=q4_k") + " IN OUT Q4_K_M", 5, `a, line 2: "xyz" matches no tensor`},
		{"--recipe " + write("b", "attn=q99") + " IN OUT Q4_K_M", 2, `b, line 1: tensor rule "attn=q99": unknown type "q99"`},
		{"--recipe " + recipe + " IN OUT F16", 2, "no effect on F16"},
		{"--recipe " + recipe + " IN OUT COPY", 2, "no effect on COPY"},
		{"--recipe " + recipe + " --pure IN OUT Q4_K_M", 2, "want only one of them"},
		{"--recipe " + path("nowhere") + " IN OUT Q4_K_M", 1, "nowhere"},
		{"--save-recipe " + path("saved.txt") + " IN OUT Q4_K_M", 2, "exists"},
		{"--save-recipe r --out-dir " + path("d") + " IN Q4_K_M Q5_K_M", 2, "one output"},
		{"--save-recipe " + in + " --force IN OUT Q4_K_M", 2, "output equals input"},
	} {
		args := strings.Fields(strings.NewReplacer("IN", in, "OUT", path("out.gguf")).Replace(c.args))
		if code, _, err := call(append(args, "--progress", "none")...); code != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
	if _, err := os.Stat(path("out.gguf")); err == nil {
		t.Error("an output after errors")
	}
}
