package runs

import (
	"github.com/urfave/cli/v3"

	"ggforge/checkpoint/ggml"
	tool "ggforge/cmd/internal/cli"
	"ggforge/model"
	"ggforge/writer"
)

// IsOld reports whether the input is a file before GGUF, and refuses flags that are not for such an input.
func (r *ConvertRequest) IsOld(cmd *cli.Command) (bool, error) {
	if ggml.Is(r.Dir) {
		return true, tool.CheckInput(cmd, tool.OldFiles, r.Dir)
	}
	return false, tool.CheckInput(cmd, tool.Checkpoints, r.Dir)
}

// OldModelFile returns the output for a file before GGUF that convert.OpenOld has opened.
func OldModelFile(m *model.Model, path string) *writer.File {
	f := &writer.File{Path: path, Metadata: m.Metadata}
	for _, t := range m.Tensors {
		f.Tensors = append(f.Tensors, writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source})
	}
	return f
}
