package main

import (
	"context"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/imatrix"
	tool "ggforge/internal/cli"
	"ggforge/internal/textflags"
	"ggforge/model"
	"ggforge/writer"
)

// matrixName is the name of the matrix that outputs record for a calibration in the same
// run, where there is no file: the one that llama-imatrix writes without -o.
const matrixName = "imatrix.gguf"

// calibration is a text that the importance matrix is made with.
type calibration struct {
	File   string // "" for none
	Text   eval.Text
	Output bool // also for the matrix that makes logits
}

func calibrationFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "calibrate", Usage: "make the importance matrix in the same run, with the text in `TEXT`"},
		&cli.UintFlag{Name: "ctx-size", Aliases: []string{"c"}, Value: 512, Usage: "cut the text into chunks of `N` tokens"},
		&cli.UintFlag{Name: "chunks", Usage: "take the first `N` chunks (0: all)"},
		&cli.BoolFlag{Name: "process-output", Usage: "collect for the matrix that makes logits, too"},
		&cli.BoolFlag{Name: "parse-special", Usage: "take the names of control tokens in the text for these"},
	}
}

// parseCalibration reads the flags of calibrationFlags.
func parseCalibration(cmd *cli.Command) (c calibration, err error) {
	if c.File, err = tool.File(cmd, "calibrate"); err != nil {
		return c, err
	}
	if c.File == "" {
		for _, f := range calibrationFlags() {
			if name := f.Names()[0]; cmd.IsSet(name) {
				return c, fault.Errorf(fault.Usage, "--%s goes with --calibrate", name)
			}
		}
		return c, nil
	}
	if cmd.IsSet("imatrix") {
		return c, fault.Errorf(fault.Usage, "--calibrate and --imatrix: want only one of them")
	}
	c.Text.ParseSpecial, c.Output = cmd.Bool("parse-special"), cmd.Bool("process-output")
	if c.Text.Chunk, err = tool.Count(cmd, "ctx-size"); err != nil {
		return c, err
	}
	c.Text.Chunks, err = tool.Count(cmd, "chunks")
	return c, err
}

// calibrate makes the importance matrix that the model is quantized with: that of ggeval
// imatrix with the same flags.
func (r *request) calibrate(ctx context.Context, cmd *cli.Command, m *model.Model) error {
	if r.Calibration.File == "" {
		return nil
	}
	r.Write.Inputs = append(r.Write.Inputs, r.Calibration.File)
	if o := &r.Quantize; !r.DryRun && r.OutDir == "" && !o.KeepSplit && o.SplitMaxTensors == 0 && o.SplitMaxBytes == 0 {
		if err := writer.Writable(r.Out, r.Write); err != nil {
			return err
		}
	}
	text, err := textflags.Read(cmd, r.Calibration.File, false)
	if err != nil {
		return err
	}
	e, err := eval.New(m)
	if err != nil {
		return err
	}
	v, err := textflags.Vocabulary(m)
	if err != nil {
		return err
	}
	run, _, err := textflags.Chunks(cmd, m, v, r.Calibration.File, text, r.Calibration.Text)
	if err != nil {
		return err
	}
	show, err := tool.NewWork(cmd)
	if err != nil {
		return err
	}
	if show != nil {
		run.Progress = func(p eval.Progress) { show(tool.Work{Done: p.Done, Note: "calibration"}) }
	}
	run.Workers = tool.Workers(cmd)
	sums := imatrix.NewSums(run.Chunk)
	if err := e.Collect(ctx, run, sums, eval.Importance{Output: r.Calibration.Output}); err != nil {
		return err
	}
	sums.Datasets = []string{filepath.Base(r.Calibration.File)}
	r.Quantize.Importance = sums.Matrix(matrixName)
	return nil
}
