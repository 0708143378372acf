package runs

import (
	"fmt"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/quantize/batch"
	"ggforge/quantize/calibrate"
)

// EffortFlag returns --effort.
func EffortFlag(usage string) tool.Flag {
	return tool.Flag{Name: "effort", Value: tool.Text, Default: calibrate.EffortMatrix.String(),
		Effect: tool.SetsBytes, Choices: calibrate.Efforts, Usage: usage}
}

func calibrationFlags() []tool.Flag {
	list := []tool.Flag{
		tool.Shared("calibrate", "make the importance matrix in the same run, from the text in `FILE`"),
		EffortFlag("`EFFORT` of --calibrate: matrix, an importance matrix; high, blocks chosen by the second moments " +
			"of a layer's inputs as well; best, one tensor after the other"),
		{Name: "hessian", Value: tool.File, Effect: tool.KeepsFile,
			Usage: "with --effort high: keep the second moments in `FILE`; if it exists, take them from it instead of " +
				"running the model, and --calibrate may be left out"},
		{Name: "tune-norms", Effect: tool.SetsBytes,
			Usage: "with --effort high or best: at the end, tune the weights of norms by gradients of the divergence from IN; " +
				"types and size stay, and one of eight chunks of the text decides whether the norms are kept"},
		tool.Shared("ctx-size", "cut the text into chunks of `N` tokens"),
		tool.Shared("chunks", "take the first `N` chunks, or with --effort high and best N spread over the text (0: all)"),
		tool.Shared("process-output", "collect importance for the output matrix, too"),
		{Name: "nextn", Effect: tool.SetsBytes,
			Usage: "run the MTP (NextN) layers, too, and collect importance for them; with --effort matrix"},
		tool.Shared("parse-special", "parse names of control tokens in the text as these tokens"),
	}
	for _, f := range ChatFlags() {
		list = append(list, f.In(""))
	}
	for i := range list {
		switch f := &list[i]; f.Name {
		case "calibrate", "hessian", "template", "template-arguments":
		case "effort":
			f.With = []string{"calibrate", "hessian"}
		default:
			f.With = []string{"calibrate"}
		}
	}
	return list
}

// parseCalibration reads the flags of calibrationFlags.
func parseCalibration(cmd *cli.Command) (c batch.Calibration, err error) {
	if c.File, err = tool.FileValue(cmd, "calibrate"); err != nil {
		return c, err
	}
	if c.Moments, err = tool.FileValue(cmd, "hessian"); err != nil {
		return c, err
	}
	if c.File == "" && c.Moments == "" {
		return c, nil
	}
	if cmd.IsSet("imatrix") {
		return c, fault.Errorf(fault.Usage, "--calibrate or --hessian, and --imatrix: want only one of them")
	}
	if c.Effort, err = calibrate.ParseEffort(cmd.String("effort")); err != nil {
		return c, fmt.Errorf("--%w", err)
	}
	switch {
	case c.Moments == "":
	case c.Effort == calibrate.EffortBest:
		return c, fault.Errorf(fault.Usage,
			"--hessian goes with --effort high: with best, second moments are those of the inputs in the quantized "+
				"model, which differ between outputs")
	case c.Effort == calibrate.EffortMatrix:
		return c, fault.Errorf(fault.Usage,
			"--hessian goes with --effort high: an importance matrix alone is kept by ggeval imatrix")
	}
	if c.TuneNorms = cmd.Bool("tune-norms"); c.TuneNorms && !c.Effort.EncodesBlocks() {
		return c, fault.Errorf(fault.Usage, "--tune-norms goes with --effort high or best")
	}
	if c.NextN = cmd.Bool("nextn"); c.NextN && c.Effort.EncodesBlocks() {
		return c, fault.Errorf(fault.Usage, "--nextn goes with --effort matrix: second moments are those of the other layers")
	}
	if c.Chats, err = parseChats(cmd); err != nil {
		return c, err
	}
	c.Text.ParseSpecial, c.Output = cmd.Bool("parse-special") || c.Chats != nil, cmd.Bool("process-output")
	if c.Text.Chunk, err = tool.CountValue(cmd, "ctx-size"); err != nil {
		return c, err
	}
	c.Text.Chunks, err = tool.CountValue(cmd, "chunks")
	return c, err
}
