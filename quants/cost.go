package quants

import "ggforge/gguf"

// encodeCosts is how many picoseconds an element takes on one core, without and
// with importance, with vectors of 256 bits (BENCHMARKS.md). Only the proportions
// matter: estimates of the time that is left go by them.
var encodeCosts = map[gguf.Type][2]int64{
	gguf.TypeF32:     {140, 140},
	gguf.TypeF16:     {240, 240},
	gguf.TypeQ4_0:    {410, 5500},
	gguf.TypeQ4_1:    {410, 14300},
	gguf.TypeQ5_0:    {460, 6000},
	gguf.TypeQ5_1:    {470, 14300},
	gguf.TypeQ8_0:    {400, 400},
	gguf.TypeQ2_K:    {10000, 18200},
	gguf.TypeQ3_K:    {6700, 6700},
	gguf.TypeQ4_K:    {9100, 14200},
	gguf.TypeQ5_K:    {7300, 14300},
	gguf.TypeQ6_K:    {5600, 6000},
	gguf.TypeIQ2_XXS: {91000, 91000},
	gguf.TypeIQ2_XS:  {130000, 130000},
	gguf.TypeIQ3_XXS: {150000, 160000},
	gguf.TypeIQ1_S:   {56000, 56000},
	gguf.TypeIQ4_NL:  {7600, 8000},
	gguf.TypeIQ3_S:   {99000, 99000},
	gguf.TypeIQ2_S:   {72000, 72000},
	gguf.TypeIQ4_XS:  {8000, 8600},
	gguf.TypeIQ1_M:   {66000, 67000},
	gguf.TypeBF16:    {160, 160},
	gguf.TypeTQ1_0:   {480, 480},
	gguf.TypeTQ2_0:   {250, 250},
	gguf.TypeMXFP4:   {1100, 1100},
	gguf.TypeNVFP4:   {1000, 1000},
	gguf.TypeQ1_0:    {260, 260},
	gguf.TypeQ2_0:    {350, 350},
}

// Cost returns about how many picoseconds it takes to encode an element on one
// core, in proportion to other types.
func (c *Codec) Cost(importance bool) int64 {
	if importance {
		return encodeCosts[c.typ][1]
	}
	return encodeCosts[c.typ][0]
}
