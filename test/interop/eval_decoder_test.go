package interop

import (
	_ "embed"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/eval/evaltest"
	"ggforge/model"
	"ggforge/test/hftest"
)

//go:embed decoder.py
var decoderPy []byte

//go:embed decoder_runtime.py
var decoderRuntimePy []byte

// decoderSpecs are the specs of encoder-decoders.
var decoderSpecs = strings.Fields("t5 t5-base umt5 mt5")

// split returns the chunks of tokens of a run.
func split(r eval.Run, tokens []int32) (list [][]int32) {
	for _, n := range r.Lengths {
		list, tokens = append(list, tokens[:n]), tokens[n:]
	}
	return list
}

// TestDecoder compares losses of encoder-decoders with those of transformers, which runs the same checkpoints in
// float64.
func TestDecoder(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/oracle/decoder.py", decoderPy, 0o666))
	must(t, os.WriteFile(root+work+"/oracle/decoder_runtime.py", decoderRuntimePy, 0o666))
	for _, name := range decoderSpecs {
		s := hftest.Lookup(name)
		for _, v := range s.All() {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				_, err := s.Write(root+work+"/specs/"+v.Name, v)
				must(t, err)
				dir, file := work+"/specs/"+v.Name+"/"+s.Name, work+"/f32.gguf"
				if strings.Contains(v.Set, "UMT5Model") {
					t.Skip("the class has no output matrix")
				}
				convertBy(t, root+dir, root+file, "f32", s.PreTokenizer(), s.Arguments(root+dir, v)...)
				m, err := model.Open(root + file)
				must(t, err)
				defer m.Close()
				e, err := eval.New(m)
				must(t, err)
				run := evaltest.Sources(e.Vocab())
				p, err := e.Perplexity(t.Context(), run)
				must(t, err)
				input := map[string]any{"model": dir, "sources": run.Sources, "inputs": split(run, run.Tokens),
					"next": split(run, run.Next)}
				sameLosses(t, "transformers", p, o.losses(t, "decoder.py", input), 1e-5)
				if v.Name == "plain" { // the runtime's activations have 16 bits in places
					input["model"] = file
					sameLosses(t, "the runtime", p, o.losses(t, "decoder_runtime.py", input), 2e-3)
				}
			})
		}
	}
}

// losses returns the losses that a script computes.
func (o *oracle) losses(t *testing.T, script string, input map[string]any) []float64 {
	t.Helper()
	data, err := json.Marshal(input)
	must(t, err)
	must(t, os.WriteFile(root+work+"/decoder.json", data, 0o666))
	o.script(t, script, work+"/decoder.json", work+"/losses.json")
	data, err = os.ReadFile(root + work + "/losses.json")
	must(t, err)
	var losses []float64
	must(t, json.Unmarshal(data, &losses))
	return losses
}

// sameLosses compares the losses of a perplexity with wanted ones, which may be off by a share.
func sameLosses(t *testing.T, by string, p *eval.Perplexity, want []float64, most float64) {
	t.Helper()
	if len(want) != len(p.Losses) {
		t.Fatalf("%d losses, %s has %d", len(p.Losses), by, len(want))
	}
	var worst, mean float64
	for i, w := range want {
		worst = max(worst, math.Abs(p.Losses[i]-w)/math.Abs(w))
		mean += w / float64(len(want))
	}
	ppl := math.Exp(mean)
	t.Logf("%s: perplexity %.10g, off by %.2g, losses by %.2g", by, ppl, math.Abs(p.Value/ppl-1), worst)
	if !(worst <= most) || p.Value != ppl && !(math.Abs(p.Value/ppl-1) <= most) {
		t.Errorf("perplexity %v, %s has %v; losses are off by up to %.3g", p.Value, by, ppl, worst)
	}
}
