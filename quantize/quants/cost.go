package quants

import "ggforge/gguf"

// CopyCost is about how many picoseconds an element takes that keeps its type.
const CopyCost = 300

// encodeCosts is how many picoseconds an element takes on one core, decoding included,
// without and with importance, measured with vectors of 256 bits (make bench).
// Only the proportions matter: estimates of the time that is left go by them.
var encodeCosts = map[gguf.Type][2]int64{
	gguf.TypeF32: {1000, 1000}, gguf.TypeF16: {1000, 1000}, gguf.TypeBF16: {1000, 1000}, gguf.TypeQ8_0: {1500, 1500},
	gguf.TypeQ4_0: {2000, 15000}, gguf.TypeQ4_1: {2000, 45000}, gguf.TypeQ5_0: {2000, 15000}, gguf.TypeQ5_1: {2000, 45000},
	gguf.TypeQ2_K: {15000, 30000}, gguf.TypeQ3_K: {8000, 15000}, gguf.TypeQ4_K: {15000, 30000}, gguf.TypeQ5_K: {13000, 30000}, gguf.TypeQ6_K: {12000, 12000},
	gguf.TypeIQ4_NL: {40000, 40000}, gguf.TypeIQ4_XS: {40000, 40000}, gguf.TypeIQ3_S: {150000, 150000}, gguf.TypeIQ3_XXS: {200000, 200000},
	gguf.TypeIQ2_S: {100000, 100000}, gguf.TypeIQ2_XS: {200000, 200000}, gguf.TypeIQ2_XXS: {130000, 130000},
	gguf.TypeIQ1_S: {100000, 100000}, gguf.TypeIQ1_M: {120000, 120000},
	gguf.TypeMXFP4: {3000, 3000}, gguf.TypeNVFP4: {3000, 3000}, gguf.TypeTQ1_0: {2000, 2000}, gguf.TypeTQ2_0: {2000, 2000},
	gguf.TypeQ1_0: {2000, 2000}, gguf.TypeQ2_0: {2000, 2000},
}

// Cost returns about how many picoseconds it takes to encode an element on one
// core, in proportion to other types.
func (c *Codec) Cost(importance bool) int64 {
	if importance {
		return encodeCosts[c.typ][1]
	}
	return encodeCosts[c.typ][0]
}
