// Package reproduce repeats the run of a manifest, and compares its inputs and outputs with those in the manifest.
package reproduce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/model/digest"
	"ggforge/publish/manifest"
	"ggforge/quantize/batch"
	"ggforge/writer"
)

// Options are the settings of Run.
type Options struct {
	// Inputs are the files and folders that the run has read, folders that contain them, or addresses on servers. The
	// first is the model if none has its name. Only the model is looked for in the manifest's folder, too. Links in
	// folders are not followed.
	Inputs []string
	// OutsideLinks permits links that lead out of a checkpoint, whatever flags the manifest has.
	OutsideLinks bool
	// Output is the folder for outputs, which are kept; "" for a temporary one, which is removed.
	Output string
	// Flags are flags for the run that decide no bytes.
	Flags   []string
	Workers int
	Log     io.Writer // for warnings and progress
	Warn    func(...string)
}

// Result compares the outputs of the repeated run with the manifest.
type Result struct {
	Manifest string `json:"manifest"`
	Program  string `json:"program"`      // the program that has written the manifest
	Here     string `json:"this_program"` // this program
	Inputs   int    `json:"inputs"`       // number of inputs, all unchanged
	Same     bool   `json:"same"`         // all files equal those in the manifest
	Files    []File `json:"files"`
	// First is the first difference, in the order of the manifest.
	First *manifest.Difference `json:"first_difference,omitempty"`
}

// File is a file that was made again.
type File struct {
	digest.File
	Same bool `json:"same"`
}

// job repeats one run.
type job struct {
	m     *manifest.Manifest
	path  string
	opt   Options
	dir   string // of outputs
	files []string
}

// Run makes the outputs of the manifest at path again. Inputs that differ from the manifest are an error of kind
// fault.Refused, before anything is made; outputs that differ are reported in the result, not as an error.
func Run(ctx context.Context, path string, opt Options) (_ *Result, err error) {
	m, err := manifest.Read(path)
	if err != nil {
		return nil, err
	}
	j := &job{m: m, path: path, opt: opt, dir: opt.Output}
	result := &Result{Manifest: path, Program: m.Program, Here: runs.Program()}
	if result.Program != result.Here {
		opt.Warn(fmt.Sprintf("%s: is of %s, and this is %s: differences may be due to that", path, result.Program,
			result.Here))
	}
	if j.dir == "" {
		if j.dir, err = os.MkdirTemp("", "ggforge-reproduce-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(j.dir)) }()
	}
	args, err := j.arguments(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := j.run(ctx, args, j.again); err != nil {
		return nil, err
	}
	result.Inputs = len(m.Inputs)
	return result, j.compare(ctx, result)
}

// run parses arguments as the command would, and calls do.
func (j *job) run(ctx context.Context, args []string, do cli.ActionFunc) error {
	cmd := &cli.Command{Name: j.m.Command, ArgsUsage: runs.ConvertArgs, Flags: tool.Flags(j.flags()...),
		Writer: io.Discard, ErrWriter: j.opt.Log, Action: do}
	if j.m.Command == manifest.Quantize {
		cmd.ArgsUsage = runs.QuantizeArgs
	}
	return tool.Run(ctx, cmd, append([]string{cmd.Name}, args...))
}

// flags returns the flags of the command.
func (j *job) flags() []tool.Flag {
	if j.m.Command == manifest.Quantize {
		return runs.QuantizeFlags()
	}
	return runs.ConvertFlags()
}

// checkFlags refuses flags of the manifest that a manifest may not set, before any other use.
func (j *job) checkFlags() error {
	flags := j.flags()
	for args := j.m.Arguments; len(args) > 0; {
		word := args[0]
		args = args[1:]
		name, _, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		i := slices.IndexFunc(flags, func(f tool.Flag) bool {
			return f.Name == name || slices.Contains(f.Aliases, name)
		})
		if !strings.HasPrefix(word, "-") || i < 0 {
			continue // parsing refuses it
		}
		f := &flags[i]
		if !f.Effect.Reproducible() {
			return fault.Errorf(fault.Broken, "--%s: want flags that decide bytes", f.Name)
		}
		if f.TakesValue() && !inOne && len(args) > 0 {
			args = args[1:]
		}
	}
	return nil
}

// arguments returns the arguments of the run: those of the manifest, which is untrusted, with the paths of files and
// folders on this machine. Only flags that decide bytes by their values alone are taken from the manifest; files that
// other flags name, and permissions, must also come from the user.
func (j *job) arguments(ctx context.Context) (args []string, err error) {
	if err := j.checkFlags(); err != nil {
		return nil, err
	}
	parsed := false
	err = j.run(tool.OnlyParse(ctx), j.m.Arguments, func(_ context.Context, cmd *cli.Command) error {
		parsed = true
		if cmd.Args().Present() {
			return fault.Errorf(fault.Broken, "argument %q: want flags that decide bytes", cmd.Args().First())
		}
		for _, f := range cmd.Flags {
			d := tool.Declaration(f) // nil for --version
			switch {
			case !f.IsSet():
			case d == nil || !d.Effect.Reproducible():
				return fault.Errorf(fault.Broken, "--%s: want flags that decide bytes", f.Names()[0])
			case d.Effect == tool.AsksServer:
				if err := j.asked(cmd.String(d.Name), "--"+d.Name); err != nil {
					return err
				}
			}
		}
		args, err = runs.RecordedArguments(cmd, func(flag, name string) (string, error) {
			return j.named(ctx, flag, name)
		})
		return err
	})
	if !parsed && !fault.Has(err) { // --help and the like return before the action
		return nil, fault.Errorf(fault.Broken, "arguments %q: want flags that decide bytes", j.m.Arguments)
	}
	if err != nil {
		return nil, err
	}
	source, err := j.source()
	if err != nil {
		return nil, err
	}
	if j.opt.OutsideLinks {
		args = append(args, "--"+runs.OutsideLinksFlag().Name)
	}
	args = slices.Concat(args, j.opt.Flags)
	if j.m.Command == manifest.Convert {
		return append(args, "--output", filepath.Join(j.dir, j.m.Outputs[0].Name), "--", source), nil
	}
	args = append(args, "--out-dir", j.dir, "--", source)
	for _, o := range j.m.Outputs {
		args = append(args, o.Type)
	}
	return args, nil
}

// asked refuses a model that a server would be asked for, unless the user has named it.
func (j *job) asked(id, what string) error {
	address := checkpoint.HubAddress(id)
	if slices.Contains(j.opt.Inputs, address) {
		return nil
	}
	return fault.Errorf(fault.Usage, "%s is %s: name it with --input %s to have it read", what, id, address)
}

// named returns the path, given by the user, of a file or folder that a flag of the manifest names. The sum of a file
// is compared with the manifest's before anything else reads it, so that no error shows the content of another file.
func (j *job) named(ctx context.Context, flag, name string) (string, error) {
	what := "--" + flag
	if checkpoint.IsRemote(name) {
		return j.remote(name, what)
	}
	path, err := j.find(name, what, j.opt.Inputs)
	if err != nil {
		return "", err
	}
	if path == "" {
		return "", fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist),
			"%s, %s: say with --input where it is", name, what)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, err
	}
	i := slices.IndexFunc(j.m.Inputs, func(in manifest.Input) bool {
		return in.Role == flag && in.Name == filepath.Base(path)
	})
	if i < 0 {
		return "", fault.Errorf(fault.Refused, "%s, %s: is a file that is not among the inputs of the manifest", path,
			what)
	}
	want := &j.m.Inputs[i]
	if info.Size() != want.Bytes {
		return "", fault.Errorf(fault.Refused,
			"%s: inputs are not those of the manifest:\n  %s (%s): has %d bytes, want %d", j.path, want.Name, flag,
			info.Size(), want.Bytes)
	}
	got, err := digest.OfFile(ctx, path)
	if err == nil && got.SHA256 != want.SHA256 {
		err = fault.Errorf(fault.Refused,
			"%s: inputs are not those of the manifest:\n  %s (%s): SHA-256 is %s, want %s", j.path, want.Name, flag,
			got.SHA256, want.SHA256)
	}
	return path, err
}

