package writer

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// memoryStore is a store in memory. It counts what is sent, and can be killed.
type memoryStore struct {
	mu       sync.Mutex
	small    map[string]smallEntry
	objects  map[string][]byte
	marks    map[string]string
	uploads  map[string]map[int][]byte
	sent     map[string]int // by upload, piece
	n        int
	anything bool // the store ignores conditions
}

type smallEntry struct {
	data []byte
	at   time.Time
}

func newMemoryStore() *memoryStore {
	return &memoryStore{small: map[string]smallEntry{}, objects: map[string][]byte{}, marks: map[string]string{},
		uploads: map[string]map[int][]byte{}, sent: map[string]int{}}
}

// process is the store as a process sees it, until it is killed.
type process struct {
	*memoryStore
	left *int // operations before the kill, nil for no kill
}

var errKilled = errors.New("killed")

// step takes the lock. before is true if the process is killed before its operation is done, after if it is killed
// after.
func (p process) step() (err error) {
	p.mu.Lock()
	if p.left == nil {
		return nil
	}
	if *p.left--; *p.left < 0 {
		return errKilled
	}
	return nil
}

func (p process) Name(path string) string { return "store://" + filepath.Base(path) }

func (p process) Mark(_ context.Context, path string) (string, bool, error) {
	defer p.mu.Unlock()
	err := p.step()
	_, ok := p.objects[path]
	return p.marks[path], ok, err
}

func (p process) Create(_ context.Context, name string, data []byte) (bool, error) {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return false, err
	}
	if _, ok := p.small[name]; ok && !p.anything {
		return false, nil
	}
	p.small[name] = smallEntry{bytes.Clone(data), time.Now()}
	return true, nil
}

func (p process) Put(_ context.Context, name string, data []byte) error {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	p.small[name] = smallEntry{bytes.Clone(data), time.Now()}
	return nil
}

func (p process) Get(_ context.Context, name string) ([]byte, time.Duration, error) {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return nil, 0, err
	}
	e, ok := p.small[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return bytes.Clone(e.data), time.Since(e.at), nil
}

func (p process) List(_ context.Context, prefix string, _ int) (list []string, err error) {
	defer p.mu.Unlock()
	err = p.step()
	for name := range p.small {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			list = append(list, rest)
		}
	}
	return list, err
}

func (p process) Remove(_ context.Context, name string) error {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	delete(p.small, name)
	return nil
}

func (p process) Begin(_ context.Context, path, mark string) (string, error) {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return "", err
	}
	p.n++
	id := fmt.Sprintf("%s#%d", path, p.n)
	p.uploads[id], p.marks[id] = map[int][]byte{}, mark
	return id, nil
}

func (p process) Abort(_ context.Context, _, id string) error {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	delete(p.uploads, id)
	return nil
}

func pieceOf(n int, data []byte) Piece {
	sum := md5.Sum(data)
	tag := hex.EncodeToString(sum[:])
	return Piece{Number: n, Bytes: int64(len(data)), Tag: tag, MD5: tag}
}

