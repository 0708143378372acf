package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
	"ggforge/model/digest"
	"ggforge/publish/manifest"
	"ggforge/writer"
)

// RecordedArguments returns the flags of a run of ggconv or ggquant that decide bytes, in the order of its help. find
// returns the replacement for the name of a file or folder.
func RecordedArguments(cmd *cli.Command, find func(flag, path string) (string, error)) (list []string, err error) {
	for _, f := range tool.Declarations(cmd) {
		switch {
		case !f.IsSet(cmd) || !f.Effect.Recorded():
			continue
		case f.Value == tool.Switch && !cmd.Bool(f.Name):
			list = append(list, "--"+f.Name+"=false")
			continue
		case f.Value == tool.Switch:
			list = append(list, "--"+f.Name)
			continue
		}
		for _, value := range f.Values(cmd) {
			if f.NamesFile() {
				path, rest := f.SplitFile(value)
				if path, err = find(f.Name, tool.Fetched(cmd, path)); err != nil {
					return nil, err
				}
				value = path + rest
			}
			list = append(list, "--"+f.Name, value)
		}
	}
	return list, nil
}

// ManifestName returns the name of a file or folder in a manifest: without the folders that it is in, or its address on
// a server.
func ManifestName(path string) (string, error) {
	if checkpoint.IsRemote(path) {
		return path, nil
	}
	full, err := filepath.Abs(path)
	return filepath.Base(full), err
}

// FlagFiles returns the existing files that flags name, with the flags' names as roles; folders are left out, because
// their readers report the files that they have read.
func FlagFiles(cmd *cli.Command) (list []digest.Input, err error) {
	_, err = RecordedArguments(cmd, func(flag, path string) (string, error) {
		info, err := disk.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular():
			return "", nil
		case err != nil:
			return "", err
		}
		list = append(list, digest.Input{Role: flag, Name: filepath.Base(path), Path: path})
		return "", nil
	})
	return list, err
}

// Manifest is a manifest to be written. The methods of nil do nothing.
type Manifest struct {
	Path    string // the manifest's own path
	command string
	args    []string
	files   []digest.Input
	stamps  []stamp.Stamp
	workers int
	force   bool
}

// parseManifest reads --manifest. Files that other flags name must not change until Write. It is called after the
// flags have been checked.
func parseManifest(cmd *cli.Command) (*Manifest, error) {
	path, err := tool.FileValue(cmd, "manifest")
	if path == "" {
		return nil, err
	}
	if !tool.MayRead(cmd) {
		return nil, nil
	}
	m := &Manifest{Path: path, command: cmd.Root().Name, workers: tool.Workers(cmd), force: cmd.Bool("force")}
	if err := writer.Writable(path, writer.Options{Force: m.force, MakeDir: cmd.String("out-dir")}); err != nil {
		return nil, err
	}
	if m.files, err = FlagFiles(cmd); err != nil {
		return nil, err
	}
	for _, in := range m.files {
		info, err := disk.Stat(in.Path)
		if err != nil {
			return nil, err
		}
		m.stamps = append(m.stamps, stamp.Of(in.Path, info))
	}
	m.args, err = RecordedArguments(cmd, func(flag, path string) (string, error) { return ManifestName(path) })
	for _, f := range tool.Declarations(cmd) {
		// Files that are written are not inputs.
		if f.Effect == tool.KeepsFile && !slices.ContainsFunc(m.files,
			func(in digest.Input) bool { return in.Role == f.Name }) {
			if i := slices.Index(m.args, "--"+f.Name); i >= 0 {
				m.args = slices.Delete(m.args, i, i+2)
			}
		}
	}
	return m, err
}

// Set adds a flag that the user has not given but that the run depends on.
func (m *Manifest) Set(flag, value string) {
	if m != nil {
		m.args = append(m.args, "--"+flag, value)
	}
}

// CheckOutputs refuses a manifest with the name of an output.
func (m *Manifest) CheckOutputs(outputs []string) error {
	if m != nil && slices.ContainsFunc(outputs,
		func(path string) bool { return filepath.Clean(path) == filepath.Clean(m.Path) }) {
		return fault.Errorf(fault.Usage, "%s: is named both as output and as manifest", m.Path)
	}
	return nil
}

// Write writes the manifest of outputs that are complete. source is the model as the user named it, inputs are the
// other files read, besides files of flags, and unchanged returns an error if one of them has changed since.
func (m *Manifest) Write(ctx context.Context, source string, inputs []digest.Input, outputs []manifest.Made,
	unchanged func() error) error {
	if m == nil {
		return nil
	}
	source, err := ManifestName(source)
	if err != nil {
		return err
	}
	x := manifest.Manifest{Format: manifest.Format, Program: Program(), Command: m.command, Source: source,
		Arguments: append([]string{}, m.args...)}
	all := MergeInputs(inputs, m.files)
	if x.Inputs, x.Files, err = manifest.Describe(ctx, all, outputs, m.workers); err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	if err := stamp.All(unchanged, func() error { return stamp.Check(m.stamps) })(); err != nil {
		return fmt.Errorf("%s is not written: %w", m.Path, err)
	}
	opt := writer.Options{Force: m.force}
	for _, in := range all {
		if in.Path != "" {
			opt.Inputs = append(opt.Inputs, in.Path)
		}
	}
	for _, o := range outputs {
		x.Outputs = append(x.Outputs, o.Output)
		opt.Inputs = append(opt.Inputs, o.Files...)
	}
	return x.Write(ctx, m.Path, opt)
}

// MergeInputs returns inputs and the files of flags, without files that inputs has for the same role.
func MergeInputs(inputs, files []digest.Input) []digest.Input {
	return slices.Concat(inputs, slices.DeleteFunc(slices.Clone(files), func(f digest.Input) bool {
		return slices.ContainsFunc(inputs, func(in digest.Input) bool { return in.Role == f.Role && in.Name == f.Name })
	}))
}

// Program returns the name of this program in manifests.
func Program() string { return "ggforge " + tool.Version }
