// Package verify says everything that is wrong with a GGUF file or with the shards of a model:
//
//	structure     what package gguf would refuse, all of it, and padding that is not zero
//	shards        those that are missing, or do not belong together
//	blocks        scales and elements that are not finite, tensor by tensor
//	vocabulary    lengths of its arrays, ids of special tokens, what the runtime needs to encode
//	architecture  types of its keys, keys that must be there, dimensions of tensors by the metadata
//
// Notes are about what loaders take all the same.
package verify
