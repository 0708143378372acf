package gguf

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The keys whose values make up a file's name.
const (
	KeyType      = "general.type"
	KeyName      = "general.name"
	KeyBasename  = "general.basename"
	KeySizeLabel = "general.size_label"
	KeyFinetune  = "general.finetune"
	KeyVersion   = "general.version"
)

// maxSafeName is the longest name of SafeName in bytes. File systems take 255, of
// which the temporary file's ending and the number of a shard need some.
const maxSafeName = 200

// deviceName matches the names of Windows' devices, with any extension.
var deviceName = regexp.MustCompile(`^(?i:con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)`)

// SafeName returns the name of one file, in no directory, on every system: stem,
// which comes from a model's metadata and may hold anything, and after it suffix,
// which the caller knows to be harmless. Ordinary names come back
// unchanged. Otherwise
//
//   - separators of directories, characters that Windows forbids in names or that
//     cannot be printed, and bytes that are not UTF-8 become dashes;
//   - dots, dashes and blanks at the start are removed, so that the name is neither
//     hidden nor a flag, and so are dots and blanks at the end;
//   - the name of a device gets an underscore in front;
//   - a name of more than 200 bytes is cut before the suffix.
//
// If nothing is left, the stem is "ggml-model".
func SafeName(stem, suffix string) string {
	stem = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`/\<>:"|?*`, r) {
			return '-'
		}
		return r
	}, stem)
	stem = shortened(strings.TrimLeft(stem, ".- "), suffix)
	if stem == "" {
		stem = "ggml-model"
	}
	if deviceName.MatchString(stem + suffix) {
		stem = shortened("_"+stem, suffix)
	}
	return stem + suffix
}

// shortened returns the part of stem that fits before suffix, without an end that Windows drops.
func shortened(stem, suffix string) string {
	if room := max(maxSafeName-len(suffix), 0); len(stem) > room {
		for room > 0 && !utf8.RuneStart(stem[room]) {
			room--
		}
		stem = stem[:room]
	}
	if suffix == "" || suffix[0] == '.' {
		stem = strings.TrimRight(stem, ". ")
	}
	return stem
}

// FillTemplate replaces the fields of a file name: "{x}" by fields["x"], "{{" and
// "}}" by single braces.
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
				return "", fmt.Errorf("name %q: no known field begins at byte %d", name, i)
			}
			b.WriteString(value)
			i += len(field) + 1
		}
	}
	return b.String(), nil
}
