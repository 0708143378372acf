package writer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ggforge/fault"
	"ggforge/gguf"
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
	if done, err = o.ready(ctx); err == nil && done {
		o.whole()
		if o.ownClaim != "" { // made after Finish has listed the small objects
			err = o.store.Remove(ctx, o.name(o.ownClaim))
		}
		return true, err
	}
	if err == nil && slices.ContainsFunc(o.files, isOver) {
		if done, err = o.readDone(ctx); err == nil && done {
			return true, nil
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
			if f.over = e == nil && there && mark == o.mark; f.over {
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

// overlap returns how many bytes of tensor t are in piece p, and at which bytes of the file they begin and end.
func (f *object) overlap(t *placed, p int) (n, from, to int64) {
	from = max(t.off, int64(p)*f.piece)
	to = min(t.off+t.bytes(), int64(p)*f.piece+f.length(p))
	return max(0, to-from), from, to
}

// rowBytes returns how many bytes of rows are in piece p.
func (f *object) rowBytes(p int) (n int64) {
	i, _ := slices.BinarySearchFunc(f.sorted, int64(p)*f.piece, func(t *placed, at int64) int {
		return cmp.Compare(t.off+t.bytes(), at+1)
	})
	for ; i < len(f.sorted) && f.sorted[i].off < int64(p+1)*f.piece; i++ {
		k, _, _ := f.overlap(f.sorted[i], p)
		n += k
	}
	return n
}

// need returns the rows of tensor t with bytes in missing pieces of a part, in order.
func (f *object) need(t *placed, part int) (list []span) {
	if t.bytes() == 0 {
		return nil
	}
	row := t.rowBytes()
	for p := int(t.off / f.piece); p <= int((t.off+t.bytes()-1)/f.piece); p++ {
		if f.owners[p] != part || f.made[p] != nil {
			continue
		}
		_, from, to := f.overlap(t, p)
		s := span{a: (from - t.off) / row, b: (to - t.off + row - 1) / row}
		if n := len(list); n > 0 && s.a <= list[n-1].b {
			list[n-1].b = s.b
			continue
		}
		list = append(list, s)
	}
	return list
}

// cells returns the rows of the job that any output needs, cut so that each output needs all rows of a cell or none,
// and that all of them begin in the same piece of its file.
func (j *job) cells() (list []span) {
	var cuts []int64
	for _, t := range j.outputs {
		f, row := t.sink.object, t.rowBytes()
		for _, s := range t.need {
			cuts = append(cuts, s.a, s.b)
			for p := (t.off+s.a*row)/f.piece + 1; ; p++ {
				c := (p*f.piece - t.off + row - 1) / row
				if c >= s.b {
					break
				}
				cuts = append(cuts, c)
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		s := span{a: cuts[i-1], b: cuts[i]}
		if slices.ContainsFunc(j.outputs, func(t *placed) bool { return t.wants(s.a) }) {
			list = append(list, s)
		}
	}
	return list
}

// wants reports whether the row is one that the tensor's missing pieces need. Without a sink all rows are.
func (t *placed) wants(row int64) bool {
	if t.sink == nil {
		return true
	}
	i, _ := slices.BinarySearchFunc(t.need, row, func(s span, row int64) int { return cmp.Compare(s.b, row+1) })
	return i < len(t.need) && t.need[i].a <= row
}

// sink collects the rows of a file in pieces, and sends them.
type sink struct {
	*object
	of     *claimed
	fileNo int
	ctx    context.Context // of the run
	group  *errgroup.Group

	mu   sync.Mutex
	open map[int]*openPiece
	free [][]byte
}

// openPiece is a piece that is not complete yet.
type openPiece struct {
	data   []byte
	left   int64 // bytes of rows that are missing
	counts map[int]tally
}

// writeRows writes rows [s.a, s.b) of a tensor of the file.
func (k *sink) writeRows(t *placed, s span, data []byte) error {
	off := t.off + s.a*t.rowBytes()
	if p := int(off / k.piece); s.tally != (tally{}) && k.missing(p) {
		k.mu.Lock()
		counts := k.opened(p).counts
		n := counts[t.tensorNo]
		counts[t.tensorNo] = tally{n.overflows + s.overflows, n.displaced + s.displaced}
		k.mu.Unlock()
	}
	return k.write(off, data)
}

// missing reports whether this process makes piece p.
func (k *sink) missing(p int) bool {
	return k.owners[p] == k.of.opt.Journal.Part && k.has(p) == nil
}

// has returns piece p if it is made.
func (k *sink) has(p int) *madeData {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	return k.made[p]
}

// opened returns piece p while it is made, with the lock held.
func (k *sink) opened(p int) *openPiece {
	if x := k.open[p]; x != nil {
		return x
	}
	var data []byte
	if n := len(k.free); n > 0 {
		data, k.free = k.free[n-1], k.free[:n-1]
		clear(data)
	} else {
		data = make([]byte, k.piece)
	}
	x := &openPiece{data: data[:k.length(p)], left: k.rowBytes(p), counts: map[int]tally{}}
	if header := k.header(); int64(p)*k.piece < int64(len(header)) {
		copy(x.data, header[int64(p)*k.piece:])
	}
	k.open[p] = x
	return x
}

// write writes bytes of rows, of which some are in pieces that this process makes. With no bytes it makes a piece
// that has no rows.
func (k *sink) write(off int64, data []byte) error {
	for {
		p := int(off / k.piece)
		at := off - int64(p)*k.piece
		n := min(int64(len(data)), k.length(p)-at)
		if k.missing(p) {
			k.mu.Lock()
			x := k.opened(p)
			k.mu.Unlock()
			copy(x.data[at:], data[:n])
			k.mu.Lock()
			x.left -= n
			whole := x.left == 0
			if whole {
				delete(k.open, p)
			}
			k.mu.Unlock()
			if whole {
				k.group.Go(func() error { return k.send(p, x) })
			}
		}
		data, off = data[n:], off+n
		if len(data) == 0 {
			return k.ctx.Err()
		}
	}
}

// send sends a piece, unless the store has it already.
func (k *sink) send(p int, x *openPiece) error {
	m := &madeData{}
	for t, n := range x.counts {
		m.Counts = append(m.Counts, pieceCount{t, n.overflows, n.displaced})
	}
	slices.SortFunc(m.Counts, func(x, y pieceCount) int { return cmp.Compare(x.Tensor, y.Tensor) })
	same := false
	if have := k.have[p]; have != nil {
		m.Piece, same = k.of.store.Same(*have, x.data)
	}
	if !same {
		var err error
		if m.Piece, err = k.of.store.Send(k.ctx, k.path, k.id, p, x.data); err != nil {
			return err
		}
	}
	k.of.mu.Lock()
	k.made[p] = m
	k.of.mu.Unlock()
	k.mu.Lock()
	k.free = append(k.free, x.data[:cap(x.data)])
	k.mu.Unlock()
	return nil
}
