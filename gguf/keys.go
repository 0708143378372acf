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

	// KeyReserve has a value that only takes up room, which later edits of a file's metadata may use.
	KeyReserve = ownKeys + "reserve"
)

// ownKeys is how keys begin that are this project's own. They are about the file that they are in, not about the model.
const ownKeys = "ggforge."

// OwnKey reports whether a key is this project's own: what reads models passes it over.
func OwnKey(key string) bool { return strings.HasPrefix(key, ownKeys) }

// Carried returns what goes into another file of the same model: all but keys of our own.
func (m Metadata) Carried() Metadata {
	return slices.DeleteFunc(slices.Clone(m), func(kv KV) bool { return OwnKey(kv.Key) })
}

// QuantizationVersion is the value of general.quantization_version
// (GGML_QNT_VERSION).
const QuantizationVersion = 2

// ArchKey returns the key below an architecture's name: "llama.block_count".
func ArchKey(arch, key string) string { return arch + "." + key }
