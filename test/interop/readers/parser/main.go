// Parser prints what gguf-parser-go reads in the headers of GGUF files: a line of JSON for each.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	parser "github.com/gpustack/gguf-parser-go"
)

type tensor struct {
	Name   string   `json:"name"`
	NE     []uint64 `json:"ne"`
	Type   uint32   `json:"type"`
	Offset uint64   `json:"offset"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, path := range os.Args[1:] {
		f, err := parser.ParseGGUFFile(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
		metadata := map[string]any{}
		for _, kv := range f.Header.MetadataKV {
			metadata[kv.Key] = kv.Value
			if kv.ValueType == parser.GGUFMetadataValueTypeArray {
				metadata[kv.Key] = kv.ValueArray().Array
			}
		}
		var tensors []tensor
		for _, t := range f.TensorInfos {
			tensors = append(tensors, tensor{t.Name, t.Dimensions, uint32(t.Type), t.Offset})
		}
		if err := out.Encode(map[string]any{"version": f.Header.Version, "metadata": metadata,
			"tensors": tensors}); err != nil {
			panic(err)
		}
	}
}
