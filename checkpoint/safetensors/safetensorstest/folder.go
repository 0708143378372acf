package safetensorstest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"ggforge/checkpoint/safetensors"
)

// OpenDir opens the checkpoint at a path, whatever links are in it.
func OpenDir(dir string) (*safetensors.Checkpoint, error) {
	return safetensors.OpenDir(folder(dir), dir)
}

type folder string

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.Join(string(f), name))
}

func (f folder) OpenFile(name string) (*os.File, error) {
	path := filepath.Join(string(f), name)
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // opening a pipe waits for a writer
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is not a regular file")}
	}
	return os.Open(path)
}
