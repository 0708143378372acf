// Package onig finds the matches of regular expressions, for the expressions by
// which tokenizers split text into words. Matches and Unicode data are those of
// Oniguruma 6.9.10 with the syntax and options of the tokenizers library:
//
//	a .  \n \x41 \x{1F600} é           characters; . is any but the line feed
//	[a-z\p{L}[^x]&&[:alnum:]]          sets, nested, with intersection
//	\d \w \s \h \p{L} \P{Han} \p{^Nd}  sets by name; capitals are complements
//	ab  a|b  (…)  (?:…)  (?i:…)  (?m:…)  (?>…)
//	* + ? {2} {2,} {,3} {2,3}          greedy; ? after it lazy, + possessive
//	^ $ \A \z \Z \b \B  (?=…) (?!…) (?<=…) (?<!…)
//
// Groups capture nothing, since only whole matches are needed. Back references,
// \K, \X, \G, conditionals and calls are refused. So is case insensitivity for
// characters that are not ASCII, and for two ASCII letters that a single
// character folds to ("ss" for ß).
//
// Matching backtracks. Its cost is bounded: a search that takes more steps than
// a multiple of the text's length ends with an error.
package onig

import (
	"ggforge/fault"
)

// Kinds of error, for errors.Is.
var (
	ErrBroken      = fault.Broken      // not a regular expression
	ErrUnsupported = fault.Unsupported // a regular expression that is not supported, or takes too long
)
