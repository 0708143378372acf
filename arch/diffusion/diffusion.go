package diffusion

import (
	"slices"
	"strings"

	"ggforge/fault"
)

// Model is an architecture, as general.architecture names it. Its names are those of the diffusion model's own tensors,
// without a prefix.
type Model struct {
	Name string

	// Sets identify the architecture: a checkpoint has all names of one of them.
	Sets [][]string

	// More are sets of models that the reference does not know. They are looked for after the Sets of all rows.
	More [][]string

	// Banned are names that the diffusers library has for the same model, which loaders of GGUF files do not take: a
	// checkpoint with one of them is refused unless it has a [Layout].
	Banned []string

	// F32 are tensors that are F32 in the file if the checkpoint has them as float32 or bfloat16. Loaders use them
	// as parameters without a layer, for which they do not convert bfloat16.
	F32 Names

	// Ignored are tensors that are no weights, and are left out.
	Ignored Names

	// Reshape: tensors whose rows are no multiple of 256 get rows of 256, and a key with their shape.
	Reshape bool

	// FiveDims: tensors of 5 dimensions are part of the model. They are F32 in the file.
	FiveDims bool

	// Keep are tensors that keep their type when a file is quantized.
	Keep Names

	// Dims are the tensors that keep dimensions of 1 at the end of their shape when a file is quantized, and how
	// many. Loaders compare their shapes; of other tensors, ones at the end are dropped.
	Dims []Dims

	// Edges are tensors of the first and the last block, which get more bits when a file is quantized.
	Edges Names

	// Config: loaders take the settings of some models from the key "config", a JSON object that checkpoints have in the
	// metadata of the same name.
	Config bool

	// Reference: the row is one of the reference's.
	Reference bool

	// Taken are models that the row matches without naming them, for documents.
	Taken []string
}

// Dims is the least number of dimensions that tensors keep.
type Dims struct {
	Names Names
	N     int
}

// Names are tensors by parts of their names; after = it is the whole name.
type Names []string

// Match reports whether name is one of the tensors.
func (n Names) Match(name string) bool {
	return slices.ContainsFunc(n, func(part string) bool {
		if whole, ok := strings.CutPrefix(part, "="); ok {
			return name == whole
		}
		return strings.Contains(name, part)
	})
}

// MinDims returns the least number of dimensions of a tensor in a quantized file, 1 where no row has it.
func (m *Model) MinDims(name string) int {
	for _, d := range m.Dims {
		if d.Names.Match(name) {
			return d.N
		}
	}
	return 1
}

// ByName returns the architecture that general.architecture names, nil for none.
func ByName(arch string) *Model {
	for i := range models {
		if models[i].Name == arch {
			return &models[i]
		}
	}
	return nil
}

// All returns the architectures in the order of detection. The caller must not change them.
func All() []Model { return models }

// Detect finds the architecture of a diffusion model by the names of its tensors, without prefix (see [Strip]). Names that
// no row has, and names of the diffusers layout, give an error of kind fault.Unsupported.
func Detect(names []string) (*Model, error) {
	has := make(map[string]bool, len(names))
	for _, n := range names {
		has[n] = true
	}
	m := find(has, func(m *Model) [][]string { return m.Sets })
	if m == nil {
		m = find(has, func(m *Model) [][]string { return m.More })
	}
	if m == nil {
		return nil, unknown(has)
	}
	if at := slices.IndexFunc(m.Banned, func(n string) bool { return has[n] }); at >= 0 {
		return nil, fault.Errorf(fault.Unsupported, "%s with names of the diffusers library (tensor %q), which "+
			"loaders of GGUF files do not take, and which are not those of a class that is converted: convert the original "+
			"checkpoint", m.Name, m.Banned[at])
	}
	return m, nil
}

// find returns the first row of which a set is there as a whole.
func find(has map[string]bool, sets func(*Model) [][]string) *Model {
	whole := func(set []string) bool {
		return !slices.ContainsFunc(set, func(n string) bool { return !has[n] })
	}
	for i := range models {
		if slices.ContainsFunc(sets(&models[i]), whole) {
			return &models[i]
		}
	}
	return nil
}

// others are names of tensors of other models that pipelines have, and what to do with their files.
var others = []struct{ name, what string }{
	{"text_model.encoder.layers.0.self_attn.q_proj.weight", CLIPHint},
	{"transformer.resblocks.0.attn.in_proj_weight", CLIPHint},
	{"encoder.block.0.layer.0.SelfAttention.q.weight", "a T5 text encoder, " + folderHint},
	{"layers.0.self_attn.q_proj.weight", "a language model or text encoder, " + folderHint},
	{"decoder.conv_in.weight", "an autoencoder (VAE), of which no file is made: loaders take the safetensors file"},
	{"decoder.conv1.weight", "an autoencoder (VAE), of which no file is made: loaders take the safetensors file"},
}

// CLIPHint is what CLIP-L and CLIP-G are, and what to do with them.
const CLIPHint = "a CLIP text encoder, of which no file is made: loaders of image models take its safetensors file (clip_l, " +
	"clip_g), and no GGUF file of it"

const folderHint = "which is converted from its folder, with config.json and the tokenizer"

// unknown names another model, or the architecture of which most names of a set are there, and the first one that is
// missing.
func unknown(has map[string]bool) error {
	for _, o := range others {
		if has[o.name] {
			return fault.Errorf(fault.Unsupported, "no image or video model, but %s", o.what)
		}
	}
	best, found, missing := "", 0, ""
	for _, m := range models {
		for _, set := range slices.Concat(m.Sets, m.More) {
			there := 0
			first := ""
			for _, n := range set {
				switch {
				case has[n]:
					there++
				case first == "":
					first = n
				}
			}
			if there > found {
				best, found, missing = m.Name, there, first
			}
		}
	}
	if best == "" {
		return fault.Errorf(fault.Unsupported, "no known image or video model: its tensors have names of none of %s",
			strings.Join(Known(), ", "))
	}
	return fault.Errorf(fault.Unsupported, "no known image or video model: the nearest is %s, of which %q is missing",
		best, missing)
}

// Known returns the names of the architectures in the order of detection.
func Known() []string {
	var list []string
	for _, m := range models {
		list = append(list, m.Name)
	}
	return list
}
