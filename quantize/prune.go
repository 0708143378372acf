package quantize

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// ParseLayers reads a list of layer numbers, "3,7".
func ParseLayers(s string) ([]int64, error) {
	var layers []int64
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 31)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "list of layers %q: %q is not a layer number", s, part)
		}
		layers = append(layers, int64(n))
	}
	return layers, nil
}

// renumbering maps old layer numbers to new ones, or to pruned.
type renumbering map[int64]int64

const pruned = -1

var layerNumber = regexp.MustCompile(`blk\.(\d+)\.`)

// layerSpan returns the layer number in name and its byte range name[from:to]; ok is false if there is none.
// Unlike layerOf it allows a prefix ("dec.blk.3.").
func layerSpan(name string) (n int64, from, to int, ok bool) {
	m := layerNumber.FindStringSubmatchIndex(name)
	if m == nil {
		return 0, 0, 0, false
	}
	n, err := strconv.ParseInt(name[m[2]:m[3]], 10, 32)
	return n, m[2], m[3], err == nil
}

// renumber numbers the layers that occur in names without gaps after removing the layers in drop. Layers before the
// first dropped one keep their numbers. The rest are numbered by ascending old number, or, with visiting set, in the
// order of names, as the reference does; that order mixes layers up when names have a prefix before "blk.".
func renumber(names []string, drop []int64, visiting bool) renumbering {
	var layers []int64
	seen := map[int64]bool{}
	for _, name := range names {
		if n, _, _, ok := layerSpan(name); ok && !seen[n] {
			seen[n] = true
			layers = append(layers, n)
		}
	}
	if !visiting {
		slices.Sort(layers)
	}
	first, next := slices.Min(drop), int64(0)
	r := renumbering{}
	for _, n := range layers {
		switch {
		case slices.Contains(drop, n):
			r[n] = pruned
		case n < first:
			r[n] = n
			next = n + 1
		default:
			r[n] = next
			next++
		}
	}
	return r
}

// name returns the new name of a tensor; ok is false if its layer is pruned.
func (r renumbering) name(name string) (_ string, ok bool) {
	n, from, to, found := layerSpan(name)
	number, known := r[n]
	switch {
	case !found || !known:
		return name, true
	case number == pruned:
		return "", false
	}
	return name[:from] + strconv.FormatInt(number, 10) + name[to:], true
}

// left returns the number of remaining layers.
func (r renumbering) left() (n int64) {
	for _, to := range r {
		if to != pruned {
			n++
		}
	}
	return n
}

// missing returns the numbers in drop that no layer has.
func (r renumbering) missing(drop []int64) (none []string) {
	for _, n := range drop {
		if _, ok := r[n]; !ok {
			none = append(none, strconv.FormatInt(n, 10))
		}
	}
	return none
}

// notPerLayer lists keys whose arrays are not per layer, even if their length equals the number of layers.
var notPerLayer = []string{"rope.dimension_sections"}

// pruneArrays removes the elements of pruned layers from arrays with one element per layer: loaders refuse a model
// whose arrays are longer than its number of layers.
func pruneArrays(m gguf.Metadata, arch string, layers int64, drop []int64) {
	prefix := gguf.ArchKey(arch, "")
	for i, kv := range m {
		key, ok := strings.CutPrefix(kv.Key, prefix)
		v := kv.Value
		if !ok || v.Type() != gguf.ArrayType || v.ElemType() == gguf.StringType || int64(v.Len()) != layers ||
			slices.Contains(notPerLayer, key) {
			continue
		}
		m[i].Value = v.Filter(func(layer int) bool { return !slices.Contains(drop, int64(layer)) })
	}
}

// check returns an error if no layer would remain.
func (r renumbering) check(drop []int64) error {
	if len(r) > 0 && r.left() == 0 {
		return fault.Errorf(fault.Usage, "pruning layers %s leaves none of %d",
			strings.Trim(fmt.Sprint(drop), "[]"), len(r))
	}
	return nil
}
