package card

import "fmt"

// levels are the words for a divergence, in nats per token, up to which they hold.
var levels = []struct {
	kld  float64
	text string
}{
	{0.001, "next to no loss"},
	{0.01, "very small loss"},
	{pickDivergence, "small loss"},
	{0.1, "noticeable loss"},
	{0.3, "large loss"},
}

// worst are the words for a larger divergence.
const worst = "heavy loss: a last resort"

const (
	// pickDivergence is the largest KL divergence, in nats per token, of a file that a card recommends, and pickBits
	// the fewest bits per weight.
	pickDivergence = 0.04
	pickBits       = 4.5
	// minPredicted is the number of predicted tokens from which a card draws conclusions.
	minPredicted = 5000
	// tolerance is the share of a divergence by which that of a file that is as good may be larger.
	tolerance = 0.1
)

// upper is the upper end of a figure: two standard errors above its mean.
func (f Figure) upper() float64 { return f.Mean + 2*f.Error }

// advise chooses the file to begin with, and sets the advice of each file. Files are sorted, the largest first. All
// of it follows from measured divergences: without them, or with few tokens, there is no advice.
func (c *Card) advise() {
	if !c.judges() {
		return
	}
	best, pick := 0, -1
	for i := range c.Files {
		f := &c.Files[i]
		if f.KLD == nil {
			continue
		}
		f.Advice = level(f.KLD.upper())
		if other, better := c.instead(i); other != nil {
			name := c.called(other)
			if better {
				f.Advice = fmt.Sprintf("no reason to take it: %s is smaller and nearer", name)
			} else {
				f.Advice += fmt.Sprintf("; %s is smaller and as near", name)
			}
			continue
		}
		if f.KLD.upper() <= pickDivergence && f.Bits >= pickBits {
			pick = i
		}
	}
	c.Pick = &c.Files[best]
	if pick >= 0 {
		c.Pick = &c.Files[pick]
	}
	if c.Pick.KLD == nil {
		c.Pick = nil
		return
	}
	c.Pick.Advice = "start here: " + c.Pick.Advice
}

// judges reports whether the measurements allow advice. If not, Unjudged says why.
func (c *Card) judges() bool {
	switch {
	case !c.HasDivergence:
		c.Unjudged = "How far these files are from the original was not measured, so none of them is recommended."
	case c.predicted < minPredicted:
		c.Unjudged = fmt.Sprintf("The measurements are over %d predicted tokens; it takes %d to recommend a file.",
			c.predicted, minPredicted)
	}
	return c.Unjudged == ""
}

// called returns what advice calls a file: its type if no other file has that, else its name.
func (c *Card) called(f *File) string {
	for i := range c.Files {
		if o := &c.Files[i]; o != f && o.Type == f.Type || f.Type == "" {
			return code(baseName(f.Path))
		}
	}
	return f.Type
}

func level(kld float64) string {
	for _, l := range levels {
		if kld <= l.kld {
			return l.text
		}
	}
	return worst
}

// instead returns the smallest of the smaller files that diverge less than file i, beyond the error of the paired
// difference (better), or else of those that diverge as much, within the tolerance; nil if there is none.
func (c *Card) instead(i int) (other *File, better bool) {
	f := &c.Files[i]
	for k := len(c.Files) - 1; k > i; k-- {
		o := &c.Files[k]
		if o.KLD == nil || o.Bytes >= f.Bytes {
			continue
		}
		d, ok := difference(o.measured, f.measured)
		switch {
		case !ok:
		case d.upper() < 0 && !better:
			other, better = o, true
		case d.upper() <= tolerance*max(o.KLD.Mean, f.KLD.Mean) && other == nil:
			other = o
		}
	}
	return other, better
}
