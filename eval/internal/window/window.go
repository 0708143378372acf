// Package window holds, by architecture, which layers of a model attend to a window of
// tokens only (sliding-window attention), and of how many.
//
// A file says part of it: attention.sliding_window is a number of tokens, and
// attention.sliding_window_pattern either a truth value for each layer or a period. The rest
// is in the runtime's code, and here: the evaluator and the estimate of memory read the same
// rows.
package window

// Kind is the shape of a window.
type Kind uint8

const (
	Sliding   Kind = iota // the last tokens, up to the token itself
	Chunked               // those since the last multiple of the window's length
	Symmetric             // half of the length to both sides
)

// Row is an architecture with windows.
type Row struct {
	Arch string
	Kind Kind
	// Period is where one of so many layers has no window, in files without a list of them: the
	// last of each group. 0 is for windows in all layers. attention.sliding_window_pattern may
	// be another one.
	Period int
	// First: the first layer of each group.
	First bool
	// Listed: the file has to have the list.
	Listed bool
	// length returns the number of tokens by that of the file, -1 without one; nil for the
	// file's.
	length func(layers int, n int64) int64
}

// rows is sorted by name. What is not here has no windows.
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
		if layers != 64 { // those of 32 B only
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

// when is n if it holds, or 0.
func when(holds bool, n int64) int64 {
	if holds {
		return n
	}
	return 0
}

// orElse is Row.length of files that say it, and a number in others.
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

// Length returns the tokens of a window in a model of so many layers, 0 for none, by
// attention.sliding_window of its file, -1 without that key.
func (r *Row) Length(layers int, n int64) int64 {
	if r.length != nil {
		return r.length(layers, n)
	}
	return max(0, n)
}

// Has reports whether layer i has a window, in a file without a list, by the period that it
// has: r.Period if the file has none.
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
