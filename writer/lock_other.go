//go:build !windows && !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package writer

import (
	"errors"

	"ggforge/internal/io/disk"
)

// lock fails: there is no lock here that ends with its process. A file that was
// made exclusively is ours anyway, but nothing shows whether another run has
// left a file or is still writing it.
func lock(*disk.File) error { return errors.ErrUnsupported }

// lockShared fails, too.
func lockShared(*disk.File) error { return errors.ErrUnsupported }
