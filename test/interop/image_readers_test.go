package interop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/test/hftest"
)

// imageReaders is the folder inside the chroot where make image-readers has put ComfyUI-GGUF and diffusers.
var imageReaders = os.Getenv("IMAGE_READERS")

// reading is a file to be read by one of the programs, see oracle/imagereaders.py.
type reading struct {
	Reader  string   `json:"reader"`
	File    string   `json:"file"`
	Sources []string `json:"sources"`
	Drop    string   `json:"drop,omitempty"`
	Cut     string   `json:"cut,omitempty"`
	Orig    bool     `json:"orig,omitempty"`
	Dims5   bool     `json:"dims5,omitempty"`
	Spiece  string   `json:"spiece,omitempty"`
	Pad     int      `json:"pad"`
	EOS     int      `json:"eos"`
	Tokens  string   `json:"tokens,omitempty"`

	refused string // part of the error that the program is to give
}

// readResult is what a program read of a file.
type readResult struct {
	Tensors, Values int
	Types           map[string]int
	RMSE            map[string]float64
	Error           string
}

// errors lists the largest relative errors by type.
func (r readResult) errors() (s string) {
	for _, typ := range slices.Sorted(maps.Keys(r.RMSE)) {
		s += fmt.Sprintf(" %s %.3g", typ, r.RMSE[typ])
	}
	return s
}

// readBy has the programs read files, whose paths are outside of the chroot, and compares them with their sources.
func (o *oracle) readBy(t *testing.T, list []reading) {
	t.Helper()
	inside := func(path string) string { return strings.TrimPrefix(path, root) }
	for i := range list {
		r := &list[i]
		r.File, r.Spiece, r.Tokens = inside(r.File), inside(r.Spiece), inside(r.Tokens)
		r.Sources = slices.Clone(r.Sources)
		for k := range r.Sources {
			r.Sources[k] = inside(r.Sources[k])
		}
	}
	data, err := json.Marshal(list)
	must(t, err)
	must(t, os.WriteFile(root+work+"/readings.json", data, 0o666))
	o.script(t, "imagereaders.py", imageReaders, work+"/readings.json", work+"/found.json")
	data, err = os.ReadFile(root + work + "/found.json")
	must(t, err)
	var results []readResult
	must(t, json.Unmarshal(data, &results))
	if len(results) != len(list) {
		t.Fatalf("%d results for %d files", len(results), len(list))
	}
	for i, r := range results {
		want, name := list[i].refused, filepath.Base(list[i].File)+" by "+list[i].Reader
		switch {
		case want == "" && r.Error != "":
			t.Errorf("%s: %s", name, r.Error)
		case want != "" && !strings.Contains(r.Error, want):
			t.Errorf("%s: error %q, want %q", name, r.Error, want)
		case want != "":
			t.Logf("%s: refused: %s", name, r.Error)
		case r.Tensors == 0 || r.Values == 0:
			t.Errorf("%s: nothing compared", name)
		default:
			t.Logf("%s: %d tensors, %d values read: %v, errors%s", name, r.Tensors, r.Values, r.Types, r.errors())
		}
	}
}

// safetensorsIn returns the weights in a folder.
func safetensorsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.safetensors")
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("%s: no weights", dir)
	}
	return files
}

// umt5Encoder is UMT5 without decoder, whose layers all have position biases.
func umt5Encoder() *hftest.Spec {
	s := *hftest.Lookup("t5-encoder")
	s.Name = "umt5-encoder"
	s.Config = strings.NewReplacer(`"T5EncoderModel"`, `"UMT5EncoderModel"`, `"model_type": "t5"`,
		`"model_type": "umt5"`).Replace(s.Config)
	s.Tensors = strings.ReplaceAll(s.Tensors, "encoder.block.0.layer.0.SelfAttention.relative",
		"encoder.block.{bid}.layer.0.SelfAttention.relative")
	return &s
}

var textRows = regexp.MustCompile(`(?m)^\s*model\..*\n`)

// qwenVL is Qwen2.5-VL with both of its models.
func qwenVL() *hftest.Spec {
	s := *hftest.Lookup("mm_qwen2_5_vl")
	s.Name, s.Encoder = "Qwen2.5-VL-Tiny", false
	vision := strings.NewReplacer("{bid}", "{vid}", "bid =", "vid =").Replace(textRows.ReplaceAllString(s.Tensors, ""))
	s.Tensors = hftest.Lookup("qwen2").Tensors + vision
	return &s
}

// wide are settings with which rows hold whole superblocks, and with the numbers of heads that ComfyUI-GGUF assumes for
// all files of the architecture llama.
const wide = `{"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 32, "num_key_value_heads": 8,
	"head_dim": 8, "tie_word_embeddings": false}`

