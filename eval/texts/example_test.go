package texts_test

import (
	"fmt"
	"os"
	"path/filepath"

	"ggforge/eval/texts"
)

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "wiki.txt")
	if err := os.WriteFile(file, []byte("a text\n"), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	text, err := texts.Load(file)
	fmt.Printf("%q %v\n", text, err)
	// Output:
	// "a text\n" <nil>
}
