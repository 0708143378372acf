// Ggtool looks into GGUF files.
package main

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/internal/cli"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:        "ggtool",
		Usage:       "look into GGUF files",
		Description: tool.ExitHelp,
		Commands:    []*cli.Command{inspectCommand(), diffCommand()},
		Action:      tool.NeedsVerb,
	}
}
