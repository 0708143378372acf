package convert

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
	"ggforge/rows"
)

// layoutModel makes a checkpoint in a layout of diffusers, and the one with the original names: what is one below the
// other there is joined, and halves are swapped, byte by byte. Every matrix has rows of 24, and is small or large.
func layoutModel(l *diffusion.Layout, dtype func(shape []int64) safetensors.DType) (diffusers,
	original []safetensorstest.Tensor) {
	const blocks = 28 // LTX-Video is known by the block 27
	for i := range l.Rows {
		r := &l.Rows[i]
		numbers := []string{""}
		if strings.Contains(r.Name, "#") {
			numbers = numbers[:0]
			for _, b := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
				"16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27"} {
				if last := len(numbers) == blocks-1; r.In == diffusion.Every || r.In == diffusion.AllButLast && b != "27" ||
					r.In == diffusion.Last && b == "27" || r.In == diffusion.Some && !last && len(b) == 1 {
					numbers = append(numbers, b)
				}
			}
		}
		ends := []string{""}
		if strings.HasSuffix(r.Name, ".*") {
			ends = []string{".weight", ".bias"}
		}
		for _, number := range numbers {
			for _, end := range ends {
				name := func(s string) string {
					return strings.Replace(strings.TrimSuffix(s, ".*")+end, "#", number, 1)
				}
				var whole safetensorstest.Tensor
				for p, from := range r.From {
					shape := []int64{int64(6 + i%3*20), 24}
					if r.Uneven {
						shape[0] += 2 * int64(p)
					}
					switch {
					case end == ".bias" || strings.HasSuffix(r.Name, ".scale"):
						shape = shape[:1]
					case strings.Contains(r.Name, "patch_embedding"):
						shape = []int64{8, 2, 1, 2, 2}
					case strings.HasSuffix(r.Name, "modulation"):
						shape = []int64{1, 6, 40}
					}
					part := imageTensor(name(from), dtype(shape), shape...)
					diffusers = append(diffusers, part)
					if p == 0 {
						whole = part
						whole.Name, whole.Shape, whole.Data = name(r.Name), slices.Clone(shape), slices.Clone(part.Data)
					} else {
						whole.Shape[0] += shape[0]
						whole.Data = append(whole.Data, part.Data...)
					}
				}
				if half := len(whole.Data) / 2; r.Swapped {
					whole.Data = slices.Concat(whole.Data[half:], whole.Data[:half])
				}
				original = append(original, whole)
			}
		}
	}
	// as the safetensors library lays them out
	slices.SortFunc(original, func(a, b safetensorstest.Tensor) int {
		return cmp.Or(cmp.Compare(b.DType, a.DType), cmp.Compare(a.Name, b.Name))
	})
	return diffusers, original
}

func layoutOf(class string) *diffusion.Layout {
	list := diffusion.Layouts()
	return &list[slices.IndexFunc(list, func(l diffusion.Layout) bool { return slices.Contains(l.Classes, class) })]
}

// bf16Only and mixed are types of tensors by their shapes.
func bf16Only([]int64) safetensors.DType { return safetensors.BF16 }

func mixed(shape []int64) safetensors.DType {
	if len(shape) == 1 {
		return safetensors.F32
	}
	return safetensors.BF16
}

