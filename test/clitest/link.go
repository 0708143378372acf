package clitest

import (
	"os"
	"runtime"
	"testing"
)

// Symlink makes a symbolic link, and reports whether there is one: Windows makes them only for users who have that
// privilege, and Wine 10 reports success without making one. Elsewhere the test fails without it.
func Symlink(t testing.TB, old, name string) bool {
	t.Helper()
	err := os.Symlink(old, name)
	if err == nil {
		_, err = os.Readlink(name)
	}
	switch {
	case err == nil:
		return true
	case runtime.GOOS != "windows":
		t.Fatal(err)
	}
	t.Logf("no symbolic links: %v", err)
	return false
}

// NeedsSymlink is Symlink for a test that ends without it.
func NeedsSymlink(t testing.TB, old, name string) {
	t.Helper()
	if !Symlink(t, old, name) {
		t.Skip("needs symbolic links, which this user cannot make here")
	}
}
