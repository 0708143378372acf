package writer

import (
	"context"
	"os"
	"path/filepath"
)

// WriteBytes writes a file whose bytes are at hand, as Write does one of tensors: under a
// temporary name first, and nothing is left after an error.
func WriteBytes(ctx context.Context, path string, data []byte, opt Options) error {
	l := layout{path: path, size: int64(len(data)), header: func() []byte { return data }}
	_, err := write(ctx, []set{{files: []layout{l}}}, opt)
	return err
}

// Writable returns the error that writing a file would begin with because of what is
// there: for runs that take long before they write.
func Writable(path string, opt Options) error {
	if err := distinct(opt.Inputs, []string{path}); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return err
	}
	return checkFinal(path, opt.Force)
}
