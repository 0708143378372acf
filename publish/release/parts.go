package release

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
	"syscall"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/part"
	"ggforge/model/digest"
	"ggforge/writer"
)

// A release in parts: each process makes some of the models and encoders, in a folder of its own that has a state like
// that of a release; then one process takes the files and makes the rest.
//
//	--part 1/2   .ggtool-release/part-1-of-2/   models 1 to 3, the importance matrix
//	--part 2/2   .ggtool-release/part-2-of-2/   models 4 to 6, the importance matrix
//	--finish     each file whose step has the key of the plan: sum ──► Intent saved ──► renamed ──► Made saved;
//	             then all other steps
//
// Keys do not depend on the folder, so --finish takes exactly what a single process would have made. Parts are
// independent: a process that needs the importance matrix collects it, with the same bits as all others.

// partPrefix begins the names of the folders of parts, PREFIXK-of-N.
const partPrefix = "part-"

// partsDir returns the folder that has those of the parts.
func (r *Release) partsDir() string {
	if r.opt.PartFiles != "" {
		return filepath.Clean(r.opt.PartFiles)
	}
	return filepath.Join(filepath.Clean(r.plan.Output), stateDir)
}

// checkPart refuses options that contradict each other, and sets the folder of a part.
func (r *Release) checkPart() error {
	o := &r.opt
	switch {
	case o.Parts < 0 || o.Parts > part.Most || o.Part < 0 || o.Part > o.Parts || o.Parts > 0 && o.Part == 0:
		return fault.Errorf(fault.Usage, "part %d of %d: want one of 1 to %d parts", o.Part, o.Parts, part.Most)
	case o.Part > 0 && o.Finish:
		return fault.Errorf(fault.Usage, "a part and the end of a release: want one of them")
	case o.Part == 0 && !o.Finish && o.PartFiles != "":
		return fault.Errorf(fault.Usage, "a folder of parts, %s: want a part, or to finish", o.PartFiles)
	case o.Part == 0:
		return nil
	}
	if o.PartFiles == "" {
		if err := checkStateDir(r.dir); err != nil {
			return err
		}
	}
	r.dir = filepath.Join(r.partsDir(), partPrefix+part.Part{K: o.Part, N: o.Parts}.String())
	return checkFolder(r.dir)
}

// units returns the steps that parts share: each model, unless all are chosen together, and each encoder.
func (r *Release) units() (units [][]step) {
	models := r.of(kindModel)
	if r.holdsOut() {
		units = append(units, models)
		models = nil
	}
	for _, s := range append(models, r.of(kindEncoder)...) {
		units = append(units, []step{s})
	}
	return units
}

// share leaves only the steps of the part, and the importance matrix if its models need it. Models that the output
// folder has already are left out.
func (r *Release) share(ctx context.Context) error {
	if r.opt.Part == 0 {
		return nil
	}
	there, err := readState(filepath.Clean(r.plan.Output))
	if err != nil {
		return err
	}
	units := r.units()
	a, b := part.Part{K: r.opt.Part, N: r.opt.Parts}.Range(len(units))
	var steps []step
	var models []*modelStep
	types := *r.types
	types.recipes = nil
	for _, unit := range units[a:b] {
		var todo []step
		for _, s := range unit {
			i := s.base().id
			done, err := there.holds(ctx, filepath.Clean(r.plan.Output), there.Made[i], s.Key())
			if err != nil {
				return err
			}
			if !done {
				todo = append(todo, s)
			}
		}
		if len(unit) > 1 && len(todo) > 0 {
			todo = unit
		}
		for _, s := range todo {
			if m, ok := s.(*modelStep); ok {
				models = append(models, m)
				types.recipes = append(types.recipes, m.recipe)
			}
		}
		steps = append(steps, todo...)
	}
	if r.matrix != nil && len(models) > 0 {
		steps = append([]step{r.matrix}, steps...)
	} else {
		r.matrix = nil
	}
	r.models, r.types = models, &types
	r.steps, r.Items = nil, nil
	for _, s := range steps {
		r.add(s)
	}
	return nil
}

