package quants

import (
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
)

// implementation is a set of kernels for one kind of machine. Its kernels give the
// bytes and floats of the scalar code.
type implementation struct {
	name string
	// runs reports whether the kernels work on a machine; tests compare them there.
	runs func(m cpu.Machine) bool
	// pays reports whether they are chosen on a machine on which they work.
	pays    func(m cpu.Machine) bool
	kernels []kernel
	// finite returns the length of a prefix of src, whole chunks of scalar.FiniteChunk bytes,
	// in which all elements are finite; exp and step are those of finiteWords. nil if
	// there is none.
	finite func(src []byte, exp, step uint64) (n int)
}

// kernel has the functions of an implementation for a type; missing ones are nil.
type kernel struct {
	typ      gguf.Type
	plain    encoder // without importance
	weighted encoder // with importance
	decode   decoder
	rows     rowsEncoder // with importance: weighted for several rows, where their ends matter
}

// converts is a kernel for both directions.
func converts(t gguf.Type, f encoder, g decoder) kernel { return kernel{t, f, f, g, nil} }

// implementations lists the implementations in this build, preferred ones first; the scalar code, which has a kernel for
// everything, is the last.
func implementations() []implementation {
	always := func(cpu.Machine) bool { return true }
	scalar := implementation{name: scalarName, runs: always, pays: always}
	for t := range types {
		if r := &types[t]; r.decode != nil {
			scalar.kernels = append(scalar.kernels, converts(gguf.Type(t), r.encode, r.decode))
		}
	}
	return append(vectorImplementations(), scalar)
}

const scalarName = "scalar"

// HasVectors reports whether this build has vector kernels. Whether they run is up to the
// CPU: see Kernels.
const HasVectors = cpu.HasVectors

// selection has the functions in use: a codec per type id, empty for ids without functions, and the fastest
// finiteWords.
type selection struct {
	codecs [len(types)]Codec
	finite func(src []byte, exp, step uint64) (n int)
}

// selected is the selection for this process. Nothing changes it.
var selected = choose(cpu.Here(), implementations())

// choose takes for each type and direction the first implementation that pays.
func choose(m cpu.Machine, from []implementation) *selection {
	s := new(selection)
	for t := range s.codecs {
		s.codecs[t] = Codec{typ: gguf.Type(t), row: &types[t]}
	}
	for i := range from {
		impl := &from[i]
		if !impl.runs(m) || !impl.pays(m) {
			continue
		}
		for _, k := range impl.kernels {
			s.codecs[k.typ].fill(k, impl.name)
		}
		if s.finite == nil {
			s.finite = impl.finite
		}
	}
	return s
}

// fill sets the missing functions of c to those of k.
func (c *Codec) fill(k kernel, name string) {
	if c.plain == nil && k.plain != nil {
		c.plain, c.plainName = k.plain, name
	}
	if c.weighted == nil && k.weighted != nil {
		c.weighted, c.rows, c.weightedName = k.weighted, k.rows, name
	}
	if c.decode == nil && k.decode != nil {
		c.decode, c.decodeName = k.decode, name
	}
}

// Kernels names the implementations in use besides the scalar one, of encoders
// and decoders; "scalar" if there are none.
func Kernels() string {
	var names []string
	for i := range selected.codecs {
		c := &selected.codecs[i]
		for _, name := range []string{c.plainName, c.weightedName, c.decodeName} {
			if name != "" && name != scalarName && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return scalarName
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
