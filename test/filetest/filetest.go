// Package filetest fills files again and again, for fuzz targets of what reads files: making a new one for each execution
// takes several times as long as most executions.
package filetest

import (
	"io"
	"os"
	"testing"
)

// Refill gives a file other bytes, and its offset the beginning. It fails if another file has its name by now.
func Refill(t testing.TB, file *os.File, data []byte) {
	t.Helper()
	there, err := os.Lstat(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if own, err := file.Stat(); err != nil || !os.SameFile(there, own) {
		t.Fatalf("%s is another file now: %v", file.Name(), err)
	}
	err = file.Truncate(0)
	if err == nil {
		_, err = file.WriteAt(data, 0)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the bytes of a file.
func Read(t testing.TB, file *os.File) []byte {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