func (p process) Pieces(_ context.Context, path, id string, from, to int) (list []Piece, err error) {
	defer p.mu.Unlock()
	err = p.step()
	u, ok := p.uploads[id]
	if !ok && err == nil {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	for n, data := range u {
		if n >= from && n < to {
			list = append(list, pieceOf(n, data))
		}
	}
	return list, err
}

func (p process) Send(_ context.Context, path, id string, n int, data []byte) (Piece, error) {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return Piece{}, err
	}
	u, ok := p.uploads[id]
	if !ok {
		return Piece{}, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	p.sent[fmt.Sprint(id, n)]++
	u[n] = bytes.Clone(data)
	return pieceOf(n, data), nil
}

func (p process) Same(x Piece, data []byte) (Piece, bool) { return x, x.is(pieceOf(x.Number, data)) }

func (p process) Complete(_ context.Context, path, id string, size int64, pieces []Piece, force bool) error {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	u, ok := p.uploads[id]
	if !ok {
		return fs.ErrNotExist
	}
	if _, ok := p.objects[path]; ok && !force {
		return fs.ErrExist
	}
	var all []byte
	for n, x := range pieces {
		if !x.is(pieceOf(n, u[n])) {
			return fmt.Errorf("piece %d is another one", n)
		}
		all = append(all, u[n]...)
	}
	if int64(len(all)) != size {
		return fmt.Errorf("%d bytes, want %d", len(all), size)
	}
	p.objects[path], p.marks[path] = all, p.marks[id]
	delete(p.uploads, id)
	return nil
}

func (p process) Sweep(_ context.Context, path string) error {
	defer p.mu.Unlock()
	if err := p.step(); err != nil {
		return err
	}
	maps.DeleteFunc(p.uploads, func(id string, _ map[int][]byte) bool { return strings.HasPrefix(id, path+"#") })
	return nil
}

// storedModels returns files of several tensors, of three outputs, one of them in shards.
func storedModels(t testing.TB, dir string) [][]*File {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var tensors []Tensor
	for i := range 9 {
		ne := []int64{256, 1 + int64(i*i), 1}
		if i%4 == 3 {
			ne = []int64{32 * int64(i)}
		}
		x := make([]float32, gguf.Rows(ne)*ne[0])
		for k := range x {
			x[k] = random.Float32() - 0.5
		}
		source := rows.Compute(ne, func(dst []float32, row int64) { copy(dst, x[row*ne[0]:]) })
		tensors = append(tensors, Tensor{Name: fmt.Sprint("t", i), Type: gguf.TypeF32, Source: source})
	}
	as := func(types ...gguf.Type) (list []Tensor) {
		for i, x := range tensors {
			x.Type = types[i%len(types)]
			list = append(list, x)
		}
		return list
	}
	meta := func(n int) gguf.Metadata {
		return gguf.Metadata{{Key: "general.name", Value: gguf.String(strings.Repeat("long ", n))}}
	}
	half := as(gguf.TypeF16)
	return [][]*File{
		{{Path: filepath.Join(dir, "a.gguf"), Metadata: meta(1500), Tensors: as(gguf.TypeF32, gguf.TypeQ8_0)}},
		{{Path: filepath.Join(dir, "b-1.gguf"), Metadata: meta(3), Tensors: half[:4]},
			{Path: filepath.Join(dir, "b-2.gguf"), Metadata: meta(1), Tensors: half[4:], BigEndian: true}},
		{{Path: filepath.Join(dir, "c.gguf"), Metadata: meta(9), Tensors: as(gguf.TypeQ8_0, gguf.TypeQ8_0, gguf.TypeF16)}},
	}
}

// shortLease makes leases, and pieces, short while a test runs.
func shortLease(t *testing.T, piece int64, time time.Duration) {
	old, oldBeat, oldLeast := lease, beat, least
	lease, beat, least = time, time/4, piece
	t.Cleanup(func() { lease, beat, least = old, oldBeat, oldLeast })
}

// TestObjects kills processes of parts at random operations: the objects have the bytes of the files that one process
// writes, and no piece that the store has confirmed is sent again.
func TestObjects(t *testing.T) {
	dir := t.TempDir()
	if _, err := WriteSets(t.Context(), storedModels(t, dir), Options{}); err != nil {
		t.Fatal(err)
	}
	virtual := filepath.Join(dir, "objects")
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		shortLease(t, []int64{512, 4096, 5000}[seed%3], time.Millisecond)
		store, kills, parts := newMemoryStore(), 0, 1+int(seed%5)
		run := func(part int, left *int) error {
			j := &Journal{Facts: []Fact{{"x", "1"}}, Part: part, Store: process{store, left}}
			if j.Finish = part == 0; !j.Finish {
				j.Parts = parts
			}
			_, err := WriteSets(t.Context(), storedModels(t, virtual), Options{Journal: j, Workers: 1 + int(seed%3)})
			return err
		}
		for k := 1; k <= parts; k++ {
			for {
				var left *int
				if kills < 20 {
					left = new(random.IntN(40))
				}
				err := run(k, left)
				if err == nil {
					break
				}
				if !errors.Is(err, errKilled) {
					t.Fatalf("seed %d, part %d: %v", seed, k, err)
				}
				kills++
				sums := fmt.Sprintf("%s.partial/%d-of-%d.done", filepath.Join(virtual, "a.gguf"), k, parts)
				if _, done := store.small[sums]; done {
					continue
				}
				if err := run(0, nil); !errors.Is(err, fault.Incomplete) {
					t.Fatalf("seed %d: finish before the parts are complete: %v", seed, err)
				}
			}
		}
		for left := random.IntN(8); ; left += 3 {
			n := left
			if err := run(0, &n); err == nil {
				break
			} else if !errors.Is(err, errKilled) {
				t.Fatalf("seed %d: finish: %v", seed, err)
			}
			if err := run(1+n%parts, nil); err != nil {
				t.Fatalf("seed %d: a part between a killed finish and the next: %v", seed, err)
			}
		}
		if err := run(0, nil); err != nil {
			t.Errorf("seed %d: a second finish: %v", seed, err)
		}
		if err := run(1, nil); err != nil {
			t.Errorf("seed %d: a part after the end: %v", seed, err)
		}
		for _, name := range []string{"a.gguf", "b-1.gguf", "b-2.gguf", "c.gguf"} {
			want, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(store.objects[filepath.Join(virtual, name)], want) {
				t.Fatalf("seed %d: %s differs from the file that one process writes: %v", seed, name, err)
			}
		}
		for name, n := range store.sent {
			if n > 1 {
				t.Errorf("seed %d: piece %s was sent %d times", seed, name, n)
			}
		}
		if len(store.small)+len(store.uploads) > 0 {
			t.Errorf("seed %d: left: %v, %d uploads", seed, store.small, len(store.uploads))
		}
	}
	if _, err := os.Stat(virtual); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part has made files: %v", err)
	}
}

