package push

import (
	"bytes"
	"strings"
	"testing"

	"ggforge/internal/io/hub"
)

// FuzzState reads arbitrary bytes as the state of a push.
func FuzzState(f *testing.F) {
	sum := strings.Repeat("a", 64)
	f.Add([]byte(`{"oid":"` + sum + `","size":25,"part":10,"parts":["https://s/1","https://s/2","https://s/3"],` +
		`"complete":"https://hub/c"}`))
	f.Add([]byte("sum\n1 " + tagCheck("1", `"x"`) + " \"x\"\n2 00000000 \"y\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := hub.Object{SHA256: sum, Size: 25}
		if g, err := parseGrant(data, o, true); err == nil && (g.Check(o, true) != nil || len(g.Parts) == 0) {
			t.Errorf("%+v", g)
		}
		first, _, _ := bytes.Cut(data, []byte("\n"))
		if tags, ok := parseTags(data, strings.TrimSuffix(string(first), "\r"), 3); ok {
			for n, tag := range tags {
				if tag != "" && !bytes.Contains(data, []byte(tag)) {
					t.Errorf("tag %d is %q", n, tag)
				}
			}
		}
	})
}
