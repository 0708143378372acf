package general

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// modelID has the parts of an id such as "org/Llama-2-7b-chat-hf".
type modelID struct {
	name, org                     text
	base, finetune, version, size text
}

// The patterns of a part, ignoring case. As in the reference, the Turkish i matches i, and digits and letters are
// Unicode's.
var (
	versionPart = regexp.MustCompile(`^(?i:v|[iİı]ter)?\p{Nd}+(\.\p{Nd}+)*$`)
	quantPart   = regexp.MustCompile(`^(?i:[iİı]?q\p{Nd}(_[\p{L}\p{N}_])*|b?fp?(16|32))$`)
	sizePart    = regexp.MustCompile(
		`^(?i:(a|\p{Nd}+x)?\p{Nd}+([._]\p{Nd}+)?[kmbt]\p{Nd}?|small|m[iİı]n[iİı]|med[iİı]um|large|x?xl)$`)
	finetunePart = regexp.MustCompile(`^(?i:chat|[iİı]nstruct|v[iİı]s[iİı]on|lora)$`)
)

// role is a set of roles that a part of an id may have.
type role uint8

const (
	roleBase role = 1 << iota
	roleSize
	roleFinetune
	roleVersion
	roleQuant // quantization, or an adapter; dropped
)

// maxID bounds the bytes of an id; the hub's have a hundred at most.
const maxID = 1 << 12

// parseID splits an id. total is the number of parameters of the model, negative for an adapter, or 0 to accept every
// size.
//
//	Mixtral-8x7B-Instruct-v0.1
//	└base─┘ └┬─┘ └──┬───┘ └┬─┘
//	        size  finetune version
//
// Leading words and versions form the base name; later parts without another role belong to the fine-tune. Without any
// of size, fine-tune and version there is no base name either: the split would be a guess. Text with a blank is only a
// name.
func parseID(s string, total int64) modelID {
	if strings.Contains(s, " ") {
		return modelID{name: text{s, true}}
	}
	id := modelID{name: text{s, true}}
	if org, name, ok := strings.Cut(s, "/"); ok {
		id.name.s = name
		if !strings.HasPrefix(org, ".") { // ./ and ../ are not organizations
			id.org = text{org, true}
		}
	}
	parts := slices.DeleteFunc(strings.Split(id.name.s, "-"), func(p string) bool { return p == "" })
	roles := make([]role, len(parts))
	for i, p := range parts {
		parts[i], roles[i] = classify(p, i == 0, total)
	}

	// a size in figures overrides one in words
	for i, p := range parts {
		if roles[i] == roleSize && strings.ContainsFunc(p, isDecimal) {
			for j, p := range parts {
				if roles[j] == roleSize && !strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsLetter(r) }) {
					roles[j] = 0
				}
			}
			break
		}
	}

	leading := true
	for i, p := range parts {
		first, _ := utf8.DecodeRuneInString(p)
		switch {
		case leading && (roles[i] == 0 && unicode.IsLetter(first) || roles[i] == roleVersion):
			roles[i] |= roleBase
		case roles[i] == 0:
			roles[i] = roleFinetune
			leading = false
		default:
			leading = false
		}
	}
	for i := len(parts) - 1; i >= 0 && roles[i] == roleBase|roleVersion; i-- {
		roles[i] = roleVersion
	}

	pick := func(is func(role) bool) (picked []string) {
		for i, p := range parts {
			if is(roles[i]) {
				picked = append(picked, p)
			}
		}
		return picked
	}
	join := func(parts []string) text { return text{strings.Join(parts, "-"), len(parts) > 0} }
	id.size = join(unique(pick(func(r role) bool { return r == roleSize })))
	id.finetune = join(pick(func(r role) bool { return r == roleFinetune }))
	id.version = join(pick(func(r role) bool { return r == roleVersion }))
	if id.size.set || id.finetune.set || id.version.set {
		id.base = join(pick(func(r role) bool { return r&roleBase != 0 }))
	}
	return id
}

// unique removes repetitions and keeps the order.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		dup := seen[s]
		seen[s] = true
		return dup
	})
}

