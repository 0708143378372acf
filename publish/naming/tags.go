package naming

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Tag says by which tags the programs that read repositories find the file of a model, and what they misread.
//
// llama.cpp (llama-server -hf ORG/NAME:TAG) takes the first file whose path has the tag before a dot or a dash,
// whatever is before the tag. The hub's pages, and Ollama through them (ollama run hf.co/ORG/NAME:TAG), look for the
// last type that they know in a path.
type Tag struct {
	// File is the path of the model in the repository, that of the first shard of a split one.
	File string `json:"file"`
	// LlamaCPP is the tag that leads llama.cpp to the file, in whatever order the hub lists files. It is empty if
	// there is none: -hf ORG/NAME -hff FILE is what finds it then.
	LlamaCPP string `json:"llama_cpp,omitempty"`
	// Hub is the tag of the hub's pages and of Ollama, empty if they have none that leads to this file alone.
	Hub string `json:"hub,omitempty"`
	// LlamaCPPDefault and HubDefault are set if a command without a tag leads to the file.
	LlamaCPPDefault bool `json:"llama_cpp_default,omitempty"`
	HubDefault      bool `json:"hub_default,omitempty"`
	// Warnings name what a reader misreads, one sentence each.
	Warnings []string `json:"warnings,omitempty"`
}

// defaultTag is what all readers look for first when a command has no tag.
const defaultTag = "Q4_K_M"

// llamaDefaults are the tags that llama.cpp tries if there is none (find_best_model in common/download.cpp); after
// these, the first model is taken.
var llamaDefaults = []string{defaultTag, "Q8_0"}

// llamaOthers are what llama.cpp recognizes files by that are no models. Case counts, folders do not
// (gguf_filename_is_model; eagle3 and later have come with 0.7.0).
var llamaOthers = []string{"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"}

// hubTypes are the types that the hub's pages know, in the order in which they try them (GGMLFileQuantizationType in
// @huggingface/tasks 0.21.54).
var hubTypes = []string{"F32", "F16", "Q4_0", "Q4_1", "Q4_1_SOME_F16", "Q4_2", "Q4_3", "Q8_0", "Q5_0", "Q5_1", "Q2_K",
	"Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS",
	"IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ3_M", "IQ2_S", "IQ2_M", "IQ4_XS", "IQ1_M", "BF16", "Q4_0_4_4", "Q4_0_4_8",
	"Q4_0_8_8", "TQ1_0", "TQ2_0", "MXFP4_MOE", "NVFP4", "Q1_0", "Q2_0", "Q2_K_XL", "Q3_K_XL", "Q4_K_XL", "Q5_K_XL",
	"Q6_K_XL", "Q8_K_XL"}

var (
	// hubLabel is GGUF_QUANT_RE of @huggingface/tasks, for a path in upper case; the last match counts.
	hubLabel = regexp.MustCompile(`(?:UD-)?(?:` + strings.Join(hubTypes, "|") + `)(?:_[A-Z]+)?`)
	// llamaShard and llamaTag are those of get_gguf_split_info in common/download.cpp.
	llamaShard = regexp.MustCompile(`(?i)^(.+)-([0-9]{5})-of-([0-9]{5})$`)
	llamaTag   = regexp.MustCompile(`(?i)[-.]([A-Z0-9_]+)$`)
	// shardLike is a number of shards in another form than llama.cpp's.
	shardLike = regexp.MustCompile(`(?i)[-._]\d+[-._]?of[-._]?\d+$|\.gguf[-.]split`)
)

// published is a file of a repository as readers see it.
type published struct {
	path          string
	name          Name // as Read has it
	model         bool // it is one: no encoder, matrix, adapter, draft model or vocabulary
	llama         bool // llama.cpp takes it for one
	set           string
	shard, shards int
	tag           string // what llama.cpp lists it by
	hub           string // the hub's label
	hubAt         int    // where that is in the path
}

// first reports whether a command may lead to the file: the shards after the first come with it.
func (f *published) first() bool { return f.shards <= 1 || f.shard == 1 }

// llamaFinds reports whether a tag leads llama.cpp to the file if no other one is before it.
func (f *published) llamaFinds(tag string) bool {
	if !f.llama || !f.first() {
		return false
	}
	s, tag := strings.ToLower(f.path), strings.ToLower(tag)
	for i := 0; ; {
		at := strings.Index(s[i:], tag)
		if at < 0 {
			return false
		}
		if i += at + len(tag); i < len(s) && (s[i] == '.' || s[i] == '-') {
			return true
		}
		i -= len(tag) - 1
	}
}

