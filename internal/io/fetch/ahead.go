package fetch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"
)

const (
	// pieceBytes is the largest range of one request: long enough that asking costs
	// little, short enough to lose little when a connection breaks off.
	pieceBytes = 4 << 20
	// aheadPieces are requested before they are read, inFlight of them at once.
	aheadPieces = 16
	inFlight    = 8
	// maxMemory bounds the pieces in memory, except those that a reader waits for.
	maxMemory = 40 * pieceBytes
)

// Span is a part of a file.
type Span struct {
	File   *File
	Off, N int64
}

// Set is the files of one model, which are read in an order that is known. Its
// methods may be called by many goroutines at once.
type Set struct {
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	wait   sync.WaitGroup

	mu      sync.Mutex
	byFile  map[*File][]*piece // by offset
	order   []*piece           // as they will be read
	memory  []*piece           // those that have bytes, or are about to
	used    int64              // their size
	clock   int64
	free    [][]byte
	fetched int64 // bytes that came from servers
}

// piece is a range that is fetched at once.
type piece struct {
	file   *File
	off, n int64
	at     int // in Set.order

	data    []byte        // nil: not in memory
	done    chan struct{} // closed when data is complete, or err says why not
	err     error
	readers int
	used    int64 // Set.clock when it was last read, 0 for never
}

