package convert

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/diffusion"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/gguf"
	"ggforge/test/filetest"
	"ggforge/writer"
)

// FuzzImage converts checkpoints of image models: a file that is written can be read, with the tensors of the plan.
func FuzzImage(f *testing.F) {
	small := func(name string, more ...safetensorstest.Tensor) {
		sets := diffusion.ByName(name).Sets
		for _, n := range sets[len(sets)-1] {
			more = append(more, imageTensor(n, safetensors.BF16, 2, 4))
		}
		f.Add(safetensorstest.Encode(more, nil))
	}
	small("wan", imageTensor("p.bias", safetensors.F32, 2), imageTensor("p.weight", safetensors.BF16, 2, 1, 1, 2, 2),
		imageTensor("s", safetensors.F64), imageTensor("e", safetensors.F16, 0))
	small("sd1", imageTensor("conv.weight", safetensors.F16, 8, 8, 4, 4), imageTensor("i", safetensors.I64, 3))
	small("cosmos", imageTensor("a_extra_state", safetensors.U8, 1), imageTensor("b", safetensors.BOOL, 2))
	small("flux", imageTensor("q.weight", safetensors.F8_E4M3, 2, 8), imageTensor("q.scale_weight", safetensors.F32),
		imageTensor("scaled_fp8", safetensors.F8_E4M3, 0), imageTensor("k.weight", safetensors.F8_E5M2, 2, 8),
		imageTensor("k.weight_scale", safetensors.F32, 1), safetensorstest.Tensor{Name: "k.comfy_quant",
			DType: safetensors.U8, Shape: []int64{25}, Data: []byte(`{"format":"float8_e5m2"} `)})
	text := func(layer, format string) safetensorstest.Tensor {
		return safetensorstest.Tensor{Name: layer + ".comfy_quant", DType: safetensors.U8, Shape: []int64{int64(len(format))},
			Data: []byte(format)}
	}
	small("flux", imageTensor("n.weight", safetensors.U8, 2, 8), imageTensor("n.weight_scale", safetensors.F8_E4M3, 128, 4),
		imageTensor("n.weight_scale_2", safetensors.F32), imageTensor("n.bias", safetensors.BF16, 1),
		text("n", `{"format":"nvfp4"}`), imageTensor("i.weight", safetensors.I8, 2, 16),
		imageTensor("i.weight_scale", safetensors.F32, 2, 1),
		text("i", `{"format":"int8_tensorwise","convrot":true,"convrot_groupsize":16}`))
	f.Add(safetensorstest.Encode(append([]safetensorstest.Tensor{imageTensor("m.weight", safetensors.F8_E4M3, 2, 32),
		imageTensor("m.weight_scale", safetensors.U8, 512)}, imageModel(diffusion.ByName("wan"), safetensors.BF16)...),
		map[string]string{marksKey: `{"layers": {"m": {"format": "mxfp8"}}}`}))
	f.Add(fewBlocks(layoutOf("FluxTransformer2DModel")))
	f.Add(fewBlocks(layoutOf("WanVACETransformer3DModel")))
	// All executions have the same file: making a new one takes longer than reading a checkpoint that is refused.
	dir := f.TempDir()
	in, err := os.Create(filepath.Join(dir, "in.safetensors"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { in.Close() })
	out := filepath.Join(dir, "out.gguf")
	f.Fuzz(func(t *testing.T, data []byte) {
		filetest.Refill(t, in, data)
		job, err := Prepare(t.Context(), in.Name(), Options{})
		if err != nil {
			return
		}
		defer job.Close()
		if most := int64(len(data))*8 + 1<<20; job.Size() > most {
			t.Fatalf("%d bytes from %d", job.Size(), len(data))
		}
		if _, err := job.Write(t.Context(), out, writer.Options{Workers: 1}); err != nil {
			return // numbers that are not finite
		}
		defer os.Remove(out)
		s, err := gguf.OpenSet(out)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if n := len(s.Files[0].Tensors); n != len(job.Plan) {
			t.Errorf("%d tensors, want %d", n, len(job.Plan))
		}
	})
}

// fewBlocks returns a checkpoint in a layout of the diffusers library with one block of each kind.
func fewBlocks(l *diffusion.Layout) []byte {
	list, _ := layoutModel(l, mixed)
	return safetensorstest.Encode(slices.DeleteFunc(list, func(x safetensorstest.Tensor) bool {
		_, rest, ok := strings.Cut(x.Name, "blocks.")
		return ok && !strings.HasPrefix(rest, "0.")
	}), nil)
}
