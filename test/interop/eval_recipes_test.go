package interop

import (
	"context"
	"os"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/model"
	"ggforge/tokenizer/vocab"
)

// evaluated are the recipes of TestEvaluateRecipes, some with flags of the quantizer after them.
var evaluated = []string{
	"F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0",
	"IQ4_NL", "IQ4_XS",
	"Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S", "IQ2_XS",
	"IQ2_XXS", "IQ1_M", "IQ1_S",
	"TQ2_0", "TQ1_0", "Q2_0", "Q1_0", "MXFP4_MOE --tensor-type .*=mxfp4", "MXFP4", "NVFP4",
	"Q8_0 --tensor-type .*=nvfp4",
}

// TestEvaluateRecipes compares the perplexity of the real model under each recipe with
// that of the real runtime, which gets the weights decoded to float32 by the reference's
// quantizer.
func TestEvaluateRecipes(t *testing.T) {
	o := start(t)
	const chunk, chunks = 512, 4
	f32, importance, text := o.calibrated(t)
	m, err := model.Open(root + f32)
	must(t, err)
	defer m.Close()
	tokens := chunksOf(t, m, text, chunk, chunks)
	for _, r := range evaluated {
		t.Run(r, func(t *testing.T) {
			file, decoded := work+"/evaluated.gguf", work+"/decoded.gguf"
			recipe, rest, _ := strings.Cut(r, " ")
			argv := append(strings.Fields(rest), "--force", "--progress", "none", "--imatrix", root+importance,
				root+f32, root+file, recipe)
			ours(t, "ggquant", argv...)
			os.Remove(root + decoded)
			o.tool(t, "llama-quantize", "--allow-requantize", file, decoded, "F32")
			m, err := model.Open(root + file)
			must(t, err)
			defer m.Close()
			e, err := eval.New(m)
			must(t, err)
			got, err := e.Perplexity(context.Background(), eval.Run{Tokens: tokens, Chunk: chunk, Workers: 2})
			must(t, err)
			samePerplexity(t, got, nil, decoded, text, chunk, chunks)
		})
	}
}

// calibrated makes a file of the real model in F32, its importance matrix by the
// reference, and a text: paths in the chroot.
func (o *oracle) calibrated(t *testing.T) (f32, importance, text string) {
	t.Helper()
	hf, text := gollama(t), evalText(t)
	f32, importance = work+"/gollama-f32.gguf", work+"/gollama.imatrix"
	ours(t, "ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", root+f32, root+hf)
	o.tool(t, "llama-imatrix", "-m", f32, "-f", text, "-o", importance, "-c", "512", "--chunks", "4", "-t", "2")
	return f32, importance, text
}

// chunksOf returns the tokens of whole chunks of a text, a path in the chroot, each with
// the token that begins a text.
func chunksOf(t *testing.T, m *model.Model, text string, chunk, chunks int) []int32 {
	t.Helper()
	v, err := vocab.New(m.Metadata)
	must(t, err)
	data, err := os.ReadFile(root + text)
	must(t, err)
	ids, err := v.Encode(string(data), vocab.Options{AddSpecial: true})
	must(t, err)
	if len(ids) < chunk*chunks {
		t.Fatalf("%d tokens, want %d", len(ids), chunk*chunks)
	}
	ids = ids[:chunk*chunks]
	if bos, ok := v.Bos(); ok && v.AddBos() {
		for i := 0; i < len(ids); i += chunk {
			ids[i] = bos
		}
	}
	return ids
}
