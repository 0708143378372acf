package table

import (
	"strconv"
	"strings"
	"sync"

	"ggforge/arch/config"
)

// pattern is one name that a row matches: the row's HF name with one of Parts and
// one suffix.
type pattern struct {
	row    *TensorRow
	comps  []string // of the whole name; "{bid}" and "{xid}" match a number, "shard_{xid}" one at its end
	part   int64    // index in Parts
	suffix string
}

// index finds the patterns of a name; numbers in its keys are "#".
type index map[string][]pattern

// lookup returns the index of an architecture's rows, built on the first call.
type lookup struct {
	once   sync.Once
	byName index
}

func (a *Arch) index() index {
	a.lookup.once.Do(func() {
		a.lookup.byName = index{}
		for i := range a.Tensors {
			row := &a.Tensors[i]
			suffixes := []string{".weight"}
			if row.Exact || row.GGUF == "" && row.Split == nil {
				suffixes = []string{""}
			} else if row.Bias != NoBias {
				suffixes = append(suffixes, ".bias")
			}
			parts := row.Parts
			if len(parts) == 0 {
				parts = []string{""}
			}
			for p, part := range parts {
				for _, suffix := range suffixes {
					name := strings.ReplaceAll(row.HF, "{part}", part) + suffix
					comps := strings.Split(name, ".")
					key := make([]string, len(comps))
					for i, c := range comps {
						if c == "{bid}" {
							c = "#"
						}
						key[i] = numberless(strings.ReplaceAll(c, "{xid}", "0"))
					}
					k := strings.Join(key, ".")
					a.lookup.byName[k] = append(a.lookup.byName[k], pattern{row, comps, int64(p), suffix})
				}
			}
		}
	})
	return a.lookup.byName
}

// numberless returns a component of a name with "#" in place of the number that it is, or that follows its last
// underscore.
func numberless(s string) string {
	if at := strings.LastIndexByte(s, '_') + 1; isNumber(s[at:]) {
		return s[:at] + "#"
	}
	return s
}

func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// IsLayerBelow reports whether s is the number of a layer below blocks.
func IsLayerBelow(s string, blocks int64) bool {
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && isNumber(s) && n < blocks
}

// match is a tensor of the checkpoint with its row.
type match struct {
	pattern
	bid, xid int64 // -1 for none
}

// match finds the row of a name; ok is false without one. For an expert number beyond the model's, ok is false and m
// has the row.
func (a *Arch) match(c *config.View, name string, blocks int64) (m match, ok bool, err error) {
	comps := strings.Split(name, ".")
	key := make([]string, len(comps))
	for i, s := range comps {
		key[i] = numberless(s)
	}
	var extra match
	for _, p := range a.index()[strings.Join(key, ".")] {
		m := match{pattern: p, bid: -1, xid: -1}
		ok := true
		for i, s := range p.comps {
			switch s {
			case "{bid}":
				m.bid, _ = strconv.ParseInt(comps[i], 10, 64)
			case "{xid}":
				m.xid, _ = strconv.ParseInt(comps[i], 10, 64)
			default:
				before, numbered := strings.CutSuffix(s, "{xid}")
				if numbered && strings.HasPrefix(comps[i], before) {
					m.xid, _ = strconv.ParseInt(comps[i][len(before):], 10, 64)
				} else {
					ok = ok && s == comps[i]
				}
			}
		}
		if !ok || m.bid >= blocks {
			continue
		}
		l := Layer{c, m.bid}
		if ok, err = p.row.applies(l); err != nil || !ok {
			if err != nil {
				return m, false, err
			}
			continue
		}
		if m.xid >= 0 {
			n, err := p.row.experts(l)
			if err != nil {
				return m, false, err
			}
			if m.xid >= n {
				extra = m
				continue
			}
		}
		return m, true, nil
	}
	return extra, false, nil
}
