package card

import (
	"strings"
	"testing"
)

// TestNestedTemplate executes a template with as many nested conditions as its size permits.
func TestNestedTemplate(t *testing.T) {
	n := maxTemplate / len("{{if 1}}{{end}}")
	c := &Card{template: strings.Repeat("{{if 1}}", n) + strings.Repeat("{{end}}", n)}
	if _, err := c.filled(); err != nil {
		t.Error(err)
	}
}
