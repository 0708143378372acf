package naming

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/convert/general"
	"ggforge/fault"
	"ggforge/gguf"
)

// DefaultTemplate names files as ggconv and the reference's converter do: Gollama-6.6M-Q8_0.gguf. An adapter's file has
// -LoRA after the type.
const DefaultTemplate = "{name}-{FTYPE}"

// TemplateField is a field of the name templates that File fills.
type TemplateField struct{ Name, Text string }

// TemplateFields are all fields, with their descriptions.
var TemplateFields = []TemplateField{
	{"name", "the model's name, size, fine-tune and version as far as it has them"},
	{"ftype", "the type in lower case"},
	{"FTYPE", "the type as recipes are called"},
	{"model", "what the GGUF naming convention has before the type, with a version"},
	{"basename", "the base name"},
	{"size", "the size label"},
	{"finetune", "the fine-tune"},
	{"version", "the version"},
}

// TemplateHelp lists the fields for the help of a flag.
func TemplateHelp() string {
	var list []string
	for _, f := range TemplateFields[:4] {
		list = append(list, fmt.Sprintf("{%s} is %s", f.Name, f.Text))
	}
	var parts []string
	for _, f := range TemplateFields[4:] {
		parts = append(parts, "{"+f.Name+"}")
	}
	return strings.Join(list, ", ") + "; its parts are " + strings.Join(parts, ", ")
}

// CheckTemplate refuses a template that File would refuse for every model.
func CheckTemplate(template string) error {
	_, err := fill(template, map[string]string{})
	return err
}

// fill replaces the fields of a template; a field without a value becomes "x".
func fill(template string, values map[string]string) (string, error) {
	all := map[string]string{}
	var names []string
	for _, f := range TemplateFields {
		all[f.Name] = "x"
		if v, ok := values[f.Name]; ok {
			all[f.Name] = v
		}
		names = append(names, "{"+f.Name+"}")
	}
	if strings.ContainsAny(template, `/\`) {
		return "", fault.Errorf(fault.Usage, "name template %q: a name has no folders: want no / and no \\", template)
	}
	name, err := gguf.FillTemplate(template, all)
	if err != nil {
		return "", fault.Errorf(fault.Usage, "%w: want %s, and {{ for a brace", err, strings.Join(names, ", "))
	}
	if stem := strings.TrimSuffix(name, ".gguf"); strings.Trim(stem, ". -") == "" {
		return "", fault.Errorf(fault.Usage, "name template %q: names nothing", template)
	}
	return name, nil
}

// File returns the name of a model's file by a template, DefaultTemplate for "". path is where the model is; image and
// video models, whose metadata have no name, are called after it. The other arguments are those of Of.
// [gguf.SafeName] replaces characters that file names cannot have; .gguf is added if missing.
func File(template, path string, m gguf.Metadata, tensors iter.Seq2[string, []int64], as string) (string, error) {
	end := ".gguf"
	if v, _ := m.Get(gguf.KeyType); template == "" {
		if s, _ := v.Str(); s == "adapter" {
			end = "-" + LoRA + end
		}
	}
	template = strings.TrimSuffix(cmp.Or(template, DefaultTemplate), ".gguf")
	n := Of(m, tensors, as)
	called := general.NameOf(m, n.SizeLabel)
	if _, ok := m.Get(gguf.KeyName); !ok && diffusion.ByName(m.Architecture()) != nil {
		called = fileStem(path)
		n.BaseName = base(called)
	}
	name, err := fill(template, map[string]string{
		"name": gguf.SafeName(called, ""), "ftype": strings.ToLower(as), "FTYPE": as,
		"model": n.Model(), "basename": n.BaseName, "size": n.SizeLabel, "finetune": n.FineTune, "version": n.Version,
	})
	if err != nil {
		return "", err
	}
	return gguf.SafeName(name, end), nil
}

// What a file's name has after that of the model: a suffix, and the type of weights that are not quantized.
var (
	fileEnd        = regexp.MustCompile(`(?i)(\.(gguf|safetensors|sft|ckpt|pth?|bin))?$`)
	unquantizedEnd = regexp.MustCompile(`(?i)[-_.](bf16|f16|f32|fp16|fp32)$`)
)

// fileStem returns the name of a model by that of its file or folder.
func fileStem(path string) string {
	if rest, ok := strings.CutPrefix(path, "hf://"); ok {
		if id, revision, ok := strings.Cut(rest, "@"); ok {
			_, file, _ := strings.Cut(revision, "/")
			rest = strings.TrimSuffix(id+"/"+file, "/")
		}
		path = rest
	}
	name := filepath.Base(filepath.FromSlash(path))
	if prefix, _, _, ok := gguf.ParseShardName(name); ok {
		name = prefix
	}
	return unquantizedEnd.ReplaceAllString(fileEnd.ReplaceAllString(name, ""), "")
}
