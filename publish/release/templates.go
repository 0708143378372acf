package release

import (
	"context"
	"fmt"

	"ggforge/publish/verify"
)

// checkTemplates warns of chat templates that reach for Python's internals, and of texts that the templates of the
// files make otherwise than those of the checkpoint. All models of a release have the metadata of the source, so that one
// comparison is about all of them.
func (r *Release) checkTemplates(ctx context.Context) error {
	found, err := verify.Templates(ctx, r.source, r.templates)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.Note {
			r.opt.Warn(fmt.Sprintf("%s: %s", r.plan.Source, f.Text))
		}
	}
	return nil
}
