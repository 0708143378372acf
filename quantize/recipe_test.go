package quantize

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quants"
)

// testdata/recipe_golden.json.gz holds what llama-quantize 0.7.0 --dry-run prints for model shapes × option sets ×
// recipes:
//
//	models   name → arch, kv, tensors [[name, [ne0, ne1, ...]], ...], all of type F32
//	results  model → option set → recipe → result
//
// A result's "t" maps names, with "blk.<n>." written as "blk.*.", to a type or
// to "type:layers;type:layers". "same" names the option set with the same "t".
// "needs" is 1 if an importance matrix is required, "error" set if the tool
// failed. Option sets join options with "+": imatrix, pure, leave, out=TYPE,
// emb=TYPE, tt=PATTERN=TYPE.
type goldenFile struct {
	Models map[string]struct {
		Arch    string
		KV      map[string]any
		Tensors []goldenTensor
	}
	Results map[string]map[string]map[string]goldenResult
}

type goldenTensor struct {
	name string
	ne   []int64
}

func (t *goldenTensor) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&t.name, &t.ne})
}

type goldenResult struct {
	T     map[string]string
	Same  *string
	Needs int
	Error string
}

const goldenResults = 2712

func TestRecipeGolden(t *testing.T) {
	f, err := os.Open("testdata/recipe_golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenFile
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}

	checked := 0
	for name, results := range golden.Results {
		m := golden.Models[name]
		var meta gguf.Metadata
		meta.Set("general.architecture", gguf.String(m.Arch))
		for k, v := range m.KV {
			if n, ok := v.(float64); ok && n == math.Trunc(n) {
				meta.Set(k, gguf.Uint32(uint32(n)))
			}
		}
		var tensors []model.Tensor
		for _, gt := range m.Tensors {
			tensors = append(tensors, model.Tensor{Tensor: gguf.Tensor{Name: gt.name, NE: gt.ne, Type: gguf.TypeF32}})
		}
		for set, byRecipe := range results {
			for recipe, want := range byRecipe {
				if want.Same != nil {
					want.T = results[*want.Same][recipe].T
				}
				opt := goldenOptions(t, set)
				opt.Recipe, _ = LookupRecipe(recipe)
				if opt.Recipe == nil {
					t.Fatalf("no recipe %s", recipe)
				}
				if diff := want.compare(meta, tensors, opt); diff != "" {
					t.Errorf("model %s, options %q, recipe %s: %s", name, set, recipe, diff)
				}
				checked++
			}
		}
	}
	if checked < goldenResults {
		t.Errorf("checked %d results, want %d", checked, goldenResults)
	}
}

// goldenOptions reads an option set.
func goldenOptions(t *testing.T, set string) PlanOptions {
	t.Helper()
	var opt PlanOptions
	typ := func(s string) *gguf.Type {
		v, ok := gguf.ParseType(s)
		if !ok {
			t.Fatalf("option set %q: type %q", set, s)
		}
		return &v
	}
	for o := range strings.SplitSeq(set, "+") {
		key, arg, _ := strings.Cut(o, "=")
		switch key {
		case "":
		case "imatrix":
			opt.Importance = matrixOf(func(string) bool { return true })
		case "pure":
			opt.Pure = true
		case "leave":
			opt.LeaveOutputTensor = true
		case "out":
			opt.OutputTensorType = typ(arg)
		case "emb":
			opt.TokenEmbeddingType = typ(arg)
		case "tt":
			r, err := CompileTensorRule(arg)
			if err != nil {
				t.Fatal(err)
			}
			opt.TensorTypes = append(opt.TensorTypes, r)
		default:
			t.Fatalf("option set %q: unknown option %q", set, o)
		}
	}
	return opt
}

// compare plans and returns how the outcome differs from want, "" if not.
func (want goldenResult) compare(meta gguf.Metadata, tensors []model.Tensor, opt PlanOptions) string {
	got, err := Plan(meta, tensors, opt)
	if want.Error != "" {
		if un := (*UnsupportedError)(nil); !errors.As(err, &un) {
			return fmt.Sprintf("error %v, want an UnsupportedError", err)
		}
		return ""
	}
	refused := (*RefusedError)(nil)
	if err != nil && !errors.As(err, &refused) {
		return err.Error()
	}
	if (refused != nil) != (want.Needs != 0) {
		return fmt.Sprintf("error %v, want one: %v", err, want.Needs != 0)
	}
	if len(got.Decisions) != len(tensors) {
		return fmt.Sprintf("%d decisions for %d tensors", len(got.Decisions), len(tensors))
	}
	var diff []string
	for _, d := range got.Decisions {
		w := want.typeOf(d.Name)
		if g := strings.ToLower(d.To.String()); g != w {
			diff = append(diff, fmt.Sprintf("%s: got %s, want %s (%v)", d.Name, g, w, d.Reason))
		}
	}
	if n := len(diff); n > 5 {
		diff = append(diff[:5], fmt.Sprintf("%d in all", n))
	}
	return strings.Join(diff, "; ")
}

