package cli

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/internal/text/size"
)

// ForceFlag permits replacing an output that exists.
func ForceFlag() cli.Flag {
	return As(WritesFile, &cli.BoolFlag{Name: "force", Category: CategoryOutput,
		Usage: "replace the output if it exists"})
}

// OutFlag names the output of a verb as its last argument does: ArgsOut reads both.
func OutFlag() cli.Flag {
	return Under(CategoryOutput, Shared("output", "write to `OUT`, instead of naming it as the last argument"))
}

// JSONFlag asks for the result as JSON: docs/json.md has the fields.
func JSONFlag() cli.Flag {
	return As(RunsOnly, &cli.BoolFlag{Name: "json", Category: CategoryOutput,
		Usage: "print one JSON object (docs/json.md)"})
}

// quietFlag is of every command: Run adds it.
func quietFlag() cli.Flag {
	return As(RunsOnly, &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Category: CategoryRun,
		Usage: "print only errors, warnings and what was asked for: no progress, and nothing of what was written and " +
			"how long that took"})
}

// ThreadsFlag sets the number of workers.
func ThreadsFlag() cli.Flag {
	return As(RunsOnly, &cli.UintFlag{Name: "threads", Category: CategoryRun, Aliases: []string{"t"},
		Usage: "use `N` workers (0: one per CPU)"})
}

// Threads returns the value of ThreadsFlag.
func Threads(cmd *cli.Command) int { return int(cmd.Uint("threads")) }

// Workers returns the value of ThreadsFlag, and one for each CPU instead of 0.
func Workers(cmd *cli.Command) int {
	if n := Threads(cmd); n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Count returns the value of a flag that counts something.
func Count(cmd *cli.Command, name string) (int, error) {
	n := cmd.Uint(name)
	if n > math.MaxInt32 {
		return 0, fault.Errorf(fault.Usage, "--%s %d: want at most %d", name, n, math.MaxInt32)
	}
	return int(n), nil
}

// CompatFlag chooses between the reference's bytes and working files where the two
// differ; program is the one whose bytes are meant.
func CompatFlag(program string) cli.Flag {
	return OneOf(&cli.StringFlag{Name: "compat", Category: CategoryOutput, Usage: "with `reference`: write what " +
		program + " would write also where that is broken (docs/deviations.md)"}, Names("reference")).As(SetsBytes)
}

// Reference reports whether CompatFlag asks for the reference's bytes.
func Reference(cmd *cli.Command) (bool, error) {
	switch c := cmd.String("compat"); c {
	case "":
		return false, nil
	case "reference":
		return true, nil
	default:
		return false, fault.Errorf(fault.Usage, "--compat %q: want reference", c)
	}
}

// stdio is the name under which other programs read standard input or write
// standard output. Ours need files in which they can go back and forth.
const stdio = "-"

// CheckName refuses the names of files that name none: what is the flag or
// argument that the name is the value of.
func CheckName(what, name string) error {
	switch name {
	case "":
		return fault.Errorf(fault.Usage, "%s: the name is empty, want a file", what)
	case stdio:
		return fault.Errorf(fault.Usage,
			"%s -: standard input and output are not supported, want a file (./- for one of that name)", what)
	}
	return nil
}

// fileNames are what stands for the name of a file or directory in texts about flags and their values.
var fileNames = []string{"FILE", "DIR", "OUT", "BASE", "FOLDER", "ADAPTER[:SCALE]"}

// NamesFile reports whether the value of a flag is the name of a file or directory.
func NamesFile(f cli.Flag) bool { return slices.Contains(fileNames, valueName(f)) }

// checkNames refuses standard input and output as files of a command's flags.
func checkNames(cmd *cli.Command) error {
	for _, f := range cmd.Flags {
		if !NamesFile(f) || !f.IsSet() {
			continue
		}
		names, _ := f.Get().([]string)
		if name, ok := f.Get().(string); ok {
			names = []string{name}
		}
		for _, name := range names {
			if err := CheckName("--"+f.Names()[0], name); err != nil {
				return err
			}
		}
	}
	return nil
}

// File returns the value of a flag that names a file or directory, "" without the
// flag.
func File(cmd *cli.Command, name string) (string, error) {
	if !cmd.IsSet(name) {
		return "", nil
	}
	path := cmd.String(name)
	return path, CheckName("--"+name, path)
}

// SizeHelp says how a size is written, for the help of flags.
const SizeHelp = "500M, 1.5G or 2MiB"

// Size returns the value of a flag that is a number of bytes; see package size.
func Size(cmd *cli.Command, name string) (int64, error) {
	n, err := size.Parse(cmd.String(name))
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", name, err)
	}
	return n, nil
}
