package shape

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggforge/arch/expr"
	"ggforge/fault"
	"ggforge/gguf"
)

// relation checks one relation, for every layer if it has arrays.
func (f *file) relation(text string) error {
	condition, claim, ok := strings.Cut(text, " implies ")
	if !ok {
		condition, claim = "", text
	}
	layers := int64(1)
	for bid := int64(0); bid < layers; bid++ {
		f.env.Used = nil
		if condition != "" {
			if _, _, holds, known := f.holds(condition, bid); !known || !holds {
				continue
			}
		}
		a, b, holds, known := f.holds(claim, bid)
		for _, key := range f.env.Used {
			layers = max(layers, int64(len(f.values[key])))
		}
		if known && !holds {
			return fault.Errorf(fault.Broken, "want %s, found %d and %d: %s", claim, a, b, f.describeKeys(bid))
		}
	}
	return nil
}

// holds evaluates "A <= B", "A = B" or "A divides B"; known is false when a key is absent.
func (f *file) holds(text string, bid int64) (a, b int64, holds, known bool) {
	for op, compare := range comparisons {
		left, right, ok := strings.Cut(text, op)
		if !ok {
			continue
		}
		a, okA := f.eval(expr.Must(expr.Parse(left)), bid)
		b, okB := f.eval(expr.Must(expr.Parse(right)), bid)
		return a, b, compare(a, b), okA && okB
	}
	panic(fmt.Sprintf("shape: relation %q", text))
}

var comparisons = map[string]func(a, b int64) bool{
	" <= ":      func(a, b int64) bool { return a <= b },
	" = ":       func(a, b int64) bool { return a == b },
	" divides ": func(a, b int64) bool { return a == 0 || b%a == 0 },
}

// numbers checks single values: floating-point numbers must be finite, keys of nonNegative not negative, and arrays of
// perLayer must have one element per layer.
func (f *file) numbers() error {
	for _, kv := range f.metadata {
		key, ok := strings.CutPrefix(kv.Key, f.arch+".")
		if !ok {
			continue
		}
		values := slices.Values([]gguf.Value{kv.Value})
		if kv.Value.Type() == gguf.ArrayType {
			if kv.Value.ElemType() != gguf.Float32Type && kv.Value.ElemType() != gguf.Float64Type {
				continue
			}
			values = kv.Value.Elems()
		}
		for v := range values {
			x, ok := v.Float()
			if !ok {
				break
			}
			want := ""
			switch {
			case math.IsNaN(x) || math.IsInf(x, 0) && !slices.Contains(infinite, key):
				want = "a finite number"
			case x < 0 && slices.Contains(nonNegative, key):
				want = "a number that is not negative"
			}
			if want != "" {
				from := f.from(key)
				if from != "" {
					from = fmt.Sprintf(" (from %q)", from)
				}
				return fault.Errorf(fault.Broken, "%s%s: want %s, found %v", kv.Key, from, want, x)
			}
		}
	}
	blocks, ok := f.key("block_count", '@', 0)
	for _, key := range perLayer {
		v, there := f.metadata.Get(f.fullKey(key))
		if ok && there && v.Type() == gguf.ArrayType && int64(v.Len()) != blocks {
			f.env.Used = []string{key, "block_count"}
			return fault.Errorf(fault.Broken, "%s: want one element for each of %d layers, found %d: %s",
				f.fullKey(key),
				blocks, v.Len(), f.describeKeys(-1))
		}
	}
	return nil
}
