// Package faulttest has every call to the system that is about files fail, one after the other,
// in every way that a disk and a system have, and checks after each: under final names there are
// old files or new ones, whole; who was told that all went well has the right bytes; and the
// same command, run again, ends with them.
//
// It is tests only. `make faults` runs all of them and counts, `go test` a sample.
package faulttest
