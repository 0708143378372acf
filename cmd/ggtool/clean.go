package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/upload"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/publish/push"
	"ggforge/writer"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "list leftover files of killed runs, and remove them",
		ArgsUsage: "[DIR...]",
		Description: "Lists the temporary files and journals in each DIR, the current directory without one,\n" +
			"from which --resume or --finish would continue. --remove removes them; an interrupted\n" +
			"renaming is completed or undone instead, so that no output is lost. Files in use are\n" +
			"kept, and so is a file without a journal, which may belong to another program. Finished\n" +
			"parts of ggeval are listed, too, and work folders of uploads in DIR (the temporary\n" +
			"folder, if the upload ran without --work-dir). They are removed only with --older-than.\n" +
			"Of a folder that was pushed and whose push has not ended, the state is listed.\n\n" +
			"For s3://BUCKET/FOLDER, unfinished uploads are listed, whose parts the server keeps, and\n" +
			"runs whose parts (--part) send pieces of objects; --remove aborts those that are older than\n" +
			"--older-than.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"prune"},
			Examples: []string{"ggtool clean models", "# files not written to for two days",
				"ggtool clean --remove --older-than 48h models"},
			Result: tool.Prints[cleanResult](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "remove", Effect: tool.RunsOnly,
				Usage: "remove them"},
			tool.Flag{Name: "older-than", Value: tool.Duration, Effect: tool.RunsOnly,
				Usage: "only files not written to for `TIME` (90m, 48h)"},
			tool.JSONFlag(),
		),
		Action: clean,
	}
}

// cleanRequest has the flags and arguments.
type cleanRequest struct {
	Dirs         []string
	Remove, JSON bool
	Older        time.Duration
}

func parseClean(cmd *cli.Command) (r cleanRequest, err error) {
	r = cleanRequest{Remove: cmd.Bool("remove"), JSON: cmd.Bool("json"), Older: cmd.Duration("older-than")}
	if r.Older < 0 {
		return r, fault.Errorf(fault.Usage, "--older-than %v: want a time that is not negative", r.Older)
	}
	if r.Dirs, err = tool.Args(cmd, 0, maxFiles); len(r.Dirs) == 0 {
		r.Dirs = []string{"."}
	}
	if r.Remove && r.Older == 0 && slices.ContainsFunc(r.Dirs, bucket.Is) {
		return r, fault.Errorf(fault.Usage,
			"--remove of uploads goes with --older-than: servers do not report whether somebody works on them")
	}
	return r, err
}

// cleanResult is the JSON output.
type cleanResult struct {
	Leftovers []leftover `json:"leftovers"`
}

// leftover describes the leftover files of one output.
type leftover struct {
	Kind   writer.LeftoverKind `json:"kind"`
	Output string              `json:"output"`
	Files  []string            `json:"files"`
	Bytes  int64               `json:"bytes"`
	// Blocks is the number of blocks of rows in the journals.
	Blocks int64 `json:"blocks,omitempty"`
	// Age is the time since the last write to one of the files, in seconds.
	Age float64 `json:"age_seconds"`
	// Busy is true while a process works on it.
	Busy bool `json:"busy,omitempty"`
	// Stays is the reason why --remove does not remove it.
	Stays   string `json:"stays,omitempty"`
	Removed bool   `json:"removed,omitempty"`

	remove func() error
}

// leftoverTexts describe the kinds.
var leftoverTexts = map[writer.LeftoverKind]string{
	writer.LeftRun:     "interrupted run",
	writer.LeftParts:   "run in parts, not finished",
	writer.LeftPart:    "part in a file of its own",
	writer.LeftBlocks:  "blocks of a calibration",
	writer.LeftCommit:  "change of names that was cut short",
	leftUpload:         "upload that is not complete",
	leftObjects:        "run in parts, not finished, whose pieces are in an object store",
	writer.LeftShare:   "parts that are not put together",
	leftPush:           "push that has not ended, of which a permission is kept",
	leftFolder:         "made to be uploaded, which has not ended",
	writer.LeftOld:     "old file, of which only a second name is left",
	writer.LeftUnknown: "no journal: perhaps another program's",
}

func clean(ctx context.Context, cmd *cli.Command) error {
	r, err := parseClean(cmd)
	if err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	result := cleanResult{Leftovers: []leftover{}}
	var errs []error
	now := time.Now()
	for _, dir := range r.Dirs {
		list, err := leftIn(ctx, dir, now)
		if err != nil {
			errs = append(errs, err) // continue: the results of the other folders are printed
			continue
		}
		for _, one := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			if one.Age < r.Older.Seconds() {
				continue
			}
			stays := one.Busy || one.Stays != "" || one.Kind == writer.LeftUnknown ||
				r.Older == 0 && (one.Kind == leftFolder || one.Kind == writer.LeftShare)
			if r.Remove && !stays {
				if err := one.remove(); err != nil {
					errs = append(errs, err)
				} else {
					one.Removed = true
				}
			}
			result.Leftovers = append(result.Leftovers, one)
			if r.JSON {
				continue
			}
			if err := one.write(w, r.Remove); err != nil {
				return err
			}
		}
	}
	if r.JSON {
		errs = append(errs, tool.WriteJSON(w, result))
	}
	return errors.Join(errs...)
}

const (
	leftUpload  writer.LeftoverKind = "upload"  // an unfinished multipart upload
	leftObjects writer.LeftoverKind = "objects" // a run whose parts send pieces of objects
	leftPush    writer.LeftoverKind = "push"    // what a push keeps about files that the server has not completely
	leftFolder  writer.LeftoverKind = "folder"  // a work folder with outputs that are not yet uploaded
)

