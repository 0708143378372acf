package cli

import "github.com/urfave/cli/v3"

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
