package gguf

import (
	"fmt"
	"slices"
)

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

	// MaxName is the longest tensor name in bytes that ggml reads (GGML_MAX_NAME less its terminator). See LimitsOf.
	MaxName = 63

	// MaxDims is the largest number of dimensions of a tensor that ggml reads (GGML_MAX_DIMS). See LimitsOf.
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

// Limits are those of the tensors of a file. Programs that load the files of an architecture set them.
type Limits struct {
	Name  int  // longest name in bytes
	Dims  int  // largest number of dimensions
	Empty bool // whether a dimension may be 0
}

// provided are the limits of files that ggml does not load.
var provided struct {
	limits Limits
	has    func(architecture string) bool
}

// ProvideLimits sets the limits of files whose general.architecture has confirms: those that other programs than ggml
// load. Package arch/diffusion calls it, so that a program that imports arch or quantize reads these files.
func ProvideLimits(l Limits, has func(architecture string) bool) {
	provided.limits, provided.has = l, has
}

// LimitsOf returns the limits of files with that general.architecture: ggml's unless others are provided.
func LimitsOf(architecture string) Limits {
	if provided.has != nil && provided.has(architecture) {
		return provided.limits
	}
	return Limits{Name: MaxName, Dims: MaxDims}
}

// limits returns the limits for reading f. A later shard does not state its architecture: it may be the largest there
// are, and Set compares its tensors with those of the first shard's architecture.
func (f *File) limits() Limits {
	architecture := f.Architecture()
	if v, ok := f.Metadata.Get(KeySplitNo); ok && architecture == "" && provided.has != nil {
		if n, ok := v.Int(); ok && n > 0 {
			return provided.limits
		}
	}
	return LimitsOf(architecture)
}

// Check returns an error if the name or a dimension of a tensor is beyond the limits.
func (l Limits) Check(name string, ne []int64) error {
	switch {
	case len(name) > l.Name:
		return fmt.Errorf("name of %d bytes, want at most %d", len(name), l.Name)
	case len(ne) > l.Dims:
		return fmt.Errorf("%d dimensions, want at most %d", len(ne), l.Dims)
	case !l.Empty && slices.Contains(ne, 0):
		return fmt.Errorf("dimensions %s, want 1 or more", Shape(ne))
	}
	return nil
}
