package clitest

import (
	"errors"

	"golang.org/x/sys/windows"
)

// Refused reports whether a change of a file failed because a process has it mapped: Windows neither truncates nor
// replaces such a file, so that the command must go on as if nothing had been tried.
func Refused(err error) bool {
	return errors.Is(err, windows.ERROR_USER_MAPPED_FILE) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}
