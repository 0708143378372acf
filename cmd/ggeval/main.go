package main

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:  "ggeval",
		Usage: "run language models over a text: perplexity, KL divergence, importance matrices, embeddings",
		Description: "Weights are decoded to float32 and arithmetic is exact: a figure is the same on every " +
			"processor and with any number of workers.",
		Metadata: tool.About{Examples: []string{"ggeval perplexity -f text.txt model-Q4_K_M.gguf",
			"ggeval compare -f text.txt model-F16.gguf model-Q4_K_M.gguf"}}.Metadata(),
		Commands: []*cli.Command{compareCommand(), embedCommand(), imatrixCommand(), perplexityCommand(),
			scoreCommand(), sensitivityCommand(), serveCommand(), taskCommand(), trajectoryCommand()},
		Action: tool.NeedsVerb,
	}
}
