package cli

import (
	"math"
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
	return &cli.UintFlag{Name: "threads", Usage: "use `N` workers (0: one per CPU)"}
}

// Threads returns the value of ThreadsFlag.
func Threads(cmd *cli.Command) int { return int(cmd.Uint("threads")) }

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
