package runs

import (
	"bytes"
	"context"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/upload"
	"ggforge/internal/io/bucket"
	"ggforge/writer"
)

// PageOutput holds the path and options of an HTML page with the figures.
type PageOutput struct {
	HTML  string // path; "" for no page
	Force bool
}

// PageFlags returns --html and --force.
func PageFlags() []tool.Flag {
	return []tool.Flag{
		tool.Shared("html",
			"write the figures with plots to `FILE`, too, as a self-contained HTML page").In(
			tool.CategoryOutput),
		tool.ForceFlag(),
	}
}

// ParsePage reads PageFlags.
func ParsePage(cmd *cli.Command) (p PageOutput, err error) {
	p.Force = cmd.Bool("force")
	p.HTML, err = tool.FileValue(cmd, "html")
	return p, err
}

// Check refuses a page, a file or an object, that could not be written; it must not replace one of the inputs.
func (p *PageOutput) Check(ctx context.Context, inputs []string) error {
	switch {
	case p.HTML == "":
		return nil
	case bucket.Is(p.HTML):
		return upload.Vacant(ctx, p.HTML, p.Force)
	}
	return writer.Writable(p.HTML, writer.Options{Force: p.Force, Inputs: inputs})
}

// Write writes the page, if one is wanted.
func (p *PageOutput) Write(ctx context.Context, inputs []string, content func() *page.Page) error {
	if p.HTML == "" {
		return nil
	}
	var b bytes.Buffer
	if err := page.Write(&b, content()); err != nil {
		return err
	}
	if bucket.Is(p.HTML) {
		return upload.Bytes(ctx, p.HTML, b.Bytes(), p.Force)
	}
	return writer.WriteBytes(ctx, p.HTML, b.Bytes(), writer.Options{Force: p.Force, Inputs: inputs})
}
