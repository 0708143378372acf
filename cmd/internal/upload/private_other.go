//go:build !unix

package upload

import "io/fs"

// private reports true: the folder for temporary files is the user's own.
func private(fs.FileInfo) bool { return true }