// leftIn returns the leftover files in a directory, or the unfinished uploads in a folder of objects.
func leftIn(ctx context.Context, dir string, now time.Time) (list []leftover, err error) {
	if bucket.Is(dir) {
		folder, err := bucket.Parse(dir)
		if err != nil {
			return nil, err
		}
		client, err := bucket.New(bucket.Environment())
		if err != nil {
			return nil, err
		}
		uploads, err := client.Incomplete(ctx, folder)
		if err != nil {
			return nil, err
		}
		list, uploads, err = leftParts(ctx, client, folder, uploads, now)
		for _, u := range uploads {
			remove := func() error { return client.Abort(ctx, u) }
			list = append(list, leftover{Kind: leftUpload, Output: u.Name.String(), Files: []string{},
				Age: max(0, now.Sub(u.Begun)).Seconds(), remove: remove})
		}
		return list, err
	}
	folders, err := upload.Folders(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		age := max(0, now.Sub(f.Modified)).Seconds()
		list = append(list, leftover{Kind: leftFolder, Output: filepath.Base(f.Path),
			Files: append([]string{}, f.Files...), Bytes: f.Bytes, Age: age, Busy: f.Busy, remove: f.Remove})
	}
	pushed, err := push.Left(dir)
	if err != nil {
		return nil, err
	}
	if pushed != nil {
		age := max(0, now.Sub(pushed.Modified)).Seconds()
		list = append(list, leftover{Kind: leftPush, Output: pushed.Path, Files: pushed.Files, Bytes: pushed.Bytes, Age: age,
			Busy: pushed.Busy, remove: pushed.Remove})
	}
	left, err := writer.Leftovers(dir, partfile.Of)
	for _, l := range left {
		age := max(0, now.Sub(l.Modified)).Seconds()
		list = append(list, leftover{Kind: l.Kind, Output: l.Output, Files: l.Files, Bytes: l.Bytes, Blocks: l.Blocks,
			Age: age, Busy: l.Busy, Stays: l.Stays, remove: l.Remove})
	}
	return list, err
}

// maxObjects is the number of objects in a folder among which unfinished runs are looked for.
const maxObjects = 1_000_000

// maxRun bounds the object with the facts of a run.
const maxRun = 64 << 20

// leftParts returns the unfinished runs in parts whose objects are in a folder, and those uploads that belong to none.
func leftParts(ctx context.Context, client *bucket.Client, folder bucket.Name, uploads []bucket.Incomplete,
	now time.Time) (list []leftover, others []bucket.Incomplete, err error) {
	objects, err := client.List(ctx, folder, maxObjects)
	if err != nil {
		return nil, uploads, err
	}
	runs := map[string][]bucket.Object{}
	for _, o := range objects {
		if _, run, ok := writer.StoredRun(o.Name); ok {
			runs[run] = append(runs[run], o)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		name := bucket.Name{Bucket: folder.Bucket, Key: folder.Folder().Key + run}
		path, _, _ := writer.StoredRun(name.Key)
		one := leftover{Kind: leftObjects, Output: bucket.Name{Bucket: folder.Bucket, Key: path}.String(),
			Files: []string{name.String()}, Age: math.Inf(1)}
		for _, o := range runs[run] {
			one.Age = min(one.Age, max(0, now.Sub(o.Modified)).Seconds()) // processes of parts write to theirs
		}
		data, _, err := client.Get(ctx, name, maxRun)
		var ids []string
		if err == nil {
			ids, err = writer.StoredUploads(name.String(), data)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.Broken) {
			return list, uploads, err
		}
		var own []bucket.Incomplete
		for _, u := range uploads {
			if slices.Contains(ids, u.ID) {
				own = append(own, u)
			}
		}
		uploads = slices.DeleteFunc(uploads, func(u bucket.Incomplete) bool { return slices.Contains(ids, u.ID) })
		one.remove = func() error {
			for _, u := range own {
				if err := client.Abort(ctx, u); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			for _, o := range runs[run] {
				if o.Name == run {
					continue
				}
				if err := client.Remove(ctx, bucket.Name{Bucket: folder.Bucket, Key: folder.Folder().Key + o.Name}); err != nil {
					return err
				}
			}
			return client.Remove(ctx, name)
		}
		list = append(list, one)
	}
	return list, uploads, nil
}

// write prints a leftover as lines.
func (l *leftover) write(w interface{ Write([]byte) (int, error) }, remove bool) error {
	state := ""
	switch {
	case l.Removed:
		state = ", removed"
	case l.Busy:
		state = ", a process works on it"
	case remove:
		state = ", not removed"
	}
	switch {
	case l.Stays != "" && remove:
		state += ": " + l.Stays
	case l.Stays != "":
		state += ", stays: " + l.Stays
	}
	blocks := ""
	if l.Blocks > 0 {
		blocks = fmt.Sprintf(", %d blocks of rows are done", l.Blocks)
	}
	age := (time.Duration(l.Age) * time.Second).String()
	size := ", " + tool.Bytes(l.Bytes)
	if l.Kind == leftUpload || l.Kind == leftObjects {
		size = "" // not known without asking for the parts
	}
	if _, err := fmt.Fprintf(w, "%s: %s%s, %s old%s%s\n", l.Output, leftoverTexts[l.Kind], size, age, blocks,
		state); err != nil {
		return err
	}
	for _, f := range l.Files {
		if _, err := fmt.Fprintf(w, "  %s\n", f); err != nil {
			return err
		}
	}
	return nil
}
