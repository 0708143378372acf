package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
)

// Expect names a config key whose value changes the arithmetic of the model, which the GGUF architecture supports for
// some values only.
type Expect struct {
	Key string
	In  In // the object that has the key; nil for the root
	// Values are the supported values, as text; numbers are compared as numbers. An absent key is accepted, too. Empty:
	// the key must be absent.
	Values []string
	// Rope: the key is one of the rope settings.
	Rope bool
	// With is a boolean key that enables Key: unless it is true, any value is accepted; "" for none.
	With string
}

func (e Expect) check(a *Arch, c *config.View) error {
	o := c.Object
	if e.In != nil {
		o = e.In(c)
	}
	v, key := c.GivenIn(o, e.Key), o.Names([]string{e.Key})[0]
	if e.Rope {
		v = c.Rope().Value(e.Key)
	}
	if e.With != "" && c.Given(e.With) != true {
		return nil
	}
	s := text(v)
	if v == nil || slices.ContainsFunc(e.Values, func(want string) bool { return s == text(json.Number(want)) }) {
		return nil
	}
	if len(e.Values) == 0 {
		return fault.Errorf(fault.Unsupported, "%s: key %q has no meaning in architecture %s, and it changes the model",
			o.FileName(), key, a.Name)
	}
	return fault.Errorf(fault.Unsupported, "%s: key %q is %q, but models of architecture %s compute with %s only",
		o.FileName(), key, s, a.Name, strings.Join(e.Values, " or "))
}

// text returns a value of config.json as text, numbers in one spelling: 7.00 is 7.
func text(v any) string {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = text(v[i])
		}
		return fmt.Sprint(list)
	}
	return fmt.Sprint(v)
}
