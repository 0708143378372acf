package convert_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/rows"
	"ggforge/test/hftest"
)

// prepared plans the conversion of a changed spec.
func prepared(t *testing.T, name string, change func(s *hftest.Spec)) (*convert.Job, error) {
	t.Helper()
	s := *hftest.Lookup(name)
	change(&s)
	dir, err := s.Write(t.TempDir(), hftest.Variant{Name: "plain", Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := convert.Prepare(t.Context(), dir, convert.Options{Type: convert.F16, Pre: s.PreTokenizer()})
	if err == nil {
		t.Cleanup(func() { j.Close() })
	}
	return j, err
}

// warns fails the test unless one of the job's warnings has the text.
func warns(t *testing.T, j *convert.Job, text string) {
	t.Helper()
	if !slices.ContainsFunc(j.Warnings, func(w string) bool { return strings.Contains(w, text) }) {
		t.Errorf("warnings %q, want one with %q", j.Warnings, text)
	}
}

// TestLeftovers checks that leftover tensors of quantized weights are dropped, with a warning.
func TestLeftovers(t *testing.T) {
	j, err := prepared(t, "fp8-block", func(s *hftest.Spec) {
		s.Tensors += `
			model.layers.{bid}.self_attn.{k,v}_scale     | | as F32
			model.layers.{bid}.mlp.up_proj.input_scale   | | as F32
			`
	})
	if err != nil {
		t.Fatal(err)
	}
	warns(t, j, "6 tensors left out: scales of activations")
	_, err = prepared(t, "llama",
		func(s *hftest.Spec) { s.Tensors += "\nmodel.layers.{bid}.self_attn.k_scale | | as F32\n" })
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "model.layers.0.self_attn.k_scale") {
		t.Errorf("a scale in a checkpoint that is not quantized: %v", err)
	}
}

// TestZeroBiases checks that biases of quantized weights are left out if they are zero, and refused otherwise.
func TestZeroBiases(t *testing.T) {
	qwen := func(fill string) func(s *hftest.Spec) {
		return func(s *hftest.Spec) {
			s.Config = strings.NewReplacer("LlamaForCausalLM", "Qwen2ForCausalLM", `"model_type": "llama"`,
				`"model_type": "qwen2"`).Replace(s.Config)
			s.Tensors += `
				model.layers.{bid}.self_attn.q_proj.bias     | hidden_size
				model.layers.{bid}.self_attn.{k,v}_proj.bias | num_key_value_heads*hd
				model.layers.{bid}.self_attn.o_proj.bias     | hidden_size | fill zero
				model.layers.{bid}.mlp.up_proj.bias          | intermediate_size | fill ` + fill
		}
	}
	j, err := prepared(t, "gptq", qwen("zero"))
	if err != nil {
		t.Fatal(err)
	}
	warns(t, j, "4 tensors left out: biases of zero")
	if n := len(slices.DeleteFunc(slices.Clone(j.Plan),
		func(p convert.Tensor) bool { return !strings.HasSuffix(p.Name, ".bias") })); n != 6 {
		t.Errorf("%d biases, want 6", n)
	}
	if _, err := prepared(t, "gptq", qwen("bias")); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "model.layers.0.mlp.up_proj.bias") {
		t.Errorf("a bias that is not zero: %v", err)
	}
}

// TestCompressionConfig reads the settings under their old name, compression_config.
func TestCompressionConfig(t *testing.T) {
	values := func(name string) (list []float32) {
		j, err := prepared(t, "ct-pack", func(s *hftest.Spec) {
			s.Config, s.Tensors = strings.ReplaceAll(s.Config, "quantization_config", name),
				strings.ReplaceAll(s.Tensors, "quantization_config", name)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range j.Warnings {
			t.Errorf("%s: %s", name, w)
		}
		i := slices.IndexFunc(j.Plan, func(p convert.Tensor) bool { return p.Name == "blk.0.ffn_down.weight" })
		if err := rows.Each(j.Plan[i].Source, func(x []float32) { list = append(list, x...) }); err != nil {
			t.Fatal(err)
		}
		return list
	}
	if a, b := values("quantization_config"), values("compression_config"); len(a) == 0 || !slices.Equal(a, b) {
		t.Error("the name of the settings changes the weights")
	}
}

// TestContradictions refuses settings that the tensors contradict.
func TestContradictions(t *testing.T) {
	for _, c := range []struct{ spec, from, to, want string }{
		{"fp8-block", "[32, 48]", "[32, 64]", "want one, or one for each row of [96 64], or for each block of [32 64]"},
		{"fp8-block", `"weight_block_size": [32, 48]`, `"weight_block_size": "32x48"`, "weight_block_size"},
		{"gptq", `"bits": 4`, `"bits": 8`, "want 8 as quantization_config says"},
		{"nvfp4-mixed", `"model.layers.1.mlp"`, `"model.layers.2.mlp"`, `no tensor is of module "model.layers.2.mlp"`},
	} {
		_, err := prepared(t, c.spec, func(s *hftest.Spec) {
			// the tensors keep the sizes of the original settings
			s.Tensors = strings.NewReplacer("quantization_config.weight_block_size[0]", "32",
				"quantization_config.weight_block_size[1]", "48", "quantization_config.bits", "4").Replace(s.Tensors)
			s.Config = strings.Replace(s.Config, c.from, c.to, 1)
		})
		if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.spec, c.to, err, c.want)
		}
	}
}
