package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint/installed"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/publish/verify"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// maxSide bounds small files, such as templates and sums, and the value of --reserve, in bytes.
const maxSide = 64 << 20

func metaCommand() *cli.Command {
	return &cli.Command{
		Name:      "meta",
		Usage:     "change a file's metadata",
		ArgsUsage: "FILE",
		Description: "Changes FILE in place if its header has room: tensors stay untouched, and a crash\n" +
			"loses nothing (the next 'ggtool meta FILE' completes the change). Otherwise FILE is\n" +
			"rewritten, and replaced when the new file is whole. With --output another file is\n" +
			"written, and FILE is kept. Symbolic links and files with several hard links need\n" +
			"--output.\n\n" +
			"For a model in shards, FILE is the first shard, which has the metadata.\n\n" +
			"Changes are made in this order: --copy-from, --rename, --remove, --template,\n" +
			"--special-token, --set. An existing key keeps its place.\n\n" +
			"Changes that 'ggtool verify' would report as defects are refused without --force.\n\n" +
			"  --set KEY=VALUE          with the type of the existing or standard key\n" +
			"  --set KEY=TYPE:VALUE     u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str\n" +
			"  --set KEY=TYPE:[...]     an array of these, in JSON\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"set", "edit", "set-metadata"},
			Examples: []string{
				"ggtool meta --set general.name=Gollama --remove general.url model.gguf",
				"ggtool meta --template chat.jinja --output other.gguf model.gguf",
				"ggtool meta --special-token eos=#2 --dry-run model.gguf",
			},
			Result: tool.Prints[metaResult](),
		}.Metadata(),
		Flags: tool.Flags(slices.Concat(tool.Group("Changes",
			tool.Flag{Name: "set", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "set a key, `KEY=VALUE`; repeatable"},
			tool.Flag{Name: "remove", Value: tool.TextList, Effect: tool.RunsOnly,
				Usage: "remove a `KEY`; repeatable"},
			tool.Flag{Name: "rename", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "rename a key, `KEY=NEW`; repeatable"},
			tool.Flag{Name: "copy-from", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "take keys from another GGUF `FILE`: all but those of shards and alignment"},
			tool.Flag{Name: "copy", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "with --copy-from: copy only keys that begin with `PREFIX`; repeatable"},
			tool.Flag{Name: "template", Value: tool.File, Effect: tool.ReadsFile,
				Usage: "set the chat template from `FILE`: text, or tokenizer_config.json"},
			tool.Flag{Name: "special-token", Value: tool.TextList, Effect: tool.SetsBytes,
				Usage: "set a special token, `NAME=TEXT` or NAME=#ID, such as eos=</s>; repeatable"},
		), tool.Group(tool.CategoryOutput,
			tool.Flag{Name: "reserve", Value: tool.Size, Effect: tool.SetsBytes,
				Usage: "leave `SIZE` bytes of room for later changes (" + tool.SizeHelp +
					"); FILE is written anew"},
			tool.Shared("output", "write `OUT`, and do not change FILE"),
			tool.Shared("dry-run", "only print what would change"),
			tool.Flag{Name: "alone", Effect: tool.SetsBytes,
				Usage: "change a shard by itself"},
			tool.ThreadsFlag(), tool.ForceFlag(), tool.JSONFlag(), tool.ProgressFlag(),
		))...),
		Action: meta,
	}
}

// metaRequest has the flags and arguments.
type metaRequest struct {
	File, Out   string
	Set, Remove []string
	Rename      []string
	CopyFrom    string
	Copy        []string
	Template    string
	Special     []string
	Reserve     int64
	DryRun      bool
	JSON        bool
	Alone       bool
	Write       writer.Options
}

// metaResult is the JSON output.
type metaResult struct {
	File    string       `json:"file"`
	Ended   bool         `json:"recovered"` // an interrupted change was completed
	Changes []metaChange `json:"changes"`
	// How is "nothing", "in place" or "anew". Done is false with --dry-run.
	How  string `json:"how"`
	Done bool   `json:"done"`
	// Bytes is the size of a file that was written anew.
	Bytes int64 `json:"bytes,omitempty"`
}