// look reads a path as all readers do; ok is false if it is not that of a GGUF file.
func look(p string) (f published, ok bool) {
	base := path.Base(p)
	stem := strings.TrimSuffix(p, ".gguf")
	if len(p) > maxName || stem == p && !strings.EqualFold(path.Ext(p), ".gguf") && !bytePart.MatchString(base) {
		return f, false
	}
	f = published{path: p, shards: 1, shard: 1, set: p}
	f.name, _, _ = Read(base)
	f.model = f.name.Sidecar == "" && f.name.Type == "" && !isDraft(base)
	if stem != p {
		f.llama = !slices.ContainsFunc(llamaOthers, func(s string) bool { return strings.Contains(base, s) })
		if m := llamaShard.FindStringSubmatch(stem); m != nil {
			stem, f.set = m[1], m[1]
			f.shard, _ = strconv.Atoi(m[2])
			f.shards, _ = strconv.Atoi(m[3])
		}
	}
	if m := llamaTag.FindStringSubmatch(stem); m != nil && strings.ContainsFunc(m[1], unicode.IsLetter) {
		f.tag = strings.ToUpper(m[1])
	}
	if upper := strings.ToUpper(p); path.Ext(p) == ".gguf" && len(upper) == len(p) {
		if all := hubLabel.FindAllStringIndex(upper, -1); all != nil {
			last := all[len(all)-1]
			f.hub, f.hubAt = upper[last[0]:last[1]], last[0]
		}
	}
	return f, true
}

// isDraft reports whether a name is that of a draft model other than MTP layers, which Read knows.
func isDraft(base string) bool {
	return strings.HasPrefix(base, "eagle3-") || strings.HasPrefix(base, "dflash-") || strings.HasPrefix(base, "dspark-")
}

// Tags returns for each model of a repository, given by the paths of all its files with / between folders, by which
// tags programs find it and what they misread. Files that are no models, such as importance matrices, are in the list
// only if a reader takes them for one: they have warnings and no tags. The list is sorted by path, as the hub lists
// files.
func Tags(paths []string) []Tag {
	files := listed(paths)
	shards := map[string]int{}      // of each set that are there
	labels := map[string][]string{} // label of the hub: models
	models := false
	for i := range files {
		f := &files[i]
		shards[fmt.Sprint(f.set, "/", f.shards)]++
		models = models || f.model
		if f.model && f.first() && f.hub != "" {
			labels[f.hub] = append(labels[f.hub], f.path)
		}
	}
	finds := func(tag string) []*published { return find(files, tag) }
	llamaDefault, preset := withoutTag(files), slices.Contains(paths, preset)
	var tags []Tag
	for i := range files {
		f := &files[i]
		if !f.first() {
			continue
		}
		t := Tag{File: f.path, LlamaCPPDefault: f.path == llamaDefault && !preset}
		warn := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
		if !f.model {
			if f.llama && (models || f.name.Type != LoRA && f.name.Type != Vocab) {
				warn("llama.cpp takes it for a model, %s", f.instead())
			}
			if t.Warnings != nil {
				tags = append(tags, t)
			}
			continue
		}
		switch {
		case bytePart.MatchString(path.Base(f.path)):
			warn("no reader joins pieces of a file: want shards NAME-00001-of-%05d.gguf", f.name.Shards)
		case path.Ext(f.path) != ".gguf":
			warn("no reader finds it: want .gguf in lower case")
		case shardLike.MatchString(strings.TrimSuffix(f.path, ".gguf")) && f.shards <= 1:
			warn("each shard is taken for a model: want NAME-00001-of-0000N.gguf")
		case !f.llama:
			warn("llama.cpp passes over it, since its name has %q", f.other())
		}
		if n := shards[fmt.Sprint(f.set, "/", f.shards)]; f.shards > 1 && n != f.shards {
			warn("%d of %d shards are there", n, f.shards)
		}
		if preset {
			warn("llama.cpp reads preset.ini in place of all models")
		}
		t.LlamaCPP = f.llamaTagOf(finds, preset, warn)
		t.Hub, t.HubDefault = f.hubTagOf(labels, warn)
		tags = append(tags, t)
	}
	return tags
}

