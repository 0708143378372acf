package runs

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/io/bucket"
)

// ImatrixFlags are the flags of ggeval imatrix.
func ImatrixFlags() []tool.Flag {
	return slices.Concat(EvaluateFlags(
		SourceFlag(),
		tool.Flag{Name: "chunk", Aliases: []string{"from-chunk"}, Value: tool.Count, Unit: "chunks",
			Category: CategoryText, Effect: tool.SetsBytes,
			Usage: "leave out the first `N` chunks of the text: --chunks counts from there"},
		tool.Shared("output", "write the matrix to `FILE`"),
		tool.Flag{Name: "format", Value: tool.Text, Default: imatrix.FormatGGUF.String(),
			Choices: tool.Names("gguf", "dat"), Effect: tool.SetsBytes,
			Usage: "write `FORMAT`: gguf, or dat, the legacy format"},
		tool.Shared("process-output", "collect importance for the output matrix, too").In(CategoryText),
		ParseSpecialFlag(),
		tool.Flag{Name: "nextn", Category: CategoryText, Effect: tool.SetsBytes,
			Usage: "run the MTP (NextN) layers, too, and collect importance for them"},
		tool.Flag{Name: "in-file", Value: tool.FileList, Effect: tool.ReadsFile, Remote: true,
			Usage: "merge the matrix in `FILE`; repeatable"},
		tool.Flag{Name: "save-every", Value: tool.Count, Unit: "chunks", Effect: tool.RunsOnly,
			Usage: "process `N` chunks at a time and save the sums after each N: the same command resumes a killed run " +
				"(0: all at once)"},
		tool.ForceFlag(),
	), ChatFlags(), shareFlags(
		nameFlag(),
		tool.Flag{Name: "sum-chunks", Value: tool.Count, Unit: "chunks", Effect: tool.SetsBytes,
			Usage: "add up each `N` chunks separately, and then these sums; --part needs this, and one process gives " +
				"the same file with it (0: all chunks, one after the other)"},
	))
}

// ImatrixRequest has the flags and arguments of ggeval imatrix.
type ImatrixRequest struct {
	Path    string // "" to merge only
	Out     string
	Format  imatrix.Format
	Merged  []string
	Collect eval.Importance
	NextN   bool
	Force   bool
	Input
	Shares Shares
}

// ParseImatrix returns the request of a command line.
func ParseImatrix(cmd *cli.Command) (r ImatrixRequest, err error) {
	args, err := tool.Args(cmd, 0, 1)
	if err != nil {
		return r, err
	}
	if r.Input, err = ParseInput(cmd); err != nil {
		return r, err
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if r.Format, err = imatrix.ParseFormat(cmd.String("format")); err != nil {
		return r, fmt.Errorf("--format: %w", err)
	}
	if r.Text.Skip, err = tool.CountValue(cmd, "chunk"); err != nil {
		return r, err
	}
	if r.Text.Skip > 0 && r.Source != "" {
		return r, fault.Errorf(fault.Usage, "--source and --chunk: want one of them: pairs of lines begin with the first")
	}
	r.Collect.Output, r.NextN, r.Force = cmd.Bool("process-output"), cmd.Bool("nextn"), cmd.Bool("force")
	if r.NextN && r.Source != "" {
		return r, fault.Errorf(fault.Usage, "--source and --nextn: want one of them: encoder-decoders have no MTP layers")
	}
	if r.Collect.Every, err = tool.CountValue(cmd, "save-every"); err != nil {
		return r, err
	}
	if r.Collect.Group, err = tool.CountValue(cmd, "sum-chunks"); err != nil {
		return r, err
	}
	if r.Shares, err = parseShares(cmd); err != nil {
		return r, err
	}
	if checkpoint.IsRemote(r.Out) && !bucket.Is(r.Out) {
		return r, fault.Errorf(fault.Usage, "-o %s: want a file, or an object, s3://BUCKET/KEY", r.Out)
	}
	if bucket.Is(r.Out) {
		if _, err := bucket.Parse(r.Out); err != nil {
			return r, fmt.Errorf("-o: %w", err)
		}
	}
	r.Shares.Name = r.Out
	if cmd.IsSet("part-files") {
		if r.Shares, err = parseNamed(cmd, ""); err != nil {
			return r, err
		}
	}
	for _, path := range cmd.StringSlice("in-file") {
		if err := tool.CheckName("--in-file", path); err != nil {
			return r, err
		}
		r.Merged = append(r.Merged, tool.Fetched(cmd, path))
	}
	switch {
	case r.Out == "":
		return r, fault.Errorf(fault.Usage, "no output: name it with -o FILE (see %s --help)", cmd.FullName())
	case r.Collect.Every > 0 && bucket.Is(r.Out):
		return r, fault.Errorf(fault.Usage,
			"--save-every keeps the sums next to the output, %s, which is an object: want --part and --finish, whose parts "+
				"are objects, too", r.Out)
	case r.Collect.Every > 0 && r.Shares.On():
		return r, fault.Errorf(fault.Usage,
			"--save-every is for one process that has all chunks: a part that was killed is run again")
	case r.Collect.Group == 0 && r.Shares.On():
		return r, fault.Errorf(fault.Usage,
			"--part and --finish: one float32 sum over all chunks needs one process: want --sum-chunks N, the same "+
				"for all parts")
	case r.Collect.Group > 0 && r.Collect.Every%r.Collect.Group != 0:
		return r, fault.Errorf(fault.Usage, "--save-every %d: want a multiple of --sum-chunks %d", r.Collect.Every,
			r.Collect.Group)
	case len(args) == 0 && r.Shares.On():
		return r, fault.Errorf(fault.Usage, "--part and --finish: no MODEL: files are merged by one process")
	case len(args) > 0:
		if r.Path, err = InputPath(cmd, args[0]); err != nil {
			return r, err
		}
		return r, r.NeedText(cmd)
	case r.File != "" || r.Source != "":
		return r, fault.Errorf(fault.Usage, "a text, but no MODEL to run over it: want %s", cmd.ArgsUsage)
	case r.Merged == nil:
		return r, fault.Errorf(fault.Usage, "nothing to do: want MODEL and -f FILE, or files to merge with --in-file")
	case r.Text.Chunk == 0:
		return r, fault.Errorf(fault.Usage, "chunks of 0 tokens: want at least 1")
	}
	return r, nil
}
