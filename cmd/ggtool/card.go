package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/publish/card"
)

func cardCommand() *cli.Command {
	return &cli.Command{
		Name:      "card",
		Usage:     "write the model card of a folder with GGUF files",
		ArgsUsage: "DIR",
		Description: "Writes DIR/README.md as the Hugging Face hub reads it: front matter, a table of the\n" +
			"GGUF files in DIR and below it, a recommendation, commands that run and download\n" +
			"them, and how they were made, from their metadata and the files next to them. KL\n" +
			"divergence and perplexity come from JSON files in DIR, as 'ggeval compare --json' and\n" +
			"'ggeval perplexity --json' write them, by names of files.\n\n" +
			"Text between marks is generated anew each time; all other text is kept, and keys of\n" +
			"the front matter outside of the marks override those between them. A section whose\n" +
			"marks were removed is left out. A README.md without marks is not replaced\n" +
			"without --force.\n\n" +
			"--template takes a template (Go's text/template) for the text after the front matter:\n" +
			"go doc ggforge/publish/card.Card lists its fields.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"readme"},
			Examples: []string{"ggtool card --dry-run out",
				"ggtool card --base-model org/Gollama --quantized-by somebody out"},
			Result: tool.Prints[cardResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Shared("base-model",
				"the files were quantized from the hub's model `ORG/NAME`, instead of the one in their metadata"),
			tool.Shared("repository", "the card's commands name the hub's repository `ORG/NAME` of the files"),
			tool.Shared("ctx-size", "show the memory at a context of `N` tokens (8192)"),
			tool.Shared("quantized-by", "they were quantized by `NAME`, instead of the name in their metadata"),
			tool.Flag{Name: "template", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "use the template in `FILE`"},
			tool.Shared("dry-run", "print the card instead of writing it"),
			tool.JSONFlag(),
			tool.ForceFlag(),
		),
		Action: makeCard,
	}
}

// cardRequest has the flags and arguments.
type cardRequest struct {
	Dir, Template       string
	DryRun, JSON, Force bool
	Card                card.Options
}

func parseCard(cmd *cli.Command) (r cardRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = cardRequest{Dir: args[0], DryRun: cmd.Bool("dry-run"), JSON: cmd.Bool("json"), Force: cmd.Bool("force")}
	r.Card = card.Options{BaseModel: cmd.String("base-model"), QuantizedBy: cmd.String("quantized-by")}
	if r.Card.BaseModel != "" && !card.HubName(r.Card.BaseModel) {
		return r, fault.Errorf(fault.Usage, "--base-model %q: want ORG/NAME", r.Card.BaseModel)
	}
	if r.Card.Repository = cmd.String("repository"); r.Card.Repository != "" && !card.HubName(r.Card.Repository) {
		return r, fault.Errorf(fault.Usage, "--repository %q: want ORG/NAME", r.Card.Repository)
	}
	if n := cmd.Uint("ctx-size"); n > 0 {
		r.Card.Contexts = []int64{int64(n)}
	}
	r.Template, err = tool.FileValue(cmd, "template")
	return r, err
}

// cardResult is the JSON output.
type cardResult struct {
	Card     string     `json:"card"`
	Written  bool       `json:"written"`
	Files    []cardFile `json:"files"`
	Sidecars []cardFile `json:"sidecars,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
}

type cardFile struct {
	File   string       `json:"file"`
	Shards int          `json:"shards"`
	Bytes  int64        `json:"bytes"`
	BPW    float64      `json:"bits_per_weight"`
	KLD    *card.Figure `json:"kl_divergence,omitempty"`
	PPL    *card.Figure `json:"ppl,omitempty"`
}

func cardFiles(files []card.File) (list []cardFile) {
	for _, f := range files {
		list = append(list, cardFile{f.Path, f.Shards, f.Bytes, f.Bits, f.KLD, f.PPL})
	}
	return list
}

func makeCard(ctx context.Context, cmd *cli.Command) error {
	r, err := parseCard(cmd)
	if err != nil {
		return err
	}
	if r.Template != "" {
		data, err := side(r.Template)
		if err != nil {
			return err
		}
		r.Card.Template = string(data)
	}
	c, err := card.Of(ctx, r.Dir, r.Card)
	if err != nil {
		return err
	}
	tool.Warn(cmd, c.Warnings...)
	text, differs, err := c.Update(r.Force)
	if err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.DryRun && !r.JSON {
		_, err := fmt.Fprint(w, text)
		return err
	}
	if differs && !r.DryRun {
		if _, err := c.Write(ctx, r.Force); err != nil {
			return err
		}
	}
	if r.JSON {
		return tool.WriteJSON(w, cardResult{c.Path(), differs && !r.DryRun, cardFiles(c.Files),
			cardFiles(c.Sidecars), c.Warnings})
	}
	what := "written"
	if !differs {
		what = "is up to date"
	}
	_, err = fmt.Fprintf(tool.InfoWriter(cmd), "%s: %s, %d models, %d other files\n", c.Path(), what, len(c.Files),
		len(c.Sidecars))
	return err
}
