// Package edit changes GGUF files without changing the bytes of tensors: it changes metadata, and splits and merges
// shards.
//
//	Set ──► plan (metadata, which tensors go where) ──► []*writer.File ──► package writer
//
// Nothing is decoded or checked: types that are not known here and weights that are not
// finite are copied like any other bytes.
package edit
