package interop

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/test/hftest"
)

// adapters are LoRA adapters: arguments of mkhf.py for the base model, options of
// mksrc.py's kind "lora", output types.
var adapters = []struct{ name, args, opts, types string }{
	{"llama", "llama", "r=8 alpha=16", "f32 f16 bf16 q8_0 auto"},
	{"llama-bin", "llama --seed 2", "bin=1 r=4 dtype=bf16", "f32 auto"},
	{"llama-wide", "llama", "r=32 dtype=f16", "q8_0 auto"},
	{"Tiny-Llama-3B-lora-v1.1", "mistral", "norm=1 card=1 layers=1", "f32"},
	{"embedding", "llama", "embed=1 alpha=5", "f32 f16"},
	{"ranks", "llama", "pattern=1", "f32"},
	{"alora", "llama", "alora=[3,4,5]", "f32"},
	{"qwen2", "qwen2", "", "f32"},
	{"qwen3", "qwen3", "dtype=bf16", "f16"},
	{"gemma2", "gemma2", "norm=1", "f32"},
	{"phi3", "phi3", "targets=qkv_proj,o_proj,gate_up_proj,down_proj", "f32"},
	{"starcoder2", "starcoder2", "targets=q_proj,k_proj,v_proj,o_proj,c_fc,c_proj", "f16"},
	{"mixtral", "mixtral", "targets=q_proj,k_proj,v_proj,o_proj", "f32"},
	{"mixtral-experts", "mixtral", "targets=q_proj,w1,w2,w3", "f32 f16"},
	{"qwen3-moe", "qwen3_moe", "", "f32 q8_0"},
	{"olmo2", "olmo2", "", "f32"},
	{"glm4", "glm4", "targets=q_proj,k_proj,v_proj,o_proj,gate_up_proj,down_proj", "f32"},
	{"cohere2", "cohere2", "", "f32"},
	{"lfm2", "lfm2", "targets=q_proj,k_proj,v_proj,out_proj,w1,w2,w3,in_proj", "f32"},
	{"falcon", "falcon", "targets=query_key_value,dense,dense_h_to_4h,dense_4h_to_h", "f32"},
	{"bloom", "bloom", "targets=query_key_value,dense,dense_h_to_4h,dense_4h_to_h", "f32"},
	{"internlm2", "internlm2", "targets=wqkv,wo,w1,w2,w3", "f32"},
	{"minicpm", "minicpm", "", "f32"},
	{"gpt2-as-the-reference", "gpt2", "targets=c_attn,c_proj,c_fc", "f32 f16"},
	{"rslora-as-the-reference", "llama", "rslora=1", "f32"},
	{"deepseek_v3", "deepseek_v3", "targets=q_a_proj,q_b_proj,kv_a_proj_with_mqa,o_proj", "f32"},
}

// TestAdapters converts adapters with reflora.py, which applies the rules of the reference's program to the classes of
// its converter, and with ggconv.
func TestAdapters(t *testing.T) {
	o := start(t)
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			base, adapter := work+"/plain/"+a.name, work+"/sources/"+a.name
			o.source(t, a.name, a.args, "lora", a.opts)
			for _, typ := range strings.Fields(a.types) {
				t.Run(typ, func(t *testing.T) {
					ref, mine := work+"/reference.gguf", work+"/ours.gguf"
					os.Remove(root + ref)
					refType := typ
					if typ == "auto" {
						refType = map[bool]string{true: "bf16", false: "f16"}[strings.Contains(a.opts, "dtype=bf16")]
					}
					argv := []string{adapter, base, ref, "--outtype", refType}
					if a.name == "falcon" { // transformers computes another number of heads from the tiny config
						argv = append(argv, "--raw-config")
					}
					o.script(t, "reflora.py", argv...)
					compat := []string{}
					if strings.HasSuffix(a.name, "-as-the-reference") {
						compat = []string{"--compat", "reference"}
					}
					ours(t, "ggconv", append(compat, "--force", "--progress", "none", "--outtype", typ, "--outfile",
						root+mine, "--base", root+base, root+adapter)...)
					same(t, root+mine, root+ref)
				})
			}
		})
	}
}

// loraGoldens is the folder of the goldens of adapters, seen from this package.
const loraGoldens = "../../convert/testdata/lora"

