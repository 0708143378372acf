package gguf

import (
	"fmt"
	"strings"
)

// The keys that a file's name is made of.
const (
	KeyName      = "general.name"
	KeyBasename  = "general.basename"
	KeySizeLabel = "general.size_label"
	KeyFinetune  = "general.finetune"
	KeyVersion   = "general.version"
)

// ModelName returns the part of a file's name that tells the model: base name
// (or name), size label, fine-tune and version with dashes between them, as far
// as the metadata have them. Source: the naming convention of the GGUF
// specification as the reference's converter applies it.
func ModelName(m Metadata) string {
	text := func(key string) string {
		v, _ := m.Get(key)
		s, _ := v.Str()
		return s
	}
	dashed := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), " ", "-") }
	name := text(KeyBasename)
	if name == "" {
		name = text(KeyName)
	}
	parts := []string{strings.ReplaceAll(dashed(name), "/", "-")}
	if parts[0] == "" {
		parts[0] = "ggml-model"
	}
	for _, s := range []string{text(KeySizeLabel), dashed(text(KeyFinetune)), dashed(text(KeyVersion))} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "-")
}

// FillTemplate replaces the fields of a file name: "{x}" by fields["x"]. "{{" and
// "}}" stand for braces.
func FillTemplate(name string, fields map[string]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c != '{' && c != '}':
			b.WriteByte(c)
		case strings.HasPrefix(name[i+1:], string(c)):
			b.WriteByte(c)
			i++
		default:
			field, _, ok := strings.Cut(name[i+1:], "}")
			value, known := fields[field]
			if c == '}' || !ok || !known {
				return "", fmt.Errorf("name %q: byte %d begins no field that is known", name, i)
			}
			b.WriteString(value)
			i += len(field) + 1
		}
	}
	return b.String(), nil
}
