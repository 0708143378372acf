package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/internal/hftest"
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

// TestAdapters converts adapters with reflora.py, which states the rules of the
// reference's program on the classes of its converter, and with ggconv.
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
					if a.name == "falcon" { // transformers makes another number of heads of the tiny config
						argv = append(argv, "--raw-config")
					}
					o.script(t, "reflora.py", argv...)
					compat := []string{}
					if strings.HasSuffix(a.name, "-as-the-reference") {
						compat = []string{"--compat", "reference"}
					}
					ours(t, "ggconv", append(compat, "--force", "--progress", "none", "--outtype", typ, "--outfile", root+mine, "--base", root+base, root+adapter)...)
					same(t, root+mine, root+ref)
				})
			}
		})
	}
}

// loraGoldens is the folder of the goldens of adapters, seen from this package.
const loraGoldens = "../../convert/testdata/lora"

// adapted makes the first checkpoint of a spec and an adapter of all its linear layers,
// and has reflora.py convert that. Paths are inside the chroot.
func (o *oracle) adapted(t *testing.T, s *hftest.Spec) (base, adapter, ref string, err error) {
	t.Helper()
	folder := work + "/adapted"
	base, adapter, ref = folder+"/"+s.Name, work+"/adapter", work+"/reference.gguf"
	for _, dir := range []string{folder, adapter} {
		must(t, os.RemoveAll(root+dir))
	}
	os.Remove(root + ref)
	_, err = s.Write(root+folder, s.All()[0])
	must(t, err)
	n, err := hftest.WriteAdapter(root+adapter, root+base)
	if err != nil || n == 0 {
		t.Skipf("%d linear layers: %v", n, err)
	}
	argv := []string{adapter, base, ref}
	if s.RawConfig {
		argv = append(argv, "--raw-config")
	}
	return base, adapter, ref, o.try(t, "reflora.py", argv...)
}

// TestAdaptersOfAll makes pairs for every linear layer of every made-up checkpoint.
// Where the reference's classes can convert them, the file must be the same; where they
// cannot, ggconv may. --compat reference does what it does wrong.
func TestAdaptersOfAll(t *testing.T) {
	o := start(t)
	equal, refused := 0, 0
	for _, s := range hftest.Specs() {
		if s.NoReference != "" || strings.Contains(s.Config, "quantization_config") || s.Files["hf_quant_config.json"] != "" || s.Files["hadamard_packing.json"] != "" {
			// the reference writes the base model's weights or keys
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			base, adapter, ref, err := o.adapted(t, s)
			mine := work + "/ours.gguf"
			out, failed := exec.Command(filepath.Join(bin, "ggconv"), "--force", "--progress", "none", "--compat", "reference", "--outfile", root+mine, "--base", root+base, root+adapter).CombinedOutput()
			switch {
			case err != nil && failed != nil:
				refused++
				t.Skipf("neither converts it: %s\n%s", tail([]byte(err.Error())), out)
			case err != nil:
				t.Skipf("the reference fails: %s", tail([]byte(err.Error())))
			case failed != nil:
				t.Errorf("the reference converts it: %s", out)
			default:
				equal++
				same(t, root+mine, root+ref)
			}
		})
	}
	t.Logf("%d files, %d refused by both", equal, refused)
}

// TestAdapterGolden compares the goldens of adapters with what reflora.py writes, or
// with -golden writes them.
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
