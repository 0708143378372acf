package convert

import (
	"context"
	"errors"
	"fmt"

	"ggforge/checkpoint"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/tokenizer/chat"
)

// Open plans the conversion of the Hugging Face checkpoint in dir and returns the model of the converted file:
// quantizing it gives the same bytes as quantizing that file. It has the conversion's warnings. The caller closes the
// model.
func Open(ctx context.Context, dir string, opt Options) (*model.Model, []string, error) {
	m, job, err := openModel(ctx, dir, opt)
	if err != nil {
		return nil, nil, err
	}
	return m, job.Warnings, nil
}

// OpenWithTemplates is Open; it also returns the chat templates of the checkpoint, with the special tokens that its files
// name, not nil. Those of the model have the tokens of its vocabulary.
func OpenWithTemplates(ctx context.Context, dir string, opt Options) (*model.Model, chat.Templates, []string, error) {
	m, job, err := openModel(ctx, dir, opt)
	if err != nil {
		return nil, nil, nil, err
	}
	list, err := chat.FromCheckpoint(job.modelDir())
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("%s: %w", dir, err), m.Close())
	}
	return m, append(chat.Templates{}, list...), job.Warnings, nil
}

// openModel plans a conversion and returns the model of the converted file, which owns the job.
func openModel(ctx context.Context, dir string, opt Options) (*model.Model, *Job, error) {
	job, err := prepare(ctx, dir, opt, false)
	if err != nil {
		return nil, nil, err
	}
	m := &model.Model{Path: dir, Files: job.Files(), Inputs: job.Inputs(), Bytes: job.Size(), Metadata: job.Metadata(),
		Shards: 1, Converted: true, Origin: job.Origin(), Release: job.Close, Check: job.Unchanged}
	for _, t := range job.Plan {
		m.Tensors = append(m.Tensors, model.New(t.Name, rows.Convert(t.Source, t.Type)))
	}
	return m, job, nil
}

// OpenFile returns the model of a GGUF file on a server, or of its shards: see checkpoint.OpenFile. The caller closes
// it.
func OpenFile(ctx context.Context, name string, opt checkpoint.Remote) (*model.Model, error) {
	f, err := checkpoint.OpenFile(ctx, name, opt)
	if err != nil {
		return nil, err
	}
	m, err := model.Of(name, f.Set)
	if err != nil {
		f.Close()
		return nil, err
	}
	m.Files, m.Inputs, m.Origin, m.Release = nil, f.Inputs(), f.Origin(), f.Close // not local: no output can overwrite them
	for i := range m.Inputs {
		m.Inputs[i].Role = model.SourceRole
	}
	return m, nil
}
