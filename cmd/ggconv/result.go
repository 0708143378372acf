package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"ggforge/arch"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/convert"
	"ggforge/gguf"
)

// conversion is the JSON output for a converted model, and with --dry-run for one that would be converted.
type conversion struct {
	Architecture string `json:"architecture"`
	// type of the weights; left out for files before GGUF, which keep theirs
	Type     string    `json:"type,omitempty"`
	Bytes    int64     `json:"bytes"` // total size of the files
	Files    []string  `json:"files"`
	Tensors  []planned `json:"tensors"`
	Warnings []string  `json:"warnings"`
	Seconds  float64   `json:"seconds,omitempty"` // left out with --dry-run, as is the next field
	Peak     int64     `json:"peak_memory_bytes,omitempty"`

	Part *runs.WrittenPart `json:"written,omitempty"` // the part, with --part
}

// planned is a tensor of the output.
type planned struct {
	Name string  `json:"name"`
	From string  `json:"from,omitempty"` // "" if it is computed
	NE   []int64 `json:"ne"`
	Type string  `json:"type"`
}

// conversionOf describes the result of a job.
func conversionOf(job *convert.Job, outputs []string) conversion {
	c := conversion{Architecture: job.Architecture(), Type: job.Type.String(), Bytes: job.Size(), Files: outputs,
		Warnings: append([]string{}, job.Warnings...)}
	for _, p := range job.Plan {
		c.Tensors = append(c.Tensors, planned{p.Name, p.From, p.Source.NE(), p.Type.String()})
	}
	return c
}

// plan prints the planned tensors and files.
func (c *conversion) plan(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	old := c.Type == ""
	head := "tensor\tfrom\tdimensions\ttype"
	if old {
		head = "tensor\tdimensions\ttype"
	}
	fmt.Fprintln(t, head)
	for _, p := range c.Tensors {
		from := p.From + "\t"
		switch {
		case old:
			from = ""
		case p.From == "":
			from = "(computed)\t"
		}
		fmt.Fprintf(t, "%s\t%s%s\t%s\n", p.Name, from, gguf.Shape(p.NE), p.Type)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	weights := ""
	if !old {
		weights = ", weights in " + c.Type
	}
	_, err := fmt.Fprintf(w, "architecture %s, %d tensors%s, %d bytes\n", c.Architecture, len(c.Tensors),
		weights, c.Bytes)
	for _, path := range c.Files {
		_, err = fmt.Fprintln(w, path)
	}
	return err
}

// configResult is the JSON output for a directory with --config-only.
type configResult struct {
	Dir        string   `json:"dir"`
	Understood bool     `json:"understood"`
	Text       string   `json:"text"` // the metadata that the file would have, or the error
	ExitCode   int      `json:"exit_code"`
	Warnings   []string `json:"warnings"`
}

// supported is the JSON output for a class with --print-supported-models.
type supported struct {
	Class        string `json:"class"`
	Architecture string `json:"architecture"`
	MMProj       bool   `json:"mmproj"` // --mmproj converts its vision or audio encoder
}

// printModels lists the classes of the registry with their architectures, each on its
// own line where the configuration decides, then the classes whose vision or audio encoder --mmproj converts.
func printModels(w io.Writer, asJSON bool) error {
	var list []supported
	for _, class := range arch.Classes() {
		for _, name := range arch.Names(class) {
			list = append(list, supported{class, name, false})
		}
	}
	for _, class := range arch.EncoderClasses() {
		for _, name := range arch.EncoderNames(class) {
			list = append(list, supported{class, name, true})
		}
	}
	if asJSON {
		return tool.WriteJSON(w, list)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%s\n", s.Class, s.Architecture)
	}
	return t.Flush()
}
