package table

import (
	"slices"
	"strings"

	"ggforge/arch/config"
)

// MaxMissing bounds lists that grow with the number of layers, which comes from an untrusted file.
const MaxMissing = 10_000

// missing lists the names without a source. A row with some of its sources must have all, even if it is optional; a
// row is not missing when other rows provide its outputs.
func (a *Arch) missing(c *config.View, blocks int64, provided map[string]bool,
	found func(*TensorRow, int64, string) []int) ([]string, error) {
	var missing []string
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if row.Drops() {
			continue
		}
		first, end := int64(-1), int64(0)
		nextNOnly := a.NextN != nil && c.Options.NextN == config.OnlyNextN
		switch {
		case strings.Contains(row.HF, "{bid}"):
			first, end = 0, blocks
			if nextNOnly {
				n, err := c.BlockCount()
				if err != nil {
					return nil, err
				}
				first = n
			}
		case nextNOnly && !a.NextN.shared(row.HF+".weight"):
			continue
		}
		for bid := first; bid < end && len(missing) < MaxMissing; bid++ {
			l := Layer{c, bid}
			ok, err := row.applies(l)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			suffix := ".weight"
			if row.Exact {
				suffix = ""
			}
			weight := found(row, bid, suffix)
			bias := []int(nil)
			if row.Bias != NoBias && !row.Exact {
				bias = found(row, bid, ".bias")
			}
			add := func(have []int, suffix string) error {
				n, err := row.sources(l)
				for i := int64(0); i < n && len(missing) < MaxMissing; i++ {
					if have == nil || have[i] < 0 {
						missing = append(missing, row.hfName(l, i, suffix))
					}
				}
				return err
			}
			providedElsewhere := !slices.ContainsFunc(row.Outputs(bid, suffix),
				func(name string) bool { return !provided[name] })
			if weight != nil || !row.Optional && !providedElsewhere {
				if err := add(weight, suffix); err != nil {
					return nil, err
				}
			}
			if bias != nil || row.Bias == NeedBias && weight != nil {
				if err := add(bias, ".bias"); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// Missing returns the names, as in the checkpoint, of weights that a model of
// blocks layers needs and that have reports absent; at most MaxMissing of them.
func (a *Arch) Missing(blocks int64, have func(hfName string) bool) []string {
	missing, err := a.missing(nil, blocks, nil, func(row *TensorRow, bid int64, suffix string) []int {
		if have(row.hfName(Layer{nil, bid}, 0, suffix)) {
			return []int{0}
		}
		return nil
	})
	if err != nil {
		panic(err) // no row of these architectures has a condition
	}
	return missing
}

// Required returns the names in the file of the tensors without which no checkpoint with a configuration is converted.
func (a *Arch) Required(c *config.View) (names []string, err error) {
	blocks, err := a.Blocks(c)
	if err != nil {
		return nil, err
	}
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if row.Drops() || row.Optional || !row.makesTensor() {
			continue
		}
		suffix := ".weight"
		if row.Exact {
			suffix = ""
		}
		first, end := int64(-1), int64(0)
		if strings.Contains(row.HF, "{bid}") {
			first, end = 0, blocks
		}
		for bid := first; bid < end; bid++ {
			ok, err := row.applies(Layer{c, bid})
			if err != nil {
				return nil, err
			}
			if ok {
				names = append(names, row.Outputs(bid, suffix)...)
			}
		}
	}
	return names, nil
}
