package tokenizer

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
)

// fuzzClass feeds any bytes as one file of a directory of the given classes: no
// panic, an error is one of this package, and what is accepted has a type for
// every token. While fuzzing, each input is tried with one class, chosen by its hash, so
// that more inputs are tried; inputs of the corpus are tried with all classes.
func fuzzClass(f *testing.F, dir string, file string, classes ...Class) {
	base := make(fstest.MapFS)
	if dir != "" {
		entries, err := os.ReadDir("testdata/" + dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			if (file == spieceFile || file == spmBPEFile) && e.Name() != configFile {
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
			if data, err := fs.ReadFile(c.dir(f), file); c.Class == class && err == nil {
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
			v, err := Load(fsys, Options{Class: class, VocabSize: 600, Pre: kimiPre})
			if err != nil {
				if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) {
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

func FuzzRWKV(f *testing.F)  { fuzzClass(f, "", rwkvFile, ClassRWKV) }
func FuzzPlamo(f *testing.F) { fuzzClass(f, "small-plamo", plamoFile, ClassPlamo2, ClassPlamo3) }
func FuzzT5(f *testing.F)    { fuzzClass(f, "small-t5", spieceFile, ClassT5) }
func FuzzXLMR(f *testing.F)  { fuzzClass(f, "small-xlmr", spmBPEFile, ClassXLMRoberta) }

// FuzzAdded feeds any bytes as the JSON files next to a model, to the rule sets
// that read more of them than Llama's.
func FuzzAdded(f *testing.F) {
	fuzzClass(f, "small-spm", configFile, ClassPhi3, ClassInternLM2, ClassInternLM3, ClassArctic)
}

// FuzzJSONTokens is FuzzAdded for tokenizer.json.
func FuzzJSONTokens(f *testing.F) {
	fuzzClass(f, "small-spm", jsonFile, ClassPhi3, ClassInternLM2)
}

func FuzzBertVocab(f *testing.F) { fuzzClass(f, "", vocabTextFile, ClassBert) }
func FuzzBertJSON(f *testing.F)  { fuzzClass(f, "small-bert", jsonFile, ClassBert, ClassNomicBert) }
func FuzzXLMRJSON(f *testing.F) {
	fuzzClass(f, "", jsonFile, ClassXLMRoberta, ClassNomicBert, ClassXverse, ClassGemma4)
}
func FuzzTiktoken(f *testing.F) {
	fuzzClass(f, "", kimiFile, ClassDeepSeek2, ClassKimiLinear, ClassKimiK3)
}
func FuzzHunYuan(f *testing.F) { fuzzClass(f, "", hyFile, ClassHunYuanMoE, ClassHunYuan) }
func FuzzQwen(f *testing.F)    { fuzzClass(f, "", qwenFile, ClassQwen) }
func FuzzBPEConfig(f *testing.F) {
	fuzzClass(f, "small-bpe", configFile, ClassGLM, ClassJinaBertV2, ClassLaguna, ClassModernBert)
}

func FuzzTekken(f *testing.F) { fuzzClass(f, "", tekkenFile, ClassLlama) }
