package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"ggforge/writer"
)

// WriteJSON prints the result of a command with --json.
func WriteJSON(w io.Writer, result any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(result)
}

// Written is the JSON output for files that a command has written, or would write.
type Written struct {
	Files []WrittenFile `json:"files"`
	// Seconds and Peak are the time and memory of the run; 0 if nothing was written.
	Seconds float64 `json:"seconds"`
	Peak    int64   `json:"peak_memory_bytes"`
}

// WrittenFile is a file.
type WrittenFile struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Tensors int    `json:"tensors"`
}

// WrittenOf returns the result for files.
func WrittenOf(files []*writer.File) Written {
	var w Written
	for _, f := range files {
		w.Files = append(w.Files, WrittenFile{f.Path, f.Size(), len(f.Tensors)})
	}
	return w
}

// Print prints the files as text, or as JSON.
func (w *Written) Print(to io.Writer, asJSON bool) error {
	if asJSON {
		return WriteJSON(to, w)
	}
	var bytes int64
	for _, f := range w.Files {
		bytes += f.Bytes
		if _, err := fmt.Fprintf(to, "%s: %s, %d tensors\n", f.Path, Bytes(f.Bytes), f.Tensors); err != nil {
			return err
		}
	}
	if w.Seconds == 0 {
		return nil
	}
	_, err := fmt.Fprintln(to, costText(w.Seconds, w.Peak, bytes))
	return err
}
