package naming

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Matrix is the Type that Read returns for the name of an importance matrix; the convention has no names for these.
const Matrix = "imatrix"

var (
	// NAME.gguf.part1of3, a piece of a file's bytes
	bytePart = regexp.MustCompile(`\.gguf\.part(\d{1,5})of(\d{1,5})$`)
	// a kind of sidecar at the beginning of a name, or after it
	sideBegin = regexp.MustCompile(`(?i)^(mmproj|mtp)(?:[-._]|$)`)
	sideIn    = regexp.MustCompile(`(?i)[-._](mmproj|mtp)([-._]|$)`)
	// a kind of file other than a model, at the end
	kindEnd = regexp.MustCompile(`(?i)(?:^|[-._])(lora|vocab|imatrix(?:_\w+)?)$`)
	// an encoding at the end, with a prefix that some publishers give it (UD-, i1-)
	typeEnd = regexp.MustCompile(
		`(?i)(?:^|([-._]))((?:(?:ud|i1)[-_])?(?:i?q\d(?:_[01k])?(?:_(?:xxs|xs|s|m|l|xl|nl))*(?:_\d_\d)?|tq[12]_0|bf16|f16|f32|fp16|fp32|fp8|mxfp4(?:_moe)?|nvfp4))$`)
	ownPrefix = regexp.MustCompile(`(?i)^(ud|i1)[-_]`)
	// the parts of a size label, 8x7B and A3B, and a version
	weightsOf = regexp.MustCompile(`^(?:\d+x)?(?:\d+\.)?\d+[KMBTmbt]$`)
	activeOf  = regexp.MustCompile(`^[AE](?:\d+\.)?\d+[MBmb]$`)
	versionIn = regexp.MustCompile(`^[vV]\d+(?:\.\d+)*$`)
)

// Read returns the parts of a published file name, and its deviations from the convention: most published names have
// some, a name that Parse accepts has none. ok is false if it is not the name of a GGUF file.
func Read(name string) (n Name, found []string, ok bool) {
	if n, err := Parse(name); err == nil {
		return n, nil, true
	}
	if len(name) > maxName {
		return n, Check(name), false
	}
	problem := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	stem, whole := strings.CutSuffix(name, ".gguf")
	if m := bytePart.FindStringSubmatch(name); m != nil {
		stem = name[:len(name)-len(m[0])]
		n.Shard, _ = strconv.Atoi(m[1])
		n.Shards, _ = strconv.Atoi(m[2])
		problem("shard: piece %d of %d of a file's bytes, to be joined by cat: want files NAME-%05d-of-%05d.gguf, each "+
			"of which can be read", n.Shard, n.Shards, n.Shard, n.Shards)
	} else if !whole {
		return n, Check(name), false
	} else if m := shardEnd.FindStringSubmatch(stem); m != nil {
		stem = stem[:len(stem)-len(m[0])]
		n.Shard, _ = strconv.Atoi(m[1])
		n.Shards, _ = strconv.Atoi(m[2])
		if n.Shard == 0 || n.Shard > n.Shards {
			problem("shard: %s of %s: want a number from 00001 to the number of shards", m[1], m[2])
		}
	}
	if m := kindEnd.FindStringSubmatch(stem); m != nil {
		stem = stem[:len(stem)-len(m[0])]
		switch kind := strings.ToLower(m[1]); {
		case kind == "lora":
			n.Type = LoRA
		case kind == Vocab:
			n.Type = Vocab
		default:
			n.Type = Matrix
			problem("type: the convention has no names of importance matrices, %s", m[1])
		}
		if n.Type != Matrix && m[0] != "-"+n.Type {
			problem("type: %q: want -%s at the end", m[0], n.Type)
		}
	}
	if m := typeEnd.FindStringSubmatch(stem); m != nil {
		stem = stem[:len(stem)-len(m[0])]
		n.Encoding = m[2]
		switch own := ownPrefix.FindString(n.Encoding); {
		case own != "":
			problem("encoding: %s before %s: want letters, digits and underscores only", own, n.Encoding[len(own):])
		case n.Encoding != strings.ToUpper(n.Encoding):
			problem("encoding: %s: types are written %s", n.Encoding, strings.ToUpper(n.Encoding))
		}
		if m[1] == "." || m[1] == "_" {
			problem("encoding: %q before it: want a dash", m[1])
		}
	}
	if m := sideBegin.FindStringSubmatch(stem); m != nil {
		n.Sidecar = strings.ToLower(m[1])
		stem = stem[len(m[0]):]
	} else if at := sideIn.FindStringSubmatchIndex(stem); at != nil {
		n.Sidecar = strings.ToLower(stem[at[2]:at[3]])
		stem = strings.Trim(stem[:at[0]]+"-"+stem[at[1]:], "-")
		problem("sidecar: %s comes first", n.Sidecar)
	}
	n.split(stem, problem)
	if found == nil {
		found = Check(name)
	}
	return n, found, true
}

// split reads the part of a name before the encoding.
func (n *Name) split(stem string, problem func(string, ...any)) {
	parts := strings.Split(stem, "-")
	size, last, at := len(parts), len(parts), -1
	for i, part := range parts {
		if i > 0 && size == len(parts) && weightsOf.MatchString(part) {
			size = i
		}
		if i > 0 && versionIn.MatchString(part) {
			at = i
		}
	}
	if at >= 0 {
		n.Version = parts[at]
		switch {
		case at == len(parts)-1:
			last = at
		case at > size:
			problem("version: %s is before %q: want it last", n.Version, strings.Join(parts[at+1:], "-"))
		default:
			problem("version: %s is in the base name: want it after size and fine-tune", n.Version)
		}
	}
	if at < 0 {
		problem("%s", noVersion)
	} else if n.Version[0] == 'V' {
		problem("version: %s: want a small v", n.Version)
	}
	base, tune := parts[:min(size, last)], []string(nil)
	if size < last {
		n.SizeLabel, tune = parts[size], parts[size+1:last]
		if len(tune) > 0 && activeOf.MatchString(tune[0]) {
			n.SizeLabel, tune = n.SizeLabel+"-"+tune[0], tune[1:]
		}
	} else {
		problem("%s", noSize)
	}
	without := func(list []string) string { // without the version, which is a separate field
		var left []string
		for _, part := range list {
			if part != n.Version || n.Version == "" {
				left = append(left, part)
			}
		}
		return strings.Join(left, "-")
	}
	n.BaseName, n.FineTune = without(base), without(tune)
	for _, part := range [][2]string{{"base name", n.BaseName}, {"fine-tune", n.FineTune}} {
		bad := strings.IndexFunc(part[1], func(r rune) bool { return !letterOrDigit(r) && r != '-' && r != ' ' })
		if bad >= 0 {
			problem("%s: %q in %q: want ASCII letters, digits and dashes", part[0], []rune(part[1][bad:])[0],
				clipped(part[1]))
		}
	}
	if n.BaseName == "" {
		problem("base name: there is none")
	}
}
