package interop

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/arch/config"
	archtable "ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/test/hftest"
)

// configs is a folder of published configurations: one folder for each model, with its config.json and any other small
// files.
var configs = os.Getenv("CONFIGS")

// TestPublishedConfigs gives published configurations small weights and converts them
// with both converters: whole files must be equal, but for what deviations lists. Vision
// and audio encoders (--mmproj) are converted, too.
func TestPublishedConfigs(t *testing.T) {
	if configs == "" {
		t.Skip("no published configurations: make configs CONFIGS=FOLDER")
	}
	o := start(t)
	entries, err := os.ReadDir(configs)
	must(t, err)
	for _, e := range entries {
		files, err := published(filepath.Join(configs, e.Name()))
		must(t, err)
		if files == nil {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			c, err := arch.ParseConfig(files[config.ConfigFile])
			must(t, err)
			if _, err := arch.Lookup(c.Class); err != nil {
				deviate(t, c.Class, "both fail", err.Error())
				return
			}
			s, err := hftest.Published(e.Name(), files, false, likeText)
			must(t, err)
			o.published(t, s, c.Class)
		})
		c, err := arch.ParseEncoder("", files[config.ConfigFile])
		must(t, err)
		if _, err := arch.LookupEncoder(c.Class); err != nil {
			continue
		}
		t.Run(e.Name()+"/mmproj", func(t *testing.T) {
			s, err := hftest.Published(e.Name(), files, true, likeTower)
			if errors.Is(err, hftest.ErrNoPart) {
				t.Skip(err)
			}
			must(t, err)
			o.published(t, s, c.Class)
		})
	}
}

func likeText(class string) []string  { return tableOf(arch.Lookup(class)).Classes }
func likeTower(class string) []string { return tableOf(arch.LookupEncoder(class)).Classes }

// tableOf returns the table of a class, an empty one if there is none.
func tableOf(a *archtable.Arch, err error) *archtable.Arch {
	if err != nil {
		return &archtable.Arch{}
	}
	return a
}

// published reads the files of a folder; nil is a folder without config.json.
func published(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, config.ConfigFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// published converts the checkpoint of a spec.
func (o *oracle) published(t *testing.T, s *hftest.Spec, class string) {
	v := hftest.Variant{Name: "published", Seed: 1, DType: cmp.Or(s.DType, "BF16"), Out: "f16"}
	if s.Encoder {
		v.Flags = []string{"--mmproj"}
	}
	ref, refErr := o.tryConvert(t, s, v)
	dir, mine := root+work+"/specs/"+v.Name+"/"+s.Name, root+work+"/ours.gguf"
	defer os.RemoveAll(dir)
	argv := append(slices.Clone(v.Flags), "--force", "--progress", "none", "--outtype", v.Out, "--outfile", mine, dir)
	if pre := s.PreTokenizer(); pre != "" {
		argv = append(argv, "--pre", pre)
	}
	convert := func(argv ...string) error {
		text, err := exec.Command(filepath.Join(bin, "ggconv"), argv...).CombinedOutput()
		t.Logf("%s", text)
		if err != nil {
			return fmt.Errorf("ggconv: %w\n%s", err, text)
		}
		return nil
	}
	if err := convert(argv...); err != nil {
		if refErr == nil {
			t.Fatal(err)
		}
		deviate(t, class, "both fail", err.Error())
		return
	}
	if refErr != nil {
		deviate(t, class, "the reference fails", refErr.Error())
		return
	}
	lines := different(t, mine, root+ref)
	if lines == nil {
		t.Log("equal")
		return
	}
	must(t, convert(append(argv, "--compat", "reference")...))
	if exact := different(t, mine, root+ref); exact != nil {
		t.Errorf("not the reference's file with --compat reference:\n%s", strings.Join(exact, "\n"))
	}
	deviate(t, class, "deviates", lines...)
}

// different returns the differences of two files, nil if they are equal.
func different(t *testing.T, ours, reference string) []string {
	t.Helper()
	a, err := os.ReadFile(ours)
	must(t, err)
	b, err := os.ReadFile(reference)
	must(t, err)
	if string(a) == string(b) {
		return nil
	}
	x, err := gguf.Parse(ours, a)
	must(t, err)
	y, err := gguf.Parse(reference, b)
	must(t, err)
	lines, err := gguf.Diff(t.Context(), x.Set(), y.Set())
	must(t, err)
	if lines == nil {
		lines = []string{"the files"}
	}
	return lines
}

// deviations are the cases in which our result is not the reference's: the class, or * for any, and a part of the error
// of a converter, or of a line of the difference between the files.
var deviations = []struct{ class, part, why string }{
	{"*", "'PreTrainedConfig' object has no attribute 'max_position_embeddings'",
		"version 5 of transformers fails on RoPE settings of unknown model types"},
	{"*", `key "general.file_type": u32 1, u32 39`,
		"the reference calls a file NVFP4 by config.json, whatever its weights are"},
	{"DeepseekV4ForCausalLM", `has none of the keys ["routed_scaling_factor"]`,
		"the configuration is for other programs; the reference cannot read it either"},
	{"Llama4ForConditionalGeneration", "attn_post_norm", "runtimes expect the norm of its vision encoder as ln2"},
	{"Llama4ForConditionalGeneration", ".ln2.", "runtimes expect the norm of its vision encoder as ln2"},
	{"MiMoForCausalLM", "is not supported", "no class of the reference"},
	{"MiniMaxM2ForCausalLM", "Can not map tensor 'model.layers.0.block_sparse_moe.experts.0.w1.weight'",
		"the reference stacks experts in NVFP4 under three names only"},
	{"MiniMaxM3ForCausalLM", "is not supported", "no class of the reference"},
	{"MiniMaxM3SparseForCausalLM", ".weight_scale\n", "neither converter supports MXFP8"},
	{"Mistral3ForConditionalGeneration", "v.token_embd.img_break", "no runtime accepts a file without this tensor"},
	{"Mistral3ForConditionalGeneration", "offsets of ", "one tensor is added"},
	{"NemotronHForCausalLM", "Quant method is not yet supported: ''",
		"the reference takes the method from the producer, which hf_quant_config.json may lack"},
	{"NemotronHForCausalLM", "Can not map tensor 'mtp.layers.0.",
		"the reference cannot convert attention of the MTP layer in NVFP4"},
	{"Step3p7FlashForCausalLM", "is not supported", "no class of the reference"},
}

// deviate fails the test unless each line matches a row of deviations.
func deviate(t *testing.T, class, how string, lines ...string) {
	t.Helper()
	var reasons []string
	for _, line := range lines {
		i := slices.IndexFunc(deviations, func(d struct{ class, part, why string }) bool {
			return (d.class == class || d.class == "*") && strings.Contains(line, d.part)
		})
		if i < 0 {
			t.Errorf("%s of class %s: %s, and it is not listed", how, class, line)
			continue
		}
		reasons = append(reasons, deviations[i].why)
	}
	t.Logf("%s: %s", how, strings.Join(slices.Compact(reasons), "; "))
}
