// Package table is the form in which an architecture is written down, and what
// reads it: which metadata a GGUF file has and where each value comes from, and
// what each tensor of a checkpoint becomes.
//
// Arch is a table; Layout finds the row of every tensor of a checkpoint, Build
// makes the tensors of the file, KVs makes the metadata. The tables themselves are
// in package arch, what several of them share is in package parts.
package table
