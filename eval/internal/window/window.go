// Package window has the layers with sliding-window attention of each architecture, and the lengths of their windows.
//
// A file has attention.sliding_window, a number of tokens, and attention.sliding_window_pattern, a truth value for each
// layer or a period. The rest is in llama.cpp's code, and in the table of this package, which the evaluator and the
// memory estimate read.
package window

// Kind is the shape of a window.
type Kind uint8

const (
	Sliding   Kind = iota // the last tokens, up to the token itself
	Chunked               // the tokens since the last multiple of the window's length
	Symmetric             // half of the length on both sides
)

// Row describes the windows of an architecture.
type Row struct {
	Arch string
	Kind Kind
	// Period: in files without a list or a period, the last of every Period layers has no window; 0: all layers have
	// one.
	Period int
	// First: the first layer of a period has no window, not the last.
	First bool
	// Listed: the file must have a list of the layers with windows.
	Listed bool
	// length returns the length of a window; n is attention.sliding_window, -1 without the key. nil: the length is n.
	length func(layers int, n int64) int64
}

// rows is sorted by name. Architectures without a row have no windows.
//
// Source: llama.cpp 0.7.0.
var rows = []Row{
	{Arch: "afmoe", Period: 4},
	{Arch: "cohere2", Period: 4},
	{Arch: "cohere2moe", Listed: true},
	{Arch: "deepseek4"},
	{Arch: "dflash", Listed: true},
	{Arch: "dots3note", Listed: true},
	{Arch: "exaone-moe", Period: 4},
	{Arch: "exaone4", Period: 4, length: func(layers int, n int64) int64 {
		if layers != 64 { // only the 32B model has windows
			return 0
		}
		return orElse(4096)(layers, n)
	}},
	{Arch: "gemma-embedding", Period: 6, Kind: Symmetric},
	{Arch: "gemma2", Period: 2, length: orElse(4096)},
	{Arch: "gemma3", Period: 6},
	{Arch: "gemma3n", Period: 5},
	{Arch: "gemma4", Listed: true},
	{Arch: "gemma4-assistant", Listed: true},
	{Arch: "gpt-oss", Period: 2},
	{Arch: "granite_swa", Listed: true},
	{Arch: "laguna", Period: 4, First: true},
	{Arch: "lfm2"},
	{Arch: "llama4", Period: 4, Kind: Chunked, length: func(_ int, n int64) int64 { return when(n != 0, 8192) }},
	{Arch: "maple", Listed: true},
	{Arch: "mellum", Period: 4},
	{Arch: "mimo2", Listed: true},
	{Arch: "modern-bert", Period: 3, First: true, Kind: Symmetric},
	{Arch: "muse-glimmer", Period: 4},
	{Arch: "olmo2", Period: 4},
	{Arch: "plamo3", Period: 8},
	{Arch: "smallthinker", Period: 4, First: true, length: func(_ int, n int64) int64 { return when(n > 0, 4096) }},
	{Arch: "spark2_5", Listed: true},
	{Arch: "step35", Period: 4, First: true},
}

// when returns n if the condition holds, or else 0.
func when(holds bool, n int64) int64 {
	if holds {
		return n
	}
	return 0
}

// orElse returns a Row.length with a default for files without the key.
func orElse(def int64) func(int, int64) int64 {
	return func(_ int, n int64) int64 {
		if n < 0 {
			return def
		}
		return n
	}
}

// Lookup returns the row of an architecture, nil if its layers have no windows.
func Lookup(arch string) *Row {
	for i := range rows {
		if rows[i].Arch == arch {
			return &rows[i]
		}
	}
	return nil
}

// All returns the architectures with windows.
func All() []string {
	var names []string
	for _, r := range rows {
		names = append(names, r.Arch)
	}
	return names
}

// Length returns the number of tokens of a window, 0 for no windows, in a model of so many layers. n is
// attention.sliding_window, -1 without the key.
func (r *Row) Length(layers int, n int64) int64 {
	if r.length != nil {
		return r.length(layers, n)
	}
	return max(0, n)
}

// Has reports whether layer i has a window, in a file without a list. period is the period in the file, or r.Period.
func (r *Row) Has(i, period int) bool {
	switch {
	case r.Listed:
		return false
	case period == 0:
		return true
	case r.First:
		return i%period != 0
	}
	return i%period < period-1
}
