package installed_test

import (
	"fmt"
	"os"
	"path/filepath"

	"ggforge/checkpoint/installed"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "publisher", "tiny-GGUF", "tiny-Q4_K_M.gguf")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		fmt.Println(err)
		return
	}
	stores := installed.Stores{LMStudio: []string{dir}} // Environment returns those of this user
	found, err := stores.Find("lmstudio://publisher/tiny-GGUF")
	fmt.Println(filepath.Base(found), err)
	fmt.Println(installed.Is("ollama://tiny:latest"), installed.Is("tiny.gguf"))
	// Output:
	// tiny-Q4_K_M.gguf <nil>
	// true false
}