// preset is a file in the root that llama.cpp takes in place of a model.
const preset = "preset.ini"

// LlamaCPPFile returns the path that llama.cpp takes for -hf ORG/NAME:TAG, or for -hf ORG/NAME if the tag is empty, ""
// if it finds none; of a split model, that of the first shard. The paths are those of all files of the repository.
func LlamaCPPFile(paths []string, tag string) string {
	if slices.Contains(paths, preset) {
		return ""
	}
	files := listed(paths)
	if tag == "" {
		return withoutTag(files)
	}
	if found := find(files, tag); len(found) > 0 {
		return found[0].path
	}
	return ""
}

// listed reads the paths of GGUF files, in the order in which the hub lists them.
func listed(paths []string) (files []published) {
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if f, ok := look(p); ok {
			files = append(files, f)
		}
	}
	return files
}

// find returns the files that llama.cpp may take for a tag; it takes the first one.
func find(files []published, tag string) (found []*published) {
	for i := range files {
		if files[i].llamaFinds(tag) {
			found = append(found, &files[i])
		}
	}
	return found
}

// withoutTag returns the file that llama.cpp takes if a command has no tag.
func withoutTag(files []published) string {
	for _, tag := range llamaDefaults {
		if found := find(files, tag); len(found) > 0 {
			return found[0].path
		}
	}
	for i := range files {
		if files[i].llama && files[i].first() {
			return files[i].path
		}
	}
	return ""
}

// other returns the part of a name by which llama.cpp passes over the file.
func (f *published) other() string {
	for _, s := range llamaOthers {
		if strings.Contains(path.Base(f.path), s) {
			return s
		}
	}
	return ""
}

// instead returns the advice on a file that is no model and that llama.cpp takes for one.
func (f *published) instead() string {
	switch {
	case f.name.Sidecar == Drafts:
		return "an MTP file: want a name that begins with mtp-"
	case f.name.Sidecar != "":
		return "the encoder of one: want mmproj in lower case in its name"
	case f.name.Type == Matrix:
		return "an importance matrix: want imatrix in lower case in its name"
	case f.name.Type == LoRA:
		return "an adapter: want a repository of its own"
	}
	return "a vocabulary: want a repository of its own"
}

// llamaTagOf returns the first of a file's tags that leads llama.cpp to it alone.
func (f *published) llamaTagOf(finds func(string) []*published, preset bool, warn func(string, ...any)) string {
	if !f.llama || preset {
		return ""
	}
	var wrong []string
	for _, tag := range slices.Compact([]string{f.hub, f.tag}) {
		if tag == "" {
			continue
		}
		switch found := finds(tag); {
		case len(found) == 1 && found[0] == f:
			return tag
		case slices.Contains(found, f):
			others := slices.DeleteFunc(found, func(o *published) bool { return o == f })
			wrong = append(wrong, fmt.Sprintf("llama.cpp's tag %s leads to %s too", tag, others[0].path))
		}
	}
	for _, s := range wrong {
		warn("%s", s)
	}
	return ""
}

// hubTagOf returns a file's tag on the hub's pages, and whether Ollama takes the file if a command has no tag.
func (f *published) hubTagOf(labels map[string][]string, warn func(string, ...any)) (tag string, byDefault bool) {
	if path.Ext(f.path) != ".gguf" {
		return "", false
	}
	if f.hub == "" {
		warn("the hub's pages and Ollama know no type in its name, such as %s, and have no tag for it",
			cmp.Or(f.known(), defaultTag))
		return "", false
	}
	if before := f.path[:f.hubAt]; before != "" && letterOrDigit(rune(before[len(before)-1])) {
		from := strings.LastIndexFunc(before, func(r rune) bool { return !letterOrDigit(r) && r != '_' }) + 1
		warn("the hub's pages and Ollama read %s as %s", f.path[from:f.hubAt+len(f.hub)], f.hub)
	}
	if same := labels[f.hub]; len(same) > 1 {
		other := same[0]
		if other == f.path {
			other = same[1]
		}
		warn("the hub's pages and Ollama have the tag %s for %s too", f.hub, other)
		return "", false
	}
	return f.hub, f.hub == defaultTag
}

// known returns the type of a name's encoding with an ending that readers know, "" if there is none.
func (f *published) known() string {
	if strings.EqualFold(f.name.Encoding, "MXFP4") {
		return "MXFP4_MOE"
	}
	return ""
}
