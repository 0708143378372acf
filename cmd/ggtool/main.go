package main

import (
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:  "ggtool",
		Usage: "inspect, edit, split, merge and export GGUF files and importance matrices",
		Metadata: tool.About{Examples: []string{"ggtool inspect model.gguf", "ggtool verify *.gguf",
			"ggtool diff a.gguf b.gguf"}}.Metadata(),
		Commands: slices.Concat(
			tool.Verbs("Look", inspectCommand(), verifyCommand(), diffCommand(), qualityCommand(), hashCommand(),
				nameCommand(), renderCommand()),
			tool.Verbs("Change", metaCommand(), imatrixCommand(), splitCommand(), mergeCommand(), endianCommand(),
				padVocabCommand()),
			tool.Verbs("Run", cleanCommand()),
			tool.Verbs("Publish", cardCommand(), modelfileCommand(), releaseCommand(), signCommand(), pushCommand(),
				exportCommand(), reproduceCommand()),
			tool.Verbs("Clusters", submitCommand()),
		),
		Action: tool.NeedsVerb,
	}
}
