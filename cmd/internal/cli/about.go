package cli

import (
	"reflect"

	"github.com/urfave/cli/v3"
)

// About holds the properties of a command that cli.Command has no field for.
type About struct {
	// Examples are command lines for the end of the help. A line that begins with # is a remark on the lines after
	// it.
	Examples []string
	// Values returns the possible values, besides names of files, of the argument with index before. Nil for a
	// command whose arguments are files.
	Values func(before int) []string
	// Main are the flags that most people need, by name, which --help lists; the others are for --help-all and the
	// manual. Nil is all of them.
	Main []string
	// More is text for --help-all and the manual, besides the description.
	More string
	// Elsewhere are names of the verb in other tools, for errors about unknown verbs.
	Elsewhere []string
	// Result has the types of the JSON output, whose fields are in docs/json.md: several if it depends on other
	// flags, none for a command without --json.
	Result []reflect.Type
}

const aboutKey = "about"

// Metadata returns a as the metadata of a command's definition.
func (a About) Metadata() map[string]any { return map[string]any{aboutKey: a} }

// AboutOf returns the About of a command.
func AboutOf(cmd *cli.Command) About {
	a, _ := cmd.Metadata[aboutKey].(About)
	return a
}

// Prints returns the type T, for About.Result.
func Prints[T any]() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }
