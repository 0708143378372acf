package quantize

import (
	"ggforge/gguf"
	"ggforge/quants"
)

// fits reports whether rows of n elements are whole blocks of t.
func fits(t gguf.Type, n int64) bool { return n%t.BlockLen() == 0 }

// fallbackFor returns the type that rows of n elements get when they are wanted
// as t: t itself if they are whole blocks of t. ok is false if there is none.
func fallbackFor(t gguf.Type, n int64) (_ gguf.Type, ok bool) {
	if fits(t, n) {
		return t, true
	}
	fallback, ok := quants.Lookup(t).Fallback()
	if !ok {
		return t, false
	}
	if fits(fallback, n) {
		return fallback, true
	}
	return gguf.TypeF16, true
}
