package checkpoint

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/test/hubtest"
)

// TestRemoteSideFilesTogether checks the limit of all side files together, with files that are each within their own.
func TestRemoteSideFilesTogether(t *testing.T) {
	defer func(was int64) { maxSideBytes = was }(maxSideBytes)
	maxSideBytes = 5 << 20
	dir := t.TempDir()
	for i := range 6 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.model", i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	hub := hubtest.Serve(t, "org/many", dir)
	hub.Answer = func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ".model") {
			return false
		}
		w.Write(make([]byte, 1<<20))
		return true
	}
	d, err := OpenRemote(t.Context(), "hf://org/many", Options{Remote: Remote{Endpoint: hub.URL}})
	if err == nil {
		d.Close()
	}
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(),
		"the side files have more than 5242880 bytes") {
		t.Errorf("%v", err)
	}
	maxSideBytes = 7 << 20
	if d, err = OpenRemote(t.Context(), "hf://org/many", Options{Remote: Remote{Endpoint: hub.URL}}); err != nil {
		t.Fatal(err)
	}
	d.Close()
}