// metaChange is the change of one key.
type metaChange struct {
	Action string `json:"action"` // add, change or remove
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"` // as in the text output: long values are shortened
	Was    string `json:"was,omitempty"`
}

func (c metaChange) String() string {
	switch c.Action {
	case "remove":
		return fmt.Sprintf("- %s = %s", c.Key, c.Was)
	case "add":
		return fmt.Sprintf("+ %s = %s", c.Key, c.Value)
	}
	return fmt.Sprintf("~ %s = %s, was %s", c.Key, c.Value, c.Was)
}

// text prints the changes.
func (m *metaResult) text(w io.Writer, out string) error {
	if m.Ended {
		fmt.Fprintf(w, "%s: completed an interrupted change\n", m.File)
	}
	for _, c := range m.Changes {
		fmt.Fprintln(w, c)
	}
	var err error
	switch {
	case m.How == metaNothing:
		_, err = fmt.Fprintf(w, "%s: nothing to change\n", m.File)
	case m.How == metaInPlace && m.Done:
		_, err = fmt.Fprintf(w, "%s: changed where it is, no tensor moved\n", out)
	case m.How == metaInPlace:
		_, err = fmt.Fprintf(w, "%s: would be changed where it is\n", out)
	case m.Done:
		_, err = fmt.Fprintf(w, "%s: written anew, %s\n", out, tool.Bytes(m.Bytes))
	default:
		_, err = fmt.Fprintf(w, "%s: would be written anew\n", out)
	}
	return err
}

const (
	metaNothing = "nothing"
	metaInPlace = "in place"
	metaAnew    = "anew"
)

func parseMeta(cmd *cli.Command) (r metaRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = metaRequest{File: args[0], Set: cmd.StringSlice("set"), Remove: cmd.StringSlice("remove"),
		Rename: cmd.StringSlice("rename"), Copy: cmd.StringSlice("copy"), Special: cmd.StringSlice("special-token"),
		DryRun: cmd.Bool("dry-run"), JSON: cmd.Bool("json"), Alone: cmd.Bool("alone")}
	for name, dst := range map[string]*string{"output": &r.Out, "copy-from": &r.CopyFrom, "template": &r.Template} {
		if *dst, err = tool.FileValue(cmd, name); err != nil {
			return r, err
		}
	}
	if cmd.IsSet("reserve") {
		if r.Reserve, err = tool.SizeValue(cmd, "reserve"); err != nil {
			return r, err
		}
		if r.Reserve > maxSide {
			return r, fault.Errorf(fault.Usage, "--reserve %s: want at most %s", cmd.String("reserve"),
				tool.Bytes(maxSide))
		}
	}
	if len(r.Copy) > 0 && r.CopyFrom == "" {
		return r, fault.Errorf(fault.Usage, "--copy goes with --copy-from")
	}
	if installed.Is(r.File) && r.Out == "" {
		return r, fault.Errorf(fault.Usage,
			"%s is in the store of another program, which counts on its bytes: want --output FILE", r.File)
	}
	if r.File, err = runs.InputPath(cmd, r.File); err != nil {
		return r, err
	}
	r.Write, err = writeOptions(cmd)
	return r, err
}

// side reads a small file.
func side(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSide+1))
	if err == nil && len(data) > maxSide {
		err = fault.Errorf(fault.Broken, "%s: more than %s", path, tool.Bytes(maxSide))
	}
	return data, err
}

