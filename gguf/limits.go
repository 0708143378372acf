package gguf

// Limits of what a file may hold. Files that exist stay far below them; without
// them a small file could take much memory, or make a large output.
const (
	// MaxAlignment is the largest general.alignment. Files have 32, a few up to
	// 4096; the largest pages that systems map files by have 64 KiB.
	MaxAlignment = 64 << 10

	// MaxKeys is how many metadata pairs a file may have. Large ones have a hundred.
	MaxKeys = 1 << 16

	// MaxTensors is how many tensors a file may have. The largest models have a few
	// thousand, and below fifty thousand where experts are not stacked.
	MaxTensors = 1 << 17

	// MaxName is the longest tensor name in bytes (GGML_MAX_NAME less its
	// terminator).
	MaxName = 63

	// MaxDims is the largest number of dimensions of a tensor (GGML_MAX_DIMS).
	MaxDims = 4

	// MaxShards is how many shards a model can have: five digits of a name, two
	// bytes of a key.
	MaxShards = 65535

	// maxKey is the longest metadata key the specification allows.
	maxKey = 65535

	// maxNesting bounds arrays inside arrays; the format sets no bound, and no
	// known file nests deeper than two.
	maxNesting = 16

	// maxErrors is how many errors Check collects before it stops reading: a header
	// of empty records would give as many as there are tensors.
	maxErrors = 1000
)

// Alignment returns general.alignment of m, or DefaultAlignment; ok is false for
// values that no file may have.
func (m Metadata) Alignment() (a int64, ok bool) {
	v, stated := m.Get(KeyAlignment)
	if !stated {
		return DefaultAlignment, true
	}
	a, _ = v.Int()
	return a, v.Type() == Uint32Type && a > 0 && a&(a-1) == 0 && a <= MaxAlignment
}
