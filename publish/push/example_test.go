package push_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ggforge/publish/push"
)

// A folder is pushed to the hub: its files, one commit.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# A model\n"), 0o666); err != nil {
		panic(err)
	}
	p, err := push.Prepare(dir, "hf://org/Model-GGUF", push.Options{Token: os.Getenv("NO_SUCH_TOKEN")})
	if err != nil {
		panic(err)
	}
	_, err = p.Run(context.Background())
	fmt.Println(err)
	// Output:
	// hf://org/Model-GGUF@main: pushing needs a token that may write: HF_TOKEN, or the file that hf auth login writes
}
