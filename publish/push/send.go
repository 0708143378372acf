package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"ggforge/internal/io/disk"
	"ggforge/internal/io/hub"
)

const (
	// groupBytes bounds the objects that the hub is asked about at once, so that their addresses, which hold for a
	// quarter of an hour if an object is sent at once, are used soon, and are few in memory.
	groupBytes = 100_000_000_000
	// begun is how often an object is sent from its beginning.
	begun = 5
)

// sender sends the large files of a push.
type sender struct {
	*toRepository
	slots chan struct{} // one for each part that is being sent

	mu          sync.Mutex
	done, total int64 // bytes
}

// object is a content to send: that of one file or several.
type object struct {
	hub.Object
	file  *file
	names []string // all files of that content
	group *group
	of    string // for the state

	grant *hub.Grant // what is known at the beginning, from the state
	tags  []string
	moved bool // this run has sent some of it
}

// group is objects that the hub is asked about together, when the first of them is to be sent.
type group struct {
	mu      sync.Mutex
	objects []*object
	grants  map[string]*hub.Grant // nil before
}

// send sends files that are to be objects and that the store does not have.
func (r *toRepository) send(ctx context.Context, todo []*file) error {
	s := &sender{toRepository: r, slots: make(chan struct{}, r.opt.Parallel)}
	var list []*object
	bySum := map[string]*object{}
	last := &group{}
	size := int64(0)
	for _, f := range todo {
		if !r.modes[f.Name].LFS || r.stored[f.SHA256] {
			continue
		}
		if o := bySum[f.SHA256]; o != nil {
			o.names = append(o.names, f.Name)
			continue
		}
		o := &object{Object: hub.Object{SHA256: f.SHA256, Size: f.Bytes}, file: f, names: []string{f.Name},
			of: fmt.Sprintf("%s %s %s %d", r.opt.Endpoint, r.repo, f.SHA256, f.Bytes)}
		bySum[f.SHA256] = o
		list = append(list, o)
		s.total += f.Bytes
		if g, tags, ok := r.state.grant(o.of, o.Object, r.c.Secure()); ok {
			o.grant, o.tags = g, tags
			for n, tag := range tags {
				if tag != "" {
					_, bytes := g.Span(n)
					s.total -= bytes
				}
			}
			continue
		}
		if size += f.Bytes; len(last.objects) == hub.MaxObjects || size > groupBytes && len(last.objects) > 0 {
			last, size = &group{}, f.Bytes
		}
		o.group = last
		last.objects = append(last.objects, o)
	}
	if len(list) == 0 {
		return nil
	}
	files, inner := errgroup.WithContext(ctx)
	files.SetLimit(r.opt.Parallel)
	for _, o := range list {
		if inner.Err() != nil {
			break
		}
		files.Go(func() error { return s.object(inner, o) })
	}
	if err := files.Wait(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range list {
		r.stored[o.SHA256] = true
	}
	r.progress(Progress{Part: "send", Done: max(1, s.total), Total: max(1, s.total)})
	return nil
}

// add adds bytes to what is done.
func (s *sender) add(n int64) {
	s.mu.Lock()
	s.done += n
	now := Progress{Part: "send", Done: max(0, min(s.done, s.total-1)), Total: max(1, s.total)}
	s.mu.Unlock()
	s.progress(now)
}

// permission returns the permission to send an object: the first time from the answer about its group.
func (s *sender) permission(ctx context.Context, o *object) (*hub.Grant, error) {
	g := o.group
	if g == nil {
		g = &group{objects: []*object{o}}
	}
	o.group = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grants == nil {
		branch := s.to
		if s.opens {
			branch = ""
		}
		var list []hub.Object
		for _, o := range g.objects {
			list = append(list, o.Object)
		}
		grants, err := s.c.Batch(ctx, s.repo, branch, list)
		if err != nil {
			return nil, explained(err)
		}
		g.grants = map[string]*hub.Grant{}
		for i := range grants {
			g.grants[grants[i].SHA256] = &grants[i]
		}
	}
	grant := g.grants[o.SHA256]
	delete(g.grants, o.SHA256)
	return grant, nil
}

// object sends an object unless the store has it.
func (s *sender) object(ctx context.Context, o *object) error {
	for try := 1; ; try++ {
		g, tags := o.grant, o.tags
		o.grant, o.tags = nil, nil
		if g == nil {
			var err error
			if g, err = s.permission(ctx, o); err != nil {
				return err
			}
			if g.There {
				return s.there(o)
			}
			tags = make([]string, len(g.Parts))
			if len(g.Parts) > 0 {
				if err := s.state.keepGrant(o.of, g); err != nil {
					return err
				}
			}
		}
		before := int64(0) // sent under this permission by this run
		err := s.parts(ctx, o, g, tags, &before)
		if err == nil {
			err = s.c.Finish(ctx, s.repo, g, tags)
		}
		if err == nil {
			s.state.forget(o.of)
			s.mark(o, Sent)
			return o.file.stamp.Check()
		}
		if !errors.Is(err, hub.ErrGone) {
			return fmt.Errorf("%s: %w", o.file.Name, err)
		}
		s.state.forget(o.of)
		if err := s.stillSame(ctx, o, try); err != nil {
			return err
		}
		if try == begun {
			return fmt.Errorf("%s: %w (begun %d times)", o.file.Name, err, begun)
		}
		s.opt.Note(fmt.Sprintf("%s: %v: asking for another", o.file.Name, err))
		s.mu.Lock()
		s.done -= before
		if g.Put == "" {
			s.total += o.Size - (s.remaining(g, tags) + before) // parts of an earlier run are to be sent, too
		}
		s.mu.Unlock()
	}
}

// remaining returns the bytes of parts without tags.
func (s *sender) remaining(g *hub.Grant, tags []string) (n int64) {
	for i, tag := range tags {
		if tag == "" {
			_, bytes := g.Span(i)
			n += bytes
		}
	}
	return n
}

// stillSame returns an error if a file is not what was announced to the store, which would refuse it again and again.
func (s *sender) stillSame(ctx context.Context, o *object, try int) error {
	if try == 1 {
		return o.file.stamp.Check()
	}
	now := *o.file
	if err := now.read(ctx, func(int64) {}); err != nil {
		return err
	}
	if now.SHA256 != o.SHA256 {
		return o.file.changed()
	}
	return nil
}

// there notes that the store has an object.
func (s *sender) there(o *object) error {
	state := Stored
	if o.moved {
		state = Sent // the answer to its last request was lost
	}
	s.mu.Lock()
	s.total -= o.Size
	s.mu.Unlock()
	s.mark(o, state)
	s.add(0)
	return nil
}

// mark sets the state of the files of an object.
func (s *sender) mark(o *object, state State) {
	for _, name := range o.names {
		s.Push.mark(name, state)
	}
}

// parts sends the parts of an object that have no tag, and sets their tags. sent becomes the number of bytes of those.
func (s *sender) parts(ctx context.Context, o *object, g *hub.Grant, tags []string, sent *int64) error {
	in, err := o.file.open()
	if err != nil {
		return err
	}
	defer in.Close()
	if g.Put != "" {
		if err := s.slot(ctx); err != nil {
			return err
		}
		defer s.free()
		from := &section{s: s, in: in, o: o, size: o.Size}
		_, err := s.c.Put(ctx, o.file.Name, g.Put, o.Size, from.reader)
		from.end(err, sent)
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	for n := range g.Parts {
		if tags[n] != "" {
			continue
		}
		if s.slot(inner) != nil {
			break
		}
		group.Go(func() error {
			defer s.free()
			off, size := g.Span(n)
			from := &section{s: s, in: in, o: o, off: off, size: size}
			what := fmt.Sprintf("part %d of %d", n+1, len(g.Parts))
			tag, err := s.c.PutPart(inner, what, g.Parts[n], size, from.reader)
			from.end(err, sent)
			if err != nil {
				return err
			}
			tags[n] = tag
			return s.state.keepTag(o.of, n, tag)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// slot waits until a part may be sent.
func (s *sender) slot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sender) free() { <-s.slots }

// section is a part of a file that is sent, perhaps several times.
type section struct {
	s         *sender
	in        *disk.File
	o         *object
	off, size int64

	mu  sync.Mutex
	now *sectionReader
}

// reader returns the part from its beginning. Readers before no longer count.
func (x *section) reader() io.Reader {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now != nil {
		x.s.add(-x.now.n)
	}
	x.now = &sectionReader{section: x, r: io.NewSectionReader(x.in, x.off, x.size)}
	return x.now
}

// end ends the sending of a part.
func (x *section) end(err error, sent *int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now == nil {
		return
	}
	n := x.now.n
	x.now = nil
	if err != nil {
		x.s.add(-n)
		return
	}
	x.s.mu.Lock()
	*sent += n
	x.s.result.Sent += n
	x.o.moved = true
	x.s.mu.Unlock()
}

// sectionReader is one reading of a section.
type sectionReader struct {
	*section
	r *io.SectionReader
	n int64
}

func (x *sectionReader) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.now != x {
		return n, err
	}
	if x.n += int64(n); n > 0 {
		x.s.add(int64(n))
	}
	if err == io.EOF && x.n < x.size {
		err = x.o.file.changed()
	}
	return n, err
}
