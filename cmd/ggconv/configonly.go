package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/convert"
	"ggforge/gguf"
)

// configsOnly prints a line for each directory: whether its model is supported. It returns the error of the first
// directory whose model is not.
func configsOnly(ctx context.Context, cmd *cli.Command, r runs.ConvertRequest) error {
	w := cmd.Root().Writer
	var first error
	failed := 0
	list := []configResult{}
	for _, dir := range r.Dirs {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, warnings, err := describeMetadata(ctx, dir, r.Convert)
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
			line = err.Error()
		}
		list = append(list, configResult{dir, err == nil, line, tool.Code(err), append([]string{}, warnings...)})
		for _, text := range warnings {
			tool.Warn(cmd, dir+": "+text)
		}
		if r.JSON {
			continue
		}
		if !strings.HasPrefix(line, dir) {
			line = dir + ": " + line
		}
		fmt.Fprintln(w, line)
	}
	if r.JSON {
		if err := tool.WriteJSON(w, list); err != nil {
			return err
		}
	}
	if first != nil && len(r.Dirs) > 1 {
		return fmt.Errorf("%d of %d models are not supported; the first: %w", failed, len(r.Dirs), first)
	}
	return first
}

// describeMetadata describes the metadata that the file of a model would have.
func describeMetadata(ctx context.Context, dir string, opt convert.Options) (line string, warnings []string,
	err error) {
	job, err := convert.Prepare(ctx, dir, opt)
	if err != nil {
		return "", nil, err
	}
	defer job.Close()
	m := job.Metadata()
	keys, tokens := 0, "no tokenizer"
	for _, kv := range m {
		if strings.HasPrefix(kv.Key, job.Architecture()+".") {
			keys++
		}
	}
	if list, ok := m.Get("tokenizer.ggml.tokens"); ok {
		model, _ := m.Get("tokenizer.ggml.model")
		kind, _ := model.Str()
		if v, ok := m.Get("tokenizer.ggml.pre"); ok {
			pre, _ := v.Str()
			kind += " (" + pre + ")"
		}
		tokens = fmt.Sprintf("tokenizer %s, %d tokens", kind, list.Len())
	}
	name, _ := m.Get(gguf.KeyArchitecture)
	architecture, _ := name.Str()
	return fmt.Sprintf("%s, %d keys, %s", architecture, keys, tokens), job.Warnings, nil
}
