//go:build !linux && !windows

package writer

// renameNew renames a file to a name that is free: it never replaces one.
func renameNew(from, to string) error { return linkNew(from, to) }
