//go:build !unix && !windows

package writer

import "os"

// renamesOpen says whether an open file can be renamed and removed.
const renamesOpen = false

// noFollow is what systems without it have instead.
const noFollow = 0

// links returns how many names the file has.
func links(*os.File) (uint64, error) { return 1, nil }

// fileID returns nothing: files have no IDs here.
func fileID(string) (string, error) { return "", nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
