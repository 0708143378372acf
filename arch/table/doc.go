// Package table defines the form of an architecture's table and interprets it: the table has the metadata of a GGUF
// file with the source of each value, and the output of each tensor of a checkpoint.
//
// Arch is a table; Layout finds the row of every tensor of a checkpoint, Build returns the tensors of the file, KVs
// returns the metadata. The tables are in package arch, rows that several tables share in package parts.
package table
