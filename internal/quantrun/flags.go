// Package quantrun reads a command line of ggquant: which outputs to make of which model. The
// command does what it says, and ggtool does it again from a manifest.
package quantrun

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/internal/convertflags"
	"ggforge/internal/outflags"
	"ggforge/internal/quantflags"
	"ggforge/internal/runflags"
	"ggforge/internal/size"
	"ggforge/production"
	"ggforge/quantize"
)

// Flags are those of llama-quantize under the same names, and some more.
func Flags() []cli.Flag {
	return slices.Concat(
		quantflags.Flags(),
		tool.Group(quantflags.CategoryTypes,
			&cli.BoolFlag{Name: "strict", Usage: "refuse, before any work, what is otherwise a warning: types that do not fit the rows, options without effect, " +
				"tensors that the importance matrix lacks (embeddings and output head aside) or knows nothing of"},
		),
		tool.Group("Types by worth, with --calibrate", typesFlags()...),
		tool.Group("Calibration", calibrationFlags()...),
		tool.Group("Metadata",
			&cli.BoolFlag{Name: "hide-imatrix", Usage: "do not record the importance matrix in the output"},
			&cli.StringSliceFlag{Name: "prune-layers", Usage: "leave out the layers of a list `L0,L1,...`; later ones move up"},
			&cli.StringSliceFlag{Name: "override-kv", Usage: "set metadata: `KEY=TYPE:VALUE` with TYPE int (becomes u32), float, bool or str; repeatable"},
		),
		tool.Group(tool.CategoryOutput,
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would become of each tensor and the exact size of the output; write nothing"},
			&cli.StringFlag{Name: "out-dir", Usage: "write one output for each TYPE into `DIR`"},
			&cli.StringFlag{Name: "name-template", Usage: "name them `NAME` instead of by the GGUF naming convention; {model} stands for what that has before the type, {ftype} and {FTYPE} for the type"},
			&cli.BoolFlag{Name: "keep-split", Usage: "write the same shards as the input has"},
			&cli.StringFlag{Name: "split-max-size", Usage: "write shards of at most `SIZE` bytes of tensors each (" + tool.SizeHelp + "); OUT is the beginning of their names"},
			&cli.UintFlag{Name: "split-max-tensors", Usage: "write shards of at most `N` tensors each"},
			tool.CompatFlag("the reference's tools"),
			tool.ForceFlag(),
			outflags.Flag(),
			tool.JSONFlag(),
		),
		tool.Group(tool.CategoryRun,
			tool.ThreadsFlag(),
			&cli.StringFlag{Name: "max-buffer-size", Usage: "bound all buffers to `SIZE`, in MiB or with a unit (0.5, 300M, 1GiB); they are small without that"},
			tool.ProgressFlag(),
		),
		runflags.Flags(),
		[]cli.Flag{convertflags.Via()}, convertflags.Flags(),
	)
}

// Request is what the flags and arguments ask for.
type Request struct {
	In  string
	Out string // empty with OutDir

	OutDir, NameTemplate string
	JSON                 bool
	To                   *outflags.Place    // of what becomes objects: Out and OutDir are where it is made
	Manifest             *runflags.Manifest // nil for none

	convertflags.Checkpoint
	production.Order // but for Paths, which depend on the model
}

// Parse reads all flags and arguments.
func Parse(cmd *cli.Command) (r Request, err error) {
	r.DryRun, r.JSON = cmd.Bool("dry-run"), cmd.Bool("json")
	r.NameTemplate = cmd.String("name-template")
	if r.OutDir, err = tool.File(cmd, "out-dir"); err != nil {
		return r, err
	}
	if r.OutDir == "" && cmd.IsSet("name-template") {
		return r, fault.Errorf(fault.Usage, "--name-template goes with --out-dir")
	}
	threads, err := r.positionals(cmd)
	if err != nil {
		return r, err
	}
	if r.OutDir != "" {
		r.To, r.OutDir, err = outflags.For(cmd, r.OutDir, true)
	} else {
		r.To, r.Out, err = outflags.For(cmd, r.Out, false)
		if r.To != nil && r.Out == r.To.Dir {
			err = fault.Errorf(fault.Usage, "the output is %s, a folder: want an object, or --out-dir", r.To.Object(""))
		}
	}
	if err != nil {
		return r, err
	}
	if r.Checkpoint, err = convertflags.Parse(cmd); err != nil {
		return r, err
	}
	if r.Calibration, err = parseCalibration(cmd); err != nil {
		return r, err
	}
	if err := r.quantizeOptions(cmd); err != nil {
		return r, err
	}
	if err := r.parseTypes(cmd); err != nil {
		return r, err
	}
	if err := r.writerOptions(cmd, threads); err != nil {
		return r, err
	}
	r.Manifest, err = runflags.ReadManifest(cmd, r.To != nil)
	return r, err
}

// quantizeOptions reads the flags that say what to make of the model.
func (r *Request) quantizeOptions(cmd *cli.Command) (err error) {
	if r.Quantize, r.Write.Inputs, err = quantflags.Options(cmd); err != nil {
		return err
	}
	opt := &r.Quantize
	opt.Reference, opt.HideMatrix, opt.KeepSplit = r.Convert.Reference, cmd.Bool("hide-imatrix"), cmd.Bool("keep-split")
	opt.SplitMaxTensors, opt.Strict = int(cmd.Uint("split-max-tensors")), cmd.Bool("strict")
	for _, s := range cmd.StringSlice("prune-layers") {
		layers, err := quantize.ParseLayers(s)
		if err != nil {
			return err
		}
		opt.PruneLayers = append(opt.PruneLayers, layers...)
	}
	for _, s := range cmd.StringSlice("override-kv") {
		kv, err := quantize.ParseOverride(s)
		if err != nil {
			return err
		}
		opt.Override = append(opt.Override, kv)
	}
	if cmd.IsSet("split-max-size") {
		if opt.SplitMaxBytes, err = tool.Size(cmd, "split-max-size"); err != nil {
			return err
		}
	}
	return quantflags.OnlyOne(cmd, "keep-split", "split-max-tensors", "split-max-size")
}

// writerOptions reads the flags that say how to write.
func (r *Request) writerOptions(cmd *cli.Command, threads int) (err error) {
	r.Write.Workers, r.Write.Force, r.Write.MakeDir = threads, cmd.Bool("force") || r.To != nil, r.OutDir
	if cmd.IsSet("max-buffer-size") {
		if r.Write.MaxBuffer, err = size.ParseIn(cmd.String("max-buffer-size"), 1<<20); err != nil {
			return fmt.Errorf("--max-buffer-size: %w", err)
		}
	}
	if err := runflags.Options(cmd, &r.Write); err != nil {
		return err
	}
	if j := r.Write.Journal; (j.Part > 0 || j.Finish) && r.Calibration.File != "" {
		return fault.Errorf(fault.Usage, "--calibrate runs the model, which every part would do: make an importance matrix first (ggeval imatrix, in parts, too) and take it with --imatrix, or collect moments (ggquant MODEL OUT F16 --calibrate TEXT --effort high --hessian FILE) and take them with --hessian FILE")
	}
	r.Write.Progress, err = tool.NewProgress(cmd)
	return err
}