// partFolder is a folder of a part.
type partFolder struct {
	part  part.Part
	dir   string
	state *state
}

// partFolders returns the folders of parts, ordered by N and K.
func (r *Release) partFolders() (list []partFolder, err error) {
	entries, err := disk.ReadDir(r.partsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		var p part.Part
		name, ok := strings.CutPrefix(e.Name(), partPrefix)
		if _, err := fmt.Sscanf(name, "%d-of-%d", &p.K, &p.N); !ok || err != nil || p.String() != name || !e.IsDir() {
			continue
		}
		f := partFolder{part: p, dir: filepath.Join(r.partsDir(), e.Name())}
		if f.state, err = readState(f.dir); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b partFolder) int { return (a.part.N-b.part.N)*part.Most + a.part.K - b.part.K })
	return list, nil
}

// taken is a step whose files a part has made.
type taken struct {
	step step
	from *partFolder
}

// findParts returns the steps that are not done with the parts that have made them; their locks are held until unlock.
// Missing or damaged files are one error of kind fault.Incomplete, which names the parts.
func (r *Release) findParts(ctx context.Context) (list []taken, unlock func(), err error) {
	if !r.opt.Finish {
		return nil, func() {}, nil
	}
	folders, err := r.partFolders()
	if err != nil {
		return nil, nil, err
	}
	var locks []func() error
	release := func() {
		for _, l := range locks {
			l()
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	for _, f := range folders {
		l, err := writer.Lock(filepath.Join(f.dir, stateDir, lockName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fault.Errorf(fault.Incomplete, "part %d/%d is running: %w", f.part.K, f.part.N, err)
		}
		locks = append(locks, l)
	}
	var missing []string
	for _, s := range r.of(kindMatrix, kindModel, kindEncoder) {
		if s.base().item().Done {
			continue
		}
		f, err := r.partOf(ctx, s, folders)
		switch {
		case errors.Is(err, fault.Incomplete):
			missing = append(missing, err.Error())
		case err != nil:
			return nil, nil, err
		}
		list = append(list, taken{s, f})
	}
	if missing != nil {
		return nil, nil, fault.Errorf(fault.Incomplete,
			"%s: %d files are missing; run the parts again whose folders are in %s: %s", r.dir, len(missing),
			r.partsDir(), fault.List(missing))
	}
	return list, release, r.unchanged()
}

// partOf returns the folder that has the files of a step, whose sums it compares.
func (r *Release) partOf(ctx context.Context, s step, folders []partFolder) (*partFolder, error) {
	i, key := s.base().id, s.Key()
	why := "no part has made it"
	var found *partFolder
	for k := range folders {
		f := &folders[k]
		m := f.state.Made[i]
		if len(m.Files) == 0 || m.Key != key {
			if len(m.Files) > 0 {
				why = fmt.Sprintf("part %d/%d has made it from other inputs or options", f.part.K, f.part.N)
			}
			continue
		}
		if found != nil {
			if was := found.state.Made[i].Files; !slices.Equal(was, m.Files) {
				return nil, fault.Errorf(fault.Broken,
					"%s: parts %d/%d and %d/%d made different files of the same inputs: %v, %v", s.base().path,
					found.part.K, found.part.N, f.part.K, f.part.N, was, m.Files)
			}
			continue
		}
		bad, err := r.damaged(ctx, f, m.Files)
		if err != nil {
			return nil, err
		}
		if bad != "" {
			why = bad
			continue
		}
		found = f
	}
	if found == nil {
		return nil, fault.Errorf(fault.Incomplete, "%s%s (%s)", r.ranges(s, folders), s.base().path, why)
	}
	return found, nil
}

// ranges names the parts that make a step, "" if no part has run.
func (r *Release) ranges(s step, folders []partFolder) string {
	units := r.units()
	u := slices.IndexFunc(units, func(unit []step) bool { return slices.Contains(unit, s) })
	n := 0
	for _, f := range folders {
		n = max(n, f.part.N)
	}
	if u < 0 || n == 0 {
		return ""
	}
	for k := 1; k <= n; k++ {
		p := part.Part{K: k, N: n}
		if a, b := p.Range(len(units)); a <= u && u < b {
			return fmt.Sprintf("%d/%d: ", k, n)
		}
	}
	return ""
}

// damaged returns what is wrong with the files of a part, "" for nothing. Files that have their names in the output
// folder already, since a run that was killed, are there.
func (r *Release) damaged(ctx context.Context, f *partFolder, files []File) (string, error) {
	for _, file := range files {
		path := filepath.Join(f.dir, filepath.FromSlash(file.Name))
		info, err := disk.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			there, err := r.state.same(ctx, r.dir, file.File)
			if err != nil {
				return "", err
			}
			if !there {
				return path + " is missing", nil
			}
			continue
		}
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return path + " is no file", nil
		}
		now, err := digest.OfFile(ctx, path)
		if err != nil {
			return "", err
		}
		if now.Bytes != file.Bytes || now.SHA256 != file.SHA256 {
			return fmt.Sprintf("%s: SHA-256 is %s, and was %s when it was made", path, now.SHA256, file.SHA256), nil
		}
	}
	return "", nil
}

// take gives the files of a step their names in the output folder.
func (r *Release) take(ctx context.Context, s step, f *partFolder) error {
	files := f.state.Made[s.base().id].Files
	r.opt.Note(fmt.Sprintf("part %d/%d: %s", f.part.K, f.part.N, s.base().path))
	r.state.announce(s.base().id, made{s.Key(), files})
	if err := r.state.save(r.dir); err != nil {
		return err
	}
	for _, file := range files {
		local := filepath.FromSlash(file.Name)
		from, to := filepath.Join(f.dir, local), filepath.Join(r.dir, local)
		if _, err := disk.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := writer.MakeDir(filepath.Dir(to)); err != nil {
			return err
		}
		if err := move(ctx, from, to, file.Bytes); err != nil {
			return err
		}
	}
	return r.record(s)
}

// move renames a file, or copies it to another file system.
func move(ctx context.Context, from, to string, size int64) error {
	err := disk.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		file, err := disk.Open(from)
		if err != nil {
			return err
		}
		err = writer.WriteFrom(ctx, to, size, whole{file}, nil, writer.Options{Force: true})
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		return disk.Remove(from)
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(to))
}

// whole is a file as an io.WriterTo.
type whole struct{ io.Reader }

func (w whole) WriteTo(to io.Writer) (int64, error) { return io.Copy(to, w.Reader) }

// removeParts removes what the folders of parts still have: their states, and files that were made several times, such
// as the importance matrix. Folders with other files stay.
func (r *Release) removeParts() error {
	folders, err := r.partFolders()
	if err != nil {
		return err
	}
	for _, f := range folders {
		dirs := []string{f.dir}
		for _, path := range f.state.paths(f.dir) {
			if err := disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		if err := disk.Do(disk.OpRemove, filepath.Join(f.dir, stateDir), func() error {
			return os.RemoveAll(filepath.Join(f.dir, stateDir))
		}); err != nil {
			return err
		}
		for _, dir := range slices.Backward(dirs) {
			if err := removePartials(dir); err != nil {
				return err
			}
			disk.Do(disk.OpRemove, dir, func() error { return os.Remove(dir) }) // fails if it is not empty
		}
	}
	return nil
}

// removePartials removes temporary files of killed runs from a folder that nothing else writes to.
func removePartials(dir string) error {
	list, err := disk.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if e.Type().IsRegular() && strings.Contains(e.Name(), writer.Suffix) {
			if err := disk.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
