package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/internal/text/nearest"
)

// Names returns a list that does not change, for Flag.Choices.
func Names[S ~string](names ...S) func() []string {
	var list []string
	for _, name := range names {
		list = append(list, string(name))
	}
	return func() []string { return list }
}

// folded returns the one of the names that a value is but for its case, else the value.
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

// meant says for the end of a usage error which name a flag's value may stand for that is none of
// those it may be, "" for nothing.
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
