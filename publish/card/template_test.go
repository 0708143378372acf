package card

import (
	"strings"
	"testing"
)

// TestNestedTemplate parses and carries out as many conditions in one another as a template has room for.
func TestNestedTemplate(t *testing.T) {
	n := maxTemplate / len("{{if 1}}{{end}}")
	c := &Card{template: strings.Repeat("{{if 1}}", n) + strings.Repeat("{{end}}", n)}
	if _, err := c.filled(); err != nil {
		t.Error(err)
	}
}