// NewSet returns a set that reads until ctx ends or it is closed.
func NewSet(ctx context.Context) *Set {
	s := &Set{slots: make(chan struct{}, inFlight), byFile: map[*File][]*piece{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// Close ends all reading.
func (s *Set) Close() {
	s.cancel()
	s.wait.Wait()
}

// Fetched returns the number of bytes received from servers so far.
func (s *Set) Fetched() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched
}

// Expect sets the spans that will be read next, in their order, in place of earlier ones. Spans overlap only where they
// are equal.
func (s *Set) Expect(spans []Span) {
	var order []*piece
	byFile := map[*File][]*piece{}
	type place struct {
		file *File
		off  int64
	}
	seen := map[place]bool{}
	for _, span := range spans {
		if span.N == 0 || seen[place{span.File, span.Off}] {
			continue
		}
		seen[place{span.File, span.Off}] = true
		if n := len(order); n > 0 { // small tensors come together
			last := order[n-1]
			if last.file == span.File && last.off+last.n == span.Off && last.n+span.N <= pieceBytes {
				last.n += span.N
				continue
			}
		}
		for off := span.Off; off < span.Off+span.N; off += pieceBytes {
			order = append(order, &piece{file: span.File, off: off, n: min(pieceBytes, span.Off+span.N-off)})
		}
	}
	for i, p := range order {
		p.at = i
		byFile[p.file] = append(byFile[p.file], p)
	}
	for _, list := range byFile {
		slices.SortFunc(list, func(a, b *piece) int { return cmp.Compare(a.off, b.off) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order, s.byFile, s.memory, s.used = order, byFile, nil, 0 // pieces that are still read free themselves
}

// Reader returns a part of a file, which is read through the set.
func (s *Set) Reader(f *File, off, n int64) io.ReaderAt { return &reader{s, f, off, n} }

type reader struct {
	set    *Set
	file   *File
	off, n int64
}

func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("%s: byte %d is asked for", r.file.name, off)
	}
	want := max(0, min(int64(len(p)), r.n-off))
	if err := r.set.read(r.file, p[:want], r.off+off); err != nil {
		return 0, err
	}
	if want < int64(len(p)) {
		return int(want), io.EOF
	}
	return int(want), nil
}

// read fills p.
func (s *Set) read(f *File, p []byte, off int64) error {
	for len(p) > 0 {
		piece, until := s.find(f, off)
		if piece == nil { // not among the expected spans
			n := min(int64(len(p)), until-off, pieceBytes)
			if err := s.fetch(f, p[:n], off); err != nil {
				return err
			}
			p, off = p[n:], off+n
			continue
		}
		data, err := s.take(piece)
		if err != nil {
			return err
		}
		n := copy(p, data[off-piece.off:])
		s.release(piece)
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// find returns the piece at off, or nil and where the next one begins.
func (s *Set) find(f *File, off int64) (p *piece, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.byFile[f]
	i := sort.Search(len(list), func(i int) bool { return list[i].off+list[i].n > off })
	switch {
	case i == len(list):
		return nil, f.Size
	case list[i].off > off:
		return nil, list[i].off
	}
	return list[i], 0
}

// take returns the bytes of a piece, which stay until release, and asks for those
// that come after it.
func (s *Set) take(p *piece) ([]byte, error) {
	s.mu.Lock()
	p.readers++
	s.clock++
	p.used = s.clock
	s.start(p, true)
	if s.isCurrent(p) {
		for _, next := range s.order[p.at+1 : min(len(s.order), p.at+1+aheadPieces)] {
			s.start(next, false)
		}
	}
	done := p.done
	s.mu.Unlock()
	select {
	case <-done:
	case <-s.ctx.Done():
		s.release(p)
		return nil, s.ctx.Err()
	}
	if p.err != nil { // written before done was closed
		err := p.err
		s.release(p)
		return nil, err
	}
	return p.data, nil
}

// isCurrent reports whether p belongs to the spans of the last Expect.
func (s *Set) isCurrent(p *piece) bool { return p.at < len(s.order) && s.order[p.at] == p }

// release ends a take.
func (s *Set) release(p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.readers--; p.readers == 0 && p.err != nil {
		s.forget(p) // the next one tries again
	}
}

// forget takes a piece out of memory. The caller holds mu.
func (s *Set) forget(p *piece) {
	if i := slices.Index(s.memory, p); i >= 0 {
		s.memory = slices.Delete(s.memory, i, i+1)
		s.used -= p.n
	}
	if cap(p.data) == pieceBytes && len(s.free) < aheadPieces {
		s.free = append(s.free, p.data[:0])
	}
	p.data, p.done, p.err, p.used = nil, nil, nil, 0
}

// start fetches a piece that is not in memory, unless no reader waits for it and memory is full of such pieces. The
// caller holds mu.
func (s *Set) start(p *piece, wanted bool) {
	if p.done != nil || s.ctx.Err() != nil {
		if p.done == nil {
			p.done = make(chan struct{})
			p.err = s.ctx.Err()
			close(p.done)
		}
		return
	}
	for s.used+p.n > maxMemory {
		var oldest *piece
		for _, c := range s.memory {
			if c.readers == 0 && c.used > 0 && finished(c) && (oldest == nil || c.used < oldest.used) {
				oldest = c
			}
		}
		if oldest == nil {
			if wanted {
				break
			}
			return
		}
		s.forget(oldest)
	}
	if n := len(s.free); n > 0 {
		p.data, s.free = s.free[n-1][:p.n], s.free[:n-1]
	} else {
		p.data = make([]byte, p.n, pieceBytes)
	}
	done := make(chan struct{})
	p.done, p.err = done, nil
	s.memory = append(s.memory, p)
	s.used += p.n
	s.wait.Add(1)
	go func() {
		defer s.wait.Done()
		err := s.fetch(p.file, p.data, p.off)
		s.mu.Lock()
		p.err = err
		close(done)
		if err != nil && p.readers == 0 {
			s.forget(p)
		}
		s.mu.Unlock()
	}()
}

func finished(p *piece) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// fetch fills p from the disk, where it was kept, or from the server.
func (s *Set) fetch(f *File, p []byte, off int64) error {
	n := 0
	if f.kept != nil {
		n = f.kept.read(p, off)
	}
	if n == len(p) {
		return nil
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	err := f.read(s.ctx, p[n:], off+int64(n))
	<-s.slots
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.fetched += int64(len(p) - n)
	s.mu.Unlock()
	if f.kept != nil {
		return f.kept.add(p[n:], off+int64(n))
	}
	return nil
}
