package gguf

// Limits of files, far above existing ones. Without them, a small file could take much memory, or cause a large output.
const (
	// MaxAlignment is the largest general.alignment. Files have 32, a few up to
	// 4096; the largest pages that systems map files by have 64 KiB.
	MaxAlignment = 64 << 10

	// MaxKeys bounds the metadata pairs of a file. Large files have a hundred.
	MaxKeys = 1 << 16

	// MaxTensors bounds the tensors of a file. The largest models have a few thousand, or up to 50,000 if experts are
	// not stacked.
	MaxTensors = 1 << 17

	// MaxName is the longest tensor name in bytes (GGML_MAX_NAME less its
	// terminator).
	MaxName = 63

	// MaxDims is the largest number of dimensions of a tensor (GGML_MAX_DIMS).
	MaxDims = 4

	// MaxShards bounds the shards of a model: five digits in the name, 16 bits in the key.
	MaxShards = 65535

	// maxKey is the longest metadata key the specification allows.
	maxKey = 65535

	// maxNesting bounds arrays inside arrays; the format sets no bound, and no
	// known file nests deeper than two.
	maxNesting = 16

	// maxErrors bounds the errors that Check collects: a header of empty records would give one per tensor.
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
