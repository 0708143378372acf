package convert

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"ggforge/arch/config"
	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/writer"
)

// remote reports whether the checkpoint is on a server.
func (j *Job) remote() bool { return checkpoint.IsRemote(j.Dir) }

// Output returns the path of the output file for the user's out: a directory gets the default file name; "{ftype}" and
// "{outtype}" are replaced by the output type, in the same case. "" is the checkpoint's directory; for a model on a
// server, ORG-NAME-f16.gguf in the current directory. A split model has the names of its shards instead: see Outputs.
func (j *Job) Output(out string) (string, error) {
	if j.Image != nil {
		return j.imageOutput(out)
	}
	if out == "" && j.remote() {
		out = gguf.SafeName(j.name(), "-{ftype}.gguf")
		if id, _ := j.in.files.HubID(); id != "" {
			org, name := j.in.files.Name()
			out = org + "-" + name + "-{ftype}.gguf"
		}
	}
	if out == "" {
		out = j.Dir
	}
	if st, err := os.Stat(out); err == nil && st.IsDir() {
		switch {
		case j.options.MMProj:
			return filepath.Join(out, j.general.MMProjFileName(j.counts(), j.row().label)), nil
		case j.options.NextN == config.OnlyNextN:
			return filepath.Join(out, j.general.DraftFileName(j.counts(), j.row().label)), nil
		case j.options.VocabOnly:
			return filepath.Join(out, j.general.VocabFileName()), nil
		}
		return filepath.Join(out, j.general.FileName(j.counts(), j.row().label)), nil
	}
	name, err := fillTemplate(filepath.Base(out), j.row().label)
	return filepath.Join(filepath.Dir(out), name), err
}

// Outputs returns the files that Write writes for path: path, or its shards.
func (j *Job) Outputs(path string) []string {
	var paths []string
	for _, f := range j.outputs(path) {
		paths = append(paths, f.Path)
	}
	return paths
}

// Size returns the size in bytes of the files that Write will write.
func (j *Job) Size() (n int64) {
	for _, f := range j.outputs("") {
		n += f.Size()
	}
	return n
}

// outputs returns the files to write, one unless the model is split.
func (j *Job) outputs(path string) []*writer.File {
	f := &writer.File{Path: path, Metadata: j.metadata, BigEndian: j.options.BigEndian,
		LittleBlocks: j.options.Reference, WithoutData: j.options.VocabOnly}
	for _, t := range j.Plan {
		f.Tensors = append(f.Tensors, writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source})
	}
	return j.options.Split.apply(f)
}

// Metadata returns the metadata of the file.
func (j *Job) Metadata() gguf.Metadata { return slices.Clone(j.metadata) }

// Write carries out the plan. Weights that are finite but too large for the
// output type become infinite, as in the reference; the result counts them.
func (j *Job) Write(ctx context.Context, path string, opt writer.Options) (*writer.Result, error) {
	if j.options.ConfigOnly {
		return nil, fault.Errorf(fault.Usage, "%s: only the configuration was read", j.Dir)
	}
	opt.AllowOverflow = true
	opt.Inputs = append(opt.Inputs, j.Files()...)
	opt.Check = stamp.All(opt.Check, j.Unchanged)
	m := &model.Model{Path: j.Dir, Files: j.Files(), Metadata: j.metadata, Origin: j.Origin()}
	for _, t := range j.Plan {
		m.Tensors = append(m.Tensors, model.New(t.Name, t.Source))
	}
	if err := opt.AddModel(ctx, m); err != nil {
		return nil, err
	}
	return writer.WriteAll(ctx, j.outputs(path), opt)
}