// typeOf looks a tensor up in the folded result.
func (want goldenResult) typeOf(name string) string {
	pre, rest, ok := strings.Cut(name, "blk.")
	num, tail, ok2 := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(num)
	if !ok || !ok2 || err != nil {
		return want.T[name]
	}
	runs := want.T[pre+"blk.*."+tail]
	if !strings.Contains(runs, ":") {
		return runs
	}
	for run := range strings.SplitSeq(runs, ";") {
		typ, layers, _ := strings.Cut(run, ":")
		for l := range strings.SplitSeq(layers, ",") {
			first, last, isRange := strings.Cut(l, "-")
			if !isRange {
				last = first
			}
			a, _ := strconv.Atoi(first)
			b, _ := strconv.Atoi(last)
			if a <= layer && layer <= b {
				return typ
			}
		}
	}
	return "nothing"
}

func TestLookupRecipe(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Q4_K_M", "Q4_K_M"}, {"q4_k_m", "Q4_K_M"}, {"15", "Q4_K_M"}, {"q4_k", "Q4_K_M"}, {"Q3_K", "Q3_K_M"},
		{"Q5_K", "Q5_K_M"}, {"0", "F32"}, {"copy", "COPY"}, {"mxfp4_moe", "MXFP4_MOE"}, {"40", "Q1_0"},
		{"", ""}, {"-1", ""}, {"4", ""}, {"15abc", ""}, {"39", ""},
		{"38", "MXFP4_MOE"}, {"mxfp4", "MXFP4"}, {"NVFP4", "NVFP4"},
	} {
		r, ok := LookupRecipe(c.in)
		if ok != (c.want != "") || ok && r.Name != c.want {
			t.Errorf("%q: got %v %v, want %q", c.in, r, ok, c.want)
		}
	}
}

// Every name and number leads to one recipe, and every type in a rule can be
// converted to.
func TestRecipeTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Recipes() {
		keys := append([]string{r.Name}, r.Aliases...)
		if !r.Copy && !r.Own {
			keys = append(keys, fmt.Sprint(r.FileType))
		}
		for _, k := range keys {
			if seen[k] {
				t.Errorf("%s: %q names two recipes", r.Name, k)
			}
			seen[k] = true
		}
		if r.Desc == "" {
			t.Errorf("%s: no description", r.Name)
		}
		for _, rule := range append(r.rules.first, r.rules.amend...) {
			if !quants.Lookup(rule.to).CanQuantize() {
				t.Errorf("%s: rule to %v", r.Name, rule.to)
			}
		}
	}
}

// TestRecipeBPW checks the table's bits per weight.
func TestRecipeBPW(t *testing.T) {
	var meta gguf.Metadata
	meta.Set("general.architecture", gguf.String("llama"))
	meta.Set("llama.block_count", gguf.Uint32(32))
	meta.Set("llama.attention.head_count", gguf.Uint32(32))
	meta.Set("llama.attention.head_count_kv", gguf.Uint32(8))
	var tensors []model.Tensor
	add := func(name string, ne ...int64) {
		tensors = append(tensors, model.Tensor{Tensor: gguf.Tensor{Name: name + ".weight", NE: ne, Type: gguf.TypeF32}})
	}
	add("token_embd", 4096, 128256)
	add("output", 4096, 128256)
	add("output_norm", 4096)
	for i := range 32 {
		b := fmt.Sprintf("blk.%d.", i)
		add(b+"attn_norm", 4096)
		add(b+"attn_q", 4096, 4096)
		add(b+"attn_k", 4096, 1024)
		add(b+"attn_v", 4096, 1024)
		add(b+"attn_output", 4096, 4096)
		add(b+"ffn_norm", 4096)
		add(b+"ffn_up", 4096, 14336)
		add(b+"ffn_gate", 4096, 14336)
		add(b+"ffn_down", 14336, 4096)
	}
	for _, r := range Recipes() {
		if r.Copy {
			continue
		}
		opt := PlanOptions{Recipe: r}
		plan, err := Plan(meta, tensors, opt)
		if err != nil {
			opt.Importance = matrixOf(func(string) bool { return true })
			plan, err = Plan(meta, tensors, opt)
		}
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		var bits, weights float64
		for _, d := range plan.Decisions {
			n := 1.0
			for _, e := range tensors[d.Tensor].NE {
				n *= float64(e)
			}
			bits += n * d.To.BPW()
			weights += n
		}
		if got := math.Round(100*bits/weights) / 100; got != r.BPW {
			t.Errorf("%s: %.2f bits per weight, table says %.2f", r.Name, got, r.BPW)
		}
	}
}
