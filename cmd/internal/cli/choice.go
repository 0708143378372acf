package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/internal/text/nearest"
)

// Names returns a function for Flag.Choices that returns a constant list.
func Names[S ~string](names ...S) func() []string {
	var list []string
	for _, name := range names {
		list = append(list, string(name))
	}
	return func() []string { return list }
}

// folded returns the name that equals a value without regard to case, else the value.
func folded(value string, names []string) string {
	if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, value) }); i >= 0 &&
		!slices.Contains(names, value) {
		return names[i]
	}
	return value
}

// choicesOf returns the names that a flag's value may be, nil for any value.
func choicesOf(f cli.Flag) []string {
	if d := Declaration(f); d != nil && d.Choices != nil {
		return d.Choices()
	}
	return nil
}

// meant returns the nearest choice to an invalid value of a flag, for the end of a usage error; "" for none.
func meant(cmd *cli.Command) string {
	for _, f := range cmd.Flags {
		names := choicesOf(f)
		if names == nil || !f.IsSet() {
			continue
		}
		values, ok := f.Get().([]string)
		if text, one := f.Get().(string); one {
			values, ok = []string{text}, true
		}
		for _, v := range values {
			if known := func(name string) bool { return strings.EqualFold(name, v) }; ok &&
				!slices.ContainsFunc(names, known) {
				if text := nearest.Hint(v, names); text != "" {
					return text
				}
			}
		}
	}
	return ""
}
