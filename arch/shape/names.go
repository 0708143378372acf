package shape

import (
	"math"
	"strings"
)

// Names returns the names of rows that match a tensor of the file, in order of precedence. The row of a weight also
// matches its bias and its scales.
func Names(name string) []string {
	base := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "enc."), "dec."), ".weight")
	comps := strings.Split(base, ".")
	for i, s := range comps {
		if _, isNumber := number(s); isNumber {
			comps[i] = "{bid}"
			break
		}
	}
	list := []string{base, strings.TrimPrefix(strings.Join(comps, "."), "blk.{bid}.")}
	if strings.HasPrefix(name, "dec.") {
		list = append([]string{"dec." + list[1]}, list...)
	}
	for _, s := range list {
		if weight, isBias := strings.CutSuffix(s, ".bias"); isBias {
			list = append(list, weight)
		}
		if weight, isFactor := weightOfScale(s); isFactor {
			list = append(list, weight)
		}
	}
	return list
}

// weightOfScale returns the NVFP4 weight that a tensor has the scale of, or the scale of whose input.
func weightOfScale(name string) (weight string, ok bool) {
	if weight, ok = strings.CutSuffix(name, ".input_scale"); !ok {
		weight, ok = strings.CutSuffix(name, ".scale")
	}
	return weight, ok
}

// scaleRule returns the row of the scales of a weight: one, or one for each matrix of a stack.
func scaleRule(rule string) string {
	list := strings.Split(rule, "|")
	for i, dims := range list {
		list[i] = "1"
		if d := strings.Split(dims, ","); len(d) > 2 {
			list[i] = strings.TrimSpace(d[2])
		}
	}
	return strings.Join(list, " | ")
}

// layer returns the first number in a name.
func layer(name string) int64 {
	for s := range strings.SplitSeq(name, ".") {
		if n, isNumber := number(s); isNumber {
			return n
		}
	}
	return 0
}

func (r Rules) row(name string) (string, bool) {
	if rule, ok := r.Tensors[name]; ok {
		return rule, true
	}
	rule, ok := Common.Tensors[name]
	return rule, ok
}

// biasRule returns the row of the biases of a weight.
func biasRule(rule string) string {
	list := strings.Split(rule, "|")
	for i, dims := range list {
		if _, rest, ok := strings.Cut(dims, ","); ok {
			list[i] = strings.TrimSpace(rest)
		}
	}
	return strings.Join(list, " | ")
}

func number(s string) (n int64, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > math.MaxInt32 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, s != ""
}
