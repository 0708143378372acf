package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/internal/text/nearest"
)

// The beginnings of the library's messages about flags: its errors have no types.
const (
	unknownFlag  = "flag provided but not defined: -"
	valueMissing = "flag needs an argument: "
	valueWrong   = "invalid value "
	flagsMissing = "Required flag"
)

// usageText returns the text of an error of urfave/cli about flags, with a suggestion.
func usageText(cmd *cli.Command, err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, unknownFlag); ok {
		name = strings.TrimLeft(name, "-")
		return "unknown flag " + dashed(name) + meantFlag(cmd, name)
	}
	if name, ok := strings.CutPrefix(text, valueMissing); ok {
		name = strings.TrimLeft(name, "-")
		value := "a value"
		if f := flagOf(cmd, cmd.Root(), name); f != nil && valueName(f) != "" {
			value = dashed(name) + " " + valueName(f)
		}
		return dashed(name) + " has no value: want " + value
	}
	if strings.HasPrefix(text, valueWrong) {
		if _, rest, ok := strings.Cut(text, " for flag -"); ok {
			name, why, _ := strings.Cut(rest, ": ")
			value, _, _ := strings.Cut(strings.TrimPrefix(text, valueWrong), " for flag -")
			if f := flagOf(cmd, cmd.Root(), name); f != nil && wanted(f) != "" {
				why = "want " + wanted(f)
			}
			return dashed(name) + " " + value + ": " + why
		}
	}
	if strings.HasPrefix(text, flagsMissing) {
		var missing []string
		for _, f := range cmd.Flags {
			if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() && !f.IsSet() {
				missing = append(missing, strings.TrimSpace(dashed(f.Names()[0])+" "+valueName(f)))
			}
		}
		return "want " + strings.Join(missing, " and ")
	}
	return text
}

// wanted describes the values that a flag accepts, "" for a flag whose own error does so.
func wanted(f cli.Flag) string {
	switch f.Get().(type) {
	case bool:
		return "true or false"
	case uint:
		return "a whole number, 0 or more"
	case int:
		return "a whole number"
	case float64:
		return "a number"
	}
	if d, ok := f.(cli.DocGenerationFlag); ok && d.TypeName() == "duration" {
		return "a time such as 30s, 15m or 4h"
	}
	return ""
}

// meantFlag returns the nearest flag to an unknown one, or the verb that it belongs to, for the end of an error; "" for
// none.
func meantFlag(cmd *cli.Command, name string) string {
	var names []string
	for _, f := range slices.Concat(cmd.Flags, everyFlag()) {
		if v, ok := f.(cli.VisibleFlag); !ok || v.IsVisible() {
			names = append(names, f.Names()...)
		}
	}
	slices.Sort(names) // cmd.Flags of a command without verbs has --quiet already
	names = slices.Compact(names)
	meant := nearest.Meant(name, names)
	if len(name) == 1 {
		meant = slices.DeleteFunc(slices.Clone(names),
			func(long string) bool { return len(long) == 1 || !strings.HasPrefix(long, name) })
		meant = meant[:min(len(meant), 3)]
	}
	for i, name := range meant {
		meant[i] = dashed(name)
	}
	if text := nearest.Ask(meant); text != "" {
		return text
	}
	var verbs []string
	for _, verb := range cmd.Commands {
		if flagOf(verb, verb, name) != nil {
			verbs = append(verbs, verb.Name)
		}
	}
	if len(verbs) > 0 {
		return ": it goes after a verb, such as " + verbs[0]
	}
	return ""
}

// dashed returns the name of a flag as it is written.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// NeedsVerb is the action of a command that only has verbs.
func NeedsVerb(_ context.Context, cmd *cli.Command) error {
	var verbs, all []string // verbs that the help lists, and these with their names in other tools
	known := map[string]string{}
	for _, verb := range cmd.Commands {
		if verb.Hidden {
			continue
		}
		verbs = append(verbs, verb.Name)
		all = append(all, verb.Names()...)
		for _, name := range AboutOf(verb).Elsewhere {
			known[name] = verb.Name
		}
	}
	if !cmd.Args().Present() {
		return fault.Errorf(fault.Usage, "want a verb: %s (see %s --help)", strings.Join(verbs, ", "), cmd.FullName())
	}
	name := cmd.Args().First()
	help := nearest.Hint(name, all)
	if meant, ok := known[strings.ToLower(name)]; ok {
		help = nearest.Ask([]string{meant})
	}
	if text, ok := elsewhere[strings.ToLower(name)]; ok && help == "" {
		help = ": " + text
	}
	if help == "" {
		help = ": want " + strings.Join(verbs, ", ")
	}
	return fault.Errorf(fault.Usage, "unknown verb %q%s (see %s --help)", name, help, cmd.FullName())
}

// elsewhere maps verbs to the command that has them.
var elsewhere = map[string]string{
	"convert": "ggconv converts checkpoints", "quantize": "ggquant quantizes", "quant": "ggquant quantizes",
	"perplexity": "ggeval measures", "ppl": "ggeval measures",
	"calibrate": "ggeval imatrix makes importance matrices, and so does ggquant --calibrate",
	"inspect":   "ggtool inspect shows files", "verify": "ggtool verify checks files", "split": "ggtool splits files",
	"release": "ggtool makes releases",
}
