package cli

import (
	"fmt"
	"math"
	"runtime"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/internal/text/size"
)

// ForceFlag permits replacing an output that exists.
func ForceFlag() Flag {
	return Shared("force", "replace the output if it exists").In(CategoryOutput)
}

// OutFlag returns --output for a verb whose last argument names the output otherwise: ArgsOut reads both.
func OutFlag() Flag {
	return Shared("output", "write to `OUT`, instead of naming it as the last argument").In(CategoryOutput)
}

// JSONFlag asks for the result as JSON: docs/json.md has the fields.
func JSONFlag() Flag {
	return Shared("json", "print one JSON object (docs/json.md)").In(CategoryOutput)
}

// quietFlag returns --quiet, which Run adds to every command.
func quietFlag() Flag {
	return Shared("quiet", "print only errors, warnings and requested results: no progress, and no report of written "+
		"files and of the time").In(CategoryRun)
}

// ThreadsFlag sets the number of workers.
func ThreadsFlag() Flag {
	return Shared("threads", "use `N` workers (0: one per CPU)").In(CategoryRun)
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

// CountValue returns the value of a flag that counts something.
func CountValue(cmd *cli.Command, name string) (int, error) {
	n := cmd.Uint(name)
	if n > math.MaxInt32 {
		return 0, fault.Errorf(fault.Usage, "--%s %d: want at most %d", name, n, math.MaxInt32)
	}
	return int(n), nil
}

// CompatFlag returns --compat, which chooses between llama.cpp's bytes and working files where the two differ;
// program is the reference's program.
func CompatFlag(program string) Flag {
	return Flag{Name: "compat", Value: Text, Choices: Names("llama.cpp", "reference"),
		Synonyms: map[string]string{"llama.cpp": "reference"}, Category: CategoryOutput, Effect: SetsBytes,
		Usage: "with `llama.cpp` (or reference): write what " + program +
			" would write also where that is broken (docs/deviations.md)"}
}

// Reference reports whether CompatFlag asks for the reference's bytes.
func Reference(cmd *cli.Command) (bool, error) {
	switch c := cmd.String("compat"); c {
	case "":
		return false, nil
	case "reference":
		return true, nil
	default:
		return false, fault.Errorf(fault.Usage, "--compat %q: want llama.cpp", c)
	}
}

// stdio is the usual name of standard input and output. It is refused, because the commands need files in which they
// can seek.
const stdio = "-"

// CheckName refuses "" and "-" as names of files. what is the flag or argument with the name.
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

// checkNames refuses standard input and output as files of a command's flags.
func checkNames(cmd *cli.Command) error {
	for _, f := range Declarations(cmd) {
		if !f.NamesFile() || !f.IsSet(cmd) {
			continue
		}
		for _, name := range f.Values(cmd) {
			if err := CheckName("--"+f.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// FileValue returns the value of a flag that names a file or directory, "" without the
// flag. For the address of a file on a server (Flag.Remote) it is the path of the copy.
func FileValue(cmd *cli.Command, name string) (string, error) {
	if !cmd.IsSet(name) {
		return "", nil
	}
	path := cmd.String(name)
	return Fetched(cmd, path), CheckName("--"+name, path)
}

// SizeHelp shows how a size is written, for help texts.
const SizeHelp = "500M, 1.5G or 2MiB"

// SizeValue returns the value of a flag that is a number of bytes; see package size.
func SizeValue(cmd *cli.Command, name string) (int64, error) {
	n, err := size.Parse(cmd.String(name))
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", name, err)
	}
	return n, nil
}
