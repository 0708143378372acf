package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

// Arguments returns the flags of a run of ggconv or ggquant that decide bytes, in the order of its help. find returns
// what stands for the file or folder that a flag names.
func RecordedArguments(cmd *cli.Command, find func(flag, path string) (string, error)) (list []string, err error) {
	for _, f := range cmd.Flags {
		name := f.Names()[0]
		if !f.IsSet() || !tool.EffectOf(f).Recorded() {
			continue
		}
		if on, ok := f.Get().(bool); ok {
			if !on {
				name += "=false"
			}
			list = append(list, "--"+name)
			continue
		}
		values, ok := f.Get().([]string)
		if !ok {
			values = []string{fmt.Sprint(f.Get())}
		}
		for _, value := range values {
			if tool.NamesFile(f) {
				path, rest := value, ""
				if name == "merge-lora" {
					path, rest = cutScale(value)
				}
				if path, err = find(name, path); err != nil {
					return nil, err
				}
				value = path + rest
			}
			list = append(list, "--"+name, value)
		}
	}
	return list, nil
}

// cutScale cuts the scale from ADAPTER:SCALE.
func cutScale(s string) (path, scale string) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if _, err := strconv.ParseFloat(s[i+1:], 64); err == nil {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// Called returns what a file or folder is called in a manifest: its name without the folders that it is in, or its
// address on a server.
func ManifestName(path string) (string, error) {
	if checkpoint.IsRemote(path) {
		return path, nil
	}
	full, err := filepath.Abs(path)
	return filepath.Base(full), err
}

// Files returns the files that flags name, with the flags' names as roles; not folders, of which others know what is
// read, and none that is not there.
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

// Manifest is a manifest that is to be written; nil for none. Its methods do nothing then.
type Manifest struct {
	Path    string // where it goes
	command string
	args    []string
	files   []digest.Input
	stamps  []stamp.Stamp
	workers int
	force   bool
}

// ReadManifest reads the flag; objects says that the outputs go to a server: there is no manifest of those. Files that
// other flags name must stay as they are from now on until Write. What the flags mean is read before.
func parseManifest(cmd *cli.Command, objects bool) (*Manifest, error) {
	path, err := tool.File(cmd, "manifest")
	if path == "" {
		return nil, err
	}
	if objects {
		return nil, fault.Errorf(fault.Usage,
			"--manifest is about files of this machine, and the outputs become objects of a server")
	}
	for _, name := range []string{"dry-run", "config-only", "print-supported-models"} {
		if cmd.Bool(name) {
			return nil, fault.Errorf(fault.Usage, "--manifest is about what was written, and with --%s nothing is",
				name)
		}
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
	for _, f := range cmd.Flags {
		// What is written is no input.
		if name := f.Names()[0]; tool.EffectOf(f) == tool.KeepsFile && !slices.ContainsFunc(m.files,
			func(in digest.Input) bool { return in.Role == name }) {
			if i := slices.Index(m.args, "--"+name); i >= 0 {
				m.args = slices.Delete(m.args, i, i+2)
			}
		}
	}
	return m, err
}

// Set adds a flag that the user has not given, but something else says.
func (m *Manifest) Set(flag, value string) {
	if m != nil {
		m.args = append(m.args, "--"+flag, value)
	}
}

// Apart refuses a manifest that is one of the outputs.
func (m *Manifest) Apart(outputs []string) error {
	if m != nil && slices.ContainsFunc(outputs,
		func(path string) bool { return filepath.Clean(path) == filepath.Clean(m.Path) }) {
		return fault.Errorf(fault.Usage, "%s: is the output, and the manifest of it", m.Path)
	}
	return nil
}

// Write writes the manifest of outputs that have their names. source is the model as the user named it, inputs what was
// read besides the files of flags, and unchanged says whether it still is what was read.
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

// All returns inputs and the files of flags, without those that inputs has for the same role.
func MergeInputs(inputs, files []digest.Input) []digest.Input {
	return slices.Concat(inputs, slices.DeleteFunc(slices.Clone(files), func(f digest.Input) bool {
		return slices.ContainsFunc(inputs, func(in digest.Input) bool { return in.Role == f.Role && in.Name == f.Name })
	}))
}

// Program is what manifests say of this program.
func Program() string { return "ggforge " + tool.Version }
