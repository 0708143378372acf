package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/publish/naming"
	"ggforge/quantize"
)

func nameCommand() *cli.Command {
	return &cli.Command{
		Name:      "name",
		Usage:     "read, check and build names by the GGUF naming convention",
		ArgsUsage: "NAME...",
		Description: "Prints the parts of each NAME and their deviations from the convention, which few\n" +
			"publishers follow to the letter. The file need not exist. Exit code 3 for a name that\n" +
			"is not one of a GGUF file, with --strict for any deviation.\n\n" +
			"With --build each NAME is a GGUF file, or the first shard of a model: prints its\n" +
			"name according to its metadata and weights.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool name Mixtral-8x7B-v0.1-KQ2.gguf", "ggtool name --build model.gguf"},
			Result:   tool.Prints[nameResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "build", Effect: tool.SetsBytes,
				Usage: "print the names that files would have by the convention"},
			tool.Flag{Name: "strict", Effect: tool.Refuses,
				Usage: "end with exit code 3 if a name does not follow the convention"},
			tool.Flag{Name: "encoding", Value: tool.Text, Effect: tool.SetsBytes,
				Usage: "with --build: use `NAME` as the encoding instead of general.file_type"},
			tool.JSONFlag(),
		),
		Action: name,
	}
}

// nameRequest has the flags and arguments.
type nameRequest struct {
	Names       []string
	Build, JSON bool
	Strict      bool
	Encoding    string
}

func parseName(cmd *cli.Command) (r nameRequest, err error) {
	r = nameRequest{Build: cmd.Bool("build"), JSON: cmd.Bool("json"), Strict: cmd.Bool("strict"),
		Encoding: cmd.String("encoding")}
	if r.Strict && r.Build {
		return r, fault.Errorf(fault.Usage, "--strict checks names, and --build makes them: want only one of the two")
	}
	if r.Encoding != "" && !r.Build {
		return r, fault.Errorf(fault.Usage, "--encoding goes with --build")
	}
	r.Names, err = tool.Args(cmd, 1, maxFiles)
	return r, err
}

// nameResult is the JSON output.
type nameResult struct {
	Names []named `json:"names"`
}

// named is the result for one name.
type named struct {
	File  string       `json:"file"`
	Parts *naming.Name `json:"parts,omitempty"`
	// Problems are the reasons why the name does not follow the convention.
	Problems []string `json:"problems,omitempty"`
	// Build are the names by the convention, of all shards.
	Build []string `json:"build,omitempty"`
}

func name(ctx context.Context, cmd *cli.Command) error {
	r, err := parseName(cmd)
	if err != nil {
		return err
	}
	var list []named
	bad := 0
	for _, path := range r.Names {
		one := named{File: path}
		if r.Build {
			if one.Build, err = conventional(path, r.Encoding); err != nil {
				return err
			}
		} else {
			parts, found, ok := naming.Read(filepath.Base(path))
			if one.Problems = found; ok {
				one.Parts = &parts
			}
			if !ok || found != nil && r.Strict {
				bad++
			}
		}
		list = append(list, one)
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		err = tool.WriteJSON(w, nameResult{list})
	} else {
		err = writeNames(w, list)
	}
	if err == nil && bad > 0 {
		err = fault.Errorf(fault.Broken, "%d of %d names do not follow the GGUF naming convention", bad, len(list))
	}
	return err
}

func writeNames(w io.Writer, list []named) error {
	for i := range list {
		n := &list[i]
		for _, built := range n.Build {
			fmt.Fprintln(w, built)
		}
		if n.Build != nil {
			continue
		}
		fmt.Fprintln(w, n.File)
		if n.Parts == nil {
			writeProblems(w, n.Problems)
			continue
		}
		shard := ""
		if n.Parts.Shards > 0 {
			shard = fmt.Sprintf("%d of %d", n.Parts.Shard, n.Parts.Shards)
		}
		for _, part := range [][2]string{
			{"sidecar", n.Parts.Sidecar}, {"base name", n.Parts.BaseName}, {"size label", n.Parts.SizeLabel},
			{"fine-tune", n.Parts.FineTune},
			{"version", n.Parts.Version}, {"encoding", n.Parts.Encoding}, {"type", n.Parts.Type}, {"shard", shard},
		} {
			if part[1] != "" {
				if _, err := fmt.Fprintf(w, "  %-10s  %s\n", part[0], part[1]); err != nil {
					return err
				}
			}
		}
		writeProblems(w, n.Problems)
	}
	return nil
}

// writeProblems prints the parts of a name that do not follow the convention.
func writeProblems(w io.Writer, problems []string) {
	for _, p := range problems {
		fmt.Fprintf(w, "  not by the convention: %s\n", p)
	}
}

// conventional returns the names by the convention for the model at path, one for each shard.
func conventional(path, encoding string) ([]string, error) {
	set, err := open(path, false)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	if encoding == "" {
		if recipe, ok := quantize.RecipeOf(set.Metadata()); ok {
			encoding = recipe.Name
		}
	}
	n := naming.Of(set.Metadata(), set.Shapes(), encoding)
	if len(set.Files) == 1 {
		return []string{n.String()}, nil
	}
	var names []string
	for i := range set.Files {
		n.Shard, n.Shards = i+1, len(set.Files)
		names = append(names, n.String())
	}
	return names, nil
}
