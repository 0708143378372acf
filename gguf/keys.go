package gguf

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
)

// QuantizationVersion is the value of general.quantization_version
// (GGML_QNT_VERSION).
const QuantizationVersion = 2

// ArchKey returns the key below an architecture's name: "llama.block_count".
func ArchKey(arch, key string) string { return arch + "." + key }
