//go:build goexperiment.simd && go1.27 && amd64

package widest

import (
	"simd/archsimd"
	"syscall"
)

const name = "GODEBUG"

// before is GODEBUG as it was, of a process that has it.
var before, was = syscall.Getenv(name)

// changed: GODEBUG has another value until Restore.
var changed bool

func init() {
	// Kernels of 256 bits and more multiply and add in one instruction, which is a feature of its own.
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		return
	}
	if setting := widened(before); setting != before {
		changed = syscall.Setenv(name, setting) == nil
	}
}

// Restore sets GODEBUG to what it was, for other programs that this process starts.
func Restore() {
	switch {
	case !changed:
	case was:
		syscall.Setenv(name, before)
	default:
		syscall.Unsetenv(name)
	}
}

// widened returns the settings of GODEBUG with those of simd without the check of features. The last one counts.
func widened(settings string) string {
	all := "simd=+"
	for len(settings) > 0 {
		n := 0
		for n < len(settings) && settings[n] != ',' {
			n++
		}
		switch s := settings[:n]; s {
		case "simd=128", "simd=256", "simd=512":
			all += ",simd=+" + s[len("simd="):]
		default:
			all += "," + s
		}
		settings = settings[min(n+1, len(settings)):]
	}
	return all
}
