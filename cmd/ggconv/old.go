package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/cmd/internal/upload"
	"ggforge/convert"
	"ggforge/writer"
)

// convertOld converts a file in one of the formats before GGUF.
func convertOld(ctx context.Context, cmd *cli.Command, r runs.ConvertRequest) error {
	cost := tool.StartCost(ctx)
	m, warnings, err := convert.OpenOld(r.Dir, r.Old)
	if err != nil {
		return err
	}
	defer m.Close()
	tool.Warn(cmd, warnings...)
	if err := r.To.Make(); err != nil {
		return err
	}
	defer r.To.Close()
	path := r.Out
	name := strings.TrimSuffix(filepath.Base(r.Dir), filepath.Ext(r.Dir)) + ".gguf"
	if path == "" {
		path = filepath.Join(filepath.Dir(r.Dir), name)
	} else if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, name)
	}
	f := runs.OldModelFile(m, path)
	w := cmd.Root().Writer
	found := conversion{Architecture: "llama", Bytes: f.Size(), Files: []string{r.To.Object(path)},
		Warnings: append([]string{}, warnings...)}
	for _, t := range m.Tensors {
		found.Tensors = append(found.Tensors, planned{t.Name, t.Name, t.NE, t.Type.String()})
	}
	switch {
	case r.DryRun && r.JSON:
		return tool.WriteJSON(w, found)
	case r.DryRun:
		return found.plan(w)
	case r.Verbose:
		if err := found.plan(cmd.Root().ErrWriter); err != nil {
			return err
		}
	}
	if err := r.Manifest.CheckOutputs([]string{path}); err != nil {
		return err
	}
	opt := r.Write
	opt.Inputs, opt.Check = m.Files, m.Check
	write := func() ([]string, any, error) {
		result, err := writer.WriteAll(ctx, []*writer.File{f}, opt)
		if err != nil {
			return nil, nil, err
		}
		return []string{path}, found, r.Manifest.Write(ctx, r.Dir, m.Inputs,
			runs.ConvertOutput(path, runs.UnchangedType, result.Files), m.Unchanged)
	}
	if err := r.To.Run(ctx, upload.Inputs{Files: m.Files}, []string{path}, write, &found); err != nil {
		return err
	}
	if r.JSON {
		found.Seconds, found.Peak = cost.End()
		return tool.WriteJSON(w, found)
	}
	w = tool.InfoWriter(cmd)
	fmt.Fprintf(w, "%s: %s, %d tensors, architecture llama\n", found.Files[0], tool.Bytes(found.Bytes), len(m.Tensors))
	fmt.Fprintln(w, cost.Stop(found.Bytes))
	return nil
}
