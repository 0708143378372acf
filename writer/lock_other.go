//go:build !windows && !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package writer

import (
	"errors"
	"os"
)

// lock fails: there is no lock that goes with its file. A file that is made
// exclusively is one's own all the same, but what another run has left cannot be
// told from what it is writing.
func lock(*os.File) error { return errors.ErrUnsupported }