// source returns the path of the model: given by the user, or next to the manifest.
func (j *job) source() (string, error) {
	const what = "the model"
	name := j.m.Source
	if checkpoint.IsRemote(name) {
		return j.remote(name, what)
	}
	path, err := j.find(name, what, append(slices.Clone(j.opt.Inputs), filepath.Dir(j.path)))
	switch {
	case err != nil || path != "":
		return path, err
	case len(j.opt.Inputs) == 0:
		return "", fault.Errorf(fault.With(fault.Usage, fs.ErrNotExist),
			"%s, %s: is not there; say with --input where it is", name, what)
	}
	in := j.opt.Inputs[0]
	called, err := runs.ManifestName(in)
	j.opt.Warn(fmt.Sprintf(
		"%s: is taken as the model; it was called %s and is called %s now: names in metadata may differ",
		in, name, called))
	return in, err
}

// find returns the path of the file or folder that the manifest calls name: the input of that name, or an entry of
// that name in one of the folders, unless it is a link; "" if there is none.
func (j *job) find(name, what string, folders []string) (string, error) {
	if name == "." || strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name) {
		return "", fault.Errorf(fault.Broken, "%s is %q, want a name without folders", what, name)
	}
	for _, in := range j.opt.Inputs {
		if called, err := runs.ManifestName(in); err == nil && called == name {
			return in, nil
		}
	}
	for _, dir := range folders {
		path := filepath.Join(dir, name)
		switch info, err := os.Lstat(path); {
		case err != nil:
		case info.Mode().IsRegular() || info.IsDir():
			return path, nil
		default:
			return "", fault.Errorf(fault.Refused,
				"%s, %s: is a link or a device, and may lead anywhere; name it with --input if it is meant", path, what)
		}
	}
	return "", nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remote returns an address if the user has named it, too: a manifest alone must not cause connections. For the hub
