package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"ggforge/test/hubtest"
)

// hub is a hub that a job pushes to. Nothing of a push is there before all of it.
type hub struct {
	*hubtest.Uploads
	*failing
}

// failing is what a server of packages hubtest and buckettest needs of a test.
type failing struct {
	testing.TB
	mu        sync.Mutex
	wrong     []error
	stop      []func()
	variables []string // of the environment
}

func (f *failing) Cleanup(stop func()) { f.stop = append(f.stop, stop) }

func (f *failing) Setenv(name, value string) { f.variables = append(f.variables, name+"="+value) }

func (f *failing) TempDir() string { return "/none" } // of files that are not there

// end stops the servers of a round.
func (f *failing) end() {
	if f != nil {
		for _, stop := range f.stop {
			stop()
		}
	}
}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Errorf(format, args...))
}

// reset replaces the server by an empty one. It takes some milliseconds for each request.
func (h *hub) reset() {
	h.end()
	h.failing = &failing{}
	h.Uploads = hubtest.ServeUploads(h.failing)
	h.PartBytes = 100_000
	h.SetFault(func(_ string, _ int, _ http.ResponseWriter, r *http.Request) bool {
		hubtest.Slow(r, 5*time.Millisecond)
		return false
	})
}

func (h *hub) env() []string { return []string{"HF_ENDPOINT=" + h.URL, "HF_TOKEN=" + h.Token} }

func (h *hub) begun() (yes, there bool) { return false, false }

func (h *hub) judge(want map[string][]byte) (phase string, err error) {
	h.mu.Lock()
	err = errors.Join(h.wrong...)
	h.mu.Unlock()
	if err != nil {
		return "", fmt.Errorf("the hub: %w", err)
	}
	files := h.Files("org/name", "main")
	delete(files, ".gitattributes")
	if len(files) == 0 {
		if _, sent := h.Stored(); sent == 0 {
			return "before", nil
		}
		return "during", nil
	}
	same := func(got string, want []byte) bool { return got == string(want) }
	if !maps.EqualFunc(files, want, same) {
		return "", fmt.Errorf("the hub has %q", slices.Sorted(maps.Keys(files)))
	}
	return "after", nil
}

// onTheirWay is how many parts a push sends at a time.
const onTheirWay = 4

// finished checks that the hub has the files, by one commit after its first one, and that after so many kills only
// parts that were on their way came again. A power cut may lose the record of those that had come.
func (h *hub) finished(want map[string][]byte, kills int, cut bool) error {
	phase, err := h.judge(want)
	if err == nil && phase != "after" {
		err = errors.New("the hub does not have the files")
	}
	if err != nil {
		return err
	}
	again := 0
	stored, _ := h.Stored()
	for _, n := range stored {
		again += n - 1
	}
	if n := h.Commits("org/name"); n != 2 || again > onTheirWay*kills && !cut {
		return fmt.Errorf("%d commits, %d parts stored again after %d kills", n, again, kills)
	}
	return nil
}
