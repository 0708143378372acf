package checkpoint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"

	"ggforge/checkpoint"
)

// Read a side file of a model directory. A name that leads out of it is refused.
func ExampleOpen() {
	dir, err := checkpoint.Open("../test/testdata/gollama", checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	config, err := dir.ReadFile("config.json")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(config), "bytes of configuration")
	_, err = dir.ReadFile("tokenizer.json")
	fmt.Println("tokenizer.json:", errors.Is(err, fs.ErrNotExist))
	_, err = dir.ReadFile("../gollama.sha256")
	fmt.Println("outside:", err != nil)
	// Output:
	// 721 bytes of configuration
	// tokenizer.json: true
	// outside: true
}
