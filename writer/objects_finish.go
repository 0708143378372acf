package writer

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"ggforge/fault"
)

// finish compares the pieces of all parts with their sums, and makes the objects, in that order of files from behind.
func (o *objects) finish(ctx context.Context, head func() string, order []*object) error {
	done, err := o.ready(ctx)
	if err != nil {
		return err
	}
	found, err := o.readRun(ctx, head)
	switch {
	case err != nil && !done:
		return err
	case err != nil || !found && done: // of a run that has nothing to do with these objects, or none
		return nil
	case !found:
		return fault.Errorf(fault.Incomplete, "%s: no such object: no part has begun", o.says(runObject))
	}
	names, err := o.store.List(ctx, o.name(""), maxListed)
	if err != nil {
		return err
	}
	if !done {
		if err := o.check(ctx, names); err != nil {
			return err
		}
		if o.opt.Check != nil {
			if err := o.opt.Check(); err != nil {
				return err
			}
		}
		if err := o.complete(ctx, order); err != nil {
			return err
		}
	}
	for _, f := range o.files {
		if err := o.store.Sweep(ctx, f.path); err != nil {
			return err
		}
	}
	return o.clean(ctx, names)
}

// maxListed bounds the number of small objects of a run.
const maxListed = 3 * maxParts

// readAtOnce is the number of small objects that are read or removed at once.
const readAtOnce = 16

// each calls f for each name, for several at once.
func each(ctx context.Context, names []string, f func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}

// check reads the sums of all parts and compares them with the pieces that the store has. Parts without sums, and
// those with pieces that the store does not have, are an error of kind fault.Incomplete.
func (o *objects) check(ctx context.Context, names []string) error {
	n := o.run.Parts
	if err := o.stored(ctx, 0); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return o.dropped(err)
		}
		return err
	}
	claims := make([]*claim, n+1)
	var list []string
	for _, name := range names {
		if strings.HasSuffix(name, "-of-"+strconv.Itoa(n)+doneSuffix) {
			list = append(list, name)
		}
	}
	err := each(ctx, list, func(ctx context.Context, name string) error {
		m := claimName.FindStringSubmatch(name)
		if m == nil {
			return nil
		}
		k, _ := strconv.Atoi(m[1])
		if k < 1 || k > n || name != partName(k, n)+doneSuffix {
			return nil
		}
		c := new(claim)
		_, _, found, err := o.get(ctx, name, c)
		if found && err == nil {
			claims[k] = c
		}
		return err
	})
	if err != nil {
		return err
	}
	lacks := make([]bool, n+1)
	for k := 1; k <= n; k++ {
		if c := claims[k]; c == nil || !o.fits(c, k) {
			lacks[k] = true
		} else {
			o.adopt(c, k)
		}
	}
	for _, f := range o.files {
		for p, k := range f.owners {
			if f.made[p] == nil && !f.over {
				lacks[k] = true
			}
		}
	}
	var parts []string
	for k := 1; k <= n; k++ {
		if lacks[k] {
			parts = append(parts, strconv.Itoa(k))
		}
	}
	if len(parts) > 0 {
		return fault.Errorf(fault.Incomplete, "%s: %d of %d parts are incomplete, run them again: %s",
			o.store.Name(o.lead), len(parts), n, fault.List(parts))
	}
	o.count()
	for _, f := range o.files {
		for _, t := range f.tensors {
			f.result.DataBytes += t.bytes()
		}
	}
	return nil
}

// complete makes the objects that are not there: the files of a model before the one by which readers open it, and
// that of the first model last.
func (o *objects) complete(ctx context.Context, leaders []*object) error {
	for _, f := range append(o.others(leaders), reversed(leaders)...) {
		if f.over {
			continue
		}
		pieces := make([]Piece, len(f.made))
		for p, m := range f.made {
			pieces[p] = m.Piece
		}
		if err := o.store.Complete(ctx, f.path, f.id, f.size, pieces, o.force); err != nil {
			return err
		}
	}
	return nil
}

// others returns the files that are no leaders.
func (o *objects) others(leaders []*object) (list []*object) {
	lead := map[*object]bool{}
	for _, f := range leaders {
		lead[f] = true
	}
	for _, f := range o.files {
		if !lead[f] {
			list = append(list, f)
		}
	}
	return list
}

func reversed(list []*object) (back []*object) {
	for i := range list {
		back = append(back, list[len(list)-1-i])
	}
	return back
}

// clean removes the small objects, the one by which a later run knows this one last.
func (o *objects) clean(ctx context.Context, names []string) error {
	var list []string
	for _, name := range names {
		if claimName.MatchString(name) {
			list = append(list, name)
		}
	}
	err := each(ctx, list, func(ctx context.Context, name string) error { return o.store.Remove(ctx, o.name(name)) })
	if err != nil {
		return err
	}
	return o.store.Remove(ctx, o.name(runObject))
}
