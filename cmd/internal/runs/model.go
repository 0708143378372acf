package runs

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/convert"
	"ggforge/model"
)

// ModelHelp describes the MODEL that Open opens, for the help of verbs.
const ModelHelp = "is a GGUF file, the first shard of a model, or a checkpoint directory,\n" +
	"which gives the same figures as converting it first."

// InstalledHelp describes names of models in the stores of other programs, for the help of verbs.
const InstalledHelp = "Models in the stores of other programs have names, too: ollama://NAME:TAG is one of\n" +
	"Ollama's, lmstudio://PUBLISHER/MODEL or lmstudio://PUBLISHER/MODEL/FILE.gguf one of LM\n" +
	"Studio's. OLLAMA_MODELS names Ollama's folder."

// ViaFlag returns --via, for commands that read a checkpoint as the file that it would be converted to.
func ViaFlag() tool.Flag {
	return tool.Shared("via", "take the weights as if converted to `TYPE` first: auto, f32, f16 or bf16").In(
		checkpointCategory).For(tool.Checkpoints)
}

// Checkpoint holds the settings for reading a checkpoint, for commands that also take files.
type Checkpoint struct {
	Convert convert.Options
}

// ParseCheckpoint reads CheckpointFlags and ViaFlag.
func ParseCheckpoint(cmd *cli.Command) (c Checkpoint, err error) {
	if c.Convert, err = ConvertOptions(cmd); err != nil {
		return c, err
	}
	if c.Convert.Type, err = convert.ParseOutType(cmd.String("via")); err != nil {
		return c, fmt.Errorf("--via: %w", err)
	}
	return c, nil
}

// Open opens a GGUF file, the first shard of a model, or a checkpoint directory
// as the file it would be converted to; all of them may be on a server. Warnings are printed.
func (c *Checkpoint) Open(ctx context.Context, cmd *cli.Command, path string) (*model.Model, error) {
	st, err := os.Stat(path)
	remote := checkpoint.IsRemote(path)
	switch {
	case err != nil && !remote:
		return nil, err
	case err == nil && st.IsDir(), remote && !checkpoint.IsFile(path), checkpoint.IsStateDict(path):
	case remote:
		if err := tool.CheckInput(cmd, tool.RemoteFiles, path); err != nil {
			return nil, err
		}
		return convert.OpenFile(ctx, path, c.Convert.Remote)
	default:
		if err := tool.CheckInput(cmd, tool.GGUFFiles, path); err != nil {
			return nil, err
		}
		return model.Open(path)
	}
	m, warnings, err := convert.Open(ctx, path, c.Convert)
	tool.Warn(cmd, warnings...)
	return m, err
}
