// Package memory estimates the memory that llama.cpp takes for a model: what
// llama-cli, llama-server and the other tools of llama.cpp 0.7.0 allocate on a machine
// without accelerators, by the metadata and the tensor descriptions of a GGUF file alone.
//
//	weights   the tensors' bytes
//	cache     keys and values of all tokens of the context, layer by layer: of the window's
//	          tokens only in sliding-window layers, a latent vector per token with multi-head
//	          latent attention (MLA), none in layers that use the KV of an earlier layer
//	state     the state of recurrent layers, a fixed size for each sequence
//	compute   the largest set of intermediate results that is alive at a time while a
//	          batch is computed
//	output    logits or embeddings that the runtime returns
//
// The sizes of weights, caches, states and outputs are those that the runtime prints. The
// compute buffer is that of a graph laid out here from the names of a layer's tensors, by the
// rules of the runtime's allocator. Where layers are attention and a feed-forward network,
// dense or of experts, it is the runtime's to the byte; it is an estimate for graphs that
// differ: recurrent layers, compressed attention, draft models, encoders with windows. Of 1245 runs
// of made-up models of all architectures (make interop, TestMemory) 762 had the runtime's
// size, 893 were within 2 %, 1090 within 10 %, and the worst were 0.06 and 1.98 times of it.
package memory
