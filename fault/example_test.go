package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ggforge/convert"
	"ggforge/fault"
)

// A program distinguishes kinds of failure.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_, err = convert.Prepare(context.Background(), filepath.Join(dir, "none"), convert.Options{})
	fmt.Println("usage:", errors.Is(err, fault.Usage), "- no such file:", errors.Is(err, fs.ErrNotExist))

	_, err = convert.Prepare(context.Background(), dir, convert.Options{}) // there is no config.json in it
	fmt.Println("broken:", errors.Is(err, fault.Broken), "- no such file:", errors.Is(err, fs.ErrNotExist))
	// Output:
	// usage: true - no such file: true
	// broken: true - no such file: true
}