// template reads a chat template, as text or in a tokenizer_config.json.
func template(path string) (string, error) {
	data, err := side(path)
	if err != nil || !strings.HasSuffix(path, ".json") {
		return string(data), err
	}
	var config struct {
		Template any `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fault.Errorf(fault.Broken, "%s: %w", path, err)
	}
	text, ok := config.Template.(string)
	if !ok {
		return "", fault.Errorf(fault.Broken, "%s: chat_template is not a string", path)
	}
	return text, nil
}

// change makes the changes in m.
func (r *metaRequest) change(m *gguf.Metadata) error {
	if r.CopyFrom != "" {
		if err := r.copyKeys(m); err != nil {
			return err
		}
	}
	for _, arg := range r.Rename {
		from, to, ok := strings.Cut(arg, "=")
		if !ok || to == "" {
			return fault.Errorf(fault.Usage, "--rename %q: want KEY=NEW", arg)
		}
		if err := edit.Rename(*m, from, to); err != nil {
			return err
		}
	}
	for _, key := range r.Remove {
		if err := edit.Remove(m, key); err != nil {
			return err
		}
	}
	if r.Template != "" {
		text, err := template(r.Template)
		if err != nil {
			return err
		}
		edit.SetTemplate(m, text)
	}
	for _, arg := range r.Special {
		name, token, ok := strings.Cut(arg, "=")
		if !ok || token == "" {
			return fault.Errorf(fault.Usage, "--special-token %q: want NAME=TEXT or NAME=#ID", arg)
		}
		if err := edit.SpecialToken(m, name, token); err != nil {
			return err
		}
	}
	for _, arg := range r.Set {
		if err := edit.Assign(m, arg); err != nil {
			return err
		}
	}
	return nil
}

// copyKeys copies keys from another file.
func (r *metaRequest) copyKeys(m *gguf.Metadata) error {
	f, err := gguf.Open(r.CopyFrom)
	if err != nil {
		return err
	}
	defer f.Close()
	found := make([]bool, len(r.Copy))
	for _, kv := range f.Metadata {
		wanted := len(r.Copy) == 0 && !strings.HasPrefix(kv.Key, "split.") && kv.Key != gguf.KeyAlignment &&
			!gguf.OwnKey(kv.Key)
		for i, prefix := range r.Copy {
			if strings.HasPrefix(kv.Key, prefix) {
				wanted, found[i] = true, true
			}
		}
		if wanted {
			m.Set(kv.Key, kv.Value)
		}
	}
	for i, ok := range found {
		if !ok {
			return fault.Errorf(fault.Usage, "%s: no key begins with %q", r.CopyFrom, r.Copy[i])
		}
	}
	return nil
}

// shards refuses changes that would break a model in shards: only the first shard may be changed, in place, and its
// keys about shards stay.
func (r *metaRequest) shards(f *gguf.File, m gguf.Metadata) error {
	no, count, err := f.Shard()
	switch {
	case err != nil:
		return err
	case count < 2:
		return nil
	case no > 0:
		return fault.Errorf(fault.Usage,
			"%s: shard %d of %d: a model's metadata are in the first one (--alone changes this one)",
			r.File, no+1, count)
	case r.Out != "":
		return fault.Errorf(fault.Usage,
			"%s: the first of %d shards, whose copy alone is not a model: change it in place, without --output, or "+
				"join the shards first (ggtool merge)", r.File, count)
	}
	for _, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors} {
		was, _ := f.Metadata.Get(key)
		if is, ok := m.Get(key); !ok || is != was {
			return fault.Errorf(fault.Usage,
				"%s: key %q describes the shards, which only ggtool split and ggtool merge can change (--alone changes "+
					"it nevertheless)", r.File, key)
		}
	}
	return nil
}

func meta(ctx context.Context, cmd *cli.Command) error {
	r, err := parseMeta(cmd)
	if err != nil {
		return err
	}
	result := metaResult{File: r.File}
	if result.Ended, err = recoverEdit(&r); err != nil {
		return err
	}
	if err := r.edit(ctx, &result); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		return tool.WriteJSON(w, result)
	}
	if !r.DryRun {
		w = tool.InfoWriter(cmd)
	}
	return result.text(w, cmp.Or(r.Out, r.File))
}

// edit makes the changes, in the file or in a new one.
func (r *metaRequest) edit(ctx context.Context, result *metaResult) (err error) {
	f, m, err := r.changed(result)
	if err != nil {
		return err
	}
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	switch {
	case r.Out != "":
		return r.writeMetadata(ctx, f, m, nil, result)
	case r.nothing(result):
		return nil
	}
	held, err := writer.LockForChange(r.File)
	if err != nil {
		return fmt.Errorf("%w (--output writes another file)", err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	f.Close()
	// Start again from the file as it is now: while it is locked, nobody else changes it.
	if f, m, err = r.changed(result); err != nil || r.nothing(result) {
		return err
	}
	return r.writeMetadata(ctx, f, m, held, result)
}

// nothing reports whether the file need not change.
func (r *metaRequest) nothing(result *metaResult) bool {
	result.How = ""
	if len(result.Changes) == 0 && r.Reserve == 0 {
		result.How = metaNothing
	}
	return result.How == metaNothing
}

// changed opens the file and returns it with its new metadata.
func (r *metaRequest) changed(result *metaResult) (f *gguf.File, m gguf.Metadata, err error) {
	if f, err = gguf.Open(r.File); err != nil {
		return nil, nil, err
	}
	m = slices.Clone(f.Metadata)
	err = r.change(&m)
	if err == nil && !r.Alone {
		err = r.shards(f, m)
	}
	if err == nil && !r.Write.Force {
		err = refuseNewDefects(f, m)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	result.Changes = metadataChanges(f.Metadata, m)
	return f, m, nil
}

// refuseNewDefects refuses metadata with defects that verify would report, unless the file has them already.
func refuseNewDefects(f *gguf.File, m gguf.Metadata) error {
	lines, err := verify.Worse(f, m)
	if err != nil || len(lines) == 0 {
		return err
	}
	return fault.Permits("Force", fault.Errorf(fault.Usage, "%s: 'ggtool verify' would report defects:%s", f.Path,
		fault.Lines(lines)))
}

// writeMetadata writes the metadata m into the file, locked by held, or with --output into a new one.
func (r *metaRequest) writeMetadata(ctx context.Context, f *gguf.File, m gguf.Metadata, held *writer.LockedFile,
	result *metaResult) error {
	header, fits, err := edit.InPlace(f, m)
	if err != nil {
		return err
	}
	result.How, result.Done = metaAnew, !r.DryRun
	if fits && r.Out == "" && r.Reserve == 0 {
		result.How = metaInPlace
	}
	if r.DryRun {
		return nil
	}
	if result.How == metaInPlace {
		old, err := firstBytes(r.File, f.DataStart)
		if err != nil {
			return err
		}
		if err := f.Unchanged(); err != nil {
			return err
		}
		return writer.Overwrite(ctx, r.File, old, header)
	}
	file, err := edit.WithMetadata(f, cmp.Or(r.Out, r.File), m, r.Reserve)
	if err != nil {
		return err
	}
	r.Write.Check = func() error { // Windows replaces no file that is mapped
		return errors.Join(f.Unchanged(), f.Close())
	}
	if r.Out == "" {
		r.Write.Force = true
		check := r.Write.Check
		r.Write.Check = func() error { return errors.Join(check(), held.PrepareReplace()) }
	} else {
		r.Write.Inputs = append(r.Write.Inputs, r.File)
	}
	written, err := writer.Write(ctx, file, r.Write)
	if err == nil {
		result.Bytes = written.Bytes
	}
	return err
}

// recoverEdit completes an interrupted change of the file. With --dry-run such a change is an error.
func recoverEdit(r *metaRequest) (bool, error) {
	if r.DryRun {
		return false, writer.Unrecovered(r.File)
	}
	return writer.Recover(r.File)
}

// firstBytes reads the first n bytes of a file.
func firstBytes(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// metadataChanges lists the differences, by key.
func metadataChanges(from, to gguf.Metadata) []metaChange {
	changes := []metaChange{}
	for _, kv := range from {
		switch v, ok := to.Get(kv.Key); {
		case !ok:
			changes = append(changes, metaChange{Action: "remove", Key: kv.Key, Was: kv.Value.Short()})
		case v != kv.Value:
			changes = append(changes, metaChange{"change", kv.Key, v.Short(), kv.Value.Short()})
		}
	}
	for _, kv := range to {
		if _, ok := from.Get(kv.Key); !ok {
			changes = append(changes, metaChange{Action: "add", Key: kv.Key, Value: kv.Value.Short()})
		}
	}
	return changes
}
