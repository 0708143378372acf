package hf

// byteChars maps each byte to its character in byte-level vocabularies: bytes of printable Latin-1 characters to these
// characters, the other bytes to the characters from U+0100 on, in order. charBytes is the inverse.
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

// ByteLevelText replaces each byte of s by its character in byte-level vocabularies.
func ByteLevelText(s string) string {
	text := make([]rune, len(s))
	for i := range len(s) {
		text[i] = byteChars[s[i]]
	}
	return string(text)
}
