package mmap

import (
	"sync"
	"sync/atomic"
	"time"
)

// A worker waits for each of its reads. From a disk with a queue, or one at the other end of a
// network, that is as many reads at a time as there are workers, each of as little as a
// worker takes; the system reads ahead of each by another 128 KiB or so. With 5 ms a read,
// that is 25 MB/s per worker, however fast the disk is.
//
// So a read that had to wait asks the system for the next bytes of the file, in parts that it fetches side by side.
// Reading bytes that are in memory costs next to nothing, and does not ask for more.
const (
	aheadBytes = 16 << 20               // asked for after the bytes that are being read
	aheadPart  = 128 << 10              // of a request: the system takes no more at once where its own read-ahead is not larger
	aheadFor   = 256 << 20              // so many bytes after a read that waited, reads ask ahead even if they do not wait
	waited     = 200 * time.Microsecond // reads from memory take a tenth
	streams    = 8                      // places where workers read side by side
)

// ahead is the range of a file that has been asked for.
type ahead struct {
	left atomic.Int64 // bytes for which reads still ask ahead without having waited

	mu   sync.Mutex
	ends [streams]int64 // end of the range asked for at each place, 0 for none
	next int            // index in ends for the next new place
}

// read records a read of bytes [off, end) in a file of that size, and returns the range to ask for.
func (a *ahead) read(off, end, size int64, took time.Duration) (from, to int64) {
	if took >= waited {
		a.left.Store(aheadFor)
	} else if a.left.Load() <= 0 {
		return 0, 0
	}
	a.left.Add(off - end)
	a.mu.Lock()
	defer a.mu.Unlock()
	to = min(end+aheadBytes, size)
	for i, e := range a.ends {
		if e > 0 && e >= off && e <= end+2*aheadBytes { // other workers may be further on
			from = max(e, end)
			if to-from < aheadPart && to < size {
				return 0, 0
			}
			a.ends[i] = max(e, to)
			return from, to
		}
	}
	a.ends[a.next] = to
	a.next = (a.next + 1) % streams
	return end, to
}
