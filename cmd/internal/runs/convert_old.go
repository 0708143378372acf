package runs

import (
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint/ggml"
	"ggforge/fault"
	"ggforge/model"
	"ggforge/writer"
)

// oldFlags are those about a file before GGUF only, and bothFlags those that it shares
// with checkpoints.
var (
	oldFlags  = []string{"desc", "ctx-size", "eps", "gqa"}
	bothFlags = []string{"output", "dry-run", "verbose", "threads", "force", "progress", "quiet", "json", "manifest",
		"model-name", "compat", "work-dir", "help", "version"}
)

// IsOld reports whether the input is a file before GGUF. Flags about the other kind of
// input are a usage error.
func (r *ConvertRequest) IsOld(cmd *cli.Command) (bool, error) {
	old := ggml.Is(r.Dir)
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		switch of := slices.Contains(oldFlags, name); {
		case !cmd.IsSet(name) || slices.Contains(bothFlags, name):
		case old && !of:
			return old, fault.Errorf(fault.Usage,
				"--%s is about checkpoints, and %s is a file before GGUF, whose weights stay as they are", name, r.Dir)
		case of && !old:
			return old, fault.Errorf(fault.Usage, "--%s is about files before GGUF, and %s is none", name, r.Dir)
		}
	}
	return old, nil
}

// OldFile returns the file that becomes of a file before GGUF, which convert.OpenOld has opened.
func OldModelFile(m *model.Model, path string) *writer.File {
	f := &writer.File{Path: path, Metadata: m.Metadata}
	for _, t := range m.Tensors {
		f.Tensors = append(f.Tensors, writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source})
	}
	return f
}
