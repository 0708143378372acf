package hf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// precompiled is SentencePiece's table of replacements: a trie of the texts to
// replace and the replacements themselves.
//
//	size of the trie in bytes, 32 bits · trie: units of 32 bits · replacements, each ended by a zero byte
//
// A unit of the trie (a double array, as in darts-clone) holds the byte that leads to it, a flag that is set if a text
// ends here, and the offset of its children.
type precompiled struct {
	units []uint32
	texts []byte
}

// trieLabel marks the bits of a unit that hold its byte; the top bit is set in units
// that hold a value.
const trieLabel = 1<<31 | 0xFF

// offsetOf returns the offset of a unit's children, which is XORed with the unit's index.
func offsetOf(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// find returns the replacement of the shortest text that s begins with.
func (p *precompiled) find(s string) (string, bool) {
	if len(p.units) == 0 {
		return "", false
	}
	pos := offsetOf(p.units[0])
	for i := range len(s) {
		pos ^= uint32(s[i])
		if s[i] == 0 || int(pos) >= len(p.units) || p.units[pos]&trieLabel != uint32(s[i]) {
			return "", false
		}
		unit := p.units[pos]
		pos ^= offsetOf(unit)
		if int(pos) >= len(p.units) {
			return "", false
		}
		if unit>>8&1 == 0 {
			continue
		}
		at := int(p.units[pos] & (1<<31 - 1))
		if at > len(p.texts) {
			return "", false
		}
		text, _, _ := bytes.Cut(p.texts[at:], []byte{0})
		return string(text), utf8.Valid(text)
	}
	return "", false
}

// normalize replaces grapheme clusters of less than six bytes; of longer ones, and of those without a replacement in
// the table, it replaces the single characters.
func (p *precompiled) normalize(t text) (text, error) {
	b := build(t)
	replaced := func(start, end int) bool {
		to, ok := p.find(t.s[start:end])
		if ok {
			b.add(to, t.origin(start))
		}
		return ok
	}
	rest, state, cluster := t.s, -1, ""
	for pos := 0; rest != ""; {
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		end := pos + len(cluster)
		if len(cluster) >= 6 || !replaced(pos, end) {
			for pos < end {
				_, n := utf8.DecodeRuneInString(t.s[pos:])
				if !replaced(pos, pos+n) {
					b.keep(t, pos, pos+n)
				}
				pos += n
			}
		}
		pos = end
		if len(b.s) > t.budget.size {
			break
		}
	}
	return b.text(t), t.budget.check(len(b.s))
}

func parsePrecompiled(n node) Normalizer {
	data, err := base64.StdEncoding.DecodeString(n.str("precompiled_charsmap"))
	if err != nil {
		n.failf("precompiled_charsmap: %v", err)
		return nil
	}
	p := &precompiled{}
	if len(data) < 4 {
		n.failf("precompiled_charsmap: %d bytes, want at least 4", len(data))
		return nil
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if data = data[4:]; size > int64(len(data)) || size%4 != 0 {
		n.failf("precompiled_charsmap: trie of %d bytes, want a multiple of 4 up to %d", size, len(data))
		return nil
	}
	for i := 0; i < int(size); i += 4 {
		p.units = append(p.units, binary.LittleEndian.Uint32(data[i:]))
	}
	p.texts = data[size:]
	return p
}
