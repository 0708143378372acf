// Package upload handles outputs of commands that are objects, s3://BUCKET/KEY: they are made in a folder of this
// machine and uploaded when they are complete.
package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/statefile"
	"ggforge/model/identity"
	"ggforge/writer"
)

// WorkDirFlag returns --work-dir, the folder for outputs that are uploaded.
func WorkDirFlag() tool.Flag {
	return tool.Flag{Name: "work-dir", Value: tool.File, Category: tool.CategoryOutput, Effect: tool.KeepsState,
		Usage: "make outputs that become objects (s3://BUCKET/KEY) in a folder of `DIR` first, from where they are " +
			"uploaded (default: the folder for temporary files; with --part and --finish no folder)"}
}

// folderPrefix begins the name of a folder with outputs to be uploaded; 16 hexadecimal digits follow.
const folderPrefix = "ggforge-upload-"

var folderName = regexp.MustCompile("^" + folderPrefix + "[0-9a-f]{16}$")

// Folder is a folder with outputs that are not uploaded yet.
type Folder struct {
	Path     string
	Files    []string // paths of the files in it
	Bytes    int64
	Modified time.Time // time of the last write to one of the files
	Busy     bool      // a process works on it
}

// Folders returns the folders with outputs in a directory.
func Folders(dir string) (list []Folder, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		// skip folders that other users may have filled
		if err != nil || !info.IsDir() || !folderName.MatchString(e.Name()) || !private(info) {
			continue
		}
		f := Folder{Path: filepath.Join(dir, e.Name())}
		f.Busy = writer.Locked(filepath.Join(f.Path, lockName))
		inside, err := os.ReadDir(f.Path)
		if err != nil {
			return nil, err
		}
		for _, e := range inside {
			info, err := e.Info()
			if err != nil {
				continue // it was removed meanwhile
			}
			f.Files = append(f.Files, filepath.Join(f.Path, e.Name()))
			f.Bytes += info.Size()
			if info.ModTime().After(f.Modified) {
				f.Modified = info.ModTime()
			}
		}
		if len(f.Files) == 0 {
			f.Modified = info.ModTime()
		}
		list = append(list, f)
	}
	return list, nil
}

// Remove removes the folder with its files. It fails if it contains a folder, or a process works on it.
func (f *Folder) Remove() error {
	release, err := writer.LockNew(filepath.Join(f.Path, lockName))
	if err != nil {
		return err
	}
	for _, name := range f.Files {
		if filepath.Base(name) == lockName {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, release())
		}
	}
	if err := release(); err != nil {
		return err
	}
	return os.Remove(f.Path)
}

// Destination is the destination of outputs that are uploaded as objects. It is nil for outputs that are files: the
// methods of nil do nothing.
type Destination struct {
	Dir string // folder on this machine

	out    string      // the user's address
	to     bucket.Name // the folder of the objects
	client *bucket.Client
	force  bool
	direct bool // parts send pieces of the objects: there is no folder
	cmd    *cli.Command
}

// Parse returns the destination for out, the address of an object or, with folder, of a prefix for several, and its
// path on this machine. For a file or folder of this machine it returns nil and out itself. It creates nothing.
func Parse(cmd *cli.Command, out string, folder bool) (p *Destination, path string, err error) {
	work, err := tool.FileValue(cmd, "work-dir")
	if err != nil {
		return nil, "", err
	}
	if checkpoint.IsRemote(out) && !bucket.Is(out) {
		return nil, "", fault.Errorf(fault.Usage, "%q: outputs are files or objects, s3://BUCKET/KEY; the hub wants the "+
			"SHA-256 of a whole file before it takes the first byte, so ggtool push sends finished files to it", out)
	}
	if !bucket.Is(out) {
		if work != "" {
			return nil, "", fault.Errorf(fault.Usage, "--work-dir is for outputs that become objects, s3://BUCKET/KEY")
		}
		return nil, out, nil
	}
	n, err := bucket.Parse(out)
	if err != nil {
		return nil, "", err
	}
	if err := tool.CheckCase(cmd, tool.OfObjects); err != nil {
		return nil, "", err
	}
	if !tool.MayRead(cmd) {
		return nil, out, nil
	}
	opt := bucket.Environment()
	p = &Destination{out: out, force: cmd.Bool("force"), direct: Direct(cmd), cmd: cmd}
	if p.client, err = bucket.New(opt); err != nil {
		return nil, "", err
	}
	if work == "" {
		work = os.TempDir()
	}
	sum := sha256.Sum256([]byte(opt.Endpoint + "\n" + out))
	p.Dir = filepath.Join(work, folderPrefix+hex.EncodeToString(sum[:8]))
	base := ""
	if folder || n.Key == "" || strings.HasSuffix(n.Key, "/") {
		p.to = n.Folder()
	} else {
		i := strings.LastIndex(n.Key, "/") + 1
		p.to, base = bucket.Name{Bucket: n.Bucket, Key: n.Key[:i]}, n.Key[i:]
		if !filepath.IsLocal(base) {
			return nil, "", fault.Errorf(fault.Usage, "%q: %q is no name of a file", out, base)
		}
	}
	return p, filepath.Join(p.Dir, base), nil
}