// adapted makes the first checkpoint of a spec and an adapter of all its linear layers
// but those of the weights without, and has reflora.py convert that. Paths are inside the
// chroot.
func (o *oracle) adapted(t *testing.T, s *hftest.Spec, without ...string) (base, adapter, ref string, err error) {
	t.Helper()
	folder := work + "/adapted"
	base, adapter, ref = folder+"/"+s.Name, work+"/adapter", work+"/reference.gguf"
	for _, dir := range []string{folder, adapter} {
		must(t, os.RemoveAll(root+dir))
	}
	os.Remove(root + ref)
	_, err = s.Write(root+folder, s.All()[0])
	must(t, err)
	n, err := hftest.WriteAdapter(root+adapter, root+base, without...)
	if err != nil || n == 0 {
		t.Skipf("%d linear layers: %v", n, err)
	}
	argv := []string{adapter, base, ref}
	if s.RawConfig {
		argv = append(argv, "--raw-config")
	}
	return base, adapter, ref, o.try(t, "reflora.py", argv...)
}

// refusedPairs matches the weights in ggconv's messages whose pairs it does not convert.
var refusedPairs = regexp.MustCompile(`(?m)^  (\S+\.weight)$|the pair of "([^"]+)"|"([^"]+)" becomes a part of`)

// digits matches layer numbers in the names of weights.
var digits = regexp.MustCompile(`\d+`)

// TestAdaptersOfAll makes pairs for every linear layer of every made-up checkpoint.
// Where the reference's classes can convert them, the file must be the same; where they
// cannot, ggconv may. Where neither can, as with layers of an encoder, both try again without the
// pairs that ggconv names. --compat reference repeats the reference's errors.
func TestAdaptersOfAll(t *testing.T) {
	o := start(t)
	equal, parts, refused := 0, 0, 0
	for _, s := range hftest.Specs() {
		if s.NoReference != "" || strings.Contains(s.Config, "quantization_config") ||
			s.Files["hf_quant_config.json"] != "" || s.Files["hadamard_packing.json"] != "" {
			// the reference writes the base model's weights or keys
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			var without []string
			for {
				base, adapter, ref, err := o.adapted(t, s, without...)
				mine := work + "/ours.gguf"
				argv := []string{"--force", "--progress", "none", "--compat", "reference", "--outfile", root + mine,
					"--base", root + base}
				if s.Target != "" {
					argv = append(argv, "--target-model-dir", filepath.Join(root+base, s.Target))
				}
				out, failed := exec.Command(filepath.Join(bin, "ggconv"),
					append(argv, root+adapter)...).CombinedOutput()
				switch {
				case err != nil && failed != nil:
					more := refusedOf(t, root+base, out)
					t.Logf("neither converts it: %s\n%s", tail([]byte(err.Error())), out)
					if slices.ContainsFunc(more, func(name string) bool { return !slices.Contains(without, name) }) {
						without = append(without, more...)
						continue
					}
					refused++
					t.Skip("no pairs to leave out")
				case err != nil:
					t.Skipf("the reference fails: %s", tail([]byte(err.Error())))
				case failed != nil:
					t.Errorf("the reference converts it, ggconv does not: %s", out)
				default:
					equal++
					if len(without) > 0 {
						parts++
					}
					same(t, root+mine, root+ref)
				}
				return
			}
		})
	}
	t.Logf("%d files, %d of them without some layers; %d refused by both", equal, parts, refused)
}

// refusedOf returns the weights of a checkpoint that ggconv's output names, those of the
// other layers included.
func refusedOf(t *testing.T, base string, out []byte) (names []string) {
	t.Helper()
	like := map[string]bool{}
	for _, m := range refusedPairs.FindAllStringSubmatch(string(out), -1) {
		like[digits.ReplaceAllString(cmp.Or(m[1], m[2], m[3]), "#")] = true
	}
	ck, err := safetensorstest.OpenDir(base)
	must(t, err)
	defer ck.Close()
	for _, w := range ck.Tensors() {
		if like[digits.ReplaceAllString(w.Name, "#")] {
			names = append(names, w.Name)
		}
	}
	return names
}

// TestAdapterGolden compares the goldens of adapters with the output of reflora.py, or with -golden writes them.
func TestAdapterGolden(t *testing.T) {
	o := start(t)
	for _, name := range hftest.Adapted {
		t.Run(name, func(t *testing.T) {
			_, _, ref, err := o.adapted(t, hftest.Lookup(name))
			must(t, err)
			var g hftest.Golden
			must(t, g.Add(hftest.Variant{Name: "adapter", Out: "f32"}, root+ref))
			path := filepath.Join(loraGoldens, name+".txt")
			if *golden != "" {
				must(t, os.WriteFile(path, []byte(g.String()), 0o666))
				return
			}
			old, err := os.ReadFile(path)
			must(t, err)
			if string(old) != g.String() {
				t.Errorf("%s is not what the reference writes now", path)
			}
		})
	}
}
