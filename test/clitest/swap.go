package clitest

import (
	"os"
	"testing"

	"ggforge/internal/io/disk"
)

// Swap replaces the content of a file when a command begins to write, after it has read its inputs. With quiet the time
// of the file stays; if the length is the same, too, nothing shows the change. remove ends the watch for writes.
func Swap(t *testing.T, path, content string, quiet bool) (remove func()) {
	t.Helper()
	done := false
	end := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
		if !done && (c.Op == disk.OpMkdir || c.Op == disk.OpOpen && c.Flag&os.O_CREATE != 0) {
			done = true
			info, err := os.Stat(path)
			if err == nil {
				err = overwrite(path, content, info.Size())
			}
			if err == nil && quiet {
				err = os.Chtimes(path, info.ModTime(), info.ModTime())
			}
			if err != nil {
				t.Error(err)
			}
		}
		return do(c.N)
	})
	return func() {
		t.Helper()
		end()
		if !done {
			t.Errorf("%s was not changed: nothing was written", path)
		}
	}
}

// overwrite is os.WriteFile for a file of that size, which may be mapped: Windows does not truncate mapped files.
func overwrite(path, content string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte(content), 0)
	if err == nil && int64(len(content)) < size {
		err = f.Truncate(int64(len(content)))
	}
	return err
}
