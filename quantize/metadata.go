package quantize

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// maxOverride is the longest key and the longest string of an override: the
// reference has that much room for them.
const maxOverride = 127

// ParseOverride reads "key=type:value", as users write an override. The types
// are int, which gives a u32 of the absolute value, float (f32), bool and str.
func ParseOverride(s string) (gguf.KV, error) {
	fail := func(want string) (gguf.KV, error) {
		return gguf.KV{}, fault.Errorf(fault.Usage, "override %q: want %s", s, want)
	}
	key, rest, ok := strings.Cut(s, "=")
	typ, text, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || key == "" || len(key) > maxOverride {
		return fail("key=type:value, with a key of 1 to 127 bytes")
	}
	switch typ {
	case "int":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < -math.MaxUint32 || n > math.MaxUint32 {
			return fail("an integer whose absolute value has 32 bits")
		}
		return gguf.KV{Key: key, Value: gguf.Uint32(uint32(max(n, -n)))}, nil
	case "float":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fail("a number")
		}
		return gguf.KV{Key: key, Value: gguf.Float32(float32(f))}, nil
	case "bool":
		if text != "true" && text != "false" {
			return fail("true or false")
		}
		return gguf.KV{Key: key, Value: gguf.Bool(text == "true")}, nil
	case "str":
		if len(text) > maxOverride {
			return fail("a string of at most 127 bytes")
		}
		return gguf.KV{Key: key, Value: gguf.String(text)}, nil
	}
	return fail("type int, float, bool or str")
}

// overridden returns m as the recipe sees it. An override counts if it has the
// kind of the value it replaces; arrays are kept.
func overridden(m gguf.Metadata, override []gguf.KV) gguf.Metadata {
	m = slices.Clone(m)
	for _, kv := range override {
		old, ok := m.Get(kv.Key)
		_, isInt := old.Int()
		_, toInt := kv.Value.Int()
		if same := old.Type() == kv.Value.Type() || isInt && toInt; !ok && (toInt || kv.Key == gguf.KeyArchitecture) ||
			ok && same {
			m.Set(kv.Key, kv.Value)
		}
	}
	return m
}

// outputMetadata returns the output's pairs: those of the input, without pairs about shards or the input file only, and
// at the end the pairs about the quantization, in the order of the reference. In files of image models those that the
// input has, too, stay in their places.
func (j *Job) outputMetadata() gguf.Metadata {
	m := j.Input.Metadata.Carried()
	put := m.Move
	if j.image != nil {
		put = m.Set
	}
	put(gguf.KeyQuantizationVersion, gguf.Uint32(gguf.QuantizationVersion))
	put(gguf.KeyFileType, gguf.Uint32(j.fileType()))
	for _, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors} {
		m.Delete(key)
	}
	if j.layers != nil && !j.opt.Reference {
		pruneArrays(m, j.traits.arch, j.traits.layers, j.opt.PruneLayers)
	}
	for _, kv := range j.opt.Override {
		m.Move(kv.Key, kv.Value)
	}
	if j.matrix.Len() > 0 && !j.opt.HideMatrix {
		for _, kv := range j.matrix.Metadata(j.opt.Reference) {
			m.Move(kv.Key, kv.Value)
		}
	}
	if j.layers != nil && j.traits.arch != "" {
		m.Move(gguf.ArchKey(j.traits.arch, blockCountKey), gguf.Uint32(uint32(j.layers.left())))
	}
	return m
}

// guessed marks a file type that was derived from the tensors
// (LLAMA_FTYPE_GUESSED).
const guessed = 1024

// fileType returns general.file_type of the output. A copy keeps the input's;
// when it has none, that of the most frequent tensor type is taken.
func (j *Job) fileType() uint32 {
	if !j.opt.Recipe.Copy {
		return j.opt.Recipe.FileType
	}
	if v, ok := j.Input.Metadata.Get(gguf.KeyFileType); ok && v.Type() == gguf.Uint32Type {
		n, _ := v.Int()
		return uint32(n)
	}
	count := map[gguf.Type]int{}
	most := gguf.TypeF32
	for _, i := range outputOrder(j.Input.Tensors, false) {
		t := j.Input.Tensors[i].Type
		if count[t]++; count[t] > count[most] {
			most = t
		}
	}
	if r, ok := recipeOf(most); ok {
		return r.FileType | guessed
	}
	return guessed // F32
}

// recipeOf returns the recipe that a file with most tensors of type t is taken
// for: the one of that name, or whose default type it is.
func recipeOf(t gguf.Type) (*Recipe, bool) {
	if r, ok := LookupRecipe(t.String()); ok && !r.Own {
		return r, true
	}
	for _, r := range Recipes() {
		if !r.Copy && !r.Own && r.Type == t {
			return r, true
		}
	}
	return nil, false
}
