package faulttest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"ggforge/internal/io/disk"
)

// errDead is the error of calls after the end of a process. Only its files are still closed, and errors of that have no
// effect.
var errDead = errors.New("the process is dead")

// kind is a way to fail. Calls to which it does not apply are made as usual.
type kind struct {
	name string
	// hit is called for the call that fails, and for all calls after it.
	hit func(in *injector, first bool, c disk.Call, do func(int) (int, error)) (int, error)
	// applies reports whether a call can fail in this way.
	applies func(op string) bool
	// harmless: the run has to succeed.
	harmless bool
	// dies: nothing is cleaned up.
	dies bool
	// rots: bytes change without an error; for runs that read back what they have written.
	rots bool
}

func bytesOnly(op string) bool { return op == disk.OpRead || op == disk.OpWrite }

func grows(op string) bool {
	return op == disk.OpWrite || op == disk.OpReserve || op == disk.OpTruncate || op == disk.OpOpen ||
		op == disk.OpMkdir || op == disk.OpLink || op == disk.OpRename
}

func changes(op string) bool {
	return grows(op) || op == disk.OpRemove || op == disk.OpSync || op == disk.OpCopy
}

func every(string) bool { return true }

// pathError returns err in the form of the system's errors.
func pathError(c disk.Call, err error) error { return &fs.PathError{Op: c.Op, Path: c.Path, Err: err} }

func once(f func(in *injector, c disk.Call, do func(int) (int, error)) (int, error)) func(*injector, bool, disk.Call,
	func(int) (int, error)) (int, error) {
	return func(in *injector, first bool, c disk.Call, do func(int) (int, error)) (int, error) {
		if !first {
			return do(c.N)
		}
		return f(in, c, do)
	}
}

var kinds = []kind{
	{name: "error", applies: every, hit: once(func(_ *injector, c disk.Call, _ func(int) (int, error)) (int, error) {
		return 0, pathError(c, syscall.EIO)
	})},
	{name: "done, then an error", applies: changes,
		hit: once(func(_ *injector, c disk.Call, do func(int) (int, error)) (int, error) {
			n, err := do(c.N)
			if err == nil {
				err = pathError(c, syscall.EIO)
			}
			return n, err
		})},
	{name: "short", applies: bytesOnly, hit: once(func(_ *injector, c disk.Call,
		do func(int) (int, error)) (int, error) {
		n, err := do(c.N / 2)
		switch {
		case err != nil:
		case c.Op == disk.OpWrite:
			err = pathError(c, syscall.ENOSPC)
		case c.Off >= 0 && n < c.N:
			err = io.EOF
		}
		return n, err
	})},
	{name: "half a read, then an error", applies: func(op string) bool { return op == disk.OpRead },
		hit: once(func(_ *injector, c disk.Call, do func(int) (int, error)) (int, error) {
			n, err := do(c.N / 2)
			if err == nil {
				err = pathError(c, syscall.EIO)
			}
			return n, err
		})},
	{name: "full", applies: grows, hit: func(in *injector, first bool, c disk.Call,
		do func(int) (int, error)) (int, error) {
		switch {
		case c.Op == disk.OpOpen && c.Flag&syscall.O_CREAT == 0, !grows(c.Op), c.Op == disk.OpRename && !first:
			return do(c.N) // which need no room; a rename may, but usually does not
		case c.Op == disk.OpWrite:
			n, err := do(c.N / 3)
			return n, errors.Join(err, pathError(c, syscall.ENOSPC))
		}
		return 0, pathError(c, syscall.ENOSPC)
	}},
	{name: "gone", applies: every, hit: func(in *injector, _ bool, c disk.Call,
		do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpClose {
			do(0)
		}
		return 0, pathError(c, syscall.EIO) // the whole disk, from then on
	}, dies: true},
	{name: "killed", applies: changes, hit: func(in *injector, first bool, c disk.Call,
		do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpClose {
			do(0)
		}
		return 0, errDead
	}, dies: true},
	{name: "killed in a write", applies: func(op string) bool { return op == disk.OpWrite },
		hit: func(in *injector, first bool, c disk.Call, do func(int) (int, error)) (int, error) {
			switch {
			case c.Op == disk.OpClose:
				do(0)
			case first && c.N > 0:
				do(in.random.IntN(c.N)) // a torn write
			}
			return 0, errDead
		}, dies: true},
	{name: "power lost", applies: changes, hit: func(in *injector, first bool, c disk.Call,
		do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpClose {
			do(0)
		}
		return 0, errDead
	}, dies: true},
	{name: "slow", applies: every, harmless: true,
		hit: once(func(_ *injector, c disk.Call, do func(int) (int, error)) (int, error) {
			time.Sleep(200 * time.Microsecond)
			return do(c.N)
		})},
	{name: "rot", applies: func(op string) bool { return op == disk.OpWrite }, rots: true,
		hit: once(func(in *injector, c disk.Call, do func(int) (int, error)) (int, error) {
			n, err := do(c.N)
			if c.Off >= 0 && n > 0 {
				at := c.Off + in.random.Int64N(int64(n))
				var b [1]byte
				if _, err := c.File.ReadAt(b[:], at); err == nil {
					b[0] ^= 1 << in.random.IntN(8)
					c.File.WriteAt(b[:], at)
				}
			}
			return n, err
		})},
}

// injector is the hook of one run.
type injector struct {
	mu     sync.Mutex
	kind   *kind                  // nil counts only
	at     int                    // the number of the call that fails, from 0
	on     func(c disk.Call) bool // if not nil: the first call that fails, whatever its number
	calls  int
	ops    []string // of each call
	what   string   // the call that failed
	struck bool
	random rnd
	power  *power // nil for kinds that lose nothing
}

// strikes reports whether call n is the one that fails.
func (in *injector) strikes(n int, c disk.Call) bool {
	if in.on != nil {
		return in.on(c)
	}
	return n == in.at
}

// rnd has the methods of rand.Rand that injectors need.
type rnd interface {
	IntN(int) int
	Int64N(int64) int64
}

// hook is the disk.Hook. Calls are made one at a time.
func (in *injector) hook(c disk.Call, do func(int) (int, error)) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.calls
	in.calls++
	if in.kind == nil {
		in.ops = append(in.ops, c.Op)
	}
	if c.Op == disk.OpSync { // which is slow, and without effect on a test
		do = func(int) (int, error) { return 0, nil }
	}
	if in.power != nil && !in.struck {
		do = in.power.watch(c, do)
	}
	switch {
	case in.kind == nil || !in.struck && !in.strikes(n, c):
		return do(c.N)
	case !in.struck:
		in.struck, in.at = true, n
		in.what = fmt.Sprintf("%s %s", c.Op, c.Path)
		return in.kind.hit(in, true, c, do)
	default:
		return in.kind.hit(in, false, c, do)
	}
}
