package card

import "fmt"

// levels translates a divergence, in nats per token, into advice; bits is the corresponding bits per weight of files
// without a measurement.
var levels = []struct {
	kld  float64 // largest divergence of the level
	bits float64 // smallest bits per weight of the level
	text string
}{
	{0.001, 7.5, "as good as the original"},
	{0.01, 6, "hardly a difference"},
	{0.04, 4.6, "good"},
	{0.1, 3.8, "fair: where memory is short"},
	{0.3, 3, "poor: where nothing else fits"},
	{0, 0, "last resort"},
}

// goodEnough is the worst level, an index of levels, at which a file is recommended: the smallest such file is.
const goodEnough = 2

// level returns the row of levels for a file.
func (f *File) level() int {
	for i, l := range levels[:len(levels)-1] {
		if f.KLD != nil && f.KLD.Mean <= l.kld || f.KLD == nil && f.Bits >= l.bits {
			return i
		}
	}
	return len(levels) - 1
}

// advise sets the advice of each file. Files are sorted, the largest first. Advice is by measurements, or by bits per
// weight for files without.
func (c *Card) advise() {
	take := -1
	for i := range c.Files {
		f := &c.Files[i]
		f.Advice = levels[f.level()].text
		better := -1 // the smallest file that diverges no more
		for k := i + 1; k < len(c.Files); k++ {
			if o := &c.Files[k]; f.KLD != nil && o.KLD != nil && o.KLD.Mean <= f.KLD.Mean {
				better = k
			}
		}
		switch {
		case better >= 0:
			f.Advice = fmt.Sprintf("%s; %s is smaller and at least as good", f.Advice,
				code(baseName(c.Files[better].Path)))
		case f.level() <= goodEnough:
			take = i
		}
	}
	if take >= 0 {
		c.Files[take].Advice = "**take this if it fits**: " + c.Files[take].Advice
	}
}
