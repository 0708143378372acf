package hf

// byteChars gives each byte its character in byte-level
// vocabularies: printable Latin-1 characters are themselves, the other
// bytes for the characters from U+0100 on, in order. charBytes is the inverse.
var byteChars, charBytes = func() (chars [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range chars {
		switch {
		case '!' <= b && b <= '~', 0xA1 <= b && b <= 0xAC, 0xAE <= b:
			chars[b] = rune(b)
		default:
			chars[b] = next
			next++
		}
		bytes[chars[b]] = byte(b)
	}
	return chars, bytes
}()

// ByteLevelText spells bytes in the alphabet of byte-level vocabularies.
func ByteLevelText(s string) string {
	text := make([]rune, len(s))
	for i := range len(s) {
		text[i] = byteChars[s[i]]
	}
	return string(text)
}