// classify returns the possible roles of one part of an id, and the spelling of a size.
func classify(part string, first bool, total int64) (string, role) {
	switch {
	case versionPart.MatchString(part):
		return part, roleVersion
	case quantPart.MatchString(part):
		return part, roleQuant
	case first:
		return part, 0
	case sizePart.MatchString(part):
		return classifySize(part, total)
	case finetunePart.MatchString(part):
		if total < 0 && strings.ToLower(part) == "lora" { // redundant for an adapter
			return part, roleQuant
		}
		return part, roleFinetune
	}
	return part, 0
}

// classifySize spells a size the usual way: 1_5b is 1.5B, 7b1 is 7.1B. A size that differs from the real one by more
// than 7/8 is something else, such as a context length: it gets a small letter and joins the fine-tune. The id of an
// adapter, which need not have pairs for all weights, may have the size of a larger model.
func classifySize(part string, total int64) (string, role) {
	r := []rune(strings.ReplaceAll(part, "_", "."))
	if n := len(r); isDecimal(r[n-1]) {
		r = append(r[:n-2], '.', r[n-1], r[n-2])
	}
	n := len(r)
	unit := &r[n-1]
	if n > 1 && isDecimal(r[n-2]) && strings.ContainsRune("kmbt", *unit) {
		*unit = unicode.ToUpper(*unit)
	}
	if f, ok := parseFloat(string(r[:n-1])); ok && total != 0 {
		f *= math.Pow10(3 * strings.IndexRune(" KMBT", *unit))
		if total > 0 && math.Abs(f-float64(total)) > float64(7*total/8) || total < 0 && f < float64(-total/8) {
			*unit = unicode.ToLower(*unit)
			return string(r), roleFinetune
		}
	}
	return string(r), roleSize
}

// parseFloat parses digits with at most one point. The digits may be of any
// script.
func parseFloat(s string) (float64, bool) {
	s = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII && isDecimal(r) {
			return '0' + decimalValue(r)
		}
		return r
	}, s)
	if strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

func isDecimal(r rune) bool { return unicode.Is(unicode.Nd, r) }

// decimalValue returns the value of a digit: the digits of a script are ten consecutive runes, or several times ten.
func decimalValue(r rune) rune {
	first := r
	for isDecimal(first - 1) {
		first--
	}
	return (r - first) % 10
}

// hubURL is the address of a model or dataset. As in the reference the dot
// matches any character, but the host's name must occur somewhere.
var hubURL = regexp.MustCompile(`^https?://huggingface.co/([^/]+/[^/]+)$`)

// resolve fills in the fields of a source from its id.
func (s source) resolve(total int64) source {
	set := func(field string, t text) { s.fields[slices.Index(sourceFields[:], field)] = t }
	id := modelID{}
	url := slices.ContainsFunc([]string{"http://", "https://", "ssh://"}, func(scheme string) bool {
		return strings.HasPrefix(s.id.s, scheme)
	})
	if url {
		set("repo_url", s.id)
		if m := hubURL.FindStringSubmatch(s.id.s); m != nil && strings.Contains(s.id.s, "huggingface.co") {
			id = parseID(m[1], total)
		}
	} else {
		id = parseID(s.id.s, total)
		if id.org.set {
			set("repo_url", text{"https://huggingface.co/" + id.org.s + "/" + id.name.s, true})
		}
	}
	set("name", title(id.name))
	set("organization", title(id.org))
	set("version", id.version)
	return s
}

// versionWord matches words that keep their small letters: v1.5, 7b.
var versionWord = regexp.MustCompile(`^(v\p{Nd}+(\.\p{Nd}+)*|\p{Nd}.*)$`)

// title turns an id into a title: dashes become blanks, words without a capital get one.
func title(id text) text {
	words := words(strings.ReplaceAll(strip(id.s), "-", " "))
	for i, w := range words {
		if isLower(w) && !versionWord.MatchString(w) {
			words[i] = capitals(w)
		}
	}
	id.s = strings.Join(words, " ")
	return id
}

// DirName returns the reference's name for the directory at path. It is made from
// the path alone: a link keeps its own name, and "." has none.
func DirName(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for _, p := range slices.Backward(parts) {
		if p != "" && p != "." {
			return p
		}
	}
	return ""
}
