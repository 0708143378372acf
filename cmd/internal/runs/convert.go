package runs

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/upload"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/publish/manifest"
	"ggforge/writer"
)

// Flags are those of the reference's converter under the same names, and some
// more.
func ConvertFlags() []cli.Flag {
	return slices.Concat(
		tool.Group(tool.CategoryOutput,
			tool.Shared("output",
				"write to `FILE`, or into it if it is a directory; {ftype} stands for the output type",
				"outfile").As(tool.WritesFile),
			tool.OneOf(&cli.StringFlag{Name: "outtype", Value: convert.Auto.String(),
				Usage: "store weights as `TYPE`: " + convert.OutTypeNames()}, outTypeNames).As(tool.SetsBytes),
			tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "vocab-only",
				Usage: "write the metadata and the vocabulary, no tensors"}),
			tool.As(tool.SetsBytes, &cli.BoolFlag{Name: "bigendian", Usage: "write for big-endian machines"}),
			tool.Shared("max-tensors", "begin a new file after `N` tensors", "split-max-tensors").As(tool.SetsBytes),
			tool.Shared("max-size", "begin a new file when tensors exceed `SIZE` bytes ("+tool.SizeHelp+")",
				"split-max-size").As(tool.SetsBytes),
			tool.Shared("no-tensor-first-split", "put no tensors into the first file of several").As(tool.SetsBytes),
			tool.CompatFlag("the reference's converter"),
			tool.ForceFlag(),
			upload.WorkDirFlag(),
			tool.JSONFlag(),
		),
		tool.Group("Look first",
			tool.Shared("dry-run",
				"print what would become of each tensor and the names of the files; write nothing").As(tool.RunsOnly),
			tool.As(tool.RunsOnly, &cli.BoolFlag{Name: "config-only",
				Usage: "with --dry-run and any number of DIRs: say of each whether its config.json and its tokenizer " +
					"are understood; weights need not be there"}),
			tool.As(tool.RunsOnly, &cli.BoolFlag{Name: "verbose", Usage: "print what becomes of each tensor"}),
			tool.As(tool.RunsOnly, &cli.BoolFlag{Name: "print-supported-models",
				Usage: "list the Hugging Face classes that are converted and the GGUF architecture of each"}),
		),
		tool.Group("LoRA adapters",
			tool.As(tool.ReadsFile, &cli.StringFlag{Name: "base",
				Usage: "the base model of an adapter is in `DIR`; its config.json is all that is read"}),
			tool.As(tool.AsksServer, &cli.StringFlag{Name: "base-model-id",
				Usage: "the base model of an adapter is `ORG/NAME`, in the cache of the Hugging Face hub or on it " +
					"(else what the adapter says, in the cache)"}),
		),
		tool.Group(oldFileCategory,
			tool.As(tool.SetsBytes, &cli.StringFlag{Name: "desc",
				Usage: "describe the model as `TEXT` (default: what its file was)"}),
			tool.As(tool.SetsBytes, &cli.UintFlag{Name: "ctx-size", Aliases: []string{"c", "context-length"},
				Usage: "the model has `N` positions (default 2048; Llama 2: 4096)"}),
			tool.As(tool.SetsBytes, &cli.FloatFlag{Name: "eps",
				Usage: "the epsilon of its norms is `X` (default 5e-06; Llama 1: 1e-06, Llama 2: 1e-05)"}),
			tool.As(tool.SetsBytes, &cli.UintFlag{Name: "gqa",
				Usage: "`N` query heads share a key head (default: what the tensors say)"}),
		),
		[]cli.Flag{tool.ThreadsFlag(), tool.ProgressFlag()},
		WriteFlags(),
		CheckpointFlags(),
	)
}

// outTypeNames are those of --outtype.
func outTypeNames() []string { return strings.Split(convert.OutTypeNames(), ", ") }

// oldCategory is what the flags about files before GGUF are listed under.
const oldFileCategory = "Files before GGUF (GGML, GGMF, GGJT)"

// ArgsUsage is what the arguments are.
const ConvertArgs = "DIR [OUT]"

// Parses says whether a command line is one of ggconv, and looks at no file.
func CheckConvert(ctx context.Context, args []string) error {
	return tool.CheckArguments(ctx, &cli.Command{Name: manifest.Convert, ArgsUsage: ConvertArgs, Flags: ConvertFlags()}, args,
		func(cmd *cli.Command) error {
			_, err := ParseConvert(cmd)
			return err
		})
}