// TestReadersEncoders converts and quantizes text encoders of image models, and has ComfyUI-GGUF's own code read them:
// every tensor has the name, the shape and the values of the source. Two tokenizers are rebuilt from the files' keys.
func TestReadersEncoders(t *testing.T) {
	if imageReaders == "" {
		t.Skip("needs the readers of others: run make image-readers")
	}
	o := start(t)
	t5 := `{"d_model": 256, "d_ff": 512, "d_kv": 64}`
	for _, c := range []struct {
		name    string
		spec    *hftest.Spec
		set     string
		types   []string
		refused string
		change  func(r *reading, dir string)
		arch    string // replaces the file's architecture
	}{
		{name: "T5EncoderModel", spec: hftest.Lookup("t5-encoder"), set: t5, types: []string{"Q4_K_M", "Q8_0", "Q3_K_S"}},
		{name: "UMT5EncoderModel", spec: umt5Encoder(), set: t5, types: []string{"Q5_K_M", "Q8_0"},
			change: func(r *reading, dir string) { r.Spiece, r.Pad, r.EOS = dir+"/spiece.model", 0, 1 }},
		{name: "LlamaForCausalLM", spec: hftest.Lookup("llama-bpe"), set: wide, types: []string{"Q4_K_M", "Q8_0"}},
		{name: "MistralForCausalLM", spec: tekken(), set: wide, types: []string{"Q4_K_M"},
			change: func(r *reading, dir string) { r.Tokens = dir + "/tokenizer.json" }},
		{name: "Mistral3ForConditionalGeneration", spec: hftest.Lookup("mistral3"), types: []string{"Q8_0"},
			refused: "Unexpected text model architecture type in GGUF file: 'mistral3'"},
		{name: "Mistral3 as llama", spec: hftest.Lookup("mistral3"), arch: "llama", types: []string{"Q8_0"},
			set: `{"text_config": ` + strings.Replace(wide, `, "tie_word_embeddings": false`, "", 1) + `}`,
			change: func(r *reading, dir string) {
				r.Tokens, r.Cut, r.Drop = dir+"/tokenizer.json", `^language_model\.`, `^(vision_tower|multi_modal)`
			}},
		{name: "Qwen3ForCausalLM", spec: hftest.Lookup("qwen3"), set: `{"hidden_size": 256, "intermediate_size": 512}`,
			types: []string{"Q4_K_M", "Q8_0"}},
		{name: "Gemma2ForCausalLM", spec: hftest.Lookup("gemma2"), types: []string{"Q8_0"},
			refused: "Unexpected text model architecture type in GGUF file: 'gemma2'"},
		{name: "Gemma3ForCausalLM", spec: hftest.Lookup("gemma3"), types: []string{"Q8_0"},
			refused: "Unexpected text model architecture type in GGUF file: 'gemma3'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := root + work + "/encoders/" + strings.ReplaceAll(c.name, " ", "-")
			dir, err := c.spec.Write(folder, hftest.Variant{Seed: 5, DType: "BF16", Set: c.set})
			must(t, err)
			base := folder + "/model-F16.gguf"
			ours(t, "ggconv", append(pre(c.spec), "--outtype", "f16", dir, base)...)
			if c.arch != "" {
				ours(t, "ggtool", "meta", "--set", "general.architecture="+c.arch, "--output", folder+"/renamed-F16.gguf", base)
				base = folder + "/renamed-F16.gguf"
			}
			list := []reading{{File: base}}
			for _, typ := range c.types {
				file := strings.Replace(base, "F16", typ, 1)
				if c.arch != "" {
					ours(t, "ggquant", folder+"/model-F16.gguf", folder+"/other-"+typ+".gguf", typ)
					ours(t, "ggtool", "meta", "--set", "general.architecture="+c.arch, "--output", file, folder+"/other-"+typ+".gguf")
				} else {
					ours(t, "ggquant", base, file, typ)
				}
				list = append(list, reading{File: file})
			}
			for i := range list {
				r := &list[i]
				r.Reader, r.Sources, r.refused = "text", safetensorsIn(t, dir), c.refused
				if c.change != nil {
					c.change(r, dir)
				}
			}
			o.readBy(t, list)
		})
	}
	t.Run("Qwen2.5-VL with mmproj", func(t *testing.T) {
		// as a pipeline: the encoder in a folder, the tokenizer and the processor in others
		pipeline := root + work + "/encoders/pipeline"
		dir, err := qwenVL().Write(pipeline, hftest.Variant{Seed: 6, DType: "BF16"})
		must(t, err)
		must(t, os.WriteFile(pipeline+"/model_index.json", []byte(`{"_class_name": "QwenImageEditPipeline"}`), 0o666))
		for _, folder := range []string{"text_encoder", "tokenizer", "processor"} {
			must(t, os.MkdirAll(pipeline+"/"+folder, 0o777))
		}
		files, err := os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			to := "tokenizer"
			switch name := f.Name(); {
			case name == "config.json" || strings.HasSuffix(name, ".safetensors"):
				to = "text_encoder"
			case name == "preprocessor_config.json":
				to = "processor"
			}
			must(t, os.Rename(filepath.Join(dir, f.Name()), filepath.Join(pipeline, to, f.Name())))
		}
		folder := root + work + "/encoders/out"
		must(t, os.MkdirAll(folder, 0o777))
		const name = "Qwen2.5-VL-Tiny"
		ours(t, "ggconv", "--pre", "qwen2", "--outtype", "bf16", pipeline+"/text_encoder", folder+"/"+name+"-BF16.gguf")
		ours(t, "ggconv", "--mmproj", "--outtype", "f16", pipeline+"/text_encoder", folder+"/mmproj-"+name+"-F16.gguf")
		ours(t, "ggquant", folder+"/"+name+"-BF16.gguf", folder+"/"+name+"-Q4_K_M.gguf", "Q4_K_M")
		o.readBy(t, []reading{{Reader: "text", File: folder + "/" + name + "-Q4_K_M.gguf",
			Sources: safetensorsIn(t, pipeline+"/text_encoder")}})
	})
}

