// Package naming reads, checks and builds names of files by the GGUF naming convention:
//
//	mmproj-Hermes-2-8x7B-ContextLength4k-Chat-v1.0-Q4_K_M-LoRA-00001-of-00003.gguf
//	└─┬──┘ └─┬───┘ └────────┬──────────┘ └┬─┘ └┬─┘ └─┬──┘ └┬─┘ └─────┬──────┘
//	sidecar base name     size label  fine-tune │ encoding type    shard
//	                                         version
//
// Base name, size label and version are required, everything else is optional. The convention is that of the
// specification (docs/gguf.md of ggml), whose regular expression decides. Its text requires base name and size, its
// expression does not; this package requires them. Many published names do not follow the convention: Read accepts
// them, but guesses the meaning of their parts.
package naming

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"ggforge/convert/general"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/norm"
)

// Kinds of files other than models: values of Name.Sidecar and Name.Type.
const (
	Projector = "mmproj" // multimodal projector: the vision or audio encoder
	Drafts    = "mtp"    // MTP (NextN) layers, a draft model
	LoRA      = "LoRA"   // an adapter
	Vocab     = "vocab"  // vocabulary and metadata only
)

// Name holds the parts of a file name. Missing parts are empty or 0.
type Name struct {
	Sidecar   string `json:"sidecar,omitempty"` // Projector or Drafts
	BaseName  string `json:"base_name"`
	SizeLabel string `json:"size_label"`
	FineTune  string `json:"fine_tune,omitempty"`
	Version   string `json:"version"` // "v1.0"
	Encoding  string `json:"encoding,omitempty"`
	Type      string `json:"type,omitempty"`   // LoRA or Vocab
	Shard     int    `json:"shard,omitempty"`  // from 1
	Shards    int    `json:"shards,omitempty"` // all of them
}

// Model returns the part of a name before the encoding, which identifies the model.
func (n Name) Model() string {
	var parts []string
	for _, part := range []string{n.Sidecar, n.BaseName, n.SizeLabel, n.FineTune, n.Version} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "-")
}

// String returns the name of the file.
func (n Name) String() string {
	stem := n.Model()
	for _, part := range []string{n.Encoding, n.Type} {
		if part != "" {
			stem += "-" + part
		}
	}
	if n.Shards > 0 {
		return gguf.ShardName(stem, n.Shard-1, n.Shards)
	}
	return stem + ".gguf"
}

const (
	sizePattern    = `(?:\d+x)?(?:\d+\.)?\d+[A-Za-z](?:-[A-Za-z]+(?:\d+\.)?\d+[A-Za-z]+)?`
	versionPattern = `v\d+(?:\.\d+)*`
)

var (
	// convention is the specification's expression without its end: shard, type and the rule that an encoding does
	// not begin with a type are checked in code.
	convention = regexp.MustCompile(`^(?:(mmproj|mtp)-)?([A-Za-z0-9\s]*(?:-(?:[A-Za-z\s][A-Za-z0-9\s]*|[0-9\s]*))*)` +
		`-(?:(` + sizePattern + `)(?:-([A-Za-z0-9\s-]+))?)?-(` + versionPattern + `)(?:-(\w+))?$`)
	shardEnd = regexp.MustCompile(`-(\d{5})-of-(\d{5})$`)

	sizeLabel = regexp.MustCompile(`^` + sizePattern + `$`)
	version   = regexp.MustCompile(`^` + versionPattern + `$`)
	sizeLike  = regexp.MustCompile(`^(?:\d+x)?(?:\d+\.)?\d+[A-Za-z]$`)
	encoding  = regexp.MustCompile(`^\w+$`)
)

// maxName is the longest accepted name in bytes; file systems allow 255.
const maxName = 1 << 10

// Parse returns the parts of the name of a file, without folders. For a name that does not follow the convention the
// error has kind fault.Broken; see Check.
func Parse(name string) (Name, error) {
	n, found := parse(name)
	if len(found) > 0 {
		return Name{}, fault.Errorf(fault.Broken, "%q: %s", clipped(name), strings.Join(found, "; "))
	}
	return n, nil
}

