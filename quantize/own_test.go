package quantize

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// TestOwnRecipes checks the bytes of our own recipes: no tool but ours makes such files, so the sums are those of the
// first version.
func TestOwnRecipes(t *testing.T) {
	dir := inputs(t)
	for _, c := range []struct{ recipe, in, sum string }{
		{"MXFP4", "dense", "65875a82bfe10e90"}, {"MXFP4", "tied", "053d4412f5970f15"},
		{"MXFP4", "moe", "19fe4d5e4f070584"}, {"MXFP4", "meta", "4f072958a0c3cd03"},
		{"NVFP4", "dense", "36f0ff42fb0d1a47"}, {"NVFP4", "tied", "9b516d81b903a5cd"},
		{"NVFP4", "moe", "678b964bf6d56241"}, {"NVFP4", "meta", "8a5f564505102b18"},
	} {
		opt := options(t, c.recipe)
		out := filepath.Join(t.TempDir(), "out.gguf")
		if _, err := quantizeTo(filepath.Join(dir, c.in+".gguf"), out, opt, writer.Options{}); err != nil {
			t.Errorf("%s, %s: %v", c.recipe, c.in, err)
			continue
		}
		if got := fileSum(t, out)[:16]; got != c.sum {
			t.Errorf("%s, %s: sha256 %s, want %s", c.recipe, c.in, got, c.sum)
		}
		opt.Reference = true
		_, err := quantizeTo(filepath.Join(dir, c.in+".gguf"), out, opt, writer.Options{})
		if !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), c.recipe) {
			t.Errorf("%s: error %v with the reference's bytes wanted", c.recipe, err)
		}
	}
}

// TestOwnRecipeTypes checks the rules of our own recipes and the number of their files.
func TestOwnRecipeTypes(t *testing.T) {
	dir := inputs(t)
	for name, want := range map[string]struct {
		types  map[string]gguf.Type
		number int64
		recipe string // of a file with that number
	}{
		"MXFP4": {map[string]gguf.Type{"blk.0.attn_v.weight": gguf.TypeMXFP4, "token_embd.weight": gguf.TypeQ4_K,
			"output.weight": gguf.TypeQ6_K, "blk.0.odd.weight": gguf.TypeF16, "blk.0.odd2.weight": gguf.TypeMXFP4},
			38, "MXFP4_MOE"},
		"NVFP4": {map[string]gguf.Type{"blk.0.attn_v.weight": gguf.TypeNVFP4, "token_embd.weight": gguf.TypeQ4_K,
			"output.weight": gguf.TypeQ6_K, "blk.0.odd.weight": gguf.TypeF16, "blk.0.odd2.weight": gguf.TypeMXFP4},
			39, "NVFP4"},
	} {
		job, err := Prepare(t.Context(), filepath.Join(dir, "meta.gguf"), options(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for tensor, typ := range want.types {
			i := slices.IndexFunc(job.Decisions, func(d Decision) bool { return d.Name == tensor })
			if i < 0 {
				t.Fatalf("%s: no tensor %s", name, tensor)
			}
			if d := job.Decisions[i]; d.To != typ {
				t.Errorf("%s: %s is %v (%v), want %v", name, tensor, d.To, d.Reason, typ)
			}
		}
		v, _ := job.metadata.Get(gguf.KeyFileType)
		if n, ok := v.Int(); !ok || n != want.number {
			t.Errorf("%s: file type %v, want %d", name, v.Short(), want.number)
		}
		if r, ok := RecipeOf(job.metadata); !ok || r.Name != want.recipe {
			t.Errorf("%s: recipe %v of the file, want %s", name, r, want.recipe)
		}
		job.Close()
	}
}
