package quantize

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/diffusion"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/writer"
)

// imageGolden is testdata/image_golden.json.gz, see image_golden.py.
type imageGolden struct {
	Inputs map[string]struct {
		Keys    [][2]any
		Tensors [][]any
	}
	Results map[string]map[string]string
}

func readImageGolden(t *testing.T) (g imageGolden) {
	t.Helper()
	f, err := os.Open("testdata/image_golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

// bare is a Source without data.
type bare struct {
	ne  []int64
	typ gguf.Type
}

func (b *bare) NE() []int64                               { return b.ne }
func (b *bare) Type() gguf.Type                           { return b.typ }
func (b *bare) Cost() int64                               { return 0 }
func (b *bare) Raw(*[]byte, int64, int64) ([]byte, error) { return nil, errors.New("no data") }

// model returns an input without data.
func (g *imageGolden) model(t *testing.T, name string) *model.Model {
	t.Helper()
	in, ok := g.Inputs[name]
	if !ok {
		t.Fatalf("no input %s", name)
	}
	m := &model.Model{Path: name, Shards: 1}
	for _, kv := range in.Keys {
		switch v := kv[1].(type) {
		case string:
			m.Metadata.Set(kv[0].(string), gguf.String(v))
		case float64:
			m.Metadata.Set(kv[0].(string), gguf.Uint32(uint32(v)))
		case []any:
			var list []int32
			for _, n := range v {
				list = append(list, int32(n.(float64)))
			}
			m.Metadata.Set(kv[0].(string), gguf.Int32s(list))
		}
	}
	for _, x := range in.Tensors {
		src := &bare{typ: gguf.Type(x[1].(float64))}
		for _, n := range x[2:] {
			src.ne = append(src.ne, int64(n.(float64)))
		}
		m.Tensors = append(m.Tensors, model.New(x[0].(string), src))
	}
	return m
}

// imageBetter has what the reference fails to write and we write: the case, or case and recipe, and why.
var imageBetter = map[string]string{
	"hyimage":              "the reference reads the sixth of four dimensions",
	"flux-scaled":          "a dimension of 0",
	"qwen-scaled":          "a dimension of 0",
	"wan-animate Q4_0":     "rows of 20",
	"wan-animate Q8_0":     "rows of 20",
	"chroma-radiance Q4_0": "rows of 67",
	"chroma-radiance Q8_0": "rows of 67",
}

// TestImageGolden compares the size of every file, and the types of its tensors, with those that the patched
// llama-quantize gives. That the bytes are its own is compared in test/interop.
func TestImageGolden(t *testing.T) {
	g := readImageGolden(t)
	compared, better := 0, map[string]bool{}
	for name, results := range g.Results {
		m := g.model(t, name)
		for recipeName, want := range results {
			r, ok := LookupRecipe(recipeName)
			refused := strings.HasPrefix(want, "error: ")
			if !ok {
				if !refused {
					t.Errorf("no recipe %s", recipeName)
				}
				continue
			}
			b, err := PrepareBatch(t.Context(), m, []*Recipe{r}, Options{})
			where := name + " " + recipeName
			if strings.Contains(want, "has invalid data") {
				continue // found when the data are read
			}
			key := where
			if imageBetter[name] != "" {
				key = name
			}
			if refused && imageBetter[key] != "" {
				if better[key] = true; err != nil {
					t.Errorf("%s: %v", where, err)
				}
				continue
			}
			if refused != (err != nil) {
				t.Errorf("%s: got %v, want %s", where, err, want)
				continue
			}
			if err != nil {
				kind := fault.Unsupported
				if strings.Contains(want, "importance") && r.need != nil {
					kind = ErrRefused
				}
				if !errors.Is(err, kind) {
					t.Errorf("%s: %v", where, err)
				}
				continue
			}
			files, err := b.Jobs[0].Files("out.gguf")
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(files[0].Size(), typesOf(files[0])); got != want {
				t.Errorf("%s: %s, want %s", where, got, want)
			}
			compared++
		}
	}
	if compared < 550 || len(better) != len(imageBetter) {
		t.Errorf("%d files compared; written in spite of the reference: %v", compared, slices.Sorted(maps.Keys(better)))
	}
}

// typesOf returns the tensors by type: " F16:10 F32:48".
func typesOf(f *writer.File) (text string) {
	count := map[string]int{}
	for _, x := range f.Tensors {
		count[x.Type.String()]++
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		text += fmt.Sprintf(" %s:%d", name, count[name])
	}
	return text
}

// imageTensors are tensors of a made-up image model, of which every rule holds for some.
func imageTensors(arch string) *model.Model {
	m := &model.Model{Path: arch, Shards: 1, Metadata: gguf.Metadata{
		{Key: "general.architecture", Value: gguf.String(arch)},
		{Key: "general.quantization_version", Value: gguf.Uint32(2)},
		{Key: "general.file_type", Value: gguf.Uint32(1)},
		{Key: "comfy.gguf.orig_shape.x", Value: gguf.Int32s([]int32{1, 2})},
	}}
	add := func(name string, ne ...int64) {
		n := int64(1)
		for _, d := range ne {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(math.Sin(float64(i)*1.7+float64(len(name)))) * (1 + float32(i%7))
		}
		src := rows.Source(&bare{ne: ne, typ: gguf.TypeF32})
		if n > 0 && len(ne) > 0 {
			flat := rows.Float32s(x)
			src, _ = rows.Reshape(flat, ne)
		}
		m.Tensors = append(m.Tensors, model.New(name, src))
	}
	add("transformer_blocks.1.attn.to_v.weight", 256, 2)
	add("transformer_blocks.0.attn.to_v.weight", 256, 2)
	add("transformer_blocks.0.img_mlp.net.2.weight", 512, 2)
	add("transformer_blocks.2.attn.add_v_proj.weight", 256, 3)
	add("transformer_blocks.3.img_mlp.net.2.weight", 256, 2)
	add("transformer_blocks.3.attn.qkv.weight", 256, 2)
	add("transformer_blocks.4.attn.to_v.weight", 256, 2)
	add("transformer_blocks.5.attn.to_v.weight", 256, 2)
	add("transformer_blocks.59.attn.to_q.weight", 256, 2)
	add("transformer_blocks.6.attn.to_q.weight", 256, 2, 1)
	add("transformer_blocks.6.odd.weight", 96, 2)
	add("transformer_blocks.6.odder.weight", 20, 2)
	add("transformer_blocks.6.norm.weight", 256)
	add("transformer_blocks.6.attn_norm.weight", 256, 2)
	add("transformer_blocks.6.attn.to_q.bias", 256, 2)
	add("transformer_blocks.6.conv.weight", 256, 2, 2)
	add("img_in.weight", 256, 2)
	add("video.weight", 2, 2, 2, 2, 1)
	add("scale")
	add("empty", 0)
	add("empty.weight", 256, 0)
	add("x.modulation", 256, 6, 1)
	add("head.modulation", 256, 1)
	add("weights", 256, 2)
	return m
}

// TestImageTypes checks single rules: groups by name, the counter of value projections in the order of the file,
// fallbacks, tensors that stay, dimensions.
func TestImageTypes(t *testing.T) {
	for _, c := range []struct {
		arch, recipe string
		change       func(o *PlanOptions)
		want         map[string]string // of some tensors
	}{
		{"flux", "Q4_K_S", nil, map[string]string{
			"transformer_blocks.1.attn.to_v.weight": "Q5_K", "transformer_blocks.0.attn.to_v.weight": "Q5_K",
			"transformer_blocks.2.attn.add_v_proj.weight": "Q5_K", "transformer_blocks.4.attn.to_v.weight": "Q5_K",
			"transformer_blocks.5.attn.to_v.weight": "Q4_K", "transformer_blocks.3.img_mlp.net.2.weight": "Q5_K",
			"transformer_blocks.3.attn.qkv.weight": "Q4_K", "transformer_blocks.59.attn.to_q.weight": "Q4_K",
			"transformer_blocks.6.odd.weight": "F16", "transformer_blocks.6.odder.weight": "F16", "img_in.weight": "F32",
		}},
		{"qwen_image", "Q3_K_M", nil, map[string]string{
			"transformer_blocks.1.attn.to_v.weight": "Q5_K", "transformer_blocks.0.attn.to_v.weight": "Q4_K",
			"transformer_blocks.2.attn.add_v_proj.weight": "Q4_K", "transformer_blocks.59.attn.to_q.weight": "Q4_K",
			"transformer_blocks.6.attn.to_q.weight": "Q3_K", "transformer_blocks.3.attn.qkv.weight": "Q4_K",
			"transformer_blocks.0.img_mlp.net.2.weight": "Q4_K",
		}},
		{"qwen_image", "Q4_K_M", nil, map[string]string{
			"transformer_blocks.1.attn.to_v.weight": "Q6_K", "transformer_blocks.0.attn.to_v.weight": "Q5_K",
			"transformer_blocks.0.img_mlp.net.2.weight": "Q5_K", "transformer_blocks.3.img_mlp.net.2.weight": "Q6_K",
			"transformer_blocks.59.attn.to_q.weight": "Q5_K", "transformer_blocks.3.attn.qkv.weight": "Q5_K",
		}},
		{"wan", "Q4_0", nil, map[string]string{
			"transformer_blocks.0.img_mlp.net.2.weight": "Q4_1", "transformer_blocks.3.attn.qkv.weight": "Q4_0",
			"transformer_blocks.6.odd.weight": "Q4_0", "transformer_blocks.6.odder.weight": "F16", "img_in.weight": "Q4_0",
			"x.modulation": "F32 256 x 6 x 1", "head.modulation": "F32 256 x 1 x 1", "video.weight": "F32 2 x 2 x 2 x 2 x 1",
			"transformer_blocks.6.attn.to_q.weight": "Q4_0 256 x 2", "transformer_blocks.6.attn.to_q.bias": "F32",
			"transformer_blocks.6.norm.weight": "F32", "transformer_blocks.6.attn_norm.weight": "F32",
			"transformer_blocks.6.conv.weight": "F32", "scale": "F32 ", "empty": "F32 0", "empty.weight": "F32 256 x 0",
			"weights": "F32",
		}},
		{"flux", "Q4_K_M", func(o *PlanOptions) { o.Pure = true }, map[string]string{
			"transformer_blocks.0.attn.to_v.weight": "Q4_K", "transformer_blocks.3.attn.qkv.weight": "Q4_K"}},
		{"flux", "Q4_K_M", func(o *PlanOptions) { o.Pure, o.Reference = true, true }, map[string]string{
			"transformer_blocks.0.attn.to_v.weight": "Q6_K", "transformer_blocks.3.attn.qkv.weight": "Q5_K"}},
		{"flux", "Q4_K_M", func(o *PlanOptions) {
			r, _ := CompileTensorRule("to_v=q8_0")
			o.TensorTypes = []TensorTypeRule{r}
		}, map[string]string{
			"transformer_blocks.0.attn.to_v.weight": "Q8_0", "transformer_blocks.3.attn.qkv.weight": "Q5_K"}},
		{"flux", "COPY", nil, map[string]string{"transformer_blocks.6.attn.to_q.weight": "F32 256 x 2"}},
	} {
		m := imageTensors(c.arch)
		opt := PlanOptions{Recipe: recipe(t, c.recipe)}
		if c.change != nil {
			c.change(&opt)
		}
		p, err := Plan(m.Metadata, m.Tensors, opt)
		if err != nil {
			t.Errorf("%s, %s: %v", c.arch, c.recipe, err)
			continue
		}
		for i, d := range p.Decisions {
			if d.Name != m.Tensors[i].Name {
				t.Fatalf("%s: tensor %d is %s, the input's %s", c.arch, i, d.Name, m.Tensors[i].Name)
			}
			want, ok := c.want[d.Name]
			got := d.To.String()
			if strings.Contains(want, " ") {
				got += " " + gguf.Shape(d.NE)
			}
			if ok && got != want {
				t.Errorf("%s, %s: %s: %s, want %s", c.arch, c.recipe, d.Name, got, want)
			}
			delete(c.want, d.Name)
		}
		if len(c.want) > 0 {
			t.Errorf("%s, %s: no tensors %v", c.arch, c.recipe, c.want)
		}
	}
}

// TestImageRefused checks what is refused: recipes without rules, names of another layout, pruning.
func TestImageRefused(t *testing.T) {
	for _, c := range []struct {
		recipe, tensor string
		change         func(o *PlanOptions)
		kind           error
		text           string
	}{
		{"IQ4_XS", "", nil, fault.Unsupported,
			"recipe IQ4_XS has no rules for image and video models (flux): want one of Q4_0, "},
		{"IQ2_S", "", nil, fault.Unsupported, "has no rules"},
		{"MXFP4", "", nil, fault.Unsupported, "has no rules"},
		{"Q2_K_S", "", nil, ErrRefused, "needs an importance matrix"},
		{"Q4_0", "model.diffusion_model.double_blocks.0.img_mlp.0.weight", nil, fault.Unsupported,
			`the name holds "model.diffusion_model."`},
		{"Q4_0", "single_transformer_blocks.0.proj_mlp.weight", nil, fault.Unsupported,
			`the name holds "single_transformer_blocks."`},
		{"Q4_0", "", func(o *PlanOptions) { o.PruneLayers = []int64{0} }, fault.Unsupported, "cannot be pruned"},
	} {
		m := imageTensors("flux")
		if c.tensor != "" {
			m.Tensors = append(m.Tensors, model.New(c.tensor, &bare{[]int64{256, 2}, gguf.TypeF16}))
		}
		opt := PlanOptions{Recipe: recipe(t, c.recipe)}
		if c.change != nil {
			c.change(&opt)
		}
		_, err := Plan(m.Metadata, m.Tensors, opt)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s %s: got %v, want %q", c.recipe, c.tensor, err, c.text)
		}
	}
	// the same names in a language model are nobody's business
	m := imageTensors("llama")
	m.Metadata.Set("llama.block_count", gguf.Uint32(1))
	if _, err := Plan(m.Metadata, m.Tensors[:9], PlanOptions{Recipe: recipe(t, "IQ4_XS")}); err != nil {
		t.Error(err)
	}
}

// TestImageFile writes a model and compares keys, order and sums. The sums are those of the first version, of which
// whole files were compared with the reference's (test/interop).
func TestImageFile(t *testing.T) {
	sums := map[string]string{"flux Q4_K_M": "8fad6c24f5ed0023", "flux Q8_0": "83f93e159a8ffb23",
		"wan Q4_0": "3b48635a12089100", "wan F16": "5394b7f5d256c815", "qwen_image Q2_K": "67b1ccf0621cdf87"}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		arch, recipeName, _ := strings.Cut(name, " ")
		m := imageTensors(arch)
		m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool { return len(x.NE) == 0 })
		b, err := PrepareBatch(t.Context(), m, []*Recipe{recipe(t, recipeName)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.gguf")
		if _, err := b.Write(t.Context(), []string{out}, writer.Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		if got := fileSum(t, out)[:16]; got != sums[name] {
			t.Errorf("%s: sha256 %s, want %s", name, got, sums[name])
		}
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, kv := range f.Metadata {
			keys = append(keys, kv.Key)
		}
		if want := []string{"general.architecture", "general.quantization_version", "general.file_type",
			"comfy.gguf.orig_shape.x"}; !slices.Equal(keys, want) {
			t.Errorf("%s: keys %q, want %q", name, keys, want)
		}
		v, _ := f.Metadata.Get(gguf.KeyFileType)
		if n, _ := v.Int(); n != int64(recipe(t, recipeName).FileType) {
			t.Errorf("%s: file type %d", name, n)
		}
		if !slices.EqualFunc(f.Tensors, m.Tensors, func(a gguf.Tensor, b model.Tensor) bool { return a.Name == b.Name }) {
			t.Errorf("%s: another order", name)
		}
		f.Close()
	}
}

// TestImageTable checks that every row has a recipe, and that the rules use what the table of architectures has.
func TestImageTable(t *testing.T) {
	for name := range imageRules {
		if r, ok := LookupRecipe(name); !ok || r.Name != name {
			t.Errorf("no recipe %s", name)
		}
	}
	if n := len(ImageRecipes()); n != len(imageRules)+1 {
		t.Errorf("%d recipes", n)
	}
	edges := 0
	for _, m := range diffusion.All() {
		edges += cmp.Compare(len(m.Edges), 0)
	}
	if edges != 1 {
		t.Errorf("%d architectures with rules for the first and last block", edges)
	}
}

// imageDocRows returns the table of docs/image-recipes.md, made of the rules.
func imageDocRows() (lines []string) {
	for _, r := range ImageRecipes() {
		if r.Copy || r.Type.Kind() != gguf.KindQuant {
			continue
		}
		cell := func(role Role) string {
			var parts []string
			for _, x := range imageRules[r.Name].first {
				if x.roles&role == 0 {
					continue
				}
				text := x.to.String()
				for _, c := range x.when {
					text = c.text + " " + text
				}
				parts = append(parts, text)
				if len(x.when) == 0 {
					return strings.Join(parts, ", then ")
				}
			}
			return strings.Join(append(parts, r.Type.String()), ", then ")
		}
		last := "-"
		for _, x := range imageRules[r.Name].amend {
			last = x.to.String()
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %v | %s | %s | %s | %s |", r.Name, r.FileType, r.Type, cell(RoleV),
			cell(RoleQKV), cell(RoleDown), last))
	}
	for _, m := range diffusion.All() {
		var parts []string
		for _, k := range m.Keep {
			parts = append(parts, "`"+k+"`")
		}
		lines = append(lines, fmt.Sprintf("| %s | %s |", m.Name, strings.Join(parts, " ")))
	}
	return lines
}

// TestImageDoc compares the tables of docs/image-recipes.md with the rules.
func TestImageDoc(t *testing.T) {
	text, err := os.ReadFile("../docs/image-recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := imageDocRows()
	for _, line := range rows {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("docs/image-recipes.md: want the line\n%s", line)
		}
	}
	if n := strings.Count(string(text), "\n| "); n != len(rows)+9 { // with the heads and the groups
		t.Errorf("docs/image-recipes.md: %d lines of tables, want %d", n, len(rows)+9)
	}
	for _, r := range imageRoles {
		for _, x := range r.all {
			if !strings.Contains(string(text), "`"+x.text+"`") {
				t.Errorf("docs/image-recipes.md: %q is missing", x.text)
			}
		}
	}
}
