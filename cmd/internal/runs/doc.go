// Package runs declares the flags of the commands that write and evaluate models, and reads their command lines:
//
//	convert*.go    ggconv: which files to make of which checkpoint
//	quantize*.go   ggquant: which outputs to make of which model
//	evaluate*.go   ggeval: the verbs whose chunks several processes can share
//	checkpoint.go  how to convert a checkpoint, for every command that reads one; model.go opens a model
//	types.go       which types tensors get, for every command that quantizes, into a file or in memory (memory.go)
//	write.go       how a run writes: parts, resumption, verification; manifest.go records it
//	page.go        figures as a page
//
// A Parse function returns what a command line asks for. The command does it, "ggtool reproduce" does it again from a
// manifest, and "ggtool submit" checks with it the commands of a job.
package runs
