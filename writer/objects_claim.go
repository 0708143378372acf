package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ggforge/fault"
	"ggforge/gguf"
)

// claimed is a part that this process makes.
type claimed struct {
	*objects
	no int // of the claim

	mu  sync.Mutex
	own claim
}

// claim creates the next claim to the part, when the one before is over, and takes over the pieces that it has. There is
// none, and the results are set, if all objects have been made meanwhile.
func (o *objects) claim(ctx context.Context) (*claimed, error) {
	owner := newOwner()
	for {
		last, err := o.lastClaim(ctx)
		if err != nil {
			return nil, err
		}
		if last >= maxClaims {
			return nil, fault.Errorf(fault.Unsupported, "%s: more than %d claims", o.says(o.names()), maxClaims)
		}
		before := claim{}
		if last > 0 {
			if before, err = o.await(ctx, last); err != nil {
				return nil, err
			}
		}
		if err := o.stored(ctx, o.opt.Journal.Part); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(o.files, func(f *object) bool { return !f.over }) {
			o.whole()
			return nil, nil
		}
		if o.fits(&before, o.opt.Journal.Part) {
			o.adopt(&before, o.opt.Journal.Part)
		}
		c := &claimed{objects: o, no: last + 1, own: claim{Owner: owner, Uploads: o.ids()}}
		rest := c.rest(c.no)
		made, err := o.store.Create(ctx, o.name(rest), c.content())
		if err != nil {
			return nil, err
		}
		if !made {
			var now claim
			if _, _, _, err := o.get(ctx, rest, &now); err != nil {
				return nil, err
			}
			if now.Owner != owner { // another process was faster
				continue
			}
		}
		o.ownClaim = rest
		return c, nil
	}
}

// rest returns the end of the name of a claim.
func (o *objects) rest(no int) string { return o.names() + "." + strconv.Itoa(no) }

// lastClaim returns the number of the last claim to the part, 0 if there is none.
func (o *objects) lastClaim(ctx context.Context) (last int, err error) {
	list, err := o.store.List(ctx, o.name(o.names()+"."), maxClaims+1)
	for _, rest := range list {
		if n, err := strconv.Atoi(rest); err == nil {
			last = max(last, n)
		}
	}
	return last, err
}

// await waits until the owner of a claim has released it, or has not written to it for the time of a lease, and
// returns it. A claim that its owner writes to meanwhile is an error.
func (o *objects) await(ctx context.Context, no int) (c claim, err error) {
	var first []byte
	begun := time.Now()
	for {
		c = claim{}
		data, age, found, err := o.get(ctx, o.rest(no), &c)
		switch {
		case errors.Is(err, fault.Broken): // its owner has another version, or has left half of it
			c, err = claim{}, nil
		case err != nil:
			return c, err
		case !found || c.Released:
			return c, nil
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			// without a kind: schedulers try again
			return c, fmt.Errorf("%s: another process makes part %d of %d", o.says(o.rest(no)), o.opt.Journal.Part,
				o.opt.Journal.Parts)
		}
		if age > lease || time.Since(begun) > lease {
			return c, nil
		}
		select {
		case <-time.After(min(time.Second, lease/4)):
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}

// content returns the claim with the pieces so far, for the next write.
func (c *claimed) content() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own.Beat++
	c.own.Files = c.pieces()
	return smallObject(&c.own)
}

// pieces returns the pieces of the part that are made.
func (c *claimed) pieces() [][]madeData {
	files := make([][]madeData, len(c.files))
	for i, f := range c.files {
		files[i] = []madeData{}
		for p, k := range f.owners {
			if k == c.opt.Journal.Part && f.made[p] != nil {
				files[i] = append(files[i], *f.made[p])
			}
		}
	}
	return files
}

// errTaken is the cause of a context that ends because another process makes the part.
var errTaken = errors.New("another process has taken over this part")

// keep writes to the claim a few times in the time of a lease, until ctx ends or another process has taken over.
func (c *claimed) keep(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var next claim
		_, _, found, err := c.get(ctx, c.rest(c.no+1), &next)
		switch {
		case found:
			stop(fmt.Errorf("%s: %w", c.says(c.rest(c.no+1)), errTaken))
			return
		case err == nil:
			err = c.store.Put(ctx, c.name(c.rest(c.no)), c.content())
		}
		if err != nil && ctx.Err() == nil {
			stop(err)
			return
		}
	}
}

