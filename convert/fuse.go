package convert

import (
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/rows"
)

// The architectures whose files may hold fused tensors, by GGUF name: query, key
// and value in one (attn_qkv), and gate and up projections of experts in one
// (ffn_gate_up_exps). Source: the lists of tensors per architecture in gguf-py's
// constants.py.
var fusable = struct{ qkv, gateUp []string }{
	[]string{
		"afmoe", "apertus", "arcee", "arctic", "baichuan", "bailingmoe", "bailingmoe2", "bert", "bloom", "chameleon", "clef", "codeshell", "cogvlm",
		"cohere2", "command-r", "dbrx", "deci", "deepseek", "deepseek2-ocr", "dots1", "dream", "ernie4_5", "ernie4_5-moe", "eurobert", "exaone",
		"exaone-moe", "exaone4", "falcon", "falcon-h1", "gemma", "gemma-embedding", "gemma2", "gemma3", "gemma3n", "gemma4", "glm4moe", "gpt-oss", "gpt2",
		"gptj", "gptneox", "granite", "granitehybrid", "granitemoe", "graniteswitch", "grok", "grovemoe", "hunyuan-dense", "hunyuan-moe", "hunyuan_vl",
		"internlm2", "jais", "jais2", "jamba", "jina-bert-v2", "jina-bert-v3", "kimi-linear", "lfm2", "lfm2moe", "llada", "llada-moe", "llama",
		"llama-embed", "llama4", "maincoder", "maion-coder", "mimo2", "minicpm", "minimax-01", "minimax-m2", "mistral3", "modern-bert", "mpt",
		"muse-glimmer", "nemotron", "nemotron_h", "nemotron_h_moe", "neo-bert", "nomic-bert", "nomic-bert-moe", "olmo", "olmo2", "olmoe", "openelm",
		"orion", "paddleocr", "pangu-embedded", "phi2", "phi3", "phimoe", "plamo", "plamo2", "plamo3", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3",
		"qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl", "qwen3vlmoe", "qwen4exp", "refact", "rnd1", "seed_oss", "smallthinker", "smollm3",
		"spark2_5", "stablelm", "starcoder", "starcoder2", "step35", "xverse",
	},
	[]string{
		"cohere2moe", "deepseek2-ocr", "gemma4", "granite_swa", "mistral4", "qwen35moe", "qwen3next", "qwen4exp",
	},
}

// fusion is a set of tensors of a layer that become one, in this order.
type fusion struct {
	parts  []string // names in the layer
	to     string
	suffix string
	// join concatenates them along the dimension that counts rows.
	join func([]rows.Source) (rows.Source, error)
}

// fuse replaces the parts of the fusion in every layer that has all of them, n in
// number. The fused tensor stands where the last of its parts stood.
func (j *Job) fuse(f fusion) (n int, err error) {
	type found struct{ at []int }
	layers := map[string]*found{}
	for i, t := range j.Plan {
		rest, ok := strings.CutPrefix(t.Name, "blk.")
		bid, rest, _ := strings.Cut(rest, ".")
		part := slices.Index(f.parts, strings.TrimSuffix(rest, f.suffix))
		if !ok || part < 0 || !strings.HasSuffix(rest, f.suffix) {
			continue
		}
		if layers[bid] == nil {
			layers[bid] = &found{slices.Repeat([]int{-1}, len(f.parts))}
		}
		layers[bid].at[part] = i
	}
	gone := map[int]bool{}
	for bid, l := range layers {
		if slices.Contains(l.at, -1) {
			continue
		}
		var sources []rows.Source
		for _, i := range l.at {
			sources = append(sources, j.Plan[i].Source)
			gone[i] = true
		}
		last := slices.Max(l.at)
		delete(gone, last)
		src, err := f.join(sources)
		if err != nil {
			return 0, fault.Errorf(fault.Broken, "layer %s: %s do not fuse: %w", bid, strings.Join(f.parts, ", "), err)
		}
		t := &j.Plan[last]
		t.Name, t.Source = "blk."+bid+"."+f.to+f.suffix, src
		n++
	}
	i := -1
	j.Plan = slices.DeleteFunc(j.Plan, func(Tensor) bool { i++; return gone[i] })
	return n, nil
}

// fuseAll does what the options ask for.
func (j *Job) fuseAll(opt Options) error {
	if opt.FuseGateUp {
		n, err := j.fuse(fusion{[]string{"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps", ".weight", rows.ConcatRows})
		switch {
		case err != nil:
			return err
		case n == 0:
			j.warnf("no layer has gate and up projections of experts to fuse")
		case !slices.Contains(fusable.gateUp, j.Arch.Name):
			return fault.Errorf(fault.Unsupported, "files of architecture %s hold no fused gate and up projections of experts", j.Arch.Name)
		}
	}
	if !opt.FuseQKV {
		return nil
	}
	if !slices.Contains(fusable.qkv, j.Arch.Name) {
		j.warnf("query, key and value stay apart: files of architecture %s do not hold them fused", j.Arch.Name)
		return nil
	}
	for _, suffix := range []string{".weight", ".bias"} {
		n, err := j.fuse(fusion{[]string{"attn_q", "attn_k", "attn_v"}, "attn_qkv", suffix, rows.Concat})
		if err != nil {
			return err
		}
		if n == 0 && suffix == ".weight" {
			j.warnf("no layer has query, key and value weights to fuse")
		}
	}
	return nil
}
