package quantize_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestWithoutConverter checks that a program which quantizes does not link the
// converter: it does not need the tables of architectures and tokenizers.
func TestWithoutConverter(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "ggforge/quantize").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, above := range []string{"ggforge/convert", "ggforge/arch", "ggforge/tokenizer",
			"ggforge/convert/export"} {
			if name == above || strings.HasPrefix(name, above+"/") {
				t.Errorf("quantize needs %s", name)
			}
		}
	}
}
