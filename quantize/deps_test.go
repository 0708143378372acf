package quantize_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestWithoutConverter checks that a program which quantizes does not link the
// converter: it does not need the tables of architectures and tokenizers, arch/diffusion excepted, which has the names
// of tensors for the rules of its files.
func TestWithoutConverter(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "ggforge/quantize").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		if name == "ggforge/arch/diffusion" {
			continue
		}
		for _, above := range []string{"ggforge/convert", "ggforge/arch", "ggforge/tokenizer",
			"ggforge/convert/export"} {
			if name == above || strings.HasPrefix(name, above+"/") {
				t.Errorf("quantize needs %s", name)
			}
		}
	}
}
