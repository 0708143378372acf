package card

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"ggforge/tokenizer/chat"
)

// maxPrompt is the largest prompt format in bytes that a card shows.
const maxPrompt = 8 << 10

// setPrompt sets Prompt to what the chat template makes of a conversation. There is none if the template cannot be
// rendered, or if its text is too long or has a mark of a card.
func (c *Card) setPrompt(ctx context.Context) error {
	text, ok, err := chat.PromptFormat(ctx, c.metadata)
	if err != nil || !ok {
		return err
	}
	if text = visible(text); len(text) <= maxPrompt && !strings.Contains(text, "ggtool card") {
		c.Prompt = fence("", text)
	}
	return nil
}

// visible returns text with escapes for characters that are not shown, but for the ends of lines.
func visible(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}
