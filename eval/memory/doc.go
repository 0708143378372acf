// Package memory estimates the memory that llama.cpp takes for a model: what
// llama-cli, llama-server and the other tools of llama.cpp 0.7.0 allocate on a machine
// without accelerators, by the metadata and the tensor descriptions of a GGUF file alone.
//
//	weights   the tensors' bytes
//	cache     keys and values of all tokens of the context, layer by layer: of a window's
//	          tokens where a layer sees no more, of a latent vector where the model has
//	          multi-head latent attention, of another layer's where layers share them
//	state     what recurrent layers remember, a fixed size for each sequence
//	compute   the largest set of intermediate results that is alive at a time while a
//	          batch is computed
//	output    logits or embeddings that are handed out
//
// The sizes of weights, caches, states and outputs are those that the runtime prints. The
// compute buffer is that of a graph laid out here from the names of a layer's tensors, by the
// rules of the runtime's allocator. Where layers are attention and a feed-forward network,
// dense or of experts, it is the runtime's to the byte; it is an estimate for graphs that
// differ: recurrent layers, compressed attention, drafts, encoders with windows. Of 1245 runs
// of made-up models of all architectures (make interop, TestMemory) 762 had the runtime's
// size, 893 were within 2 %, 1090 within 10 %, and the worst had 0.06 and 1.98 times of it.
package memory
