package cli

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestCost checks that a measurement ends with its context, and can be stopped
// before and after that.
func TestCost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	whole, cut := StartCost(ctx), StartCost(ctx)
	if text := whole.Stop(1); !strings.Contains(text, "peak memory") {
		t.Errorf("got %q", text)
	}
	cancel()
	for start := time.Now(); len(cut.peak) == 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("still measures after the end of the context")
		}
	}
	if text := cut.Stop(1); !strings.Contains(text, "peak memory") {
		t.Errorf("got %q", text)
	}
}
