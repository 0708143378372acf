package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/quantize"
	"ggforge/test/hftest"
)

// TestRecipeFile checks that types from a file give the same bytes as options, that a saved recipe
// gives the same output again, and the errors.
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
	must(t, in, path("want.gguf"), "Q4_K_M", "--tensor-type", `blk\.0\.ffn=iq4_xs`, "--tensor-type",
		`^output\.weight$=Q5_K`, "--tensor-type", "weight=q3_k")
	must(t, in, path("one.gguf"), "Q4_K_M", "--recipe", recipe, "--save-recipe", path("saved.txt"))
	same(t, path("want.gguf"), path("one.gguf"))
	must(t, in, path("two.gguf"), "Q4_K_M", "--recipe", path("saved.txt"))
	same(t, path("want.gguf"), path("two.gguf"))
	saved, err := os.ReadFile(path("saved.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Fields(string(saved))
	if want := `^output\.weight$=q5_k ^token_embd\.weight$=q3_k ^blk\.0\.attn_v\.weight$=q3_k ^blk\.0\.ffn_down\.weight$=iq4_xs`; strings.Join(rules, " ") != want {
		t.Errorf("saved %v", rules)
	}
	must(t, in, path("three.gguf"), "Q4_K_M", "--tensor-type-file", path("saved.txt"))
	same(t, path("want.gguf"), path("three.gguf"))
	// Options take precedence over the recipe.
	must(t, in, path("four.gguf"), "Q4_K_M", "--recipe", recipe, "--tensor-type", "attn_v=q8_0")
	if got := typeOf(t, path("four.gguf"), "blk.0.attn_v.weight"); got != gguf.TypeQ8_0 {
		t.Errorf("attn_v is %v", got)
	}
	// The recipe of a run that writes no model.
	must(t, in, "Q4_K_M", "--dry-run", "--save-recipe", path("dry.txt"))
	if dry, err := os.ReadFile(path("dry.txt")); err != nil ||
		!strings.Contains(string(dry), "^output\\.weight$=q6_k\n") {
		t.Errorf("%v\n%s", err, dry)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--recipe " + write("a", "attn=q4_k\nxyz=q4_k") + " IN OUT Q4_K_M", 5, `a, line 2: "xyz" matches no tensor`},
		{"--recipe " + write("b", "attn=q99") + " IN OUT Q4_K_M", 2,
			`b, line 1: tensor rule "attn=q99": unknown type "q99"`},
		{"--recipe " + recipe + " IN OUT F16", 2, "no effect on F16"},
		{"--recipe " + recipe + " IN OUT COPY", 2, "no effect on COPY"},
		{"--recipe " + recipe + " --pure IN OUT Q4_K_M", 2, "want only one of them"},
		{"--recipe " + path("nowhere") + " IN OUT Q4_K_M", 1, "nowhere"},
		{"--save-recipe " + path("saved.txt") + " IN OUT Q4_K_M", 2, "exists"},
		{"--save-recipe r --out-dir " + path("d") + " IN Q4_K_M Q5_K_M", 2, "one output"},
		{"--save-recipe " + in + " --force IN OUT Q4_K_M", 2, "output equals input"},
	} {
		args := strings.Fields(strings.NewReplacer("IN", in, "OUT", path("out.gguf")).Replace(c.args))
		if code, _, err := call(append(args, "--progress", "none")...); code != c.code || err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
	if _, err := os.Stat(path("out.gguf")); err == nil {
		t.Error("an output after errors")
	}
}

// TestTargets checks, with and without --effort high, the sizes of outputs with a target, the figures of their
// reports and that several types are used, and the errors.
func TestTargets(t *testing.T) {
	dir, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/"
	text := out + "text.txt"
	if err := os.WriteFile(text, source[:2500], 0o666); err != nil {
		t.Fatal(err)
	}
	size := func(name string) int64 {
		t.Helper()
		info, err := os.Stat(out + name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	flags := []string{"--calibrate", text, "-c", "16", "--chunks", "4", "--progress", "none", "--json"}
	run := func(args ...string) (r quantize.Report) {
		t.Helper()
		_, log, err := call(append(slices.Clone(flags), args...)...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, log)
		}
		if err := json.Unmarshal([]byte(log[strings.Index(log, "{\n"):]), &r); err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		return r
	}
	plain := run(dir, out+"plain.gguf", "Q5_0")
	sum := func(r quantize.Report) (sum float64) {
		for _, x := range r.Tensors {
			if x.Predicted != nil {
				sum += *x.Predicted
			}
		}
		return sum
	}
	like := run("--like", "Q5_0", "--save-recipe", out+"like.txt", dir, out+"like.gguf", "Q5_0")
	limit := plain.Bytes
	if n := size("like.gguf"); n > limit || n < limit*998/1000 || n != like.Bytes {
		t.Errorf("%d bytes, reported %d, want up to %d", n, like.Bytes, limit)
	}
	if w := like.Allocation; w == nil || math.Abs(w.Predicted-sum(like)) > 1e-9*w.Predicted || !(w.Predicted > 0) ||
		w.Target != "the size of Q5_0" || w.Measured != nil || len(w.Types) < 3 {
		t.Errorf("%+v, tensors %g", like.Allocation, sum(like))
	}
	// The saved recipe alone gives the same types.
	again := run("--recipe", out+"like.txt", dir, out+"again.gguf", "Q5_0")
	for i, x := range like.Tensors {
		if again.Tensors[i].Type != x.Type {
			t.Errorf("%s is %s of a saved recipe, was %s", x.Name, again.Tensors[i].Type, x.Type)
		}
	}
	// A size in bytes or in bits per weight, also with chosen blocks.
	bytes := run("--target-size", fmt.Sprint(size("like.gguf")), "--measure", "1", dir, out+"size.gguf", "Q5_0")
	if n := size("size.gguf"); n > size("like.gguf") || n < size("like.gguf")*998/1000 {
		t.Errorf("%d bytes, want %d", n, size("like.gguf"))
	}
	if w := bytes.Allocation; w.Measured == nil || !(*w.Measured > 0) || w.MeasuredTokens != 16 {
		t.Errorf("%+v", w)
	}
	for _, effort := range []string{"high", "best"} {
		bits := run("--target-bpw", "6.1", "--effort", effort, "--types", "ffn=q5_0,q8_0", dir,
			out+effort+".gguf", "Q5_0")
		// the vocabulary's tensors are large, so the size changes in large steps
		if bits.BPW > 6.1 || bits.BPW < 6.1*.98 ||
			bits.Bytes != size(effort+".gguf") {
			t.Errorf("%.4f bits per weight, %d bytes", bits.BPW, bits.Bytes)
		}
		for _, x := range bits.Tensors {
			if strings.Contains(x.Name, "ffn_up") && x.Type != "Q5_0" && x.Type != "Q8_0" {
				t.Errorf("%s is %s", x.Name, x.Type)
			}
		}
		dry := run("--target-bpw", "6.1", "--effort", effort, "--types", "ffn=q5_0,q8_0", "--dry-run", dir, "Q5_0")
		if dry.Bytes != bits.Bytes || dry.Allocation.Predicted != bits.Allocation.Predicted {
			t.Errorf("%d bytes, planned %d", bits.Bytes, dry.Bytes)
		}
	}
	kld := run("--target-kld", fmt.Sprint(*bytes.Allocation.Measured), dir, out+"kld.gguf", "Q5_0")
	if w := kld.Allocation; w.Measured == nil || *w.Measured > *bytes.Allocation.Measured || w.Factor == 1 ||
		math.Abs(w.Predicted-sum(kld)) > 1e-9*w.Predicted {
		t.Errorf("%+v, want a divergence of %g", w, *bytes.Allocation.Measured)
	}
	f, err := gguf.Open(out + "kld.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, key := range []string{"method", "target", "text_sha256", "tokens"} {
		if v, ok := f.Metadata.Get("quantize.types." + key); !ok || strings.Contains(v.String(), "/") {
			t.Errorf("%s is %v", key, v)
		}
	}
	few := strings.Join(flags, " ")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--like Q4_0 IN OUT Q4_0", 2, "want --calibrate"},
		{few + " --like Q4_0 --target-bpw 4 IN OUT Q4_0", 2, "want only one of"},
		{few + " --like Q4_0 --recipe " + out + "like.txt IN OUT Q4_0", 2, "want only one of"},
		{few + " --target-bpw x IN OUT Q4_0", 2, `--target-bpw: "x": want a number above 0`},
		{few + " --target-size 4.2X IN OUT Q4_0", 2, `"4.2X" is not a size`},
		{few + " --like nothing IN OUT Q4_0", 2, "unknown quantization type"},
		{few + " --target-bpw 5 IN OUT F16", 2, "no effect on F16"},
		{few + " --target-bpw 5 --pure IN OUT Q4_0", 2, "--pure"},
		{few + " --target-bpw 5 --split-max-tensors 3 IN OUT Q4_0", 2, "shards"},
		{few + " --target-bpw 5 --target-bpw 6 IN OUT Q4_0", 2, "2 targets for 1 outputs"},
		{few + " --types q4_0 IN OUT Q4_0", 2, "--types goes with"},
		{few + " --target-bpw 2 IN OUT Q4_0", 5, "2 bits per weight is too small: the smallest candidate types"},
		{few + " --target-bpw 5 --types nothing=q8_0 IN OUT Q4_0", 5, `types "nothing"`},
		{few + " --target-bpw 5 --measure 4 IN OUT Q4_0", 5, "want more text"},
		{few + " --target-kld 1e-30 IN OUT Q4_0", 5,
			"a KL divergence of 1e-30 is not reachable with the candidate types"},
	} {
		args := strings.Fields(strings.NewReplacer("IN", dir, "OUT", out+"x.gguf").Replace(c.args))
		if code, _, err := call(append(args, "--progress", "none")...); code != c.code || err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %q", c.args, code, err, c.code, c.want)
		}
	}
	if _, err := os.Stat(out + "x.gguf"); err == nil {
		t.Error("an output after errors")
	}
}

// TestSaveRecipeParts writes the recipe of a run in parts once, when it is finished.
func TestSaveRecipeParts(t *testing.T) {
	dir := t.TempDir() + "/"
	in := ggufModel(t, dir+"in.gguf", 256, nil)
	for _, share := range [][]string{{"--part", "1/2"}, {"--part", "2/2"}, {"--finish"}} {
		if _, err := os.Stat(dir + "r"); err == nil {
			t.Errorf("%v: there is a recipe already", share)
		}
		if code, _, err := call(append(share, "--save-recipe", dir+"r", in, dir+"out.gguf", "Q4_0")...); code != 0 {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir + "r"); err != nil {
		t.Error(err)
	}
}

// TestSaveRecipeAfterFailure checks that a run which fails leaves no recipe, so that the same command does not need
// --force.
func TestSaveRecipeAfterFailure(t *testing.T) {
	dir := t.TempDir()
	in, out, recipe := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil), filepath.Join(dir, "out.gguf"),
		filepath.Join(dir, "recipe.txt")
	args := []string{"--progress", "none", "--save-recipe", recipe, in, out, "Q4_K_M"}
	remove := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpSync && strings.HasPrefix(c.Path, out) {
			return 0, errors.New("the disk has failed")
		}
		return do(c.N)
	})
	code, text, err := call(args...)
	remove()
	if code != 1 {
		t.Fatalf("exit code %d: %s %v", code, text, err)
	}
	for _, path := range []string{out, recipe} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if code, text, err := call(args...); code != 0 {
		t.Fatalf("again: exit code %d: %s %v", code, text, err)
	}
	if _, err := os.Stat(recipe); err != nil {
		t.Error(err)
	}
	before, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if code, text, err := call("--progress", "none", "--force", "--save-recipe", out, in, out, "Q4_K_M"); code != 2 ||
		!strings.Contains(fmt.Sprint(text, err), "named both as output and as the file for its types") {
		t.Errorf("the output as recipe: exit code %d: %s %v", code, text, err)
	}
	shards := filepath.Join(dir, "s")
	if code, text, err := call("--progress", "none", "--force", "--split-max-tensors", "2", "--save-recipe",
		shards+"-00001-of-00003.gguf", in, shards, "Q4_K_M"); code != 2 {
		t.Errorf("a shard as recipe: exit code %d: %s %v", code, text, err)
	}
	if after, err := os.ReadFile(out); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the output is another one: %v", err)
	}
}
