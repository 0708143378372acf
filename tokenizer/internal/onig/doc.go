// Package onig finds matches of regular expressions as Oniguruma (6.9.10, syntax
// and options of the tokenizers library) does, with its Unicode data, for the
// expressions that split text into words:
//
//	a .  \n \x41 \x{1F600} é      characters; . is all but the line feed
//	[a-z\p{L}[^x]&&[:alnum:]]          sets, nested, with intersection
//	\d \w \s \h \p{L} \P{Han} \p{^Nd}  sets by name; capitals are complements
//	ab  a|b  (…)  (?:…)  (?i:…)  (?m:…)  (?>…)
//	* + ? {2} {2,} {,3} {2,3}          greedy; ? after it lazy, + possessive
//	^ $ \A \z \Z \b \B  (?=…) (?!…) (?<=…) (?<!…)
//
// Groups capture nothing, since only whole matches are asked for. Back
// references, \K, \X, \G, conditionals and calls are refused, and case
// insensitivity for anything but ASCII letters that no single character folds to.
//
// A match is found by backtracking. Its cost is bounded: after a number of steps
// in proportion to the text a search ends with an error.
package onig

import (
	"ggforge/fault"
)

// Kinds of error, for errors.Is.
var (
	ErrBroken      = fault.Broken      // not a regular expression
	ErrUnsupported = fault.Unsupported // one that is not handled here, or that takes too long
)