// lockName is the name of the lock file: the run that makes or uploads the outputs holds it.
const lockName = "held"

// lock keeps other runs out of the folder until release. Parts of one run upload nothing and share it.
func (p *Destination) lock() (release func() error, err error) {
	if p.cmd.String("part") != "" {
		return func() error { return nil }, nil
	}
	for range 10 {
		release, err = writer.LockNew(filepath.Join(p.Dir, lockName))
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err = p.Make(); err != nil { // a run that has just ended may have removed it
			break
		}
	}
	if errors.Is(err, fault.Usage) {
		err = fmt.Errorf("%s: another run makes or uploads it: %w", p.out, err)
	}
	return release, err
}

// Make makes the folder, to which only the user can write.
func (p *Destination) Make() error {
	if p == nil || p.direct {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.Dir), 0o777); err != nil {
		return err
	}
	if err := os.Mkdir(p.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(p.Dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !private(info) {
		return fault.Errorf(fault.Refused,
			"%s: is not a folder that only you can write to; --work-dir names another place", p.Dir)
	}
	return nil
}

// Close removes the folder if nothing is in it.
func (p *Destination) Close() {
	if p == nil {
		return
	}
	if !p.direct {
		os.Remove(p.Dir)
	}
	p.client.Close()
}

// Object returns the name of the object for the file at path; for outputs that are files, path.
func (p *Destination) Object(path string) string {
	if p == nil {
		return path
	}
	return p.object(path).String()
}

func (p *Destination) object(path string) bucket.Name {
	return bucket.Name{Bucket: p.to.Bucket, Key: p.to.Key +
		filepath.ToSlash(strings.TrimPrefix(path, p.Dir+string(filepath.Separator)))}
}

// Objects returns the names of the objects for files.
func (p *Destination) Objects(paths []string) []string {
	names := slices.Clone(paths)
	for i := range names {
		names[i] = p.Object(names[i])
	}
	return names
}

// runIdentity identifies a run by all that its outputs depend on: the program, its arguments and flags, and the files
// that it reads, without those of keptFiles.
func runIdentity(cmd *cli.Command, reads Inputs) (string, error) {
	h, files := sha256.New(), reads.Files
	fmt.Fprintf(h, "%s %s\n%q\n%q\n", cmd.Name, tool.Version, cmd.Args().Slice(), reads.Origin)
	for _, f := range tool.Declarations(cmd) {
		if !f.IsSet(cmd) || !f.Effect.Identifies() {
			continue
		}
		fmt.Fprintf(h, "--%s %q\n", f.Name, fmt.Sprint(cmd.Value(f.Name)))
		if f.Effect != tool.ReadsFile {
			continue // this run may make or replace the file
		}
		for _, value := range f.Values(cmd) {
			path, _ := f.SplitFile(value)
			path = tool.Fetched(cmd, path)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(slices.Clip(files), path)
			}
		}
	}
	for _, path := range files {
		if err := add(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// add adds the identity of a file to h, if it is a regular file.
func add(h io.Writer, path string) error {
	id, err := identity.OfFile(path)
	if errors.Is(err, identity.ErrIrregular) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %s\n", filepath.Base(path), id)
	if id.Sampled() {
		fmt.Fprintln(h, id.Modified.UnixNano())
	}
	return nil
}

// keptFiles returns the identities of the files that flags of effect KeepsFile name, "" for one that does not exist.
// For a file that existed before the run, the identity in before is kept: the run has read that content.
func keptFiles(cmd *cli.Command, before []string) (list []string, err error) {
	for _, f := range tool.Declarations(cmd) {
		if !f.IsSet(cmd) || f.Effect != tool.KeepsFile {
			continue
		}
		path := cmd.String(f.Name)
		var text strings.Builder
		if i := len(list); i < len(before) && before[i] != "" {
			text.WriteString(before[i])
		} else if _, err := os.Stat(path); err == nil {
			if err := add(&text, path); err != nil {
				return nil, err
			}
		}
		list = append(list, text.String())
	}
	return list, nil
}

// record lists the files that a run has made in the folder.
type record struct {
	Files  []madeFile      `json:"files"`
	Report json.RawMessage `json:"report"` // for the command's output
}

type madeFile struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// recordName is the name of the record in the folder.
const recordName = "made.state"

// maxRecord is the largest record that is read, in bytes.
const maxRecord = 256 << 20

// recordKind is the kind of records. Each record belongs to an identity from runIdentity.
var recordKind = statefile.Kind{Name: "made to be uploaded", Version: 1, Max: maxRecord}

// parseRecord reads the body of a record.
func parseRecord(data []byte) (r record, ok bool) {
	if json.Unmarshal(data, &r) != nil || len(r.Files) == 0 {
		return r, false
	}
	for _, f := range r.Files {
		if f.Name == "." || !filepath.IsLocal(f.Name) || filepath.Base(f.Name) != f.Name {
			return r, false
		}
	}
	return r, true
}

// Inputs are the inputs of a run: files of this machine, and the identity of inputs on servers.
type Inputs struct{ Files, Origin []string }

// Run makes outputs, by write, and uploads them, the first one last. write returns the files, none if they are not
// finished, and the report for the command's output; report points to a value of the same type. If an earlier run was
// interrupted in its upload, write is not called, and the report of that run is read into report. If one of known, the
// outputs known before the work, would replace an object, Run returns an error before the work.
func (p *Destination) Run(ctx context.Context, reads Inputs, known []string,
	write func() (paths []string, found any, err error), report any) (err error) {
	if p == nil || p.direct {
		files, _, err := write()
		if err == nil && p != nil && len(files) > 0 {
			tool.Outputs(p.cmd, p.Objects(files))
		}
		return err
	}
	run, err := runIdentity(p.cmd, reads)
	if err != nil {
		return err
	}
	before, err := keptFiles(p.cmd, nil)
	if err != nil {
		return err
	}
	release, err := p.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	files := p.readRecord(run+strings.Join(before, ""), report)
	fresh := files == nil
	if fresh {
		if err := p.checkFree(ctx, known); err != nil {
			return err
		}
		var found any
		if files, found, err = write(); err != nil || len(files) == 0 {
			return err
		}
		after, err := keptFiles(p.cmd, before) // with the files that this run has written
		if err != nil {
			return err
		}
		if err := p.writeRecord(run+strings.Join(after, ""), files, found); err != nil {
			return err
		}
	}
	return p.upload(ctx, files, fresh)
}

// readRecord returns the files that an earlier run of that identity has made and not completely uploaded, nil if
// there are none, and reads its report into report.
func (p *Destination) readRecord(identity string, report any) []string {
	data, err := recordKind.ReadOf(filepath.Join(p.Dir, recordName), identity)
	if err != nil {
		return nil
	}
	r, ok := parseRecord(data)
	if !ok {
		return nil
	}
	var paths []string
	for _, m := range r.Files {
		path := filepath.Join(p.Dir, m.Name)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() != m.Size ||
			!info.ModTime().Equal(m.Modified) {
			return nil
		}
		paths = append(paths, path)
	}
	if json.Unmarshal(r.Report, report) != nil {
		return nil
	}
	tool.Note(p.cmd, fmt.Sprintf("%s: made by an earlier run, which has not uploaded all of it", p.Dir))
	return paths
}

// checkFree returns an error if an object of an output exists already, unless --force replaces it. It is called
// before the work.
func (p *Destination) checkFree(ctx context.Context, paths []string) error {
	if p.force {
		return nil
	}
	for _, path := range paths {
		if err := p.client.Vacant(ctx, p.object(path)); err != nil {
			return err
		}
	}
	return nil
}

// writeRecord records the files that a run of that identity has made, and its report, with which the same command
// resumes an interrupted upload.
func (p *Destination) writeRecord(identity string, paths []string, report any) error {
	var r record
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, madeFile{filepath.Base(path), info.Size(), info.ModTime()})
	}
	var err error
	if r.Report, err = json.Marshal(report); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return recordKind.Write(filepath.Join(p.Dir, recordName), identity, data)
}

// upload uploads files, the first one last, and removes them here. fresh is set if no earlier run has begun to
// upload.
func (p *Destination) upload(ctx context.Context, paths []string, fresh bool) error {
	var files []bucket.File
	for _, path := range paths {
		files = append(files, bucket.File{Path: path, To: p.object(path)})
	}
	opt := bucket.UploadOptions{Force: p.force, Fresh: fresh}
	if show := tool.Parts(p.cmd)("upload"); show != nil {
		opt.Progress = func(done, total int64) { show(float64(done) / float64(total)) }
	}
	err := p.client.Upload(ctx, files, opt)
	switch same := errors.Is(err, bucket.ErrSame) && len(files) == 1; {
	case err != nil && !same:
		return fmt.Errorf("%w (the output is in %s: run the same command again to upload it)", err, p.Dir)
	case err == nil:
		tool.Outputs(p.cmd, p.Objects(paths))
	}
	errs := []error{err, os.Remove(filepath.Join(p.Dir, recordName))}
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}
