package cli

import (
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/quants"
)

// NoteScalar prints a line if the kernels in use are the scalar ones: the same bytes take several times as long. With
// GODEBUG=simd=0 it prints nothing. Commands call it once, when they begin to write.
func NoteScalar(cmd *cli.Command) {
	if quants.Kernels() != "scalar" || vectorsOff(os.Getenv("GODEBUG")) {
		return
	}
	why := "this build has no vector kernels; GOEXPERIMENT=simd with Go 1.27 makes one that has"
	if quants.HasVectors {
		why = "Go finds no vector instructions that it can use on this CPU"
	}
	Note(cmd, "this is the slow, scalar version: "+why)
}

// vectorsOff reports whether the last setting of simd in GODEBUG is 0.
func vectorsOff(godebug string) (off bool) {
	for setting := range strings.SplitSeq(godebug, ",") {
		if value, ok := strings.CutPrefix(setting, "simd="); ok {
			off = strings.TrimPrefix(value, "+") == "0"
		}
	}
	return off
}
