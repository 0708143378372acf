package quantize

import "ggforge/gguf"

// need says how much a type depends on importance.
type need uint8

const (
	needIgnored need = iota // the encoder does not look at it
	needNone                // better with it
	needLayer               // refused without importance, except for embedding and output head
	needAll                 // the encoder has no way to do without
)

// target is a type that tensors can be converted to.
//
// fallback is the type for a tensor whose rows are not whole blocks of the
// wanted type; the type itself where no smaller block of that size exists, so
// that the rows go to F16. With no fallback such a tensor cannot be converted.
type target struct {
	fallback    gguf.Type
	hasFallback bool
	need        need
}

func to(t gguf.Type, n need) target { return target{t, true, n} }

// targets has one row per type with an encoder; absent are intermediate types of matrix products (Q8_1, Q8_K), integers, F64.
var targets = map[gguf.Type]target{
	gguf.TypeF32:  to(gguf.TypeF32, needIgnored),
	gguf.TypeF16:  to(gguf.TypeF16, needIgnored),
	gguf.TypeBF16: to(gguf.TypeBF16, needIgnored),

	gguf.TypeQ4_0:   to(gguf.TypeQ4_0, needNone),
	gguf.TypeQ4_1:   to(gguf.TypeQ4_1, needNone),
	gguf.TypeQ5_0:   to(gguf.TypeQ5_0, needNone),
	gguf.TypeQ5_1:   to(gguf.TypeQ5_1, needNone),
	gguf.TypeQ8_0:   to(gguf.TypeQ8_0, needIgnored),
	gguf.TypeIQ4_NL: to(gguf.TypeIQ4_NL, needNone),
	gguf.TypeMXFP4:  to(gguf.TypeMXFP4, needIgnored),

	gguf.TypeQ2_K: to(gguf.TypeQ4_0, needNone),
	gguf.TypeQ3_K: to(gguf.TypeQ4_0, needNone),
	gguf.TypeQ4_K: to(gguf.TypeQ5_0, needNone),
	gguf.TypeQ5_K: to(gguf.TypeQ5_1, needNone),
	gguf.TypeQ6_K: to(gguf.TypeQ8_0, needNone),

	gguf.TypeQ2_0:  to(gguf.TypeQ4_0, needIgnored),
	gguf.TypeTQ1_0: to(gguf.TypeQ4_0, needIgnored),
	gguf.TypeTQ2_0: to(gguf.TypeQ4_0, needIgnored),

	gguf.TypeIQ1_S:   to(gguf.TypeIQ4_NL, needAll),
	gguf.TypeIQ1_M:   to(gguf.TypeIQ4_NL, needLayer),
	gguf.TypeIQ2_XXS: to(gguf.TypeIQ4_NL, needAll),
	gguf.TypeIQ2_XS:  to(gguf.TypeIQ4_NL, needAll),
	gguf.TypeIQ2_S:   to(gguf.TypeIQ4_NL, needLayer),
	gguf.TypeIQ3_XXS: to(gguf.TypeIQ4_NL, needLayer),
	gguf.TypeIQ3_S:   to(gguf.TypeIQ4_NL, needNone),
	gguf.TypeIQ4_XS:  to(gguf.TypeIQ4_NL, needNone),

	gguf.TypeQ1_0:  {},
	gguf.TypeNVFP4: {},
}

// fits reports whether rows of n elements are whole blocks of t.
func fits(t gguf.Type, n int64) bool { return n%t.BlockLen() == 0 }

// fallbackFor returns the type that rows of n elements get when they are wanted
// as t: t itself if they are whole blocks of t. ok is false if there is none.
func fallbackFor(t gguf.Type, n int64) (_ gguf.Type, ok bool) {
	if fits(t, n) {
		return t, true
	}
	row := targets[t]
	if !row.hasFallback {
		return t, false
	}
	if fits(row.fallback, n) {
		return row.fallback, true
	}
	return gguf.TypeF16, true
}
