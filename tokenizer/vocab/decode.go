package vocab

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// byteOf is byteChars the other way round.
var byteOf = func() map[rune]byte {
	m := map[rune]byte{}
	for b, s := range byteChars {
		r, _ := utf8.DecodeRuneInString(s)
		m[r] = byte(b)
	}
	return m
}()

// Piece returns the bytes that a token stands for in a text, as the runtime's llama_token_to_piece does with special
// tokens: they may be a part of a character. Of a special token they are its name. id is less than Len.
func (v *Vocab) Piece(id int32) string {
	t := &v.tokens[id]
	if t.attr&(unknown|controlToken|userDefined) != 0 {
		return t.text
	}
	if t.attr&byteToken != 0 {
		if b, ok := byteName(t.text); ok {
			return string([]byte{b})
		}
	}
	return v.enc.piece(t.text)
}

// byteName returns the byte of a token such as <0x0A>.
func byteName(text string) (byte, bool) {
	hex, ok := strings.CutPrefix(text, "<0x")
	if !ok || len(hex) != 3 || hex[2] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(hex[:2], 16, 8)
	return byte(b), err == nil
}

// Decode returns the text of tokens, special ones by their names: that of Pieces, but for the space that the encoder
// puts before a text. Ids are less than Len. Bytes that are not UTF-8 stay.
func (v *Vocab) Decode(ids []int32) string {
	var b strings.Builder
	for i, id := range ids {
		s := v.Piece(id)
		if i == 0 && v.spacePrefix {
			s = strings.TrimPrefix(s, " ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// spaced returns the text of a token in which ▁ is a blank.
func spaced(text string) string { return strings.ReplaceAll(text, blank, " ") }

func (k *spm) piece(text string) string       { return spaced(text) }
func (k *unigram) piece(text string) string   { return spaced(text) }
func (k *wordPiece) piece(text string) string { return spaced(text) }
func (k *rwkv) piece(text string) string      { return unescape(text) }
func (k *plamo) piece(text string) string     { return text }

func (k *bpe) piece(text string) string {
	switch {
	case k.blanks:
		return spaced(text)
	case k.raw:
		return text
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if b, ok := byteOf[r]; ok {
			out = append(out, b)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}
