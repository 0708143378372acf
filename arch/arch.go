// Package arch has the model architectures: the Hugging Face classes of each, the metadata of its GGUF file with the
// source of each value, and the mapping of the checkpoint's tensors.
//
// An architecture is a table (see package table). Each family of models has one file here, whose private names no other
// file uses; package parts has the rows that several families share. To add an architecture, write a file with its
// table and add a line to registry. Logic that does not fit in a row becomes a named kind of row or a named transform
// that any architecture may use.
package arch

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/encoders"
	"ggforge/arch/graph"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/nearest"
)

//go:generate sh -c "cd .. && go run ./test/gen/archtable"

// registry lists the architectures; a class belongs to one of them.
var registry = []*table.Arch{
	llama, llamaEmbed, llamaInMultimodal,

	bertDecider, chameleon, cogVLM, graniteMoESWA, graniteSWA, graniteSwitch, hrmText, k2Horizon, maple, paddleOCR,
	qwen1, rnd1, spark2_5, talkie,

	arwkv7, bert, bloom, codeshell, distilbert, euroBert, falcon, falconH1, gpt2, gptj, gptneox, jamba, jinaBertV2,
	jinaBertV3, mamba, mamba2, modernBert, mpt,
	neoBert, nomicBert, nomicBertMoE, refact, roberta, ruGPT3XL, rwkv4, rwkv6, rwkv6qwen2, rwkv7, starcoder, starcoder2,
	t5, t5encoder, whisper, xlmRoberta,

	deepseek, deepseek2, embeddingGemma, gemma, gemma2, gemma3, glm4, glm4moe, gptOSS, granite, graniteHybrid,
	graniteMoE, llama4, mixtral, olmo, olmo2, olmoe,
	dots1, ernie4_5moe, grok1, grok2, hunyuanMoE, qwen2, qwen2moe, qwen2vl, qwen3, qwen3asr, qwen3moe, qwen3next,
	qwen3omni, qwen3tts, qwen3vl, qwen3vlmoe,
	deepseek2OCR, deepseek32, deepseek4, glm4MoELite, glmDSA, hyV4, bailingMoE3, bailingMoE3VL,

	qwen35, qwen35moe, qwen4exp, minicpmv46, minicpmv47, glm4v, glmOCR, solarOpen, exaone4_5, step35, eagle3, dflash,
	dspark, gemma4DSpark, v4DSpark, lilicorr, dots3note, museAssistant,

	clef, decision2, kev, lev, nimble, openJev, pplxDecider, vllmD3,

	laguna, bamba, glm5next, kimiK3, kimiLinear, mimo2, minimax01, minimaxM3, nemotronHMoE, nemotronHPuzzle,

	afmoe, apertus, arcee, arctic, bitnet, bailingMoE, bailingMoE2, dbrx, deci, groveMoE, jais, jais2, dream, llada,
	lladaMoE, maincoder, mellum, minimaxM2, mistral3, nanbeige, openELM, pangu, plm, seedOSS, smallThinker,
	baichuan, chatglm, cohere2, d1, d1Omni, sarvamMoE, commandR, ernie4_5, exaone, exaone4, glm, hunyuanDense, hyV3,
	internlm2, internlm3, lfm2, lfm2Audio, lfm2Embed, lfm2moe, minicpm, minicpm3, nemotron,
	orion, phi2, phi3, phimoe, plamo, plamo2, plamo3, smollm3, stablelm, xverse,

	cohere2MoE, embeddingGemma2, exaoneMoE, gemma3n, gemma4, gemma4Assistant, gemma4Unified, hunyuanVL, museGlimmer,
	pocketTTS, wavTokenizer,
}

// Lookup returns the architecture of a Hugging Face class. An unknown class
// gives an error of kind fault.Unsupported that names the nearest
// known ones.
func Lookup(class string) (*table.Arch, error) {
	for _, a := range registry {
		if slices.Contains(a.Classes, class) || slices.Contains(a.Body.Classes, class) {
			return a, nil
		}
	}
	if why, ok := classHints[class]; ok {
		return nil, fault.Errorf(fault.Unsupported, "architecture %q %s", class, why)
	}
	class = nearest.Compared(class) // limits the length, whatever the file has
	return nil, fault.Errorf(fault.Unsupported, "architecture %q is not supported; the nearest that are: %s",
		class, strings.Join(nearestClasses(class, Classes()), ", "))
}

// classHints has, for classes without a language model, a hint about the model to convert instead.
var classHints = map[string]string{
	"UltravoxModel": "has no language model of its own: convert the one that text_model_id in its config.json names",
}

// LoadConfig reads config.json. A missing or broken file gives an error of kind
// fault.Broken.
func LoadConfig(files config.Files) (*config.Config, error) { return LoadConfigAs("", files) }

// LoadConfigAs is LoadConfig with a class that overrides the file's; "" for the file's own.
func LoadConfigAs(class string, files config.Files) (*config.Config, error) {
	d, err := config.ReadDecision(files)
	switch {
	case err != nil:
		return nil, err
	case d != nil:
		return d.Parse(class, rawConfig)
	}
	data, err := config.ReadConfig(files, config.ConfigFile)
	if err != nil {
		return nil, err
	}
	return config.ParseAs(class, data, rawConfig)
}

// ParseConfig is LoadConfig for the file's bytes.
func ParseConfig(data []byte) (*config.Config, error) { return config.Parse(data, rawConfig) }

func rawConfig(class string) bool {
	a, err := Lookup(class)
	return err == nil && a.RawConfig
}

