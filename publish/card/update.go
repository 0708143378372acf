package card

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/writer"
)

// Writable checks the present card and the options: it returns the error with which writing a card into a folder would
// end. Long runs call it before they begin.
func Writable(dir string, opt Options, force bool) error {
	if opt.BaseModel != "" && !HubName(opt.BaseModel) {
		return fault.Errorf(fault.Usage, "base model %q: want ORG/NAME", opt.BaseModel)
	}
	if _, err := parseTemplate(opt.Template, new(limits)); err != nil {
		return err
	}
	c := &Card{dir: dir}
	_, err := c.old(force)
	return err
}

// Text returns the card without hand-written text. If a user's template fails, the error has kind fault.Usage.
func (c *Card) Text() (string, error) {
	body, err := c.filled()
	if err != nil {
		return "", err
	}
	front, err := c.frontMatter()
	if err != nil {
		return "", err
	}
	head := strings.Join(slices.Concat([]string{frontRule, frontBegin}, front, []string{frontEnd, frontRule}), "\n") +
		"\n"
	card := head + body
	d, err := parseDocument("template", card)
	if err == nil && len(d.body) == 1 { // a template without marks is generated as a whole
		card = head + beginMark("card") + "\n" + strings.TrimSuffix(body, "\n") + "\n" + endMark("card") + "\n"
	}
	return card, err
}

// maxCard bounds the present card, in bytes.
const maxCard = 4 << 20

// Update returns the new card, with the hand-written text of the present one, and whether they differ. A README.md
// without marks is an error of kind fault.Usage, unless force replaces it.
func (c *Card) Update(force bool) (card string, differs bool, err error) {
	next, err := c.Text()
	if err != nil {
		return "", false, err
	}
	old, err := c.old(force)
	if err != nil {
		return "", false, err
	}
	if old == nil {
		return next, true, nil
	}
	card, err = merge(c.Path(), *old, next)
	return card, card != *old, err
}

// old returns the present card, nil if there is none, or if it has no marks and force replaces it.
func (c *Card) old(force bool) (*string, error) {
	path := c.Path()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCard {
		return nil, fault.Errorf(fault.Usage, "%s: want a file of at most %d bytes", path, maxCard)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, fault.Errorf(fault.Broken, "%s: is not UTF-8", path)
	}
	text := string(data)
	d, err := parseDocument(path, text)
	switch {
	case err != nil:
		return nil, err
	case d.ours():
		return &text, nil
	case force:
		return nil, nil
	}
	return nil, fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist),
		"%s: exists and has no marks of a generated card", path))
}

// merge returns next with the hand-written text of old.
func merge(path, old, next string) (string, error) {
	d, err := parseDocument(path, old)
	if err != nil {
		return "", err
	}
	n, err := parseDocument("template", next)
	if err != nil {
		return "", err
	}
	card, err := d.update(n)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return card, nil
}

// Path returns the path of the card.
func (c *Card) Path() string { return filepath.Join(c.dir, FileName) }

// Write writes the card that Update returns, if it differs.
func (c *Card) Write(ctx context.Context, force bool) (differs bool, err error) {
	card, differs, err := c.Update(force)
	if err != nil || !differs {
		return false, err
	}
	return true, writer.WriteBytes(ctx, c.Path(), []byte(card), writer.Options{Force: true, Inputs: c.read})
}
