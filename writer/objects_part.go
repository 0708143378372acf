package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"ggforge/fault"
)

// part makes the pieces of a part.
func (o *objects) part(ctx context.Context, head string) error {
	done, err := o.ready(ctx)
	if err != nil {
		return err
	}
	if done {
		o.whole()
		return nil
	}
	if err := o.join(ctx, head); err != nil {
		return err
	}
	if done, err = o.readDone(ctx); err == nil && !done {
		done, err = o.claimAndWork(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		done, err = o.gone(ctx, err)
	}
	if err == nil && !done {
		err = fmt.Errorf("%s: the store has lost pieces of part %d of %d, which it had confirmed; run the part again",
			o.says(runObject), o.opt.Journal.Part, o.opt.Journal.Parts)
	}
	return err
}

// whole sets the results of a part whose run is over.
func (o *objects) whole() {
	o.run.Parts = o.opt.Journal.Parts
	o.divide()
	o.total()
}

// claimAndWork makes what the part lacks, and reports whether the store has all of it then.
func (o *objects) claimAndWork(ctx context.Context) (done bool, err error) {
	c, err := o.claim(ctx)
	if err != nil || c == nil {
		return c == nil && err == nil, err
	}
	if err := c.work(ctx); err != nil {
		c.release(ctx)
		return false, err
	}
	return o.readDone(ctx)
}

// gone looks why an upload does not exist: a Finish of other processes may have made some objects, or all. It reports
// whether the part is done. Otherwise the store has dropped the upload, which is an error.
func (o *objects) gone(ctx context.Context, missing error) (done bool, err error) {
	done, err = o.ready(ctx)
	switch {
	case err != nil:
		return false, err
	case done:
		o.whole()
		if o.ownClaim != "" { // made after Finish has listed the small objects
			err = o.store.Remove(ctx, o.name(o.ownClaim))
		}
		return true, err
	case slices.ContainsFunc(o.files, isOver):
		if done, err = o.readDone(ctx); done || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, err
		}
	}
	return false, o.dropped(missing)
}

func isOver(f *object) bool { return f.over }

// dropped is the error about an upload that the store does not have any more.
func (o *objects) dropped(err error) error {
	return fault.Errorf(fault.Refused,
		"%s: the store has dropped an upload of this run: %w; remove the run with 'ggtool clean', and run all parts again",
		o.says(runObject), err)
}

// join reads the object run, or begins the uploads and creates it.
func (o *objects) join(ctx context.Context, head string) error {
	wanted := func() string { return head }
	if found, err := o.readRun(ctx, wanted); found || err != nil {
		return err
	}
	own := storedRun{Head: head, Parts: o.opt.Journal.Parts}
	abort := func(keep []string) error {
		var errs []error
		for i, f := range own.Files {
			if !slices.Contains(keep, f.ID) {
				errs = append(errs, o.store.Abort(context.WithoutCancel(ctx), o.files[i].path, f.ID))
			}
		}
		return errors.Join(errs...)
	}
	for _, f := range o.files {
		id, err := o.store.Begin(ctx, f.path, o.mark)
		if err != nil {
			return errors.Join(err, abort(nil))
		}
		own.Files = append(own.Files, storedFile{baseOf(f.path), f.size, PieceBytes(f.size, own.Parts), id})
	}
	data := smallObject(own)
	made, err := o.store.Create(ctx, o.name(runObject), data)
	if err != nil {
		if errors.Is(err, fault.Unsupported) {
			err = errors.Join(err, abort(nil))
		}
		return err // otherwise it may have been made
	}
	found, err := o.readRun(ctx, wanted)
	switch {
	case err == nil && !found:
		err = fault.Errorf(fault.Usage, "%s: other processes keep creating and removing this object", o.says(runObject))
		return errors.Join(err, abort(nil))
	case found:
		err = errors.Join(err, abort(o.ids()))
	}
	if err != nil || !made {
		return err
	}
	if twice, err := o.store.Create(ctx, o.name(runObject), data); err != nil || twice {
		return errors.Join(err, o.store.Remove(ctx, o.name(runObject)), abort(nil), fault.Errorf(fault.Unsupported,
			"%s: the store creates an object that exists in spite of the condition If-None-Match: *, on which parts agree",
			o.says(runObject)))
	}
	// finished since ready has looked, by parts whose run does not exist any more
	if done, err := o.ready(ctx); err == nil && done {
		return errors.Join(o.store.Remove(ctx, o.name(runObject)), abort(nil))
	}
	return nil
}

// baseOf returns the end of a path.
func baseOf(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// names returns the beginning of the names of a part's objects.
func (o *objects) names() string {
	j := o.opt.Journal
	return partName(j.Part, j.Parts)
}

// readDone reads the sums of the part, if a process has finished it, and reports whether the store has all pieces of
// them, or the objects. Otherwise it removes the sums, so that the part can be made again. The error about an upload
// that does not exist is fs.ErrNotExist, here and in claim.
func (o *objects) readDone(ctx context.Context) (bool, error) {
	var c claim
	_, _, found, err := o.get(ctx, o.names()+doneSuffix, &c)
	if !found || err != nil {
		return false, err
	}
	lacks := !o.fits(&c, o.opt.Journal.Part)
	if !lacks {
		if err := o.stored(ctx, o.opt.Journal.Part); err != nil {
			return false, err
		}
		lacks = !o.adopt(&c, o.opt.Journal.Part)
	}
	if !lacks {
		o.count()
		o.total()
		return true, nil
	}
	return false, o.store.Remove(ctx, o.name(o.names()+doneSuffix))
}

// total sets the bytes of the part's pieces in the results.
func (o *objects) total() {
	for _, f := range o.files {
		for p, k := range f.owners {
			if k == o.opt.Journal.Part {
				f.result.DataBytes += f.length(p)
			}
		}
	}
}

// stored asks the store for the pieces of a part, of all parts if it is 0. A file whose upload does not exist, as its
// object of this run does, is over.
func (o *objects) stored(ctx context.Context, part int) error {
	for _, f := range o.files {
		if f.over {
			continue
		}
		from, to := len(f.owners), 0
		for p, k := range f.owners {
			f.made[p], f.have[p] = nil, nil
			if k == part || part == 0 {
				from, to = min(from, p), p+1
			}
		}
		if from >= to {
			continue
		}
		list, err := o.store.Pieces(ctx, f.path, f.id, from, to)
		if errors.Is(err, fs.ErrNotExist) {
			mark, there, e := o.store.Mark(ctx, f.path)
			if e != nil {
				return e
			}
			if f.over = there && mark == o.mark; f.over {
				continue
			}
		}
		if err != nil {
			return err
		}
		for _, p := range list {
			if p.Number >= from && p.Number < to && p.Bytes == f.length(p.Number) {
				f.have[p.Number] = &p
			}
		}
	}
	return nil
}

// adopt sets the pieces of a claim that the store has as made, and reports whether these are all of the part. Pieces
// of an object are in it.
func (o *objects) adopt(c *claim, part int) bool {
	for i, list := range c.Files {
		f := o.files[i]
		for _, m := range list {
			if have := f.have[m.Number]; f.over || have != nil && have.is(m.Piece) {
				f.made[m.Number] = &m
			}
		}
	}
	for _, f := range o.files {
		for p, k := range f.owners {
			if k == part && f.made[p] == nil && !f.over {
				return false
			}
		}
	}
	return true
}
