// Package alloctest measures what tests allocate.
package alloctest

import "runtime/metrics"

// Bytes returns how many bytes the program has allocated so far, freed ones included. It does not stop the world as
// runtime.ReadMemStats does, so that a fuzz target can ask twice for each input. Small objects of which no whole span
// has been filled yet may be missing: less than 1 MiB for each processor.
func Bytes() uint64 {
	s := [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}
