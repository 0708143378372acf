package runs

import (
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
	"ggforge/writer"
)

// ConvertFlags are the flags of ggconv: those of convert_hf_to_gguf.py under the same names, and some more.
func ConvertFlags() []tool.Flag {
	return slices.Concat(
		tool.Group(tool.CategoryOutput,
			tool.Shared("output",
				"write to `FILE`, or into it if it is a directory; {ftype} stands for the output type", "outfile"),
			tool.Flag{Name: "outtype", Value: tool.Text, Default: convert.Auto.String(), Choices: outTypeNames,
				Effect: tool.SetsBytes, Inputs: tool.Checkpoints,
				Usage: "store weights as `TYPE`: " + convert.OutTypeNames()},
			tool.Flag{Name: "vocab-only", Effect: tool.SetsBytes, Inputs: tool.Checkpoints,
				Usage: "write the metadata and the vocabulary, no tensors"},
			tool.Flag{Name: "bigendian", Effect: tool.SetsBytes, Inputs: tool.Checkpoints,
				Usage: "write for big-endian machines"},
			tool.Shared("max-tensors", "begin a new file after `N` tensors", "split-max-tensors").For(tool.Checkpoints),
			tool.Shared("max-size", "begin a new file when tensors exceed `SIZE` bytes ("+tool.SizeHelp+")",
				"split-max-size").For(tool.Checkpoints),
			tool.Shared("no-tensor-first-split", "put no tensors into the first file of several").For(tool.Checkpoints),
			tool.CompatFlag("the reference's converter"),
			tool.ForceFlag(),
			upload.WorkDirFlag(),
			tool.JSONFlag(),
		),
		tool.Group("Plan and supported models",
			tool.Shared("dry-run", "print the plan for each tensor and the names of the files; write nothing"),
			tool.Flag{Name: "config-only", Effect: tool.PrintsOnly, Inputs: tool.Checkpoints, With: []string{"dry-run"},
				Usage: "with --dry-run and any number of DIRs: report for each whether its config.json and its tokenizer " +
					"are supported; weights need not be there"},
			tool.Flag{Name: "verbose", Effect: tool.RunsOnly, Usage: "print the plan for each tensor"},
			tool.Flag{Name: "print-supported-models", Effect: tool.PrintsOnly,
				Usage: "list the Hugging Face classes that are converted and the GGUF architecture of each"},
		),
		tool.Group("LoRA adapters",
			tool.Flag{Name: "base", Value: tool.File, Effect: tool.ReadsFile, Inputs: tool.Checkpoints,
				Usage: "the base model of an adapter is in `DIR`; only its config.json is read"},
			tool.Flag{Name: "base-model-id", Value: tool.Text, Effect: tool.AsksServer, Inputs: tool.Checkpoints,
				Usage: "the base model of an adapter is `ORG/NAME`, in the cache of the Hugging Face hub or on it " +
					"(default: the one that the adapter names, in the cache)"},
		),
		tool.Group(oldFileCategory,
			tool.Flag{Name: "desc", Value: tool.Text, Effect: tool.SetsBytes, Inputs: tool.OldFiles,
				Usage: "describe the model as `TEXT` (default: the kind of its file)"},
			tool.Flag{Name: "ctx-size", Aliases: []string{"c", "context-length"}, Value: tool.Count, Unit: "tokens",
				Effect: tool.SetsBytes, Inputs: tool.OldFiles,
				Usage: "the model has `N` positions (default 2048; Llama 2: 4096)"},
			tool.Flag{Name: "eps", Value: tool.Number, Effect: tool.SetsBytes, Inputs: tool.OldFiles,
				Usage: "the epsilon of its norms is `X` (default 5e-06; Llama 1: 1e-06, Llama 2: 1e-05)"},
			tool.Flag{Name: "gqa", Value: tool.Count, Unit: "query heads", Effect: tool.SetsBytes,
				Inputs: tool.OldFiles,
				Usage:  "`N` query heads share a key head (default: by the shapes of tensors)"},
		),
		[]tool.Flag{tool.ThreadsFlag(), tool.ProgressFlag()},
		forCheckpoints(WriteFlags()...),
		CheckpointFlags(),
	)
}

// outTypeNames returns the values of --outtype.
func outTypeNames() []string { return strings.Split(convert.OutTypeNames(), ", ") }

// oldFileCategory is the heading of the flags about files before GGUF.
const oldFileCategory = "Files before GGUF (GGML, GGMF, GGJT)"

// ConvertArgs is the usage of the arguments of ggconv.
const ConvertArgs = "DIR [OUT]"

// ConvertRequest has the flags and arguments of a command line of ggconv.
type ConvertRequest struct {
	Old     convert.OldOptions // for a file before GGUF
	Dir     string
	Dirs    []string // for Convert.ConfigOnly
	Out     string   // the user's path, "" for the default; for an object its path on this machine
	To      *upload.Destination
	ByName  bool // no flag sets the type: it may come from the name of Out
	Convert convert.Options
	Write   writer.Options

	DryRun, Verbose, PrintModels, JSON bool

	Manifest *Manifest // nil for none
}

// ParseConvert reads all flags and arguments.
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
		if r.Dirs, err = InputPaths(cmd, args); err != nil {
			return r, err
		}
		args = args[:1]
	}
	if r.Dir, err = InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
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
	if opt.Base, err = tool.FileValue(cmd, "base"); err != nil {
		return r, err
	}
	opt.BaseID, opt.HubCache = cmd.String("base-model-id"), hubCache()
	if opt.Base != "" && opt.BaseID != "" {
		return r, fault.Errorf(fault.Usage,
			"--base and --base-model-id both name the base model of an adapter: want one of them")
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
		if opt.Split.MaxBytes, err = tool.SizeValue(cmd, "max-size"); err != nil {
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
	if err := writeOptions(cmd, r.To, &r.Write); err != nil {
		return r, err
	}
	if r.Write.Progress, err = tool.NewProgress(cmd); err != nil {
		return r, err
	}
	if r.Manifest, err = parseManifest(cmd); r.ByName && positional && opt.Type != convert.Auto {
		r.Manifest.Set("outtype", opt.Type.String()) // ggtool reproduce uses --output, which sets no type
	}
	return r, err
}
