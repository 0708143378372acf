package flagtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Quantization returns the rows of runs.TypeFlags; the options hold a
// quantize.Options as their field Quantize. also are flags that all of them need.
func Quantization(t *testing.T, also ...string) map[string]Row {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules.txt")
	if err := os.WriteFile(rules, []byte("attn_v=q8_0"), 0o666); err != nil {
		t.Fatal(err)
	}
	set := func(field, want string, args ...string) Row {
		return Row{Field: "Quantize." + field, Want: want, Args: append(args, also...)}
	}
	return map[string]Row{
		"allow-requantize":     set("AllowRequantize", "true", "--allow-requantize"),
		"leave-output-tensor":  set("LeaveOutputTensor", "true", "--leave-output-tensor"),
		"pure":                 set("Pure", "true", "--pure"),
		"imatrix":              set("Matrix", "im.dat", "--imatrix", "im.dat"),
		"include-weights":      set("IncludeWeights", "[a,b c]", "--include-weights", "a,b", "--include-weights", "c"),
		"exclude-weights":      set("ExcludeWeights", "[a]", "--exclude-weights", "a"),
		"output-tensor-type":   set("OutputTensorType", "Q8_0", "--output-tensor-type", "q8_0"),
		"token-embedding-type": set("TokenEmbeddingType", "Q8_0", "--token-embedding-type", "q8_0"),
		"tensor-type": set("TensorTypes", "[a=Q8_0 b=Q4_0]", "--tensor-type", "a=q8_0",
			"--tensor-type", "b=q4_0"),
		"tensor-type-file": set("TensorTypes", "[attn_v=Q8_0]", "--tensor-type-file", rules),
	}
}
