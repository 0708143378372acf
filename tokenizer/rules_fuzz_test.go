package tokenizer_test

import (
	"cmp"
	"errors"
	"flag"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"ggforge/tokenizer"
)

// fuzzClass feeds any bytes as one file of a directory to the tokenizers of the given classes: no
// panic, an error is one of this package, and what is accepted has a type for
// every token. While fuzzing, each input is tried with one class, chosen by its hash, so
// that more inputs are tried; inputs of the corpus are tried with all classes.
func fuzzClass(f *testing.F, dir string, file string, classes ...string) {
	base := make(fstest.MapFS)
	if dir != "" {
		entries, err := os.ReadDir("testdata/" + dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			if (file == tokenizer.SpieceFile || file == tokenizer.SPMBPEFile) && e.Name() != tokenizer.ConfigFile {
				continue // files with fuzz targets of their own, which take ten times as long to parse as the model
			}
			data, err := os.ReadFile("testdata/" + dir + "/" + e.Name())
			if err != nil {
				f.Fatal(err)
			}
			base[e.Name()] = &fstest.MapFile{Data: data}
		}
	}
	var seeds [][]byte
	for _, c := range classCases(f) {
		for _, class := range classes {
			if data, err := fs.ReadFile(c.Dir(f), file); c.HF == class && err == nil {
				seeds = append(seeds, data)
			}
		}
	}
	// The time of an execution grows with its input, and the large files differ from the small ones in their tokens
	// only.
	slices.SortFunc(seeds, func(a, b []byte) int { return cmp.Compare(len(a), len(b)) })
	for i, data := range seeds {
		if i < 2 || len(data) < 1<<12 {
			f.Add(data)
		}
	}
	worker := flag.Lookup("test.fuzzworker")
	fuzzing := worker != nil && worker.Value.String() == "true"
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := maps.Clone(base)
		fsys[file] = &fstest.MapFile{Data: data}
		tried := classes
		if i := crc32.ChecksumIEEE(data) % uint32(len(classes)); fuzzing {
			tried = classes[i : i+1]
		}
		for _, class := range tried {
			v, err := tokenizer.Load(fsys, tokenizer.Options{Rules: tableOf(t, class).Tokenizer, VocabSize: 600, Pre: "kimi-k2"})
			if err != nil {
				if !errors.Is(err, tokenizer.ErrBroken) && !errors.Is(err, tokenizer.ErrUnsupported) {
					t.Fatalf("%s: %v", class, err)
				}
				continue
			}
			if len(v.Tokens) != len(v.Types) || len(v.Scores) != 0 && len(v.Scores) != len(v.Tokens) {
				t.Fatalf("%s: %d tokens, %d types, %d scores", class, len(v.Tokens), len(v.Types), len(v.Scores))
			}
		}
	})
}

func FuzzRWKV(f *testing.F) { fuzzClass(f, "", tokenizer.RWKVFile, "Rwkv6ForCausalLM") }
func FuzzPlamo(f *testing.F) {
	fuzzClass(f, "small-plamo", tokenizer.PlamoFile, "Plamo2ForCausalLM", "Plamo3ForCausalLM")
}
func FuzzT5(f *testing.F) {
	fuzzClass(f, "small-t5", tokenizer.SpieceFile, "T5ForConditionalGeneration")
}
func FuzzXLMR(f *testing.F) { fuzzClass(f, "small-xlmr", tokenizer.SPMBPEFile, "XLMRobertaModel") }

// FuzzAdded feeds any bytes as the JSON files next to a model, to tokenizers
// that read more of them than Llama's.
func FuzzAdded(f *testing.F) {
	fuzzClass(f, "small-spm", tokenizer.ConfigFile, "Phi3ForCausalLM", "InternLM2ForCausalLM",
		"InternLM3ForCausalLM", "ArcticForCausalLM")
}

// FuzzJSONTokens is FuzzAdded for tokenizer.json.
func FuzzJSONTokens(f *testing.F) {
	fuzzClass(f, "small-spm", tokenizer.JSONFile, "Phi3ForCausalLM", "InternLM2ForCausalLM")
}

func FuzzBertVocab(f *testing.F) { fuzzClass(f, "", tokenizer.VocabTextFile, "BertModel") }
func FuzzBertJSON(f *testing.F) {
	fuzzClass(f, "small-bert", tokenizer.JSONFile, "BertModel", "NomicBertModel")
}
func FuzzXLMRJSON(f *testing.F) {
	fuzzClass(f, "", tokenizer.JSONFile, "XLMRobertaModel", "NomicBertModel", "XverseForCausalLM", "Gemma4ForCausalLM")
}
func FuzzTiktoken(f *testing.F) {
	fuzzClass(f, "", "tiktoken.model", "DeepseekV2ForCausalLM", "KimiLinearForCausalLM", "KimiK3ForConditionalGeneration")
}
func FuzzHunYuan(f *testing.F) {
	fuzzClass(f, "", "hy.tiktoken", "HunYuanMoEV1ForCausalLM", "HunYuanDenseV1ForCausalLM")
}
func FuzzQwen(f *testing.F) { fuzzClass(f, "", "qwen.tiktoken", "QWenLMHeadModel") }
func FuzzBPEConfig(f *testing.F) {
	fuzzClass(f, "small-bpe", tokenizer.ConfigFile, "Glm4MoeForCausalLM", "JinaBertModel",
		"LagunaForCausalLM", "ModernBertModel")
}

func FuzzTekken(f *testing.F) { fuzzClass(f, "", tokenizer.TekkenFile, "LlamaForCausalLM") }
