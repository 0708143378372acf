package verify

import (
	"context"
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/model"
	"ggforge/tokenizer/chat"
)

// templates checks the chat templates of a file, against those of its source if there are any.
func templates(ctx context.Context, f *gguf.File, all *findings, source chat.Templates) error {
	if isMatrix(f.Metadata) {
		return nil
	}
	var list chat.Templates
	err := mmap.Guard(f.Path, func() (err error) { list, err = chat.FromMetadata(f.Metadata); return err })
	if err != nil {
		all.add("%s: %v", f.Path, err)
		return nil
	}
	found, err := ofTemplates(ctx, list, source)
	for _, x := range found {
		all.put(x.Note, "%s: %s", f.Path, x.Text)
	}
	return err
}

// Templates returns findings about the chat templates of a model, without its path: what templates reach for that no
// conversation needs, and conversations of which they make other texts than source, the templates of the checkpoint that
// it is made of, unless that is nil. Notes are about what other interpreters may have. The error is a read error or that
// of ctx.
func Templates(ctx context.Context, m *model.Model, source chat.Templates) ([]Finding, error) {
	var list chat.Templates
	err := mmap.Guard(m.Path, func() (err error) { list, err = chat.FromMetadata(m.Metadata); return err })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	return ofTemplates(ctx, list, source)
}

// ofTemplates returns the findings about list, compared with those of a source unless that is nil.
func ofTemplates(ctx context.Context, list, source chat.Templates) ([]Finding, error) {
	var all findings
	if n := len(list); n > chat.MaxRendered {
		all.note("%d chat templates: only %d are rendered", n, chat.MaxRendered)
	}
	for i, t := range list {
		for _, text := range t.Suspicious() {
			all.add("%s", text)
		}
		if i >= chat.MaxRendered || !t.Converses() {
			continue
		}
		for _, text := range t.Unknown() {
			all.note("%s", text)
		}
		why, err := t.Unusable(ctx)
		if err != nil {
			return nil, err
		}
		if why != nil { // other interpreters may know more than transformers
			all.note("the template gives no text: %v", why)
		}
	}
	if source == nil {
		return all.all(""), nil
	}
	differences, err := chat.Compare(ctx, list, source)
	for _, d := range differences {
		all.put(d.Extra || d.Unrendered, "%v", d)
	}
	return all.all(""), err
}
