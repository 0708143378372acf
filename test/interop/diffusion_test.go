package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// deliberately has the cases in which ggconv does not write what the field's converter writes, with the case whose file
// it is instead; "" for a file of its own.
var deliberately = map[string]string{
	"flux-scaled":       "flux-quant", // scales are applied
	"flux-scaled2":      "flux-quant",
	"flux-quant":        "flux-scaled",
	"qwen-scaled":       "",
	"wan-scaled2":       "",
	"flux-prefix-model": "flux-dev", // text encoders are left out
	"flux-prefix-dm":    "flux-dev", // another prefix
	"sd1-statedict":     "",         // the dict in another dict
	"no-flux-diffusers": "",         // names of the diffusers library, which become the original ones
	"dir-flux":          "no-flux-diffusers",
	"no-krea2":          "", // models that it does not know
	"no-ideogram4":      "",
	"no-minimax-h3":     "",
	"no-mochi":          "",
}

// TestDiffusion converts made-up image and video models and compares the sums of the files with those recorded of the
// field's converter, tensors of five dimensions put in by its tool for them. What that refuses is refused.
func TestDiffusion(t *testing.T) {
	o := start(t)
	const maker, recorded = "mkdiff.py", "diff_expected.json"
	text, err := os.ReadFile(filepath.Join(shared, "oracle", recorded))
	if err != nil {
		t.Skipf("no recorded sums: %v", err)
	}
	script, err := os.ReadFile(filepath.Join(shared, "oracle", maker))
	must(t, err)
	must(t, os.WriteFile(root+work+"/oracle/"+maker, script, 0o666))
	var found struct {
		Convert map[string]struct{ Out, Fixed, Error string }
	}
	must(t, json.Unmarshal(text, &found))
	dir := work + "/diffusion"
	must(t, os.MkdirAll(root+dir, 0o777))
	sums := map[string]string{}
	compared, refused := 0, 0
	for name, want := range found.Convert {
		o.script(t, maker, "--case", name, dir)
		inputs, err := filepath.Glob(root + dir + "/" + name + "*")
		must(t, err)
		if len(inputs) != 1 {
			t.Fatalf("%s: inputs %q", name, inputs)
		}
		out := filepath.Join(root+dir, "out.gguf")
		answer, err := exec.Command(filepath.Join(bin, "ggconv"), "--force", inputs[0], out).CombinedOutput()
		if err == nil {
			data, err := os.ReadFile(out)
			must(t, err)
			sum := sha256.Sum256(data)
			sums[name] = hex.EncodeToString(sum[:])
		}
		must(t, os.RemoveAll(inputs[0]))
		if _, ok := deliberately[name]; ok {
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, answer)
			}
			continue
		}
		size, sum := "", "" // SIZE SHA256 TYPES
		if fields := strings.Fields(want.Out); len(fields) > 1 {
			size, sum = fields[0], fields[1]
		}
		if fields := strings.Fields(want.Fixed); len(fields) > 1 {
			size, sum = fields[0], fields[1]
		}
		switch {
		case want.Error != "" && err == nil:
			t.Errorf("%s: converted; the reference: %s", name, want.Error)
		case want.Error != "":
			refused++
		case err != nil:
			t.Errorf("%s: %v\n%s", name, err, answer)
		case sums[name] != sum:
			t.Errorf("%s: %s, want %s of %s bytes", name, sums[name], sum, size)
		default:
			compared++
		}
	}
	for name, other := range deliberately {
		if other != "" && sums[name] != sums[other] {
			t.Errorf("%s: %s, want the file of %s, %s", name, sums[name], other, sums[other])
		}
	}
	t.Logf("%d files equal, %d refused by both", compared, refused)
	if compared < 70 || refused < 15 {
		t.Errorf("%d files compared, %d refused", compared, refused)
	}
}
