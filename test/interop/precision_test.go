package interop

import (
	"math"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/quants"
)

// TestPrecisions compares conversions of checkpoints in precisions that the reference refuses with the reference's
// conversions of the same checkpoints after the decoders of mksrc.py (NumPy and PyTorch): all weights must be equal.
func TestPrecisions(t *testing.T) {
	o := start(t)
	made := "" // arguments of the plain checkpoint in the work folder
	for _, args := range []string{
		"awq", "awq group=32", "awq layout=gemv group=32", "awq layout=gemv group=128",
		"bnb-nf4 storage=bfloat16", "bnb-nf4 storage=float32 double=0", "bnb-nf4 skip=down_proj",
		"bnb-int8 skip=self_attn",
		"bnb-nf4", "bnb-nf4 double=0", "bnb-nf4 blocksize=32", "bnb-fp4", "bnb-fp4 double=0 blocksize=128", "bnb-int8",
		"hqq", "hqq bits=8 axis=0", "hqq bits=3 compute=f16", "hqq bits=3 axis=0", "hqq bits=2 group=16 compute=f32",
		"hqq bits=1 axis=0 group=32", "hqq bits=4 axis=0 compute=f32",
		"gptq bits=3 group=32", "gptq bits=3 group=32 desc_act=1 v2=1 sym=0", "gptq no_g_idx=1",
		"gptq bits=8 group=32 no_g_idx=1 sym=0", "gptq bits=2 group=-1 no_g_idx=1",
		"ct-pack group=-1", "ct-pack group=32 actorder=1", "ct-pack bits=5 group=64 sym=0", "ct-pack bits=7 group=32",
		"ct-pack mixed=1", "ct-pack mixed=1 bits=8 group=32", "ct-pack skip=q_proj",
		"ct-float strategy=tensor", "ct-float static=1", "ct-mxfp4",
	} {
		t.Run(args, func(t *testing.T) {
			kind, opts, _ := strings.Cut(args, " ")
			plain, quantized, decoded := work+"/plain/llama", work+"/quantized/llama", work+"/decoded/llama"
			shape := []string{"llama", plain, "--dtype", "bf16"}
			if strings.Contains(opts, "bits=3") && kind == "gptq" { // 32 codes fill three words
				shape = append(shape, "--set", "hidden_size=192", "num_attention_heads=6", "num_key_value_heads=2",
					"intermediate_size=384")
			}
			if how := strings.Join(shape, " "); how != made {
				o.script(t, "mkhf.py", shape...)
				made = how
			}
			argv := []string{kind, plain, quantized}
			if opts != "" {
				argv = append(append(argv, "--opt"), strings.Fields(opts)...)
			}
			o.script(t, "mksrc.py", argv...)
			ref, mine := work+"/reference.gguf", work+"/ours.gguf"
			o.script(t, "mksrc.py", "--dequant", quantized, decoded)
			o.script(t, "refconvert.py", decoded, ref, "--outtype", "f32", "--quiet")
			ours(t, "ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", root+mine,
				root+quantized)
			equalWeights(t, root+mine, root+ref)
		})
	}
}

// equalWeights compares the values of two files, tensor by tensor; order and types may differ.
func equalWeights(t *testing.T, ours, reference string) {
	t.Helper()
	a, err := gguf.Open(ours)
	must(t, err)
	defer a.Close()
	b, err := gguf.Open(reference)
	must(t, err)
	defer b.Close()
	if len(a.Tensors) != len(b.Tensors) {
		t.Errorf("%d tensors, want %d", len(a.Tensors), len(b.Tensors))
	}
	for i := range b.Tensors {
		want := &b.Tensors[i]
		got := a.Tensor(want.Name)
		if got == nil {
			t.Errorf("no tensor %s", want.Name)
			continue
		}
		x, y := numbers(t, a, got), numbers(t, b, want)
		if len(x) != len(y) {
			t.Errorf("%s: %d numbers, want %d", want.Name, len(x), len(y))
			continue
		}
		for i := range x {
			// blocks of MXFP4 have no negative zero, although their codes have
			if math.Float32bits(x[i]) != math.Float32bits(y[i]) && !(got.Type == gguf.TypeMXFP4 && x[i] == y[i]) {
				t.Errorf("%s: element %d is %v, want %v", want.Name, i, x[i], y[i])
				break
			}
		}
	}
}

// numbers returns the elements of a tensor.
func numbers(t *testing.T, f *gguf.File, x *gguf.Tensor) []float32 {
	t.Helper()
	list := make([]float32, gguf.Rows(x.NE)*gguf.RowLen(x.NE))
	must(t, quants.Lookup(x.Type).Dequantize(list, f.Data(x)))
	return list
}
