//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package writer

import "os"

// renamesOpen says whether an open file can be renamed and removed.
const renamesOpen = false

func lock(*os.File) error { return nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
