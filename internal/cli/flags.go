package cli

import (
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// ForceFlag permits replacing an output that exists.
func ForceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Usage: "replace the output if it exists"}
}

// ThreadsFlag sets the number of workers.
func ThreadsFlag() cli.Flag {
	return &cli.UintFlag{Name: "threads", Aliases: []string{"t"}, Usage: "use `N` workers (0: one per CPU)"}
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
	return &cli.StringFlag{Name: "compat", Usage: "with `reference`: write what " + program + " does also where that is broken (docs/deviations.md)"}
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
		return fault.Errorf(fault.Usage, "%s -: standard input and output are not supported, want a file (./- for one of that name)", what)
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

// Size returns the value of a flag that is a number of bytes: a positive integer,
// with K, M or G for thousands, millions or billions of them; a B may follow.
func Size(cmd *cli.Command, name string) (int64, error) {
	text := strings.TrimSuffix(strings.ToUpper(cmd.String(name)), "B")
	unit := uint64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = digits, []uint64{1e3, 1e6, 1e9}[i]
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64/unit {
		return 0, fault.Errorf(fault.Usage, "--%s %q: want a size such as 500M or 5G", name, cmd.String(name))
	}
	return int64(n * unit), nil
}
