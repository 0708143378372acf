//go:build !linux

package cli

func memory() int64 { return heap() }
