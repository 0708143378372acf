// Package edit changes GGUF files whose tensors' bytes stay what they are: metadata, a model cut
// into shards, and shards joined.
//
//	Set ──► plan (metadata, which tensors go where) ──► []*writer.File ──► package writer
//
// Nothing is decoded or checked: types that are not known here and weights that are not
// finite are copied like any other bytes.
package edit
