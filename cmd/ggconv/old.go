package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/ggml"
	tool "ggforge/internal/cli"
	"ggforge/internal/outflags"
	"ggforge/writer"
)

// oldFlags are those about a file before GGUF only, and bothFlags those that it shares
// with checkpoints.
var (
	oldFlags  = []string{"desc", "context-length", "eps", "gqa"}
	bothFlags = []string{"outfile", "dry-run", "verbose", "threads", "force", "progress", "quiet", "json", "model-name", "compat", "work-dir", "help", "version"}
)

// isOld reports whether the input is a file before GGUF. Flags about the other kind of
// input are a usage error.
func (r request) isOld(cmd *cli.Command) (bool, error) {
	old := ggml.Is(r.Dir)
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		switch of := slices.Contains(oldFlags, name); {
		case !cmd.IsSet(name) || slices.Contains(bothFlags, name):
		case old && !of:
			return old, fault.Errorf(fault.Usage, "--%s is about checkpoints, and %s is a file before GGUF, whose weights stay as they are", name, r.Dir)
		case of && !old:
			return old, fault.Errorf(fault.Usage, "--%s is about files before GGUF, and %s is none", name, r.Dir)
		}
	}
	return old, nil
}

// convertOld converts a file before GGUF.
func convertOld(ctx context.Context, cmd *cli.Command, r request) error {
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
	f := &writer.File{Path: path, Metadata: m.Metadata}
	for _, t := range m.Tensors {
		f.Tensors = append(f.Tensors, writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source})
	}
	w := cmd.Root().Writer
	found := conversion{Architecture: "llama", Bytes: f.Size(), Files: []string{r.To.Object(path)}, Warnings: append([]string{}, warnings...)}
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
	opt := r.Write
	opt.Inputs, opt.Check = m.Files, m.Check
	write := func() ([]string, any, error) {
		_, err := writer.WriteAll(ctx, []*writer.File{f}, opt)
		return []string{path}, found, err
	}
	if err := r.To.Run(ctx, outflags.Reads{Files: m.Files}, []string{path}, write, &found); err != nil {
		return err
	}
	if r.JSON {
		found.Seconds, found.Peak = cost.End()
		return tool.WriteJSON(w, found)
	}
	fmt.Fprintf(w, "%s: %s, %d tensors, architecture llama\n", found.Files[0], tool.Bytes(found.Bytes), len(m.Tensors))
	fmt.Fprintln(w, cost.Stop(found.Bytes))
	return nil
}
