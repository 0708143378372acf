package main

import (
	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/writer"
)

// aloneFlag returns the flag that reads a shard by itself.
func aloneFlag() tool.Flag {
	return tool.Flag{Name: "alone", Effect: tool.SetsBytes,
		Usage: "read a shard by itself, without the others of its model"}
}

// open opens the model at path; with alone, only that file.
func open(path string, alone bool) (*gguf.Set, error) {
	if err := writer.Unrecovered(path); err != nil {
		return nil, err
	}
	if !alone {
		return gguf.OpenSet(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	return f.Set(), nil
}