// release lets the next process of the part begin at once, if this one can still say so.
func (c *claimed) release(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	c.mu.Lock()
	c.own.Released = true
	c.mu.Unlock()
	_ = c.store.Put(ctx, c.name(c.rest(c.no)), c.content()) // otherwise it waits
}

// work makes the missing pieces of the part, and creates the object with all sums.
func (c *claimed) work(ctx context.Context) error {
	outer := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var keeping sync.WaitGroup
	beats, end := context.WithCancel(ctx)
	keeping.Go(func() { c.keep(beats, stop) })
	err := c.make(ctx)
	end()
	keeping.Wait()
	if cause := context.Cause(ctx); outer.Err() == nil && cause != nil && errors.Is(err, context.Canceled) {
		err = cause // of keep
	}
	if err == nil && c.opt.Check != nil {
		err = c.opt.Check()
	}
	if err != nil {
		return err
	}
	rest := c.names() + doneSuffix
	made, err := c.store.Create(ctx, c.name(rest), c.content())
	if err != nil || made {
		return err
	}
	var other claim
	_, _, found, err := c.get(ctx, rest, &other)
	if err != nil || !found || other.Owner == c.own.Owner {
		return err
	}
	for i, list := range c.own.Files {
		for k, m := range list {
			if i >= len(other.Files) || k >= len(other.Files[i]) || !other.Files[i][k].is(m.Piece) {
				return fault.Errorf(fault.Broken, "%s: another process has made piece %d of %s with other bytes", c.says(rest),
					m.Number, c.store.Name(c.files[i].path))
			}
		}
	}
	return nil
}

// make makes the missing pieces of the part.
func (c *claimed) make(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	most := sentAtOnce
	for _, f := range c.files {
		most = max(1, min(most, int(sentBytes/f.piece)))
	}
	group.SetLimit(most)
	for i, f := range c.files {
		f.sink = &sink{object: f, of: c, fileNo: i, ctx: ctx, group: group, open: map[int]*openPiece{}}
		for _, t := range f.tensors {
			t.sink = f.sink
			t.need = f.need(t, c.opt.Journal.Part)
		}
	}
	p := c.pool
	for _, j := range p.jobs {
		j.spans = j.cells()
		for _, t := range j.outputs {
			rows, _ := rowsOf(t)
			for _, s := range t.need {
				p.total += (s.b - s.a) * t.rowBytes()
				p.work += workOf(t, (s.b-s.a)*gguf.RowLen(j.ne))
				t.result.Elements += (s.b - s.a) * gguf.RowLen(j.ne)
			}
			j.lo, j.hi = 0, rows
		}
		for _, s := range j.spans {
			p.work += j.readWork((s.b - s.a) * gguf.RowLen(j.ne))
		}
	}
	err := c.headers()
	if err == nil {
		err = p.run(ctx)
	}
	if sent := group.Wait(); sent != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = sent
	}
	if err != nil {
		return err
	}
	for _, f := range c.files {
		for p, k := range f.owners {
			if k == c.opt.Journal.Part && f.made[p] == nil {
				return fmt.Errorf("%s: piece %d is not complete", c.store.Name(f.path), p)
			}
		}
	}
	return nil
}

// headers sends the pieces of the part without rows: those of headers and of padding.
func (c *claimed) headers() error {
	for _, f := range c.files {
		for p, k := range f.owners {
			if k == c.opt.Journal.Part && f.made[p] == nil && f.rowBytes(p) == 0 {
				if err := f.sink.write(int64(p)*f.piece, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
