package table

import (
	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
)

// The architecture's keys that are read back from files.
const (
	KeyBlockCount  = "block_count"
	KeyHeadCount   = "attention.head_count"
	KeyHeadCountKV = "attention.head_count_kv"
)

// Keys gives access to a GGUF file's metadata by keys without the architecture's prefix.
type Keys struct {
	arch     string
	metadata gguf.Metadata
}

// Keys returns the keys of a file of this architecture.
func (a *Arch) Keys(m gguf.Metadata) *Keys { return &Keys{a.Name, m} }

// Int returns the integer under key; ok is false when the file has no such key.
func (k *Keys) Int(key string) (n int64, ok bool, err error) {
	key = gguf.ArchKey(k.arch, key)
	v, ok := k.metadata.Get(key)
	if !ok {
		return 0, false, nil
	}
	if n, ok = v.Int(); !ok {
		return 0, false, fault.Errorf(fault.Unsupported, "key %q: want an integer, found a value of type %v",
			key, v.Type())
	}
	return n, true, nil
}

// Require is Int for a required key.
func (k *Keys) Require(key string) (int64, error) {
	n, ok, err := k.Int(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "has no key %q", gguf.ArchKey(k.arch, key))
	}
	return n, err
}

// BlockCount returns the number of layers.
func (k *Keys) BlockCount() (int64, error) {
	n, err := k.Require(KeyBlockCount)
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "key %q: %d layers, want at most %d", gguf.ArchKey(k.arch, KeyBlockCount), n,
			config.MaxBlocks)
	}
	return n, err
}

// Heads returns the number of query heads.
func (k *Keys) Heads() (int64, error) { return k.Require(KeyHeadCount) }

// HeadsKV returns the number of key heads, by default the number of query heads.
func (k *Keys) HeadsKV() (int64, error) {
	heads, ok, err := k.Int(KeyHeadCountKV)
	if err == nil && !ok {
		return k.Heads()
	}
	return heads, err
}
