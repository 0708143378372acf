// Package verify finds all defects of a GGUF file or of the shards of a model:
//
//	structure     everything that package gguf refuses, and padding that is not zero
//	shards        missing shards, and shards of different models
//	blocks        scales and elements that are not finite, tensor by tensor
//	vocabulary    lengths of its arrays, ids of special tokens, what the runtime needs to encode
//	templates     chat templates that reach for Python's internals, and, with a source, texts that differ from its own
//	architecture  types of its keys, keys and tensors that must be there, dimensions of tensors by the metadata
//
// Notes are findings that loaders may accept all the same.
package verify
