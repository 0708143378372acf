package runs

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/model"
)

// ModelHelp says what a MODEL is that Open opens, for the help of verbs.
const ModelHelp = "is a GGUF file, the first of the shards of a model, or a checkpoint directory,\n" +
	"which gives the same figures as converting it first."

// remoteFlags are those of Flags that say how to read what is on a server.
var remoteFlags = []string{"remote", "cache"}

// Via is the flag of commands that take a checkpoint as the file that it would be
// converted to.
func ViaFlag() cli.Flag {
	return tool.OneOf(&cli.StringFlag{Name: "via", Category: checkpointCategory, Value: convert.Auto.String(),
		Usage: "take the weights as if converted to `TYPE` first: auto, f32, f16 or bf16"},
		tool.Names("auto", "f32", "f16", "bf16")).As(tool.SetsBytes)
}

// Checkpoint is what the flags say of checkpoints, for commands that take files, too.
type Checkpoint struct {
	Convert convert.Options
	// CheckpointFlag is the first flag given that only makes sense for a
	// checkpoint, "" for none; RemoteFlag is one that goes with any model on a server.
	CheckpointFlag, RemoteFlag string
}

// Parse reads the flags of Flags and Via.
func ParseCheckpoint(cmd *cli.Command) (c Checkpoint, err error) {
	if c.Convert, err = ConvertOptions(cmd); err != nil {
		return c, err
	}
	if c.Convert.Type, err = convert.ParseOutType(cmd.String("via")); err != nil {
		return c, fmt.Errorf("--via: %w", err)
	}
	for _, name := range remoteFlags {
		if cmd.IsSet(name) {
			c.RemoteFlag = name
		}
	}
	if c.CheckpointFlag = setCheckpointFlag(cmd, remoteFlags...); cmd.IsSet("via") {
		c.CheckpointFlag = "via"
	}
	return c, nil
}

// Open opens a GGUF file, the first of the shards of a model, or a checkpoint directory
// as the file it would be converted to; all of them may be on a server. Warnings are printed.
func (c *Checkpoint) Open(ctx context.Context, cmd *cli.Command, path string) (*model.Model, error) {
	st, err := os.Stat(path)
	remote := checkpoint.IsRemote(path)
	switch {
	case err != nil && !remote:
		return nil, err
	case err == nil && st.IsDir(), remote && !checkpoint.IsFile(path):
	case c.CheckpointFlag != "":
		return nil, fault.Errorf(fault.Usage, "--%s is for checkpoints; %s is a file", c.CheckpointFlag, path)
	case remote:
		return convert.OpenFile(ctx, path, c.Convert.Remote)
	case c.RemoteFlag != "":
		return nil, fault.Errorf(fault.Usage, "--%s is for checkpoints and files on a server; %s is a file",
			c.RemoteFlag, path)
	default:
		return model.Open(path)
	}
	m, warnings, err := convert.Open(ctx, path, c.Convert)
	tool.Warn(cmd, warnings...)
	return m, err
}
