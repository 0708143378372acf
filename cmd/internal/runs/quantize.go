package runs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/upload"
	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/text/size"
	"ggforge/model/digest"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/batch"
)

// QuantizeFlags are the flags of ggquant: those of llama-quantize under the same names, and some more.
func QuantizeFlags() []tool.Flag {
	return slices.Concat(
		TypeFlags(),
		tool.Group(CategoryTypes,
			tool.Flag{Name: "strict", Effect: tool.Refuses,
				Usage: "turn warnings into errors, before any work: types that do not fit the rows, options without " +
					"effect, tensors without an entry in the importance matrix (embeddings and output head aside) or " +
					"with an importance of 0"},
		),
		tool.Group("Bit allocation, with --calibrate; of image models by errors of weights", typesFlags()...),
		tool.Group("Calibration", calibrationFlags()...),
		tool.Group("Metadata",
			tool.Flag{Name: "hide-imatrix", Effect: tool.SetsBytes,
				Usage: "do not record the importance matrix in the output"},
			tool.Flag{Name: "prune-layers", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "leave out the layers of a list `L0,L1,...`; later ones move up"},
			tool.Flag{Name: "override-kv", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "set metadata: `KEY=TYPE:VALUE` with TYPE int (becomes u32), float, bool or str; repeatable"},
		),
		tool.Group(tool.CategoryOutput,
			tool.Shared("dry-run",
				"print the plan for each tensor and the size of the output, which is exact without --effort "+
					"high or best; write nothing"),
			tool.Shared("output",
				"write to `OUT`, instead of naming it as an argument; if it is a directory, or ends in /, the same "+
					"as --out-dir", "outfile"),
			tool.Flag{Name: "out-dir", Value: tool.File, Effect: tool.NamesOutput,
				Usage: "write one output for each TYPE into `DIR`"},
			tool.Shared("name-template",
				"name them `NAME` (default: "+naming.DefaultTemplate+"): "+naming.TemplateHelp()),
			tool.Flag{Name: "keep-split", Effect: tool.SetsBytes,
				Usage: "write the same shards as the input has"},
			tool.Shared("max-size",
				"write shards of at most `SIZE` bytes of tensors each ("+tool.SizeHelp+"); OUT is the beginning of "+
					"their names", "split-max-size"),
			tool.Shared("max-tensors", "write shards of at most `N` tensors each",
				"split-max-tensors"),
			tool.CompatFlag("the reference's tools"),
			tool.ForceFlag(),
			upload.WorkDirFlag(),
			tool.JSONFlag(),
		),
		tool.Group(tool.CategoryRun,
			tool.ThreadsFlag(),
			tool.Flag{Name: "max-buffer-size", Value: tool.Size, Effect: tool.RunsOnly,
				Usage: "bound all buffers to `SIZE`, in MiB or with a unit (0.5, 300M, 1GiB); they are small by default"},
			tool.ProgressFlag(),
		),
		WriteFlags(),
		[]tool.Flag{ViaFlag()}, CheckpointFlags(),
	)
}

// QuantizeArgs is the usage of the arguments of ggquant.
const QuantizeArgs = "IN [OUT] TYPE [NTHREADS], or --out-dir DIR IN TYPE..."

// QuantizeRequest has the flags and arguments of a command line of ggquant.
type QuantizeRequest struct {
	In  string
	Out string // empty with OutDir

	OutDir, NameTemplate string
	JSON                 bool
	To                   *upload.Destination // for objects: Out and OutDir are then paths on this machine
	Manifest             *Manifest           // nil for none
	Held                 []digest.Input      // files that flags name, already read

	Checkpoint
	batch.Request // without Paths, which depend on the model
}

// ParseQuantize reads all flags and arguments.
func ParseQuantize(cmd *cli.Command) (r QuantizeRequest, err error) {
	r.DryRun, r.JSON = cmd.Bool("dry-run"), cmd.Bool("json")
	r.NameTemplate = cmd.String("name-template")
	if r.OutDir, err = tool.FileValue(cmd, "out-dir"); err != nil {
		return r, err
	}
	if r.Out, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if r.Out != "" && r.OutDir != "" {
		return r, fault.Errorf(fault.Usage, "output named twice: --output %q and --out-dir %q", r.Out, r.OutDir)
	}
	if isFolder(r.Out) {
		r.OutDir, r.Out = r.Out, ""
	}
	if r.OutDir == "" && cmd.IsSet("name-template") {
		return r, fault.Errorf(fault.Usage, "--name-template goes with --out-dir")
	}
	if cmd.IsSet("name-template") {
		if err := naming.CheckTemplate(r.NameTemplate); err != nil {
			return r, fmt.Errorf("--name-template: %w", err)
		}
	}
	threads, err := r.positionals(cmd)
	if err != nil {
		return r, err
	}
	if r.OutDir != "" {
		r.To, r.OutDir, err = upload.Parse(cmd, r.OutDir, true)
	} else {
		r.To, r.Out, err = upload.Parse(cmd, r.Out, false)
		if r.To != nil && r.Out == r.To.Dir {
			err = fault.Errorf(fault.Usage, "the output is %s, a folder: want an object, or --out-dir", r.To.Object(""))
		}
	}
	if err != nil {
		return r, err
	}
	if r.Checkpoint, err = ParseCheckpoint(cmd); err != nil {
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
	r.Manifest, err = parseManifest(cmd)
	return r, err
}

// isFolder reports whether a path is the name of a folder, existing or to be made.
func isFolder(path string) bool {
	if strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator)) {
		return true
	}
	info, err := disk.Stat(path)
	return err == nil && info.IsDir()
}

// quantizeOptions reads the flags that choose types and tensors.
func (r *QuantizeRequest) quantizeOptions(cmd *cli.Command) (err error) {
	if r.Quantize, r.Held, err = QuantizeOptions(cmd); err != nil {
		return err
	}
	r.Write.Inputs = digest.Paths(r.Held)
	opt := &r.Quantize
	opt.Reference, opt.HideMatrix, opt.KeepSplit = r.Convert.Reference, cmd.Bool("hide-imatrix"), cmd.Bool("keep-split")
	opt.SplitMaxTensors, opt.Strict = int(cmd.Uint("max-tensors")), cmd.Bool("strict")
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
	if cmd.IsSet("max-size") {
		if opt.SplitMaxBytes, err = tool.SizeValue(cmd, "max-size"); err != nil {
			return err
		}
	}
	return atMostOne(cmd, "keep-split", "max-tensors", "max-size")
}

// writerOptions reads the flags about writing.
func (r *QuantizeRequest) writerOptions(cmd *cli.Command, threads int) (err error) {
	r.Write.Workers, r.Write.Force, r.Write.MakeDir = threads, cmd.Bool("force") || r.To != nil, r.OutDir
	if cmd.IsSet("max-buffer-size") {
		if r.Write.MaxBuffer, err = size.ParseIn(cmd.String("max-buffer-size"), 1<<20); err != nil {
			return fmt.Errorf("--max-buffer-size: %w", err)
		}
	}
	if err := writeOptions(cmd, r.To, &r.Write); err != nil {
		return err
	}
	if j := r.Write.Journal; (j.Part > 0 || j.Finish) && r.Calibration.File != "" {
		return fault.Errorf(fault.Usage,
			"--calibrate runs the model, which every part would do: make an importance matrix first (ggeval imatrix, "+
				"in parts, too) and take it with --imatrix, or collect moments (ggquant MODEL OUT F16 --calibrate "+
				"TEXT --effort high --hessian FILE) and take them with --hessian FILE")
	}
	r.Write.Progress, err = tool.NewProgress(cmd)
	return err
}
