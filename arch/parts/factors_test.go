package parts

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"ggforge/arch/config"
)

//go:embed testdata/llama3.tsv
var llama3Golden string

// TestLlama3Golden compares the frequency factors with the reference's.
func TestLlama3Golden(t *testing.T) {
	cases := 0
	for line := range strings.Lines(llama3Golden) {
		f := strings.Fields(line)
		c, err := config.Parse(fmt.Appendf(nil, `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "head_dim": %s, "rope_theta": %s,
			"rope_scaling": {"rope_type": "llama3", "factor": %s, "low_freq_factor": %s, "high_freq_factor": %s, "original_max_position_embeddings": %s}}`,
			f[0], f[1], f[2], f[3], f[4], f[5]), nil)
		if err != nil {
			t.Fatal(err)
		}
		src, err := Llama3Factors(c.View(config.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := src.Raw(new([]byte), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		if got := hex.EncodeToString(sum[:16]); got != f[6] {
			t.Errorf("%s: sha256 %s", strings.TrimSpace(line), got)
		}
		cases++
	}
	if cases < 200 {
		t.Errorf("%d cases", cases)
	}
}
