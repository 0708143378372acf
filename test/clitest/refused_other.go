//go:build !windows

package clitest

// Refused reports whether a change of a file failed because a process has it mapped, which hinders no other system than
// Windows.
func Refused(error) bool { return false }
