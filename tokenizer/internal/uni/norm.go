package uni

import "ggforge/internal/text/norm"

// The normal forms of the tokenizers library, with the data of Unicode 9: later characters have no decomposition and
// combine with nothing.
var (
	NFC  = older(norm.NFC)
	NFD  = older(norm.NFD)
	NFKC = older(norm.NFKC)
	NFKD = older(norm.NFKD)
)

func older(f norm.Form) norm.Form {
	f.Unassigned = func(r rune) bool { return later().Has(r) }
	return f
}
