package gguf

import (
	"slices"
	"strings"
)

// The metadata keys this project reads or writes by name, as in the GGUF
// specification. Keys below an architecture's name are built with ArchKey.
const (
	KeyArchitecture        = "general.architecture"
	KeyAlignment           = "general.alignment"
	KeyFileType            = "general.file_type"
	KeyQuantizationVersion = "general.quantization_version"

	KeySplitNo      = "split.no"
	KeySplitCount   = "split.count"
	KeySplitTensors = "split.tensors.count"

	// KeyReserve reserves space for later edits of a file's metadata.
	KeyReserve = ownKeys + "reserve"
)

// ownKeys is the prefix of this project's own keys, which describe the file, not the model.
const ownKeys = "ggforge."

// OwnKey reports whether a key is this project's own; readers of models ignore it.
func OwnKey(key string) bool { return strings.HasPrefix(key, ownKeys) }

// Carried returns the metadata to copy into another file of the same model: all pairs except OwnKey's.
func (m Metadata) Carried() Metadata {
	return slices.DeleteFunc(slices.Clone(m), func(kv KV) bool { return OwnKey(kv.Key) })
}

// QuantizationVersion is the value of general.quantization_version
// (GGML_QNT_VERSION).
const QuantizationVersion = 2

// ArchKey returns the key below an architecture's name: "llama.block_count".
func ArchKey(arch, key string) string { return arch + "." + key }