// writeFolder writes a folder of diffusers.
func writeFolder(t *testing.T, dir, class string, list []safetensorstest.Tensor) {
	t.Helper()
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = safetensorstest.Write(filepath.Join(dir, "diffusion_pytorch_model.safetensors"), list, nil)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"_class_name": "`+class+`"}`), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLayoutBytes converts checkpoints in all layouts, as a folder and as a single file: the file is that of the
// checkpoint with the original names.
func TestLayoutBytes(t *testing.T) {
	for _, l := range diffusion.Layouts() {
		for name, dtype := range map[string]func([]int64) safetensors.DType{
			"bf16": bf16Only, "mixed": mixed,
			"f16": func([]int64) safetensors.DType { return safetensors.F16 },
			"fp8": func([]int64) safetensors.DType { return safetensors.F8_E4M3 },
		} {
			if l.Refused != "" || name != "bf16" && name != "mixed" && !slices.Contains(l.Classes, "SD3Transformer2DModel") {
				continue
			}
			dir := t.TempDir()
			diffusers, original := layoutModel(&l, dtype)
			single, folder := filepath.Join(dir, "single.safetensors"), filepath.Join(dir, "folder")
			plain := filepath.Join(dir, "original.safetensors")
			writeFolder(t, folder, l.Classes[len(l.Classes)-1], diffusers)
			if err := errors.Join(safetensorstest.Write(plain, original, nil), safetensorstest.Write(single, diffusers,
				nil)); err != nil {
				t.Fatal(err)
			}
			job, out := writeImage(t, plain, Options{})
			want, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if job.Architecture() != l.Arch || len(job.Plan) != len(original) {
				t.Errorf("%v: %s, %d tensors", l.Classes, job.Architecture(), len(job.Plan))
			}
			for _, in := range []string{single, folder} {
				job, out := writeImage(t, in, Options{})
				if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%v %s: %s: another file (%v)", l.Classes, name, in, err)
				}
				for _, w := range job.Warnings {
					if !strings.Contains(w, "more than 4 dimensions") && !strings.Contains(w, "bytes") {
						t.Errorf("%v: %q", l.Classes, w)
					}
				}
			}
		}
	}
}

// TestLayoutScales joins parts of 8 bits, each of which has a scale of its own.
func TestLayoutScales(t *testing.T) {
	list, _ := layoutModel(layoutOf("FluxTransformer2DModel"), bf16Only)
	var parts []safetensorstest.Tensor
	for i := range list {
		name, ok := strings.CutPrefix(list[i].Name, "transformer_blocks.1.attn.")
		if ok && slices.Contains([]string{"to_q.weight", "to_k.weight", "to_v.weight"}, name) {
			x := &list[i]
			*x = imageTensor(x.Name, safetensors.F8_E4M3, x.Shape...)
			parts = append(parts, *x)
		}
	}
	for i, p := range parts {
		list = append(list, safetensorstest.Tensor{Name: p.Name + "_scale", DType: safetensors.F32, Shape: []int64{},
			Data: safetensorstest.F32(float32(i + 1))})
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensorstest.Write(path, list, nil); err != nil {
		t.Fatal(err)
	}
	job, err := Prepare(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	i := slices.IndexFunc(job.Plan, func(x Tensor) bool { return x.Name == "double_blocks.1.img_attn.qkv.weight" })
	if i < 0 || len(parts) != 3 {
		t.Fatalf("%d parts, at %d", len(parts), i)
	}
	ne := job.Plan[i].Source.NE()
	got, buf := make([]float32, ne[0]*ne[1]), []byte(nil)
	if err := rows.Decode(job.Plan[i].Source, got, &buf, 0, ne[1]); err != nil {
		t.Fatal(err)
	}
	for p, part := range parts {
		for k, c := range part.Data {
			e, m := int(c>>3&15), float64(c&7)
			want := math.Ldexp(m, -9)
			if e > 0 {
				want = math.Ldexp(8+m, e-10)
			}
			if c&0x80 != 0 {
				want = -want
			}
			if v := got[p*len(part.Data)+k]; float64(v) != want*float64(p+1) {
				t.Fatalf("part %d, element %d: %v, want %v", p, k, v, want*float64(p+1))
			}
		}
	}
}

// TestLayoutRefused has checkpoints in layouts of diffusers that are errors.
func TestLayoutRefused(t *testing.T) {
	const class, q = "FluxTransformer2DModel", "transformer_blocks.3.attn.to_q.weight"
	change := func(name string, f func(x *safetensorstest.Tensor)) []safetensorstest.Tensor {
		list, _ := layoutModel(layoutOf(class), bf16Only)
		i := slices.IndexFunc(list, func(x safetensorstest.Tensor) bool { return x.Name == name })
		f(&list[i])
		return list
	}
	as := func(d safetensors.DType, shape ...int64) func(x *safetensorstest.Tensor) {
		return func(x *safetensorstest.Tensor) {
			if shape == nil {
				shape = x.Shape
			}
			*x = imageTensor(x.Name, d, shape...)
		}
	}
	marks := func(class string) (list []safetensorstest.Tensor) {
		for _, n := range layoutOf(class).Marks {
			list = append(list, imageTensor(n, safetensors.BF16, 4, 8))
		}
		return list
	}
	for _, c := range []struct {
		list  []safetensorstest.Tensor
		class string
		kind  error
		part  string
	}{
		{change(q, as(safetensors.F16)), class, fault.Unsupported,
			`tensor "` + q + `" holds F16, "transformer_blocks.3.attn.to_k.weight" holds BF16: want the same`},
		{change(q, as(safetensors.BF16, 6, 23)), class, fault.Broken,
			`dimensions 23 x 6, "transformer_blocks.3.attn.to_k.weight"`},
		{change(q, as(safetensors.BF16, 7, 24)), class, fault.Broken, "they do not become one"},
		{change(q, as(safetensors.BF16, 0, 24)), class, fault.Broken, "they do not become one"},
		{change(q, as(safetensors.BF16)), class, nil, ""},
		{change("single_transformer_blocks.0.proj_mlp.weight", as(safetensors.BF16, 9, 24)), class, nil, ""},
		{change("norm_out.linear.weight", as(safetensors.BF16, 7, 24)), class, fault.Broken, "even number of rows"},
		{change("norm_out.linear.weight", as(safetensors.BF16)), class, nil, ""},
		{change("norm_out.linear.bias", func(x *safetensorstest.Tensor) { x.Shape = nil; x.Data = x.Data[:2] }), class,
			fault.Broken, "even number of rows"},
		{change(q, func(x *safetensorstest.Tensor) { x.Name = "transformer_blocks.3.attn.to_x.weight" }), class,
			fault.Unsupported, "1 tensors that FluxTransformer2DModel of the diffusers library does not have"},
		{change("transformer_blocks.27.norm1.linear.weight", func(x *safetensorstest.Tensor) {
			x.Name = "transformer_blocks.28.norm1.linear.weight"
		}), class, fault.Broken, `"transformer_blocks.28.attn.to_q.weight" is missing`},
		{change(q, as(safetensors.BF16)), "FluxControlNetModel", fault.Unsupported,
			`_class_name is "FluxControlNetModel", but its tensors have the names of FluxTransformer2DModel`},
		{marks("LTX2VideoTransformer3DModel"), "LTX2VideoTransformer3DModel", fault.Unsupported, "connectors"},
		{marks("WanAnimateTransformer3DModel"), "WanAnimateTransformer3DModel", fault.Unsupported, "is not converted"},
	} {
		dir := t.TempDir()
		writeFolder(t, dir, c.class, c.list)
		job, err := Prepare(t.Context(), dir, Options{})
		if err == nil {
			job.Close()
		}
		if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%q: %v", c.part, err)
		}
	}
}

// TestLayoutSwap checks by numbers that the second half of the rows comes first.
func TestLayoutSwap(t *testing.T) {
	list, _ := layoutModel(layoutOf("FluxTransformer2DModel"), bf16Only)
	for i := range list {
		if x := &list[i]; x.Name == "norm_out.linear.bias" {
			x.DType, x.Shape, x.Data = safetensors.F32, []int64{4}, safetensorstest.F32(1, 2, 3, 4)
		}
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensorstest.Write(path, list, nil); err != nil {
		t.Fatal(err)
	}
	_, out := writeImage(t, path, Options{})
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(data, safetensorstest.F32(3, 4, 1, 2)); i < 0 || i%32 != 0 {
		t.Errorf("3, 4, 1, 2 at %d", i)
	}
}
