package main

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/internal/cli"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:     "ggtool",
		Usage:    "look into GGUF files and importance matrices, edit, cut, join and export them",
		Metadata: tool.About{Examples: []string{"ggtool inspect model.gguf", "ggtool verify *.gguf", "ggtool diff a.gguf b.gguf"}}.Metadata(),
		Commands: []*cli.Command{inspectCommand(), verifyCommand(), diffCommand(), qualityCommand(), hashCommand(), imatrixCommand(), metaCommand(), nameCommand(), splitCommand(), mergeCommand(), endianCommand(), exportCommand(), cardCommand()},
		Action:   tool.NeedsVerb,
	}
}
