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
// Which layers have keys and values, windows or states follows from the graph of the file's
// architecture (graph.Of): a program that uses this package imports package arch, which declares
// the graphs. Without a graph, the names of tensors decide.
//
// The sizes of weights, caches, states and outputs are those that the runtime prints. The
// compute buffer is that of the runtime's graph: this package has a rule for each type of step
// and part, and the rules of the runtime's allocator. It is the runtime's to the byte for most
// models, an estimate where parts have no rule of their own and for architectures without a
// graph. Of 1245 runs of made-up models of all architectures (make interop, TestMemory) 1018 had
// the runtime's size, 1141 were within 2 %, 1197 within 10 %, and the worst were 0.08 and 1.98 times of it.
package memory
