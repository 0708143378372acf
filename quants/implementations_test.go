package quants

import (
	"reflect"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
)

// codecSet is a codec for every type: those in use, or those of one
// implementation, with scalar functions where it has none.
type codecSet struct {
	name string
	*selection
}

func (s codecSet) lookup(t gguf.Type) *Codec { return &s.codecs[t] }

// codecSets are the codecs in use and those of every implementation that runs
// here, chosen or not; scalar ones are the last.
var codecSets = func() []codecSet {
	sets := []codecSet{{"active", selected}}
	all := implementations()
	for _, impl := range all {
		if !impl.runs(cpu.Here()) {
			continue
		}
		impl.pays = impl.runs
		sets = append(sets, codecSet{impl.name, choose(cpu.Here(), []implementation{impl, all[len(all)-1]})})
	}
	return sets
}()

// scalarCodec returns the codec of t that defines its bits.
func scalarCodec(t gguf.Type) *Codec { return codecSets[len(codecSets)-1].lookup(t) }

// has reports whether s has an encoder or decoder of its own for t.
func (s codecSet) has(t gguf.Type) bool {
	c := s.lookup(t)
	return c.plainName == s.name || c.weightedName == s.name || c.decodeName == s.name
}

// TestTypes checks that every column of a row is filled, and that no fact
// contradicts another.
func TestTypes(t *testing.T) {
	for id := range types {
		typ, r := gguf.Type(id), &types[id]
		switch {
		case r.decode == nil:
			if !reflect.ValueOf(*r).IsZero() {
				t.Errorf("%v: facts, but no decoder", typ)
			}
			if typ.Known() && typ.Kind() == gguf.KindQuant {
				t.Errorf("%v: no row", typ)
			}
			continue
		case !typ.Known():
			t.Errorf("%v is not a type of the format", typ)
			continue
		}
		checked := 0
		for _, f := range typ.Fields() {
			if f.N > 1 && firstInvalid(&f, slices.Repeat([]byte{0xFF}, int(typ.BlockBytes())),
				int(typ.BlockBytes())) >= 0 {
				t.Errorf("%v: field %s has %d numbers, of which Validate looks at the first alone", typ, f.Name, f.N)
			}
			if f.N == 1 && f.Number != gguf.NumU16 && f.Number != gguf.NumByte {
				checked++
			}
		}
		if checked == 0 && typ != gguf.TypeNVFP4 { // its scales are all finite
			t.Errorf("%v: nothing to validate", typ)
		}
		if r.encode == nil {
			if r.importance != 0 || r.fallback != 0 || r.cost != [2]int64{} {
				t.Errorf("%v: facts about an encoder, but there is none", typ)
			}
			continue
		}
		if r.importance > ImportanceNeeded {
			t.Errorf("%v: importance %d", typ, r.importance)
		}
		if r.cost[0] <= 0 || r.cost[1] < r.cost[0] {
			t.Errorf("%v: costs %d without importance, %d with", typ, r.cost[0], r.cost[1])
		}
		if r.fallback == none || r.fallback == typ {
			continue
		}
		if f := r.fallback; f.Kind() != gguf.KindQuant || f.BlockLen() >= typ.BlockLen() || types[f].encode == nil {
			t.Errorf("%v: fallback %v", typ, f)
		}
	}
}

// TestImplementations checks the table: each implementation once, with one kernel per type at most, none of them empty,
// and encoders only for types that have a scalar one.
func TestImplementations(t *testing.T) {
	names := map[string]bool{}
	for _, impl := range implementations() {
		if names[impl.name] || impl.runs == nil || impl.pays == nil {
			t.Errorf("%s: listed twice, or without the fields runs and pays", impl.name)
		}
		names[impl.name] = true
		seen := map[gguf.Type]bool{}
		for _, k := range impl.kernels {
			r := &types[k.typ]
			if seen[k.typ] || r.encode == nil && (k.plain != nil || k.weighted != nil) ||
				k.plain == nil && k.weighted == nil && k.decode == nil {
				t.Errorf("%s: a second kernel for %v, one for a type without encoder, or an empty one",
					impl.name, k.typ)
			}
			seen[k.typ] = true
		}
	}
}

// TestChoose runs the choice for machines of all kinds.
func TestChoose(t *testing.T) {
	f, g := func([]byte, []float32, []float32) {}, func([]float32, []byte) {}
	from := []implementation{
		{name: "wide", runs: func(m cpu.Machine) bool { return m.Bits >= 256 && m.AVX2 },
			pays:    func(m cpu.Machine) bool { return !m.Emulated },
			kernels: []kernel{{gguf.TypeQ4_0, f, nil, g, nil}}},
		{name: "any", runs: func(m cpu.Machine) bool { return m.Bits > 0 },
			pays:    func(m cpu.Machine) bool { return !m.Emulated },
			kernels: []kernel{{gguf.TypeQ4_0, nil, f, nil, nil}, {gguf.TypeQ4_K, f, f, nil, nil}}},
		{name: scalarName, runs: func(cpu.Machine) bool { return true }, pays: func(cpu.Machine) bool { return true },
			kernels: []kernel{converts(gguf.TypeQ4_0, f, g), converts(gguf.TypeQ4_K, f, g)}},
	}
	for _, c := range []struct {
		m          cpu.Machine
		q4_0, q4_K [3]string // without importance, with, decoder
	}{
		{cpu.Machine{}, [3]string{"scalar", "scalar", "scalar"}, [3]string{"scalar", "scalar", "scalar"}},
		{cpu.Machine{Bits: 128, Emulated: true, AVX2: true}, [3]string{"scalar", "scalar", "scalar"},
			[3]string{"scalar", "scalar", "scalar"}},
		{cpu.Machine{Bits: 128, Emulated: false, AVX2: true}, [3]string{"scalar", "any", "scalar"},
			[3]string{"any", "any", "scalar"}},
		{cpu.Machine{Bits: 256, Emulated: false, AVX2: false}, [3]string{"scalar", "any", "scalar"},
			[3]string{"any", "any", "scalar"}},
		{cpu.Machine{Bits: 256, Emulated: false, AVX2: true}, [3]string{"wide", "any", "wide"},
			[3]string{"any", "any", "scalar"}},
		{cpu.Machine{Bits: 512, Emulated: false, AVX2: true}, [3]string{"wide", "any", "wide"},
			[3]string{"any", "any", "scalar"}},
	} {
		s := choose(c.m, from)
		for typ, want := range map[gguf.Type][3]string{gguf.TypeQ4_0: c.q4_0, gguf.TypeQ4_K: c.q4_K} {
			codec := &s.codecs[typ]
			if got := [3]string{codec.Implementation(false), codec.Implementation(true),
				codec.decodeName}; got != want {
				t.Errorf("%+v: %v runs %v, want %v", c.m, typ, got, want)
			}
		}
	}
}