// Request is what the flags and arguments ask for.
type ConvertRequest struct {
	Old     convert.OldOptions // of a file before GGUF
	Dir     string
	Dirs    []string // of Convert.ConfigOnly
	Out     string   // as the user names it, "" for the default; where it is made if it becomes an object
	To      *upload.Destination
	ByName  bool // Out may say which type is meant: no flag does
	Convert convert.Options
	Write   writer.Options

	DryRun, Verbose, PrintModels, JSON bool

	Manifest *Manifest // nil for none
}

// Parse reads all flags and arguments.
func ParseConvert(cmd *cli.Command) (r ConvertRequest, err error) {
	if r.Convert, err = ConvertOptions(cmd); err != nil {
		return r, err
	}
	r.DryRun, r.Verbose, r.PrintModels, r.JSON = cmd.Bool("dry-run"), cmd.Bool("verbose"),
		cmd.Bool("print-supported-models"), cmd.Bool("json")
	if r.Verbose && cmd.Bool("quiet") {
		return r, fault.Errorf(fault.Usage, "--verbose and --quiet: want only one of them")
	}
	if r.PrintModels {
		return r, nil
	}
	most := 2
	if r.Convert.ConfigOnly = cmd.Bool("config-only"); r.Convert.ConfigOnly {
		most = math.MaxInt
	}
	args, err := tool.Args(cmd, 1, most)
	if err != nil {
		return r, err
	}
	if r.Convert.ConfigOnly {
		if !r.DryRun {
			return r, fault.Errorf(fault.Usage, "--config-only writes nothing: it goes with --dry-run")
		}
		for _, arg := range args {
			r.Dirs = append(r.Dirs, InputPath(cmd, arg))
		}
		args = args[:1]
	}
	r.Dir = InputPath(cmd, args[0])
	if r.Out, err = tool.File(cmd, "output"); err != nil {
		return r, err
	}
	positional := len(args) == 2
	if positional {
		if r.Out != "" {
			return r, fault.Errorf(fault.Usage, "output named twice: %q and --output %q", args[1], r.Out)
		}
		r.Out = args[1]
	}
	opt := &r.Convert
	opt.VocabOnly, opt.BigEndian = cmd.Bool("vocab-only"), cmd.Bool("bigendian")
	opt.Split = convert.Split{Cut: gguf.Cut{MaxTensors: int(cmd.Uint("max-tensors"))},
		EmptyFirst: cmd.Bool("no-tensor-first-split")}
	if opt.Type, err = convert.ParseOutType(cmd.String("outtype")); err != nil {
		return r, err
	}
	opt.OwnType = cmd.IsSet("outtype") && opt.Type == convert.Auto
	if opt.Base, err = tool.File(cmd, "base"); err != nil {
		return r, err
	}
	opt.BaseID, opt.HubCache = cmd.String("base-model-id"), hubCache()
	if opt.Base != "" && opt.BaseID != "" {
		return r, fault.Errorf(fault.Usage,
			"--base and --base-model-id both say which model an adapter belongs to: want one of them")
	}
	r.Old = convert.OldOptions{Name: opt.ModelName, Description: cmd.String("desc"),
		Context: int64(cmd.Uint("ctx-size")), Epsilon: cmd.Float("eps"), Grouped: int64(cmd.Uint("gqa"))}
	if r.Old.Context > math.MaxUint32 || r.Old.Epsilon < 0 || math.IsNaN(r.Old.Epsilon) ||
		math.IsInf(r.Old.Epsilon, 0) {
		return r, fault.Errorf(fault.Usage,
			"--ctx-size %d, --eps %v: want a number of 32 bits and one that is not negative", r.Old.Context,
			r.Old.Epsilon)
	}
	r.ByName = !cmd.IsSet("outtype") && r.Out != ""
	if r.ByName && positional {
		opt.Type, _ = convert.FromFileName(filepath.Base(r.Out))
	}
	if s := cmd.String("max-size"); s != "" && s != "0" {
		if opt.Split.MaxBytes, err = tool.Size(cmd, "max-size"); err != nil {
			return r, err
		}
	}
	if opt.VocabOnly && opt.Split != (convert.Split{}) {
		return r, fault.Errorf(fault.Usage, "--vocab-only writes one file: it does not go with the flags that split")
	}
	if r.To, r.Out, err = upload.Parse(cmd, r.Out, false); err != nil {
		return r, err
	}
	r.Write = writer.Options{Workers: tool.Threads(cmd), Force: cmd.Bool("force") || r.To != nil}
	if err := writeOptions(cmd, &r.Write); err != nil {
		return r, err
	}
	if r.Write.Progress, err = tool.NewProgress(cmd); err != nil {
		return r, err
	}
	if r.Manifest, err = parseManifest(cmd, r.To != nil); r.ByName && positional && opt.Type != convert.Auto {
		r.Manifest.Set("outtype", opt.Type.String()) // the name, which says so now, is not in it
	}
	return r, err
}
