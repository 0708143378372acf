package interop

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/test/hftest"
)

// golden makes TestArchGolden write the goldens of convert.
var golden = flag.String("golden", "",
	"write convert/testdata/arch/NAME.txt for the specs whose names match this `pattern`; \"new\" are those without one")

// archGoldens is the folder of the goldens, seen from this package.
const archGoldens = "../../convert/testdata/arch"

// TestArchGolden makes the checkpoints of package hftest and has the reference
// convert them: the goldens must equal its files.
func TestArchGolden(t *testing.T) {
	o := start(t)
	for _, s := range slices.Concat(hftest.Specs(), hftest.Encoders()) {
		path := filepath.Join(archGoldens, s.Name+".txt")
		_, err := os.Stat(path)
		if ok, _ := filepath.Match(*golden, s.Name); !ok && *golden != "" && (*golden != "new" || err == nil) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.NoReference != "" {
				t.Skip("no reference: " + s.NoReference)
			}
			var g hftest.Golden
			for _, v := range s.All() {
				must(t, g.Add(v, root+o.convertSpec(t, s, v)))
			}
			if *golden != "" {
				must(t, os.WriteFile(path, []byte(g.String()), 0o666))
				return
			}
			old, err := os.ReadFile(path)
			must(t, err)
			if byProcessor(s.Name, string(old)) != byProcessor(s.Name, g.String()) {
				t.Errorf("%s is not what the reference writes now", path)
			}
		})
	}
}

// byProcessor returns a golden without the sums that depend on the processor of PyTorch: Qwen 3 TTS has two linear layers
// applied to its text embedding, and the products of F16 matrices are up to one unit of F16 apart (docs/deviations.md).
func byProcessor(spec, golden string) string {
	if spec != "qwen3_tts" {
		return golden
	}
	lines, variant := strings.Split(golden, "\n"), ""
	for i, line := range lines {
		if strings.HasPrefix(line, "= ") {
			variant = line
		}
		if strings.HasPrefix(variant, "= f16 ") && (line == variant || strings.HasPrefix(line, "token_embd.")) {
			lines[i] = line[:strings.LastIndex(line, " ")]
		}
	}
	return strings.Join(lines, "\n")
}

// TestBareConfig converts checkpoints whose config.json has little more than the sizes: missing keys get the
// reference's defaults. ggconv may require a key that the reference requires, and may refuse a default that GGUF cannot
// express.
func TestBareConfig(t *testing.T) {
	o := start(t)
	for _, s := range hftest.Specs() {
		// raw config: neither converter fills in defaults
		if a, err := arch.Lookup(s.Class()); err != nil || s.NoReference != "" || a.Config.Raw {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Name == "nemotron_h" {
				// a checkpoint that transformers 5 saves lacks keys that equal the defaults of its class
				t.Skip("the reference reads config.json itself, without the defaults that ggconv fills in")
			}
			v, err := s.Bare()
			must(t, err)
			out, err := o.tryConvert(t, s, v)
			if err != nil {
				t.Skipf("the reference fails: %v", tail([]byte(err.Error())))
			}
			mine, dir := work+"/ours.gguf", root+work+"/specs/"+v.Name+"/"+s.Name
			flags := []string{"--compat", "reference"}
			if base := s.BaseDir(dir); base != "" {
				flags = append(flags, "--base", base)
			}
			if err := tryOurs(dir, root+mine, v.Out, s.PreTokenizer(), flags...); err != nil {
				t.Skipf("refused: %v", err)
			}
			same(t, root+mine, root+out)
		})
	}
}

// convertSpec makes the checkpoint of a variant, has the reference convert it and returns the file's path inside the
// chroot.
func (o *oracle) convertSpec(t *testing.T, s *hftest.Spec, v hftest.Variant) string {
	t.Helper()
	out, err := o.tryConvert(t, s, v)
	must(t, err)
	return out
}

// tryConvert is convertSpec for a variant on which the reference may fail.
func (o *oracle) tryConvert(t *testing.T, s *hftest.Spec, v hftest.Variant) (string, error) {
	t.Helper()
	folder := work + "/specs/" + v.Name
	must(t, os.RemoveAll(root+folder+"/"+s.Name))
	_, err := s.Write(root+folder, v)
	must(t, err)
	out := folder + "/" + s.Name + ".gguf"
	argv := []string{folder + "/" + s.Name, out, "--outtype", v.Out, "--quiet"}
	if pre := s.PreTokenizer(); pre != "" {
		argv = append(argv, "--pre-force", pre)
	}
	if s.RawConfig {
		argv = append(argv, "--raw-config")
	}
	argv = append(argv, s.OracleFlags...)
	if s.Base != nil {
		argv = append(argv, "--hub", s.Hub(folder+"/"+s.Name))
	}
	argv = append(append(argv, "--"), s.Arguments(folder+"/"+s.Name, v)...)
	if s.NoLazy {
		argv = append(argv, "--no-lazy")
	}
	os.Remove(root + out)
	return out, o.try(t, "refconvert.py", argv...)
}
