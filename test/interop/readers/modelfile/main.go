// Modelfile prints what Ollama's parser reads in Modelfiles: for each line of standard input, a JSON string, one of JSON.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/ollama/ollama/parser"
)

// result is what a Modelfile holds, or why it holds nothing.
type result struct {
	Commands []parser.Command
	Error    string
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var text string
		if err := in.Decode(&text); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		var r result
		if f, err := parser.ParseFile(strings.NewReader(text)); err != nil {
			r.Error = err.Error()
		} else {
			r.Commands = f.Commands
		}
		if err := out.Encode(r); err != nil {
			panic(err)
		}
	}
}
