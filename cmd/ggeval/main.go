package main

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/internal/cli"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:        "ggeval",
		Usage:       "run language models over a text: how well they predict it, how far they are from each other",
		Description: tool.ExitHelp,
		Commands:    []*cli.Command{compareCommand(), embedCommand(), imatrixCommand(), perplexityCommand(), sensitivityCommand()},
		Action:      tool.NeedsVerb,
	}
}
