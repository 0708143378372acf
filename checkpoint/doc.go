// Package checkpoint opens model directories, and is the only package that does.
//
// Side files (configurations, tokenizers, cards) are read whole, by one reader that takes regular files inside the
// directory under the limits of one table. All files that were read are recorded, so that a run can check at its end
// whether one of them has changed.
//
// A Store lists stored tensors and reads their bytes; package precision combines them into weights.
//
//	dir.go          which files may be opened
//	limits.go       maximum sizes of side files
//	hub.go          the cache of the Hugging Face hub
//	store.go        the interface Store
//	safetensors.go  the store of safetensors files
//	pickles.go      the store of files of torch.save
//	adapter.go      adapters, and models in the hub's cache by their IDs
package checkpoint
