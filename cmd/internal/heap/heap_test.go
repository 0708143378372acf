package heap

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func percent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestStart checks that GOGC is larger until the first collection.
func TestStart(t *testing.T) {
	runtime.GC()
	usual := percent()
	done := make(chan bool)
	start(func() { close(done) })
	if p := percent(); p != first {
		t.Errorf("%d before a collection, want %d", p, first)
	}
	runtime.GC()
	<-done
	if p := percent(); p != usual {
		t.Errorf("%d after a collection, want %d", p, usual)
	}
}