// Check returns the deviations of a name from the convention, nil for none.
func Check(name string) []string {
	_, found := parse(name)
	return found
}

// parse returns the parts of a name, or its deviations from the convention.
func parse(name string) (n Name, found []string) {
	if len(name) > maxName {
		return n, []string{fmt.Sprintf("%d bytes are too many for the name of a file", len(name))}
	}
	stem, ok := strings.CutSuffix(name, ".gguf")
	if !ok {
		return n, []string{"does not end in .gguf"}
	}
	if m := shardEnd.FindStringSubmatch(stem); m != nil {
		stem = stem[:len(stem)-len(m[0])]
		n.Shard, _ = strconv.Atoi(m[1])
		n.Shards, _ = strconv.Atoi(m[2])
		if n.Shard == 0 || n.Shard > n.Shards {
			found = append(found, fmt.Sprintf("shard %s of %s: want a number from 00001 to that of all", m[1], m[2]))
		}
	}
	for _, kind := range []string{LoRA, Vocab} {
		if rest, ok := strings.CutSuffix(stem, "-"+kind); ok {
			stem, n.Type = rest, kind
			break
		}
	}
	m := convention.FindStringSubmatch(stem)
	if m == nil {
		return n, append(found, diagnose(stem)...)
	}
	n.Sidecar, n.BaseName, n.SizeLabel, n.FineTune, n.Version, n.Encoding = m[1], m[2], m[3], m[4], m[5], m[6]
	if strings.Trim(n.BaseName, "- ") == "" {
		found = append(found, "no base name before the size label")
	}
	if n.SizeLabel == "" {
		found = append(found, noSize)
	}
	for _, kind := range []string{LoRA, Vocab} {
		if strings.HasPrefix(n.Encoding, kind) {
			found = append(found, fmt.Sprintf("encoding %q begins with %s, which is a type and comes after it",
				n.Encoding, kind))
		}
	}
	return n, found
}

const (
	noSize    = "no size label, such as 7B, 8x7B or 0.5B"
	noVersion = "no version: want v1.0 or another number between size or fine-tune and encoding"
)

// diagnose returns why a name, without type and shard, does not follow the convention.
func diagnose(stem string) (found []string) {
	parts := strings.Split(stem, "-")
	at, size := -1, -1
	for i, part := range parts {
		if version.MatchString(part) {
			at = i // the last version counts
		}
		if size < 0 && i > 0 && sizeLike.MatchString(part) {
			size = i
		}
	}
	before := parts
	switch {
	case at < 0:
		found = append(found, noVersion)
	case len(parts)-at > 2:
		found = append(found,
			fmt.Sprintf("%q after version %s: want an encoding only, of letters, digits and underscores",
				clipped(strings.Join(parts[at+1:], "-")), clipped(parts[at])))
	case len(parts)-at == 2 && !encoding.MatchString(parts[at+1]):
		found = append(found, fmt.Sprintf("encoding %q: want letters, digits and underscores", clipped(parts[at+1])))
	}
	if at >= 0 {
		before = parts[:at]
	}
	if size < 0 || at >= 0 && size > at {
		found = append(found, noSize)
	}
	bad := map[rune]bool{}
	for i, part := range before {
		if i == size {
			continue
		}
		if at < 0 && i == len(before)-1 && encoding.MatchString(part) {
			continue // may be the encoding
		}
		for _, r := range part {
			if !letterOrDigit(r) && r != ' ' && !bad[r] && len(bad) < fault.MaxListed {
				bad[r] = true
				found = append(found,
					fmt.Sprintf("%q in %q: want ASCII letters, digits and dashes outside of size, version and encoding",
						r, clipped(part)))
			}
		}
	}
	if len(found) == 0 {
		found = append(found,
			"base name, size label, fine-tune, version and encoding cannot be told apart: want them in this order, "+
				"with dashes between them")
	}
	return found
}

