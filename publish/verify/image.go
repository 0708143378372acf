package verify

import (
	"strings"

	"ggforge/arch/diffusion"
	"ggforge/gguf"
)

// shapeKey begins keys with the dimensions that a tensor had before it got rows of 256: outermost first, as i32.
const shapeKey = "comfy.gguf.orig_shape."

// images checks a file of an image or video model: loaders know the model by the names of its tensors, and give those
// that a key names its dimensions.
func images(image *diffusion.Model, files []*gguf.File, all *findings) {
	f := files[0]
	if v, ok := f.Metadata.Get(gguf.KeyFileType); !ok {
		all.note("%s: has no key %q", f.Path, gguf.KeyFileType)
	} else if _, isInt := v.Int(); !isInt {
		all.add("%s: key %q: is %s, want a number", f.Path, gguf.KeyFileType, v.Short())
	}
	var names []string
	elements := map[string]int64{}
	for name, ne := range (&gguf.Set{Files: files}).Shapes() {
		names = append(names, name)
		n := int64(1)
		for _, d := range ne {
			n *= d
		}
		elements[name] = n
	}
	for _, kv := range f.Metadata {
		name, ok := strings.CutPrefix(kv.Key, shapeKey)
		if !ok {
			continue
		}
		if kv.Value.Type() != gguf.ArrayType || kv.Value.ElemType() != gguf.Int32Type {
			all.add("%s: key %q: is %v, want an array of i32", f.Path, kv.Key, kv.Value.Type())
			continue
		}
		have, there := elements[name]
		n := int64(1)
		for e := range kv.Value.Elems() {
			d, _ := e.Int()
			if d < 0 || d > 0 && n > (1<<62)/d {
				n = -1
				break
			}
			n *= d
		}
		switch {
		case !there && !all.lost && len(names) > 0 && !all.later:
			all.note("%s: key %q: there is no such tensor", f.Path, kv.Key)
		case there && n != have:
			all.add("%s: key %q: is %s, but tensor %q has %d elements", f.Path, kv.Key, kv.Value.Short(), name, have)
		}
	}
	if v, _ := f.Metadata.Get(gguf.KeySplitCount); len(names) == 0 || all.lost || all.later {
		return
	} else if n, _ := v.Int(); n > 1 && n != int64(len(files)) {
		return // the others have names, too
	}
	own := names
	if prefix := diffusion.Prefix(names); prefix != "" {
		own = nil
		for _, name := range names {
			if name, ok := diffusion.Strip(name, prefix); ok {
				own = append(own, name)
			}
		}
	}
	found, err := diffusion.Detect(own)
	switch {
	case err != nil:
		all.note("%s: key %q is %q: %v", f.Path, gguf.KeyArchitecture, image.Name, err)
	case found.Name != image.Name:
		all.add("%s: key %q is %q, but by the names of its tensors the model is %q", f.Path, gguf.KeyArchitecture,
			image.Name, found.Name)
	}
}
