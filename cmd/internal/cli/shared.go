package cli

import (
	"strconv"

	"github.com/urfave/cli/v3"
)

// SharedFlag is a flag that several verbs have. All of them call the same thing by the same name.
type SharedFlag struct {
	Name   string
	Letter string // -o for --output, "" for none
	// names that some verbs know besides: those of the reference's tools, and what they were called before
	Also []string
	// Value stands for the value in the help: "" of a flag without, N of a number, SIZE of a number of
	// bytes with or without a unit. OUT is any name of a file or folder.
	Value   string
	Default string
}

// sharedFlags has a row for each name of a flag that is defined more than once, and for each name of one
// letter; flagtest.Tree holds every verb to it.
var sharedFlags = []SharedFlag{
	// What is written.
	{Name: "output", Letter: "o", Also: []string{"outfile"}, Value: "OUT"},
	{Name: "max-size", Also: []string{"split-max-size", "max-shard-size"}, Value: "SIZE"},
	{Name: "max-tensors", Also: []string{"split-max-tensors"}, Value: "N"},
	{Name: "no-tensor-first-split"},
	{Name: "force"}, {Name: "json"}, {Name: "dry-run"}, {Name: "schema"}, {Name: "strict"},
	{Name: "html", Value: "FILE"},
	{Name: "manifest", Value: "FILE"},
	{Name: "name-template", Value: "NAME"},
	{Name: "format", Value: "FORMAT", Default: "gguf"},
	// Texts.
	{Name: "file", Letter: "f", Value: "FILE"},
	{Name: "ctx-size", Letter: "c", Also: []string{"chunk-size", "context", "context-length"}, Value: "N",
		Default: "512"},
	{Name: "chunks", Value: "N"},
	{Name: "escape", Letter: "e"}, {Name: "no-escape"}, {Name: "parse-special"}, {Name: "process-output"},
	{Name: "calibrate", Value: "FILE"},
	{Name: "effort", Value: "EFFORT", Default: "matrix"},
	// Models.
	{Name: "imatrix", Value: "FILE"},
	{Name: "allow-requantize"},
	{Name: "alone"},
	{Name: "cache", Value: "DIR"},
	{Name: "model-name", Value: "NAME"},
	{Name: "via", Value: "TYPE", Default: "auto"},
	{Name: "base-model", Value: "ORG/NAME"},
	{Name: "quantized-by", Value: "NAME"},
	// Parts.
	{Name: "part", Value: "K/N"},
	{Name: "part-files", Also: []string{"parts"}, Value: "OUT"},
	{Name: "finish"},
	// Runs.
	{Name: "threads", Letter: "t", Value: "N"},
	{Name: "progress", Value: "HOW", Default: "auto"},
	{Name: "quiet", Letter: "q"},
	{Name: "help", Letter: "h"},
	{Name: "version", Letter: "v"},
}

// SharedFlags returns the rows of all shared flags.
func SharedFlags() []SharedFlag { return sharedFlags }

// Shared returns a flag that several verbs have, with the text about it, in which `OUT` or the like stands
// for its value. also are other names of it that this verb knows.
func Shared(name, usage string, also ...string) interface {
	cli.Flag
	As(Effect) cli.Flag
} {
	for _, row := range sharedFlags {
		if row.Name != name {
			continue
		}
		if row.Letter != "" {
			also = append([]string{row.Letter}, also...)
		}
		switch row.Value {
		case "":
			return plain(&cli.BoolFlag{Name: name, Aliases: also, Usage: usage})
		case "N":
			n, _ := strconv.ParseUint(row.Default, 10, 0) // "" is 0
			return plain(&cli.UintFlag{Name: name, Aliases: also, Usage: usage, Value: uint(n)})
		}
		return plain(&cli.StringFlag{Name: name, Aliases: also, Usage: usage, Value: row.Default})
	}
	panic("no shared flag --" + name)
}