// clipped returns a name, shortened for messages.
func clipped(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

func letterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// The longest parts of a built name, in bytes: with type and shard, the name is shorter than gguf.SafeName allows.
const (
	maxBase     = 72
	maxSize     = 24
	maxFineTune = 48
	maxVersion  = 12
	maxEncoding = 16
)

// Of returns the name of a file with metadata m and tensors, given by their names and dimensions in GGUF order; as is
// the encoding ("Q4_K_M", "" for none). The name follows the convention whatever the metadata hold. A size label that
// is missing or not in the convention's form is calculated; a missing version becomes v1.0.
//
// Characters that the convention does not allow in a base name or a fine-tune, such as the dot of Qwen2.5, become a
// dash. A version that is not a number is appended to the fine-tune.
func Of(m gguf.Metadata, tensors iter.Seq2[string, []int64], as string) Name {
	text := func(key string) string {
		v, _ := m.Get(key)
		s, _ := v.Str()
		return s[:min(len(s), maxName)]
	}
	n := Name{
		BaseName: base(cmp.Or(text(gguf.KeyBasename), text(gguf.KeyName))),
		Version:  "v1.0",
		Encoding: strings.Trim(clean(as, '_', maxEncoding), "_"),
	}
	switch text(gguf.KeyType) {
	case "adapter":
		n.Type = LoRA
	case "mmproj":
		n.Sidecar = Projector
		n.BaseName = cmp.Or(strings.TrimPrefix(n.BaseName, Projector+"-"), defaultBase)
	}
	if n.SizeLabel = strings.TrimSpace(text(gguf.KeySizeLabel)); !sizeLabel.MatchString(n.SizeLabel) ||
		len(n.SizeLabel) > maxSize {
		n.SizeLabel = weights(tensors, n.Type == LoRA).SizeLabel()
	}
	tune := text(gguf.KeyFinetune)
	if v := strings.TrimSpace(text(gguf.KeyVersion)); v != "" {
		if number := "v" + strings.TrimLeft(v, "vV"); version.MatchString(number) && len(number) <= maxVersion {
			n.Version = number
		} else {
			tune += "-" + v
		}
	}
	n.FineTune = strings.Trim(clean(tune, '-', maxFineTune), "-")
	for _, kind := range []string{LoRA, Vocab} {
		if strings.HasPrefix(n.Encoding, kind) {
			n.Encoding = "" // a vocabulary has no weights
		}
	}
	return n
}

// weights counts the parameters of a model, or of an adapter.
func weights(tensors iter.Seq2[string, []int64], adapter bool) (n general.Counts) {
	if !adapter {
		return general.Count(tensors)
	}
	for _, ne := range tensors {
		n.Total += gguf.Rows(ne) * gguf.RowLen(ne)
	}
	return n
}

// defaultBase is the base name of a model without any name.
const defaultBase = "ggml-model"

// base returns a base name: words that begin with a letter, or numbers. After a dash, a number is separated from the
// letters after it (4bit: 4-bit), which would make it a size label.
func base(s string) string {
	var parts []string
	for part := range strings.SplitSeq(clean(s, '-', maxBase), "-") {
		if part == "" {
			continue
		}
		number := len(part) - len(strings.TrimLeft(part, "0123456789"))
		if number > 0 && number < len(part) && len(parts) > 0 {
			parts = append(parts, part[:number])
			part = part[number:]
		}
		parts = append(parts, part)
	}
	return cmp.Or(strings.Join(parts, "-"), defaultBase)
}

// clean returns at most most bytes of s, reduced to ASCII letters and digits: accents are removed, and each run of
// other characters is replaced by one sign.
func clean(s string, sign byte, most int) string {
	var b []byte
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(s, "-")) {
		switch {
		case len(b) == most:
			return string(b)
		case letterOrDigit(r):
			b = append(b, byte(r))
		case unicode.Is(unicode.Mn, r):
		case len(b) > 0 && b[len(b)-1] != sign:
			b = append(b, sign)
		}
	}
	return string(b)
}
