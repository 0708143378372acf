package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/table"
	"ggforge/test/hftest"
)

// neighbours are the families that a family must be found nearest to when it does not exist itself: by made-up model,
// the names of general.architecture.
var neighbours = map[string]string{
	"llama": "arcee deci nanbeige", "mistral": "mistral3 xverse deci", "mixtral": "minimax-m2 phimoe",
	"qwen2": "dream qwen2vl seed_oss", "qwen3": "maincoder qwen3vl", "qwen3_moe": "rnd1 mellum maple olmoe",
	"qwen2_moe": "qwen3moe qwen3next", "qwen3_next": "qwen35moe qwen2moe qwen35", "dots1": "glm4moe deepseek",
	"deepseek": "dots1 deepseek2", "deepseek_v2": "mistral4 deepseek32", "deepseek_v3": "deepseek32 mistral4",
	"deepseek-v3.2": "glm-dsa deepseek2", "seed_oss": "qwen2 dream", "exaone4": "olmo2", "olmo2": "exaone4",
	"gemma2": "gemma3", "gemma3": "gemma2 exaone4", "cohere": "cohere2", "cohere2": "command-r", "falcon": "bloom",
	"bloom": "falcon", "bamba": "falcon-h1", "falcon-h1": "granitehybrid", "granitemoe": "granite_swa",
	"granite": "llama", "internlm3": "xverse llama deci", "minicpm3": "deepseek2 plm", "plm": "deepseek2 minicpm3",
	"olmoe": "llada-moe qwen3moe", "grovemoe": "qwen3moe rnd1", "hunyuan": "hunyuan_vl", "codeshell": "starcoder",
	"gpt_bigcode": "codeshell jais", "starcoder2": "stablelm", "bailing_moe": "bailingmoe2", "rwkv6": "rwkv",
	"rwkv4": "rwkv6", "mamba2": "mamba nemotron_h nemotron_h_moe", "t5": "t5encoder", "mellum": "maple qwen3moe",
	"solar_open": "dots1 deepseek", "glm4_moe": "dots1 deepseek", "kimi_linear": "kimi-k3 deepseek2",
	"smollm3": "llama", "nemotron": "orion", "minimax_m2": "llama minimax-01",
}

// TestNearest looks for the nearest family of made-up models whose own family is left out.
func TestNearest(t *testing.T) {
	for name, want := range neighbours {
		spec, names := exampleOf(t, name)
		text, _, err := spec.Example(hftest.Variant{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := arch.Lookup(spec.Class())
		if err != nil {
			t.Fatal(err)
		}
		c, err := readCheckpoint("SomethingForCausalLM", text, names, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list, err := c.nearest([]string{a.Name, spec.Class()})
		if err != nil {
			t.Fatal(err)
		}
		if got := list[0].table.Name; !slices.Contains(strings.Fields(want), got) {
			t.Errorf("%s: nearest is %s (%s, %.2f), want one of %s", name, got, list[0].spec.Name, list[0].score, want)
		}
		for _, k := range list {
			if k.table.Name == a.Name {
				t.Fatalf("%s: %s is among its neighbours", name, k.spec.Name)
			}
		}
	}
}

// exampleOf returns a made-up model and the header of its safetensors file.
func exampleOf(t *testing.T, name string) (*hftest.Spec, []byte) {
	t.Helper()
	s := hftest.Lookup(name)
	if s == nil {
		t.Fatalf("no made-up model %s", name)
	}
	_, tensors, err := s.Example(s.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{}
	for _, x := range tensors {
		header[x.Name] = map[string]any{"dtype": "BF16", "shape": x.Shape}
	}
	data, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return s, data
}

// invented are models that nobody has published.
var invented = []struct {
	class, config, tensors string
	want                   []string // patterns of the family's file
	report                 []string // of the report
	converts               bool     // the made-up model becomes a file, and its graph has all tensors
}{
	{
		class: "OrbitForCausalLM",
		config: `{"architectures": ["OrbitForCausalLM"], "model_type": "orbit", "hidden_act": "silu", "hidden_size": 2048,
			"intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
			"num_hidden_layers": 12, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 500000.0,
			"vocab_size": 65536, "tie_word_embeddings": false, "sliding_window": 1024, "orbit_warp": 3, "layer_types": [
			"sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
			"full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
			"sliding_attention", "full_attention"]}`,
		tensors: `model.embed_tokens lm_head model.norm L{input_layernorm,post_attention_layernorm}
			L{self_attn.q_proj,self_attn.k_proj,self_attn.v_proj,self_attn.o_proj,self_attn.q_norm,self_attn.k_norm}
			L{mlp.gate_proj,mlp.up_proj,mlp.down_proj}`,
		want:     []string{`Name: +"orbit"`, `graph\.Sliding\{N: 3\}`, `parts\.QKNorm,`, `"sliding_window"`},
		report:   []string{`no row reads orbit_warp = 3`, `sliding or chunked window`},
		converts: true,
	},
	{
		class: "TidalForCausalLM",
		config: `{"architectures": ["TidalForCausalLM"], "model_type": "tidal", "hidden_act": "gelu_cubed",
			"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 8, "num_key_value_heads": 8,
			"num_hidden_layers": 6, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
			"vocab_size": 32000, "tidal_num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 512,
			"norm_topk_prob": true, "first_k_dense_replace": 2}`,
		tensors: `model.embed_tokens lm_head model.norm L{input_layernorm,post_attention_layernorm}
			L{self_attn.q_proj,self_attn.k_proj,self_attn.v_proj,self_attn.o_proj,self_attn.flux_meter}
			2L{tide.router,tide.experts.X.gate,tide.experts.X.up,tide.experts.X.down}
			-2L{mlp.gate_proj,mlp.up_proj,mlp.down_proj}`,
		want: []string{`Experts: +tidalExperts`, `"tidal_num_experts"`, `parts\.LlamaGraph`},
		report: []string{`activation "gelu_cubed" is unknown`,
			`no row maps model\.layers\.\{bid\}\.self_attn\.flux_meter`, `is a guess`},
	},
}

// expand returns the names of the tensors of an invented model: L is a layer, 2L a layer from 2 on, -2L one
// before it, X an expert.
func expand(text string, layers int) []byte {
	var b bytes.Buffer
	for item := range strings.FieldsSeq(text) {
		first, last := 0, layers
		before, inner, ok := strings.Cut(item, "L{")
		if !ok {
			fmt.Fprintln(&b, item+".weight")
			continue
		}
		switch before {
		case "2":
			first = 2
		case "-2":
			last = 2
		}
		for bid := first; bid < last; bid++ {
			for name := range strings.SplitSeq(strings.TrimSuffix(inner, "}"), ",") {
				n := 1
				if strings.Contains(name, ".X.") {
					n = 16
				}
				for x := range n {
					fmt.Fprintf(&b, "model.layers.%d.%s.weight\n", bid, strings.ReplaceAll(name, ".X.", fmt.Sprintf(".%d.", x)))
				}
			}
		}
	}
	return b.Bytes()
}

// renamed are made-up models of families that are left out, under another class. complete are those that need
// no hand:
// their files come out, and their graphs have all tensors and keys.
var renamed = []struct {
	spec     string
	complete bool
}{
	{"llama", true}, {"mistral", true}, {"qwen2", true}, {"qwen3", true}, {"qwen3_moe", true}, {"seed_oss", true},
	{"dots1", true}, {"exaone4", true}, {"olmo2", true}, {"olmoe", true}, {"internlm3", true}, {"mellum", true},
	{"granite", true}, {"deepseek_v2", true}, {"falcon", false}, {"gemma2", false}, {"cohere2", true},
	{"minicpm3", false}, {"qwen3_next", false}, {"smallthinker", true}, {"gpt_oss", false}, {"jamba", false},
}

// TestGenerate generates families, builds them together with the existing ones, and converts their made-up models.
// Graphs of all families are printed and compared with themselves there, too.
func TestGenerate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the converter")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	o := overlay{t: t, root: root, dir: t.TempDir(), replace: map[string]string{}}
	var families []string
	complete, left := map[string]bool{}, map[string]bool{}
	add := func(opt options, done bool) *result {
		opt.root = root
		r, err := generate(opt)
		if err != nil {
			t.Fatalf("%s: %v", opt.class, err)
		}
		for path, text := range r.files {
			for i, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(path, "arch/") && len(strings.ReplaceAll(line, "\t", "    ")) > 125 {
					t.Errorf("%s:%d is too long: %s", path, i+1, line)
				}
			}
			o.add(path, text)
		}
		families = append(families, r.family)
		left[r.family] = strings.Contains(strings.Join(r.open, "\n"), "no row maps")
		complete[r.family] = done
		return r
	}
	for _, m := range invented {
		var cfg struct {
			Layers int `json:"num_hidden_layers"`
		}
		if err := json.Unmarshal([]byte(m.config), &cfg); err != nil {
			t.Fatal(err)
		}
		r := add(options{class: m.class, config: []byte(m.config), tensors: expand(m.tensors, cfg.Layers)}, m.converts)
		file, report := r.files["arch/"+r.family+".go"], strings.Join(r.report(), "\n")
		for _, want := range m.want {
			if !regexp.MustCompile(want).MatchString(file) {
				t.Errorf("%s: no %s in\n%s", m.class, want, file)
			}
		}
		for _, want := range m.report {
			if !regexp.MustCompile(want).MatchString(report) {
				t.Errorf("%s: no %s in the report\n%s", m.class, want, report)
			}
		}
	}
	for _, m := range renamed {
		s, tensors := exampleOf(t, m.spec)
		text, _, err := s.Example(s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		a, err := arch.Lookup(s.Class())
		if err != nil {
			t.Fatal(err)
		}
		kind := "spm"
		if strings.HasPrefix(s.Tokenizer, "bpe:") {
			kind = "bpe"
		}
		add(options{class: "New" + s.Class(), vocabulary: kind, config: text, tensors: tensors, name: "new-" + m.spec,
			without: []string{a.Name, s.Class()}}, m.complete)
	}
	graphs := map[string]string{}
	for _, a := range arch.All() {
		for _, v := range slices.Concat([]*table.Arch{a}, a.Variants) {
			if v.Graph != nil {
				graphs[v.Name] = modelText(v.Graph)
			}
		}
	}
	o.add("test/newarch/built/main.go", fmt.Sprintf(built, literalOf(families), graphsOf(graphs)))
	seen := map[string]bool{}
	for line := range strings.Lines(o.run("./test/newarch/built")) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		seen[name] = true
		switch {
		case name == "graphs" && result != "":
			t.Errorf("graphs that are not what was printed: %s", result)
		case name != "graphs" && complete[name] && (result != "ok" || left[name]):
			t.Errorf("%s: %q, tensors without rows: %v", name, result, left[name])
		}
	}
	if len(seen) != len(families)+1 {
		t.Errorf("%d results, want %d", len(seen), len(families)+1)
	}
	if len(graphs) < 100 {
		t.Errorf("%d graphs", len(graphs))
	}
}

func literalOf(list []string) string { return fmt.Sprintf("%#v", list) }

func graphsOf(texts map[string]string) string {
	var b strings.Builder
	b.WriteString("map[string]*graph.Model{\n")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "%q: %s,\n", name, texts[name])
	}
	return b.String() + "}"
}