// TestObjectsTogether runs several processes of each part at once, of which those that are second give up or compare.
func TestObjectsTogether(t *testing.T) {
	dir := t.TempDir()
	if _, err := WriteSets(t.Context(), storedModels(t, dir), Options{}); err != nil {
		t.Fatal(err)
	}
	shortLease(t, 1024, 400*time.Millisecond)
	store := newMemoryStore()
	var wait sync.WaitGroup
	results := make([][]*Result, 9)
	for i := range results {
		wait.Go(func() {
			for {
				var err error
				j := &Journal{Part: i%3 + 1, Parts: 3, Store: process{store, nil}}
				results[i], err = WriteSets(t.Context(), storedModels(t, "o"), Options{Journal: j})
				if err == nil {
					return
				}
				if fault.Has(err) {
					t.Errorf("part %d: %v", j.Part, err)
					return
				}
			}
		})
	}
	wait.Wait()
	results0, err := WriteSets(t.Context(), storedModels(t, "o"),
		Options{Journal: &Journal{Finish: true, Store: process{store, nil}}})
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i := range 3 {
		for _, r := range results[i] {
			total += r.DataBytes
		}
	}
	want := int64(0)
	for _, r := range results0 {
		want += r.Bytes
	}
	if total != want {
		t.Errorf("the parts have %d bytes, want %d", total, want)
	}
	for _, name := range []string{"a.gguf", "b-1.gguf", "b-2.gguf", "c.gguf"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(store.objects[filepath.Join("o", name)], want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	for name, n := range store.sent {
		if n > 1 {
			t.Errorf("piece %s was sent %d times", name, n)
		}
	}
	if len(store.uploads) > 0 {
		t.Errorf("uploads are left: %d", len(store.uploads))
	}
}

// meanwhile is a store where other processes finish a run while this one asks for sums or pieces.
type meanwhile struct {
	process
	at     int // this question, from 0
	finish func()
}

func (s *meanwhile) ask() {
	if s.at--; s.at == -1 {
		s.finish()
	}
}

func (s *meanwhile) Get(ctx context.Context, name string) ([]byte, time.Duration, error) {
	s.ask()
	return s.process.Get(ctx, name)
}

func (s *meanwhile) Pieces(ctx context.Context, path, id string, from, to int) ([]Piece, error) {
	s.ask()
	return s.process.Pieces(ctx, path, id, from, to)
}

// TestObjectsFinished runs a part that is done while others finish the run, and are killed: it is done, whatever is made
// of objects by then.
func TestObjectsFinished(t *testing.T) {
	shortLease(t, 1024, time.Millisecond)
	write := func(j *Journal) error {
		_, err := WriteSets(t.Context(), storedModels(t, "o"), Options{Journal: j})
		return err
	}
	for at := range 6 {
		for n := range 30 {
			store := newMemoryStore()
			for k := 1; k <= 2; k++ {
				if err := write(&Journal{Part: k, Parts: 2, Store: process{store, nil}}); err != nil {
					t.Fatal(err)
				}
			}
			sent := len(store.sent)
			err := write(&Journal{Part: 2, Parts: 2, Store: &meanwhile{process{store, nil}, at, func() {
				left := n
				if err := write(&Journal{Finish: true, Store: process{store, &left}}); err != nil && !errors.Is(err, errKilled) {
					t.Error(err)
				}
			}}})
			if err != nil {
				t.Errorf("question %d, a finish of %d operations: %v", at, n, err)
			}
			if err := write(&Journal{Finish: true, Store: process{store, nil}}); err != nil {
				t.Errorf("question %d, a finish of %d operations: the next: %v", at, n, err)
			}
			if len(store.sent) != sent || len(store.uploads) > 0 || len(store.small) > 0 {
				t.Errorf("question %d, a finish of %d operations: %d pieces were sent again; left: %d uploads, %v", at, n,
					len(store.sent)-sent, len(store.uploads), slices.Collect(maps.Keys(store.small)))
			}
		}
	}
}

// TestObjectsRefused checks errors: other facts, objects of other runs, stores without conditions, dropped uploads.
func TestObjectsRefused(t *testing.T) {
	shortLease(t, 1024, time.Millisecond)
	run := func(store *memoryStore, facts string, part, parts int, force bool) error {
		j := &Journal{Facts: []Fact{{"x", facts}}, Part: part, Parts: parts, Finish: part == 0, Store: process{store, nil}}
		_, err := WriteSets(t.Context(), storedModels(t, "o"), Options{Journal: j, Force: force})
		return err
	}
	want := func(err, kind error, text string) {
		t.Helper()
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: want %v, %q", err, kind, text)
		}
	}
	s := newMemoryStore()
	want(run(s, "1", 0, 0, false), fault.Incomplete, "no part has begun")
	if err := run(s, "1", 1, 2, false); err != nil {
		t.Fatal(err)
	}
	want(run(s, "2", 2, 2, false), fault.Refused, "x was 1, and is 2")
	want(run(s, "1", 3, 3, false), fault.Refused, "run of 2 parts, want 3")
	want(run(s, "1", 0, 0, false), fault.Incomplete, "run them again: 2")
	for name, e := range s.small {
		if strings.HasSuffix(name, ".done") {
			e.data[len(e.data)-2]++
			s.small[name] = e
		}
	}
	want(run(s, "1", 0, 0, false), fault.Broken, "its SHA-256")
	clear(s.uploads)
	want(run(s, "1", 2, 2, false), fault.Refused, "dropped an upload")
	s = newMemoryStore()
	s.anything = true
	want(run(s, "1", 1, 2, false), fault.Unsupported, "If-None-Match")
	if len(s.small)+len(s.uploads) > 0 {
		t.Error("a run in a store without conditions leaves something")
	}
	s = newMemoryStore()
	s.objects[filepath.Join("o", "a.gguf")] = []byte("old")
	want(run(s, "1", 1, 1, false), fs.ErrExist, "belongs to another run")
	if err := errors.Join(run(s, "1", 1, 1, true), run(s, "1", 0, 0, true), run(s, "1", 1, 1, false)); err != nil {
		t.Error(err)
	}
	// another process sends other bytes
	s = newMemoryStore()
	if err := run(s, "1", 1, 1, false); err != nil {
		t.Fatal(err)
	}
	for _, u := range s.uploads {
		u[0][0]++
	}
	want(run(s, "1", 0, 0, false), fault.Incomplete, "run them again: 1")
	if err := errors.Join(run(s, "1", 1, 1, false), run(s, "1", 0, 0, false)); err != nil {
		t.Error(err)
	}
	_, _, ok := StoredRun("k/a.gguf.partial/12-of-16.3")
	if path, run, no := StoredRun("k/a.gguf.partial/12-of-16.x"); !ok || no || path != "k/a.gguf" ||
		run != "k/a.gguf.partial/run" || slices.Contains([]string{path}, "") {
		t.Error(path, run, ok, no)
	}
}

// FuzzSmallObject reads any bytes as each kind of small object: what is accepted fits the layout.
func FuzzSmallObject(f *testing.F) {
	o := &objects{opt: Options{Journal: &Journal{Part: 1, Parts: 2}}, store: process{newMemoryStore(), nil}}
	for _, set := range storedModels(f, "o") {
		for _, file := range set {
			o.files = append(o.files, &object{layout: file.layout(), id: file.Path})
		}
	}
	o.run.Parts = 2
	var tensors []*placed
	for _, file := range o.files {
		tensors = append(tensors, file.tensors...)
	}
	o.pool = &pool{jobs: jobsOf(tensors)}
	o.divide()
	first := madeData{Piece: Piece{Number: 0, Bytes: o.files[0].length(0)}}
	c := claim{Owner: "x", Uploads: o.ids(), Files: [][]madeData{{first}, {}, {}, {}}}
	f.Add(smallObject(c))
	f.Add(smallObject(storedRun{Head: "x", Parts: 2, Files: []storedFile{{"a", 1, 2, "3"}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, text := range [][]byte{data, fmt.Appendf(nil, "%s%x\n%s", smallMagic, sha256.Sum256(data), data)} {
			var run storedRun
			if err := parseSmall("x", text, &run); err != nil && !errors.Is(err, fault.Broken) {
				t.Error(err)
			}
			var c claim
			if err := parseSmall("x", text, &c); err == nil && o.fits(&c, 1) {
				o.adopt(&c, 1)
			}
		}
	})
}

// stopping is a store that ends a run when it has sent so many pieces.
type stopping struct {
	process
	left atomic.Int64
	stop func()
}

func (s *stopping) Send(ctx context.Context, path, id string, n int, data []byte) (Piece, error) {
	if s.left.Add(-1) <= 0 { // a later one, too: this one may wait for a processor before it stops the run
		s.stop()
	}
	if err := ctx.Err(); err != nil {
		return Piece{}, err
	}
	return s.process.Send(ctx, path, id, n, data)
}

// TestObjectsReleased interrupts a part: the next process of it does not wait for the lease, and sends the rest. A
// second process of a part that is being made waits, and gives up.
func TestObjectsReleased(t *testing.T) {
	shortLease(t, 1024, time.Minute)
	store := newMemoryStore()
	run := func(ctx context.Context, s Store) error {
		_, err := WriteSets(ctx, storedModels(t, "o"), Options{Workers: 2, Journal: &Journal{Part: 1, Parts: 1, Store: s}})
		return err
	}
	begun := time.Now()
	for range 3 {
		ctx, stop := context.WithCancelCause(t.Context())
		s := &stopping{process: process{store, nil}, stop: func() { stop(ErrTerminated) }}
		s.left.Store(9)
		if err := run(ctx, s); !errors.Is(err, context.Canceled) || !Resumable(err) {
			t.Fatal(err)
		}
		stop(nil)
	}
	if err := run(t.Context(), process{store, nil}); err != nil || time.Since(begun) > lease/2 {
		t.Fatalf("%v, after %v", err, time.Since(begun))
	}
	for name, n := range store.sent {
		if n > 1 {
			t.Errorf("piece %s was sent %d times", name, n)
		}
	}
	shortLease(t, 1024, 200*time.Millisecond)
	store = newMemoryStore()
	first := make(chan struct{})
	slow := &slowStore{process: process{store, nil}, begun: sync.OnceFunc(func() { close(first) })}
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := run(t.Context(), slow); err != nil {
			t.Error(err)
		}
	})
	<-first
	if err := run(t.Context(), process{store, nil}); err == nil || fault.Has(err) ||
		!strings.Contains(err.Error(), "another process makes part 1 of 1") {
		t.Errorf("a second process: %v", err)
	}
	wait.Wait()
}

// slowStore takes its time for each piece.
type slowStore struct {
	process
	begun func()
}

func (s *slowStore) Send(ctx context.Context, path, id string, n int, data []byte) (Piece, error) {
	s.begun()
	time.Sleep(30 * time.Millisecond)
	return s.process.Send(ctx, path, id, n, data)
}

// TestPieceBytes checks that the pieces of every file are within the limits of S3.
func TestPieceBytes(t *testing.T) {
	for _, c := range []struct {
		size  int64
		parts int
		want  int64
	}{
		{1, 1, 5 << 20}, {100 << 20, 1, 13 << 20}, {100 << 20, 16, 5 << 20}, {100 << 30, 16, 16 << 20},
		{620e9, 256, 60 << 20}, {2e12, 256, 191 << 20}, {5 << 40, 1, 525 << 20},
	} {
		p := PieceBytes(c.size, c.parts)
		if n := (c.size + p - 1) / p; p != c.want || n > mostPieces {
			t.Errorf("%d bytes, %d parts: pieces of %d, want %d; %d pieces", c.size, c.parts, p, c.want, n)
		}
	}
}
