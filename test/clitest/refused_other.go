//go:build !windows

package clitest

// Refused reports whether a change of a file failed because a process has it mapped, which happens on Windows only.
func Refused(error) bool { return false }
