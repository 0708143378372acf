// Package memory says how much memory the reference's runtime takes for a model: what
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
// The sizes of weights, caches and states are those that the runtime prints. The size of
// the compute buffer depends on how the runtime's allocator places the results of a graph
// that differs from architecture to architecture; it is an estimate, and Use.Compute says
// how good it is.
package memory
