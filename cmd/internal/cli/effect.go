package cli

import (
	"github.com/urfave/cli/v3"
)

// Effect is what a flag of a command that writes models does to a run. Manifests, journals and what does a run again
// from the manifest of a stranger go by it.
type Effect int

const (
	// Undeclared is the effect of a flag that says none: nobody may rely on it.
	Undeclared Effect = iota
	// SetsBytes decides bytes of the outputs, by its value alone.
	SetsBytes
	// ReadsFile names a file or a folder that is read.
	ReadsFile
	// KeepsFile names a file that is read if it is there, and else written.
	KeepsFile
	// AsksServer names a model that a server may be asked for.
	AsksServer
	// Permits lets a run read what the user has not named. It decides no byte: what is read is compared by itself.
	Permits
	// WritesFile says where outputs and other files go, and what they may replace.
	WritesFile
	// RunsOnly says how a run works and what it prints, or how an argument is written.
	RunsOnly
)

// Recorded reports whether outputs are other ones without a flag of this effect: a manifest has it.
func (e Effect) Recorded() bool {
	switch e {
	case SetsBytes, ReadsFile, KeepsFile, AsksServer:
		return true
	}
	return false
}

// As is a flag that declares its effect.
func As[T any, C any, V cli.ValueCreator[T, C]](e Effect, f *cli.FlagBase[T, C, V]) cli.Flag {
	return plain(f).As(e)
}

// plain returns a flag that says nothing of itself yet.
func plain[T any, C any, V cli.ValueCreator[T, C]](f *cli.FlagBase[T, C, V]) *Flag[T, C, V] {
	return &Flag[T, C, V]{FlagBase: f}
}

// EffectOf returns the effect that a flag declares, Undeclared for none.
func EffectOf(f cli.Flag) Effect {
	if d, ok := f.(interface{ declared() Effect }); ok {
		return d.declared()
	}
	return Undeclared
}

// Flag is a flag with what package cli has no field for.
type Flag[T any, C any, V cli.ValueCreator[T, C]] struct {
	*cli.FlagBase[T, C, V]
	names  func() []string // that the value may be; nil for any
	effect Effect
}

// As declares the effect of the flag.
func (f *Flag[T, C, V]) As(e Effect) cli.Flag {
	f.effect = e
	return f
}

func (f *Flag[T, C, V]) declared() Effect { return f.effect }

// Set takes the names that the value may be in any case.
func (f *Flag[T, C, V]) Set(name, value string) error {
	return f.FlagBase.Set(name, folded(value, f.Choices()))
}

// Choices returns the names that the value may be, nil for any.
func (f *Flag[T, C, V]) Choices() []string {
	if f.names == nil {
		return nil
	}
	return f.names()
}
