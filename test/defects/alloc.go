package defects

import "runtime/metrics"

// Allocated returns how many bytes the program has allocated so far, freed ones included. It does not stop the world as
// runtime.ReadMemStats does, so that a fuzz target can call it twice for each input. Small objects in
// spans that are not full yet may be missing: less than 1 MiB for each processor.
func Allocated() uint64 {
	s := [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}