// it is the address of the commit that the run has read, unless the user names a different one.
func (j *job) remote(name, what string) (string, error) {
	plain, _, _ := strings.Cut(name, "@")
	for _, in := range j.opt.Inputs {
		switch base, _, revision := strings.Cut(in, "@"); {
		case !checkpoint.IsRemote(in) && checkpoint.IsRemote(plain) && what == "the model" && exists(in):
			return in, nil // a copy on the disk
		case base != plain:
		case revision || !strings.HasPrefix(in, "hf://"):
			return in, nil
		default:
			for _, x := range j.m.Inputs {
				if x.Role == "source" && x.State != "" && what == "the model" {
					return in + "@" + x.State, nil
				}
			}
			return in, nil
		}
	}
	return "", fault.Errorf(fault.Usage, "%s is %s: name it, or a copy of the model, with --input to have it read",
		what, name)
}

// again is the action of the command.
func (j *job) again(ctx context.Context, cmd *cli.Command) error {
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		return err
	}
	if j.m.Command == manifest.Convert {
		return j.convert(ctx, cmd)
	}
	return j.quantize(ctx, cmd)
}

// check compares the inputs.
func (j *job) check(ctx context.Context, cmd *cli.Command, inputs []digest.Input) error {
	files, err := runs.FlagFiles(cmd)
	if err != nil {
		return err
	}
	found, _, err := manifest.Describe(ctx, runs.MergeInputs(inputs, files), nil, j.opt.Workers)
	if err != nil {
		return err
	}
	if lines := j.m.Changed(found); len(lines) > 0 {
		return fault.Errorf(fault.Refused, "%s: inputs are not those of the manifest:%s", j.path, fault.Lines(lines))
	}
	return nil
}

func (j *job) convert(ctx context.Context, cmd *cli.Command) error {
	r, err := runs.ParseConvert(cmd)
	if err != nil {
		return err
	}
	old, err := r.IsOld(cmd)
	if err != nil {
		return err
	}
	if old {
		m, warnings, err := convert.OpenOld(r.Dir, r.Old)
		if err != nil {
			return err
		}
		defer m.Close()
		tool.Warn(cmd, warnings...)
		if err := j.check(ctx, cmd, m.Inputs); err != nil {
			return err
		}
		r.Write.Inputs, r.Write.Check = m.Files, m.Unchanged
		result, err := writer.WriteAll(ctx, []*writer.File{runs.OldModelFile(m, r.Out)}, r.Write)
		return j.made(err, result)
	}
	made, err := convert.Prepare(ctx, r.Dir, r.Convert)
	if err != nil {
		return err
	}
	defer made.Close()
	tool.Warn(cmd, made.Warnings...)
	if err := j.check(ctx, cmd, made.Inputs()); err != nil {
		return err
	}
	result, err := made.Write(ctx, r.Out, r.Write)
	return j.made(err, result)
}

func (j *job) quantize(ctx context.Context, cmd *cli.Command) error {
	r, err := runs.ParseQuantize(cmd)
	if err != nil {
		return err
	}
	m, err := r.Open(ctx, cmd, r.In)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := j.check(ctx, cmd, m.Inputs); err != nil {
		return err
	}
	for _, o := range j.m.Outputs {
		r.Paths = append(r.Paths, filepath.Join(r.OutDir, o.Name))
	}
	r.Program, r.Workers, r.Warn, r.Progress = runs.Program(), tool.Workers(cmd), tool.Warning(cmd), tool.Parts(cmd)
	made, err := batch.Prepare(ctx, m, &r.Request)
	if made != nil {
		defer made.Close()
	}
	if err != nil {
		return err
	}
	if err := made.EncodeBlocks(ctx); err != nil {
		return err
	}
	results, err := made.Write(ctx)
	return j.made(err, results...)
}

// made records the files that were written.
func (j *job) made(err error, results ...*writer.Result) error {
	if err != nil {
		return err
	}
	for _, r := range results {
		j.files = append(j.files, r.Files...)
	}
	return nil
}

// compare compares the files with those of the manifest.
func (j *job) compare(ctx context.Context, result *Result) error {
	_, files, err := manifest.Describe(ctx, nil, []manifest.Made{{Files: j.files}}, j.opt.Workers)
	if err != nil {
		return err
	}
	note := func(d *manifest.Difference) {
		if d != nil && result.First == nil {
			result.First = d
		}
	}
	for i := range j.m.Files {
		want := &j.m.Files[i]
		k := slices.IndexFunc(files, func(f manifest.File) bool { return f.Name == want.Name })
		if k < 0 {
			note(&manifest.Difference{File: want.Name, Text: "was not made"})
			continue
		}
		d := want.Diff(&files[k])
		note(d)
		result.Files = append(result.Files, File{files[k].File, d == nil})
	}
	for i := range files {
		if f := &files[i]; !slices.ContainsFunc(j.m.Files,
			func(want manifest.File) bool { return want.Name == f.Name }) {
			note(&manifest.Difference{File: f.Name, Text: "is not in the manifest"})
			result.Files = append(result.Files, File{f.File, false})
		}
	}
	result.Same = result.First == nil
	return nil
}
