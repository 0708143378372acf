package chat

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
)

// FuzzCompare looks at templates of any content and compares two of them: all calls end, and texts in findings have no
// control characters and bounded lengths.
func FuzzCompare(f *testing.F) {
	f.Add(chatML, strings.ReplaceAll(chatML, "im_end", "end"))
	f.Add("{{ messages.__class__ }}{{ lookup() | nope }}", "{{ bos_token }}")
	f.Add("{% for m in messages %}\x1b[2J{{ m.content }}\u202e{% endfor %}", "{{ raise_exception(messages | tojson) }}")
	f.Add("{{ tools | tojson(indent=2) }}", "{{ documents }}")
	f.Add("{{ tools | "+strings.Repeat("n", 4000)+" }}", "{{ "+strings.Repeat("n", 4000)+".x }}")
	f.Fuzz(func(t *testing.T, a, b string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := FromMetadata(metadata(a))
		if err != nil {
			t.Fatal(err)
		}
		m := metadata(b)
		m.Set("tokenizer.chat_template.rag", gguf.String(a))
		want, err := FromMetadata(m)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		list, err := Compare(ctx, got, want)
		for _, d := range list {
			texts = append(texts, d.String())
		}
		if a == b && (err == nil && len(list) != 1 || len(list) > 1) {
			t.Errorf("the same templates: %v, %v", list, err)
		}
		why, unusable := got[0].Unusable(ctx)
		if why != nil && len(why.Error()) > 4000 {
			t.Errorf("an error of %d bytes: %.200s", len(why.Error()), why)
		}
		if err := errors.Join(err, unusable); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, s := range texts {
			if len(s) > 8000 || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x202a && c <= 0x202e }) {
				t.Errorf("%d bytes: %.200q", len(s), s)
			}
		}
		for _, s := range append(got[0].Suspicious(), got[0].Unknown()...) {
			if !strings.Contains(s, "tokenizer.chat_template: line ") || len(s) > 1000 {
				t.Errorf("%d bytes: %.200q", len(s), s)
			}
		}
	})
}