// pre returns the flags that name the pre-tokenizer of a made-up BPE vocabulary.
func pre(s *hftest.Spec) []string {
	switch s.Tokenizer {
	case "bpe:llama3":
		return []string{"--pre", "llama-bpe"}
	case "bpe:qwen2":
		return []string{"--pre", "qwen2"}
	}
	return nil
}

// tekken is Mistral's language model with a BPE vocabulary.
func tekken() *hftest.Spec {
	s := *hftest.Lookup("mistral")
	s.Name, s.Tokenizer = "mistral-bpe", "bpe:llama3"
	return &s
}

// diffusionCases are made-up image models, by the names that mkdiff.py gives them, and the types to quantize them to.
var diffusionCases = []struct {
	name  string
	drop  string // tensors that are not the diffusion model's
	cut   string // the prefix of its names, besides the usual ones
	dims5 bool   // has tensors of 5 dimensions
	orig  bool   // has tensors whose rows were changed: only ComfyUI-GGUF reads the keys with their shapes
}{
	{name: "flux-dev"}, {name: "flux-fp8"}, {name: "flux-mixed"}, {name: "flux2-dev"}, {name: "chroma"},
	{name: "sd35-medium"}, {name: "sd35-large"}, {name: "aura", cut: `^model\.`}, {name: "hidream"},
	{name: "cosmos", drop: `_extra_state|accum_`}, {name: "ltxv", drop: `^vae\.`}, {name: "hyvid", dims5: true},
	{name: "wan-t2v", dims5: true}, {name: "wan-i2v", dims5: true}, {name: "wan-vace", dims5: true},
	{name: "sd1-f32", orig: true}, {name: "sdxl-bf16", orig: true}, {name: "lumina2"}, {name: "z-image"},
	{name: "qwen-image"},
}

// TestReadersDiffusion converts and quantizes image models, and has gguf-py, ComfyUI-GGUF's own code and that of
// diffusers read them: every tensor has the name, the shape and the values of the source.
func TestReadersDiffusion(t *testing.T) {
	if imageReaders == "" {
		t.Skip("needs the readers of others: run make image-readers")
	}
	o := start(t)
	maker := filepath.Join(shared, "oracle", "mkdiff.py")
	data, err := os.ReadFile(maker)
	if err != nil {
		t.Skipf("%v: nothing compared", err)
	}
	must(t, os.WriteFile(root+work+"/oracle/mkdiff.py", data, 0o666))
	for _, c := range diffusionCases {
		t.Run(c.name, func(t *testing.T) {
			folder := "/diffusion/" + c.name
			must(t, os.MkdirAll(root+work+folder, 0o777))
			o.script(t, "mkdiff.py", "--case", c.name, work+folder)
			source := safetensorsIn(t, root+work+folder)
			out := root + work + folder + "/model.gguf" // no type in its name
			ours(t, "ggconv", source[0], out)
			files := []string{out}
			for _, typ := range []string{"Q4_K_M", "Q8_0", "Q2_K"} {
				files = append(files, strings.TrimSuffix(out, ".gguf")+"-"+typ+".gguf")
				ours(t, "ggquant", out, files[len(files)-1], typ)
			}
			var list []reading
			for _, file := range files {
				for _, reader := range []string{"gguf", "unet", "diffusers"} {
					list = append(list, reading{Reader: reader, File: file, Sources: source, Drop: c.drop,
						Cut: cmp.Or(c.cut, `^(model\.diffusion_model\.|net\.)`), Orig: c.orig, Dims5: c.dims5})
				}
			}
			if c.dims5 { // gguf-py has a limit of 4 since 2026-07
				list = append(list, reading{Reader: "unet", File: out, Sources: source,
					refused: "exceeds GGML_MAX_DIMS (4)"})
			}
			o.readBy(t, list)
			must(t, os.RemoveAll(root+work+folder))
		})
	}
}
