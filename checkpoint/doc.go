// Package checkpoint opens model directories, and is the only package that does.
//
// Side files (configurations, tokenizers, cards) are read whole, by one reader
// that takes regular files inside the directory under the limits of one table. All
// files that were read are remembered, so that a run can ask at its end whether
// one of them has changed meanwhile.
//
// Weights come from a Store, which lists stored tensors and reads their bytes;
// package precision combines them into weights.
//
//	dir.go          what may be opened
//	limits.go       how large side files may be
//	hub.go          the cache of the Hugging Face hub
//	store.go        what a store is
//	safetensors.go  the store of safetensors files
//	pickles.go      the store of files of torch.save
//	adapter.go      adapters, and models in the hub's cache by their IDs
package checkpoint