// overlay is a set of files that a build has instead of, or in addition to, those of the module.
type overlay struct {
	t         *testing.T
	root, dir string
	replace   map[string]string
}

func (o *overlay) add(path, text string) {
	o.t.Helper()
	file := filepath.Join(o.dir, strings.ReplaceAll(path, "/", "_"))
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		o.t.Fatal(err)
	}
	o.replace[filepath.Join(o.root, filepath.FromSlash(path))] = file
}

// run builds and runs a command and returns its output.
func (o *overlay) run(pkg string) string {
	o.t.Helper()
	data, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		o.t.Fatal(err)
	}
	list := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o666); err != nil {
		o.t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-overlay", list, pkg)
	cmd.Dir = o.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out)
}

// built is the source of a command that converts the made-up models of new families, and compares graphs. It writes a
// line for each family, and one that lists the graphs that differ.
const built = `package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"ggforge/arch"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/test/hftest"
	"ggforge/writer"
)

var _ = parts.NeoX
var _ = shape.Common

func main() {
	for _, name := range %s {
		if err := try(name); err != nil {
			fmt.Println(name, strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		fmt.Println(name, "ok")
	}
	fmt.Print("graphs")
	for name, m := range graphs {
		if !reflect.DeepEqual(m, arch.Graph(name)) {
			fmt.Print(" ", name)
		}
	}
	fmt.Println()
}

// try converts a made-up model and compares its tensors with those of its graph.
func try(name string) error {
	tmp, err := os.MkdirTemp("", "newarch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s := hftest.Lookup(name)
	v := s.All()[0]
	dir, err := s.Write(tmp, v)
	if err != nil {
		return err
	}
	typ, err := convert.ParseOutType(v.Out)
	if err != nil {
		return err
	}
	opt := convert.Options{Type: typ, Pre: s.PreTokenizer(), Reference: true}
	job, err := convert.Prepare(context.Background(), dir, opt)
	if err != nil {
		return err
	}
	defer job.Close()
	path := filepath.Join(tmp, "out.gguf")
	if _, err := job.Write(context.Background(), path, writer.Options{}); err != nil {
		return err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	file := graph.NewFile(f.Metadata, nil)
	for i := range f.Tensors {
		file.Tensors[f.Tensors[i].Name] = f.Tensors[i].NE
	}
	d, err := graph.Declare(arch.Graph(file.Arch), file)
	if err != nil {
		return err
	}
	for _, t := range d.Tensors() {
		ne, ok := file.Tensors[t.Name]
		if !ok && !t.May {
			return fmt.Errorf("the file lacks %%s", t.Name)
		}
		if ok && !t.Fits(ne) {
			return fmt.Errorf("%%s has the dimensions %%v, want %%v", t.Name, ne, t.NE)
		}
		delete(file.Tensors, t.Name)
	}
	for name := range file.Tensors {
		if name != "rope_freqs.weight" && name != "rope_factors_long.weight" && name != "rope_factors_short.weight" {
			return fmt.Errorf("the graph has no tensor %%s", name)
		}
	}
	return nil
}

var graphs = %s
`

// TestShared checks that every value of arch/parts/graph.go that graphs share has a name here.
func TestShared(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../arch/parts/graph.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range shared {
		known[s.name] = true
	}
	for _, s := range sharedModels {
		known[s.name] = true
	}
	for _, name := range sizes {
		known[name] = true
	}
	n := 0
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok == token.IMPORT {
			continue
		}
		for _, spec := range g.Specs {
			for _, id := range spec.(*ast.ValueSpec).Names {
				if n++; id.IsExported() && !known["parts."+id.Name] {
					t.Errorf("parts.%s has no row in shared", id.Name)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("%d values", n)
	}
}
