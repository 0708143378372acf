package arch

import (
	"strings"
	"testing"

	"ggforge/arch/graph"
)

// evaluated are the architectures that the evaluator can run.
const evaluated = `
	afmoe apertus arcee arwkv7 baichuan bailingmoe bailingmoe2 bert bloom chatglm codeshell cohere2 command-r dbrx deci
	deepseek deepseek2 deepseek2-ocr dots1 ernie4_5 ernie4_5-moe eurobert exaone exaone-moe exaone4 falcon falcon-h1 gemma
	gemma-embedding gemma2 gemma3 gemma4 glm4 glm4moe gpt-oss gpt2 gptneox granite granite_swa granitehybrid granitemoe
	hunyuan-dense hunyuan-moe hunyuan_vl internlm2 jais jais2 jamba jina-bert-v2 jina-bert-v3 kimi-linear lfm2 lfm2moe
	llama llama-embed llama4 maincoder mamba mamba2 mellum mimo2 minicpm minicpm3 minimax-m2 mistral3 mistral4 modern-bert
	mpt nemotron nemotron_h nemotron_h_moe neo-bert nomic-bert nomic-bert-moe olmo olmo2 olmoe openelm orion paddleocr
	pangu-embedded phi2 phi3 phimoe plamo plamo3 plm qwen qwen2 qwen2moe qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next
	qwen3vl qwen3vlmoe refact rwkv6 rwkv6qwen2 rwkv7 seed_oss smallthinker smollm3 stablelm starcoder starcoder2 t5
	t5encoder xverse`

// further are architectures with a graph that the evaluator cannot run yet.
const further = `
	arctic bailingmoe3 bitnet chameleon cogvlm cohere2moe deepseek32 deepseek4 dots3note dream gemma-embedding2 gemma3n glm-dsa glm5-next gptj grok grovemoe hrm_text hy_v3 hy_v4 k2-horizon kimi-k3 laguna llada
	graniteswitch llada-moe maple minimax-01 minimax-m3 muse-glimmer nanbeige plamo2 pockettts qwen3tts qwen4exp rnd1 spark2_5 step35 talkie`

// TestGraphs checks the graph of every table, that tables of one name do not contradict each other, and which
// architectures have one.
func TestGraphs(t *testing.T) {
	declared := map[string]*graph.Model{}
	for _, a := range every() {
		if a.Graph == nil {
			continue
		}
		if other := declared[a.Name]; other != nil && other != a.Graph {
			t.Errorf("%s: tables with different graphs", a.Name)
		}
		declared[a.Name] = a.Graph
	}
	for name, m := range declared {
		if Graph(name) != m {
			t.Errorf("%s: Graph does not find the graph of the table", name)
		}
		if err := graph.Check(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(strings.Fields(evaluated)); n != 111 {
		t.Errorf("%d architectures that can be evaluated, want 111", n)
	}
	names := strings.Fields(evaluated + further)
	for _, name := range names {
		if declared[name] == nil {
			t.Errorf("%s: no graph", name)
		}
	}
	if len(declared) != len(names) {
		t.Errorf("%d architectures with a graph, want %d", len(declared), len(names))
	}
	if Graph("clip") != nil || Graph("no such architecture") != nil {
		t.Error("a graph of an architecture without one")
	}
}
