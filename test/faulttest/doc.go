// Package faulttest makes system calls about files fail, one after the other, with every error of disks and systems,
// and checks after each: files with final names are whole, old or new; a run with exit code 0 has written the right
// bytes; and the same command, run again, writes them, too.
//
// It has tests only. `make faults` runs all of them and counts, `go test` a sample.
package faulttest