// For returns the table of a model: that of its class, or the variant for its config.
func For(c *config.View) (*table.Arch, error) {
	a := mistralFormat
	if c.File != config.ParamsFile {
		var err error
		if a, err = Lookup(c.Class); err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
	}
	if a.Variant == nil {
		return a, nil
	}
	other, err := a.Variant(c)
	if err == nil && other != nil {
		a = other
	}
	return a, err
}

// All returns the tables of all architectures, sorted by name.
func All() []*table.Arch {
	all := slices.Clone(registry)
	slices.SortStableFunc(all, func(a, b *table.Arch) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Classes returns all Hugging Face class names, sorted.
func Classes() []string {
	var all []string
	for _, a := range registry {
		all = append(append(all, a.Classes...), a.Body.Classes...)
	}
	slices.Sort(all)
	return all
}

// KeyType returns the type of a metadata key in files of an architecture: from gguf.StandardType, else from the
// architecture's table. elem is the type of the elements of an array.
func KeyType(architecture, key string) (typ, elem gguf.ValueType, ok bool) {
	if typ, elem, ok = gguf.StandardType(key); ok || architecture == "" {
		return typ, elem, ok
	}
	a, err := LookupGGUF(architecture)
	if err != nil {
		return 0, 0, false
	}
	for name, r := range a.Rows() {
		if name != key {
			continue
		}
		if typ, ok = r.ValueType(); ok {
			return typ, 0, true
		}
		// a Derive function has no declared type; the key has the same type in all architectures
		for _, other := range registry {
			for _, same := range other.Rows() {
				if typ, ok = same.ValueType(); ok && same.Key == r.Key {
					return typ, 0, typ != gguf.ArrayType
				}
			}
		}
	}
	return 0, 0, false
}

// Names returns the values of general.architecture in files of a class: its table's, and its variants' for some
// configurations. It is empty for an unknown class.
func Names(class string) []string {
	a, err := Lookup(class)
	if err != nil {
		return nil
	}
	return names(a)
}

// EncoderNames is Names for the class of a vision or audio encoder.
func EncoderNames(class string) []string {
	a, err := LookupEncoder(class)
	if err != nil {
		return nil
	}
	return names(a)
}

func names(a *table.Arch) []string {
	list := []string{a.Name}
	for _, other := range a.Variants {
		if !slices.Contains(list, other.Name) {
			list = append(list, other.Name)
		}
	}
	return list
}

// LookupGGUF returns the table for a general.architecture, for the conversion back to a checkpoint. An unknown one
// gives an error of kind fault.Unsupported that lists the known ones.
func LookupGGUF(name string) (*table.Arch, error) {
	var known []string
	for _, a := range registry {
		if !a.Invertible() {
			continue
		}
		if a.Name == name {
			return a, nil
		}
		known = append(known, a.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return nil, fault.Errorf(fault.Unsupported, "architecture %q is not supported here; supported are: %s", name,
		strings.Join(known, ", "))
}

// Graph returns what a file with that general.architecture computes; nil: nobody has declared it yet. Unlike LookupGGUF
// it also finds the tables of variants, and those that cannot be inverted.
func Graph(name string) *graph.Model {
	for _, a := range registry {
		if a.Name == name && a.Graph != nil {
			return a.Graph
		}
		for _, v := range a.Variants {
			if v.Name == name && v.Graph != nil {
				return v.Graph
			}
		}
	}
	return nil
}

// LookupEncoder is Lookup for the class of a vision or audio encoder.
func LookupEncoder(class string) (*table.Arch, error) {
	for _, a := range encoders.All() {
		if slices.Contains(a.Classes, class) {
			return a, nil
		}
	}
	class = nearest.Compared(class)
	return nil, fault.Errorf(fault.Unsupported,
		"no vision or audio encoder is supported for class %q; the closest supported classes: %s",
		class, strings.Join(nearestClasses(class, EncoderClasses()), ", "))
}

// LoadDecision is LoadConfigAs, or LoadEncoder, for an adapter that turns its base model into a decision model.
func LoadDecision(class string, d *config.Decision, encoder bool) (*config.Config, error) {
	if encoder {
		return d.ParseEncoder(class, encoderRawConfig)
	}
	return d.Parse(class, rawConfig)
}

// LoadEncoder is LoadConfigAs for a model's vision or audio encoder.
func LoadEncoder(class string, files config.Files) (*config.Config, error) {
	d, err := config.ReadDecision(files)
	switch {
	case err != nil:
		return nil, err
	case d != nil:
		return d.ParseEncoder(class, encoderRawConfig)
	}
	data, err := config.ReadConfig(files, config.ConfigFile)
	if err != nil {
		return nil, err
	}
	return ParseEncoder(class, data)
}

// ParseEncoder is LoadEncoder for the file's bytes.
func ParseEncoder(class string, data []byte) (*config.Config, error) {
	return config.ParseEncoder(class, data, encoderRawConfig)
}

func encoderRawConfig(class string) bool {
	a, err := LookupEncoder(class)
	return err == nil && a.RawConfig
}

// EncoderFor returns the table of a model's vision or audio encoder.
func EncoderFor(c *config.View) (*table.Arch, error) {
	a := encoders.MistralFormat
	if c.File != config.ParamsFile {
		var err error
		if a, err = LookupEncoder(c.Class); err != nil {
			return nil, err
		}
	}
	if a.Variant != nil {
		if other, err := a.Variant(c); err != nil || other != nil {
			return other, err
		}
	}
	return a, nil
}

// EncoderClasses returns the classes of models with a vision or audio encoder, sorted.
func EncoderClasses() []string {
	var all []string
	for _, a := range encoders.All() {
		all = append(all, a.Classes...)
	}
	slices.Sort(all)
	return all
}
